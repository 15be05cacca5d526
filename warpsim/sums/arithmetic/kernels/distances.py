"""Planes of distances: how far exponents are below a bound of their row or column of a step, as bytes.

For formats whose exponents bytes do not hold. Reads the planes of exponents that decode writes, and knows no
format; what bounds and distances are, variants states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._jit import Array, kernel
from .llvm.vectors import I8, I32, I64, Lanes, cgutils, intrinsic, ir, load, pointer_of, splat, types
from .variants import BOUND_A, BOUND_B, MOST_DISTANT, UNBOUNDED

_COLUMNS = 64  # of a vector; the columns of a panel are a multiple of them


def _largest_of(first: Lanes, run: tuple[Any, ...], at: Callable[[Any], Lanes]) -> Lanes:
    """Emit a loop over ``run``; return the largest of what is there, lane by lane."""
    builder = first.builder
    largest = cgutils.alloca_once(builder, first.value.type)
    builder.store(first.value, largest)
    with cgutils.for_range_slice(*run) as (k, _):
        builder.store(Lanes(builder, builder.load(largest)).maximum(at(k)).value, largest)
    return Lanes(builder, builder.load(largest))


def _bound(largest: Lanes, lift: int) -> Lanes:
    return (largest + lift).maximum(0).minimum(UNBOUNDED)


def _distance(bound: Lanes, exponent: Lanes, lift: int) -> Lanes:
    return (bound - lift - exponent).minimum(MOST_DISTANT).to(I8)


@intrinsic
def _row_distances(
    typing: Any, exponents: Any, start: Any, stop: Any, distances: Any
) -> tuple[Any, Callable[..., Any]]:
    """Write distances of ``exponents[start:stop]``, a multiple of 4, and return their bound."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target = (pointer_of(context, builder, signature.args[k], arguments[k]) for k in (0, 3))
        run = (builder, arguments[1], arguments[2], ir.Constant(I64, 4), I64)
        largest = _largest_of(
            load(builder, source, arguments[1], 4), run, lambda k: load(builder, source, k, 4)
        )
        pair = largest.part(0, 2).maximum(largest.part(2, 2))
        bound = _bound(pair.part(0, 1).maximum(pair.part(1, 1)), BOUND_A)
        number = builder.extract_element(bound.value, ir.Constant(I32, 0))
        with cgutils.for_range_slice(*run) as (k, _):
            _distance(splat(builder, number, 4), load(builder, source, k, 4), BOUND_A).store(target, k)
        return builder.trunc(number, I8)

    return types.uint8(exponents, start, stop, distances), emit


@kernel
def pack_distances_a(exponents: Array, bounds: Array, distances: Array, products: int) -> None:
    """Write the bound of every run of ``products`` exponents (int16), and distances from it."""
    for number in range(len(bounds)):
        start = number * products
        bounds[number] = _row_distances(exponents, start, start + products, distances)


@intrinsic
def _column_distances(
    typing: Any, exponents: Any, bounds: Any, distances: Any, place: Any, shape: Any
) -> tuple[Any, Callable[..., Any]]:
    """Write bounds of columns and distances; ``place = (first of exponents, of bounds)``.

    ``shape = (rows, columns, stride)``, whose columns are a multiple of _COLUMNS.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, tops, target = (
            pointer_of(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 2)
        )
        first, at = cgutils.unpack_tuple(builder, arguments[3], 2)
        rows, columns, stride = cgutils.unpack_tuple(builder, arguments[4], 3)
        run = (builder, first, builder.add(first, builder.mul(rows, stride)), stride, I64)
        vectors = (builder, ir.Constant(I64, 0), columns, ir.Constant(I64, _COLUMNS), I64)
        with cgutils.for_range_slice(*vectors) as (j, _):

            def column(row: Any, j: Any = j) -> Lanes:
                return load(builder, source, builder.add(row, j), _COLUMNS)

            bound = _bound(_largest_of(column(first), run, column), BOUND_B)
            bound.to(I8).store(tops, builder.add(at, j))
            with cgutils.for_range_slice(*run) as (row, _):
                _distance(bound, column(row), BOUND_B).store(target, builder.add(row, j))
        return context.get_dummy_value()

    return types.void(exponents, bounds, distances, place, shape), emit


@kernel
def pack_distances_b(exponents: Array, bounds: Array, distances: Array, shape: tuple[int, int, int]) -> None:
    """Write the bound of every pass and column, and the distances of exponents (int16) from it.

    ``shape = (rows of a pass, columns, stride)``.
    """
    depth, _, stride = shape
    for number in range(len(bounds) // stride):
        _column_distances(exponents, bounds, distances, (number * depth * stride, number * stride), shape)
