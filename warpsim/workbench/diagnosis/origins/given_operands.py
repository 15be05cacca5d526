"""What each matrix statement was given in a launch: the index of every byte of its operands.

Statements that were given the same share one array of indices. Knows what was seen; does not run anything,
and does not know what fragments mean.
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
from ....observe.algebra.keys.finite_fields import Keys
from .byte_keys import Bytes, Indices
from .operand_bytes import SourceBytes

Numbers = npt.NDArray[np.intp]
_SAMPLED = 8  # places of each axis but the last by which arrays are looked up
_LOOKED_AT = 8  # arrays with the same in these places


@dataclass(frozen=True, kw_only=True)
class Event:
    """One statement executed by some warps, ``number`` in the order of execution.

    ``tiles`` are operands that are given as matrices: in shared memory, or fragments of wmma. ``memory`` are
    the bytes of shared memory where they are kept, ``words`` the descriptors.
    """

    pc: int
    record: Record
    instruction: Instruction
    selector: int
    scale_selectors: ScaleSelectors
    ignores_c: bool
    places: Indices
    seen: dict[str, SourceBytes]
    tiles: frozenset[str]
    number: int
    memory: Bytes | None = None
    words: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The bytes of shared memory in execution ``event`` of a statement, and its descriptors."""

    event: int
    memory: Bytes
    words: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What one matrix statement was given in all its executions.

    ``places`` (n, 5): x, y, z of the CTA, its warp, and the how many-th time; ``bytes`` by operand
    (n, lanes, registers, bytes of a register): indices as ``ByteKeys.indices`` has them. Of operands among
    ``tiles``, which lie in shared memory, (n, rows along m or n, k, bytes of an element). ``computed`` has
    the keys of operands of which something is computed. ``times (n,)`` order the executions of all
    statements; ``ignores_c (n,)`` marks those with scale-d false.
    """

    record: Record
    instruction: Instruction
    selector: int
    scale_selectors: ScaleSelectors
    places: Indices
    bytes: dict[str, Bytes]
    computed: dict[str, Keys]
    times: Indices
    ignores_c: npt.NDArray[np.bool_]
    tiles: frozenset[str] = frozenset()
    snapshots: tuple[Snapshot, ...] = ()

    @property
    def location(self) -> Location:
        """The place of the statement in the text."""
        return self.record.statement.location()


@dataclass
class Shared:
    """Arrays that are kept, each once."""

    given: dict[object, list[Any]] = field(default_factory=dict)
    kept: dict[int, Any] = field(default_factory=dict)

    def own(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array to keep: that of before, where it is equal."""
        if id(array) in self.kept:
            return array
        sample = array[:: max(len(array) // _SAMPLED, 1), ::_SAMPLED]
        alike = self.given.setdefault((array.shape, sample.tobytes()), [])
        for known in alike[-_LOOKED_AT:]:
            if np.array_equal(known, array):
                return np.asarray(known)
        alike.append(array)
        self.kept[id(array)] = array
        return array


# --- statement by statement ----------------------------------------------------------------------------


@dataclass
class _Joined:
    """Arrays of several executions put together, ``known`` by the arrays that they are made of."""

    known: dict[object, Any] = field(default_factory=dict)
    places: list[Indices] = field(default_factory=list)

    def arrays(self, parts: Sequence[npt.NDArray[Any]], order: Numbers) -> npt.NDArray[Any]:
        """Return arrays one behind another in an order; the same array for the same arrays."""
        key = tuple(map(id, parts)), id(order)
        if key not in self.known:
            whole = np.concatenate(parts)
            self.known[key] = whole if bool((order[1:] > order[:-1]).all()) else whole[order]
        found: npt.NDArray[Any] = self.known[key]
        return found

    def ordered(self, events: Sequence[Event]) -> tuple[Indices, Numbers]:
        """Return places by CTA, warp and count of executions of the warp, and their order."""
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


def given_of(events: Sequence[Event]) -> tuple[Given, ...]:
    """Return what each matrix statement was given, in the order of the text."""
    table: dict[int, list[Event]] = {}
    for event in events:
        table.setdefault(event.pc, []).append(event)
    joined = _Joined()
    return tuple(given for pc in sorted(table) for given in _of_statement(joined, table[pc]))


def _of_statement(joined: _Joined, events: Sequence[Event]) -> Iterator[Given]:
    """Yield what one statement was given, for each instruction that it was: a descriptor may state others."""
    places, order = joined.ordered(events)
    counts = [len(event.places) for event in events]
    number = {form: n for n, form in enumerate(dict.fromkeys(event.instruction for event in events))}
    which, times, ignores = (
        np.repeat(values, counts)[order]
        for values in (
            [number[event.instruction] for event in events],
            [event.number for event in events],
            [event.ignores_c for event in events],
        )
    )
    for form, own in number.items():
        chosen = which == own
        settings = places[chosen], times[chosen], ignores[chosen]
        yield _of_form(joined, [event for event in events if event.instruction == form], settings)


def _of_form(joined: _Joined, events: Sequence[Event], settings: tuple[Any, Any, Any]) -> Given:
    """Return what a statement was given as one instruction; ``settings`` are places, times and ignores_c."""
    first, (_, order) = events[0], joined.ordered(events)
    seen = {
        role: [event.seen[role] for event in events]
        for role in first.seen
        if all(role in event.seen for event in events)
    }
    return Given(
        record=first.record,
        instruction=first.instruction,
        selector=first.selector,
        scale_selectors=first.scale_selectors,
        places=joined.same_places(settings[0]),
        bytes={role: joined.arrays([part.bytes for part in parts], order) for role, parts in seen.items()},
        computed={
            role: _keys(parts)[order]
            for role, parts in seen.items()
            if any(part.keys is not None for part in parts)
        },
        times=settings[1],
        ignores_c=settings[2],
        tiles=first.tiles,
        snapshots=tuple(_snapshots(events, order)),
    )


def _keys(parts: Sequence[SourceBytes]) -> Keys:
    return np.concatenate(
        [np.zeros(part.bytes.shape, np.uint64) if part.keys is None else part.keys for part in parts]
    )


def _snapshots(events: Sequence[Event], order: Numbers) -> Iterator[Snapshot]:
    """Yield what was kept of the shared memory of executions."""
    which = np.repeat(np.arange(len(events)), [len(event.places) for event in events])[order]
    for place, number in enumerate(which.tolist()):
        memory = events[number].memory
        if memory is not None:
            yield Snapshot(event=place, memory=memory, words=events[number].words)


def _ordered(events: Sequence[Event]) -> tuple[Indices, Numbers]:
    places = np.concatenate([event.places for event in events])
    order = np.lexsort(places.T[::-1])
    sorted_places = places[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (sorted_places[1:] != sorted_places[:-1]).any(axis=1)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    return np.column_stack([sorted_places, np.arange(len(order)) - first]), order
