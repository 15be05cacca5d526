"""Themes of sums and rounding: carries, cancellation, ties, the ends of the range, the exponent floor."""

from __future__ import annotations

import numpy as np

from ....isa.rules import ScaledGroups
from ..sums.exact_numbers import Array
from ..sums.limits import Limits, top_exponent
from .corner_codes import Rng, encode, pick, signs, special_catalogue, zeros
from .drafts import Draft, reach
from .themes_operands import spread


def carries(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return significands of 1 bits, one exponent and one sign: sums far above the largest term.

    Tiles differ in how many positions are filled; the signs of rows and columns make both signs.
    """
    d = Draft(limits, count, rng)
    form = limits.instruction
    middle = (limits.plain_products.low + limits.plain_products.high) // 2
    filled = np.where(d.chosen(0.4), d.k, rng.integers(1, d.k + 1, count))
    sign_a, sign_b = signs(d.tiles(d.m, 1), rng), signs(d.tiles(1, d.n), rng)
    ones = [(1 << x.fraction_bits) - 1 for x in (form.a, form.b, form.c)]
    low_b, high_b = form.b.minimum_exponent, top_exponent(form.b)
    base_a = np.clip(middle // 2, form.a.minimum_exponent, top_exponent(form.a) - 1)
    base_b = int(np.clip(middle - base_a, low_b, high_b - 1))
    if isinstance(limits.rule, ScaledGroups):
        base_a, base_b = top_exponent(form.a), high_b
    rows = np.clip(base_a + d.row_shift, form.a.minimum_exponent, top_exponent(form.a))
    columns = np.clip(base_b + d.column_shift, low_b, high_b)
    if isinstance(limits.rule, ScaledGroups):
        rows, columns = rows * 0 + base_a, columns * 0 + base_b
    use = (np.arange(d.k) < filled[:, None])[:, None, :]
    d.a = np.where(use, encode(form.a, rows[..., None], ones[0], sign_a), d.a)
    d.b = np.where(use.swapaxes(1, 2), encode(form.b, columns[:, None, :], ones[1], sign_b), d.b)
    exponent = rows[:, :, None] + columns[:, None, :]
    d.set_scales(np.full_like(d.lift, rng.integers(-3, 4)))
    if form.scale is not None and d.scale_a is not None and d.scale_b is not None:
        full = (1 << form.scale.fraction_bits) - 1
        d.scale_a, d.scale_b = d.scale_a | full, d.scale_b | full
        exponent = exponent * (not isinstance(limits.rule, ScaledGroups)) + d.lift[:, :1, None]
    opposite = d.chosen(0.2)[:, None, None]
    d.set_c(exponent, ones[2], sign_a ^ sign_b ^ opposite, where=d.chosen(0.8))
    return d


def cancellations(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return sums that cancel: to zero or the last bit among products, or against a C that is the sum
    negated.

    One product against the rounded C leaves what rounding cut off: a fused operation shows it.
    """
    d = Draft(limits, count, rng)
    role = rng.integers(0, 5, count)
    several = role > 2
    spread(d, 2)
    if d.lift.shape[1] > 1 or not limits.instruction.scale:
        d.set_scales(np.zeros_like(d.lift))
    d.a = np.where(several[:, None, None], d.a, zeros(limits.instruction.a, d.a.shape, rng))
    first, second = d.slots(2)
    plain = limits.plain_products
    middle = np.full(count, (plain.low + plain.high) // 2)
    d.place(first, middle, where=~several)
    last_bit = (role == 1)[:, None] & signs(d.tiles(d.m), rng)
    d.oppose(second, first, where=role < 2, last_bit=last_bit)
    negated = d.cast_c(-d.sums())
    nudge = ((role == 4)[:, None, None] & signs(d.c.shape, rng)).astype(negated.dtype)
    zero = zeros(limits.instruction.c, d.c.shape, rng)
    d.c = np.where((role < 2)[:, None, None], zero, negated + nudge)
    tiny = middle - rng.integers(10, 40, count)
    d.place(d.slots(1)[0], np.maximum(tiny, plain.low), where=(role == 0) & d.chosen(0.3))
    return d


def ties(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return C plus half a unit in its last place (or a quarter, or 1), plus or minus something tiny or
    nothing.

    C is near 1, the largest finite number or the smallest normal number; its last bit is odd or even. In a
    quarter of the tiles a product takes the place of C.
    """
    d = Draft(limits, count, rng)
    form, precision = limits.instruction, limits.output.precision
    element = form.c
    base = pick(rng, [0, top_exponent(element), element.minimum_exponent, 12, -8], (count,))
    near_zero = base == element.minimum_exponent
    half = base - precision + pick(rng, [0, 0, 0, -1, 1], (count,))
    lift = reach(limits, half)
    d.set_scales(lift[:, None])
    target = np.where(limits.instruction.scale is None, half, half - d.lift[:, 0])
    first, second, third = d.slots(3)
    exponent = d.place(first, target, plain=True)
    tiny = target[:, None] - rng.integers(1, 7, d.tiles(d.m))
    d.place(second, tiny, plain=True, where=signs(d.tiles(d.m), rng), negative=d.signs())
    last = 1 << max(element.fraction_bits + 1 - precision, 0)
    odd = rng.integers(0, 2, d.c.shape)
    top = (base == top_exponent(element))[:, None, None]
    fraction = np.where(top, (1 << element.fraction_bits) - last * (1 + odd), last * odd)
    fraction = np.where(rng.random(d.c.shape) < 0.3, (1 << element.fraction_bits) - last, fraction)
    place = exponent + d.lift[:, :1, None] + (base - half)[:, None, None]
    by_product = d.chosen(0.25) & ~top[:, 0, 0]
    negative = signs(d.c.shape, rng)
    d.set_c(np.where(near_zero[:, None, None], base[:, None, None], place), fraction, negative, ~by_product)
    d.place(third, target + precision, where=by_product)
    return d


def edges(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return the smallest results: C subnormal or zero, products of 1/2, 1 and 3/2 of the smallest."""
    d = Draft(limits, count, rng, shift=1)
    form = limits.instruction
    smallest = form.d.minimum_exponent - (limits.output.precision - 1)
    target = smallest + pick(rng, [-1, -1, 0, -2, 1, limits.output.precision - 1], (count,))
    d.set_scales(reach(limits, target)[:, None])
    target = target - (d.lift[:, 0] if form.scale is not None else 0)
    first, second, third = d.slots(3)
    sign = d.signs()
    possible = target >= limits.plain_products.bit
    d.place(first, target, plain=True, negative=sign, where=possible & d.chosen(0.8))
    other = target - rng.integers(-1, 3, count)
    d.place(second, other, plain=True, negative=~sign, where=possible & d.chosen(0.4))
    d.place(third, target - rng.integers(1, 4, count), where=possible & d.chosen(0.3))
    below = 1 << max(form.c.fraction_bits + 1 - limits.output.precision, 0)
    fraction = pick(rng, [0, 1, 2, 3, (1 << form.c.fraction_bits) // below - 1], d.c.shape) * below
    fraction = fraction + np.where(rng.random(d.c.shape) < 0.3, rng.integers(0, below, d.c.shape), 0)
    normal = rng.random(d.c.shape) < 0.2
    code = fraction + (normal * (1 << form.c.fraction_bits))
    code = code.astype(np.uint64) | signs(d.c.shape, rng) * np.uint64(form.c.sign_bit)
    some = rng.random(d.c.shape) < 0.7
    d.c = np.where(some, code.astype(form.c.code_dtype), d.c)
    return d


def floors(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return the smallest results, beside terms at the last place above the exponent floor, or just below."""
    d = Draft(limits, count, rng, shift=0)
    smallest = limits.instruction.d.minimum_exponent - (limits.output.precision - 1)
    last = (limits.step.exponent_floor if limits.step else smallest) - limits.fraction_bits
    _beside_the_smallest(d, last + rng.integers(-2, 2, d.tiles(d.m)))
    subnormal = rng.integers(0, 4, d.c.shape).astype(limits.instruction.c.code_dtype)
    d.c = np.where(d.chosen(0.25)[:, None, None], subnormal, d.c)
    return d


def least_accumulators(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return C = 0 of either sign, or subnormal, beside the smallest results, and terms about where it cuts.

    A zero would cut them if it counted: they lie between the last place above the exponent floor and the last
    place below C's least exponent, or just there where C is subnormal and does count.
    """
    d = Draft(limits, count, rng, shift=0)
    step, c = limits.step, limits.instruction.c
    assert step is not None
    last = c.minimum_exponent - limits.fraction_bits
    lowest = min(step.exponent_floor - limits.fraction_bits, last - 1)
    counts = d.chosen(0.5)[:, None]
    little = rng.integers(np.where(counts, last - 2, lowest), last + 1, d.tiles(d.m))
    _beside_the_smallest(d, little)
    spare = max(c.fraction_bits + 1 - limits.output.precision, 0)  # bits of C that D does not have
    least = pick(rng, [0, 1, 2, 3, 1 << (c.fraction_bits - spare)], d.c.shape) << spare
    sign = signs(d.c.shape, rng) * c.code_dtype.type(c.sign_bit)
    d.c = np.where(counts[:, :, None], least.astype(c.code_dtype) | sign, d.c)
    return d


def _beside_the_smallest(d: Draft, little: Array) -> None:
    """Two products: the smallest result, half of it or twice it, and ``2**little (count, m)``.

    The larger term is mostly the smallest number where results are cut and half of it where they are rounded,
    the small term against it or with it.
    """
    limits, rng, count = d.limits, d.rng, d.count
    form, nearest = limits.instruction, limits.output.nearest
    smallest = form.d.minimum_exponent - (limits.output.precision - 1)
    large = smallest - int(nearest) + pick(rng, [0, 0, 0, 1], (count,))
    plain = limits.plain_products
    lift = reach(limits, (large + little[:, 0] + plain.low - plain.bit) // 2)[:, None]
    first, second = d.slots(2, anywhere=0.1)
    if form.scale_chunks > 1:  # the scales alone decide the alignment: one chunk for each size
        lift = np.where(np.arange(form.scale_chunks) == 0, large[:, None], little[:, :1])
        first, second = first * 0, first * 0 + d.k - 1
    d.set_scales(lift)
    lifts = d.lift if form.scale is not None else np.zeros_like(d.lift)
    sign = d.signs()
    d.place(first, large - lifts[:, 0], plain=True, negative=sign)
    opposite = sign ^ d.chosen(0.2 if nearest else 0.8)
    d.place(second, little - lifts[:, -1:], plain=True, negative=opposite)


def overflows(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return sums about the largest number: of C alone nearly, of a few products, of products beyond it
    that cancel.

    In a quarter of the tiles the first step overflows, and the next steps have the other sign.
    """
    d = Draft(limits, count, rng, shift=1)
    form = limits.instruction
    role = rng.integers(0, 4, count)
    limit = top_exponent(form.d)
    target = np.where(role == 0, limit - limits.output.precision + rng.integers(-1, 2, count), limit)
    target = np.where(role == 2, limits.products.high - rng.integers(0, 3, count), target)
    d.set_scales(reach(limits, target)[:, None])
    wanted = target - (d.lift[:, 0] if form.scale is not None else 0)
    wanted = np.where(role == 1, wanted - rng.integers(0, 4, count), wanted)
    sign = d.signs()
    for place in range(d.k):
        step = limits.groups[place] > 0
        negative = sign ^ (step & (role == 3))
        d.place(np.full(count, place), wanted, negative=negative, where=(role != 2) & d.chosen(0.5))
    first, second, third = d.slots(3)
    d.place(first, wanted, where=role == 2)
    d.oppose(second, first, where=role == 2)
    d.place(third, np.minimum(wanted - limits.fraction_bits + 3, limit - 2 - d.lift[:, 0]), where=role == 2)
    top = limit - rng.integers(0, 2, d.c.shape)
    negative = sign[:, None, None] ^ (rng.random(d.c.shape) < 0.3)
    d.set_c(top, d.random_c(), negative, where=role % 2 == 0)
    full = signs(d.c.shape, rng) & (role == 0)[:, None, None]
    d.set_c(limit + 1, 0, negative, where=full)
    infinite = (rng.random(d.c.shape) < 0.05) & (role != 2)[:, None, None]
    d.c = np.where(infinite, pick(rng, special_catalogue(form.c), d.c.shape), d.c)
    return d
