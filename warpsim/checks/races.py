"""Warps that meet in shared memory without a barrier between them.

Knows which warp last wrote and which warps have read each byte since the last ``bar.sync``, and which bytes
were read by a wgmma that has been waited for since. Does not know lanes (those of one warp run in step here,
where PTX asks for bar.warp.sync), nor wgmma in flight (see hazards.py), nor whether a bulk copy overwrites a
tile too early. PTX ISA 9.1, sections 8 "Memory Consistency Model" and 9.7.13.1 "bar, barrier".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP
from ..machine.run.events import Observer
from ..machine.state.lanes import DivergentPath
from ..machine.state.memory_access import MemoryAccess
from .hazard import Hazard, Place, resolved

if TYPE_CHECKING:
    from ..machine.opcodes.matrix.wgmma_groups import Verb
    from ..machine.run.events import Groups, Share, WgmmaStatement
    from ..machine.run.wave import Wave

_NO_WARP = -1

Ranges = npt.NDArray[np.int64]  # (n, 2): the first byte, the byte after the last


class WarpgroupRaces(Observer):
    """An observer of the wave of one warpgroup, which checks every access just before it takes effect.

    Two warps, at least one of which writes, are an error. Where one of them executes a wgmma it is a warning:
    the memory model orders the stores of one warp with the wgmma of another by a barrier only, and a wait is
    for the warp's own wgmma, but the steps that section 9.7.15 lists for wgmma name no barrier. ``found`` is
    called with hazards, and may raise.
    """

    def __init__(self, found: Callable[[Sequence[Hazard]], None], shared_bytes: int) -> None:
        self.found = found
        self._writer: npt.NDArray[np.int8] = np.full(shared_bytes, _NO_WARP, np.int8)
        self._readers: npt.NDArray[np.uint8] = np.zeros(shared_bytes, np.uint8)  # a bit for each warp
        self._written: npt.NDArray[np.int32] = np.zeros(shared_bytes, np.int32)  # by index of places
        self._read: npt.NDArray[np.int32] = np.zeros(shared_bytes, np.int32)
        self._tiles: npt.NDArray[np.int32] = np.zeros(shared_bytes, np.int32)  # 1 + place, of completed wgmma
        self._places: list[Place] = []
        self._uncommitted: list[tuple[Ranges, Place]] = []
        self._groups: list[list[tuple[Ranges, Place]]] = []

    # --- events ---

    def barrier(self, wave: Wave, number: int, ctas: Any, path: DivergentPath | None) -> None:
        """Order what came before with what follows; a barrier of some warps counts as one of all."""
        self._writer.fill(_NO_WARP)
        self._readers.fill(0)
        self._tiles.fill(0)
        self._places.clear()

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Check words that are about to be loaded."""
        if access.memory is wave.memories.shared:
            index, warps, place = self._accessed(wave, access)
            self._meet(index, warps, "read", place)
            np.bitwise_or.at(self._readers, index, np.left_shift(1, warps).astype(np.uint8))
            self._read[index] = self._number(place)

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Check words that are about to be stored."""
        if access.memory is wave.memories.shared:
            index, warps, place = self._accessed(wave, access)
            self._meet(index, warps, "written", place)
            self._refill(index, warps, place)
            self._overwrite(index, warps, place)
            self._writer[index] = warps
            self._written[index] = self._number(place)

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Check the tiles that a wgmma, which all warps execute, is about to read."""
        place = wave.code[path.pc].statement.location
        self._uncommitted.append((share.ranges, place))
        for start, stop in share.ranges.tolist():
            written = self._writer[start:stop] != _NO_WARP
            if written.any():
                byte = start + int(np.argmax(written))
                earlier = self._places[self._written[byte]]
                before = f"written by warp {self._writer[byte]}"
                self._report(byte, "read by the wgmma of other warps", before, earlier, place, is_error=False)
                return

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """Make a group of the wgmma, or note that every warp has waited for its own of all but the latest."""
        if verb == "commit":
            self._groups.append(self._uncommitted)
            self._uncommitted = []
        elif verb == "wait":
            complete = max(len(self._groups) - most, 0)
            for ranges, place in (read for group in self._groups[:complete] for read in group):
                number = self._number(place)
                for start, stop in ranges.tolist():
                    self._tiles[start:stop] = 1 + number
            del self._groups[:complete]

    # --- rules ---

    @staticmethod
    def _accessed(wave: Wave, access: MemoryAccess) -> tuple[Any, Any, Place]:
        """Return every byte of an access, the warp that touches it, and the place."""
        warps = np.repeat(access.lane_of // WARP, access.size)
        return access.cells.ravel(), warps, wave.code[access.path.pc].statement.location

    def _overwrite(self, index: Any, warps: Any, place: Place) -> None:
        """Report bytes that another warp has read."""
        own = np.left_shift(1, warps).astype(np.uint8)
        others = (self._readers[index] & ~own) != 0
        if others.any():
            first = int(np.argmax(others))
            readers = int(self._readers[index[first]] & ~own[first])
            reader = (readers & -readers).bit_length() - 1
            earlier = self._places[self._read[index[first]]]
            now, before = f"written by warp {warps[first]}", f"read by warp {reader}"
            self._report(int(index[first]), now, before, earlier, place)

    def _refill(self, index: Any, warps: Any, place: Place) -> None:
        """Report bytes that the wgmma of other warps may still read."""
        busy = self._tiles[index] > 0
        if busy.any():
            first = int(np.argmax(busy))
            byte = int(index[first])
            earlier = self._places[self._tiles[byte] - 1]
            now, before = f"written by warp {warps[first]}", "read by the wgmma of other warps"
            self._report(byte, now, before, earlier, place, is_error=False)

    def _meet(self, index: Any, warps: Any, done: str, place: Place) -> None:
        """Report bytes that another warp has written."""
        other = (self._writer[index] != _NO_WARP) & (self._writer[index] != warps)
        if other.any():
            first = int(np.argmax(other))
            byte = int(index[first])
            before = f"written by warp {self._writer[byte]}"
            self._report(
                byte, f"{done} by warp {warps[first]}", before, self._places[self._written[byte]], place
            )

    def _number(self, place: Place) -> int:
        self._places.append(place)
        return len(self._places) - 1

    def _report(
        self, byte: int, now: str, before: str, earlier: Place, place: Place, *, is_error: bool = True
    ) -> None:
        second = resolved(place)
        hazard = Hazard(
            severity="error" if is_error else "warning",
            rule="barrier",
            message=f"byte {byte:#x} of shared memory is {now}, but was {before} with no bar.sync since",
            first=resolved(earlier),
            second=second,
            fix=f"insert 'bar.sync 0;' before {second.file}:{second.line}",
            note=f"it is {before} here",
            byte_ranges=((int(byte), int(byte) + 1),),
        )
        self.found([hazard])
