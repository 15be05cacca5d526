"""Warps that meet in shared memory without a barrier between them.

Knows which warp last wrote and which warps have read each byte since the last ``bar.sync``, and which bytes
were read by a wgmma that has been waited for since. Does not know lanes (those of one warp run in step here,
where PTX asks for bar.warp.sync), nor wgmma in flight (see hazards.py), nor whether a bulk copy overwrites a
tile too early. PTX ISA 9.1, sections 8 "Memory Consistency Model" and 9.7.13.1 "bar, barrier".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .hazards import Hazard, HazardError, Mode, Place, resolved

_NOBODY = -1

Ranges = npt.NDArray[np.int64]  # (n, 2): the first byte, the byte after the last


class RaceChecker:
    """Told of every access just before it takes effect; ``mode`` and ``hazards`` as those of HazardChecker.

    Two warps of which one writes are an error. Where one of them executes a wgmma it is a warning: the memory
    model orders the stores of one warp with the wgmma of another by a barrier only, and a wait is for the
    warp's own wgmma, but the steps that section 9.7.15 lists for wgmma name no barrier.
    """

    def __init__(self, mode: Mode, shared_bytes: int) -> None:
        self.mode: Mode = mode
        self._found: dict[Hazard, None] = {}
        size = 0 if mode == "off" else shared_bytes
        self._writer: npt.NDArray[np.int8] = np.full(size, _NOBODY, np.int8)
        self._readers: npt.NDArray[np.uint8] = np.zeros(size, np.uint8)  # a bit for each warp
        self._written: npt.NDArray[np.int32] = np.zeros(size, np.int32)  # where, as an index of places
        self._read: npt.NDArray[np.int32] = np.zeros(size, np.int32)
        self._tiles: npt.NDArray[np.int32] = np.zeros(size, np.int32)  # 1 + where, of completed wgmma
        self._places: list[Place] = []
        self._uncommitted: list[tuple[Ranges, Place]] = []
        self._groups: list[list[tuple[Ranges, Place]]] = []

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """What has been collected."""
        return tuple(self._found)

    def barrier(self) -> None:
        """All warps have arrived: what came before is ordered with what follows."""
        self._writer.fill(_NOBODY)
        self._readers.fill(0)
        self._tiles.fill(0)
        self._places.clear()

    def read(self, ranges: Ranges, warps: npt.NDArray[np.intp], place: Place) -> None:
        """Each range, all of one length, is read by a warp."""
        if self.mode == "off" or not len(ranges):
            return
        index, who = _bytes(ranges, warps)
        self._meet(index, who, "read", place)
        np.bitwise_or.at(self._readers, index, np.left_shift(1, who).astype(np.uint8))
        self._read[index] = self._number(place)

    def write(self, ranges: Ranges, warps: npt.NDArray[np.intp], place: Place) -> None:
        """Each range, all of one length, is written by a warp."""
        if self.mode == "off" or not len(ranges):
            return
        index, who = _bytes(ranges, warps)
        self._meet(index, who, "written", place)
        self._refill(index, who, place)
        own = np.left_shift(1, who).astype(np.uint8)
        others = (self._readers[index] & ~own) != 0
        if others.any():
            first = int(np.argmax(others))
            reader = next(
                warp for warp in range(8) if int(self._readers[index[first]] & ~own[first]) >> warp & 1
            )
            earlier = self._places[self._read[index[first]]]
            self._report(
                index[first], f"written by warp {who[first]}", f"read by warp {reader}", earlier, place
            )
        self._writer[index] = who
        self._written[index] = self._number(place)

    def wgmma(self, ranges: Ranges, place: Place) -> None:
        """A wgmma, which all warps execute, reads ranges of any lengths."""
        self._uncommitted.append((ranges, place))
        for start, stop in ranges.tolist() if self.mode != "off" else ():
            written = self._writer[start:stop] != _NOBODY
            if written.any():
                byte = start + int(np.argmax(written))
                earlier = self._places[self._written[byte]]
                before = f"written by warp {self._writer[byte]}"
                self._report(byte, "read by the wgmma of other warps", before, earlier, place, is_error=False)
                return

    def commit(self) -> None:
        """What has been issued makes a group."""
        self._groups.append(self._uncommitted)
        self._uncommitted = []

    def wait(self, n: int) -> None:
        """Every warp has waited for its own wgmma of all groups but the latest n."""
        complete = max(len(self._groups) - n, 0)
        for ranges, place in (one for group in self._groups[:complete] for one in group):
            number = self._number(place)
            for start, stop in ranges.tolist() if self.mode != "off" else ():
                self._tiles[start:stop] = 1 + number
        del self._groups[:complete]

    def _refill(self, index: Any, who: Any, place: Place) -> None:
        """Report bytes that the wgmma of other warps may still read."""
        busy = self._tiles[index] > 0
        if busy.any():
            first = int(np.argmax(busy))
            byte = int(index[first])
            earlier = self._places[self._tiles[byte] - 1]
            now, before = f"written by warp {who[first]}", "read by the wgmma of other warps"
            self._report(byte, now, before, earlier, place, is_error=False)

    def _meet(self, index: Any, who: Any, done: str, place: Place) -> None:
        """Report bytes that another warp has written."""
        other = (self._writer[index] != _NOBODY) & (self._writer[index] != who)
        if other.any():
            first = int(np.argmax(other))
            byte = int(index[first])
            before = f"written by warp {self._writer[byte]}"
            self._report(
                byte, f"{done} by warp {who[first]}", before, self._places[self._written[byte]], place
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
        if is_error and self.mode == "error":
            raise HazardError(hazard)
        self._found[hazard] = None


def _bytes(ranges: Ranges, warps: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]:
    """Every byte, and the warp that touches it."""
    size = int(ranges[0, 1] - ranges[0, 0])
    return (ranges[:, :1] + np.arange(size)).ravel(), np.repeat(warps, size)
