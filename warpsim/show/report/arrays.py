"""Arrays for a page: one block of bytes, each array once, compressed and written as text.

A reference says where an array lies: ``at`` (bytes), ``count`` (elements) and ``bytes`` of each. Knows
nothing of what the arrays mean.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from typing import Any

import numpy as np
import numpy.typing as npt

Reference = dict[str, int]

_ALIGNMENT = 8  # typed arrays of JavaScript start at multiples of their element's size


class Pool:
    """Arrays of unsigned integers, little-endian, in C order; equal arrays are kept once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._known: dict[tuple[int, bytes], Reference] = {}

    def add(self, array: npt.ArrayLike) -> Reference:
        """Return where the array lies, with elements as narrow as its dtype."""
        values = np.ascontiguousarray(array)
        width = values.dtype.itemsize
        content = values.astype(f"<u{width}", copy=False).tobytes()
        key = width, content
        if key not in self._known:
            self._known[key] = {"at": self._size, "count": values.size, "bytes": width}
            padded = content + bytes(-len(content) % _ALIGNMENT)
            self._parts.append(padded)
            self._size += len(padded)
        return self._known[key]

    def add_narrow(self, array: npt.NDArray[Any]) -> Reference:
        """Return the same in the narrowest unsigned dtype that holds every value."""
        return self.add(array.astype(np.min_scalar_type(int(array.max(initial=0)))))

    @property
    def content(self) -> bytes:
        """All arrays in one block."""
        return b"".join(self._parts)

    def text(self) -> str:
        """Return the block compressed (zlib) and in base64."""
        return b64encode(zlib.compress(self.content, 9)).decode("ascii")
