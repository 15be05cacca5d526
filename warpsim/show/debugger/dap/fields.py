"""Arguments of requests, checked when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....base.errors import OperandError


@dataclass(frozen=True)
class Arguments:
    """The arguments of a request of a client, which may be anything."""

    command: str
    given: dict[str, Any]

    def number(self, name: str, default: int | None = None) -> int:
        """Return a whole number. Raises OperandError."""
        found = self.given.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._wrong(name, "a whole number")
        return found

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Raises OperandError."""
        found = self.given.get(name, default)
        if not isinstance(found, str):
            raise self._wrong(name, "a text")
        return found

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return true or false. Raises OperandError."""
        found = self.given.get(name, default)
        if not isinstance(found, bool):
            raise self._wrong(name, "true or false")
        return found

    def parts(self, name: str) -> list[Arguments]:
        """Return a list of objects. Raises OperandError."""
        found = self.given.get(name, [])
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise self._wrong(name, "a list of objects")
        return [Arguments(self.command, each) for each in found]

    def part(self, name: str) -> Arguments:
        """Return an object. Raises OperandError."""
        found = self.given.get(name, {})
        if not isinstance(found, dict):
            raise self._wrong(name, "an object")
        return Arguments(self.command, found)

    def _wrong(self, name: str, expected: str) -> OperandError:
        state = "is missing" if name not in self.given else f"is {self.given[name]!r}"
        return OperandError(f"{self.command}: {name} {state}: expected {expected}")
