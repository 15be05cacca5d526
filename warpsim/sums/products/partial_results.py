"""Partial results of a product as numbers: how they are added, and rounded to codes of D.

Does not know what the parts are, nor how they are computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.formats import Format
from ...isa.instruction import Instruction
from ...isa.products import Codes

Matrix = npt.NDArray[Any]


def number(codes: Codes, element: Format) -> Matrix:
    """Return codes as numbers of the arithmetic that adds partial results."""
    if not element.is_float:
        return codes.view(np.int32)
    with np.errstate(invalid="ignore"):
        return codes.view(element.dtype).astype(np.float64 if element.bits == 64 else np.float32)


def added(x: Matrix, y: Matrix, form: Instruction) -> Matrix:
    """Return the sum of partial results of an instruction, or of a partial result and C."""
    if form.d.is_float:
        with np.errstate(all="ignore"):
            return x + y
    total = x.astype(np.int64) + y
    if form.satfinite:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return total.astype(np.int32)


def rounded(value: Matrix, element: Format) -> Codes:
    """Return codes of numbers, rounded to nearest; every NaN is canonical."""
    if not element.is_float:
        return value.view(np.uint32)
    with np.errstate(all="ignore"):
        codes = value.astype(element.dtype).view(element.code_dtype)
    codes[np.isnan(value)] = element.canonical_nan
    return codes
