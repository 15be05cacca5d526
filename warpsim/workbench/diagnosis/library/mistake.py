"""One mistake: what it changes, and how to undo it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ....isa.registers import Words
from .arithmetic_mistakes import Arithmetic
from .setting import Registers

SPELLED = {"cd": "C and D", "e": "metadata", "scale_a": "scales of A", "scale_b": "scales of B"}
Change = Callable[[Registers], Registers]  # registers -> those that change
Reading = Callable[[Words], Words]  # D as the instruction wrote it -> D as it was read, or back
Record = tuple[str, Mapping[str, Any]]  # a kind, and facts that say which


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One mistake: its name, what to change, and what it does.

    ``change`` alters what the instruction reads; ``read`` makes of D as written what was read; ``mend`` makes
    of registers with the mistake what they should be, if nothing is lost; ``arithmetic`` is what is computed
    instead. ``operands`` are those that it touches. ``also`` names other rows with the same effect on this
    form. ``records`` say as data what the names say: kinds of maps, of values, and ``where``; ``cost`` is the
    length of the description. ``describe`` gives the mistake its words, where finding these takes long: the
    name is a number then.
    """

    name: str
    advice: str
    operands: tuple[str, ...]
    change: Change | None = None
    mend: Change | None = None
    read: Reading | None = None
    arithmetic: Arithmetic | None = None
    also: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    cost: float = 3.0
    describe: Callable[[], Mistake] | None = None

    @property
    def named(self) -> Mistake:
        """The mistake with its words."""
        return self if self.describe is None else self.describe()

    def __str__(self) -> str:
        return self.name
