"""Fused sums of whole rows: every column of a panel of B at once.

The layouts, which the callers fill (see decode): a *pass* is the products that one call adds, one or more
steps of the rule. Rows of B are ``stride`` columns wide; of them n take part, a multiple of the lanes.

    a values, exponents, offsets   [pass][row][product]        offsets (sparse A): row of B, times stride
    a scales                       [pass][row]                 exponents of block scales, int16; or bounds
    a bytes                        [pass][row][product]        lowest bits or distances, see variants
    b values, exponents            [pass][row of the pass][column]
    b scales                       [pass][column]
    b bytes                        [pass][row of the pass][column]
    accumulators                   [row][column]               float32, also where results are f16

Arrays are flat; exponents are int16, or uint8 in compact variants. How a row is summed is stated in rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import decode, variants
from ._jit import Array, fingerprint, kernel, variant_kernel
from .hardware import rounds_by_instruction
from .llvm import alignment, floors, rows, steps, vectors, workspace
from .llvm.rows import Place, Row
from .llvm.vectors import cgutils, intrinsic, pointer_of, pointers, types
from .variants import Variant

# Numba's cache sees edits only of the file that defines a kernel; this constant sees edits of the others.
_FINGERPRINT = fingerprint(alignment, decode, floors, rows, steps, variants, vectors, workspace)


def literal(variant: Variant) -> int:
    """Return the variant as the constant that specialises row_sum."""
    return variant.code | (_FINGERPRINT & 0x3FFFFFF) << 36


@intrinsic
def row_sum(
    typing: Any, code: Any, a: Any, b: Any, c: Any, marks: Any, at: Any, n: Any, numbers: Any, narrow: Any
) -> tuple[Any, Callable[..., Any]] | None:
    """Add a pass of products to a row of accumulators; return whether some lanes took the exact way.

    ``code`` is a constant, ``literal(variant)``; ``a = (values, exponents, offsets, scales, bytes)``, ``b =
    (values, exponents, scales, bytes)`` and ``c`` are arrays as the module describes, ``marks`` is int8
    scratch for n columns; ``at`` = first index of the row in a, in its scales, of the pass in b, in its
    scales, of the row in c; ``numbers = (fraction bits, exponent floor, precision)``; ``narrow`` whether the
    exponents of all factors are those of f16 at most, as where planes are compact.
    """
    if not isinstance(code, types.IntegerLiteral):
        return None  # Numba asks again with the literal type
    variant = Variant.of(code.literal_value)
    signature = types.boolean(code, a, b, c, marks, at, n, numbers, narrow)

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args
        place = Place(
            a=pointers(context, builder, kinds[1], values[1]),
            b=pointers(context, builder, kinds[2], values[2]),
            c=pointer_of(context, builder, kinds[3], values[3]),
            marks=pointer_of(context, builder, kinds[4], values[4]),
            at=cgutils.unpack_tuple(builder, values[5], 5),
        )
        embedded = variant.width % 16 == 0 and rounds_by_instruction(context)
        numbers = cgutils.unpack_tuple(builder, values[7], 3)
        of_rule = values[6], numbers, embedded
        return Row(builder, variant, place, of_rule).emit(values[8])

    return signature, emit


# --- whole panels ------------------------------------------------------------------------------------

ROWS = 128  # rows of accumulators at a time, so that they stay in the second-level cache


Window = tuple[int, int, int, int]  # first column, columns, first row, rows


@kernel
def _load(out: Array, place: Window, c: Array, n: int) -> None:
    """Copy columns ``first : first + count`` of some rows of out to the block c, n columns wide."""
    first, count, row, rows = place
    for i in range(rows):
        block, given = c[i * n : (i + 1) * n], out[row + i, first : first + count]
        for j in range(count):
            block[j] = given[j]
        for j in range(count, n):
            block[j] = 0


@kernel
def _store(out: Array, place: Window, c: Array, n: int) -> None:
    first, count, row, rows = place
    for i in range(rows):
        block, result = c[i * n : (i + 1) * n], out[row + i, first : first + count]
        for j in range(count):
            result[j] = block[j]


@kernel
def _promote(out: Array, place: Window, c: Array, n: int) -> None:
    """Add the block to out in float32, to nearest."""
    first, count, row, rows = place
    for i in range(rows):
        block, result = c[i * n : (i + 1) * n], out[row + i, first : first + count]
        for j in range(count):
            result[j] += block[j]


@kernel
def canonical_nan(numbers: Array) -> None:
    """Replace every NaN, given the patterns of float32 numbers as (rows, columns) int32."""
    for i in range(numbers.shape[0]):
        for j in range(numbers.shape[1]):
            if numbers[i, j] & 0x7FFFFFFF > 0x7F800000:
                numbers[i, j] = 0x7FFFFFFF


@kernel
def half_codes(numbers: Array, codes: Array) -> None:
    """Write the f16 codes (uint16) of flat float32 numbers that are values of f16; every NaN is canonical."""
    decode.encode_halves(numbers, codes, len(numbers))


def panel_kernel(variant: Variant) -> Callable[..., int]:
    """Return the compiled ``panel`` of a variant (see below); compiled when first called, and cached on
    disk.
    """
    code = literal(variant)
    products, narrow = variant.products, variant.compact
    depth = products * (2 if variant.sparse else 1)  # rows of B of a pass
    stride = variant.stride

    @variant_kernel(code)
    def panel(
        operands: tuple[tuple[Array, Array, Array, Array, Array], tuple[Array, Array, Array, Array]],
        out: Array,
        place: tuple[tuple[int, int, int, int], tuple[int, int, int]],
        segments: tuple[Array, bool],
        numbers: tuple[int, int, int],
        scratch: tuple[Array, Array],
    ) -> int:
        """Add products to a panel of out (m, n) float32; return the number of row sums that took the exact
        way.

        ``operands = (planes of a, planes of b)``; ``place = (rows, columns)`` with ``rows = (first, stop,
        rows of a, row of out where a starts)`` and ``columns = (first column, columns, lanes of the panel)``.
        ``segments = (bounds, promote)``: passes ``bounds[s]`` up to ``bounds[s + 1]`` continue from out
        itself, or with ``promote`` start from zero and are added to it. ``scratch`` is for ROWS rows of
        accumulators and for the marks of a row.
        """
        a, b = operands
        rows, columns = place
        bounds, promote = segments
        c, marks = scratch
        exact_rows = 0
        first, stop, rows_of_a, offset = rows
        column, count, n = columns
        for block in range(first, stop, ROWS):
            height = min(ROWS, stop - block)
            window = (column, count, offset + block, height)
            _load(out, window, c, n)
            for segment in range(len(bounds) - 1):
                if promote:
                    c[:] = 0
                for number in range(bounds[segment], bounds[segment + 1]):
                    for i in range(height):
                        row = number * rows_of_a + block + i
                        at = (row * products, row, number * depth * stride, number * stride, i * n)
                        if row_sum(code, a, b, c, marks, at, n, numbers, narrow):
                            exact_rows += 1
                if promote:
                    _promote(out, window, c, n)
            if not promote:
                _store(out, window, c, n)
        return exact_rows

    return panel
