"""How near an explanation comes to D where it does not give every bit: in ulps.

Knows codes of one format; does not know mistakes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.codes import integers, values_of
from ....isa.formats import Format
from .dump_comparison import places_of

Codes = npt.NDArray[Any]
Numbers = npt.NDArray[np.float64]

_INTEGER_BITS = 16  # an integer that is off by so many bits says nothing


def closeness(x: Codes, y: Codes, element: Format) -> Numbers:
    """Return ``(...)``: 1 for equal codes, less with each bit of the distance in ulps, 0 if none is left."""
    apart = np.abs(places_of(x, element).astype(np.float64) - places_of(y, element))
    bits = element.fraction_bits if element.is_float else _INTEGER_BITS
    near: Numbers = np.clip(1 - np.log2(1 + apart) / bits, 0, 1)
    return near


def numbers(codes: Codes, element: Format) -> Numbers:
    """Return the values of codes as float64, of the same shape."""
    return values_of(codes, element) if element.is_float else integers(codes, element).astype(np.float64)
