"""Themes of operands: distributions, zeros, subnormal numbers, infinities and NaNs, scales."""

from __future__ import annotations

import numpy as np

from ....base.errors import present
from ....isa.codes import codes_of
from ..sums.limits import Limits, largest, top_exponent
from .corner_codes import (
    Rng,
    catalogue,
    encode,
    finite_catalogue,
    near,
    pick,
    random_codes,
    signs,
    small,
    special_catalogue,
    tamed,
    zeros,
)
from .drafts import Draft


def raw(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return raw bit patterns everywhere; scales too."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    d.a, d.b, d.c = (random_codes(form.format(x), getattr(d, x).shape, rng) for x in "abc")
    if form.scale is not None and d.scale_a is not None and d.scale_b is not None:
        d.scale_a = random_codes(form.scale, d.scale_a.shape, rng)
        d.scale_b = random_codes(form.scale, d.scale_b.shape, rng)
    return d


def wide(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return raw bit patterns without infinities and NaNs: any exponents."""
    d = raw(limits, count, rng)
    form = limits.instruction
    d.a, d.b, d.c = (tamed(getattr(d, side), form.format(side)) for side in "abc")
    if form.scale is not None and d.scale_a is not None and d.scale_b is not None:
        d.scale_a, d.scale_b = tamed(d.scale_a, form.scale), tamed(d.scale_b, form.scale)
    return d


def narrow(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return exponents within a few binades, as in real data; a third of the tiles with many zeros."""
    d = Draft(limits, count, rng, free=True)
    spread(d, 3)
    holes = (rng.random(d.a.shape) < 0.6) & (rng.integers(0, 3, count) == 0)[:, None, None]
    d.a = np.where(holes, zeros(limits.instruction.a, d.a.shape, rng), d.a)
    return d


def ordinary(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return normally distributed numbers, rounded to the formats; scales near 1."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    for side in "abc":
        element = form.format(side)
        numbers = rng.standard_normal(getattr(d, side).shape).astype(element.dtype)
        setattr(d, side, codes_of(numbers, element, side))
    d.set_scales(rng.integers(-2, 3, d.lift.shape), plain=False)
    return d


def spread(d: Draft, width: int) -> None:
    """All factors within some binades of the formats' middle, C alike; scales with fractions."""
    form = d.limits.instruction
    middles = [(x.minimum_exponent + top_exponent(x)) // 2 for x in (form.a, form.b)]
    d.a = near(form.a, d.a.shape, width, d.rng, middles[0])
    d.b = near(form.b, d.b.shape, width, d.rng, middles[1])
    d.c = near(form.c, d.c.shape, width + 2, d.rng, sum(middles))
    d.set_scales(d.rng.integers(-2, 3, d.lift.shape), plain=False)


def subnormals(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return subnormal factors and subnormal or zero C; in half of the tiles times something large."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    d.a, d.b, d.c = (small(form.format(x), getattr(d, x).shape, rng) for x in "abc")
    large = encode(form.b, top_exponent(form.b), 0, signs(d.b.shape, rng))
    d.b = np.where((rng.integers(0, 2, count) == 1)[:, None, None], large, d.b)
    d.a = np.where(rng.random(d.a.shape) < 0.4, zeros(form.a, d.a.shape, rng), d.a)
    d.set_scales(rng.integers(-300, 0, (count, 1)))
    return d


def signed_zeros(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return nothing but zeros: all positive, all negative products, mixed; products of zero and anything
    finite.
    """
    d = Draft(limits, count, rng)
    form = limits.instruction
    d.a = np.where(
        signs(d.tiles(d.m, 1), rng), form.a.code_dtype.type(form.a.sign_bit), form.a.code_dtype.type(0)
    )
    d.a = np.broadcast_to(d.a, d.tiles(d.m, d.k)).copy()
    d.b = np.broadcast_to(near(form.b, d.tiles(1, d.n), 2, rng), d.b.shape).copy()
    mixed = d.chosen(0.25)[:, None, None]
    d.a = np.where(mixed, zeros(form.a, d.a.shape, rng), d.a)
    return d


def singles(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return one product a tile of two edge-case codes, given by row and by column; C likewise or zero."""
    d = Draft(limits, count, rng)
    form = limits.instruction
    slot = d.slots(1, anywhere=1.0)[0]
    d.write(slot, pick(rng, catalogue(form.a), d.tiles(d.m)), pick(rng, catalogue(form.b), d.tiles(d.n)))
    d.c = np.where(signs(d.c.shape, rng), pick(rng, catalogue(form.c), d.c.shape), d.c)
    if form.scale is not None and d.scale_a is not None and d.scale_b is not None:
        codes = catalogue(form.scale)
        d.scale_a, d.scale_b = pick(rng, codes, d.scale_a.shape), pick(rng, codes, d.scale_b.shape)
    return d


def crowds(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return finite edge-case codes only: subnormal among the largest numbers, sums that overflow."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    d.a, d.b, d.c = (pick(rng, finite_catalogue(form.format(x)), getattr(d, x).shape) for x in "abc")
    d.set_scales(rng.integers(-3, 4, d.lift.shape), plain=False)
    return d


def specials(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return ordinary tiles with infinities, NaNs and zeros in two slots, of another kind in every row and
    column.

    So all kinds meet: Inf * 0, Inf - Inf, NaN * 0, NaN beside Inf; a third of C is special as well.
    """
    d = narrow(limits, count, rng)
    form = limits.instruction
    k = d.b.shape[1]
    for _ in range(2):
        a_slot, b_slot = rng.integers(0, d.k, count), rng.integers(0, k, count)
        tile = np.arange(count)
        a = pick(rng, np.append(special_catalogue(form.a), np.zeros(3, form.a.code_dtype)), d.tiles(d.m))
        b = pick(rng, np.append(special_catalogue(form.b), np.zeros(3, form.b.code_dtype)), d.tiles(d.n))
        keep_a, keep_b = rng.random(a.shape) < 0.4, rng.random(b.shape) < 0.4
        d.a[tile, :, a_slot] = np.where(keep_a, d.a[tile, :, a_slot], a)
        d.b[tile, b_slot, :] = np.where(keep_b, d.b[tile, b_slot, :], b)
    c = pick(rng, special_catalogue(form.c), d.c.shape)
    d.c = np.where(rng.random(d.c.shape) < 0.35, c, d.c)
    if form.scale is not None and d.scale_a is not None:
        nan = rng.random(d.scale_a.shape) < 0.05
        d.scale_a = np.where(nan, pick(rng, special_catalogue(form.scale), nan.shape), d.scale_a)
    return d


def scale_extremes(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return smallest, largest, zero and NaN scales, varied by row and column; small sums."""
    d = Draft(limits, count, rng, free=True)
    form = limits.instruction
    scale = present(form.scale, "scale")
    shape_a, shape_b = present(d.scale_a, "scale a").shape, present(d.scale_b, "scale b").shape
    spread(d, 1)
    codes = np.append(catalogue(scale), [1, largest(scale), scale.bias << scale.fraction_bits])
    codes = codes.astype(scale.code_dtype)
    d.scale_a, d.scale_b = pick(rng, codes, shape_a), pick(rng, codes, shape_b)
    d.c = near(form.c, d.c.shape, 8, rng, middle=-40)
    return d


def zero_scales(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return zero scales beside the largest scales, in some groups or in all; the other groups and C are
    tiny.

    A group whose scale is zero does not affect the alignment, whatever its products are.
    """
    d = Draft(limits, count, rng, free=True)
    scale = present(limits.instruction.scale, "scale")
    shape_a, shape_b = present(d.scale_a, "scale a").shape, present(d.scale_b, "scale b").shape
    spread(d, 2)
    chunks = d.lift.shape[1]
    zero = rng.random((count, chunks)) < np.array([0.5, 1.0])[rng.integers(0, 2, count), None]
    swap = signs((count, chunks), rng)
    large = largest(scale)
    a = np.where(zero, np.where(swap, large, 0), 1)[:, None, :]
    b = np.where(zero, np.where(swap, 0, large), 1)[:, :, None]
    d.scale_a = np.broadcast_to(a, shape_a).astype(scale.code_dtype)
    d.scale_b = np.broadcast_to(b, shape_b).astype(scale.code_dtype)
    d.c = near(limits.instruction.c, d.c.shape, 8, rng, middle=-40)
    return d
