"""Themes of alignment: terms far apart, zeros, and what takes part in the largest exponent.

Each theme drafts tiles (see drafts.py) for the arithmetic of an instruction on its target.
"""

from __future__ import annotations

import numpy as np

from ..sums.exact_numbers import Array
from ..sums.limits import Limits, largest, top_exponent
from .corner_codes import Rng, encode, random_codes, signs, small, tamed, zeros
from .drafts import Draft


def gaps(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return a large and some small terms whose exponents lie F - 1 to F + 2 apart, another gap in every row.

    In turn two products, C above a product, C below a product; where C comes last, or in a quarter of the
    tiles of a chain, the sum of the step before takes the place of C. Mostly another term cancels the large
    term, so that the result is what alignment left of the small term; in half of the tiles the small product
    fills the rest of its step: what each loses must not add up.
    """
    d = Draft(limits, count, rng)
    role = rng.integers(0, 3, count)
    cancel = d.chosen(0.75)
    gap = limits.fraction_bits + rng.integers(-1, 3, d.tiles(d.m))
    most = gap.max(1)
    plain = limits.plain_products
    high = np.where(cancel, plain.high, min(plain.high, top_exponent(limits.instruction.d) - 3))
    low = np.minimum(plain.low + most, high)
    large = rng.integers(low, np.minimum(high, low + 10), endpoint=True)
    large = np.where(role == 2, rng.integers(np.maximum(plain.low, high - 8), high + 1), large)
    small_exponent = large[:, None] - np.where((role == 2)[:, None], 0, gap)
    before = _partial_sums_as_c(limits, d, role)
    first, second, third = _later_slots(limits, d, before)
    sign, spread = d.signs(), d.chosen(0.5)
    for place in range(d.k):
        fill = (limits.groups[first] == limits.groups[place]) & (role != 2) & d.chosen(0.3)
        d.place(np.full(count, place), small_exponent, where=fill & spread)
    d.place(third, small_exponent, where=role != 2)
    exponent = d.place(first, large, negative=sign, plain=False, where=role != 1)
    d.oppose(second, first, where=cancel & (role != 1))
    partner = d.place(second, large, negative=~sign, plain=True, where=cancel & (role == 1))
    partner = np.where((cancel & (role == 1))[:, None, None], partner, exponent)
    lift = d.lift[:, :1, None]
    c_gap = limits.fraction_bits + rng.integers(-1, 3, d.c.shape)
    d.set_c(partner + lift, 0, sign[:, None, None], where=(role == 1) & ~before)
    d.set_c(exponent + lift - c_gap, d.random_c(), signs(d.c.shape, rng), where=(role == 2) & ~before)
    earlier = np.zeros(count, np.int64)
    partial = large[:, None] - np.where((role == 1)[:, None], 0, gap)
    d.place(earlier, partial, plain=True, negative=sign, where=before & (role == 1))
    d.place(earlier, partial, negative=sign, where=before & (role == 2))
    return d


def _partial_sums_as_c(limits: Limits, d: Draft, role: Array) -> Array:
    """Return tiles in which the sum of the step before stands for C."""
    if limits.steps == 1:
        return np.zeros(d.count, np.bool_)
    return (role > 0) & (np.ones(d.count, np.bool_) if limits.emulated else d.chosen(0.25))


def _later_slots(limits: Limits, d: Draft, before: Array) -> tuple[Array, Array, Array]:
    """Return three slots of one step; of the second step where the first stands for C."""
    slots = np.stack(d.slots(3))
    later = np.flatnonzero(limits.groups == min(1, limits.groups.max()))
    chosen = np.stack([np.resize(d.rng.permutation(later), 3) for _ in range(d.count)], axis=1)
    slots = np.where(before, chosen, slots)
    return slots[0], slots[1], slots[2]


def counterweights(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return C cancelled by 1, 2, 4 or 8 equal products; the others F - 1 to F + 2 binades below C.

    Formats of small range cannot cancel a C that is large enough to cut their products in any other way. The
    equal terms are the first of their step and the last by turns, so that any place is cut.
    """
    d = Draft(limits, count, rng)
    plain = limits.plain_products
    inside = np.flatnonzero(limits.groups == (1 if limits.emulated else limits.groups[0]))
    several = rng.integers(0, max(len(inside).bit_length() - 1, 1), count)
    several = np.where(d.chosen(0.5), several, several.max())
    highest = np.full(count, plain.high)
    if limits.emulated:  # a product of the step before stands for C
        highest = min(plain.high, top_exponent(limits.instruction.d)) - several
    high = np.where(d.chosen(0.6), highest, rng.integers(plain.low, highest + 1))
    gap = limits.fraction_bits + rng.integers(-1, 3, d.tiles(d.m))
    order = np.where(np.arange(count) % 2, inside[::-1, None], inside[:, None])  # (places, count)
    for place in order:
        d.place(place, (high + several)[:, None] - gap, where=d.chosen(0.5))
    tile, slot, sign = np.arange(count), order[0], d.signs()
    exponent = d.place(slot, high, plain=True, negative=sign)
    for number, place in enumerate(order[1:], 1):
        d.write(place, d.a[tile, :, slot], d.b[tile, slot, :], where=number < 1 << several)
    if limits.emulated:
        d.place(slot * 0, high + several, plain=True, negative=~sign)
        return d
    top = exponent + several[:, None, None] + d.lift[:, :1, None]
    d.set_c(top, d.random_c() * d.chosen(0.2)[:, None, None], ~sign[:, None, None])
    return d


def leaders(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return one product larger than all other terms, of either sign, in the first place of its step or
    the last.

    Two or four smaller terms cancel it; the rest, or C, lie F binades below: a model that leaves the largest
    out of the alignment keeps what it cuts.
    """
    d = Draft(limits, count, rng, shift=0)
    group = rng.integers(0, limits.groups.max() + 1, count)
    places = [np.flatnonzero(limits.groups == chosen) for chosen in group]
    turns = np.arange(count) % 2  # the first place leads, and the last
    order = np.stack([np.roll(inside, turn) for inside, turn in zip(places, turns, strict=True)])
    several = 1 + (d.chosen(0.3) & (order.shape[1] > 5))
    high = limits.plain_products.high - rng.integers(0, 3, count)
    gap = limits.fraction_bits + rng.integers(-1, 3, d.tiles(d.m))
    sign = d.signs()
    top = d.place(order[:, 0], high, plain=True, negative=sign) + d.lift[:, :1, None]
    c = top - limits.fraction_bits + rng.integers(-2, 3, d.c.shape)
    d.set_c(c, d.random_c(), signs(d.c.shape, rng), where=np.arange(count) // 2 % 2 == 0)
    for number in range(1, order.shape[1]):
        helps = number <= 1 << several
        d.place(order[:, number], high - several, plain=True, negative=~sign, where=helps)
        within = gap.max(1) <= high - limits.plain_products.low + 2  # what cannot be so small is left out
        d.place(order[:, number], high[:, None] - gap, where=~helps & within & d.chosen(0.6))
    return d


def leading_zeros(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return a subnormal times a large factor, cancelled or not, and terms F - 3 to F + 1 binades below.

    Its leading zeros do not move the alignment: what lies below is cut as if they were set.
    """
    d = Draft(limits, count, rng, shift=0)
    form = limits.instruction
    first, second, third = d.slots(3)
    swapped = d.signs()
    exponent = np.where(
        swapped,
        form.b.minimum_exponent + top_exponent(form.a),
        form.a.minimum_exponent + top_exponent(form.b),
    )
    gap = limits.fraction_bits + rng.integers(-3, 2, d.tiles(d.m))
    for place in range(d.k):
        d.place(np.full(count, place), exponent[:, None] - gap, where=d.chosen(0.3))
    d.place(third, exponent[:, None] - gap)
    tiny = [small(x, d.tiles(size), rng) for x, size in ((form.a, d.m), (form.b, d.n))]
    huge = [encode(x, np.full(d.tiles(size), top_exponent(x))) for x, size in ((form.a, d.m), (form.b, d.n))]
    a, b = (np.where(swapped[:, None] ^ bool(side), huge[side], tiny[side]) for side in (0, 1))
    d.write(first, a, b)
    d.oppose(second, first, where=d.chosen(0.5))
    c = exponent[:, None, None] + d.lift[:, :1, None] - limits.fraction_bits + rng.integers(-2, 4, d.c.shape)
    d.set_c(c, d.random_c(), signs(d.c.shape, rng), d.chosen(0.5))
    return d


def leading_carries(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return a product of 2 or more times its power of two, cancelled, and terms F - 1 to F + 1 binades
    below.

    Its carry does not move the alignment: a model that aligns by the leading bit cuts one bit more of them.
    """
    d = Draft(limits, count, rng, shift=0)
    form, plain = limits.instruction, limits.plain_products
    first, second, third = d.slots(3, anywhere=0)
    exponent = plain.high - rng.integers(0, min(plain.high - plain.low, 8), count, endpoint=True)
    low_b, high_b = form.b.minimum_exponent, top_exponent(form.b)
    least = np.maximum(exponent - high_b, form.a.minimum_exponent)
    of_a = rng.integers(least, np.minimum(exponent - low_b, top_exponent(form.a)), endpoint=True)
    gap = limits.fraction_bits + rng.integers(-1, 2, d.tiles(d.m))
    d.place(third, exponent[:, None] - gap, where=gap.max(1) <= exponent - plain.low)
    ones = [(1 << x.fraction_bits) - 1 for x in (form.a, form.b)]
    a, b = encode(form.a, of_a, ones[0]), encode(form.b, exponent - of_a, ones[1], d.signs())
    d.write(first, np.repeat(a[:, None], d.m, 1), np.repeat(b[:, None], d.n, 1))
    d.oppose(second, first)
    c = exponent[:, None, None] + d.lift[:, :1, None] - limits.fraction_bits + rng.integers(-1, 2, d.c.shape)
    d.set_c(c, d.random_c(), signs(d.c.shape, rng), d.chosen(0.7))
    return d


def zero_products(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return zeros times the largest numbers beside tiny terms: a zero has no say in the alignment."""
    d = Draft(limits, count, rng, shift=0)
    form = limits.instruction
    low = max(limits.plain_products.low, limits.smallest)  # so that D shows what is left
    target = np.where(d.chosen(0.7), rng.integers(low, low + 14, count), low + 20)
    for place in range(d.k):
        d.place(np.full(count, place), target + rng.integers(0, 3, count), where=d.chosen(0.4))
    slots = d.slots(2)
    for slot, side in zip(slots, rng.permutation(2), strict=True):
        huge = encode(form.format("ab"[side]), top_exponent(form.format("ab"[side])))
        a = huge if side == 0 else zeros(form.a, d.tiles(d.m), rng)
        b = zeros(form.b, d.tiles(d.n), rng) if side == 0 else huge
        d.write(slot, np.broadcast_to(a, d.tiles(d.m)), np.broadcast_to(b, d.tiles(d.n)))
    top = target + d.lift[:, 0] + rng.integers(-30, 1, count)
    d.set_c(
        top[:, None, None] + rng.integers(-6, 3, d.c.shape),
        d.random_c(),
        signs(d.c.shape, rng),
        d.chosen(0.7),
    )
    return d


def chains(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return a large term in one place, its negative in another, one small unit everywhere else.

    What is left counts the terms added after both: it shows the order and length of the steps. Rows have
    the large terms in different places where one factor's range is enough; C is either at times.
    """
    d = Draft(limits, count, rng, shift=0)
    form = limits.instruction
    a = form.a
    unit = max(a.minimum_exponent, top_exponent(a) - limits.fraction_bits - 5)
    d.a[:] = encode(a, unit)
    d.b[:] = encode(form.b, 0)
    tile, row = np.arange(count)[:, None], np.arange(d.m)
    first, second = (rng.integers(0, d.k, d.tiles(d.m)) for _ in range(2))
    top = top_exponent(a) - (1 if a.bits > 8 else 0)
    d.a[tile, row, first] = encode(a, top)
    d.a[tile, row, second] = encode(a, top, 0, True)
    d.set_scales(np.zeros_like(d.lift))
    use = d.chosen(0.5)
    d.set_c(top, 0, first[:, :, None] % 2 == 1, where=use)
    spoiled = use[:, None] & np.ones(d.tiles(d.m), np.bool_)
    d.a[tile, row, first] = np.where(spoiled, encode(a, unit), d.a[tile, row, first])
    minus = encode(a, top, 0, first % 2 == 0)
    d.a[tile, row, second] = np.where(spoiled, minus, d.a[tile, row, second])
    return d


def group_gaps(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return scaled groups whose scales lie F - 1 to F + 2 binades apart, in either order, and C beside them.

    The larger group is cancelled by C, or by another of its own products: then it still sets the alignment.
    At times one product is all that is left, beside C or without it: about a unit of the alignment.
    """
    d = Draft(limits, count, rng)
    gap = limits.fraction_bits - 1 + rng.integers(0, 4, count)
    base = rng.integers(-8, 9, count)
    chunks = d.lift.shape[1]
    upper = rng.integers(0, chunks, count)
    apart = np.arange(chunks) != upper[:, None]
    d.set_scales(base[:, None] - gap[:, None] * apart, plain=False)
    width = d.k // chunks
    role = rng.integers(0, 3, count)
    zero, sign, single = np.zeros(count, np.int64), d.signs(), d.chosen(0.4)
    own = np.where(single, role > 0, d.chosen(0.5))
    for place in range(d.k):
        inside = place // width == upper
        d.place(zero + place, rng.integers(0, 3, count), where=~inside & ~single & d.chosen(0.4))
    d.place((upper * width + width) % d.k, gap - limits.fraction_bits, where=single & (chunks > 1))
    d.place(upper * width, zero, plain=True, negative=sign)
    d.oppose(upper * width + 1, upper * width, where=own)
    c = base + np.where(role == 1, -gap, np.where(role == 2, gap, 0))
    rows = d.random_c() * (role > 0)[:, None, None]
    d.set_c(
        c[:, None, None], rows, ~sign[:, None, None] ^ (signs(d.c.shape, rng) & (role > 0)[:, None, None])
    )
    return d


def floor_crowds(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return scaled products in every place, their lowest bits at and below the exponent floor."""
    d = Draft(limits, count, rng, free=True)
    form, step = limits.instruction, limits.step
    assert step is not None
    d.a, d.b = (tamed(random_codes(form.format(x), getattr(d, x).shape, rng), form.format(x)) for x in "ab")
    together = d.chosen(0.7)[:, None, None]  # of one sign: narrow formats need all products to reach D at all
    for side in "ab":
        sign = form.format(side).code_dtype.type(form.format(side).sign_bit)
        codes = np.where(together, getattr(d, side) & ~sign, getattr(d, side))
        most = rng.random(codes.shape) < rng.random((count, 1, 1)) / 2  # so that sums spread out
        setattr(d, side, np.where(most, form.format(side).code_dtype.type(largest(form.format(side))), codes))
    unit = step.exponent_floor - limits.fraction_bits
    d.set_scales((unit - limits.plain_products.bit - rng.integers(0, 3, count))[:, None])
    return d
