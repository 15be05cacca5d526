"""Planes of every format: the exact integers that kernels work on.

Does not know dtypes of users' matrices (see isa.codes), lanes, registers or the order of sums. NumPy
and ml_dtypes decode; an IEEE value then splits exactly into significand and exponent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...isa.codes import values_of
from ...isa.formats import Format

FINITE, INFINITE, NOT_A_NUMBER = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Planes:
    """Numbers as integers, in arrays of one shape.

    value = significand * 2**(exponent - fraction bits). The significand is signed; a subnormal keeps the
    format's smallest exponent and is not normalised. ``special`` is 0 finite, 1 Inf, 2 NaN; an Inf has
    significand +1 or -1, which is its sign.
    """

    significand: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int32]
    special: npt.NDArray[np.int8]
    fraction_bits: int


@in_default_environment
def _split(codes: npt.NDArray[Any], element: Format) -> Planes:
    value = values_of(codes, element)
    special = np.where(np.isnan(value), NOT_A_NUMBER, np.where(np.isinf(value), INFINITE, FINITE))
    finite = np.where(special == FINITE, value, np.sign(value))
    finite = np.where(special == NOT_A_NUMBER, 0.0, finite)
    exponent = np.maximum(np.frexp(finite)[1] - 1, element.minimum_exponent)
    exponent = np.where(finite == 0, element.minimum_exponent, exponent)
    significand = np.where(special == FINITE, np.ldexp(finite, element.fraction_bits - exponent), finite)
    return Planes(
        significand=significand.astype(np.int64),
        exponent=exponent.astype(np.int32),
        special=special.astype(np.int8),
        fraction_bits=element.fraction_bits,
    )


@cache
def _table(element: Format) -> Planes:
    return _split(np.arange(1 << element.bits, dtype=element.code_dtype), element)


def planes(codes: npt.NDArray[Any], element: Format) -> Planes:
    """Return the planes of an array of floating-point codes."""
    if element.bits > 16:
        return _split(codes, element)
    table = _table(element)
    index = codes & codes.dtype.type(element.mask)
    return Planes(
        significand=table.significand[index],
        exponent=table.exponent[index],
        special=table.special[index],
        fraction_bits=element.fraction_bits,
    )


@in_default_environment
def converted(codes: npt.NDArray[Any], source: Format, result: Format) -> npt.NDArray[Any]:
    """Return codes of the same values in a format that holds them all (fp8 to f16, f16 to f32).

    NaN becomes a NaN of the result format.
    """
    with np.errstate(invalid="ignore"):  # a signaling NaN is still a NaN
        return values_of(codes, source).astype(result.dtype).view(result.code_dtype)


def canonical(value: npt.NDArray[Any], element: Format) -> npt.NDArray[Any]:
    """Return codes of numbers of the format's dtype; every NaN is the canonical NaN."""
    codes = np.ascontiguousarray(value).view(element.code_dtype)
    return np.where(np.isnan(value), element.code_dtype.type(element.canonical_nan), codes)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array as the kernels take it: Numba compiles again for read-only arrays."""
    view = array.view()
    view.flags.writeable = False
    return view
