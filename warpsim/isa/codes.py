"""Codes of every format: how matrices of NumPy and ml_dtypes dtypes become codes and come back.

Knows values; does not know lanes, registers, or how anything is summed. NumPy and ml_dtypes decode.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.environment import in_default_environment
from ..base.errors import OperandError
from .arrays import as_array
from .formats import Format

_IEEE = frozenset(np.dtype(kind) for kind in (np.float16, np.float32, np.float64))


@in_default_environment
def values_of(codes: npt.NDArray[Any], element: Format) -> npt.NDArray[np.float64]:
    """Return the exact values of floating-point codes; bits that the multiplier ignores are dropped first."""
    kept = element.mask & ~((1 << element.ignored_bits) - 1)
    masked = codes.astype(element.code_dtype) & element.code_dtype.type(kept)
    with np.errstate(invalid="ignore"):  # a signaling NaN is still a NaN
        values: npt.NDArray[np.float64] = masked.view(element.dtype).astype(np.float64)
    return values


def integers(codes: npt.NDArray[Any], element: Format) -> npt.NDArray[np.int64]:
    """Return the values of integer codes."""
    value = codes.astype(np.int64) & element.mask
    return value - ((value & element.sign_bit) << 1)


def codes_of(matrix: npt.ArrayLike, element: Format, what: str) -> npt.NDArray[Any]:
    """Return codes of a matrix given in the format's dtype, as raw codes or, for integers, by value.

    Unsigned integers are raw codes, except that a format of integers takes any signed integer (and
    b1 any integer or bool) by value. Raises OperandError, naming ``what``, for other dtypes and for
    values out of range.
    """
    array = as_array(matrix)
    if array.dtype == element.dtype:
        return _view_codes(array, element)
    if array.dtype.kind == "u" or (array.dtype.kind == "i" and not element.is_float):
        return _check_codes(array, element, what)
    if array.dtype == np.bool_ and not element.is_float:
        return array.astype(element.code_dtype)
    expected = f"{element.dtype} or {element.code_dtype} codes"
    raise OperandError(
        f"{what} has dtype {array.dtype}, but {element} elements come as {expected}: "
        f"convert it first, so that the rounding is yours"
    )


def scale_codes_of(scales: npt.ArrayLike, element: Format, what: str) -> npt.NDArray[Any]:
    """Return codes of block scales, given as codes_of takes them; the top bit of a ue4m3 byte is not part
    of its code. Raises OperandError, naming ``what``.
    """
    array = as_array(scales)
    if array.dtype == np.uint8:
        return array & np.uint8(element.mask)
    return codes_of(array, element, what)


def _view_codes(array: npt.NDArray[Any], element: Format) -> npt.NDArray[Any]:
    codes: npt.NDArray[Any] = array.copy(order="C").view(element.code_dtype)
    codes &= element.code_dtype.type(element.mask)
    return codes


def _check_codes(array: npt.NDArray[Any], element: Format, what: str) -> npt.NDArray[Any]:
    by_value = array.dtype.kind == "i"
    low, high = (-element.sign_bit, element.mask ^ element.sign_bit) if by_value else (0, element.mask)
    wrong = (array < low) | (array > high)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise OperandError(f"{what}{list(place)} is {array[place]}, outside {low}..{high} of {element}")
    codes: npt.NDArray[Any] = array.astype(element.code_dtype)
    codes &= element.code_dtype.type(element.mask)
    return codes


def matrix_of(codes: npt.NDArray[Any], element: Format) -> npt.NDArray[Any]:
    """Return codes as a matrix of the format's dtype; the inverse of codes_of."""
    codes = np.ascontiguousarray(codes.astype(element.code_dtype, copy=False))
    if element.is_float or element.bits >= 8:
        matrix: npt.NDArray[Any] = codes.view(element.dtype)
        return matrix
    return integers(codes, element).astype(element.dtype)


def zero_ranks(matrix: npt.NDArray[Any], element: Format) -> npt.NDArray[np.uint8]:
    """Return for each element which is kept before others: 2 for what is not zero, 1 for -0, 0 for +0.

    Takes the same matrices as magnitudes. The sign is the highest bit of an IEEE format: what is left of -0
    without it is zero.
    """
    if matrix.dtype.kind == "u":
        matrix = matrix_of(codes_of(matrix, element, "A"), element)
    if matrix.dtype not in _IEEE:
        with np.errstate(invalid="ignore"):  # a signaling NaN is still a NaN
            matrix = matrix.astype(np.float64)
    bits = np.ascontiguousarray(matrix).view(f"u{matrix.dtype.itemsize}")
    ranks: npt.NDArray[np.uint8] = (bits != 0).view(np.uint8) + ((bits << bits.dtype.type(1)) != 0)
    return ranks


@in_default_environment
def magnitudes(matrix: npt.NDArray[Any], element: Format) -> npt.NDArray[np.float64]:
    """|value| of each element, for choosing what to keep; -1 marks +0, so that -0 outlives it, and a NaN
    counts as Inf.

    Takes the same matrices as codes_of, and any other floating-point array as it stands.
    """
    if matrix.dtype.kind == "u":
        matrix = matrix_of(codes_of(matrix, element, "A"), element)
    with np.errstate(invalid="ignore"):  # a signaling NaN is still a NaN
        value = matrix.astype(np.float64)
    size = np.where(np.isnan(value), np.inf, np.abs(value))
    return np.where((value == 0) & ~np.signbit(value), -1.0, size)
