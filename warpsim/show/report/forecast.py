"""D of a wgmma as its difference from a forecast that the page makes, too: nearly all differences are 0.

The words of D are all but random, and at N = 256 they are most of a page; differences compress to nothing.
The forecast is one fused sum in double precision, made of IEEE 754 operations that cannot round before the
last operation. It need not be right (specials, saturation and sums in several steps are ignored), only the
same here as in static/forecast.js: the page adds the difference, and has D bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.formats import Format
from ...isa.fragments import codes_from
from ...isa.instruction import Instruction
from ...isa.products import Codes, Operands
from ...sums.execution.pipeline import rule_for

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_F32_BIAS, _F32_FRACTION_BITS = 127, 23


def is_forecast(instruction: Instruction) -> bool:
    """Return whether D is given by differences: of wgmma, which has neither scales nor 64-bit registers."""
    return instruction.warps == 4


def differences(instruction: Instruction, operands: Operands, d: npt.NDArray[Any]) -> Codes:
    """Return ``(m, n)``: what to add to the codes of the forecast, modulo their width, for those of D."""
    codes = codes_from(d, instruction, "d")
    found: Codes = codes - _forecast(instruction, operands).astype(codes.dtype)
    return found


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """``significand * 2**(exponent - fraction_bits)``; Inf and NaN count as their fields would as numbers."""

    significand: Floats
    exponent: Integers
    fraction_bits: int

    def times(self, other: _Numbers) -> _Numbers:
        return _Numbers(
            significand=self.significand * other.significand,
            exponent=self.exponent + other.exponent,
            fraction_bits=self.fraction_bits + other.fraction_bits,
        )

    def __getitem__(self, key: Any) -> _Numbers:
        return _Numbers(
            significand=self.significand[key], exponent=self.exponent[key], fraction_bits=self.fraction_bits
        )


def _forecast(form: Instruction, operands: Operands) -> Integers:
    """Return ``(m, n)``: codes of C and all products, cut to units of the largest exponent and summed."""
    rule = rule_for(form)
    terms = [_numbers(operands.c, form.c), *_products(operands)]
    exponent = np.full(operands.c.shape, getattr(rule, "exponent_floor", 0))
    for term in terms:
        np.maximum(exponent, term.exponent, out=exponent, where=term.significand != 0)
    unit = exponent - getattr(rule, "fraction_bits", 0)
    total = np.zeros(operands.c.shape)
    for term in terms:
        total += np.trunc(np.ldexp(term.significand, term.exponent - term.fraction_bits - unit))
    output = getattr(rule, "output", None)
    if output is None:
        return total.astype(np.int64)
    return _codes(np.ldexp(total, unit), form.d, output.precision, output.nearest)


def _products(operands: Operands) -> list[_Numbers]:
    """Return ``(m, n)`` each, along the stored columns of A."""
    form = operands.product
    a, b = _numbers(operands.a, form.a), _numbers(operands.b, form.b)
    stored = np.arange(form.stored_k)
    columns = np.broadcast_to(stored, operands.a.shape) if operands.columns is None else operands.columns
    return [a[:, k, None].times(b[columns[:, k]]) for k in stored]


def _numbers(codes: Codes, element: Format) -> _Numbers:
    wide = codes.astype(np.int64) & element.mask
    negative = wide & element.sign_bit != 0
    if not element.is_float:
        values = np.where(negative, wide - (1 << element.bits), wide)
        return _Numbers(significand=values.astype(float), exponent=np.zeros_like(wide), fraction_bits=0)
    used = wide >> element.ignored_bits
    field = used >> element.fraction_bits & (1 << element.exponent_bits) - 1
    significand = (used & (1 << element.fraction_bits) - 1) + ((field > 0) << element.fraction_bits)
    return _Numbers(
        significand=np.where(negative, -significand, significand).astype(float),
        exponent=np.where(field > 0, field - element.bias, element.minimum_exponent),
        fraction_bits=element.fraction_bits,
    )


def _codes(total: Floats, element: Format, precision: int, nearest: bool) -> Integers:
    """By way of f32, whose bits are cut to the precision or rounded to the element; subnormals are zero."""
    with np.errstate(over="ignore"):
        near = total.astype(np.float32)
    bits = near.view(np.uint32).astype(np.int64)
    shift = _F32_FRACTION_BITS - element.fraction_bits
    if not nearest:
        bits = bits - (np.abs(near) > np.abs(total))
        bits &= -(1 << _F32_FRACTION_BITS + 1 - precision)
    magnitude = (bits & 0x7FFFFFFF) - (_F32_BIAS - element.bias << _F32_FRACTION_BITS)
    rounded = np.maximum(magnitude + (1 << shift >> 1), 0) >> shift
    codes: Integers = rounded | np.where(bits >> 31, element.sign_bit, 0)
    return codes
