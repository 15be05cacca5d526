"""What a loaded module holds: statements ready to run, and the kernels and functions that they belong to.

    Entry    what one launch needs: code, registers, parameters, static shared memory
    Record   one statement: its guard, and the step that it does

Data only; made by program.py and function_body.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import WarpsimError
from ...ptx.binding import Bound
from ...ptx.statements import InstructionStatement, Kernel
from ...ptx.warpgroup import WarpgroupBound
from ..bind.scope import Scope, Variable
from ..bind.statement_binder import NOTHING, Flow
from ..opcodes.operation import dtype_of
from .directives import Tuning

if TYPE_CHECKING:
    from ..run.wave import Step


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
    scope: Scope | None = None  # what the names in the statement mean, for who asks
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


@dataclass(eq=False, kw_only=True)
class Function:
    """A kernel or device function while it is loaded: its declarations and where its code begins."""

    name: str
    kernel: Kernel
    start: int = -1
    types: list[str] = field(default_factory=list)  # of registers, by number
    local_bytes: int = 0
    shared_end: int = 0  # of the kernel's own variables in shared memory
    shared: list[Variable] = field(default_factory=list)  # those variables
    parameters: list[Variable] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)
    problems: list[WarpsimError] = field(default_factory=list)  # of its own statements
    named: set[str] = field(default_factory=set)  # functions and variables of the module that it names

    @cached_property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Of the registers, by number."""
        return [dtype_of(one) for one in self.types]


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
