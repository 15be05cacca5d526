"""PTX types as NumPy dtypes: the width and the dtype of a value of one lane."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def bits_of(type_name: str) -> int:
    """Return bits of one lane of a PTX type: 1 for "pred", 32 for "f16x2" and "b32", 64 for "f32x2"."""
    if type_name == "pred":
        return 1
    stem, _, count = type_name.partition("x")
    digits = "".join(filter(str.isdecimal, stem))
    return int(digits) * int(count or 1)


@cache
def dtype_of(type_name: str) -> np.dtype[Any]:
    """Return the dtype of the values of a PTX type: bool, uint8, uint16, uint32 or uint64."""
    bits = bits_of(type_name)
    return np.dtype(np.bool_) if bits == 1 else np.dtype(f"u{max(bits, 8) // 8}")
