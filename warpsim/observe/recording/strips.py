"""What a timeline of a launch is made of: strips, and links from what ended a wait to the wait.

Moments are numbers of events in the order in which they happened, from 0; they say nothing of time. Knows
places in a launch; does not know how strips are found (timeline.py) or drawn (show/views/timelines).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ...isa.displayed import Displayed

if TYPE_CHECKING:
    from ...machine.bind.tuning import Dimensions

Kind = Literal["wait", "barrier", "matrix", "wgmma", "tensor", "copy", "store", "arrival", "start", "fence"]
WarpName = tuple["Dimensions", int]  # a CTA, and a warp in it
IN_FLIGHT: frozenset[Kind] = frozenset({"copy", "store", "wgmma", "tensor"})


@dataclass(kw_only=True, eq=False)
class Strip:
    """Something that a warp does, or has in flight, from its first to its last moment.

    ``last`` is None for what never ended: a wait in a deadlock, a copy without a wait. A strip may
    stand for ``count`` consecutive executions, at ``lines``; ``warps`` is 4 for a
    warpgroup's, whose first warp is ``warp``. ``notes`` say in words what it was about; ``executions`` are,
    of matrix instructions, those of statements by this warp: place in the module and number, from 0.
    """

    kind: Kind
    cta: Dimensions
    warp: int
    pc: int  # of the first execution's statement, which is
    statement: str
    first: int
    last: int | None = None
    warps: int = 1
    name: str = ""  # "tensor copy"
    count: int = 1
    size: int = 0  # bytes that are copied
    lines: list[int] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)  # lines that these come from, if they are known
    notes: dict[str, None] = field(default_factory=dict)  # in the order in which they were made
    executions: list[tuple[int, int]] = field(default_factory=list)
    flying: int = 0  # executions that have not completed

    @property
    def in_flight(self) -> bool:
        """Whether it goes on while its warp does something else."""
        return self.kind in IN_FLIGHT


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """What ended a wait: something that a strip did at a moment."""

    source: Strip
    target: Strip
    moment: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline(Displayed):
    """What some warps of a launch did, in order: ``warps`` with the moments at which they exited, if so."""

    strips: tuple[Strip, ...]
    links: tuple[Link, ...]
    warps: Mapping[WarpName, int | None]
    moments: int
    schedule: str = ""  # that the launch had

    def __repr__(self) -> str:
        return f"<timeline of {len(self.warps)} warps: {len(self.strips)} events in {self.moments} moments>"

    def of(self, cta: Dimensions, warp: int) -> list[Strip]:
        """Return the strips of a warp, in the order of their first moments."""
        own = (strip for strip in self.strips if strip.cta == cta and strip.warp == warp)
        return sorted(own, key=lambda strip: strip.first)
