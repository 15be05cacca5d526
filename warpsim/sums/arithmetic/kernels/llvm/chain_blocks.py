"""A block of D whose elements are chains of IEEE operations, in registers over many products, as LLVM code.

ROWS rows and some vectors of columns: every factor that is loaded meets several others, and the chains of a
block hide the time that an operation takes. Order and rounding of an element's operations are those of its
chain alone. Layouts are those of kernels.chains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .vectors import F32, F64, I64, Lanes, cgutils, constant, ir, load, splat

ROWS = 4
LANES = {"f64": 8, "f32": 16}  # of a vector
PRODUCTS = 4  # of a step; a multiple of them is computed

Step = Callable[[list[Lanes], list[Lanes], Lanes], Lanes]  # factors of A and of B, the accumulator


def fused_step(a: list[Lanes], b: list[Lanes], c: Lanes) -> Lanes:
    """Add products in order, each with one rounding in the CPU's current mode."""
    kind = c.value.type
    signature = ir.FunctionType(kind, [kind] * 3)
    fused = cgutils.get_or_insert_function(c.builder.module, signature, f"llvm.fma.v{c.width}f64")
    for x, y in zip(a, b, strict=True):
        c = Lanes(c.builder, c.builder.call(fused, [x.value, y.value, c.value]))
    return c


def quad_step(a: list[Lanes], b: list[Lanes], c: Lanes) -> Lanes:
    """Add four products, summed from +0; products of two f16 are exact in float32."""
    first, *others = [x * y for x, y in zip(a, b, strict=True)]
    chain = first + constant(c.builder, F32, 0.0, c.width)
    for product in others:
        chain = chain + product
    return c + chain


STEPS: dict[str, tuple[Any, Step]] = {"f64": (F64, fused_step), "f32": (F32, quad_step)}


def emit_block(builder: Any, kind: str, vectors: int, arrays: list[Any], numbers: list[Any]) -> None:
    """Continue a block of c by ``depth`` products.

    ``arrays``: pointers to a, b and c at the block; ``numbers``: elements from a row of a to the next, from a
    row of c to the next, and depth.
    """
    _, step = STEPS[kind]
    a, b, c = arrays
    stride_a, stride_c, depth = numbers
    lanes = LANES[kind]
    rows = [builder.mul(stride_c, _integer(i)) for i in range(ROWS)]
    places = [[builder.add(row, _integer(v * lanes)) for v in range(vectors)] for row in rows]
    sums = [[_variable(builder, load(builder, c, at, lanes)) for at in row] for row in places]
    with cgutils.for_range_slice(builder, _integer(0), depth, _integer(PRODUCTS), I64) as (k, _):
        right = [_columns(builder, b, k, vectors, lanes, place) for place in range(PRODUCTS)]
        for i, row in enumerate(sums):
            start = builder.add(builder.mul(stride_a, _integer(i)), k)
            left = [_factor(builder, a, builder.add(start, _integer(p)), lanes) for p in range(PRODUCTS)]
            for v, place in enumerate(row):
                total = step(left, [x[v] for x in right], Lanes(builder, builder.load(place)))
                builder.store(total.value, place)
    for row, at_row in zip(sums, places, strict=True):
        for place, at in zip(row, at_row, strict=True):
            Lanes(builder, builder.load(place)).store(c, at)


def _variable(builder: Any, value: Lanes) -> Any:
    return cgutils.alloca_once_value(builder, value.value)


def _columns(builder: Any, b: Any, k: Any, vectors: int, lanes: int, place: int) -> list[Lanes]:
    """Return a row of B's panel."""
    first = builder.mul(builder.add(k, _integer(place)), _integer(vectors * lanes))
    return [load(builder, b, builder.add(first, _integer(v * lanes)), lanes) for v in range(vectors)]


def _factor(builder: Any, a: Any, at: Any, lanes: int) -> Lanes:
    return splat(builder, builder.load(builder.gep(a, [at])), lanes)


def _integer(number: int) -> Any:
    return ir.Constant(I64, number)
