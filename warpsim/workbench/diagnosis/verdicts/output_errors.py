"""Which elements of an output are wrong, and what is regular about their places: rows, columns, residues.

Bits and tolerances are compared by programs/launch/array_agreement.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError
from ....programs.launch.array_agreement import Array, Mask, agree

_MODULI = (2, 4, 8, 16, 32, 64, 128)
_LISTED = 8  # residues that are listed


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputError:
    """An output with wrong elements: ``wrong`` is a mask of its shape."""

    argument: int
    name: str
    given: Array
    expected: Array
    wrong: Mask
    tolerance: float

    @property
    def count(self) -> int:
        """How many elements are wrong."""
        return int(self.wrong.sum())

    @property
    def first(self) -> tuple[int, ...]:
        """The place of the first wrong element."""
        return tuple(int(at) for at in np.argwhere(self.wrong)[0])

    def __str__(self) -> str:
        how = f" by more than {self.tolerance:g}" if self.tolerance else ""
        where = f"; {self.pattern}" if self.pattern else ""
        return (
            f"{self.name}: {self.count:,} of {self.wrong.size:,} elements differ{how}{where}; first at "
            f"{list(self.first)}: {self.given[self.first]}, expected {self.expected[self.first]}"
        )

    @property
    def pattern(self) -> str:
        """What is regular about the places, in words; empty where nothing is."""
        if self.wrong.all():
            return "all of it"
        return "; ".join(text for axis in range(self.wrong.ndim) if (text := self._along(axis)))

    def _along(self, axis: int) -> str:
        names = {1: ("element",), 2: ("row", "column")}
        name = names.get(self.wrong.ndim, tuple(f"axis {at} plane" for at in range(self.wrong.ndim)))[axis]
        hit = self.wrong.any(axis=tuple(other for other in range(self.wrong.ndim) if other != axis))
        places = np.flatnonzero(hit)
        if len(places) == hit.size:
            return ""
        if len(places) == 1:
            return f"{name} {places[0]} alone"
        if places[-1] - places[0] + 1 == len(places):
            return f"{name}s {places[0]} to {places[-1]}"
        return next(_residues(name, places, hit.size), "")


def _residues(name: str, places: Array, size: int) -> Iterator[str]:
    """Yield the residues of places by the smallest modulus that holds all and nothing else."""
    for modulus in _MODULI:
        residues = np.unique(places % modulus)
        if size > modulus and len(residues) < modulus:
            every = np.flatnonzero(np.isin(np.arange(size) % modulus, residues))
            if np.array_equal(every, places) and len(residues) <= _LISTED:
                listed = ", ".join(map(str, residues.tolist()))
                yield f"{name}s {name[0]} with {name[0]} mod {modulus} in {{{listed}}}"


def output_error(
    argument: int, name: str, given: Array, expected: npt.ArrayLike, tolerance: float
) -> OutputError | None:
    """Return what is wrong with an output, None where nothing is. Raises OperandError for another shape."""
    wanted = np.asarray(expected)
    if wanted.shape != given.shape:
        raise OperandError(f"expected[{argument}] has shape {wanted.shape}, but {name} has {given.shape}")
    if not tolerance and wanted.dtype != given.dtype:
        raise OperandError(
            f"expected[{argument}] is {wanted.dtype}, but {name} is {given.dtype}: bits are compared unless "
            "there is a tolerance"
        )
    wrong = ~agree(given, wanted, tolerance)
    if not wrong.any():
        return None
    return OutputError(
        argument=argument, name=name, given=given, expected=wanted, wrong=wrong, tolerance=tolerance
    )


_ROUNDED = {1: 2.0**-2, 2: 2.0**-6, 4: 2.0**-10, 8: 2.0**-30}  # by the bytes of an element


def rounding_only(error: OutputError) -> str:
    """Return that values differ by no more than roundings, in words; "" where they differ by more.

    An element near zero may be a sum of large terms, so errors are relative to the output's scale, too.
    """
    given, wanted = error.given.astype(np.float64), error.expected.astype(np.float64)
    if error.given.dtype.kind in "iub" or not np.isfinite([given[error.wrong], wanted[error.wrong]]).all():
        return ""
    scale = float(np.sqrt(np.mean(np.square(wanted[np.isfinite(wanted)]))))
    apart = np.abs(given - wanted) / np.maximum(np.abs(wanted), scale or 1.0)
    if float(apart[error.wrong].max()) > _ROUNDED[error.given.dtype.itemsize]:
        return ""
    codes = np.ascontiguousarray(np.abs(error.expected)).view(f"u{error.expected.dtype.itemsize}")
    after = (codes + codes.dtype.type(1)).view(error.expected.dtype).astype(np.float64)
    ulps = np.where(
        error.wrong,
        np.abs(given - wanted) / np.asarray(after - np.abs(error.expected.astype(np.float64)), np.float64),
        0.0,
    )
    place = np.unravel_index(int(ulps.argmax()), ulps.shape)
    return (
        f"{error.name} differs by rounding only: largest {np.ceil(ulps[place]):.0f} ulp at "
        f"{[int(at) for at in place]}"
    )
