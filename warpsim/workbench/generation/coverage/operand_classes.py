"""Kinds of operands: zeros, subnormal numbers, ends of the range, infinities, NaNs, and where they meet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....base.errors import present
from ....isa.formats import Format
from ....isa.products import Operands
from ..sums.exact_numbers import FINITE, INFINITE, NOT_A_NUMBER, Array, decode
from ..sums.factors import broadcast_factors
from ..sums.limits import largest
from ..sums.summing import Sums

Mask = tuple[str, Array]


def classes(codes: Array, element: Format) -> Iterator[Mask]:
    """Yield the kinds of codes of a format, and where they are."""
    if not element.is_float:
        value = decode(codes, element).significand
        yield "zero", value == 0
        yield "one", value == 1
        yield "largest", value == element.mask ^ element.sign_bit
        if element.signed:
            yield "smallest", value == -element.sign_bit
            yield "minus one", value == -1
        return
    number = decode(codes, element)
    magnitude = (codes.astype(np.uint64) & np.uint64(element.mask & ~element.sign_bit)).astype(np.int64)
    kept = magnitude >> element.ignored_bits
    finite = number.special == FINITE
    if element.fraction_bits:
        yield "+0", (kept == 0) & ~number.negative
        yield "-0", (kept == 0) & number.negative
        yield "subnormal", (kept > 0) & (kept < 1 << element.fraction_bits)
        yield "smallest subnormal", kept == 1
        yield "largest subnormal", kept == (1 << element.fraction_bits) - 1
    yield "smallest normal number", kept == (1 << element.fraction_bits if element.fraction_bits else 0)
    yield "largest finite number", kept == largest(element)
    yield "odd significand", finite & (kept % 2 == 1)
    yield "+Inf", (number.special == INFINITE) & ~number.negative
    yield "-Inf", (number.special == INFINITE) & number.negative
    nan = number.special == NOT_A_NUMBER
    yield "NaN", nan
    quiet = 1 << max(element.fraction_bits - 1, 0)
    yield "signaling NaN", nan & (kept & quiet == 0)
    ignored = magnitude & ((1 << element.ignored_bits) - 1)
    yield "ignored bits set", finite & (ignored > 0)
    yield "NaN in ignored bits only", (number.special == INFINITE) & (ignored > 0)


def operand_masks(operands: Operands, done: Sums) -> Iterator[Mask]:
    """Yield bins of the operands of every output, each with the outputs that hit it."""
    form = operands.product
    for side in "ab":
        for name, mask in classes(getattr(operands, side), form.format(side)):
            yield f"{side}: {name}", _somewhere(mask, operands, side)
    for name, mask in classes(operands.c, form.c):
        yield f"c: {name}", mask
    if form.scale is not None:
        for side, array in (("a", operands.scale_a), ("b", operands.scale_b)):
            array = present(array, "array")
            for name, mask in classes(array, form.scale):
                place = mask.any(-1)[:, :, None] if side == "a" else mask.any(-2)[:, None, :]
                yield f"scale_{side}: {name}", np.broadcast_to(place, done.code.shape)
    yield from _products_seen(operands, done)


def _somewhere(mask: Array, operands: Operands, side: str) -> Array:
    """Return outputs with such an element in their row of A, or among what they meet of B."""
    if side == "b" and operands.columns is not None:
        return np.asarray(broadcast_factors(mask, operands, side).any(-1))
    seen = mask.any(2)[:, :, None] if side == "a" else mask.any(1)[:, None, :]
    return np.broadcast_to(seen, operands.c.shape)


def _products_seen(operands: Operands, done: Sums) -> Iterator[Mask]:
    form = operands.product
    if not form.a.is_float:
        return
    b = decode(operands.b, form.b)
    yield "special: product of subnormal numbers", _small_times_small(operands)
    if operands.columns is not None:
        number = (done.code & form.d.code_dtype.type(form.d.mask & ~form.d.sign_bit)) <= form.d.infinity
        finite = number & (done.code & form.d.code_dtype.type(form.d.infinity) != form.d.infinity)
        yield "unselected B: NaN", number & _unselected(operands, b.special == NOT_A_NUMBER)
        yield "unselected B: Inf", finite & _unselected(operands, b.special == INFINITE)


def _small_times_small(operands: Operands) -> Array:
    """Return outputs with a product of two subnormal factors."""
    form = operands.product
    a, b = (_is_subnormal(getattr(operands, side), form.format(side)) for side in "ab")
    if operands.columns is None:  # so many of them, exact in float32
        return np.asarray(a.astype(np.float32) @ b.astype(np.float32) > 0)
    return np.asarray((broadcast_factors(a, operands, "a") & broadcast_factors(b, operands, "b")).any(-1))


def _is_subnormal(codes: Array, element: Format) -> Array:
    number = decode(codes, element)
    return (
        (np.abs(number.significand) < 1 << element.fraction_bits)
        & number.nonzero
        & (number.special == FINITE)
    )


def _unselected(operands: Operands, wanted: Array) -> Array:
    """Return outputs with a wanted element of B that no stored element of A's row meets."""
    columns = present(operands.columns, "columns")
    tiles, rows, _ = columns.shape
    met = np.zeros((tiles, rows, operands.b.shape[1]), np.bool_)
    np.put_along_axis(met, columns, True, axis=-1)
    return (~met[:, :, :, None] & wanted[:, None]).any(2)
