"""How often each situation occurred, and in how many of them each unit was wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .bins import BINS
from .events import Event


@dataclass(kw_only=True)
class Tally:
    """What one unit got wrong: clocks in all and in each bin, of the ``seen`` ones; and where first."""

    wrong: int = 0
    first: str = ""
    bins: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)


@dataclass(kw_only=True)
class Coverage:
    """The clocks counted, the clocks in each bin, and a tally of every unit; the sound one comes first.

    A faulty unit that was wrong ``enough`` times is not looked at any more.
    """

    units: Sequence[str]
    enough: int
    clocks: int = 0
    bins: Counter[str] = field(default_factory=Counter)
    tallies: list[Tally] = field(init=False)

    def __post_init__(self) -> None:
        self.tallies = [Tally() for _ in self.units]

    def active(self, place: int) -> bool:
        """Return whether a unit is still looked at; the sound one always is."""
        return place == 0 or self.tallies[place].wrong < self.enough

    def sample(self, event: Event, results: Sequence[int], expected: int) -> None:
        """Count one clock: its bins, and which of the units' results are not what was expected."""
        hit = [place.name for place in BINS if place.test(event)]
        self.clocks += 1
        self.bins.update(hit)
        for place, (tally, result) in enumerate(zip(self.tallies, results, strict=True)):
            if self.active(place):
                tally.seen.update(hit)
                if result != expected:
                    tally.first = tally.first or f"{event.dot.label}: {result:#x}, not {expected:#x}"
                    tally.wrong += 1
                    tally.bins.update(hit)

    def as_json(self) -> dict[str, Any]:
        """Plain data, for the file that leaves the simulator."""
        return vars(self) | {"tallies": [vars(tally) for tally in self.tallies]}


def from_json(data: dict[str, Any]) -> Coverage:
    """Return the coverage that as_json made plain."""
    tallies = data.pop("tallies")
    coverage = Coverage(**(data | {"bins": Counter(data["bins"])}))
    for tally in tallies:
        tally |= {"bins": Counter(tally["bins"]), "seen": Counter(tally["seen"])}
    coverage.tallies = [Tally(**tally) for tally in tallies]
    return coverage


def telling(tally: Tally) -> list[tuple[float, str, int, int]]:
    """Return the bins that tell a fault best, best first: score, name, clocks wrong and clocks in the bin.

    The score is 1 where a unit is wrong in all clocks of the bin and in no other (the F measure of the bin
    as a sign of the fault).
    """
    scores = [
        (2 * wrong / (tally.seen[name] + tally.wrong), name, wrong, tally.seen[name])
        for name, wrong in tally.bins.items()
    ]
    return sorted(scores, key=lambda score: (-score[0], score[1]))
