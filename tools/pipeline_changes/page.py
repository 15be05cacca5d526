"""The outcomes as a page: sums by pipeline, then a line for every sort of statement, change and outcome.

Knows rows of outcomes and Markdown; does not know launches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .changes import Change
from .harmless import harmless
from .kernels import PIPELINES
from .trial import Outcome

WORDS = ("reported", "undefined", "deadlock", "changed", "warned", "refused", "missed")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One change of a pipeline and what became of it."""

    entry: str
    change: Change
    outcome: Outcome

    @property
    def why(self) -> str:
        """Why it does no harm, if it was missed."""
        return harmless(self.entry, self.change) if self.outcome.word == "missed" else ""

    @property
    def line(self) -> str:
        """For those who watch."""
        one, found = self.change, self.outcome
        word = "harmless" if self.why else found.word
        return f"{word:9} {self.entry} {one.line} {one.statement}: {one.what}  {found.kind or self.why}"


def summed(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table of outcomes by pipeline; a change counts as missed unless it is known to be harmless."""
    yield f"| pipeline | changes | {' | '.join(WORDS[:-1])} | harmless | missed |"
    yield "|---|" + "---:|" * (len(WORDS) + 2)
    named = [one.entry for one in PIPELINES if any(row.entry == one.entry for row in rows)]
    for entry, part in (*((one, [row for row in rows if row.entry == one]) for one in named), ("all", rows)):
        counts = Counter("harmless" if row.why else row.outcome.word for row in part)
        columns = " | ".join(str(counts[word] or "") for word in (*WORDS[:-1], "harmless", "missed"))
        yield f"| {entry} | {len(part)} | {columns} |"


def listed(entry: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the heading and the table of a pipeline."""
    about = next(one.about for one in PIPELINES if one.entry == entry)
    yield from (f"## {entry}", "", f"{about[0].upper()}{about[1:]}.", "")
    yield from ("| statement | change | outcome | what is said | lines |", "|---|---|---|---|---|")
    lines: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        word = "harmless" if row.why else row.outcome.word
        key = (row.change.statement, row.change.what, word, row.outcome.kind or row.why)
        lines.setdefault(key, []).append(row.change.line)
    for (statement, what, word, said), places in sorted(lines.items(), key=lambda one: one[1][0]):
        yield f"| `{statement}` | {what} | {word} | {said} | {' '.join(map(str, places))} |"
    yield ""
