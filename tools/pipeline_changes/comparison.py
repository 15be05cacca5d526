"""Changes of pipelines as two see them: what launches here say, and what SentryWard decides of the same text.

Both get the reduced texts (reduced.py); changes of what is left out there are not asked about. Knows verdicts
and outcomes; does not know how either is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .changes import Change, changes
from .kernels import Pipeline
from .reduced import expecting, reduced
from .sentryward import Verdict, decided
from .trial import Outcome, became

_SAYS = frozenset({"reported", "undefined", "deadlock", "warned", "refused"})
WORDS = ("both", "neither", "only SentryWard", "only warpsim", "undecided")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A change of a pipeline, None for the intact one, and what two say of it."""

    entry: str
    change: Change | None
    ours: Outcome
    theirs: Verdict

    @property
    def word(self) -> str:
        """Who says something."""
        if self.theirs.word == "undecided":
            return "undecided"
        ours, theirs = self.ours.word in _SAYS, self.theirs.word == "wrong"
        if ours == theirs:
            return "both" if ours else "neither"
        return "only warpsim" if ours else "only SentryWard"

    @property
    def what(self) -> str:
        """The change in words."""
        one = self.change
        return f"{one.line} {one.statement}: {one.what}" if one else "intact"

    @property
    def said(self) -> str:
        """What the two say."""
        return f"{self.ours.word} {self.ours.kind}".rstrip() + f" / {self.theirs.why or self.theirs.word}"


def pairs(pipeline: Pipeline, most: int) -> Iterator[Pair]:
    """Yield pairs of the intact pipeline and of changes that alter its reduced text, ``most`` of a sort."""
    intact, expected = reduced(pipeline.text), expecting(pipeline)
    asked = [one for one in changes(pipeline) if reduced(one.text).split() != intact.split()]
    for change in (None, *_spread(asked, most)):
        text = reduced(change.text) if change else intact
        ours, theirs = became(expected, text), decided(expected, text)
        yield Pair(entry=pipeline.entry, change=change, ours=ours, theirs=theirs)


def _spread(asked: Sequence[Change], most: int) -> list[Change]:
    """Return so many changes of each sort, spread from the first line to the last."""
    sorts: dict[tuple[str, str], list[Change]] = {}
    for one in asked:
        sorts.setdefault((one.statement, one.what), []).append(one)
    chosen = set[Change]()
    for part in sorts.values():
        steps = max(min(most, len(part)) - 1, 1)
        chosen |= {part[(len(part) - 1) * step // steps] for step in range(min(most, len(part)))}
    return [one for one in asked if one in chosen]


def summed(found: Sequence[Pair]) -> Iterator[str]:
    """Yield a table of the counts of each pipeline."""
    yield f"| pipeline | texts | {' | '.join(WORDS)} |"
    yield "|---|" + "---:|" * (len(WORDS) + 1)
    for entry in (*dict.fromkeys(one.entry for one in found), "all"):
        part = [one for one in found if entry in (one.entry, "all")]
        counts = Counter(one.word for one in part)
        yield f"| {entry} | {len(part)} | {' | '.join(str(counts[word] or '') for word in WORDS)} |"


def listed(found: Sequence[Pair]) -> Iterator[str]:
    """Yield a table of the pairs that only warpsim or only SentryWard reports, or that are undecided."""
    yield from ("| pipeline | change | who | what is said | lines |", "|---|---|---|---|---|")
    lines: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        if one.word not in ("both", "neither"):
            statement = f"`{one.change.statement}`: {one.change.what}" if one.change else "intact"
            key = one.entry, statement, one.word, one.said
            lines.setdefault(key, []).append(str(one.change.line) if one.change else "")
    for key, places in lines.items():
        yield f"| {' | '.join(key)} | {' '.join(places)} |"
