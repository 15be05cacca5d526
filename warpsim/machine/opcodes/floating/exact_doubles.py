"""Correctly rounded f64 operations on one lane at a time, with Python's integers.

Knows finite, nonzero operands (``fma``: a nonzero product) as bits, and returns bits. Slow and free of
floating point: what doubles.py computes for lanes that its error-free transformations do not cover.
"""

from __future__ import annotations

from math import isqrt

_FRACTION = 52
_LOWEST = -1074  # exponent of the last bit of a subnormal number
_TOP = 971  # of the largest number
_SIGN = 1 << 63
_INFINITY = 0x7FF << _FRACTION


def add(a: int, b: int, rounding: str) -> int:
    """Return bits of a + b, of which the sum is not zero."""
    return _rounded_sum(_parts(a), _parts(b), rounding)


def mul(a: int, b: int, rounding: str) -> int:
    """Return bits of a * b."""
    return _rounded(*_product(a, b), rounding)


def fma(a: int, b: int, c: int, rounding: str) -> int:
    """Return bits of a * b + c, rounded once."""
    return _rounded_sum(_product(a, b), _parts(c), rounding)


def div(a: int, b: int, rounding: str) -> int:
    """Return bits of a / b: 120 bits of quotient, the last set where there is a remainder."""
    x, x_exponent = _parts(a)
    y, y_exponent = _parts(b)
    quotient, remainder = divmod(abs(x) << 120, abs(y))
    quotient = quotient << 1 | (remainder != 0)
    return _rounded(quotient if x * y > 0 else -quotient, x_exponent - y_exponent - 121, rounding)


def sqrt(a: int, rounding: str) -> int:
    """Return bits of the square root of a, positive: 80 bits or more, the last set where it is not exact."""
    x, exponent = _parts(a)
    x, exponent = (x << 161, exponent - 161) if exponent & 1 else (x << 160, exponent - 160)
    root = isqrt(x)
    return _rounded(root << 1 | (root * root != x), exponent // 2 - 1, rounding)


def _parts(bits: int) -> tuple[int, int]:
    """Return a signed integer and the exponent of its last bit."""
    field, fraction = bits >> _FRACTION & 0x7FF, bits & (1 << _FRACTION) - 1
    significand = fraction | (field != 0) << _FRACTION
    return (-significand if bits & _SIGN else significand), max(field, 1) + _LOWEST - 1


def _product(a: int, b: int) -> tuple[int, int]:
    x, x_exponent = _parts(a)
    y, y_exponent = _parts(b)
    return x * y, x_exponent + y_exponent


def _rounded_sum(a: tuple[int, int], b: tuple[int, int], rounding: str) -> int:
    exponent = min(a[1], b[1])
    total = (a[0] << a[1] - exponent) + (b[0] << b[1] - exponent)
    if not total:  # of operands with different signs, or it would be a product of zero
        return _SIGN if rounding == "rm" else 0
    return _rounded(total, exponent, rounding)


def _rounded(value: int, exponent: int, rounding: str) -> int:
    """Return bits of value * 2**exponent, value not zero."""
    sign, magnitude = (_SIGN if value < 0 else 0), abs(value)
    last = max(exponent + magnitude.bit_length() - 1 - _FRACTION, _LOWEST)  # of the result's last bit
    shift = last - exponent
    kept, rest = (magnitude >> shift, magnitude & (1 << shift) - 1) if shift > 0 else (magnitude << -shift, 0)
    half = 1 << shift - 1 if shift > 0 else 1
    up = {
        "rn": rest > half or (rest == half and kept & 1),
        "rz": False,
        "rm": rest and sign,
        "rp": rest and not sign,
    }[rounding]
    kept += bool(up)
    if last > _TOP or (last == _TOP and kept >> _FRACTION + 1):
        away = {"rn": True, "rz": False, "rm": bool(sign), "rp": not sign}[rounding]
        return sign | (_INFINITY if away else _INFINITY - 1)
    # The fraction's top bit, where set, adds 1 to the exponent's field.
    return sign | ((last - _LOWEST) << _FRACTION) + kept
