"""Which bytes of global memory a launch reads, writes and changes by atomics.

Knows accesses of waves; does not know launches, and what becomes of the bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....machine.run.events import Observer, helper
from ....machine.run.pending import Pending
from ....machine.run.wave import Wave
from ....machine.state.memory_access import MemoryAccess
from ....machine.state.spaces import DEVICE_BASE, Offsets
from ..streams import AddressRange, Touches

Mask = npt.NDArray[np.bool_]
_BLOCK = 16  # bits of the places in a block of a mask


class ByteMask:
    """Which bytes of a memory are touched; ``blocks`` has which stretches of 64 KiB hold any of them."""

    def __init__(self, size: int) -> None:
        self.bytes: Mask = np.zeros(size, np.bool_)
        self.blocks: Mask = np.zeros(-(-size >> _BLOCK), np.bool_)

    def add(self, offsets: Offsets, size: int) -> None:
        """Note words of so many bytes, each aligned to its size."""
        self.bytes.reshape(-1, size)[offsets // size] = True
        self.blocks[offsets >> _BLOCK] = True

    def add_range(self, first: int, past: int) -> None:
        """Note bytes."""
        self.bytes[first:past] = True
        self.blocks[first >> _BLOCK : -(-past >> _BLOCK)] = True

    def stretches(self) -> tuple[AddressRange, ...]:
        """Return stretches of addresses."""
        found = list[AddressRange]()
        for first, past in _runs(self.blocks):
            start = first << _BLOCK
            part = self.bytes[start : past << _BLOCK]
            base = DEVICE_BASE + start
            found += [(base + begin, base + end) for begin, end in _runs(part)]
        return tuple(found)


def _runs(mask: Mask) -> list[tuple[int, int]]:
    """Return where stretches of what is set begin and end."""
    edges = np.flatnonzero(np.diff(mask.view(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


class AccessLog(Observer):
    """The bytes of one launch, as masks over the memory of the device."""

    def __init__(self) -> None:
        self.masks: dict[str, ByteMask] = {}

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what is read."""
        self._note(wave, access, "reads")

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what is written."""
        self._note(wave, access, "writes")

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what atomics change."""
        self._note(wave, access, "atomics")

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Note what an asynchronous operation has read and written."""
        for name, all_of in (("reads", pending.reads), ("writes", pending.writes)):
            for stretches in all_of:
                if stretches.space == "global":
                    mask = self._mask(wave, name)
                    for first, past in stretches.ranges.tolist():
                        mask.add_range(first, past)

    def touches(self) -> Touches:
        """Return all bytes as stretches of addresses."""
        return Touches(
            *(self.masks[name].stretches() if name in self.masks else () for name in Touches._fields)
        )

    @helper
    def _note(self, wave: Wave, access: MemoryAccess, name: str) -> None:
        if access.memory is wave.memories.device.data:
            self._mask(wave, name).add(access.offsets, access.size)

    @helper
    def _mask(self, wave: Wave, name: str) -> ByteMask:
        size = wave.memories.device.data.size
        mask = self.masks.get(name)
        if mask is None or mask.bytes.size < size:
            grown = ByteMask(size)
            if mask is not None:
                grown.bytes[: mask.bytes.size], grown.blocks[: mask.blocks.size] = mask.bytes, mask.blocks
            self.masks[name] = mask = grown
        return mask
