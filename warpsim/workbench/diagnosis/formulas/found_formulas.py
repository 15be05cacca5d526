"""The formula of expected values, found by value: the reference of a launch that has none.

Products of all pairs of arguments that have the shape, attention of all triples, and arguments element by
element are tried, each with an epilogue that is solved. The formula that is nearest is taken; it has to be
within the roundings of the element type. Knows arguments and expected values; does not execute the kernel.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations
from typing import Any

import numpy as np

from ....isa.codes import values_of
from ....isa.formats import FORMATS
from ....observe.algebra.builtin_references import causal, softmax
from ....observe.algebra.leaves import Argument
from .formula_terms import FUNCTIONS, NIBBLE, Array, Term, blocks, nibbles, number, with_epilogue

_NEAR = {1: 2.0**-3, 2: 2.0**-8}  # of floats of so many bytes
_OF_FLOATS, _OF_INTEGERS = 2.0**-14, 2.0**-40
_MOST = 1 << 28  # products of two elements of a candidate
_CANDIDATES = 4096
_MIDDLE = 8.0  # the zero point of unsigned numbers of 4 bits


@dataclass(kw_only=True)
class FoundFormula:
    """What the expected values of output ``output`` are, of the arguments named ``names``.

    ``other_kind`` is set where the kernel reads an argument as another type: its index, and the type that
    the formula has.
    """

    output: int
    term: Term
    names: Sequence[str]
    initial: Mapping[int, Array] = field(repr=False)
    other_kind: tuple[int, str] | None = None

    def __str__(self) -> str:
        kinds = [f"{self.names[index]} as {kind}" for index, kind in self.term.kinds.items() if kind]
        return "; ".join([*self.term.lines, self.term.text]) + f" ({', '.join(kinds)})" * bool(kinds)

    @property
    def source(self) -> str:
        """The formula as a function of Python."""
        lines = "".join(f"    {line}\n" for line in self.term.lines)
        return f"def expected({', '.join(self.names)}):\n{lines}    return {self.term.text}\n"

    def __call__(self, *given: Any) -> Any:
        """Return the output of arguments as the kernel reads them, which may be keys."""
        self.other_kind = next(self._other_kinds(given), None)
        if self.other_kind is not None:
            raise ValueError("the kernel reads {} as another type than {}".format(*self.other_kind))
        file = f"<{self.source}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(keepends=True), file)
        namespace: dict[str, Any] = {"np": np, **FUNCTIONS}
        exec(compile(self.source, file, "exec"), namespace)
        return namespace["expected"](*given)

    def _other_kinds(self, given: Sequence[Any]) -> Iterator[tuple[int, str]]:
        for index, kind in self.term.kinds.items():
            own = np.asarray(getattr(given[index], "values", given[index]))
            wanted = decoded(self.initial[index], kind)
            if own.shape != wanted.shape or not np.array_equal(own, wanted, equal_nan=own.dtype.kind == "f"):
                yield index, kind or str(self.initial[index].dtype)

    def values(self, args: Sequence[Any]) -> Array:
        """Return the expected values of other arguments, whose arrays are as the launch gets them."""
        initial = {index: np.asarray(args[index]) for index in self.term.kinds}
        given = [
            decoded(initial[at], self.term.kinds[at]) if at in initial else x for at, x in enumerate(args)
        ]
        other = FoundFormula(output=self.output, term=self.term, names=self.names, initial=initial)
        with np.errstate(all="ignore"):
            return np.asarray(other(*given))


def found_formula(
    given: Sequence[Argument], output: int, expected: Array, tolerance: float
) -> FoundFormula | None:
    """Return the formula of the arguments that expected values are; None where none is near."""
    if expected.dtype.kind in "OSUb" or not 1 <= expected.ndim <= 4 or not expected.astype(np.float64).any():
        return None
    wanted = expected.astype(np.float64)
    own = _NEAR.get(expected.dtype.itemsize, _OF_FLOATS)
    own = _OF_INTEGERS if expected.dtype.kind in "iu" else own
    arguments = _Arguments(given, wanted.shape)
    for near in (own, tolerance) if tolerance > own else (own,):
        found = _formulas(arguments, wanted, near)
        if found:
            best = min(found, key=lambda term: _distance(term, wanted))
            initial = {index: np.asarray(given[index].content) for index in best.kinds}
            return FoundFormula(output=output, term=best, names=arguments.names, initial=initial)
    return None


def _distance(term: Term, wanted: Array) -> float:
    """Return how far a formula is from expected values; of equals the shorter is nearer."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(term.values - wanted)
    apart = apart[np.isfinite(apart)]
    far = float(np.sqrt(np.mean(np.square(apart)))) if apart.size else 0.0
    return (far + 1e-30) * (1 + len(term.text) / 100)


def _formulas(arguments: _Arguments, wanted: Array, near: float) -> list[Term]:
    for cores in (arguments.products, arguments.attentions, arguments.elementwise):
        some = list(islice(cores(), _CANDIDATES))
        found = with_epilogue(some, arguments.addends, arguments.numbers, wanted, near)
        if found:
            return found
    return []


class _Arguments:
    """Arguments as terms, for an output of a shape."""

    def __init__(self, given: Sequence[Argument], shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.names = [re.sub(r"\W", "_", each.name) for each in given]
        self.arrays: dict[int, list[Term]] = {}
        self.scales: dict[int, list[Term]] = {}
        self.numbers: list[Term] = []
        for index, (name, content) in enumerate(
            zip(self.names, (each.content for each in given), strict=True)
        ):
            if content is None or content.dtype.kind in "OSU":
                continue
            if not content.ndim:
                if content.dtype.kind == "f" and np.isfinite(content):
                    self.numbers.append(number(float(content), name))
            elif content.astype(np.float64).any():
                self.arrays[index] = list(readings(index, name, content))
                self.scales[index] = list(scales(index, name, content))
        self.addends = [
            each for terms in self.arrays.values() for term in terms for each in self._added(term)
        ]

    def _added(self, term: Term) -> Iterator[Term]:
        """Yield a term as an addend: of the output's shape, or a vector for its columns or rows, which may be
        longer.
        """
        own, columns = term.values.shape, self.shape[-1]
        if len(own) == 1 and own[0] > columns:
            yield term.mapped(f"{term.inner}[:{columns}]", lambda x: x[:columns])
        if own in (self.shape, self.shape[-1:]) or own == (1, *self.shape[-1:]):
            yield term
        if len(self.shape) == 2 and own in (self.shape[:1], (self.shape[0], 1)):
            yield term if len(own) == 2 else term.mapped(f"{term.inner}[:, None]", lambda x: x[:, None])

    # --- products ---

    def products(self) -> Iterator[Term]:
        """Yield products of two arguments, as they are and with factors of rows, columns and blocks."""
        for first, second in permutations(self.arrays, 2):
            left, right = list(self._operands(first, second)), list(self._operands(second, first))
            for x in left:
                for y in right:
                    yield from self._product(x, y)

    def _product(self, x: Term, y: Term) -> Iterator[Term]:
        shape = _product_shape(x, y)
        if shape is None or self.shape not in (shape, _turned(shape)):
            return
        if np.prod(shape) * x.values.shape[-1] <= _MOST:
            found = x @ y
            product = found if shape == self.shape else found.transposed
            # a product, and with factors of its rows, of its columns, and of both
            yield product
            others = [terms for index, terms in self.scales.items() if index not in product.kinds]
            factors = [each for terms in others for term in terms for each in self._added(term)]
            yield from (product * factor for factor in factors)
            for first, second in permutations(factors, 2):
                if first.values.shape[0] != second.values.shape[0] and first.values.ndim == 2:
                    yield product * first * second

    def _operands(self, index: int, partner: int) -> Iterator[Term]:
        """Yield an argument as an operand: as it is, scaled in blocks, and transposed."""
        for term in self.arrays[index]:
            if term.values.ndim >= 2:
                for each in (term, *self._dequantised(term, index, partner)):
                    yield each
                    yield each.transposed

    def _dequantised(self, term: Term, index: int, partner: int) -> Iterator[Term]:
        """Yield ``(term - zero point) * scale`` for scales and zero points of blocks or rows."""
        others = [at for at in self.arrays if at not in (index, partner)]
        points = [(at, each) for at in others for each in _spread(self.arrays[at], term)]
        packed = term.text.startswith("nibbles")
        for at in others:
            for factor in _spread(self.scales[at], term):
                yield term * factor
                yield from ((term - point) * factor for other, point in points if other != at)
                if packed:
                    yield (term - number(_MIDDLE)) * factor
                    yield from (term * factor + point for other, point in points if other != at)

    # --- attention, elements ---

    def attentions(self) -> Iterator[Term]:
        """Yield softmax(Q K^T) V of three arguments, scaled by an argument, 1 / sqrt(d) or nothing."""
        for q, k, v in permutations(self.arrays, 3):
            for query in self._sides(q):
                for key in self._sides(k):
                    scores = _product_shape(query, key)
                    if scores is not None:
                        for value in self._sides(v):
                            yield from self._attention(query, key, value)

    def _sides(self, index: int) -> Iterator[Term]:
        for term in self.arrays[index]:
            if term.values.ndim >= 2 and not term.text.startswith("nibbles"):
                yield term
                yield term.transposed

    def _attention(self, query: Term, key: Term, value: Term) -> Iterator[Term]:
        scores = query @ key
        shape = _product_shape(scores, value)
        if shape is None or self.shape not in (shape, _turned(shape)):
            return
        scores, depth = scores.bound("scores"), query.values.shape[-1]
        for scale in (number(depth**-0.5), *self.numbers, None):
            scaled = scores if scale is None else (scores * scale).bound("scaled")
            for each in (scaled, scaled.called(causal).bound("masked")):
                found = each.called(softmax).bound("weights") @ value
                yield found if shape == self.shape else found.transposed

    def elementwise(self) -> Iterator[Term]:
        """Yield arguments element by element, products of two of them, and the softmax of rows."""
        own = [each for each in self.addends if each.values.shape == self.shape]
        yield from own
        for first in own:
            yield from (
                first * second for second in self.addends if not first.kinds.keys() & second.kinds.keys()
            )
            if len(self.shape) > 1:
                yield first.called(softmax)


def _spread(terms: Sequence[Term], to: Term) -> Iterator[Term]:
    """Yield terms, as they are and transposed, as numbers for blocks of a matrix."""
    for term in terms:
        for each in (term, term.transposed) if term.values.ndim == 2 else (term,):
            found = spread(each, to.values.shape)
            if found is not None:
                yield found


def _product_shape(x: Term, y: Term) -> tuple[int, ...] | None:
    left, right = x.values.shape, y.values.shape
    if min(len(left), len(right)) < 2 or left[-1] != right[-2] or left[:-2] != right[:-2]:
        return None
    return (*left[:-1], right[-1])


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


__all__ = ["FoundFormula", "found_formula"]


_BYTE = 8
_FLOATS = {name: element for name, element in sorted(FORMATS.items()) if element.is_float}
_SCALE_CODES = tuple(name for name, element in reversed(_FLOATS.items()) if not element.signed)
_PACKED = next(name for name, element in _FLOATS.items() if element.bits == NIBBLE)


def _codes(size: int) -> list[str]:
    """Return the formats of signed numbers of so many bytes; wider than two bytes NumPy has all."""
    found = (name for name, element in _FLOATS.items() if element.signed and element.bits == _BYTE * size)
    return list(found) if size <= 2 else []


def readings(argument: int, name: str, content: Array) -> Iterator[Term]:
    """Yield an array as numbers: as its dtype has it, as codes of its size, as numbers of 4 bits."""
    yield _as_format(argument, name, content, "")
    if content.dtype.kind == "u":
        yield from (_as_format(argument, name, content, kind) for kind in _codes(content.itemsize))
    if content.dtype.kind in "iu" and content.itemsize == 1:
        yield _as_format(argument, name, content, _PACKED)
    if content.dtype.kind in "iu" and content.ndim == 2 and content.itemsize <= 4:
        whole, count = _as_format(argument, name, content, ""), _BYTE * content.itemsize // NIBBLE
        for axis in (-1, 0):
            yield from (whole.called(nibbles, count, axis, signed) for signed in (False, True))


def scales(argument: int, name: str, content: Array) -> Iterator[Term]:
    """Yield an array as scale factors: bytes are codes of ue8m0 or ue4m3."""
    kinds = ("",) if content.dtype.kind not in "iub" else _SCALE_CODES if content.dtype == np.uint8 else ()
    yield from (_as_format(argument, name, content, kind) for kind in kinds)


def decoded(content: Array, kind: str) -> Array:
    """Return the numbers of codes, two of e2m1 from a byte; of no format what the dtype has."""
    if not kind:
        return content.astype(np.int64 if content.dtype.kind in "iub" else np.float64)
    codes: Any = content.view(f"u{content.itemsize}")
    if kind != _PACKED:
        return np.asarray(values_of(codes, FORMATS[kind]), np.float64)
    halves = [values_of(codes >> NIBBLE * half & 15, FORMATS[kind]) for half in (0, 1)]
    return np.stack(halves, -1).reshape(*content.shape[:-1], -1).astype(np.float64)


def _as_format(argument: int, name: str, content: Array, kind: str) -> Term:
    return Term(text=name, values=decoded(content, kind), kinds={argument: kind})


def spread(term: Term, shape: tuple[int, ...]) -> Term | None:
    """Return a matrix of a number for each block, or a vector for each row, as one of a shape; None where
    blocks are not whole, or are single elements.
    """
    own = term.values.shape
    if len(own) == 1 and own[0] == shape[0]:
        return term.mapped(f"{term.inner}[:, None]", lambda x: x[:, None])
    if len(own) != 2 or len(shape) != 2 or own == shape or not all(own):
        return None
    if any(whole % part for part, whole in zip(own, shape, strict=True)):
        return None
    rows, columns = (whole // part for part, whole in zip(own, shape, strict=True))
    return term.called(blocks, rows, columns)
