"""Sums of products in one description and one slow routine: every choice that a unit may make differently.

The numbers are exact integers of NumPy, a whole batch at a time. Shares nothing with the kernels and the
rules' own routines but the planes of formats; with the model's choices it gives the model's bits (a test sees
to it). Knows no experiments and no candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warpsim.isa.formats import FORMATS, Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.isa.rules import EmulatedF8, FusedSum, Rule, ScaledGroups
from warpsim.sums.arithmetic.planes import Planes, converted, planes

from ..candidates import paired
from ..operands import Array

_FAR = 62  # bits that a shift of int64 may have


@dataclass(frozen=True, kw_only=True)
class Choices:
    """How a unit sums: the numbers of a rule, and what its other choices are where no rule has a number.

    ``groups`` are stored columns, summed group after group, C with the first one (or added to the rounded sum
    where ``c_last``); ``exact`` is how many columns are added without alignment (ScaledGroups). ``cut`` says
    what becomes of bits below the last one: dropped toward ``zero``, ``down`` as two's complement does, to
    ``nearest``, or kept in a ``sticky`` last bit; ``rounding`` the same of results. ``carry_bits`` are those
    above the largest term.
    """

    groups: tuple[tuple[int, ...], ...]
    fraction_bits: int
    floor: int
    precision: int
    rounding: str
    exact: int = 1
    cut: str = "zero"
    between: str = ""  # rounding of partial sums, where another one
    between_precision: int = 0
    carry_bits: int = 32
    normalised: bool = False  # a product of 2 or more has its own exponent
    zeros_count: bool = False  # so has a product that is zero
    flushed: str = ""  # which of a, b, c, d lose their subnormal numbers
    saturates: bool = False  # the largest number instead of Inf
    small_zero: bool = False  # what rounds to zero keeps its sign
    negative_zero: bool = False  # zeros that are all negative add up to -0
    c_last: bool = False
    last_rounding: str = "even"  # of C and the sum, there; or "zero"
    zero_times_infinity: str = "nan"  # or "infinity", "zero"
    opposed: str = "nan"  # of Infs of both signs; or "positive"
    nan: int = -1  # its code; -1 is the canonical one


def chosen(form: Instruction, rule: Rule) -> Choices:
    """Return the choices of a rule."""
    if isinstance(rule, EmulatedF8):
        places = np.argsort(np.arange(form.stored_k) % 4 // 2, kind="stable")
        step = chosen(form, rule.step)
        length = min(rule.step.length, form.stored_k // 2)
        return replace(step, groups=grouped(places, length), c_last=True)
    assert isinstance(rule, FusedSum | ScaledGroups)
    length = min(rule.length, form.stored_k) if isinstance(rule, FusedSum) else form.stored_k
    return Choices(
        groups=grouped(range(form.stored_k), length),
        fraction_bits=rule.fraction_bits,
        floor=rule.exponent_floor,
        precision=rule.output.precision,
        rounding="even" if rule.output.nearest else "zero",
        exact=rule.group if isinstance(rule, ScaledGroups) else 1,
    )


def grouped(order: Any, length: int) -> tuple[tuple[int, ...], ...]:
    """Return an order of columns in groups of a length."""
    listed = tuple(int(item) for item in order)
    return tuple(listed[start : start + length] for start in range(0, len(listed), length))


# --- terms -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """Numbers ``significand * 2**(exponent - fraction_bits)``; terms are the s of ``(batch, m, s, n)``."""

    significand: Array
    exponent: Array
    fraction_bits: int
    counts: Array  # whether the exponent takes part in the largest
    infinity: Array  # -1, 0, 1
    nan: Array
    negative: Array  # also of zeros


def _plane(codes: Array, element: Format, flush: bool) -> tuple[Planes, Array]:
    found = planes(codes, element)
    negative = (codes & codes.dtype.type(element.sign_bit)) != 0
    if not flush:
        return found, negative
    small = (found.exponent == element.minimum_exponent) & (
        np.abs(found.significand) < 1 << element.fraction_bits
    )
    kept = np.where(small & (found.special == 0), 0, found.significand)
    return Planes(
        significand=kept, exponent=found.exponent, special=found.special, fraction_bits=found.fraction_bits
    ), negative


def _products(operands: Operands, choices: Choices) -> Terms:
    """Return all products ``(batch, m, s, n)``, with the exponents of their scales."""
    form = operands.product
    a, a_negative = _plane(operands.a, form.a, "a" in choices.flushed)
    codes = paired(operands, operands.b)
    b, b_negative = _plane(codes, form.b, "b" in choices.flushed)
    left = {name: getattr(a, name)[..., None] for name in ("significand", "exponent", "special")}
    significand = left["significand"] * b.significand
    exponent = left["exponent"].astype(np.int64) + b.exponent
    special = np.maximum(left["special"], b.special)
    infinite, zero = special == 1, significand == 0
    lost = infinite & zero
    nan = (special == 2) | (lost if choices.zero_times_infinity == "nan" else False)
    negative = a_negative[..., None] ^ b_negative
    sign = np.where(negative, -1, 1)
    infinity = np.where(infinite & ~zero, sign, 0)
    if choices.zero_times_infinity == "infinity":
        infinity = np.where(lost, sign, infinity)
    finite = np.where(special > 0, 0, significand)
    bits = a.fraction_bits + b.fraction_bits
    if choices.normalised:
        high = np.abs(finite) >> (bits + 1) > 0
        exponent, finite, bits = exponent + high, np.where(high, finite, 2 * finite), bits + 1
    counts = (finite != 0) | (choices.zeros_count & (special == 0))
    return Terms(finite, exponent, bits, counts, infinity, nan, negative)


def _scaled(operands: Operands, terms: Terms, choices: Choices) -> Terms:
    """Return products with their scales; of 4-bit kinds the exact sums of so many of them."""
    form = operands.product
    if form.scale is None:
        return terms
    assert operands.scale_a is not None
    assert operands.scale_b is not None
    chunk = np.arange(form.stored_k) * form.scale_chunks // form.stored_k
    sides = [operands.scale_a[:, :, chunk, None], operands.scale_b[:, None, chunk, :]]
    codes = [side & side.dtype.type(form.scale.mask & ~_sign(form.scale)) for side in sides]
    one, other = (planes(side, form.scale) for side in codes)
    exponent = one.exponent.astype(np.int64) + other.exponent
    factor = one.significand * other.significand
    nan = terms.nan | (one.special == 2) | (other.special == 2)
    bits = terms.fraction_bits + one.fraction_bits + other.fraction_bits
    if choices.exact == 1:
        return Terms(
            terms.significand * factor, terms.exponent + exponent, bits,
            terms.counts & (factor != 0), terms.infinity, nan, terms.negative,
        )  # fmt: skip
    shape = (*terms.significand.shape[:2], -1, choices.exact, terms.significand.shape[3])
    units = terms.significand << terms.exponent  # e2m1: no exponent is negative
    exponent, factor = (
        np.broadcast_to(item, units.shape).reshape(shape)[:, :, :, 0] for item in (exponent, factor)
    )
    total = units.reshape(shape).sum(axis=3) * factor
    counts = terms.counts.reshape(shape).any(axis=3) & (factor != 0)
    infinity = np.zeros_like(total)
    return Terms(
        total, exponent, bits, counts, infinity, nan.reshape(shape).any(axis=3),
        terms.negative.reshape(shape).all(axis=3),
    )  # fmt: skip


def _sign(scale: Format) -> int:
    return 0 if scale.exponent_bits == 8 else 0x80


# --- sums ------------------------------------------------------------------------------------------


def computed(operands: Operands, choices: Choices) -> Array:
    """Return codes ``(batch, m, n)`` of D. Where C comes last the products are those of f16, as ptxas
    emits them.
    """
    if choices.c_last and operands.product.a.bits == 8:
        operands = _as_f16(operands)
    form = operands.product
    terms = _scaled(operands, _products(operands, choices), choices)
    zero = np.zeros(operands.c.shape, form.d.code_dtype)
    partial = zero if choices.c_last else _widened(operands.c, form)
    groups = list(_places(choices, terms.significand.shape[2]))
    for number, places in enumerate(groups):
        last = number == len(groups) - 1
        c_is_given = number == 0 and not choices.c_last
        partial = _step(form, _taken(terms, places), partial, choices, last=last, given=c_is_given)
    return _added_last(operands.c, partial, form, choices) if choices.c_last else partial


def _as_f16(operands: Operands) -> Operands:
    form, f16 = operands.product, FORMATS["f16"]
    a, b = (converted(getattr(operands, name), form.format(name), f16) for name in "ab")
    return replace(operands, a=a, b=b, product=replace(form, a=f16, b=f16))


def _places(choices: Choices, count: int) -> Iterator[list[int]]:
    """Yield places of the terms of each group."""
    if choices.exact > 1:
        yield list(range(count))
        return
    yield from (list(group) for group in choices.groups)


def _taken(terms: Terms, places: list[int]) -> Terms:
    def of(array: Array) -> Array:
        return np.broadcast_to(array, terms.significand.shape)[:, :, places]

    return Terms(
        of(terms.significand), of(terms.exponent), terms.fraction_bits,
        of(terms.counts), of(terms.infinity), of(terms.nan), of(terms.negative),
    )  # fmt: skip


def _widened(codes: Array, form: Instruction) -> Array:
    """Return C as a number of D's format, where it is a narrower one."""
    if form.c == form.d:
        return codes
    return codes.view(form.c.dtype).astype(form.d.dtype).view(form.d.code_dtype)


def _step(form: Instruction, terms: Terms, c: Array, choices: Choices, *, last: bool, given: bool) -> Array:
    """Return codes of the sum of one group and the sum so far."""
    plane, c_negative = _plane(c, form.d, given and "c" in choices.flushed)
    counted = np.where(terms.counts, terms.exponent, choices.floor).max(axis=2)
    c_counts = (plane.significand != 0) | (choices.zeros_count & (plane.special == 0))
    largest = np.maximum(counted, np.where(c_counts, plane.exponent, choices.floor))
    largest = np.maximum(largest, choices.floor)
    down = largest[:, :, None] - terms.exponent
    total = _aligned(terms.significand, down, terms.fraction_bits, choices).sum(axis=2)
    finite = np.where(plane.special > 0, 0, plane.significand)
    total = total + _aligned(finite, largest - plane.exponent, plane.fraction_bits, choices)
    total = _wrapped(total, choices)
    rounding, precision = choices.rounding, choices.precision
    if not last:
        rounding, precision = choices.between or rounding, choices.between_precision or precision
    codes = packed(total, largest - choices.fraction_bits, form.d, precision, rounding, choices)
    if choices.negative_zero:
        none = ~(terms.significand != 0).any(axis=2) & (finite == 0)
        minus = none & terms.negative.all(axis=2) & c_negative
        codes = np.where(minus, form.d.code_dtype.type(form.d.sign_bit), codes)
    return _with_specials(codes, terms, plane, form.d, choices)


def _aligned(significand: Array, down: Array, fraction_bits: int, choices: Choices) -> Array:
    """Return terms in units of the last place that is kept."""
    shift = choices.fraction_bits - fraction_bits - down
    left = significand << np.clip(shift, 0, _FAR)
    right = np.clip(-shift, 0, _FAR)
    return np.where(shift >= 0, left, cut(significand, right, choices.cut))


def cut(value: Array, count: Array, how: str) -> Array:
    """Return integers without their lowest bits."""
    magnitude, sign = np.abs(value), np.where(value < 0, -1, 1)
    kept = magnitude >> count
    rest = magnitude - (kept << count)
    half = np.where(count > 0, np.int64(1) << np.maximum(count - 1, 0), np.int64(1) << _FAR)
    if how == "down":
        return value >> count
    if how == "nearest":
        kept = kept + ((rest > half) | ((rest == half) & (kept % 2 == 1)))
    elif how == "away":
        kept = kept + (rest >= half)
    elif how == "sticky":
        kept = kept | (rest > 0)
    return sign * kept


def _wrapped(total: Array, choices: Choices) -> Array:
    """Return the sum in an adder of so many bits above the largest term."""
    bits = choices.fraction_bits + 2 + choices.carry_bits
    if bits >= _FAR:
        return total
    half = np.int64(1) << bits
    wrapped: Array = ((total + half) & (2 * half - 1)) - half
    return wrapped


def packed(
    total: Array, unit: Array, element: Format, precision: int, rounding: str, choices: Choices
) -> Array:
    """Return codes of ``total * 2**unit``, rounded once to so many significant bits."""
    magnitude, negative = np.abs(total), total < 0
    smallest = element.minimum_exponent - (precision - 1)
    place = np.maximum(np.where(magnitude > 0, _bit_length(magnitude) + unit - precision, smallest), smallest)
    shift = place - unit
    signed = np.where(negative, -1, 1) * magnitude
    kept = cut(signed, np.clip(shift, 0, _FAR), {"even": "nearest"}.get(rounding, rounding))
    kept = np.abs(kept) << np.clip(-shift, 0, _FAR)
    code = ((place - smallest) << element.fraction_bits) + (kept << (element.fraction_bits + 1 - precision))
    if "d" in choices.flushed:
        code = np.where(code < 1 << element.fraction_bits, 0, code)
    largest = element.infinity - 1 if choices.saturates else element.infinity
    code = np.where(code >= element.infinity, largest, code)
    code = np.where(
        negative & ((code > 0) | (choices.small_zero & (magnitude > 0))), code | element.sign_bit, code
    )
    return code.astype(element.code_dtype)


def _bit_length(magnitude: Array) -> Array:
    high = magnitude >> 30
    low = np.frexp((magnitude & ((1 << 30) - 1)).astype(np.float64))[1]
    return np.where(high > 0, np.frexp(high.astype(np.float64))[1] + 30, low).astype(np.int64)


def _with_specials(codes: Array, terms: Terms, c: Planes, element: Format, choices: Choices) -> Array:
    """Return the codes, but NaN and Inf where there is one among the terms."""
    c_infinity = np.where(c.special == 1, np.sign(c.significand), 0)
    up = (terms.infinity > 0).any(axis=2) | (c_infinity > 0)
    down = (terms.infinity < 0).any(axis=2) | (c_infinity < 0)
    nan = terms.nan.any(axis=2) | (c.special == 2) | (up & down & (choices.opposed == "nan"))
    kind = element.code_dtype.type
    codes = np.where(down, kind(element.infinity | element.sign_bit), codes)
    codes = np.where(up, kind(element.infinity), codes)
    return np.where(nan, kind(element.canonical_nan if choices.nan < 0 else choices.nan), codes)


def _added_last(c: Array, partial: Array, form: Instruction, choices: Choices) -> Array:
    """Return C and a finished sum, as an adder of IEEE does, which may cut instead."""
    element = form.d
    with np.errstate(all="ignore"):
        terms = [
            np.ascontiguousarray(array).view(element.dtype).astype(np.float64)
            for array in (_widened(c, form), partial)
        ]
        exact = terms[0] + terms[1]
        total = exact.astype(element.dtype)
        if choices.last_rounding == "zero":
            total = np.where(_outside(total, terms), np.nextafter(total, element.dtype.type(0)), total)
    codes = np.ascontiguousarray(total).view(element.code_dtype)
    return np.where(np.isnan(exact), element.code_dtype.type(element.canonical_nan), codes)


def _outside(total: Array, terms: list[Array]) -> Array:
    """Return whether a rounded sum lies farther from zero than the exact one."""
    rest = (terms[0] - total.astype(np.float64)) + terms[1]
    return ((total > 0) & (rest < 0)) | ((total < 0) & (rest > 0))
