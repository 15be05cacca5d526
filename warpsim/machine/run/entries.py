"""What a loaded module holds: statements ready to run, and the kernels and functions that they belong to.

    Entry    what one launch needs: code, registers, parameters, static shared memory
    Record   one statement: its guard, and the step that it does

Data only; made by program.py and function_body.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ptx.binding import Bound
from ...ptx.statements import InstructionStatement
from ...ptx.warpgroup import WarpgroupBound
from ..bind.scope import NOTHING, Flow, Scope, Variable
from ..bind.tuning import Tuning

if TYPE_CHECKING:
    from .wave import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One statement as it is executed: ``guard`` is the number of a predicate, -1 for none.

    ``fidelity`` and ``note`` say how exact its results are, ``flow`` which registers they come from.
    """

    step: Step
    statement: InstructionStatement
    guard: int = -1
    negated: bool = False
    fidelity: str = "exact"
    note: str = ""
    flow: Flow = NOTHING
    scope: Scope | None = None  # what the names in the statement mean
    matrix: Bound | WarpgroupBound | None = None  # the operands by role, of a matrix instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a kernel: its place, name, kind ("u64", "b8" for bytes), size and alignment in bytes."""

    index: int
    name: str
    kind: str
    bytes: int
    alignment: int
    offset: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Entry:
    """A kernel, ready to run: ``code`` is that of the whole module, and begins for it at ``start``."""

    name: str
    code: list[Record]
    start: int
    registers: int
    dtypes: list[np.dtype[Any]]
    parameters: tuple[Parameter, ...]
    parameter_bytes: int
    static_shared_bytes: int
    shared: tuple[Variable, ...]  # what has a name in shared memory
    dynamic_shared: bool
    local_bytes: int
    tuning: Tuning
