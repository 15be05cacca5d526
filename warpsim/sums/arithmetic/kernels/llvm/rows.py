"""The sum of a row over all columns of a panel, as LLVM code (see vectors); layouts are those of panels.

The fast step of ``steps`` runs over all columns and marks those for which it is not proven, whose
accumulators it does not change; the exact step, in a separate function, then computes groups of lanes with a
mark. A lane that is NaN already stays NaN and is not computed again. Neither are lanes of narrow factors
whose sum is infinite, NaN, or an accumulator so large that all products are cut to zero (see steps.settled).

Where exponents are bytes, separate loops process them first: they have four times the lanes, and the
processor works ahead in the loops that follow. Steps of a pass then have loops of their own, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from ..variants import Variant
from . import steps
from .alignment import Load, Numbers, Terms, byte_tops, raised
from .floors import too_low
from .steps import Result
from .vectors import F32, I1, I8, I32, I64, Lanes, cgutils, constant, ir, load, splat

_EXACT_LANES = 16
_BYTES = 64  # lanes of a loop over planes of bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """LLVM values of a call: pointers to the planes of A, of B, to C and scratch, and indices in them."""

    a: list[Any]  # values, exponents, offsets, scales, bytes
    b: list[Any]  # values, exponents, scales, bytes
    c: Any
    marks: Any
    at: list[Any]  # of the row in a, in its scales, of the pass in b, in its scales, of the row in c

    def flat(self) -> list[Any]:
        """Return all values as a flat list."""
        return [*self.a, *self.b, self.c, self.marks, *self.at]

    @classmethod
    def of(cls, values: list[Any]) -> Place:
        """Return the inverse of ``flat``."""
        return cls(a=values[:5], b=values[5:9], c=values[9], marks=values[10], at=values[11:16])


class _Planes:
    """The emitter of loads of the planes of a place, for a variant."""

    def __init__(self, builder: Any, variant: Variant, place: Place) -> None:
        self.builder, self.variant, self.place = builder, variant, place
        self.a_values, self.a_exponents, self.a_offsets, self.a_scales, self.a_bytes = place.a
        self.b_values, self.b_exponents, self.b_scales, self.b_bytes = place.b
        self.a_at, self.a_scale_at, self.b_at, self.b_scale_at, self.c_at = place.at
        self.starts = self._b_rows()

    def _b_rows(self) -> list[Any]:
        """Return where in b each product's row starts."""
        products = range(self.variant.products)
        if not self.variant.sparse:
            return [ir.Constant(I64, product * self.variant.stride) for product in products]
        return [self.builder.sext(offset, I64) for offset in self.of_row(self.a_offsets)]

    def of_row(self, plane: Any) -> list[Any]:
        """Return the elements of a plane of A for the products of a pass."""
        builder = self.builder
        places = [builder.add(self.a_at, ir.Constant(I64, k)) for k in range(self.variant.products)]
        return [builder.load(builder.gep(plane, [place])) for place in places]

    def step(self, number: int) -> slice:
        """Return the products of a step."""
        return slice(number * self.variant.length, (number + 1) * self.variant.length)

    def broadcast(self, scalars: list[Any], width: int) -> list[Load]:
        """Return scalars in every lane."""
        return [partial(splat, self.builder, scalar, width) for scalar in scalars]

    def row_exponents(self, width: int) -> list[Load]:
        """Return exponents of A in every lane, which are loaded where they are needed."""
        return [partial(self._row_element, k, width) for k in range(self.variant.products)]

    def _row_element(self, k: int, width: int) -> Lanes:
        builder = self.builder
        place = builder.add(self.a_at, ir.Constant(I64, k))
        return splat(builder, builder.load(builder.gep(self.a_exponents, [place])), width)

    def columns(self, plane: Any, step: int, j: Any, width: int) -> list[Load]:
        """Return columns of the rows of B that the products of a step meet."""
        place = self.builder.add(self.b_at, j)
        return [partial(self._at, plane, place, start, width) for start in self.starts[self.step(step)]]

    def _at(self, plane: Any, place: Any, start: Any, width: int) -> Lanes:
        return load(self.builder, plane, self.builder.add(place, start), width)

    def scale(self, j: Any, width: int) -> Lanes | None:
        """Return exponents of block scales."""
        return self._row_with_columns(Lanes.__add__, j, width) if self.variant.scaled else None

    def bound(self, j: Any, width: int) -> Lanes | None:
        """Return sums of both factors' bounds."""
        return self._row_with_columns(Lanes.unsigned_sum, j, width) if self.variant.relative else None

    def _row_with_columns(self, operation: Callable[[Lanes, Lanes], Lanes], j: Any, width: int) -> Lanes:
        builder = self.builder
        of_row = splat(builder, builder.load(builder.gep(self.a_scales, [self.a_scale_at])), width)
        return operation(of_row, load(builder, self.b_scales, builder.add(self.b_scale_at, j), width))

    def accumulators(self, j: Any, width: int) -> Lanes:
        """Return columns of C."""
        return load(self.builder, self.place.c, self.builder.add(self.c_at, j), width)

    def store(self, value: Lanes, j: Any) -> None:
        """Write columns of C."""
        value.store(self.place.c, self.builder.add(self.c_at, j))

    def loop(self, first: Any, stop: Any, width: int) -> Any:
        """Yield the start of every group of columns."""
        return cgutils.for_range_slice(self.builder, first, stop, ir.Constant(I64, width), I64)


class Row(_Planes):
    """The emitter of the fast way over a row: over n columns, with the numbers of a rule (see steps.fast)."""

    def __init__(
        self, builder: Any, variant: Variant, place: Place, of_rule: tuple[Any, list[Any], bool]
    ) -> None:
        super().__init__(builder, variant, place)
        self.n, self.numbers, self.embedded = of_rule

    def emit(self, narrow: Any) -> Any:
        """Emit the whole row; return an i1: whether lanes were computed exactly.

        ``narrow``, an i1: whether the exponents of the factors are those of f16 at most.
        """
        builder, variant = self.builder, self.variant
        remaining, before = [*range(variant.steps)], None
        while variant.bytewise and len(remaining) > 1:
            before = self._early(remaining.pop(0), before)
        known = self._precomputed_planes(remaining[0], before)
        row = self._row()
        found = cgutils.alloca_once_value(builder, ir.Constant(I1, 0))
        with self.loop(_zero(), self.n, variant.width) as (j, _):
            terms = [self._terms(step, row, known, j) for step in remaining]
            result = self._fast(terms, self._start(before, j, variant.width), j)
            with builder.if_else(result.doubtful.any(), likely=False) as (doubtful, clear):
                with doubtful, builder.if_else(result.beyond.any()) as (beyond, within):
                    with beyond:
                        self._settle(self._unaligned(result, row, j, narrow), j, found)
                    with within:
                        self._settle(result, j, found)
                with clear:
                    self.store(result.value, j)
                    constant(builder, I8, 0, variant.width).store(self.place.marks, j)
        with builder.if_then(builder.load(found), likely=False):
            arguments = [*self.place.flat(), self.n, *self.numbers]
            builder.call(_exact_function(builder.module, variant, arguments), arguments)
        return builder.load(found)

    def _row(self) -> tuple[list[Any], list[Any]]:
        """Return values and, if needed, exponents of A: loaded where they stay in registers from then on."""
        exponents = [] if self.variant.bytewise else self.of_row(self.a_exponents)
        return self.of_row(self.a_values), exponents

    def _early(self, step: int, before: Any) -> Any:
        """Return the results of a step that is not the last, NaN where they may be wrong: so is what follows.

        In a loop of its own, as a group of columns is then short enough for the processor to begin the next.
        """
        variant, known, results = self.variant, self._precomputed_planes(step, before), self._scratch(F32)
        row = self._row()
        with self.loop(_zero(), self.n, variant.width) as (j, _):
            terms, start = self._terms(step, row, known, j), self._start(before, j, variant.width)
            result = steps.fast(terms, start, self._rule_numbers(variant.width), variant, self.embedded)
            wrong = result.doubtful & ~result.excused()
            wrong.choose(steps.canonical_nan(result.value), result.value).store(results, j)
        return results

    def _start(self, before: Any, j: Any, width: int) -> Lanes | None:
        """Return what a step continues from, None for zero; ``before``: results of a step, or None."""
        if before is not None:
            return load(self.builder, before, j, width)
        return None if self.variant.emulated else self.accumulators(j, width)

    def _scratch(self, element: Any) -> Any:
        """Return an element for each column."""
        vectors = -(-self.variant.stride // _BYTES)
        room = cgutils.alloca_once(self.builder, ir.ArrayType(ir.VectorType(element, _BYTES), vectors))
        return self.builder.bitcast(room, element.as_pointer())

    def _precomputed_planes(self, step: int, before: Any) -> list[Any]:
        """Return planes of what is found first of a step: largest exponents and, where floored, counts."""
        if not self.variant.bytewise:
            return []
        tops = self._tops(step, before)
        return [tops, self._counts(tops)] if self.variant.floored else [tops]

    def _tops(self, step: int, before: Any) -> Any:
        """Return the largest exponents of all columns, with those of what the step continues from."""
        planes = self.a_exponents, self.b_exponents
        of_a, of_b = (self.a_bytes, self.b_bytes) if self.variant.relative else planes
        tops, row = self._scratch(I8), self.broadcast(self.of_row(of_a)[self.step(step)], _BYTES)
        with self.loop(_zero(), self.n, _BYTES) as (j, _):
            c = self._start(before, j, _BYTES)
            columns, bound = self.columns(of_b, step, j, _BYTES), self.bound(j, _BYTES)
            terms = Terms(a_exponent=row, b_exponent=columns, bound=bound)
            byte_tops(terms, c, self.variant).store(tops, j)
        return tops

    def _counts(self, tops: Any) -> Any:
        """Return how many products of all columns are too low."""
        counts, row = self._scratch(I8), self.broadcast(self.of_row(self.a_bytes), _BYTES)
        with self.loop(_zero(), self.n, _BYTES) as (j, _):
            of_rule = self._rule_numbers(_BYTES)
            top = raised(load(self.builder, tops, j, _BYTES), of_rule, self.variant)
            terms = Terms(a_low=row, b_low=self.columns(self.b_bytes, 0, j, _BYTES), top=top)
            too_low(terms, of_rule).store(counts, j)
        return counts

    def _terms(self, step: int, row: Any, known: list[Any], j: Any) -> Terms:
        width, which = self.variant.width, self.step(step)
        (values, exponents), relative = row, self.variant.relative
        top, count, *_ = [*(load(self.builder, plane, j, width) for plane in known), None, None]
        return Terms(
            a=self.broadcast(values[which], width),
            b=self.columns(self.b_values, step, j, width),
            a_exponent=self.row_exponents(width) if relative else self.broadcast(exponents[which], width),
            b_exponent=self.columns(self.b_exponents, step, j, width),
            scale=self.scale(j, width),
            top=top,
            too_low=count,
        )

    def _rule_numbers(self, width: int) -> Numbers:
        return _numbers(self.builder, self.numbers, width)

    def _fast(self, terms: list[Terms], value: Lanes | None, j: Any) -> Result:
        """Emit one vector of columns, which continues from ``value``."""
        builder, variant, numbers = self.builder, self.variant, self._rule_numbers(self.variant.width)
        doubtful = beyond = _no_lanes(builder, variant.width)
        results = list[Result]()
        for step in terms:
            result = steps.fast(step, value, numbers, variant, self.embedded)
            value, doubtful, beyond = result.value, doubtful | result.doubtful, beyond | result.beyond
            results.append(result)
        assert value is not None
        uncertain = _no_lanes(builder, variant.width)
        if variant.emulated:
            value, uncertain = steps.emulated_sum(self.accumulators(j, variant.width), value, variant)
        excused = partial(_all_excused, results, uncertain)
        return Result(value=value, doubtful=doubtful | uncertain, excused=excused, beyond=beyond)

    def _unaligned(self, result: Result, row: Any, j: Any, narrow: Any) -> Result:
        """Return results with those of lanes whose sum needs no alignment.

        Not of block scales; nor where a first step may overflow f16, to an infinity that the second meets.
        """
        variant, width = self.variant, self.variant.width
        if variant.scaled or (variant.emulated and variant.half):
            return result
        terms = [self._terms(step, row, [], j) for step in range(variant.steps)]
        value, known = steps.settled(terms, self.accumulators(j, width), self._rule_numbers(width), variant)
        known = known & splat(self.builder, narrow, width)
        excused = partial(_union, result.excused, known)
        return replace(result, value=known.choose(value, result.value), excused=excused)

    def _settle(self, result: Result, j: Any, found: Any) -> None:
        """Store the correct results of a vector of columns, and mark the other columns."""
        builder = self.builder
        c = self.accumulators(j, self.variant.width)
        settled = c.is_nan()
        marks = result.doubtful & ~result.excused() & ~settled
        self.store(settled.choose(steps.canonical_nan(c), marks.choose(c, result.value)), j)
        marks.to(I8).store(self.place.marks, j)
        builder.store(builder.or_(builder.load(found), marks.any()), found)


def _exact_function(module: Any, variant: Variant, arguments: list[Any]) -> Any:
    """Return a separate function, so that its code and registers do not slow the fast way."""
    name = f"warpsim.exact.{variant.code:x}"
    if name in module.globals:
        return module.globals[name]
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    for attribute in ("noinline", "cold"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    *place, n, fraction_bits, floor, precision = function.args
    _ExactRow(builder, variant, Place.of(place)).emit(n, [fraction_bits, floor, precision])
    builder.ret_void()
    return function


class _ExactRow(_Planes):
    """The emitter of the exact way over the marked lanes."""

    def emit(self, n: Any, numbers: list[Any]) -> None:
        """Compute the marked lanes, group by group."""
        builder, width = self.builder, min(_EXACT_LANES, self.variant.width)
        with self.loop(_zero(), n, width) as (j, _):
            marks = ~load(builder, self.place.marks, j, width).equals(0)
            with builder.if_then(marks.any()):
                c = self.accumulators(j, width)
                value = self._exact(j, c, _numbers(builder, numbers, width))
                self.store(marks.choose(value, c), j)

    def _exact(self, j: Any, c: Lanes, numbers: Numbers) -> Lanes:
        variant = self.variant
        value = constant(self.builder, F32, 0.0, c.width) if variant.emulated else c
        values, exponents = self.of_row(self.a_values), self.of_row(self.a_exponents)
        for step in range(variant.steps):
            which = self.step(step)
            terms = Terms(
                a=self.broadcast(values[which], c.width),
                b=self.columns(self.b_values, step, j, c.width),
                a_exponent=self.broadcast(exponents[which], c.width),
                b_exponent=self.columns(self.b_exponents, step, j, c.width),
                scale=self.scale(j, c.width),
            )
            value = steps.exact(terms, value, numbers, variant)
        return steps.exact_emulated_sum(c, value, variant) if variant.emulated else value


def _all_excused(results: list[Result], uncertain: Lanes) -> Lanes:
    """Return where every step is right, and so is their sum."""
    return reduce(Lanes.__and__, [result.excused() | ~result.doubtful for result in results], ~uncertain)


def _union(excused: Load, known: Lanes) -> Lanes:
    return excused() | known


def _zero() -> Any:
    return ir.Constant(I64, 0)


def _no_lanes(builder: Any, width: int) -> Lanes:
    return constant(builder, I1, 0, width)


def _numbers(builder: Any, numbers: list[Any], width: int) -> Numbers:
    lanes = [splat(builder, builder.trunc(number, I32), width) for number in numbers]
    return Numbers(fraction_bits=lanes[0], floor=lanes[1], precision=lanes[2])
