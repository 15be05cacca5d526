"""Inputs that show every choice of a unit that sums: width, cuts, order, floor, small and special numbers.

Experiments about sums have them beside the cases made for their question, so that a device which differs in
what the question leaves alone is not taken for one of the candidates. Knows formats; knows no rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from warpsim.isa.codes import values_of
from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction

from .gathering import gathered
from .operands import Array, Rng, random_codes, values

FIRST_TWO = 0b0100  # metadata: stored columns are the first two of every chunk, or the first of two
Matrices = tuple[Array, Array, Array]  # codes of A and B over stored columns, and of C


def spread(form: Instruction, b: Array, filler: float) -> Array:
    """Return B ``(cases, stored, n)`` with its rows in their logical places; all others hold a number."""
    if form.pattern is None:
        return b
    pattern, stored = form.pattern, b.shape[1]
    column = np.arange(stored) // pattern.stored * pattern.chunk + np.arange(stored) % pattern.stored
    full = np.full((len(b), form.shape.k, b.shape[2]), int(values(form.b, filler)), b.dtype)
    full[:, column] = b
    return full


def scales_of(form: Instruction, labels: list[str]) -> dict[str, Array] | None:
    """Return scales of one, but for a third of the cases, where they differ block by block; large ones at
    limits.
    """
    if form.scale is None:
        return None
    rng, cases = np.random.default_rng(35), len(labels)
    one, step = form.scale.bias << form.scale.fraction_bits, 1 << form.scale.fraction_bits
    codes = np.full((2, cases, form.lanes, 4), one)
    codes[:, ::3] = rng.integers(one - 6 * step, one + 4 * step, codes[:, ::3].shape)
    if not form.scale.fraction_bits:
        large = (form.d.bias - _highest(form.a) - _highest(form.b)) // 2
        codes[:, [place for place, label in enumerate(labels) if label == "limits"]] = one + large
    words = np.ascontiguousarray(codes.astype(np.uint8)).view(np.uint32)
    return {"scale_a": words[0], "scale_b": words[1]}


def probes(form: Instruction) -> tuple[Array, Array, Array, list[str]]:
    """Return all of them: codes of A as stored, B in logical rows, C, and a label a case."""
    rng = np.random.default_rng(33)
    parts, labels = list[Matrices](), list[str]()
    for name, make in _PROBES.items():
        for part in make(rng, form):
            parts.append(part)
            labels += [name] * len(part[0])
    a, b, c = (np.concatenate(list(item)) for item in zip(*parts, strict=True))
    return a, spread(form, b, 1.0), c, labels


def _shapes(form: Instruction, cases: int) -> dict[str, tuple[int, ...]]:
    m, stored = form.matrix_shape("a")
    return {
        "a": (cases, m, stored),
        "b": (cases, stored, form.shape.n),
        "c": (cases, *form.matrix_shape("c")),
    }


def _random(rng: Rng, form: Instruction, cases: int, reach: Callable[[Format], tuple[int, int]]) -> Matrices:
    shapes = _shapes(form, cases)
    a, b, c = (random_codes(rng, form.format(x), shapes[x], *reach(form.format(x))) for x in "abc")
    return a, b, c


def _near(element: Format) -> tuple[int, int]:
    return max(element.minimum_exponent, -5), min(3, _highest(element))


def _highest(element: Format) -> int:
    """Return the largest exponent of a format."""
    largest = values_of(np.array([element.largest_finite], element.code_dtype), element)
    return int(np.frexp(largest[0])[1]) - 1


def _whole(element: Format) -> tuple[int, int]:
    return element.minimum_exponent, _highest(element)


# --- sizes -----------------------------------------------------------------------------------------


def _sizes(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Yield numbers of one size and of all sizes; and all of them small, C too."""
    yield _random(rng, form, 4, _near)
    yield _random(rng, form, 4, _whole)
    yield _random(rng, form, 4, lambda one: (one.minimum_exponent, one.minimum_exponent + 12))
    half = max(form.d.minimum_exponent // 2, form.a.minimum_exponent, form.b.minimum_exponent)
    yield _random(rng, form, 6, lambda one: (half - 14, half + 2) if one is not form.c else _tiny(one))


def _tiny(element: Format) -> tuple[int, int]:
    return element.minimum_exponent - element.fraction_bits, element.minimum_exponent


def _cancelling(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Yield two large products add up to nothing, beside all others, and C or not."""
    for reach in (_near, _whole):
        a, b, c = _random(rng, form, 6, reach)
        stored = form.stored_k
        first = rng.integers(0, stored, a.shape[:2])
        second = (first + rng.integers(1, max(stored, 2), first.shape)) % stored
        large = values(form.a, [2.0 ** _highest(form.a), -(2.0 ** _highest(form.a))])
        for place, code in ((first, large[0]), (second, large[1])):
            np.put_along_axis(a, place[..., None], code, axis=2)
        c[::2] = 0
        yield a, np.broadcast_to(b[:, :1], b.shape).copy(), c


def _depths(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Yield two large products cancel, and a third is D: halved row by row until it is cut off; with C and
    without.

    The large factors are 1 or 1.5, so that their product carries, and so is the third.
    """
    stored = form.stored_k
    highs = {min(_highest(form.a), 7), min(_highest(form.a), 15)}
    for third, high in product((2, 4), highs):
        if third < stored:
            yield _depth(form, third, high)
    if form.d.name == "f16" and stored > 1:
        yield from _small_ties(form)


def _depth(form: Instruction, third: int, high: int) -> Matrices:
    rows = np.arange(form.shape.m)
    top = high + min(_highest(form.b), high)
    kinds = tuple(product((0, 1), (1.0, 1.5), (1.0, -1.5), (False, True)))  # depth, large, third, C
    a, b, c = (np.zeros(shape) for shape in _shapes(form, len(kinds)).values())
    for case, (deep, large, sign, with_c) in enumerate(kinds):
        small = max(form.b.minimum_exponent - form.b.fraction_bits, -7 - 9 * deep)
        exponent = top - 10 * (1 + deep) - rows % 16
        a[case, :, 0], a[case, :, 1] = large * 2.0**high, -large * 2.0**high
        a[case, :, third] = sign * np.ldexp(1.0, exponent - small)
        b[case, :2], b[case, third] = large * 2.0 ** (top - high), 2.0**small
        if with_c:
            c[case] = np.ldexp(1.0, top - 24 - rows % 8)[:, None]
    return _coded(form, a, b, c)


def _small_ties(form: Instruction) -> Iterator[Matrices]:
    """Half of the smallest number, and a smaller product that breaks the tie."""
    rows, low = np.arange(form.shape.m), form.b.minimum_exponent - form.b.fraction_bits
    tie = form.d.minimum_exponent - form.d.fraction_bits - 1
    a, b, c = (np.zeros(shape) for shape in _shapes(form, 2).values())
    a[:, :, 0], b[:, 0] = np.ldexp(1.0, tie - tie // 2), np.ldexp(1.0, tie // 2)
    a[0, :, 1] = np.ldexp(1.0, tie - 1 - rows % 16 - max(low, -20))
    a[1, :, 1] = -a[0, :, 1]
    b[:, 1] = np.ldexp(1.0, max(low, -20))
    yield _coded(form, a, b, c)


def _coded(form: Instruction, a: Array, b: Array, c: Array) -> Matrices:
    return values(form.a, a), values(form.b, b), values(form.c, c)


def _powers(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Yield powers of two and zeros: results lie halfway between two numbers, and zeros have either sign."""
    shapes = _shapes(form, 8)
    parts = []
    for name in "abc":
        element = form.format(name)
        low, high = _near(element)
        number = np.ldexp(1.0, rng.integers(low, high + 1, shapes[name])) * rng.choice(
            [-1.0, 1.0], shapes[name]
        )
        parts.append(values(element, np.where(rng.random(shapes[name]) < 0.3, 0.0 * number, number)))
    a, b, c = parts
    yield a, b, c


def _ties(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Yield C, and one product of half its last place, below or above it, or a little more or less."""
    shapes = _shapes(form, 4)
    c = random_codes(rng, form.c, shapes["c"], 2, 2)
    a, b = (np.zeros(shapes[name]) for name in "ab")
    unit = 2 - form.d.fraction_bits - 1
    low = max(unit // 2, form.b.minimum_exponent - form.b.fraction_bits)
    sign = rng.choice([-1.0, 1.0], (*shapes["a"][:2],))
    a[..., 0], b[:, 0] = sign * 2.0 ** (unit - low), 2.0**low
    if form.stored_k > 1:
        a[1::2, :, 1], b[:, 1] = sign[1::2] * 2.0 ** (unit - low), 2.0**low / 4
    yield values(form.a, a), values(form.b, b), c


def _carries(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Yield products near the largest that one exponent has, all of one sign."""
    a, b, c = (np.full(shape, 1.999) for shape in _shapes(form, 2).values())
    a[1] = -a[1]
    c[1] = -c[1]
    top = [2 - 2.0**-element.fraction_bits for element in (form.a, form.b, form.c)]
    yield tuple(
        values(element, np.sign(x) * y)
        for element, x, y in zip((form.a, form.b, form.c), (a, b, c), top, strict=True)
    )  # type: ignore[misc]


# --- edges -----------------------------------------------------------------------------------------


def _subnormals(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Subnormal numbers of one operand beside large ones of the others; and C alone."""
    for small in ("a", "b"):
        a, b, c = _random(rng, form, 3, lambda one: (max(_highest(one) - 6, 0), _highest(one)))
        codes = {"a": a, "b": b}
        element = form.format(small)
        fraction = rng.integers(0, 1 << element.fraction_bits, codes[small].shape) << element.ignored_bits
        codes[small] = (fraction | rng.choice([0, element.sign_bit], fraction.shape)).astype(
            element.code_dtype
        )
        c[:] = 0
        yield codes["a"], codes["b"], c
    shapes = _shapes(form, 2)
    a, b = (np.zeros(shapes[name], form.format(name).code_dtype) for name in "ab")
    c = random_codes(rng, form.c, shapes["c"], *_tiny(form.c))
    yield a, b, c


def _zeros(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Yield zeros of every sign; zeros beside the largest numbers, and small products beside those."""
    shapes = _shapes(form, 4)
    codes = [np.zeros(shapes[name], form.format(name).code_dtype) for name in "abc"]
    for case, signs in enumerate(((1, 0, 1), (0, 0, 1), (0, 1, 1), (1, 1, 1))):
        for array, name, sign in zip(codes, "abc", signs, strict=True):
            array[case] = form.format(name).sign_bit * sign
    yield codes[0], codes[1], codes[2]
    a, b, c = _random(rng, form, 4, _near)
    a[:, :, 0], b[:, 0] = 0, values(form.b, 2.0 ** _highest(form.b))
    if form.stored_k > 1:
        a[2:, :, 1], b[2:, 1] = values(form.a, 2.0 ** _highest(form.a)), 0
    c[::2] = 0
    yield a, b, c
    a, b, c = _random(
        rng, form, 6, lambda one: (max(one.minimum_exponent, -12), max(one.minimum_exponent, -8))
    )
    a[:, :, 0], b[:, 0] = 0, values(form.b, 2.0 ** _highest(form.b))
    c[::2] = 0
    c[1::2] = random_codes(rng, form.c, c[1::2].shape, -24, -10)
    a[4:, :, 1:] = 0
    yield a, b, c
    shapes = _shapes(form, 2)
    a, b = (np.full(shapes[x], 1 << form.format(x).ignored_bits, form.format(x).code_dtype) for x in "ab")
    for case, (left, right) in enumerate(((0.0, 2.0 ** _highest(form.b)), (2.0 ** _highest(form.a), 0.0))):
        a[case, :, 0], b[case, 0] = values(form.a, left), values(form.b, right)
    yield a, b, np.zeros(shapes["c"], form.c.code_dtype)


def _vanishing(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """One product of either sign, from a few times D's smallest number down to a fraction of it.

    C is zero, of either sign: where it is added last, only -0 shows the sign of what vanished.
    """
    smallest = form.d.minimum_exponent - form.d.fraction_bits
    in_b = _share_of_b(form, smallest - 2)
    rows = np.arange(form.shape.m)
    a, b, c = (np.zeros(shape) for shape in _shapes(form, 2).values())
    sign = np.where(rows // 8 % 2 == 0, -1.0, 1.0)
    for case, place in enumerate((0, form.stored_k - 1)):  # the first step of a sum, and the last
        a[case, :, place] = sign * np.ldexp(1.0, smallest + 1 - rows % 8 - in_b)
        b[case, place] = np.ldexp(1.0, in_b)
    c[..., 1::2] = -0.0
    yield _coded(form, a, b, c)


def _share_of_b(form: Instruction, exponent: int) -> int:
    """About half of a product's exponent; more where A's part would be too small for it, or B's."""
    low_a, low_b = (element.minimum_exponent - element.fraction_bits for element in (form.a, form.b))
    return max(low_b, min(exponent // 2 + 1, exponent - low_a))


def _limits(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """Yield C is the largest number, of either sign, and the largest products beside it or against it."""
    a, b, c = _random(rng, form, 4, lambda one: (_highest(one) - 2, _highest(one)))
    top = form.c.code_dtype.type(form.c.infinity - 1)
    c[:] = np.where(rng.random(c.shape) < 0.5, top, top | form.c.sign_bit)
    a[2:] = random_codes(rng, form.a, a[2:].shape, *_near(form.a))
    b[2:] = random_codes(rng, form.b, b[2:].shape, *_near(form.b))
    yield a, b, c


def _special(rng: Rng, form: Instruction) -> Iterator[Matrices]:
    """One cause of NaN or Inf a row: NaN, Inf, Inf times zero, Infs of both signs, in A, B or C."""
    for has, put in _CAUSES:
        a, b, c = _random(rng, form, 1, lambda one: (0, 1))
        if has(form):
            put(_Cases(form, a[0], b[0], c[0]))
            yield a, b, c


@dataclass(frozen=True)
class _Cases:
    """Matrices that causes are put into, and where: a place of each row of A, and signs by turns."""

    form: Instruction
    a: Array
    b: Array
    c: Array

    @property
    def places(self) -> tuple[Array, Array]:
        """A place of each row of A."""
        rows = np.arange(len(self.a))
        return rows, rows % self.a.shape[1]

    @property
    def infinities(self) -> Array:
        """Infinities of A, two of each sign by turns."""
        negative = np.arange(len(self.a)) % 4 >= 2
        return np.where(negative, self.form.a.sign_bit, 0).astype(self.a.dtype) | self.form.a.infinity


def _nan_of_a(cases: _Cases) -> None:
    rows, place = cases.places
    cases.a[rows[::2], place[::2]] = cases.form.a.canonical_nan


def _nan_of_b(cases: _Cases) -> None:
    cases.b[0, ::2] = cases.form.b.canonical_nan


def _nan_of_c(cases: _Cases) -> None:
    cases.c[::2] = cases.form.c.canonical_nan


def _infinity_of_a(cases: _Cases) -> None:
    """In half of the rows beside one in C."""
    cases.a[cases.places] = cases.infinities
    cases.c[1::2] = cases.form.c.infinity


def _infinity_times_zero(cases: _Cases) -> None:
    """Alone, then beside an Inf in C."""
    cases.a[cases.places], cases.b[:] = cases.infinities, 0
    cases.c[1::2] = cases.form.c.infinity | cases.form.c.sign_bit


def _zero_times_infinity(cases: _Cases) -> None:
    cases.b[0, ::2], cases.a[::2, 0] = cases.form.b.infinity, 0


def _infinities_of_c(cases: _Cases) -> None:
    infinity = cases.form.c.infinity
    cases.c[::2], cases.c[1::2] = infinity, infinity | cases.form.c.sign_bit


_CAUSES: tuple[tuple[Callable[[Instruction], bool], Callable[[_Cases], None]], ...] = (
    (lambda form: form.a.has_nan, _nan_of_a),
    (lambda form: form.b.has_nan, _nan_of_b),
    (lambda form: True, _nan_of_c),
    (lambda form: form.a.has_infinity, _infinity_of_a),
    (lambda form: form.a.has_infinity, _infinity_times_zero),
    (lambda form: form.b.has_infinity, _zero_times_infinity),
    (lambda form: True, _infinities_of_c),
)


_PROBES: dict[str, Callable[[Rng, Instruction], Iterator[Matrices]]] = {
    "sizes": _sizes,
    "cancelling": _cancelling,
    "depths": _depths,
    "powers": _powers,
    "ties": _ties,
    "carries": _carries,
    "subnormals": _subnormals,
    "zeros": _zeros,
    "vanishing": _vanishing,
    "gathered": lambda rng, form: gathered(form),
    "limits": _limits,
    "special": _special,
}
