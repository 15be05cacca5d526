"""Memories of a launch, and the windows through which generic addresses reach them (PTX ISA 9.1, 5.1).

    global, const   one flat memory of the device, in which allocations lie apart; an address is its own
    shared          one stretch a CTA of a wave, from 0 on
    local           one stretch a lane, from 0 on
    param           the parameters of the kernel, the same for all

Knows bytes, alignment, bounds and allocations; does not know statements or the order of accesses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...ptx.symbols import shown_variable
from .lanes import Lanes, Values

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Span = tuple[int, int]  # the first byte, and the one past

DEVICE_BASE = (
    0x2000_0000_0000  # of the first allocation: where Linux maps nothing of a host program by itself
)
SHARED_WINDOW = 0x7E00_0000_0000  # generic addresses of shared memory start here
LOCAL_WINDOW = 0x7D00_0000_0000
PARAM_WINDOW = 0x7C00_0000_0000
WINDOW_BYTES = 1 << 32
_ALIGNMENT = 256  # of allocations, as cudaMalloc gives
_GAP = 256  # bytes between them that belong to no allocation
_NEAR = 4096  # bytes between allocations that are copied with both


class InvalidAccess(Exception):
    """An access that leaves its memory or is misaligned: the first lane at fault, its address, and why."""

    def __init__(self, lane: int, address: int, reason: str) -> None:
        super().__init__(reason)
        self.lane = lane
        self.address = address
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Bytes of the device that belong together: a buffer, or a variable of a module, in a state space.

    ``reserved`` is the address of the range that a program has mapped it in, 0 for none: pointers to one part
    of a range lead to others.
    """

    address: int
    size: int
    name: str = ""
    space: str = ""  # "const" or "global" of a variable
    reserved: int = 0

    def __str__(self) -> str:
        return f"{shown_variable(self.name) or 'buffer'} of {self.size} bytes at {self.address:#x}"


def padded(size: int) -> Bytes:
    """Return zero bytes, rounded up to whole words of 16."""
    return np.zeros(-(-size // 16) * 16, np.uint8)


def copied(content: Bytes, spans: Sequence[Span]) -> Bytes:
    """Return a copy of some bytes, with zeros everywhere else, which take no memory until written."""
    copy = np.zeros(content.size, np.uint8)
    for first, past in spans:
        copy[first:past] = content[first:past]
    return copy


# What is copied at once, by bytes: bits as they are, whatever the type says of them.
_WIDE = {size: np.dtype(kind) for size, kind in ((2, "u2"), (4, "u4"), (8, "u8"), (16, "c16"))}


def words_at(memory: Bytes, offsets: Offsets, size: int, count: int = 1) -> Values:
    """``(offsets, count)``: unsigned words of 1, 2, 4 or 8 bytes at multiples of ``size``."""
    found: Values
    view = memory.view(f"u{size}")
    if count == 1:
        found = view[offsets >> size.bit_length() - 1][:, None]
        return found
    wide = _common_word_type(memory, offsets, size * count)
    if wide is not None:
        found = memory.view(wide)[offsets >> wide.itemsize.bit_length() - 1].view(view.dtype)
        return found.reshape(-1, count)
    first = offsets // size
    return np.stack([view[first + place] for place in range(count)], axis=-1)


def put_words(memory: Bytes, offsets: Offsets, words: Values) -> None:
    """Write words ``(offsets, count)``; of lanes that write one place, the last one stays."""
    size, count = words.dtype.itemsize, words.shape[1]
    wide = _common_word_type(memory, offsets, size * count) if count > 1 else None
    if wide is not None:
        memory.view(wide)[offsets // wide.itemsize] = np.ascontiguousarray(words).view(wide)[:, 0]
        return
    view, first = memory.view(f"u{size}"), offsets // size
    for place in range(count):
        view[first + place] = words[:, place]


def _common_word_type(memory: Bytes, offsets: Offsets, size: int) -> np.dtype[Any] | None:
    """Return the type of words of so many bytes, if there is such a type, and all of them are aligned."""
    wide = _WIDE.get(size)
    if wide is None or memory.size % size or int(np.bitwise_or.reduce(offsets)) & (size - 1):
        return None
    return wide


class Misaligned(InvalidAccess):
    """An access whose address is not a multiple of its size."""


def check_alignment(addresses: Offsets, size: int, lanes: Lanes) -> None:
    """Raise InvalidAccess for the first address that is not a multiple of the size."""
    if int(np.bitwise_or.reduce(addresses, axis=None)) & (size - 1):
        place = int(np.flatnonzero(addresses & (size - 1))[0])
        lane, address = _culprit(lanes, addresses, place)
        raise Misaligned(lane, address, f"is not a multiple of {size}")


def leave(addresses: Offsets, size: int, limit: int) -> bool:
    """Whether the bytes from some address leave a memory of ``limit``."""
    if not addresses.size or limit < size:
        return bool(addresses.size)
    return bool(addresses.view(np.uint64).max() > limit - size)  # below 0 is far beyond


def check_bounds(addresses: Offsets, size: int, limit: int, lanes: Lanes, what: str, hint: str = "") -> None:
    """Raise InvalidAccess for the first address from which the bytes leave a memory of ``limit``."""
    if leave(addresses, size, limit):
        place = int(np.flatnonzero((addresses < 0) | (addresses > limit - size))[0])
        lane, address = _culprit(lanes, addresses, place)
        raise InvalidAccess(lane, address, f"leaves {what} of {limit} bytes{hint}")


def _culprit(lanes: Lanes, addresses: Offsets, place: int) -> tuple[int, int]:
    """Return lane and address; all lanes may share an address."""
    return int(lanes.index[place if addresses.size > 1 else 0]), int(addresses.flat[place])


class DeviceMemory:
    """The global memory of a device: allocations in one array of bytes, each with a gap behind it.

    ``fresh`` has 255 for each byte of ``data`` that has not been written, 0 for others; None where all hold
    something.
    """

    def __init__(self) -> None:
        self.data: Bytes = padded(0)
        self.allocations: list[Allocation] = []
        self._bases: list[int] = []
        self._end = 0  # bytes handed out so far
        self.fresh: Bytes | None = None

    def allocate(self, size: int, name: str = "", alignment: int = _ALIGNMENT, space: str = "") -> Allocation:
        """Allocate bytes, zero; views of ``data`` taken before no longer show this memory."""
        if size < 0:
            raise OperandError(f"an allocation of {size} bytes: at least 0")
        alignment = max(alignment, _ALIGNMENT)
        offset = -(-self._end // alignment) * alignment
        self._end = offset + size + _GAP
        self._reach(self._end)
        found = Allocation(address=DEVICE_BASE + offset, size=size, name=name, space=space)
        self.allocations.append(found)
        self._bases.append(found.address)
        return found

    def _reach(self, end: int) -> None:
        """Have room for the bytes before an offset."""
        if end > self.data.size:
            self.data = self._grow(max(end, 2 * self.data.size))
            if self.fresh is not None:
                more = np.zeros(self.data.size - self.fresh.size, np.uint8)
                self.fresh = np.concatenate([self.fresh, more])

    def _grow(self, size: int) -> Bytes:
        """Return at least so many bytes, which begin with those of ``data``."""
        grown = padded(size)
        grown[: self.data.size] = self.data
        return grown

    def detach(self, data: Bytes) -> None:
        """Have bytes that another process does not see change, and does not change: ``data``, as they were.

        A fork has them by itself.
        """

    def snapshot(self) -> Bytes | None:
        """Return a copy of all allocations, at their places; None where that would take too much."""
        return copied(self.data, self.spans())

    def restore(
        self, data: Bytes, allocations: Sequence[Allocation], fresh: Bytes | None, end: int | None = None
    ) -> None:
        """Take the memory of another device, and its allocations, in place of what is here.

        ``end`` is that of the other; None for all bytes.
        """
        self.data, self.fresh, self.allocations = data, fresh, list(allocations)
        self._bases = [allocation.address for allocation in allocations]
        self._end = data.size if end is None else end

    @property
    def end(self) -> int:
        """Bytes handed out so far: the next allocation begins behind them."""
        return self._end

    def spans(self) -> list[Span]:
        """Return the first byte of allocations in ``data`` and the one past them; neighbours are together."""
        found = list[Span]()
        for allocation in self.allocations:
            first = allocation.address - DEVICE_BASE
            near = bool(found) and first - found[-1][1] <= _NEAR
            start = found.pop()[0] if near else first
            found.append((start, first + allocation.size))
        return found

    def release(self, count: int, keep: Container[int] = ()) -> None:
        """Forget all but the first ``count`` allocations, and those at addresses in ``keep``.

        Their bytes are zero when handed out again.
        """
        kept = self.allocations[:count]
        for allocation in self.allocations[count:]:
            if allocation.address in keep:
                kept.append(allocation)
            else:
                self.bytes_of(allocation)[:] = 0
                self.written(allocation)
        self.allocations, self._bases = kept, [allocation.address for allocation in kept]
        last = self.allocations[-1] if self.allocations else None
        self._end = last.address - DEVICE_BASE + last.size + _GAP if last else 0

    def free(self, address: int) -> None:
        """Forget one allocation, for good. Raises OperandError where there is none."""
        if address not in self._bases:
            raise OperandError(f"{address:#x} is not an allocation")
        place = self._bases.index(address)
        if place == len(self._bases) - 1:
            self.release(place)
        else:
            del self.allocations[place], self._bases[place]

    def withdraw(self, address: int) -> None:
        """Forget one allocation, whose place stays reserved until ``readmit``."""
        place = bisect_right(self._bases, address) - 1
        del self.allocations[place], self._bases[place]

    def readmit(self, allocation: Allocation) -> None:
        """Hand out a place again that was withdrawn; its bytes are zero."""
        place = bisect_right(self._bases, allocation.address)
        self.allocations.insert(place, allocation)
        self._bases.insert(place, allocation.address)
        self.bytes_of(allocation)[:] = 0

    def bytes_of(self, allocation: Allocation) -> Bytes:
        """Return the bytes of an allocation; writing to them writes here."""
        start = allocation.address - DEVICE_BASE
        return self.data[start : start + allocation.size]

    def unwritten(self, allocation: Allocation) -> None:
        """Mark the bytes of an allocation as not written."""
        if self.fresh is None:
            self.fresh = np.zeros(self.data.size, np.uint8)
        start = allocation.address - DEVICE_BASE
        self.fresh[start : start + allocation.size] = 255

    def written(self, allocation: Allocation) -> None:
        """Mark the bytes of an allocation as written."""
        if self.fresh is not None:
            start = allocation.address - DEVICE_BASE
            self.fresh[start : start + allocation.size] = 0

    def allocation_at(self, address: int) -> Allocation:
        """Return the allocation that an address lies in."""
        return self.allocations[bisect_right(self._bases, address) - 1]

    def find(self, address: int, size: int = 1) -> Allocation | None:
        """Return the allocation that bytes lie in, or None."""
        if not self._bases or address < self._bases[0]:
            return None
        found = self.allocation_at(address)
        return found if address + max(size, 1) <= found.address + max(found.size, 1) else None

    def holds(self, allocation: Allocation) -> bool:
        """Return whether an allocation is one of this memory still."""
        place = bisect_right(self._bases, allocation.address) - 1
        return place >= 0 and self.allocations[place] is allocation

    def offsets(self, addresses: Offsets, size: int, lanes: Lanes) -> Offsets:
        """Return places in ``data`` of words that lie each within one allocation. Raises InvalidAccess."""
        check_alignment(addresses, size, lanes)
        low, high = int(addresses.min()), int(addresses.max())
        place = bisect_right(self._bases, low) - 1
        if place < 0 or high + size > self._bases[place] + self.allocations[place].size:
            self._check_each(addresses, size, lanes)
        return addresses - DEVICE_BASE

    def _check_each(self, addresses: Offsets, size: int, lanes: Lanes) -> None:
        wrong = self._unallocated(addresses, size)
        if wrong.any():
            lane, address = _culprit(lanes, addresses, int(np.flatnonzero(wrong)[0]))
            raise InvalidAccess(lane, address, self.describe(address))

    def outside(self, addresses: Offsets, size: int) -> int | None:
        """Return the first of some addresses from which the bytes leave their allocation, or None."""
        if not addresses.size:
            return None
        low, high = int(addresses.min()), int(addresses.max())
        place = bisect_right(self._bases, low) - 1
        if place >= 0 and high + size <= self._bases[place] + self.allocations[place].size:
            return None
        wrong = np.flatnonzero(self._unallocated(addresses, size))
        return int(addresses[wrong[0]]) if wrong.size else None

    def _unallocated(self, addresses: Offsets, size: int) -> npt.NDArray[np.bool_]:
        """Return which addresses have bytes in no allocation."""
        bases = np.array([0, *self._bases], np.int64)
        ends = np.array(
            [0, *(allocation.address + allocation.size for allocation in self.allocations)], np.int64
        )
        wrong: npt.NDArray[np.bool_] = addresses + size > ends[np.searchsorted(bases, addresses, "right") - 1]
        return wrong | (addresses < 0)

    def describe(self, address: int) -> str:
        """Describe where an address lies that is in no allocation."""
        if not self.allocations:
            return "is in no allocation: there is none"
        before = bisect_right(self._bases, address) - 1
        near = self.allocations[max(before, 0)]
        if address < near.address:
            return f"is in no allocation: {near.address - address} bytes before {near}"
        past = address - near.address - near.size
        where = f"{past} bytes past the end of" if past >= 0 else "runs over the end of"
        return f"is in no allocation: {where} {near}"


def integers_of(values: Values) -> Offsets:
    """Return addresses as signed integers: of 64 bits, and of 32."""
    return values.astype(np.int64, copy=False)


def window_of(address: Any) -> Any:
    """Return the number of the window, of WINDOW_BYTES, that a generic address lies in."""
    return address // WINDOW_BYTES
