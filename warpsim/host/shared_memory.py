"""The shared memory of one CTA: its size, its bytes, words at addresses of it, and what it was at a moment.

Does not know lanes beyond their number in a message, variables, or the order of accesses.
"""

from __future__ import annotations

from weakref import ref

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from ..isa.memory import SHARED_BYTES, Bytes, MemoryWords, check_places, load_words, store_words
from ..machine.state.spaces import padded


class SharedMemory:
    """The shared memory of one CTA: ``size`` bytes, 1 to 232448, zero at first.

    ``data (size,)`` uint8 is the memory itself, not a copy. Raises OperandError for another size.
    """

    def __init__(self, size: int) -> None:
        if not 1 <= size <= SHARED_BYTES:
            raise OperandError(f"shared memory of {size} bytes: a CTA has 1 to {SHARED_BYTES} (227 KiB)")
        self._words = padded(size)
        self._bytes: Bytes = self._words[:size]
        self._changed = True  # perhaps, since the last snapshot
        self._snapshot: Bytes | None = None
        self._lent: ref[Bytes] | None = None

    def __len__(self) -> int:
        return self._bytes.size

    @property
    def data(self) -> Bytes:
        """``(size,)`` uint8: the memory itself."""
        lent = self._lent() if self._lent else None
        if lent is None:
            # An array over a memoryview, not over the array: NumPy makes every view of it hold on to it, so
            # that it lives as long as anybody can write through it. That is how snapshot knows.
            lent = np.frombuffer(self._bytes.data, np.uint8)
            self._lent = ref(lent)
        self._changed = True
        return lent

    def view(self, address: int = 0, size: int | None = None) -> Bytes:
        """``(size,)`` uint8: a stretch of the memory, all of it by default; writing to it writes here.

        Raises OperandError where the stretch leaves the memory.
        """
        size = len(self) - address if size is None else size
        if address < 0 or size < 0 or address + size > len(self):
            raise OperandError(f"{size} bytes from {address:#x} leave shared memory of {len(self)} bytes")
        return self.data[address : address + size]

    def snapshot(self) -> Bytes:
        """``(size,)`` uint8, read-only: a copy of the memory as it is now.

        The last copy, where nothing has changed since: nobody has written here or has been able to write to
        ``data``, or the bytes are equal.
        """
        last, lent = self._snapshot, self._lent is not None and self._lent() is not None
        if last is None or ((self._changed or lent) and not np.array_equal(last, self._bytes)):
            last = self._snapshot = self._bytes.copy()
            last.flags.writeable = False
        self._changed = False
        return last

    def peek(self) -> Bytes:
        """``(size,)`` uint8: the memory itself, for those who only read, and keep nothing of it."""
        return self._bytes

    @property
    def words(self) -> Bytes:
        """The memory itself, up to a whole word of 16 bytes; whoever writes to it calls ``written``."""
        return self._words

    def written(self) -> None:
        """The memory may have changed since the last snapshot."""
        self._changed = True

    def check_store(self, addresses: npt.ArrayLike, size: int, *, lanes: npt.ArrayLike | None = None) -> None:
        """Raise OperandError as store would for these addresses, but store nothing."""
        check_places(self._bytes, addresses, size, lanes, "stores")

    def load(self, addresses: npt.ArrayLike, size: int, *, lanes: npt.ArrayLike | None = None) -> MemoryWords:
        """The words at the addresses; see load_words."""
        return load_words(self._bytes, addresses, size, lanes=lanes)

    def store(
        self, addresses: npt.ArrayLike, words: MemoryWords, size: int, *, lanes: npt.ArrayLike | None = None
    ) -> None:
        """Write words at the addresses; see store_words."""
        self._changed = True
        store_words(self._bytes, addresses, words, size, lanes=lanes)

    def __getstate__(self) -> dict[str, Bytes]:
        """The bytes: what is lent out of one memory is not lent out of its copy."""
        return {"bytes": self._bytes.copy()}

    def __setstate__(self, state: dict[str, Bytes]) -> None:
        SharedMemory.__init__(self, state["bytes"].size)
        self._bytes[:] = state["bytes"]
