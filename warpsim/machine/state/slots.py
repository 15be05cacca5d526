"""Typed state that groups of opcodes keep for an owner, such as a wave.

A slot is made once, at the top of a module; its value is made when an owner is first asked for it, so the
owner does not depend on the groups. Knows no opcode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar


class Owner(Protocol):
    """What keeps values of slots."""

    @property
    def slots(self) -> dict[object, Any]:
        """By slot, what it keeps."""


Kept = TypeVar("Kept")


class Slot(Generic[Kept]):
    """A value that every owner has of its own: ``make(owner)`` returns the first."""

    def __init__(self, make: Callable[[Any], Kept]) -> None:
        self._make = make

    def of(self, owner: Owner) -> Kept:
        """Return the value of an owner."""
        try:
            value: Kept = owner.slots[self]
        except KeyError:
            value = owner.slots[self] = self._make(owner)
        return value

    def set(self, owner: Owner, value: Kept) -> None:
        """Give an owner another value."""
        owner.slots[self] = value
