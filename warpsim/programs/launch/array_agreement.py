"""An output against what is expected: which elements have the same bits, and which are within a tolerance.

A tolerance is that of numpy.isclose: relative to what is expected, and for elements near zero relative to the
largest expected magnitude. A NaN is near a NaN. Knows arrays; does not know launches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement:
    """An output and what is expected, of one shape: a mask of the elements with the ``same`` bits, or of
    equal values where dtypes differ, and of those that are ``near``: the same, or within ``tolerance``.
    """

    given: Array
    expected: Array
    tolerance: float
    same: Mask
    near: Mask

    @property
    def compared(self) -> int:
        """How many elements there are."""
        return self.given.size

    @property
    def equal(self) -> int:
        """How many elements have the same bits."""
        return int(self.same.sum())

    @property
    def within(self) -> int:
        """How many more elements are within the tolerance."""
        return int((self.near & ~self.same).sum())

    @property
    def different(self) -> int:
        """How many elements are neither."""
        return int((~self.near).sum())

    @property
    def first(self) -> tuple[int, ...] | None:
        """The place of the first element that is neither."""
        places = np.argwhere(~self.near)
        return tuple(int(at) for at in places[0]) if len(places) else None

    @property
    def largest(self) -> tuple[float, tuple[int, ...]] | None:
        """The largest difference of two finite elements, and its place; None where all bits are the same."""
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(self.given.astype(np.float64) - self.expected.astype(np.float64))
        known = np.isfinite(apart) & ~self.same
        if not known.any():
            return None
        place = np.unravel_index(int(np.where(known, apart, -1.0).argmax()), apart.shape)
        return float(apart[place]), tuple(int(at) for at in place)

    def document(self) -> dict[str, Any]:
        """Return the counts and the largest difference as JSON-ready data."""
        largest = self.largest
        return {
            "compared": self.compared,
            "equal": self.equal,
            "within_tolerance": self.within,
            "different": self.different,
            "tolerance": self.tolerance,
            "largest_difference": None
            if largest is None
            else {"value": largest[0], "place": list(largest[1])},
        }

    def __str__(self) -> str:
        alike = not self.tolerance or self.given.dtype == self.expected.dtype
        how = "bit for bit" if alike else "in value"
        if self.equal == self.compared:
            return f"{self.compared} elements equal, {how}"
        if not self.tolerance:
            return f"{self.different} of {self.compared} elements differ"
        limit = f"the tolerance {self.tolerance:g}"
        beyond = f"{self.different} beyond {limit}, " * bool(self.different)
        parts = f"{self.equal} equal {how}, {self.within} more within {limit if not beyond else 'it'}"
        largest = self.largest
        apart = "" if largest is None else f"; largest difference {largest[0]:g} at {list(largest[1])}"
        return f"{self.compared} elements: {beyond}{parts}{apart}"


def agreement(given: Array, expected: npt.ArrayLike, tolerance: float) -> Agreement:
    """Compare an output with what is expected, of the same shape, by bits or within a tolerance."""
    wanted = np.asarray(expected)
    alike = not tolerance or given.dtype == wanted.dtype
    same = _same_bits(given, wanted) if alike else given.astype(np.float64) == wanted.astype(np.float64)
    near = same | agree(given, wanted, tolerance) if tolerance else same
    return Agreement(given=given, expected=wanted, tolerance=tolerance, same=same, near=near)


def agree(given: Array, wanted: Array, tolerance: float) -> Mask:
    """Return which elements have the same bits, or are within the tolerance; a NaN is near a NaN."""
    if not tolerance:
        return _same_bits(given, wanted)
    x, y = given.astype(np.float64), wanted.astype(np.float64)
    finite = np.abs(y[np.isfinite(y)])
    least = tolerance * (float(finite.max()) if finite.size else 0.0)
    with np.errstate(invalid="ignore"):
        close = np.isclose(x, y, rtol=tolerance, atol=tolerance * least, equal_nan=True)
    return np.asarray(close)


def _same_bits(given: Array, wanted: Array) -> Mask:
    """Return which elements of two arrays of one element size have the same bits."""
    left, right = (np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8) for x in (given, wanted))
    return np.asarray((left == right).all(axis=-1))
