"""The steps that all f32, f16 and bf16 arithmetic shares: flush, compute, round, flush, clamp.

Knows how modifiers surround a computation; which computation, the caller says, twice: ``nearest`` takes and
returns bits and rounds to nearest even, the fast common path; ``exact`` takes float64 values and returns
float64 rounded to odd (``rounding``), for the other directions and for deciding what .ftz flushes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..operation import Values, array
from .float_bits import FORMATS, Format, canonical, flushed, rectified, saturated
from .rounding import Exact, flush_result, single, wide_values

CLAMPS: dict[str, Callable[[Values, Format], Values]] = {"sat": saturated, "relu": rectified}


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """One operation on "f32", "f16" or "bf16": what computes it, and its modifiers.

    Calling it takes and returns arrays of bits. Directions other than "rn" are for "f32" only.
    """

    type_name: str
    nearest: Callable[..., Values]
    exact: Exact
    rounding: str = "rn"
    ftz: bool = False
    clamp: str = ""

    def __call__(self, *sources: Values) -> Values:
        """Return bits of the result for bits of the sources."""
        form = FORMATS[self.type_name]
        if self.ftz:
            sources = tuple(flushed(source, form) for source in sources)
        nearest = self.rounding == "rn"
        bits = self.nearest(*sources) if nearest else single(self._value(sources), self.rounding)
        if self.ftz:
            bits = flush_result(bits, form, self.rounding, lambda: self._value(sources))
        bits = canonical(bits, form)
        return CLAMPS[self.clamp](bits, form) if self.clamp else bits

    def _value(self, sources: tuple[Values, ...]) -> Values:
        return self.exact(*wide_values(sources, self.type_name), self.rounding)


def native(function: Callable[..., Values], real: type[np.floating[Any]]) -> Callable[..., Values]:
    """Return ``function`` of values of the NumPy type ``real``, as one of bits."""

    def on_bits(*sources: Values) -> Values:
        values = array(function(*(source.view(real) for source in sources)))
        return values.view(f"u{values.dtype.itemsize}")

    return on_bits
