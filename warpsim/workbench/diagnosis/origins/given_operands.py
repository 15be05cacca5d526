"""What each matrix statement was given in runs on tags: the index of every byte of its operands.

Statements that were given the same share one array of indices. Knows what the runs saw; does not run
anything, and does not know what fragments mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import Location
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleSelectors
from ....machine.run.wave import Record
from .tagged_observer import Event, Watch
from .tags import Indices, Tagging

Numbers = npt.NDArray[np.intp]
Words = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The shared memory ``(runs, bytes)`` of execution ``event`` of a statement, and its descriptors."""

    event: int
    seen: npt.NDArray[np.uint8]
    words: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What one matrix statement was given in all its executions.

    ``places`` (n, 5): x, y, z of the CTA, its warp, and the how many-th time; ``bytes`` by operand
    (n, lanes, registers, bytes of a register): indices as ``Tagging.decoded`` has them. Of operands among
    ``tiles``, which lie in shared memory, (n, rows along m or n, k, bytes of an element). ``times (n,)``
    order the executions of all statements; ``ignores_c (n,)`` marks those with scale-d false.
    """

    record: Record
    instruction: Instruction
    selector: int
    scale_selectors: ScaleSelectors
    places: npt.NDArray[np.int64]
    bytes: dict[str, Words]
    times: Indices
    ignores_c: npt.NDArray[np.bool_]
    tiles: frozenset[str] = frozenset()
    snapshots: tuple[Snapshot, ...] = ()

    @property
    def location(self) -> Location:
        """The place of the statement in the text."""
        return self.record.statement.location()


@dataclass
class _Decoding:
    """The decoding of what runs saw, all of them or the first; ``certain`` turns false where the first are
    too few.

    What has been found is ``known`` by the arrays that it was found from, which events share.
    """

    tagging: Tagging
    certain: bool = True
    known: dict[object, Any] = field(default_factory=dict)
    places: list[Indices] = field(default_factory=list)

    def words(self, parts: Sequence[Sequence[Words]], orders: Sequence[Numbers]) -> Words:
        """Return ``(..., bytes)``: the index of each byte of words ``(...)``, given part by part for each
        run, and in which order they count; the same array for the same words.
        """
        key = tuple(tuple(map(id, run)) for run in parts), tuple(map(id, orders))
        if key not in self.known:
            self.known[key] = self.decoded([*map(_joined, parts, orders)])
        found: Words = self.known[key]
        return found

    def ordered(self, events: Sequence[Event]) -> tuple[Indices, Numbers]:
        """Return what ``_ordered`` does."""
        key = tuple(id(event.places) for event in events)
        if key not in self.known:
            self.known[key] = _ordered(events)
        found: tuple[Indices, Numbers] = self.known[key]
        return found

    def same_places(self, places: Indices) -> Indices:
        """Return places, the same array for equal places."""
        for known in self.places:
            if np.array_equal(known, places):
                return known
        self.places.append(places)
        return places

    def decoded(self, seen: Sequence[Words]) -> Words:
        """Return ``(..., bytes)``: the index of each byte of words ``(...)``, given for each run."""
        if len(seen) == self.tagging.runs:
            return self.tagging.decoded(np.stack(seen)[..., None].view(np.uint8))
        found = self.tagging.of_neighbours(seen)
        self.certain &= found is not None
        return np.zeros(0, np.int64) if found is None else found


def given_of(tagging: Tagging, runs: Sequence[Watch]) -> list[Given] | None:
    """Return what each matrix statement was given, if it was executed alike in all ``runs``; None where
    they are the first runs only, and more are needed.
    """
    decoding, found = _Decoding(tagging), list[Given]()
    tables = [_by_statement(run.events) for run in runs]
    for pc, events in sorted(tables[0].items()):
        found += _of_statement(decoding, [events, *(table.get(pc, []) for table in tables[1:])])
        if not decoding.certain:
            return None
    return found


def _of_statement(decoding: _Decoding, runs: Sequence[Sequence[Event]]) -> Iterator[Given]:
    """Yield what one statement was given, for each instruction that it was."""
    events, *others = runs
    places, order = decoding.ordered(events)
    if any(not run or not np.array_equal(decoding.ordered(run)[0], places) for run in others):
        return
    counts = [len(event.places) for event in events]
    number = {form: n for n, form in enumerate(dict.fromkeys(event.instruction for event in events))}
    which = np.repeat([number[event.instruction] for event in events], counts)[order]
    times = np.repeat([event.number for event in events], counts)[order]
    ignores = np.repeat([not event.inputs.scale_d for event in events], counts)[order]
    for form, own in number.items():
        chosen = which == own
        alike = [[event for event in table if event.instruction == form] for table in runs]
        if all(map(len, alike)):
            yield _of_form(decoding, alike, (places[chosen], times[chosen], ignores[chosen]))


def _of_form(decoding: _Decoding, runs: Sequence[Sequence[Event]], settings: tuple[Any, Any, Any]) -> Given:
    """Return what a statement was given in its executions as one instruction: a descriptor may state others.

    ``settings`` are places, times and ignores_c.
    """
    first, every = runs[0][0], [event for events in runs for event in events]
    orders = [decoding.ordered(events)[1] for events in runs]
    roles = [
        role for role in first.inputs.registers if all(role in event.inputs.registers for event in every)
    ]
    is_tensor = first.record.statement.opcode == "tcgen05"
    return Given(
        record=first.record,
        instruction=first.instruction,
        selector=first.inputs.selector,
        scale_selectors=first.inputs.scale_selectors,
        places=decoding.same_places(settings[0]),
        bytes={role: decoding.words(_parts(runs, role), orders) for role in roles},
        times=settings[1],
        ignores_c=settings[2],
        tiles=first.tiles,
        snapshots=tuple(_snapshots(decoding, runs, orders)) if is_tensor else (),
    )


def _snapshots(
    decoding: _Decoding, runs: Sequence[Sequence[Event]], orders: Sequence[Numbers]
) -> Iterator[Snapshot]:
    """Yield what was kept of the shared memory of executions, in all runs."""
    for place, number in enumerate(orders[0].tolist()):
        event = runs[0][number]
        alike = [events[int(order[place])] for events, order in zip(runs, orders, strict=True)]
        seen = [other.inputs.shared for other in alike]
        words = {role: word for role in "ab" if (word := event.inputs.descriptor(role)) is not None}
        kept = [memory for memory in seen if memory is not None]
        if len(kept) == len(runs):
            decoding.decoded(kept)  # to see whether the runs are enough for it
            own = {role: int(word[0]) for role, word in words.items()}
            yield Snapshot(event=place, seen=np.stack(kept), words=own)


def _by_statement(events: Sequence[Event]) -> dict[int, list[Event]]:
    table: dict[int, list[Event]] = {}
    for event in events:
        table.setdefault(event.pc, []).append(event)
    return table


def _ordered(events: Sequence[Event]) -> tuple[npt.NDArray[np.int64], Numbers]:
    """Return places by CTA, warp and count of executions of the warp, and their order."""
    places = np.concatenate([event.places for event in events])
    order = np.lexsort(places.T[::-1])
    sorted_places = places[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (sorted_places[1:] != sorted_places[:-1]).any(axis=1)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    return np.column_stack([sorted_places, np.arange(len(order)) - first]), order


def _parts(runs: Sequence[Sequence[Event]], role: str) -> list[list[Words]]:
    """Return ``(executions, 32, registers)`` of one operand in each event of each run."""
    return [[event.inputs.registers[role] for event in events] for events in runs]


def _joined(parts: Sequence[Words], order: Numbers) -> Words:
    """Return ``(n, 32, registers)`` of one operand in the order of its executions."""
    words = np.concatenate(parts)
    return words if _is_counted(order) else words[order]


def _is_counted(order: Numbers) -> bool:
    """Return whether an order changes nothing."""
    return bool((order[1:] > order[:-1]).all())
