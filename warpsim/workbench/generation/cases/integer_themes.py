"""What corner cases of integer and 1-bit forms are about: sums exact until the 32 bits end.

As themes.py, for forms whose only corners are the ends of the range, signs, and which elements meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....isa.formats import Format
from ..sums.exact_numbers import Array, decode
from ..sums.limits import Limits
from .corner_codes import Rng, catalogue, random_codes, signs
from .drafts import Draft
from .themes import Theme

_TOP = 1 << 31


def raw(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return raw bit patterns everywhere."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    d.a, d.b, d.c = (random_codes(form.format(x), getattr(d, x).shape, rng) for x in "abc")
    return d


def crowds(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return both ends of each operand's range, 0, 1 and -1 everywhere."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    for side in "abc":
        codes = catalogue(form.format(side))
        setattr(d, side, codes[rng.integers(0, len(codes), getattr(d, side).shape)])
    return d


def alone(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return one product, in another place in every row of all tiles; C near zero."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    d.b[:] = 0 if form.bit_operation == "xor" else _nonzero(form.b, d.b.shape, rng)
    d.a[:] = 0
    place = np.resize(rng.permutation(d.k), d.tiles(d.m))
    d.a[np.arange(count)[:, None], np.arange(d.m), place] = _nonzero(form.a, place.shape, rng)
    d.c = rng.integers(-2, 3, d.c.shape).astype(np.uint32)
    return d


def _nonzero(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    return rng.integers(1, element.mask, shape, np.uint64, endpoint=True).astype(element.code_dtype)


def limits_of_range(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return C for each output such that sums end at an end of the 32 bits, or 1 beside it."""
    d = raw(limits, count, rng) if limits.instruction.sparse is False else _uniform(limits, count, rng)
    goals = np.array([_TOP - 1, _TOP, _TOP - 2, -_TOP, -_TOP - 1, -_TOP + 1, _TOP + 5000, -_TOP - 5000, 0])
    return _aim(d, goals[rng.integers(0, len(goals), d.c.shape)])


def _aim(d: Draft, goal: Array) -> Draft:
    """Set C so that sums are ``goal``, as far as C's range allows."""
    c = np.clip(goal - _sums(d), -_TOP, _TOP - 1)
    d.c = c.astype(np.int64).astype(np.uint32)
    return d


def _uniform(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return random operands in slots: the same metadata in all rows."""
    d = Draft(limits, count, rng)
    form = limits.instruction
    d.a, d.b = (random_codes(form.format(x), getattr(d, x).shape, rng) for x in "ab")
    return d


def _sums(d: Draft) -> Array:
    """Return exact sums of the products, or counts of 1 bits."""
    form = d.limits.instruction
    a, b = (decode(getattr(d, x), form.format(x)).significand for x in "ab")
    ones = {
        "and": lambda: a @ b,
        "xor": lambda: a.sum(-1, keepdims=True) + b.sum(1, keepdims=True) - 2 * a @ b,
    }
    sums: Any = ones[form.bit_operation]() if form.bit_operation else a @ b
    return np.asarray(sums)


def one_sided(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return every product of an output the same, the largest and smallest among them; C at the ends."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    a, b, c = (catalogue(form.format(x)) for x in "abc")
    d.a[:] = a[rng.integers(0, len(a), d.tiles(d.m, 1))]
    d.b[:] = b[rng.integers(0, len(b), d.tiles(1, d.n))]
    d.c = c[rng.integers(0, len(c), d.c.shape)]
    return d


def back_again(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return C at an end of the range, products first away from it and then back: where would it saturate?

    The runs of one sign are 1, 2, 4, 8 … products long; sums of all products are zero, or nearly.
    """
    d = Draft(limits, count, rng)
    form = limits.instruction
    signed = form.b if form.b.signed else form.a
    run = 1 << rng.integers(0, max(d.k.bit_length() - 1, 1), count)
    sign = np.where(np.arange(d.k) // run[:, None] % 2, -1, 1) * np.where(d.signs(), -1, 1)[:, None]
    size = rng.integers(1, signed.mask // 2 + 1, count)
    plus = (size[:, None] * sign).astype(np.int64) & signed.mask
    other = form.a if signed is form.b else form.b
    rest = rng.integers(1, (other.mask >> int(other.signed)) + 1, count)
    values = {"b": plus, "a": rest[:, None] * np.ones_like(plus)}
    if signed is not form.b:
        values = {"a": plus, "b": values["a"]}
    d.a[:] = values["a"][:, None, :].astype(form.a.code_dtype)
    d.b[:] = values["b"][:, :, None].astype(form.b.code_dtype)
    goal = np.where(
        signs(d.c.shape, rng), _TOP - 1 - rng.integers(0, 3, d.c.shape), -_TOP + rng.integers(0, 3, d.c.shape)
    )
    return _aim(d, goal)


INTEGERS: tuple[Theme, ...] = (limits_of_range, alone, one_sided, back_again, crowds, raw)


def integer_themes(limits: Limits) -> tuple[Theme, ...]:
    """Return the themes of an integer or 1-bit form."""
    form = limits.instruction
    signed = (form.a.signed or form.b.signed) and not form.bit_operation
    return tuple(theme for theme in INTEGERS if signed or theme is not back_again)
