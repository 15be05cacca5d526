"""Functions of a module while it is loaded, and what statements ask of their module.

Knows declarations; does not know how a module is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...base.errors import WarpsimError
from ...ptx.statements import Kernel
from .scope import LabelName, Variable
from .value_types import dtype_of


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
    overrun: WarpsimError | None = (
        None  # more shared memory than the target allows, which a launch may ignore
    )
    named: set[str] = field(default_factory=set)  # functions and variables of the module that it names
    labels: list[LabelName] = field(default_factory=list)
    calls_by_address: bool = False  # whether it calls what a register says
    increase: int = 0  # the largest count of its setmaxnreg.inc

    @cached_property
    def dtypes(self) -> list[np.dtype[Any]]:
        """Of the registers, by number."""
        return [dtype_of(type_name) for type_name in self.types]


class ModuleNames(Protocol):
    """A module as its statements see it."""

    target: str
    version: tuple[int, int]
    functions: dict[str, Function]

    def function_number(self, name: str) -> int:
        """Return the number that stands for the address of a function."""

    def function_at(self, number: int) -> Function | None:
        """Return the function whose address a number is."""
