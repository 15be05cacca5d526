"""Results of functions of something, kept for it and for all that are alike. Knows nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Something of which results are kept.

    Things that are alike share what is ``kept`` when each is made with ``shared``; ``dataclasses.replace``
    makes a thing without any results.
    """

    shared: InitVar[dict[str, Any] | None] = None
    kept: dict[str, Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self, shared: dict[str, Any] | None) -> None:
        """Begin without results, or with those of something alike."""
        object.__setattr__(self, "kept", {} if shared is None else shared)

    def once(self, name: str, make: Callable[[], Result]) -> Result:
        """Return a result, made when it is asked for first."""
        if name not in self.kept:
            self.kept[name] = make()
        found: Result = self.kept[name]
        return found
