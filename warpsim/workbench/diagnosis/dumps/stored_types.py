"""D as a kernel stored it, in a narrower type than that of its accumulators: codes compare after rounding.

Like Printed of decimals, beside which it stands: what rounds to the same number counts as equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....isa.codes import values_of
from ....isa.formats import FORMATS, Format, floats_of

Codes = npt.NDArray[Any]
Numbers = npt.NDArray[np.float64]
TYPES = (*floats_of(8), *reversed(floats_of(16)))  # in which results are stored, the narrowest first
_FEWEST = 16  # elements that are not zero, from which a type is known


class Known(Protocol):
    """How far D is known: by its digits, or by the type in which it was stored.

    ``equality`` says what counts as equal, ``extent`` how far a match goes, ``reach`` how far all of D is
    equal.
    """

    equality: str
    extent: str
    reach: str

    def settled(self, codes: Codes, wanted: Codes, element: Format) -> Codes:
        """Return the codes, each replaced by the wanted code where both are known as the same number."""
        ...

    def spread(self, wanted: Numbers) -> Numbers:
        """Return how far each number may lie from the number that was rounded."""
        ...


@dataclass(frozen=True)
class Stored:
    """D was rounded to ``format`` before it was stored."""

    format: Format
    equality = "what rounds to the same"
    extent = "as it was stored"
    reach = "in the type in which it was stored"

    def __str__(self) -> str:
        return f"{self.format}, in which it was stored"

    @in_default_environment
    def settled(self, codes: Codes, wanted: Codes, element: Format) -> Codes:
        """Return the codes, each replaced by the wanted code where it rounds to that."""
        most = self._most
        with np.errstate(all="ignore"):
            limited = np.clip(values_of(codes, element), -most, most).astype(element.dtype)
        same = (self.rounded(codes, element) == wanted) | (
            self.rounded(limited.view(element.code_dtype), element) == wanted
        )
        settled: Codes = np.where(same, wanted, codes)
        return settled

    @property
    def _most(self) -> float:
        """The largest finite number of the type."""
        return float(ml_dtypes.finfo(self.format.dtype).max)  # type: ignore[no-untyped-call]

    def rounded(self, codes: Codes, element: Format) -> Codes:
        """Return the codes of the numbers rounded to the stored type, to nearest even."""
        with np.errstate(all="ignore"):
            narrow = values_of(codes, element).astype(element.dtype).astype(self.format.dtype)
            rounded: Codes = narrow.astype(element.dtype).view(element.code_dtype)
        return rounded

    def spread(self, wanted: Numbers) -> Numbers:
        """Return an ulp of each number, and at least the smallest subnormal number."""
        least = float(values_of(np.array([1], self.format.code_dtype), self.format)[0])
        near: Numbers = np.maximum(np.abs(np.nan_to_num(wanted)) * 2.0**-self.format.fraction_bits, least)
        return np.where(np.abs(wanted) >= self._most, np.inf, near)


@in_default_environment
def stored_as(codes: Codes, expected: Codes, element: Format) -> Stored | None:
    """Return the narrower type that holds every number of D, if the expected numbers do not fit it."""
    fitting = list(_fitting(codes, element))
    if np.count_nonzero(values_of(codes, element)) < _FEWEST or not fitting:
        return None
    known = {stored.format.name for stored in _fitting(expected, element)}
    fitting = [stored for stored in fitting if stored.format.name not in known]
    equal = [int((stored.rounded(expected, element) == codes).sum()) for stored in fitting]
    return fitting[int(np.argmax(equal))] if fitting else None


def _fitting(codes: Codes, element: Format) -> Iterator[Stored]:
    """Yield the types that hold every number of an array."""
    for name in TYPES if element.is_float else ():
        stored = Stored(FORMATS[name])
        if stored.format.bits < element.bits and (stored.rounded(codes, element) == codes).all():
            yield stored
