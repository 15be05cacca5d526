"""Loops along k: a product cut into steps of one instruction and tiles of D, everything as registers.

Knows steps and tiles, and what some steps make of C, exactly, or add to a tile, in ordinary numbers. Does not
know mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..execution.interface import pack_metadata
from ..isa.codes import codes_of, integers, magnitudes, matrix_of, values_of
from ..isa.fragments import codes_from, registers_of
from ..isa.instruction import Codes, Instruction
from ..isa.sparsity import compress
from .arithmetic import Arithmetic
from .grids import Registers, Setting

Matrix = npt.NDArray[np.float64]
Step = tuple[Registers, Arithmetic]  # what an instruction reads, of all tiles, and what it computes


class Loop:
    """A product cut into steps of one instruction and tiles of D, everything as registers."""

    def __init__(self, form: Instruction, A: Any, B: Any, C: Any) -> None:
        self.form = form
        m, n, k = form.shape.m, form.shape.n, form.shape.k
        a, b = codes_of(A, form.a, "A"), codes_of(B, form.b, "B")
        self.shape = a.shape[0], b.shape[1]
        c = np.zeros(self.shape, form.c.code_dtype) if C is None else codes_of(C, form.c, "C")
        self.tail = a.shape[1] % k
        self.a, self.b, self.c = _padded(a, m, k), _padded(b, k, n), _padded(c, m, n)
        self.steps, self.rows, self.columns = self.a.shape[1] // k, len(self.a) // m, self.b.shape[1] // n
        self.setting = Setting(instruction=form)

    @cached_property
    def registers(self) -> Registers:
        """``(steps, tiles, lanes, registers)`` of a, b and e; tiles row after row. C is ``(tiles, …)``."""
        form = self.form
        a = _blocks(self.a, self.rows, self.steps).swapaxes(0, 1)[:, :, None]
        b = _blocks(self.b, self.steps, self.columns)[:, None]
        shape = self.steps, self.rows, self.columns
        found: Registers = {}
        if form.pattern is not None:
            weight = magnitudes(matrix_of(a, form.a), form.a)
            a, indices = compress(a, weight, form.pattern)
            words = pack_metadata(form, indices, 0)
            found["e"] = np.broadcast_to(words, (*shape, *words.shape[3:]))
        for name, matrix in (("a", a), ("b", b)):
            words = registers_of(matrix, form, name)
            found[name] = np.broadcast_to(words, (*shape, *words.shape[3:]))
        whole = self.steps, self.rows * self.columns
        return {name: words.reshape(*whole, *words.shape[3:]) for name, words in found.items()}

    @cached_property
    def accumulators(self) -> Any:
        """``(tiles, lanes, registers)`` of C."""
        blocks = _blocks(self.c, self.rows, self.columns)
        words = registers_of(blocks, self.form, "c")
        return words.reshape(-1, *words.shape[2:])

    def tiles_of(self, codes: Codes) -> Codes:
        """``(tiles, m, n)`` of a matrix like D."""
        form = self.form
        blocks = _blocks(_padded(codes, form.shape.m, form.shape.n), self.rows, self.columns)
        return blocks.reshape(-1, form.shape.m, form.shape.n)

    def chain(
        self,
        steps: Sequence[Step],
        c: Any,
    ) -> Codes:
        """Codes ``(..., tiles, m, n)`` of D of these steps, one after the other, from registers of C."""
        for registers, arithmetic in steps:
            codes = arithmetic.simulate(self.setting, {**registers, "c": c})
            c = registers_of(codes, self.form, "d")
        return codes_from(c, self.form, "d")

    def step(self, at: int) -> Registers:
        """The registers of one step, of all tiles."""
        return {name: words[at] for name, words in self.registers.items()}

    def plain(self) -> list[Step]:
        """The steps as they should be."""
        return [(self.step(at), Arithmetic(instruction=self.form)) for at in range(self.steps)]

    def contributions(self, tile: int) -> Matrix:
        """``(steps, m, n)``: what every step adds to a tile."""
        registers = {name: words[:, tile] for name, words in self.registers.items()}
        zero = np.zeros_like(self.accumulators[:1])
        codes = Arithmetic(instruction=self.form).simulate(self.setting, {**registers, "c": zero})
        return numbers(codes, self.form.d)

    def added(self, steps: Sequence[Step], tile: int) -> Matrix:
        """What steps add to a tile, together."""
        if not steps:
            return np.zeros((self.form.shape.m, self.form.shape.n))
        stacked = {name: np.stack([registers[name][tile] for registers, _ in steps]) for name in steps[0][0]}
        zero = np.zeros_like(self.accumulators[:1])
        codes = steps[0][1].simulate(self.setting, {**stacked, "c": zero})
        total: Matrix = numbers(codes, self.form.d).sum(axis=0)
        return total


def numbers(codes: Codes, element: Any) -> Matrix:
    """The values of codes, as floats."""
    return values_of(codes, element) if element.is_float else integers(codes, element).astype(np.float64)


def _padded(codes: Codes, rows: int, columns: int) -> Codes:
    return np.pad(codes, [(0, -codes.shape[0] % rows), (0, -codes.shape[1] % columns)])


def _blocks(codes: Codes, rows: int, columns: int) -> Codes:
    """``(rows, columns, height, width)`` of a matrix in so many blocks."""
    height, width = codes.shape[0] // rows, codes.shape[1] // columns
    return codes.reshape(rows, height, columns, width).swapaxes(1, 2)
