"""Arithmetic on keys: a formula's value at a random point of two finite fields.

A key is a uint64: ``x mod Q`` in the upper 32 bits, ``x mod P`` in the lower half, with Q | P - 1. So
``exp2(x) = W ** (x mod Q)`` in the lower half is a homomorphism, exp2(a + b) = exp2(a) exp2(b). The upper
half of what comes of an exponential is ``NONE``: it has no value mod Q. The fields with one exponential are
those of Mirage (Wu et al., OSDI 2025), with 29 and 30 bits in place of 8.

Two formulas that differ as polynomials have the same key with a chance of degree / 2^59, behind an
exponential degree / 2^30. All functions take and return arrays of keys and broadcast. Does not know what a
key stands for.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ....sums.execution.compilation_budget import CompilationBudget, limit_here

Keys = npt.NDArray[np.uint64]
_U = np.uint64


Q = (1 << 29) - 693  # the largest prime below 2^29 whose P is prime, too, and below 2^30: sums do not carry
P = 2 * Q + 1
W = 4  # a square, so that its order is Q
NONE = 1 << 30  # an upper half that stands for no value
_BITS, _LOW = _U(32), _U((1 << 32) - 1)
_P, _Q, _ONE = _U(P), _U(Q), _U(1)
_HIGH_Q, _HIGH_NONE = _U(Q << 32), _U(NONE << 32)
ZERO, ONE = 0, 1 << 32 | 1


class Halves(NamedTuple):
    """The value mod Q, NONE where there is none, and the value mod P."""

    q: Keys
    p: Keys


def halves(keys: Any) -> Halves:
    """Return the two halves of keys."""
    keys = np.asarray(keys, _U)
    return Halves(keys >> _BITS, keys & _LOW)


def joined(q: Any, p: Any) -> Keys:
    """Return keys of their halves."""
    found: Keys = np.asarray(q, _U) << _BITS | np.asarray(p, _U)
    return found


def key_of(value: int) -> int:
    """Return the key of an integer."""
    return value % Q << 32 | value % P


# --- sums and products -------------------------------------------------------------------------------


def _has_none(keys: Keys) -> bool:
    return bool((keys & _HIGH_NONE).any())


def _without_upper(found: Keys, lacking: Keys) -> Keys:
    """Return keys whose upper half is NONE where some operand's is; 0 is 0 in both halves."""
    low = found & _LOW
    none: Keys = np.where(low == 0, low, low | _HIGH_NONE)
    return np.where(lacking & _HIGH_NONE != 0, none, found)


def add(a: Any, b: Any) -> Keys:
    """Return a + b."""
    a, b = np.asarray(a, _U), np.asarray(b, _U)
    total: Keys = a + b
    total -= (total & _LOW >= _P) * _P
    total -= (total >= _HIGH_Q) * _HIGH_Q
    either: Keys = a | b
    return _without_upper(total, either) if _has_none(either) else total


def neg(a: Any) -> Keys:
    """Return -a."""
    q, p = halves(a)
    found = joined(np.where(q == 0, q, _Q - q % _Q), np.where(p == 0, p, _P - p))
    return _without_upper(found, np.asarray(a, _U)) if _has_none(np.asarray(a, _U)) else found


def sub(a: Any, b: Any) -> Keys:
    """Return a - b."""
    return add(a, neg(b))


def _modulo(values: Keys, modulus: np.uint64) -> Keys:
    """Return values mod a constant: NumPy divides by one scalar in vectors, but takes rests one by one."""
    found: Keys = values - values // modulus * modulus
    return found


def mul(a: Any, b: Any) -> Keys:
    """Return a * b."""
    a, b = np.asarray(a, _U), np.asarray(b, _U)
    q = _modulo((a >> _BITS) * (b >> _BITS), _Q)
    found: Keys = q << _BITS | _modulo((a & _LOW) * (b & _LOW), _P)
    either = a | b
    return _without_upper(found, either) if _has_none(either) else found


def fma(a: Any, b: Any, c: Any) -> Keys:
    """Return a * b + c."""
    return add(mul(a, b), c)


def total(keys: Any, axis: int) -> Keys:
    """Return sums along an axis."""
    q, p = halves(keys)
    none = (q & _U(NONE) != 0).any(axis)
    found = joined(_modulo(q.sum(axis, dtype=_U), _Q), _modulo(p.sum(axis, dtype=_U), _P))
    return _without_upper(found, none * _HIGH_NONE) if none.any() else found


_LIMB, _LIMB_MASK = _U(15), _U((1 << 15) - 1)
_LARGE = 1 << 25  # products from which on floating-point matrices are faster than sums of integers
_MOST = 256  # products of 30 and 15 bits that float64 sums exactly
_BUDGET = CompilationBudget(many=limit_here())


def matmul(a: Any, b: Any) -> Keys:
    """Return ``(..., m, n)``: the product of matrices ``(..., m, k)`` and ``(..., k, n)``."""
    a, b = np.asarray(a, _U), np.asarray(b, _U)
    count, k = a.size * b.shape[-1], a.shape[-1]
    if count < _LARGE and a.shape[:-2] == b.shape[:-2] and _BUDGET.earns("keys", count):
        from ....sums.arithmetic.kernels.modular_products import modular_product

        lead = a.shape[:-2]
        left, right = (np.ascontiguousarray(x).reshape(prod(lead), *x.shape[-2:]) for x in (a, b))
        three = np.empty((len(left), a.shape[-2], b.shape[-1]), _U)
        modular_product(Q, P, 30)(left, right, three)
        found = three.reshape(*lead, *three.shape[1:])
    else:
        used = _U(NONE - 1)  # what is NONE is 0
        fields = (a >> _BITS & used, b >> _BITS & used, _Q), (a & _LOW, b & _LOW, _P)
        slices = [slice(i, i + _MOST) for i in range(0, max(k, 1), _MOST)]
        parts = [joined(*(_product(x[..., i], y[..., i, :], m) for x, y, m in fields)) for i in slices]
        found = total(np.stack(parts), 0) if len(parts) != 1 else parts[0]
    if not (_has_none(a) or _has_none(b)):
        return found
    none_a, none_b = a & _HIGH_NONE != 0, b & _HIGH_NONE != 0
    lacking = np.matmul(none_a.astype(float), (b & _LOW != 0).astype(float))
    lacking = lacking + np.matmul((a & _LOW != 0).astype(float), none_b.astype(float))
    return _without_upper(found, (lacking != 0) * _HIGH_NONE)


def _product(a: Keys, b: Keys, modulus: np.uint64) -> Keys:
    """Return the product of matrices modulo a number below 2^30, of at most 256 terms: that of A and of each
    limb of 15 bits of B is exact in float64.
    """
    n = b.shape[-1]
    limbs = np.concatenate([b >> _LIMB & _LIMB_MASK, b & _LIMB_MASK], axis=-1).astype(np.float64)
    found = np.matmul(a.astype(np.float64), limbs).astype(_U)
    high = _modulo(found[..., :n], modulus) << _LIMB
    return _modulo(high + found[..., n:], modulus)


# --- powers, quotients, the exponential --------------------------------------------------------------


def power(a: Any, exponent: int) -> Keys:
    """Return a ** exponent, for an integer."""
    if exponent < 0:
        return power(inv(a), -exponent)
    base, found = np.asarray(a, _U), np.full(np.shape(a), ONE, _U)
    while exponent:
        if exponent & 1:
            found = mul(found, base)
        exponent >>= 1
        if exponent:
            base = mul(base, base)
    return found


def inv(a: Any) -> Keys:
    """Return 1 / a, 0 for 0, computed once for each key."""
    keys, inverse = np.unique(np.asarray(a, _U), return_inverse=True)
    q, p = halves(keys)
    found = joined(_raised(q & _U(NONE - 1), Q - 2, _Q), _raised(p, P - 2, _P))
    return _without_upper(found, keys)[inverse].reshape(np.shape(a))


def _raised(values: Keys, exponent: int, modulus: np.uint64) -> Keys:
    found = np.ones_like(values)
    while exponent:
        if exponent & 1:
            found = _modulo(found * values, modulus)
        values, exponent = _modulo(values * values, modulus), exponent >> 1
    return found


@cache
def _powers_of_w() -> tuple[Keys, Keys]:
    """Return W ** i and W ** (2^15 i), for the limbs of an exponent."""
    low = np.array([pow(W, i, P) for i in range(1 << 15)], _U)
    step = pow(W, 1 << 15, P)
    return low, np.array([pow(step, i, P) for i in range(1 << 14)], _U)


def exp2(a: Any) -> Keys:
    """Return 2 ** a; of what has no value mod Q, as an exponential of an exponential, a hash."""
    a = np.asarray(a, _U)
    q = a >> _BITS
    none = q >= _U(NONE)
    low, high = _powers_of_w()
    safe = np.where(none, _U(0), q)
    p = _modulo(low[safe & _LIMB_MASK] * high[safe >> _LIMB], _P)
    found: Keys = np.where(safe == 0, _U(ONE), p | _HIGH_NONE)
    return np.where(none, hashed("ex2", a), found) if none.any() else found


# --- hashes ------------------------------------------------------------------------------------------

_MIX = (_U(0x9E3779B97F4A7C15), _U(0xBF58476D1CE4E5B9), _U(0x94D049BB133111EB))


def mixed(words: Keys) -> Keys:
    """Return 64 bits that depend on all bits of words (splitmix64)."""
    with np.errstate(over="ignore"):
        words = (words + _MIX[0]) * _U(1)
        words = (words ^ words >> _U(30)) * _MIX[1]
        words = (words ^ words >> _U(27)) * _MIX[2]
    return words ^ words >> _U(31)


def spread(words: Keys) -> Keys:
    """Return keys, none of them 0, that 64 random bits each choose."""
    return joined(_modulo(words >> _BITS, _U(Q - 1)) + _ONE, _modulo(words & _LOW, _U(P - 1)) + _ONE)


@cache
def _name_word(name: str) -> np.uint64:
    data = name.encode()
    return _U(crc32(data) << 32 | crc32(data[::-1] + b"|"))


def hashed(name: str, *keys: Any) -> Keys:
    """Return the key of a function that has no law here, of a name and of arguments.

    It depends on the lower halves alone: that of an argument has a value on all ways to compute it.
    """
    words = np.asarray(mixed(np.asarray(_name_word(name))))
    for each in keys:
        with np.errstate(over="ignore"):
            words = mixed(words * _U(3) + (np.asarray(each, _U) & _LOW))
    return spread(mixed(words))


def random_keys(seed: int, name: str, index: Any) -> Keys:
    """Return a key for each index ``(...)`` of what has a name: the same for the same seed."""
    start = mixed(np.asarray(_name_word(name) ^ _U(seed * 0x9E3779B97F4A7C15 & (1 << 64) - 1)))
    with np.errstate(over="ignore"):
        return spread(mixed(start + np.asarray(index, _U) * _MIX[2]))


def equal(a: Any, b: Any) -> npt.NDArray[np.bool_]:
    """Return where two keys are of one formula, as far as both have halves."""
    differing = np.asarray(a, _U) ^ np.asarray(b, _U)
    none = (np.asarray(a, _U) | np.asarray(b, _U)) & _HIGH_NONE != 0
    found: npt.NDArray[np.bool_] = (differing & _LOW == 0) & (none | (differing == 0))
    return found


def is_exponential(keys: Any) -> npt.NDArray[np.bool_]:
    """Return where keys have no value mod Q: they come of an exponential."""
    found: npt.NDArray[np.bool_] = np.asarray(keys, _U) & _HIGH_NONE != 0
    return found
