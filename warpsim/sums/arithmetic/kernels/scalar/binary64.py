"""IEEE binary64 fused multiply-add in integers, in the four directed and nearest roundings.

No floating point and no libm: the exact product and the addend are placed into one wide integer, which is
rounded once. The wide integer has eight limbs of 30 bits. With both factors and the addend normalised to 53
bits, the product occupies bits 66 to 171; an addend that ends below bit 2, or a product that ends more than
119 bits below the addend, can only break ties and is replaced by bit 0.
"""

from __future__ import annotations

import numpy as np

from .._jit import Array, kernel
from .rounding import bit_length

_LIMBS, _LIMB = 8, 30
_LIMB_MASK = (1 << _LIMB) - 1
_PRODUCT_AT = 66
_FARTHEST = 119
_FRACTION, _FIELD = 52, 0x7FF
_HIDDEN = 1 << _FRACTION
_SMALLEST = -1074  # exponent of the last bit of a subnormal number
_SIGN = -1 << 63
_INFINITY = _FIELD << _FRACTION
NAN = _INFINITY | 1 << (_FRACTION - 1)  # the NaN that the hardware writes is not known

NEAREST, TOWARD_ZERO, DOWN, UP = 0, 1, 2, 3
ROUNDINGS = {"": NEAREST, "rn": NEAREST, "rz": TOWARD_ZERO, "rm": DOWN, "rp": UP}  # as PTX spells them


@kernel
def _unpacked(code: int) -> tuple[int, int]:
    """Return (significand, normalised to 53 bits, and exponent of its last bit) of a finite code."""
    field = code >> _FRACTION & _FIELD
    significand = code & (_HIDDEN - 1)
    if field:
        return significand | _HIDDEN, field - 1075
    shift = 53 - bit_length(significand)
    return significand << shift, _SMALLEST - shift


@kernel
def _add_at(limbs: Array, value: int, position: int, negative: bool) -> None:
    """Add ``value * 2**position`` (value below 2**60) to the limbs, not yet carried."""
    index, offset = position // _LIMB, position % _LIMB
    low = (value & _LIMB_MASK) << offset
    high = (value >> _LIMB) << offset
    sign = -1 if negative else 1
    limbs[index] += sign * (low & _LIMB_MASK)
    limbs[index + 1] += sign * ((low >> _LIMB) + (high & _LIMB_MASK))
    if index + 2 < _LIMBS:
        limbs[index + 2] += sign * (high >> _LIMB)


@kernel
def _propagate(limbs: Array) -> int:
    """Make every limb a digit; return the carry out of the last."""
    carry = 0
    for i in range(_LIMBS):
        carry += limbs[i]
        limbs[i] = carry & _LIMB_MASK
        carry >>= _LIMB
    return carry


@kernel
def _carried(limbs: Array) -> bool:
    """Propagate carries; return whether the number was negative, leaving its magnitude."""
    carry = _propagate(limbs)
    if carry >= 0:
        return False
    for i in range(_LIMBS):
        limbs[i] = -limbs[i]
    limbs[_LIMBS - 1] -= carry << _LIMB
    _propagate(limbs)
    return True


@kernel
def _top_bit(limbs: Array) -> int:
    """Return the position of the highest set bit, -1 where there is none."""
    for i in range(_LIMBS - 1, -1, -1):
        if limbs[i]:
            return i * _LIMB + bit_length(limbs[i]) - 1
    return -1


@kernel
def _bits_from(limbs: Array, position: int) -> int:
    """Return the number divided by 2**position, truncated; at most 54 bits of it are set."""
    value = 0
    for i in range(_LIMBS - 1, -1, -1):
        shift = i * _LIMB - position
        if shift >= 0:
            value |= limbs[i] << min(shift, 62)
        elif shift > -_LIMB:
            value |= limbs[i] >> -shift
    return value


@kernel
def _any_below(limbs: Array, position: int) -> bool:
    """Return whether any bit below the position is set."""
    for i in range(_LIMBS):
        width = min(max(position - i * _LIMB, 0), _LIMB)
        if limbs[i] & ((1 << width) - 1):
            return True
    return False


@kernel
def _rounds_up(odd: bool, half: bool, rest: bool, negative: bool, mode: int) -> bool:
    """Return whether the magnitude grows, given its last bit, the first dropped bit and the others."""
    if mode == NEAREST:
        return half and (rest or odd)
    if mode == TOWARD_ZERO:
        return False
    return (half or rest) and negative == (mode == DOWN)


@kernel
def _finished(limbs: Array, base: int, negative: bool, mode: int) -> int:
    """Return the code of the magnitude in limbs, bit 0 weighing 2**base."""
    top = _top_bit(limbs)
    cut = max(top - _FRACTION, _SMALLEST - base)
    kept = _bits_from(limbs, cut) if cut <= top else 0
    half = cut - 1 <= top and _bits_from(limbs, cut - 1) & 1 == 1
    rest = _any_below(limbs, min(cut - 1, _LIMBS * _LIMB))
    if _rounds_up(kept & 1 == 1, half, rest, negative, mode):
        kept += 1
    # kept counts units of 2**(base + cut); its hidden bit, if set, carries the field by one. A larger field
    # than this means overflow, and would leave the 64 bits of the code.
    field = base + cut - _SMALLEST
    code = kept + (min(field, _FIELD - 2) << _FRACTION)
    if field > _FIELD - 2 or code >= _INFINITY:
        away = mode == NEAREST or (mode != TOWARD_ZERO and negative == (mode == DOWN))
        code = _INFINITY if away else _INFINITY - 1
    return code | _SIGN if negative else code


@kernel
def fused_multiply_add(a: int, b: int, c: int, mode: int, limbs: Array) -> int:
    """Return the code of ``a * b + c``, all int64 codes; ``limbs`` is scratch space of eight int64."""
    magnitude_a, magnitude_b, magnitude_c = a & ~_SIGN, b & ~_SIGN, c & ~_SIGN
    negative = (a ^ b) < 0
    if magnitude_a > _INFINITY or magnitude_b > _INFINITY or magnitude_c > _INFINITY:
        return NAN
    if magnitude_a == _INFINITY or magnitude_b == _INFINITY:
        if magnitude_a == 0 or magnitude_b == 0:
            return NAN
        if magnitude_c == _INFINITY and (c < 0) != negative:
            return NAN
        return _INFINITY | _SIGN if negative else _INFINITY
    if magnitude_c == _INFINITY:
        return c
    if magnitude_a == 0 or magnitude_b == 0:
        if magnitude_c == 0 and (c < 0) != negative:
            return _SIGN if mode == DOWN else 0
        return c
    return _finite(a, b, c, negative, mode, limbs)


@kernel
def _finite(a: int, b: int, c: int, negative: bool, mode: int, limbs: Array) -> int:
    """Return ``a * b + c`` where nothing is special and the product is not zero."""
    x, x_exponent = _unpacked(a & ~_SIGN)
    y, y_exponent = _unpacked(b & ~_SIGN)
    base = x_exponent + y_exponent - _PRODUCT_AT
    z, z_exponent = _unpacked(c & ~_SIGN) if c & ~_SIGN else (0, base)
    distance = z_exponent - (base + _PRODUCT_AT)
    limbs[:] = 0
    if z and distance > _FARTHEST:
        base = z_exponent - _PRODUCT_AT
        _add_at(limbs, z, _PRODUCT_AT, c < 0)
        _add_at(limbs, 1, 0, negative)
    else:
        low, high = y & _LIMB_MASK, y >> _LIMB
        _add_at(limbs, (x & _LIMB_MASK) * low, _PRODUCT_AT, negative)
        _add_at(limbs, (x >> _LIMB) * low, _PRODUCT_AT + _LIMB, negative)
        _add_at(limbs, (x & _LIMB_MASK) * high, _PRODUCT_AT + _LIMB, negative)
        _add_at(limbs, (x >> _LIMB) * high, _PRODUCT_AT + 2 * _LIMB, negative)
        if z:
            near = distance >= 2 - _PRODUCT_AT
            _add_at(limbs, z if near else 1, _PRODUCT_AT + distance if near else 0, c < 0)
    below_zero = _carried(limbs)
    if _top_bit(limbs) < 0:
        return _SIGN if mode == DOWN else 0
    return _finished(limbs, base, below_zero, mode)


@kernel
def multiply_add_chain(a: Array, b: Array, c: Array, mode: int, result: Array) -> None:
    """Write the code of ``c + a0*b0 + a1*b1 + ...``, one rounding a step, into ``result (batch, m, n)``.

    ``a (batch, m, k)``, ``b (batch, k, n)``, ``c (batch, m, n)`` are int64 codes.
    """
    limbs = np.zeros(_LIMBS, np.int64)
    batches, m, n = result.shape
    for batch in range(batches):
        for i in range(m):
            for j in range(n):
                value = c[batch, i, j]
                for k in range(a.shape[2]):
                    value = fused_multiply_add(a[batch, i, k], b[batch, k, j], value, mode, limbs)
                result[batch, i, j] = value
