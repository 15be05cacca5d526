"""Strips of a timeline while they are made: which are selected, when they begin and end, what links them.

Knows moments and limits; what the events are is timeline.py's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast
from weakref import WeakKeyDictionary

import numpy as np

from ...base.errors import OperandError
from ...isa.warps import WARP
from ...machine.run.convergence import warps_of as some_of_each
from ...machine.run.events import Observer
from ...machine.state.lanes import Lanes
from .selection import EVERYTHING, Selection
from .strips import Kind, Link, Strip, Timeline, WarpName
from .timeline_state import State

if TYPE_CHECKING:
    from ...machine.run.wave import Wave

MOST_STRIPS = 4000

News = ParamSpec("News")


def unless_full(hear: Callable[Concatenate[Any, News], None]) -> Callable[Concatenate[Any, News], None]:
    """Return an observer method that does nothing once the strips are full."""

    @wraps(hear)
    def heard(self: Any, /, *news: News.args, **named: News.kwargs) -> None:
        if not self.is_full:
            hear(self, *news, **named)

    return cast("Callable[Concatenate[Any, News], None]", heard)


class StripKeeper(Observer):
    """The strips of selected warps of a launch; at most ``limit``.

    More raise OperandError; without ``insisted`` there is no timeline then.
    """

    def __init__(
        self, selection: Selection = EVERYTHING, limit: int = MOST_STRIPS, insisted: bool = True
    ) -> None:
        self.selection = selection
        self.limit = limit
        self.insisted = insisted
        self.is_full = False  # there were more
        self.moments = 0
        self._strips: list[Strip] = []
        self._links: dict[tuple[Strip, Strip], int | None] = {}
        self._lines: dict[int, int] = {}
        self._sources: dict[int, str | None] = {}
        self._warps: dict[WarpName, int | None] = {}
        self._states: WeakKeyDictionary[Wave, State] = WeakKeyDictionary()

    def timeline(self) -> Timeline:
        """Return what has happened so far."""
        warps = dict(sorted(self._warps.items(), key=lambda entry: (entry[0][0][::-1], entry[0][1])))
        links = (_made(source, target, moment) for (source, target), moment in self._links.items())
        return Timeline(strips=tuple(self._strips), links=tuple(links), warps=warps, moments=self.moments)

    # --- strips ---

    def _state(self, wave: Wave) -> State:
        state = self._states.get(wave)
        if state is None:
            state = self._states[wave] = State(wave, self.selection)
            self._warps |= dict.fromkeys(state.shown())
        return state

    def _moment(self, wave: Wave, what: str) -> int:
        """Return the moment of an event; warps share it if they are in the same statement."""
        known = self._state(wave).of_statement(wave.scheduler.statements)
        if what not in known:
            known[what] = self.moments
            self.moments += 1
        return known[what]

    def _add(
        self, wave: Wave, warp: int, pc: int, kind: Kind, *, name: str = "", warps: int = 1, run: str = ""
    ) -> Strip | None:
        """Return a new strip, or the latest one of this warp if it is of the same ``run``; None if not
        selected.
        """
        state = self._state(wave)
        line = self._line(wave, pc)
        if self.is_full or not state.takes(wave, warp, pc, line, warps):
            return None
        latest = state.runs.get(warp)
        if run and latest is not None and latest[0] == run:
            strip = latest[1]
            strip.count += 1
        else:
            if len(self._strips) >= self.limit and not self.insisted:
                self.is_full = True
                return None
            strip = self._new(wave, warp, pc, kind, name, warps)
        state.runs[warp] = (run, strip)
        if line not in strip.lines:
            strip.lines.append(line)
            if (source := self._sources[pc]) is not None and source not in strip.sources:
                strip.sources.append(source)
        return strip

    def _line(self, wave: Wave, pc: int) -> int:
        """Return the line of a statement, which is found by reading the statement again."""
        if pc not in self._lines:
            place = wave.code[pc].statement.location()
            self._lines[pc] = place.line
            self._sources[pc] = None if place.source is None else str(place.source)
        return self._lines[pc]

    def _new(self, wave: Wave, warp: int, pc: int, kind: Kind, name: str, warps: int) -> Strip:
        record = wave.code[pc]
        if len(self._strips) >= self.limit:
            raise OperandError(
                f"the timeline has more than {self.limit:,} events: select fewer, by cta=, warp=, line= or "
                f"step=",
                record.statement.location(),
            )
        cta, own = self._state(wave).names[warp]
        moment = self._moment(wave, kind)
        text = str(record.statement)
        strip = Strip(
            kind=kind, cta=cta, warp=own, warps=warps, name=name, pc=pc, statement=text, first=moment
        )
        self._strips.append(strip)
        return strip

    def _mark(self, wave: Wave, warps: Iterable[int], pc: int, kind: Kind, run: str = "") -> dict[int, Strip]:
        """Return strips of what warps do at a single moment, by warp."""
        found = {warp: self._add(wave, warp, pc, kind, run=run) for warp in warps}
        made = {warp: strip for warp, strip in found.items() if strip is not None}
        for strip in made.values():
            strip.last = strip.first
        return made

    def _link(self, source: Strip | None, target: Strip | None, moment: int | None = None) -> None:
        """Link a strip to the wait that it ends at a moment; None where that is its own end."""
        if source is not None and target is not None and source is not target:
            self._links.setdefault((source, target), moment)

    # --- waits ---

    def _wait(self, wave: Wave, pc: int, lanes: Lanes, kind: Kind) -> None:
        state = self._state(wave)
        for warp in warps_of(lanes):
            own = np.zeros_like(lanes.mask)
            own[WARP * warp : WARP * (warp + 1)] = lanes.mask[WARP * warp : WARP * (warp + 1)]
            if (warp, pc) in state.waits:
                strip, mask = state.waits[warp, pc]
                state.waits[warp, pc] = strip, mask | own
                continue
            new = self._add(wave, warp, pc, kind)
            if new is not None:
                state.waits[warp, pc] = new, own
                state.came[warp] = new

    def _end(self, wave: Wave, lanes: Lanes, pc: int | None = None, kind: Kind | None = None) -> list[Strip]:
        """End the waits of lanes at a statement, or of a kind; return the strips that are over."""
        state, over = self._state(wave), []
        for (warp, place), (strip, mask) in list(state.waits.items()):
            if place != (place if pc is None else pc) or strip.kind != (kind or strip.kind):
                continue
            left = mask & ~lanes.mask
            state.waits[warp, place] = strip, left
            if not left.any():
                del state.waits[warp, place]
                strip.last = self._moment(wave, "end")
                over.append(strip)
        return over


def _made(source: Strip, target: Strip, moment: int | None) -> Link:
    if moment is None:
        moment = source.first if source.last is None else source.last
    if target.last is not None:  # of copies in one strip, some may go on
        moment = min(moment, target.last)
    return Link(source=source, target=target, moment=moment)


def warps_of(lanes: Lanes) -> list[int]:
    """Return the warps of the wave that some of the lanes are in."""
    found: list[int] = some_of_each(lanes.mask).tolist()
    return found
