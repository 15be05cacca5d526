"""The shared memory of one CTA: its size, its bytes, and words at addresses of it.

Does not know lanes beyond their number in a message, variables, or the order of accesses.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from ..isa.memory import SHARED_BYTES, Bytes, MemoryWords, check_places, load_words, store_words


class SharedMemory:
    """The shared memory of one CTA: ``size`` bytes, 1 to 232448, zero at first.

    ``data (size,)`` uint8 is the memory itself, not a copy. Raises OperandError for another size.
    """

    def __init__(self, size: int) -> None:
        if not 1 <= size <= SHARED_BYTES:
            raise OperandError(f"shared memory of {size} bytes: a CTA has 1 to {SHARED_BYTES} (227 KiB)")
        self.data: Bytes = np.zeros(size, np.uint8)

    def __len__(self) -> int:
        return self.data.size

    def view(self, address: int = 0, size: int | None = None) -> Bytes:
        """``(size,)`` uint8: a stretch of the memory, all of it by default; writing to it writes here.

        Raises OperandError where the stretch leaves the memory.
        """
        size = len(self) - address if size is None else size
        if address < 0 or size < 0 or address + size > len(self):
            raise OperandError(f"{size} bytes from {address:#x} leave shared memory of {len(self)} bytes")
        return self.data[address : address + size]

    def check_store(self, addresses: npt.ArrayLike, size: int, *, lanes: npt.ArrayLike | None = None) -> None:
        """Raise OperandError as store would for these addresses, but store nothing."""
        check_places(self.data, addresses, size, lanes, "stores")

    def load(self, addresses: npt.ArrayLike, size: int, *, lanes: npt.ArrayLike | None = None) -> MemoryWords:
        """The words at the addresses; see load_words."""
        return load_words(self.data, addresses, size, lanes=lanes)

    def store(
        self, addresses: npt.ArrayLike, words: MemoryWords, size: int, *, lanes: npt.ArrayLike | None = None
    ) -> None:
        """Write words at the addresses; see store_words."""
        store_words(self.data, addresses, words, size, lanes=lanes)
