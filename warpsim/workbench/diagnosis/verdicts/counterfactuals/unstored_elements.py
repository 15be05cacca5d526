"""Elements of an output that no statement stores, and elements that are stored more than once instead.

The stores of a launch are followed: which lane stores each element first, and which last. Knows stores; does
not know what should be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .....base.errors import Location
from .....isa.warps import WARP
from .....machine.host.arguments import buffer_of
from .....machine.run.events import Observer, helper
from .....machine.run.pending import Pending
from .....machine.run.wave import Wave
from .....machine.state.memory_access import MemoryAccess
from .....machine.state.spaces import DEVICE_BASE, Allocation
from .....ptx.symbols import shown_variable
from ...origins.kept_products import places_of
from ..launch_causes import Cause
from ..output_errors import OutputError
from ..tried_repairs import Trial

Array = npt.NDArray[Any]
_EVIDENCE = "the stores of the launch were followed, element by element"
_FIX = (
    "let the tiles of CTAs, warps and lanes cover the output once: check the grid, the numbers of tiles, the "
    "rows and strides of the stores, and their guards"
)


class Stores(Observer):
    """An observer of what is stored to one array: how often each element is, and by which lanes.

    ``first`` and ``last`` ``(elements, 6)`` are x, y and z of the CTA, warp, lane and statement; -1 of none.
    """

    def __init__(self, elements: int, size: int, owns: Callable[[Allocation], bool]) -> None:
        self.count = np.zeros(elements, np.int32)
        self.first, self.last = (np.full((elements, 6), -1, np.int32) for _ in range(2))
        self._size, self._owns = size, owns

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Note the elements that a statement stores."""
        if access.memory is wave.memories.device.data:
            self._note(wave, access)

    atomic = store

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Note the elements that an asynchronous operation has written."""
        for stretches in pending.writes:
            for first, past in stretches.ranges.tolist() if stretches.space == "global" else ():
                elements = self._elements(wave, np.arange(first, past, self._size))
                self.count[elements[elements >= 0]] += 1

    @helper
    def _note(self, wave: Wave, access: MemoryAccess) -> None:
        parts = np.arange(0, access.size, min(self._size, access.size))
        elements = self._elements(wave, (access.offsets[:, None] + parts).ravel())
        lanes = np.repeat(access.lane_of, len(parts))[elements >= 0]
        elements = elements[elements >= 0]
        if not elements.size:
            return
        places = places_of(wave, lanes // WARP)
        pcs = np.full(len(lanes), access.path.pc)
        notes = np.column_stack([places, lanes % WARP, pcs]).astype(np.int32)
        fresh = self.count[elements] == 0
        self.first[elements[fresh][::-1]] = notes[fresh][::-1]  # of equal elements the first stays
        self.last[elements] = notes
        np.add.at(self.count, elements, 1)

    @helper
    def _elements(self, wave: Wave, offsets: Array) -> Array:
        """Return the elements of the array at offsets of the device's memory; -1 for those of others."""
        if not offsets.size:
            return offsets
        allocation = wave.memories.device.allocation_at(DEVICE_BASE + int(offsets[0]))
        elements = (offsets - (allocation.address - DEVICE_BASE)) // self._size
        return np.where(self._owns(allocation) & (elements >= 0) & (elements < len(self.count)), elements, -1)


def unstored_elements(trial: Trial, errors: Sequence[OutputError]) -> list[Cause]:
    """Return wrong outputs of which some of the wrong elements are never stored."""
    return [cause for error in errors if (cause := _unstored_elements(trial, error)) is not None]


def _unstored_elements(trial: Trial, error: OutputError) -> Cause | None:
    owns = _owner(trial.launch.args[error.argument], error.name)
    stores = Stores(error.wrong.size, error.given.dtype.itemsize, owns)
    if trial.launch.attempt(checks="off", observers=(stores,)).error is not None:
        return None
    missing = (stores.count == 0).reshape(error.wrong.shape)
    wrong = missing & error.wrong
    if not wrong.any() or not stores.count.any():
        return None
    missing = missing if 2 * wrong.sum() > missing.sum() else wrong  # others may be meant to stay
    code = trial.launch.kernel._entry.code
    pcs = sorted({int(pc) for pc in stores.last[stores.count > 0, 5] if pc >= 0})
    places = [code[pc].statement.location() for pc in pcs]
    left = replace(error, wrong=missing)
    where = f": {left.pattern}" if left.pattern else f", the first at {list(left.first)}"
    twice = "".join(_twice(stores, error, places, pcs))
    return Cause(
        kind="unwritten",
        message=f"{left.count:,} of {error.wrong.size:,} elements of {error.name} are never stored{where}"
        f"{twice}",
        location=places[0] if places else None,
        evidence=_EVIDENCE,
        fix=_FIX,
        also=tuple(("another store", place) for place in places[1:]),
    )


def _owner(argument: Any, name: str) -> Callable[[Allocation], bool]:
    """Return whether an allocation is that of an argument: a buffer, or an array, which has its name."""
    buffer = buffer_of(argument)
    if buffer is not None:
        return lambda allocation: allocation is buffer.allocation
    return lambda allocation: shown_variable(allocation.name) == name


def _twice(
    stores: Stores, error: OutputError, places: Sequence[Location], pcs: Sequence[int]
) -> Iterator[str]:
    """Yield which elements are stored more than once, and the two stores of the first."""
    several = (stores.count > 1).reshape(error.wrong.shape)
    if not several.any():
        return
    found = replace(error, wrong=several)
    at = int(np.ravel_multi_index(found.first, several.shape))
    by = " and by ".join(
        _storing(row, places, pcs) for row in (stores.first[at], stores.last[at]) if row[0] >= 0
    )
    yield f"; {found.count:,} are stored more than once, as {list(found.first)}{' by ' * bool(by)}{by}"


def _storing(row: Array, places: Sequence[Location], pcs: Sequence[int]) -> str:
    *cta, warp, lane, pc = row.tolist()
    return f"CTA ({', '.join(map(str, cta))}), warp {warp}, lane {lane} in line {places[pcs.index(pc)].line}"
