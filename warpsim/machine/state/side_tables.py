"""Typed state that groups of opcodes keep for an owner, such as a wave.

A side table is declared once, at the top of a module; its value is made when an owner is first asked for it,
so the owner does not depend on the groups. Knows no opcode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar


class Owner(Protocol):
    """What keeps values of side tables."""

    @property
    def side_tables(self) -> dict[object, Any]:
        """The value of each table."""


Kept = TypeVar("Kept")


class SideTable(Generic[Kept]):
    """A value that every owner has of its own: ``make(owner)`` returns the first."""

    def __init__(self, make: Callable[[Any], Kept]) -> None:
        self._make = make

    def of(self, owner: Owner) -> Kept:
        """Return the value of an owner."""
        try:
            value: Kept = owner.side_tables[self]
        except KeyError:
            value = owner.side_tables[self] = self._make(owner)
        return value

    def set(self, owner: Owner, value: Kept) -> None:
        """Give an owner another value."""
        owner.side_tables[self] = value
