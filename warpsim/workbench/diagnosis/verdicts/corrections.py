"""Operands put right: a launch whose matrix instructions are given the elements that they should have.

What a finding claims is tried before it is called a cause: with the operand put right, every output must be
as expected. Knows tiles and arrays; does not know findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.fragments import gather, registers_of
from ....isa.operand_places.placements import Inputs
from ....isa.products import Operands
from ....machine.opcodes.matrix.wmma import product
from ....sums.execution.pipeline import checked_inputs, execute_inputs, execute_operands, rule_for
from ..origins.loaded_operands import Operand, row_length
from .matrix_hooks import MatrixHook, MatrixStep

Array = npt.NDArray[Any]
Place = tuple[int, ...]
_BYTE = 8


@dataclass(frozen=True, kw_only=True)
class Tile:
    """The elements that an operand should have: rows and columns of its array ``(outer size, k)``."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Correction:
    """One operand of one statement put right: ``codes`` ``(outer size, k)`` by execution."""

    pc: int
    role: str
    codes: Mapping[Place, Array]


def codes_at(array: Array, operand: Operand, tile: Tile) -> Array | None:
    """Return the codes of elements of an operand's array; None where some are outside of it."""
    assert operand.buffer is not None
    length = row_length(operand.buffer, operand.width)
    index = tile.rows * length + tile.columns
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    inside = (tile.rows >= 0) & (tile.columns >= 0) & (tile.columns < length)
    if not inside.all() or (index + 1).max() * operand.width > _BYTE * flat.size:
        return None
    if operand.width >= _BYTE:
        codes: Array = flat.view(f"u{operand.width // _BYTE}")[index]
        return codes
    each = _BYTE // operand.width
    packed: Array = flat[index // each] >> (index % each * operand.width).astype(np.uint8)
    packed &= np.uint8((1 << operand.width) - 1)
    return packed


class Corrected(MatrixHook):
    """A launch with corrections; ``used`` counts executions that had any."""

    def __init__(self, corrections: list[Correction]) -> None:
        super().__init__()
        self._table: dict[int, dict[str, Mapping[Place, Array]]] = {}
        for correction in corrections:
            known = self._table.setdefault(correction.pc, {}).get(correction.role, {})
            self._table[correction.pc][correction.role] = {**known, **correction.codes}
        self.used = 0

    def of_registers(self, step: MatrixStep, inputs: Inputs) -> Array:
        """Return D of mma and wgmma, of operands that are put right."""
        known = self._known(step)
        if not known or any(inputs.negate):
            return execute_inputs(step.form, inputs)
        form = step.form
        operands = gather(form, checked_inputs(form, inputs))
        for role, tiles in known.items():
            operands = _with(operands, role, tiles, len(step.places))
        codes = execute_operands(operands, rule_for(form), products=form.products)
        return registers_of(codes, form, "d")

    def of_fragments(self, step: MatrixStep, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma, of fragments that are put right."""
        given = {role: matrix.copy() for role, matrix in codes.items()}
        for role, tiles in self._known(step).items():
            for place, tile in tiles.items():
                given[role][place] = tile
        return product(execute_inputs, step.form, given["a"], given["b"], given["c"])

    def of_operands(self, step: MatrixStep, operands: Operands) -> Array:
        """Return D of tcgen05.mma, of operands that are put right."""
        known = self._known(step)
        for role, tiles in known.items() if not any(operands.product.negated) else ():
            operands = _with(operands, role, tiles, len(step.places))
        return super().of_operands(step, operands)

    def _known(self, step: MatrixStep) -> dict[str, dict[int, Array]]:
        """Return what is put right of these executions, by operand and number."""
        found: dict[str, dict[int, Array]] = {}
        for role, codes in self._table.get(step.pc, {}).items():
            for number, place in enumerate(map(tuple, step.places.tolist())):
                if place in codes:
                    found.setdefault(role, {})[number] = codes[place]
                    self.used += 1
        return found


class Rearranged(MatrixHook):
    """A launch in which an operand of some statements has its elements in another order, by statement.

    An order is the operand, a or b, and row and column ``(outer size, k)`` of what each element should be.
    """

    def __init__(self, orders: Mapping[int, tuple[str, npt.NDArray[np.intp], npt.NDArray[np.intp]]]) -> None:
        super().__init__()
        self._orders = orders

    def of_registers(self, step: MatrixStep, inputs: Inputs) -> Array:
        """Return D of mma and wgmma."""
        if step.pc not in self._orders:
            return execute_inputs(step.form, inputs)
        operands = gather(step.form, checked_inputs(step.form, inputs))
        operands = _rearranged(operands, *self._orders[step.pc])
        codes = execute_operands(operands, rule_for(step.form), products=step.form.products)
        return registers_of(codes, step.form, "d")

    def of_operands(self, step: MatrixStep, operands: Operands) -> Array:
        """Return D of tcgen05.mma."""
        if step.pc in self._orders:
            operands = _rearranged(operands, *self._orders[step.pc])
        return super().of_operands(step, operands)

    def of_fragments(self, step: MatrixStep, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma."""
        given = dict(codes)
        if step.pc in self._orders:
            role, rows, columns = self._orders[step.pc]
            given[role] = np.ascontiguousarray(codes[role][..., rows, columns])
        return product(execute_inputs, step.form, given["a"], given["b"], given["c"])


def _rearranged(
    operands: Operands, role: str, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
) -> Operands:
    """Return operands of which A or B has its elements in another order."""
    if role == "a":
        return replace(operands, a=np.ascontiguousarray(operands.a[..., rows, columns]))
    return replace(operands, b=np.ascontiguousarray(operands.b[..., columns.T, rows.T]))


def _with(operands: Operands, role: str, tiles: Mapping[int, Array], count: int) -> Operands:
    """Return operands with some tiles in place of those that were given."""
    given = getattr(operands, role)
    matrices = np.broadcast_to(given, (count, *given.shape[-2:])).copy()
    for number, tile in tiles.items():
        matrices[number] = (tile.T if role == "b" else tile).astype(matrices.dtype)
    changed: dict[str, Any] = {role: matrices}
    return replace(operands, **changed)
