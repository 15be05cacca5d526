"""A launch whose matrix instructions leave chosen values: what the operands of others become.

D of every matrix instruction is what an experiment gives, by row and column, so operands that are computed
from it show what they are computed from. Knows executions and operands; does not know what they should be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .....base.errors import present
from .....isa.codes import codes_of, matrix_of
from .....isa.fragments import gather, registers_of
from .....isa.instruction import Instruction
from .....isa.operand_places.placements import Inputs
from .....isa.products import Operands
from .....sums.execution.pipeline import checked_inputs
from ..matrix_hooks import MatrixHook, MatrixStep
from ..repeated_launch import RepeatedLaunch

Array = npt.NDArray[Any]
Place = tuple[int, ...]
Give = Callable[[MatrixStep], Array]  # values of D (n, rows, columns)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """An execution of a watched statement: operands as values ``(rows, columns)``, A, B and C.

    ``latest`` is how often each warp of the grid had executed each of the sources by then.
    """

    operands: Mapping[str, Array]
    latest: Mapping[tuple[int, ...], int]


Watched = Callable[[int, Place], bool]


class Driven(MatrixHook):
    """A launch with a D that is given; ``seen`` by statement and place."""

    def __init__(self, give: Give, watched: Watched) -> None:
        super().__init__()
        self.seen: dict[tuple[int, Place], Seen] = {}
        self._give, self._watched = give, watched
        self._latest: dict[tuple[int, ...], int] = {}

    def of_registers(self, step: MatrixStep, inputs: Inputs) -> Array:
        """Return D of mma and wgmma."""
        if self._wanted(step):
            operands = gather(step.form, checked_inputs(step.form, inputs))
            self._keep(step, {role: getattr(operands, role) for role in "abc"})
        return registers_of(self._codes(step), step.form, "d")

    def of_fragments(self, step: MatrixStep, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma."""
        if self._wanted(step):
            self._keep(step, {**codes, "b": codes["b"].swapaxes(1, 2)})
        return self._codes(step)

    def of_operands(self, step: MatrixStep, operands: Operands) -> Array:
        """Return D of tcgen05.mma."""
        if self._wanted(step):
            self._keep(step, {role: getattr(operands, role) for role in "abc"})
        return self._codes(step)

    def _wanted(self, step: MatrixStep) -> bool:
        return any(self._watched(step.pc, tuple(place)) for place in step.places.tolist())

    def _keep(self, step: MatrixStep, codes: Mapping[str, Array]) -> None:
        values = {role: _values(step.form, role, matrix) for role, matrix in codes.items()}
        for number, place in enumerate(map(tuple, step.places.tolist())):
            if self._watched(step.pc, place):
                own = {role: matrix[number % len(matrix)] for role, matrix in values.items()}
                self.seen[step.pc, place] = Seen(operands=own, latest=dict(self._latest))

    def _codes(self, step: MatrixStep) -> Array:
        """Return the codes of D that the experiment gives."""
        for place in step.places.tolist():
            self._latest[step.pc, *place[:4]] = place[4]
        return codes_of(self._give(step).astype(step.form.d.dtype), step.form.d, "D")


def _values(form: Instruction, role: str, codes: Array) -> Array:
    matrices = codes if codes.ndim > 2 else codes[None]
    return np.asarray(matrix_of(matrices, form.format(role)), np.float64)


def driven(launch: RepeatedLaunch, give: Give, watched: Watched) -> dict[tuple[int, Place], Seen] | None:
    """Launch with a D that is given; None where the launch does not end so."""
    hook = Driven(give, watched)
    attempt = launch.attempt(checks="off", observers=(hook,))
    return None if attempt.error is not None else present(hook.seen, "executions")
