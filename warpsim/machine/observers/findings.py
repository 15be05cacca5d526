"""What checks find: one finding a statement and kind, however often it happens.

Knows modes and wording; does not know memories. ``checks="error"`` raises the first finding that is an error,
"warn" collects all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ...errors import Location, OperandError, UndefinedBehavior

Mode = Literal["error", "warn", "off"]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class LaunchFinding:
    """``kind`` ("race", "uninitialised", ...), how grave, what happened, and where; ``other`` is the other
    statement of a race."""

    kind: str
    severity: Severity
    message: str
    location: Location
    other: Location | None = None

    def __str__(self) -> str:
        note = "" if self.other is None else f"\n{self.other}: note: the other access\n{self.other.excerpt()}"
        return f"{self.location}: {self.severity}: {self.message}\n{self.location.excerpt()}{note}"


@dataclass
class Findings:
    """The findings of a launch, in the order in which they were made."""

    mode: Mode = "error"
    found: list[LaunchFinding] = field(default_factory=list)
    known: set[tuple[object, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.mode not in ("error", "warn", "off"):
            raise OperandError(f"checks={self.mode!r}: it is 'error', 'warn' or 'off'")

    def collected(self) -> tuple[LaunchFinding, ...]:
        """The errors that have been found and not raised."""
        return tuple(one for one in self.found if one.severity == "error" and self.mode == "warn")

    def add(self, key: tuple[object, ...], finding: LaunchFinding) -> None:
        """Keep the first finding of a key; raises UndefinedBehavior for an error in mode "error"."""
        if key in self.known:
            return
        self.known.add(key)
        self.found.append(finding)
        if self.mode == "error" and finding.severity == "error":
            raise UndefinedBehavior(finding.message, finding.location)
