"""Decimals as printf prints them: the nearest codes, and the other codes that print the same text.

``%.9g`` distinguishes all f32 values. With fewer digits a printed number stands for an interval of codes, and
only this interval can be compared. Knows cells of text and formats; does not know what the numbers mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import TraceError
from ...isa.codes import codes_of, values_of
from ...isa.formats import Format

Codes = npt.NDArray[Any]

_INTEGER = re.compile(r"[+-]?\d{1,20}")
_FIXED = re.compile(r"[+-]?\d*\.?(\d*)")
_DECIMAL = re.compile(r"[+-]?(\d*)\.?(\d*)(?:e[+-]?\d+)?", re.IGNORECASE)
_CELL = re.compile(
    r"[+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:e[+-]?\d{1,4})?f?|[+-]?(?:inf|nan)", re.IGNORECASE
)
_SUFFIX = re.compile(r"(?<=[\d.])[fF]$")
_SHORT = 24  # characters of a cell that an error message quotes


@dataclass(frozen=True, kw_only=True)
class Printed:
    """How numbers were printed: with this many ``decimals`` (None: scientific), or this many ``digits``."""

    decimals: int | None
    digits: int
    equality = "what prints the same"
    extent = "as far as it is printed"
    reach = "to the digits printed"

    def __str__(self) -> str:
        fixed = f"{self.decimals} decimals" if self.decimals is not None else ""
        return fixed or f"{self.digits} significant digits"

    @in_default_environment
    def settled(self, codes: Codes, wanted: Codes, element: Format) -> Codes:
        """Return the codes, each replaced by the wanted code where both print the same text."""
        same = codes == wanted
        for rounded in (self._fixed, self._significant):
            with np.errstate(all="ignore"):
                near = rounded(values_of(codes, element)).astype(element.dtype).view(element.code_dtype)
            same |= near == wanted
        settled: Codes = np.where(same, wanted, codes)
        return settled

    def spread(self, wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return how far each number may lie from the number that was printed."""
        digits: npt.NDArray[np.float64] = np.abs(np.nan_to_num(wanted)) * 10.0 ** (1 - self.digits)
        return digits if self.decimals is None else np.maximum(digits, 10.0**-self.decimals)

    def _fixed(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return values if self.decimals is None else np.round(values, self.decimals) + 0.0

    def _significant(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        size = np.abs(np.where(np.isfinite(values) & (values != 0), values, 1))
        scale = 10.0 ** (self.digits - 1 - np.floor(np.log10(size)))
        near: npt.NDArray[np.float64] = np.where(
            np.isfinite(values), np.round(values * scale) / scale, values
        )
        return near


def is_integer(cell: str) -> bool:
    """Return whether a cell is a decimal integer."""
    return bool(_INTEGER.fullmatch(cell))


@in_default_environment
def number_of(cell: str) -> int | float:
    """Return the value of a cell: an integer, a decimal, a hexadecimal float (``%a``), inf or nan.

    Raises TraceError.
    """
    try:
        if is_integer(cell):
            return _checked_64_bits(int(cell))
        return float.fromhex(cell) if "p" in cell.lower() else float(_SUFFIX.sub("", cell))
    except (ValueError, OverflowError):
        raise TraceError(f"{cell[:_SHORT]!r} is neither a value nor a code with 0x") from None


def _checked_64_bits(value: int) -> int:
    """Return the integer; raises OverflowError for an integer that no register pair holds."""
    if not -(1 << 63) <= value < 1 << 64:
        raise OverflowError
    return value


def printed_of(cells: Sequence[str]) -> Printed | None:
    """Return how cells were printed; None for exact cells: integers, and floats in hexadecimal."""
    decimals = [cell for cell in cells if not is_integer(cell) and "p" not in cell.lower()]
    decimals = [cell for cell in decimals if any(digit.isdigit() for digit in cell)]
    if not decimals:
        return None
    fixed = [_FIXED.fullmatch(_SUFFIX.sub("", cell)) for cell in decimals]
    places = max((len(match[1]) for match in fixed if match), default=0)
    digits = [_DECIMAL.fullmatch(_SUFFIX.sub("", cell)) for cell in decimals]
    significant = max((len((match[1] + match[2]).lstrip("0")) for match in digits if match), default=1)
    return Printed(decimals=places if all(fixed) else None, digits=max(significant, 1))


class Decimals(NamedTuple):
    """Numbers ``(n,)`` of a text, and how they were printed."""

    values: npt.NDArray[np.float64]
    printed: Printed


def decimals_in(text: str) -> Decimals | None:
    """Return the numbers of a text that has nothing else; None for other texts, and for integers alone."""
    cells = [cell for cell in re.split(r"[\s,;\t|]+", text) if cell]
    if not cells or not all(_CELL.fullmatch(cell) for cell in cells):
        return None
    printed = printed_of(cells)
    return (
        None if printed is None else Decimals(np.array([float(number_of(cell)) for cell in cells]), printed)
    )


@in_default_environment
def nearest(values: npt.NDArray[Any], element: Format) -> Codes:
    """Return the codes nearest to values; an integer code for an integer. Raises OperandError."""
    if not element.is_float:
        return codes_of(values.astype(np.int64), element, "the text")
    with np.errstate(all="ignore"):
        codes: Codes = values.astype(element.dtype).view(element.code_dtype)
    return codes
