"""What checks find: one finding a statement and kind, however often it happens.

Knows modes and wording; does not know memories. ``checks="error"`` raises the first finding that is an error,
"warn" collects all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ...base.errors import Location, OperandError, SourceLine, UndefinedBehavior

Mode = Literal["error", "warn", "off"]
_LISTED = 4  # pairs of lines that a finding lists
Severity = Literal["error", "warning", "note"]
Influence = Literal["", "none", "none seen", "seen"]


@dataclass(frozen=True, kw_only=True)
class LaunchFinding:
    """``kind`` ("race", "uninitialised", ...), how grave, what happened, and where; ``other`` is the other
    statement, ``note`` what the other did, and ``fix`` what to do, "" where there is nothing to say.
    ``others`` are further statements that do the same, each with its other statement: pairs of the same
    stretches of code, or statements that read the same variable or are of the same line of the source.

    ``legal`` says that PTX allows this, or is silent about it: a warning is advice then. ``influence`` is
    that of undefined values on results: "none" is proved, by following them; "none seen" and "seen" are what
    executing the launch with other values showed; "" is not known."""

    kind: str
    severity: Severity
    message: str
    location: Location
    other: Location | None = None
    note: str = "the other access"
    fix: str = ""
    others: tuple[tuple[Location, Location | None], ...] = ()
    legal: bool = False
    influence: Influence = ""

    @property
    def count(self) -> int:
        """The statements that do this, or the pairs of statements."""
        return 1 + len(self.others)

    @property
    def source(self) -> SourceLine | None:
        """The line of the CUDA, C++ or Python source, where the PTX names it."""
        return self.location.source

    def __str__(self) -> str:
        lines = [f"{self.location}: {self.severity}: {self.message}", self.location.excerpt()]
        if self.other is not None:
            lines += [f"{self.other}: note: {self.note}", self.other.excerpt()]
        if self.others:
            what = "statements" if self.other is None else "pairs of statements"
            lines.append(
                f"{self.location}: note: {self.count} {what} do this, also {self._other_lines_text()}"
            )
        if self.fix:
            lines.append(f"{self.location}: fix: {self.fix}")
        return "\n".join(lines)

    def _other_lines_text(self) -> str:
        """Name the lines of the others in the PTX."""
        lines = [
            str(here.line) if there is None else f"{here.line} and {there.line}"
            for here, there in self.others
        ]
        more = f" and {len(lines) - _LISTED} more" if len(lines) > _LISTED else ""
        word = "line" if self.other is None and len(lines) == 1 else "lines"
        return f"{word} {', '.join(lines[:_LISTED])}{more}" + " of the PTX" * (self.source is not None)


class FindingError(UndefinedBehavior):
    """A finding that ends the launch; where there is something to do about it, it is shown whole."""

    def __init__(self, finding: LaunchFinding) -> None:
        super().__init__(finding.message, finding.location)
        self.finding = finding

    def render(self) -> str:
        """Return the finding with both statements and what to do."""
        return str(self.finding) if self.finding.fix else super().render()


@dataclass
class Findings:
    """The findings of a launch, in the order in which they were made."""

    mode: Mode = "error"
    found: list[LaunchFinding] = field(default_factory=list)
    known: dict[tuple[object, ...], None] = field(default_factory=dict)  # keys, in the same order
    side_tables: dict[object, object] = field(default_factory=dict)  # of observers of all waves

    def __post_init__(self) -> None:
        if self.mode not in ("error", "warn", "off"):
            raise OperandError(f"checks={self.mode!r}: expected 'error', 'warn' or 'off'")

    def collected(self) -> tuple[LaunchFinding, ...]:
        """Return the errors that have been found and not raised."""
        return tuple(finding for finding in self.found if finding.severity == "error" and self.mode == "warn")

    def add(self, key: tuple[object, ...], finding: LaunchFinding) -> None:
        """Keep the first finding of a key; raises UndefinedBehavior for an error in mode "error"."""
        if key in self.known:
            return
        self.known[key] = None
        self.found.append(finding)
        if self.mode == "error" and finding.severity == "error":
            raise FindingError(finding)
