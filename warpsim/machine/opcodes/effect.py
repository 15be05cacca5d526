"""Rows of opcodes that do more than compute: they touch memory, other lanes, or the program counter.

``bind`` turns a statement and its chosen modifiers into a step, once, when the program is loaded; the step is
called with the wave, the path that stands there, and those of its lanes whose guard holds. A step prepares
everything (reads, checks, computes) before it writes anything, so that an error leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..run.wave import Step
from .operation import Operation, Row


def no_operation(*modifiers: str) -> Operation:
    """Return the ``build`` of a row that has a ``bind`` instead."""
    raise AssertionError("an effect has no operation of its own")


@dataclass(frozen=True, kw_only=True)
class Effect(Row):
    """A row whose forms are bound to their operands by a function ``(binder, *modifiers) -> step``.

    ``fidelity`` and ``note`` are those of its results; ``at_times`` says that they are so of some values
    alone, which the step notes. ``together`` says how many lanes in a row must execute it together: 1, or 32.
    With ``any_constant`` the values of constants make no form illegal.
    """

    bind: Callable[..., Step]
    build: Callable[..., Operation] = no_operation
    fidelity: str = "exact"
    note: str = ""
    at_times: bool = False
    together: int = 1
    any_constant: bool = False
