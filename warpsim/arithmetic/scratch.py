"""Memory that is reused: the page faults of new memory cost more than small products themselves.

Knows no planes. Each thread has its own memory; arrays larger than KEPT bytes are not kept.
"""

from __future__ import annotations

from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

_LINE = 64  # bytes of a cache line, as wide as a vector may be
KEPT = 4 << 20

_memory = local()


def aligned(size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a new, uninitialised array that begins at a cache line, so that no vector of it crosses two."""
    itemsize = np.dtype(dtype).itemsize
    room = np.empty(size * itemsize + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + size * itemsize].view(dtype)


def scratch(name: str, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an aligned, uninitialised array: the caller's until the thread asks for the same name again."""
    needed = size * np.dtype(dtype).itemsize
    room = getattr(_memory, name, None)
    if room is None or room.size < needed:
        room = aligned(needed, np.uint8)
        if needed <= KEPT:
            setattr(_memory, name, room)
    return room[:needed].view(dtype)
