"""Fused sums of whole rows: every column of a panel of B at once.

The layouts, which the callers fill (see decode): a *pass* is the products that one call adds, one or more
steps of the rule. Rows of B are ``stride`` columns wide; of them n take part, a multiple of the lanes.

    a values, exponents, offsets   [pass][row][product]        offsets (sparse A): row of B, times stride
    a scales                       [pass][row]                 exponents of block scales, int16
    b values, exponents            [pass][row of the pass][column]
    b scales                       [pass][column]
    accumulators                   [row][column]               float32, also where results are f16

Arrays are flat; exponents are int16. The fast step of ``steps`` runs over all columns and marks the lanes
that it cannot vouch for, whose accumulators it leaves alone; groups of lanes with a mark are then
computed by the exact step. A lane that is NaN already stays so and is not computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

from . import decode, steps, variants, vectors
from ._jit import Array, kernel, variant_kernel
from .steps import Load, Numbers, Terms
from .variants import Variant
from .vectors import (
    F32,
    I1,
    I8,
    I32,
    I64,
    Lanes,
    cgutils,
    constant,
    intrinsic,
    ir,
    load,
    pointer_of,
    pointers,
    splat,
    types,
)

# Numba's cache sees edits of the file that defines a kernel only; this constant sees those of the others.
_SOURCES = (Path(module.__file__ or "") for module in (decode, steps, variants, vectors))
_FINGERPRINT = crc32(b"".join(source.read_bytes() for source in _SOURCES))
_EXACT_LANES = 16


def literal(variant: Variant) -> int:
    """The variant as the constant that specialises row_sum."""
    return variant.code | (_FINGERPRINT & 0x3FFFFFF) << 36


class _Row:
    """Emits the sum of one row over a panel; holds the pointers and offsets of the call."""

    def __init__(self, builder: Any, variant: Variant, a: Any, b: Any, c: Any, marks: Any, at: Any) -> None:
        self.builder, self.variant = builder, variant
        self.a_values, self.a_exponents, self.a_offsets, self.a_scales = a
        self.b_values, self.b_exponents, self.b_scales = b
        self.c, self.marks = c, marks
        self.a_at, self.a_scale_at, self.b_at, self.b_scale_at, self.c_at = at

    def _scalar(self, pointer: Any, index: Any) -> Any:
        return self.builder.load(self.builder.gep(pointer, [index]))

    def _b_rows(self) -> list[Any]:
        """Where in b each product's row starts."""
        builder = self.builder
        starts = []
        for product in range(self.variant.products):
            if self.variant.sparse:
                place = builder.add(self.a_at, ir.Constant(I64, product))
                offset = builder.sext(self._scalar(self.a_offsets, place), I64)
            else:
                offset = ir.Constant(I64, product * self.variant.stride)
            starts.append(offset)
        return starts

    def _a_row(self) -> list[tuple[Any, Any]]:
        """Value and exponent of each product's factor in a."""
        places = [self.builder.add(self.a_at, ir.Constant(I64, k)) for k in range(self.variant.products)]
        return [(self._scalar(self.a_values, at), self._scalar(self.a_exponents, at)) for at in places]

    def _terms(self, step: int, row: list[Any], starts: list[Any], j: Any, width: int) -> Terms:
        chosen = range(step * self.variant.length, (step + 1) * self.variant.length)
        return Terms(
            a=[self._broadcast(row[k][0], width) for k in chosen],
            b=[self._columns(self.b_values, starts[k], j, width) for k in chosen],
            a_exponent=[self._broadcast(row[k][1], width) for k in chosen],
            b_exponent=[self._columns(self.b_exponents, starts[k], j, width) for k in chosen],
            scale=self._scale(j, width) if self.variant.scaled else None,
        )

    def _broadcast(self, scalar: Any, width: int) -> Load:
        return lambda: splat(self.builder, scalar, width)

    def _columns(self, pointer: Any, start: Any, j: Any, width: int) -> Load:
        place = self.builder.add(self.b_at, j)
        return lambda: load(self.builder, pointer, self.builder.add(place, start), width)

    def _scale(self, j: Any, width: int) -> Lanes:
        of_row = splat(self.builder, self._scalar(self.a_scales, self.a_scale_at), width)
        return of_row + load(self.builder, self.b_scales, self.builder.add(self.b_scale_at, j), width)

    def emit(self, n: Any, numbers: list[Any], embedded: bool) -> Any:
        """The whole row; an i1: whether lanes were computed exactly."""
        builder = self.builder
        row, starts = self._a_row(), self._b_rows()
        marked = cgutils.alloca_once_value(builder, ir.Constant(I1, 0))
        width = self.variant.width
        with cgutils.for_range_slice(builder, _zero(), n, ir.Constant(I64, width), I64) as (j, _):
            marks = self._fast(row, starts, j, _numbers(builder, numbers, width), embedded)
            builder.store(builder.or_(builder.load(marked), marks.any()), marked)
        found = builder.load(marked)
        with builder.if_then(found, likely=False):
            self._emit_exact(n, row, starts, numbers)
        return found

    def _fast(self, row: list[Any], starts: list[Any], j: Any, numbers: Numbers, embedded: bool) -> Lanes:
        """Emit one vector of columns; the mask of lanes that are still to be computed."""
        builder, variant = self.builder, self.variant
        width = variant.width
        place = builder.add(self.c_at, j)
        c = load(builder, self.c, place, width)
        value: Lanes | None = None if variant.emulated else c
        hazard = _nowhere(builder, width)
        for step in range(variant.steps):
            terms = self._terms(step, row, starts, j, width)
            value, uncertain = steps.fast(terms, value, numbers, variant, embedded)
            hazard = hazard | uncertain
        assert value is not None
        if variant.emulated:
            value, uncertain = steps.emulated_sum(c, value, variant)
            hazard = hazard | uncertain
        settled = c.is_nan()
        settled.choose(steps.canonical_nan(c), hazard.choose(c, value)).store(self.c, place)
        marks = hazard & ~settled
        marks.to(I8).store(self.marks, j)
        return marks

    def _emit_exact(self, n: Any, row: list[Any], starts: list[Any], numbers: list[Any]) -> None:
        """Compute the marked lanes, group by group."""
        builder = self.builder
        width = min(_EXACT_LANES, self.variant.width)
        with cgutils.for_range_slice(builder, _zero(), n, ir.Constant(I64, width), I64) as (j, _):
            bytes_ = load(builder, self.marks, j, width)
            marks = ~bytes_.equals(0)
            with builder.if_then(marks.any()):
                place = builder.add(self.c_at, j)
                c = load(builder, self.c, place, width)
                value = self._exact(row, starts, j, c, _numbers(builder, numbers, width))
                marks.choose(value, c).store(self.c, place)

    def _exact(self, row: list[Any], starts: list[Any], j: Any, c: Lanes, numbers: Numbers) -> Lanes:
        variant = self.variant
        value = constant(self.builder, F32, 0.0, c.width) if variant.emulated else c
        for step in range(variant.steps):
            terms = self._terms(step, row, starts, j, c.width)
            value = steps.exact(terms, value, numbers, variant)
        return steps.exact_emulated_sum(c, value, variant) if variant.emulated else value


def _zero() -> Any:
    return ir.Constant(I64, 0)


def _nowhere(builder: Any, width: int) -> Lanes:
    return constant(builder, I1, 0, width)


def _numbers(builder: Any, numbers: list[Any], width: int) -> Numbers:
    lanes = [splat(builder, builder.trunc(number, I32), width) for number in numbers]
    return Numbers(fraction_bits=lanes[0], floor=lanes[1], precision=lanes[2])


def _has_avx512(context: Any) -> bool:
    return "+avx512f" in str(context.codegen().magic_tuple())


@intrinsic
def row_sum(
    typing: Any, code: Any, a: Any, b: Any, c: Any, marks: Any, at: Any, n: Any, numbers: Any
) -> tuple[Any, Callable[..., Any]] | None:
    """Add one pass of products to one row of accumulators; whether some lanes took the exact way.

    ``code`` is a constant, ``literal(variant)``; ``a = (values, exponents, offsets, scales)``, ``b =
    (values, exponents, scales)`` and ``c`` are arrays as the module describes, ``marks`` is int8 scratch
    for n columns; ``at`` = first index of the row in a, in its scales, of the pass in b, in its scales,
    of the row in c; ``numbers = (fraction bits, exponent floor, precision)``.
    """
    if not isinstance(code, types.IntegerLiteral):
        return None  # Numba asks again with the literal type
    variant = Variant.of(code.literal_value)
    signature = types.boolean(code, a, b, c, marks, at, n, numbers)

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args
        row = _Row(
            builder,
            variant,
            pointers(context, builder, kinds[1], values[1]),
            pointers(context, builder, kinds[2], values[2]),
            pointer_of(context, builder, kinds[3], values[3]),
            pointer_of(context, builder, kinds[4], values[4]),
            cgutils.unpack_tuple(builder, values[5], 5),
        )
        embedded = variant.width % 16 == 0 and _has_avx512(context)
        return row.emit(values[6], cgutils.unpack_tuple(builder, values[7], 3), embedded)

    return signature, emit


# --- whole panels ------------------------------------------------------------------------------------

ROWS = 128  # rows of accumulators that are worked on together, so that they stay in the second-level cache


@kernel
def _load(out: Array, first: int, count: int, row: int, rows: int, c: Array, n: int) -> None:
    """Columns ``first : first + count`` of some rows of out to the block c, n columns wide."""
    for i in range(rows):
        for j in range(count):
            c[i * n + j] = out[row + i, first + j]
        for j in range(count, n):
            c[i * n + j] = 0


@kernel
def _store(out: Array, first: int, count: int, row: int, rows: int, c: Array, n: int) -> None:
    for i in range(rows):
        for j in range(count):
            out[row + i, first + j] = c[i * n + j]


@kernel
def _promote(out: Array, first: int, count: int, row: int, rows: int, c: Array, n: int) -> None:
    """Add the block to out in float32, to nearest."""
    for i in range(rows):
        for j in range(count):
            out[row + i, first + j] += c[i * n + j]


@kernel
def canonical_nan(numbers: Array) -> None:
    """Replace every NaN, given the patterns of float32 numbers as (rows, columns) int32."""
    for i in range(numbers.shape[0]):
        for j in range(numbers.shape[1]):
            if numbers[i, j] & 0x7FFFFFFF > 0x7F800000:
                numbers[i, j] = 0x7FFFFFFF


def panel_kernel(variant: Variant) -> Callable[..., int]:
    """The compiled ``panel`` of a variant (see below); compiled when first called, and cached on disk."""
    code = literal(variant)
    products = variant.products
    depth = products * (2 if variant.sparse else 1)  # rows of B of a pass
    stride = variant.stride

    @variant_kernel(code)
    def panel(
        a: tuple[Array, Array, Array, Array],
        b: tuple[Array, Array, Array],
        out: Array,
        rows: tuple[int, int, int, int],
        columns: tuple[int, int, int],
        bounds: Array,
        promote: bool,
        numbers: tuple[int, int, int],
        c: Array,
        marks: Array,
    ) -> int:
        """Add products to a panel of out (m, n) float32; the number of row sums that took the exact way.

        ``rows = (first, stop, rows of a, row of out where a starts)``; ``columns = (first column,
        columns, lanes of the panel)``. Passes ``bounds[s]`` up to ``bounds[s + 1]`` continue from out
        itself, or with ``promote`` start from zero and are added to it. ``c`` and ``marks`` are scratch
        for ROWS rows and for one.
        """
        exact_rows = 0
        first, stop, rows_of_a, offset = rows
        column, count, n = columns
        for block in range(first, stop, ROWS):
            height = min(ROWS, stop - block)
            _load(out, column, count, offset + block, height, c, n)
            for segment in range(len(bounds) - 1):
                if promote:
                    c[:] = 0
                for number in range(bounds[segment], bounds[segment + 1]):
                    for i in range(height):
                        place = number * rows_of_a + block + i
                        at = (place * products, place, number * depth * stride, number * stride, i * n)
                        if row_sum(code, a, b, c, marks, at, n, numbers):
                            exact_rows += 1
                if promote:
                    _promote(out, column, count, offset + block, height, c, n)
            if not promote:
                _store(out, column, count, offset + block, height, c, n)
        return exact_rows

    return panel
