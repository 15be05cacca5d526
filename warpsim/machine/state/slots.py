"""Typed state that groups of opcodes keep for an owner, such as a wave.

A slot is made once, at the top of a module; its value is made when an owner is first asked for it, so the
owner does not depend on the groups. Knows no opcode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, cast


class Owner(Protocol):
    """What keeps values of slots."""

    slots: dict[object, object]


Kept = TypeVar("Kept")


class Slot(Generic[Kept]):
    """A value that every owner has of its own: ``make(owner)`` returns the first."""

    def __init__(self, make: Callable[[Any], Kept]) -> None:
        self._make = make

    def of(self, owner: Owner) -> Kept:
        """Return the value of an owner."""
        if self not in owner.slots:
            owner.slots[self] = self._make(owner)
        return cast(Kept, owner.slots[self])

    def set(self, owner: Owner, value: Kept) -> None:
        """Give an owner another value."""
        owner.slots[self] = value
