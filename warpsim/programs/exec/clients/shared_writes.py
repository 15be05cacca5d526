"""What the device has written to memory that the host reads without a copy: managed, pinned, mapped.

The host may read it once it has waited for all work; what it reads then is compared between schedules. Bytes
that the host alone has written are left out, as a program may write times or addresses there. Knows stretches
of bytes; does not know calls.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....machine.state.spaces import Allocation, Bytes
from ..streams import AddressRange, Touches
from .client_memory import ClientMemory


class SharedWrites:
    """What work has written to shared memory since the host was last given it."""

    def __init__(self, memory: ClientMemory) -> None:
        self._memory = memory
        self._written: dict[Allocation, list[AddressRange]] = {}

    def note(self, touches: Touches) -> None:
        """Note what work has written; a stretch lies in one allocation."""
        for first, past in (*touches.writes, *touches.atomics):
            found = self._memory.find(first)
            if found is not None and self._memory.is_shared(found):
                self._written.setdefault(found, []).append((first - found.address, past - found.address))

    def given(self) -> Iterator[tuple[Allocation, Bytes]]:
        """Yield allocations that are still there, by address, with their bytes, zero but for those that were
        written; they are the host's from now on.
        """
        written, self._written = self._written, {}
        for allocation in sorted(written, key=lambda each: each.address):
            if self._memory.find(allocation.address) is allocation:
                yield allocation, self._only(allocation, written[allocation])

    def _only(self, allocation: Allocation, stretches: list[AddressRange]) -> Bytes:
        content, shown = self._memory.bytes_of(allocation), np.zeros(allocation.size, np.uint8)
        for first, past in stretches:
            shown[first:past] = content[first:past]
        return shown
