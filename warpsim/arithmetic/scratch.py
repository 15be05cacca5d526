"""Memory that is used again: fresh pages cost more than what small products write into them.

Knows no planes. Each thread has its own; what is larger than KEPT bytes is not kept.
"""

from __future__ import annotations

from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

_LINE = 64  # bytes of a cache line, which a vector may take up whole
KEPT = 4 << 20

_memory = local()


def aligned(size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a new array, not filled, that begins where a cache line does: no vector of it lies in two."""
    itemsize = np.dtype(dtype).itemsize
    room = np.empty(size * itemsize + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + size * itemsize].view(dtype)


def scratch(name: str, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an aligned array, not filled: the caller's until the thread asks for one of the same name
    again.
    """
    needed = size * np.dtype(dtype).itemsize
    room = getattr(_memory, name, None)
    if room is None or room.size < needed:
        room = aligned(needed, np.uint8)
        if needed <= KEPT:
            setattr(_memory, name, room)
    return room[:needed].view(dtype)
