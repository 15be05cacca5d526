"""Operands that break arithmetic: nasty codes, and dot products directed at the corners of each rule.

What is compared, and with what: `arithmetics` lists every distinct arithmetic of every form on every
target, and each function of `FLOATS` and `INTEGERS` makes dot products for one of them from a seeded
generator. They know the formats' bit fields and the rules' numbers, never how a result is computed. As in
TestFloat, few inputs are random: most sit at an edge, where rules with slightly different numbers part.

Words: a *dot* is one element of D with its own row of A, column of B and element of C. The factors of a
sparse dot are given in stored order; which rows of B they meet, and what lies in the others, is the work of
`operands`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import warpsim
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.isa.rules import FusedMultiplyAdd, FusedSum, Output, Rule, ScaledGroups
from warpsim.sums.execution.pipeline import rule_for

Array = npt.NDArray[Any]
Rng = np.random.Generator

# --- every distinct arithmetic ---------------------------------------------------------------------


def arithmetic(instruction: Instruction) -> tuple[Any, ...]:
    """All that the result of a dot depends on besides its operands."""
    form = instruction
    formats = (form.a, form.b, form.c, form.d, form.scale)
    modifiers = (form.scale_chunks, form.satfinite, form.rounding, form.bit_operation)
    return (rule_for(form).bare, *map(str, formats), *modifiers, str(form.pattern), form.stored_k)


@cache
def arithmetics() -> tuple[Instruction, ...]:
    """One instruction for each distinct arithmetic of all forms of all targets, the first that has it."""
    found: dict[tuple[Any, ...], Instruction] = {}
    for target in ARCHITECTURES:
        for instruction in warpsim.instructions(target):
            found.setdefault(arithmetic(instruction), instruction)
    return tuple(found.values())


def name(instruction: Instruction) -> str:
    """A short name for test ids and tables: target, then what the mnemonic adds to the opcode."""
    spelled = instruction.mnemonic.removeprefix("mma.").replace("sync.aligned.", "").replace("row.col.", "")
    return f"{instruction.target} {spelled}"


# --- codes -----------------------------------------------------------------------------------------


def largest(element: Format) -> int:
    """The largest finite code, without its ignored bits."""
    return element.largest_finite >> element.ignored_bits


def top_exponent(element: Format) -> int:
    """The exponent of the largest finite number."""
    return (largest(element) >> element.fraction_bits) - element.bias


def encode(element: Format, exponent: Any, fraction: Any = 0, negative: Any = False) -> Array:
    """Codes of ``1.fraction * 2**exponent``; of ``2**exponent`` among subnormals (0 below them); at most the
    largest finite number."""
    exponent = np.minimum(np.asarray(exponent, np.int64), top_exponent(element) + 1)
    exponent, fraction, negative = np.broadcast_arrays(exponent, fraction, negative)
    depth = element.minimum_exponent - exponent
    normal = (np.maximum(exponent + element.bias, 0) << element.fraction_bits) + fraction
    subnormal = (1 << element.fraction_bits) >> np.clip(depth, 0, 62)
    magnitude = np.minimum(np.where(depth > 0, subnormal, normal), largest(element)).astype(np.uint64)
    code = magnitude << np.uint64(element.ignored_bits)
    return (code | negative.astype(np.uint64) * np.uint64(element.sign_bit)).astype(element.code_dtype)


def catalogue(element: Format) -> Array:
    """Every nasty code of a format.

    Of a float: signs x first, second, middle, last but one and last exponent field x fraction 0, 1, upper
    half, all ones (hence zeros, subnormals, smallest and largest normal numbers, infinities, quiet and
    signaling NaNs), and the same with ignored low bits. Of an integer: both ends, zero, one, minus one.
    """
    if not element.is_float:
        middle = element.mask >> 1
        values = [0, 1, middle, middle + 1, element.mask - 1, element.mask]
        return np.unique(np.array(values, np.uint64) & np.uint64(element.mask)).astype(element.code_dtype)
    top = (1 << element.exponent_bits) - 1
    full = (1 << element.fraction_bits) - 1
    codes = {
        (sign * element.sign_bit) | (field << element.fraction_bits | fraction) << element.ignored_bits | low
        for sign in (0, 1)
        for field in (0, 1, element.bias, top - 1, top)
        for fraction in {0, 1 & full, (full + 1) // 2 & full, full}
        for low in {0, (1 << element.ignored_bits) - 1, (1 << element.ignored_bits) // 2}
    }
    return np.array(sorted(codes), element.code_dtype)


def is_special(codes: Array, element: Format) -> Array:
    """Which codes are an Inf or a NaN."""
    if not element.is_float:
        return np.zeros(codes.shape, np.bool_)
    magnitude = codes.astype(np.uint64) & np.uint64(element.mask & ~element.sign_bit)
    return magnitude >> np.uint64(element.ignored_bits) > largest(element)


def finite_catalogue(element: Format) -> Array:
    """The catalogue without infinities and NaNs."""
    codes = catalogue(element)
    return codes[~is_special(codes, element)]


def special_catalogue(element: Format) -> Array:
    """The infinities and NaNs of the catalogue, or the whole of it for a format that has none."""
    codes = catalogue(element)
    special = codes[is_special(codes, element)]
    return special if len(special) else codes


def random_codes(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Raw bit patterns."""
    return rng.integers(0, element.mask, shape, np.uint64, endpoint=True).astype(element.code_dtype)


def fractions(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Fractions: none, the last bit, the first bit, all ones, or random ones."""
    full = (1 << element.fraction_bits) - 1
    edges = np.array([0, 1 & full, full + 1 >> 1 & full, full])
    edge = edges[rng.integers(0, len(edges), shape)]
    return np.where(rng.random(shape) < 0.5, edge, rng.integers(0, full, shape, endpoint=True))


def signs(shape: tuple[int, ...], rng: Rng) -> Array:
    return rng.random(shape) < 0.5


def values(codes: Array, element: Format) -> Array:
    """Codes as float64, which all formats fit into."""
    if not element.is_float:
        return codes.astype(np.float64)
    kept = element.mask & ~((1 << element.ignored_bits) - 1)
    with np.errstate(invalid="ignore"):
        return (codes & element.code_dtype.type(kept)).view(element.dtype).astype(np.float64)


# --- dots ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Dots:
    """Codes of many dots: factors ``a, b (dots, stored k)``, ``c (dots,)``, scales ``(dots, chunks)``."""

    a: Array
    b: Array
    c: Array
    scale_a: Array | None = None
    scale_b: Array | None = None

    def __len__(self) -> int:
        return len(self.c)


def indices(instruction: Instruction, lead: tuple[int, ...], rng: Rng, *, ordered: bool = True) -> Array:
    """Random unit indices ``(*lead, units)``: distinct in a chunk, and ascending unless told otherwise."""
    pattern = instruction.pattern
    assert pattern is not None
    chunks = instruction.shape.k // pattern.chunk
    choices = np.broadcast_to(np.arange(pattern.choices, dtype=np.uint8), (*lead, chunks, pattern.choices))
    kept = rng.permuted(choices, axis=-1)[..., : pattern.kept]
    return (np.sort(kept, axis=-1) if ordered else kept).reshape(*lead, chunks * pattern.kept)


def columns(instruction: Instruction, units: Array) -> Array:
    """Logical columns ``(..., stored k)`` of unit indices ``(..., units)``."""
    pattern = instruction.pattern
    assert pattern is not None
    chunk = np.arange(units.shape[-1]) // pattern.kept
    first = chunk * pattern.chunk + units.astype(np.intp) * pattern.unit
    place = np.stack([first + i for i in range(pattern.unit)], axis=-1)
    return place.reshape(*units.shape[:-1], units.shape[-1] * pattern.unit)


def operands(instruction: Instruction, dots: Dots, rng: Rng) -> Operands:
    """Every dot as a matrix product of one row and one column; rows of B that A does not meet hold NaN."""
    count = len(dots)
    where, b = None, dots.b
    if instruction.sparse:
        where = columns(instruction, indices(instruction, (count, 1), rng, ordered=False))
        b = np.full((count, instruction.shape.k), instruction.b.mask, instruction.b.code_dtype)
        np.put_along_axis(b, where[:, 0], dots.b, axis=1)
    return Operands(
        product=instruction.product,
        a=dots.a[:, None],
        b=b[..., None],
        c=dots.c[:, None, None],
        columns=where,
        scale_a=None if dots.scale_a is None else dots.scale_a[:, None],
        scale_b=None if dots.scale_b is None else dots.scale_b[..., None],
    )


def difference(form: Instruction, dots: Operands, fast: Array, slow: Array) -> str:
    """How many results differ, with all codes of the first; empty where none does."""
    wrong = np.argwhere(fast != slow)
    if not len(wrong):
        return ""
    batch, row, column = (int(i) for i in wrong[0])
    parts = {
        "a": dots.a[batch, row],
        "columns": None if dots.columns is None else dots.columns[batch, row],
        "b": dots.b[batch, :, column],
        "c": dots.c[batch, row, column],
        "scale_a": None if dots.scale_a is None else dots.scale_a[batch, row],
        "scale_b": None if dots.scale_b is None else dots.scale_b[batch, :, column],
        "kernel": fast[batch, row, column],
        "reference": slow[batch, row, column],
    }
    lines = [f"  {key} = {_listed(value)}" for key, value in parts.items() if value is not None]
    title = f"{len(wrong)} of {fast.size} results differ, first [{batch}, {row}, {column}]:"
    return "\n".join([f"{form} on {form.target}: {title}", *lines])


def _listed(codes: Any) -> str:
    return " ".join(f"{int(code):#x}" for code in np.ravel(codes))


def step_of(rule: Rule) -> FusedSum | ScaledGroups | None:
    """The aligned sum within a rule, which has fraction bits and an exponent floor."""
    return rule.aligned


def fraction_bits(instruction: Instruction) -> int:
    """Where the rule cuts: F of an aligned sum, the precision of chained IEEE operations otherwise."""
    rule = rule_for(instruction)
    step = step_of(rule)
    if step is not None:
        return step.fraction_bits
    return 53 if isinstance(rule, FusedMultiplyAdd) else 24


def output(instruction: Instruction) -> Output:
    """How the rule rounds its result."""
    step = step_of(rule_for(instruction))
    if step is not None:
        return step.output
    return Output(format=instruction.d.name, precision=instruction.d.fraction_bits + 1, nearest=True)


def _exponents(element: Format) -> tuple[int, int]:
    """The lowest and highest exponent of a format's normal numbers."""
    return element.minimum_exponent, top_exponent(element)


def _product(
    instruction: Instruction, exponent: Array, rng: Rng, *, plain: Any = False, negative: Array | None = None
) -> tuple[Array, Array]:
    """Factors whose exponents add up to ``exponent``, as nearly as the formats can.

    Where ``plain`` they are powers of two, subnormal ones if normal ones are too large; ``negative`` is the
    product's sign.
    """
    plain = np.broadcast_to(plain, exponent.shape)
    factors = (instruction.a, instruction.b)
    deep = plain & (exponent < sum(x.minimum_exponent for x in factors))
    low_a, low_b = (x.minimum_exponent - deep * x.fraction_bits for x in factors)
    high_a, high_b = (top_exponent(x) for x in factors)
    low = np.clip(exponent - high_b, low_a, high_a)
    first = rng.integers(low, np.clip(exponent - low_b, low, high_a), endpoint=True)
    second = np.clip(exponent - first, low_b, high_b)
    shape = first.shape
    sign_a, sign_b = signs(shape, rng), signs(shape, rng)
    return (
        encode(instruction.a, first, ~plain * fractions(instruction.a, shape, rng), sign_a),
        encode(
            instruction.b,
            second,
            ~plain * fractions(instruction.b, shape, rng),
            sign_b if negative is None else sign_a ^ negative,
        ),
    )


def _zeros(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Zeros of both signs."""
    return np.where(signs(shape, rng), element.code_dtype.type(element.sign_bit), element.code_dtype.type(0))


def _scales(
    instruction: Instruction, exponent: Any, count: int, rng: Rng, *, plain: bool = False
) -> dict[str, Array]:
    """Scales whose exponents add up to ``exponent (count, chunks)``; nothing without block scaling."""
    scale = instruction.scale
    if scale is None:
        return {}
    low, high = _exponents(scale)
    total = np.broadcast_to(np.asarray(exponent, np.int64), (count, instruction.scale_chunks))
    least = np.clip(total - high, low, high)
    first = rng.integers(least, np.clip(total - low, least, high), endpoint=True)
    second = np.clip(total - first, low, high)
    parts = [0 if plain else fractions(scale, first.shape, rng) for _ in range(2)]
    return {"scale_a": encode(scale, first, parts[0]), "scale_b": encode(scale, second, parts[1])}


def _empty(instruction: Instruction, count: int, rng: Rng, scale: Any = 0) -> Dots:
    """Dots of zeros, with scales that are powers of two."""
    shape = (count, instruction.stored_k)
    return Dots(
        a=_zeros(instruction.a, shape, rng),
        b=_zeros(instruction.b, shape, rng),
        c=_zeros(instruction.c, (count,), rng),
        **_scales(instruction, scale, count, rng, plain=True),
    )


def _put(dots: Dots, place: Array, product: tuple[Array, Array], where: Any = True) -> None:
    """Write a product of every dot into the dot's ``place``."""
    rows = np.flatnonzero(np.broadcast_to(where, place.shape))
    dots.a[rows, place[rows]] = product[0][rows]
    dots.b[rows, place[rows]] = product[1][rows]


def _places(instruction: Instruction, count: int, rng: Rng) -> tuple[Array, Array]:
    """Two different positions of each dot; often the ends, so that they fall into different steps."""
    k = instruction.stored_k
    first = rng.integers(0, k, count)
    second = (first + rng.integers(1, k, count)) % k
    ends = rng.random(count) < 0.25
    return np.where(ends, 0, first), np.where(ends, k - 1, second)


def _middle(instruction: Instruction) -> int:
    """An exponent of products in the middle of what C can hold as well."""
    low = _exponents(instruction.a)[0] + _exponents(instruction.b)[0]
    high = top_exponent(instruction.a) + top_exponent(instruction.b)
    return (low + high) // 2


def near(element: Format, shape: tuple[int, ...], width: int, rng: Rng, middle: int | None = None) -> Array:
    """Codes within ``width`` binades of an exponent, that in the middle of the format unless told."""
    low, high = _exponents(element)
    middle = (low + high) // 2 if middle is None else middle
    exponent = np.clip(middle + rng.integers(-width, width, shape, endpoint=True), low, high)
    fraction = rng.integers(0, 1 << element.fraction_bits, shape)
    return encode(element, exponent, fraction, element.signed & signs(shape, rng))


def _spread(instruction: Instruction, count: int, width: int, rng: Rng) -> Dots:
    """All factors within ``width`` binades of the formats' middle; C alike."""
    shape = (count, instruction.stored_k)
    middle = sum(sum(_exponents(element)) // 2 for element in (instruction.a, instruction.b))
    return Dots(
        a=near(instruction.a, shape, width, rng),
        b=near(instruction.b, shape, width, rng),
        c=near(instruction.c, (count,), width, rng, middle),
        **_scales(instruction, rng.integers(-2, 3, (count, instruction.scale_chunks)), count, rng),
    )


# --- dots of floats --------------------------------------------------------------------------------


def raw(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Raw bit patterns everywhere."""
    shape = (count, instruction.stored_k)
    dots = _empty(instruction, count, rng)
    if instruction.scale is not None:
        chunks = (count, instruction.scale_chunks)
        scales = [random_codes(instruction.scale, chunks, rng) for _ in range(2)]
        dots = replace(dots, scale_a=scales[0], scale_b=scales[1])
    return replace(
        dots,
        a=random_codes(instruction.a, shape, rng),
        b=random_codes(instruction.b, shape, rng),
        c=random_codes(instruction.c, (count,), rng),
    )


def wide(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Raw bit patterns, except that infinities and NaNs lose an exponent bit: any exponents."""

    def tamed(codes: Array, element: Format) -> Array:
        bit = 1 << (element.ignored_bits + element.fraction_bits + element.exponent_bits - 1)
        return np.where(is_special(codes, element), codes & ~element.code_dtype.type(bit), codes)

    dots = raw(instruction, count, rng)
    scales = {}
    if instruction.scale is not None and dots.scale_a is not None and dots.scale_b is not None:
        scales = {
            "scale_a": tamed(dots.scale_a, instruction.scale),
            "scale_b": tamed(dots.scale_b, instruction.scale),
        }
    a, b, c = (tamed(getattr(dots, operand), instruction.format(operand)) for operand in "abc")
    return Dots(a=a, b=b, c=c, **scales)


def narrow(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Exponents within a few binades, as in real data; a third of the dots with many zeros."""
    dots = _spread(instruction, count, 3, rng)
    holes = (rng.random(dots.a.shape) < 0.6) & (np.arange(count) % 3 == 0)[:, None]
    return replace(dots, a=np.where(holes, _zeros(instruction.a, dots.a.shape, rng), dots.a))


def singles(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """One product of two nasty codes, C nasty or zero, all else zeros: every corner on its own."""
    dots = _empty(instruction, count, rng)
    place, _ = _places(instruction, count, rng)
    nasty = [rng.choice(catalogue(instruction.format(operand)), count) for operand in "abc"]
    _put(dots, place, (nasty[0], nasty[1]))
    scales = {}
    if instruction.scale is not None:
        chunks = (count, instruction.scale_chunks)
        scales = {side: rng.choice(catalogue(instruction.scale), chunks) for side in ("scale_a", "scale_b")}
    return replace(dots, c=np.where(rng.random(count) < 0.5, nasty[2], dots.c), **scales)


def crowds(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Nothing but nasty finite codes: subnormals among the largest numbers, sums that overflow."""
    shapes = {"a": (count, instruction.stored_k), "b": (count, instruction.stored_k), "c": (count,)}
    nasty = {x: rng.choice(finite_catalogue(instruction.format(x)), shape) for x, shape in shapes.items()}
    return Dots(**nasty, **_scales(instruction, 0, count, rng))


def specials(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Ordinary dots with one or two infinities or NaNs in A, B or C: Inf - Inf, Inf * 0, NaN anywhere."""
    dots = narrow(instruction, count, rng)
    rows = np.arange(count)
    for operand, where in zip("ab", _places(instruction, count, rng), strict=True):
        codes = getattr(dots, operand).copy()
        hit = rng.random(count) < 0.6
        codes[rows[hit], where[hit]] = rng.choice(
            special_catalogue(instruction.format(operand)), int(hit.sum())
        )
        dots = replace(dots, **{operand: codes})
    c = rng.choice(special_catalogue(instruction.c), count)
    return replace(dots, c=np.where(rng.random(count) < 0.3, c, dots.c))


def gaps(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """A large and some small terms whose exponents lie F - 1, F, F + 1 or F + 2 apart.

    In turn: two products, C above a product, C below a product. In half of the dots another product cancels
    the large term, so that the result is what alignment left of the small one; in half of the dots the small
    product fills every other position (what each loses must not add up).
    """
    gap = fraction_bits(instruction) - 1 + np.arange(count) % 4
    role = np.arange(count) // 4 % 3
    cancel = rng.random(count) < 0.5
    scale = rng.integers(-5, 6, count) if instruction.scale else np.zeros(count, np.int64)
    large = _large_exponents(instruction, gap, role, rng)
    negative = signs((count,), rng)
    dots = _empty(instruction, count, rng, scale[:, None])
    spread = (rng.random(count) < 0.5)[:, None] & np.ones(dots.a.shape, np.bool_)
    filler = _product(instruction, np.broadcast_to((large - gap)[:, None], dots.a.shape), rng)
    for codes, factor in zip((dots.a, dots.b), filler, strict=True):
        np.copyto(codes, factor, where=spread)
    first, second = _places(instruction, count, rng)
    third = _third(first, second)
    _put(dots, third, _product(instruction, large, rng, plain=True, negative=~negative), where=cancel)
    product = _product(instruction, large, rng, plain=cancel, negative=negative)
    _put(dots, first, product, where=role != 1)
    _put(dots, second, _product(instruction, large - gap, rng), where=role != 2)
    part = fractions(instruction.c, (count,), rng) * ~(cancel & (role == 1))
    c = encode(instruction.c, large + scale - gap * (role == 2), part, negative)
    return replace(dots, c=np.where(role == 0, dots.c, c))


def _large_exponents(instruction: Instruction, gap: Array, role: Array, rng: Rng) -> Array:
    """Exponents of the large term, within reach of products, of C where C takes part, and of the result."""
    low = _exponents(instruction.a)[0] + _exponents(instruction.b)[0]
    high = top_exponent(instruction.a) + top_exponent(instruction.b)
    high = min(high, top_exponent(instruction.d) - 5)
    c_low = instruction.c.minimum_exponent - instruction.c.fraction_bits
    least = np.where(role == 2, np.maximum(c_low + gap, low), low + gap)
    least = np.minimum(least, high)
    return rng.integers(least, np.minimum(high, least + 12), endpoint=True)


def _third(first: Array, second: Array) -> Array:
    """A position beside two others, in the first one's aligned four, hence in the same step."""
    near = first // 4 * 4
    taken = np.stack([(near + i == first) | (near + i == second) for i in range(4)])
    return near + np.argmin(taken, axis=0)


def group_gaps(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Scaled groups whose scales lie F - 1, F, F + 1 or F + 2 binades apart.

    The larger group is cancelled by C, or by another of its own products: then it still sets the alignment.
    """
    gap = fraction_bits(instruction) - 1 + np.arange(count) % 4
    base = rng.integers(-5, 6, count)
    upper = np.arange(instruction.scale_chunks) == 0
    dots = _empty(instruction, count, rng, base[:, None] + gap[:, None] * (upper - 1))
    zero, negative, own = np.zeros(count, np.int64), signs((count,), rng), rng.random(count) < 0.5
    _put(dots, zero, _product(instruction, zero, rng, plain=True, negative=negative))
    _put(dots, zero + 1, _product(instruction, zero, rng, plain=True, negative=~negative), where=own)
    for place in range(instruction.stored_k - 16, instruction.stored_k):
        filled = (rng.random(count) < 0.4) | (place == instruction.stored_k - 1)
        _put(dots, zero + place, _product(instruction, zero + rng.integers(0, 3, count), rng), where=filled)
    c = encode(instruction.c, base, 0, ~negative)
    return replace(dots, c=np.where(own, dots.c, c))


def zero_scales(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Zero scales beside the largest ones, in some groups or in all; the other groups and C are tiny.

    A group whose scale is zero has no say in the alignment, whatever its products are.
    """
    scale = instruction.scale
    assert scale is not None
    shape = (count, instruction.scale_chunks)
    zero = rng.random(shape) < np.array([0.5, 1.0])[np.arange(count) % 2, None]
    swap = signs(shape, rng)
    large, smallest = (np.full(shape, code, scale.code_dtype) for code in (largest(scale), 1))
    return replace(
        _spread(instruction, count, 2, rng),
        scale_a=np.where(zero, np.where(swap, large, 0), smallest).astype(scale.code_dtype),
        scale_b=np.where(zero, np.where(swap, 0, large), smallest).astype(scale.code_dtype),
        c=near(instruction.c, (count,), 8, rng, middle=-40),
    )


def cancellations(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Sums that cancel: to zero or to the last bit among products, or against a C that is the sum negated."""
    dots = _spread(instruction, count, 2, rng)
    role = np.arange(count) % 4
    lone = role < 2
    dots = replace(dots, a=np.where(lone[:, None], _zeros(instruction.a, dots.a.shape, rng), dots.a))
    x, y = _product(instruction, np.full(count, _middle(instruction)), rng)
    last_bit = (role == 1).astype(x.dtype) << x.dtype.type(instruction.a.ignored_bits)
    first, second = _places(instruction, count, rng)
    _put(dots, first, (x, y), where=lone)
    _put(dots, second, (x ^ last_bit ^ x.dtype.type(instruction.a.sign_bit), y), where=lone)
    negated = _cast(-_approximate_sums(instruction, dots), instruction.c)
    nudged = negated + (role == 3).astype(negated.dtype)
    return replace(dots, c=np.where(lone, _zeros(instruction.c, (count,), rng), nudged))


def _approximate_sums(instruction: Instruction, dots: Dots) -> Array:
    """Sums of the products in float64: nearly, often exactly, what the rule makes of them."""
    with np.errstate(over="ignore"):
        products = values(dots.a, instruction.a) * values(dots.b, instruction.b)
    if instruction.scale is not None and dots.scale_a is not None and dots.scale_b is not None:
        scale = values(dots.scale_a, instruction.scale) * values(dots.scale_b, instruction.scale)
        products = products * np.repeat(scale, instruction.stored_k // instruction.scale_chunks, axis=1)
    return products.sum(axis=1)


def _cast(numbers: Array, element: Format) -> Array:
    with np.errstate(over="ignore"):
        return numbers.astype(element.dtype).view(element.code_dtype)


def ties(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """C plus half a unit in its last place (or a quarter, or one), plus or minus something tiny.

    C is near 1, the largest finite number, the smallest normal or a subnormal number; its last bit is odd
    or even.
    """
    rounding, element = output(instruction), instruction.c
    low, high = _exponents(element)
    base = np.array([0, high, low, low - 1])[np.arange(count) % 4]
    last_bit = _below(instruction) + 1
    odd = rng.integers(0, 2, count)
    fraction = np.where(base == high, (1 << element.fraction_bits) - last_bit * (1 + odd), last_bit * odd)
    half = np.maximum(base, low) - rounding.precision + rng.integers(-1, 2, count)
    lift = _reach(instruction, half)
    dots = _empty(instruction, count, rng, lift[:, None])
    first, second = _places(instruction, count, rng)
    _put(dots, first, _product(instruction, half - lift, rng, plain=True))
    tiny = half - lift - rng.integers(1, 6, count)
    _put(dots, second, _product(instruction, tiny, rng, plain=True), where=rng.random(count) < 0.6)
    return replace(dots, c=encode(element, base, fraction, signs((count,), rng)))


def _below(instruction: Instruction) -> int:
    """The bits of C's fraction that a result of lower precision does not have."""
    return (1 << max(instruction.c.fraction_bits + 1 - output(instruction).precision, 0)) - 1


def _reach(instruction: Instruction, exponent: Array) -> Array:
    """The scale exponent that brings products of the middle to ``exponent``; 0 without scales."""
    if instruction.scale is None:
        return np.zeros_like(exponent)
    low, high = (2 * x for x in _exponents(instruction.scale))
    return np.clip(exponent - _middle(instruction), low, high)


def overflows(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Some or all products of the largest numbers, of one or both signs; C the largest number or ordinary."""
    dots = _empty(instruction, count, rng, 400 * (np.arange(count) % 2)[:, None])
    shape = dots.a.shape
    filled = rng.random(shape) < rng.random(count)[:, None]
    mixed = (rng.random(count) < 0.3)[:, None] & signs(shape, rng)
    exponents = [top_exponent(x) - rng.integers(0, 2, shape) for x in (instruction.a, instruction.b)]
    a = encode(instruction.a, exponents[0], fractions(instruction.a, shape, rng), mixed)
    b = encode(instruction.b, exponents[1], fractions(instruction.b, shape, rng))
    top = top_exponent(instruction.c) - rng.integers(0, 2, count)
    c = encode(instruction.c, top, fractions(instruction.c, (count,), rng), signs((count,), rng))
    return replace(
        dots,
        a=np.where(filled, a, dots.a),
        b=np.where(filled, b, dots.b),
        c=np.where(np.arange(count) % 3 == 0, dots.c, c),
    )


def floors(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """The smallest results, and beside them terms at the last place above the exponent floor, or just below.

    The larger product decides whether there is a result: mostly it is the smallest number where results are
    cut and half of it where they are rounded, and the small one is against it or with it. C is zero, or
    subnormal.
    """
    rounding, step = output(instruction), step_of(rule_for(instruction))
    smallest = instruction.d.minimum_exponent - (rounding.precision - 1)
    last = (step.exponent_floor if step else smallest) - fraction_bits(instruction)
    large = smallest - int(rounding.nearest) + rng.choice([0, 0, 0, 1], count)
    small = last + rng.integers(-2, 2, count)
    deep = sum(x.minimum_exponent - x.fraction_bits + top_exponent(x) for x in (instruction.a, instruction.b))
    lift = _reach(instruction, (large + small) // 2 - deep // 2 + _middle(instruction))[:, None]
    first, second = _places(instruction, count, rng)
    second = np.where(rng.random(count) < 0.7, _third(first, second), second)
    if instruction.scale_chunks > 1:  # the scales alone decide the alignment: one chunk for each size
        lift = np.where(np.arange(instruction.scale_chunks) == 0, large[:, None], small[:, None])
        first, second = np.zeros_like(first), np.full_like(second, instruction.stored_k - 1)
    dots = _empty(instruction, count, rng, lift)
    negative = signs((count,), rng)
    _put(dots, first, _product(instruction, large - lift[:, 0], rng, plain=True, negative=negative))
    opposite = negative ^ (rng.random(count) < (0.2 if rounding.nearest else 0.8))
    _put(dots, second, _product(instruction, small - lift[:, -1], rng, plain=True, negative=opposite))
    subnormal = rng.integers(0, 4, count).astype(instruction.c.code_dtype)
    return replace(dots, c=np.where(np.arange(count) % 4 == 3, subnormal, dots.c))


def subnormals(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """Subnormal factors and subnormal or zero C only, some of them times something large."""
    shape = (count, instruction.stored_k)

    def small(element: Format, size: tuple[int, ...]) -> Array:
        fraction = rng.integers(0, 1 << element.fraction_bits, size).astype(np.uint64)
        code = fraction << np.uint64(element.ignored_bits)
        return (code | signs(size, rng) * np.uint64(element.sign_bit)).astype(element.code_dtype)

    b = small(instruction.b, shape)
    large = encode(instruction.b, top_exponent(instruction.b), 0, signs(shape, rng))
    b = np.where((np.arange(count) % 2 == 1)[:, None], large, b)
    return Dots(
        a=small(instruction.a, shape),
        b=b,
        c=small(instruction.c, (count,)),
        **_scales(instruction, rng.integers(-300, 0, (count, 1)), count, rng),
    )


# --- dots of integers ------------------------------------------------------------------------------


def limits(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """C within reach of both ends of the 32 bits, so that sums wrap or saturate, or come back."""
    dots = raw(instruction, count, rng)
    reach = instruction.stored_k * min((instruction.a.mask + 1) * (instruction.b.mask + 1) // 4, 1 << 14)
    offset = rng.integers(0, reach, count)
    c = np.where(signs((count,), rng), (1 << 31) + offset, (1 << 31) - 1 - offset)
    return replace(dots, c=c.astype(np.uint32))


def one_sided(instruction: Instruction, count: int, rng: Rng) -> Dots:
    """All products of one sign and as large as they come; C nasty."""
    shape = (count, instruction.stored_k)
    factors = [np.broadcast_to(rng.choice(catalogue(instruction.format(x)), (count, 1)), shape) for x in "ab"]
    return Dots(a=factors[0].copy(), b=factors[1].copy(), c=rng.choice(catalogue(instruction.c), count))


Maker = Callable[[Instruction, int, Rng], Dots]

FLOATS: tuple[Maker, ...] = (
    raw, wide, narrow, singles, crowds, specials, gaps, cancellations, ties, overflows, floors, subnormals,
)  # fmt: skip
INTEGERS: tuple[Maker, ...] = (raw, singles, crowds, limits, one_sided)


def makers(instruction: Instruction) -> tuple[Maker, ...]:
    """The functions that make dots for an instruction."""
    if not instruction.a.is_float:
        return INTEGERS
    return (*FLOATS, group_gaps, zero_scales) if instruction.scale_chunks > 1 else FLOATS
