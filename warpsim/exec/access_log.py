"""Which bytes of global memory a launch reads, writes and changes by atomics.

An observer of all waves of a launch. Knows bytes; does not know streams.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..machine.run.events import Observer, helper
from ..machine.run.pending import Pending
from ..machine.run.wave import Wave
from ..machine.state.memory_access import MemoryAccess
from ..machine.state.spaces import DEVICE_BASE
from .streams import Stretch, Touches

Mask = npt.NDArray[np.bool_]


class AccessLog(Observer):
    """The bytes of one launch, as masks over the memory of the device."""

    def __init__(self) -> None:
        self.masks: dict[str, Mask] = {}

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
                        mask[first:past] = True

    def touches(self) -> Touches:
        """Return all bytes as stretches of addresses."""
        return Touches(*(_stretches(self.masks.get(name)) for name in Touches._fields))

    @helper
    def _note(self, wave: Wave, access: MemoryAccess, name: str) -> None:
        if access.memory is wave.memories.device.data:
            mask = self._mask(wave, name)
            mask.reshape(-1, access.size)[access.offsets // access.size] = True

    @helper
    def _mask(self, wave: Wave, name: str) -> Mask:
        size = wave.memories.device.data.size
        mask = self.masks.get(name)
        if mask is None or mask.size < size:
            grown = np.zeros(size, np.bool_)
            if mask is not None:
                grown[: mask.size] = mask
            self.masks[name] = mask = grown
        return mask


def _stretches(mask: Mask | None) -> tuple[Stretch, ...]:
    if mask is None:
        return ()
    edges = np.flatnonzero(np.diff(mask.view(np.int8), prepend=0, append=0)) + DEVICE_BASE
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
