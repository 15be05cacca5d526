"""Exact f64 arithmetic in four directions: add, mul, fma, div and sqrt, correctly rounded for all bits.

Knows two ways. The fast way is NumPy's own operation, which rounds to nearest even, and an error-free
transformation (two-sum, Dekker's product), whose sign gives the neighbour to take in the other directions;
it needs operands whose products neither overflow nor lose low bits. Lanes outside that range are computed
separately with Python integers (exact_doubles.py). Takes and returns bits.

Relies on float64 arithmetic that rounds to nearest even and keeps subnormals: the caller sets it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..operation import Values, array, is_recorded
from . import exact_doubles as exact
from .float_bits import FORMATS, is_nan
from .rounding import odd_sum

NAN = (
    "bits of NaN results are inferred: the first source that is a NaN, made quiet, or 0xfff8000000000000 "
    "(CUDART_NAN) where no source is a NaN, as the code does that ptxas generates for div and sqrt"
)
_FORM = FORMATS["f64"]
_QUIET = np.uint64(1 << 51)
_SIGN = np.uint64(1 << 63)
_SPLITTER = np.float64(2**27 + 1)


def add(a: Values, b: Values, rounding: str) -> Values:
    """Return uint64 bits of a + b."""
    x, y = a.view(np.float64), b.view(np.float64)
    near = array(x + y)
    if rounding == "rn":
        return with_nans(near.view(np.uint64), a, b)
    larger = np.abs(x) >= np.abs(y)
    high, low = np.where(larger, x, y), np.where(larger, y, x)
    error = low - (near - high)
    bits = _stepped(near, error, rounding)
    if rounding == "rm":
        bits = np.where((near == 0) & (np.signbit(x) | np.signbit(y)), _SIGN, bits)
    overflow = np.isinf(near) & np.isfinite(x) & np.isfinite(y)
    return with_nans(_repaired(bits, overflow, exact.add, (a, b), rounding), a, b)


def sub(a: Values, b: Values, rounding: str) -> Values:
    """Return uint64 bits of a - b."""
    return with_nans(add(a, b ^ _SIGN, rounding), a, b)


def mul(a: Values, b: Values, rounding: str) -> Values:
    """Return uint64 bits of a * b."""
    x, y = a.view(np.float64), b.view(np.float64)
    near = array(x * y)
    if rounding == "rn":
        return with_nans(near.view(np.uint64), a, b)
    safe = _product_is_safe(a, b)
    bits = _stepped(near, np.where(safe, _product_error(x, y, near), np.float64(0)), rounding)
    unsafe = ~safe & _are_finite(a, b) & (x != 0) & (y != 0)
    return with_nans(_repaired(bits, unsafe, exact.mul, (a, b), rounding), a, b)


def fma(a: Values, b: Values, c: Values, rounding: str) -> Values:
    """Return uint64 bits of a * b + c, rounded once.

    The product is the sum of two float64; three sums, the innermost rounded to odd, leave the exact result as
    a float64 and a small float64 that decides the rounding (Boldo and Melquiond, section 4).
    """
    x, y, z = a.view(np.float64), b.view(np.float64), c.view(np.float64)
    product = array(x * y)
    safe = _product_is_safe(a, b) & (_exponent(c) < 2040)
    near, error = _fused(product, _product_error(x, y, product), z)
    finite = _are_finite(a, b)
    plain = np.where(finite & np.isinf(z), z, product + z)  # a product that overflows is still finite
    bits = _stepped(np.where(safe, near, plain), np.where(safe, error, np.float64(0)), rounding)
    if rounding == "rm":
        bits = np.where((bits & ~_SIGN) == 0, ((a ^ b) | c) & _SIGN, bits)  # no safe result underflows
    unsafe = ~safe & finite & _are_finite(c) & (x != 0) & (y != 0)
    return with_nans(_repaired(bits, unsafe, exact.fma, (a, b, c), rounding), a, b, c)


def div(a: Values, b: Values, rounding: str) -> Values:
    """Return uint64 bits of a / b."""
    x, y = a.view(np.float64), b.view(np.float64)
    near = array(x / y)
    if rounding == "rn":
        return with_nans(near.view(np.uint64), a, b)
    safe = _in_range(a, 300, 1700) & _in_range(b, 300, 1700) & _in_range(near.view(np.uint64), 300, 1700)
    back = near * y
    remainder = (x - back) - _product_error(near, y, back)
    error = np.where(safe, np.copysign(1.0, y) * remainder, np.float64(0))
    unsafe = ~safe & _are_finite(a, b) & (x != 0) & (y != 0)
    return with_nans(_repaired(_stepped(near, error, rounding), unsafe, exact.div, (a, b), rounding), a, b)


def rcp(a: Values, rounding: str) -> Values:
    """Return uint64 bits of 1 / a."""
    return div(np.full_like(a, _FORM.unity), a, rounding)


def sqrt(a: Values, rounding: str) -> Values:
    """Return uint64 bits of the square root of a."""
    x = a.view(np.float64)
    near = array(np.sqrt(x))
    if rounding == "rn":
        return with_nans(near.view(np.uint64), a)
    safe = _in_range(a, 300, 2000)
    square = near * near
    remainder = (x - square) - _product_error(near, near, square)
    bits = _stepped(near, np.where(safe, remainder, np.float64(0)), rounding)
    unsafe = ~safe & _are_finite(a) & (x > 0)
    return with_nans(_repaired(bits, unsafe, exact.sqrt, (a,), rounding), a)


ARITHMETIC: dict[str, Callable[..., Values]] = {
    "add": add, "sub": sub, "mul": mul, "fma": fma, "mad": fma, "div": div, "rcp": rcp, "sqrt": sqrt,
}  # fmt: skip


def _exponent(bits: Values) -> Values:
    """Return the exponent's field, as int64."""
    return ((bits >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)


def _in_range(bits: Values, low: int, high: int) -> Values:
    exponent = _exponent(bits)
    return (exponent > low) & (exponent < high)


def _are_finite(*sources: Values) -> Values:
    finite = _exponent(sources[0]) < 0x7FF
    for source in sources[1:]:
        finite = finite & (_exponent(source) < 0x7FF)
    return finite


def _product_is_safe(a: Values, b: Values) -> Values:
    """Return where the product's error is a float64, and no step of its computation overflows."""
    total = _exponent(a) + _exponent(b)
    return _in_range(a, 60, 2000) & _in_range(b, 60, 2000) & (total > 1200) & (total < 3000)


def _product_error(x: Values, y: Values, product: Values) -> Values:
    """x * y - product, exactly (Dekker), for safe factors."""
    x_high, y_high = _high_half(x), _high_half(y)
    x_low, y_low = x - x_high, y - y_high
    error: Values = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return error


def _high_half(x: Values) -> Values:
    """Return the upper 26 bits (Veltkamp)."""
    scaled = x * _SPLITTER
    high: Values = scaled - (scaled - x)
    return high


def _two_sum(x: Values, y: Values) -> tuple[Values, Values]:
    total = x + y
    other = total - x
    return total, (x - (total - other)) + (y - other)


def _fused(product: Values, error: Values, addend: Values) -> tuple[Values, Values]:
    """product + error + addend as its nearest float64 and a number with the sign of what is missing."""
    first, low = _two_sum(addend, error)
    second, lower = _two_sum(product, first)
    return _two_sum(second, odd_sum(low, lower, "rn"))


def _stepped(near: Values, error: Values, rounding: str) -> Values:
    """Return bits of ``near``, a step further where need be; ``error`` has the sign of exact - near."""
    bits = array(near).view(np.uint64)
    if rounding == "rn":
        return bits
    outward = np.signbit(near) == (error < 0)  # the exact result is larger in magnitude
    wanted = {"rz": ~outward, "rp": error > 0, "rm": error < 0}[rounding]
    step = np.where(outward, np.uint64(1), np.uint64(0xFFFF_FFFF_FFFF_FFFF))
    return np.where(wanted & (error != 0) & ~np.isnan(error), bits + step, bits)


def _repaired(
    bits: Values, lanes: Values, function: Callable[..., int], sources: tuple[Values, ...], rounding: str
) -> Values:
    """Return ``bits``, those of ``lanes`` computed with integers; where they are traced, refuse these."""
    if is_recorded(lanes):
        lanes.refuse()  # type: ignore[attr-defined]
        return bits
    if not lanes.any():
        return bits
    chosen = np.broadcast_to(lanes, bits.shape)
    columns = [np.broadcast_to(source, bits.shape)[chosen].tolist() for source in sources]
    repaired = np.array(bits)
    repaired[chosen] = np.array([function(*lane, rounding) for lane in zip(*columns, strict=True)], np.uint64)
    return repaired


def with_nans(bits: Values, *sources: Values) -> Values:
    """Return ``bits`` with NaN results as NAN says."""
    nan = is_nan(bits, _FORM)
    if not nan.any():
        return bits
    result = np.where(nan, _FORM.nan, bits)
    for source in reversed(sources):
        result = np.where(is_nan(source, _FORM), source | _QUIET, result)
    return result
