"""Loops that do nothing but a family's operations, on operands that stay in the first-level cache.

What they leave out of a product: exponents, rounding, accumulators that come and go, decoding. They compute
nothing that is wanted; their times are what a processor takes for the operations alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numba
import numpy as np

from warpsim.sums.arithmetic.kernels.llvm.chain_blocks import quad_step
from warpsim.sums.arithmetic.kernels.llvm.vectors import (
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    Lanes,
    cgutils,
    constant,
    embedded_fused_toward_zero,
    intrinsic,
    ir,
    load,
    pointers,
    splat,
    types,
)

PRODUCTS, COLUMNS, ROUNDS = 16, 256, 2000
Factors = tuple[list[Lanes], list[Lanes]]
Body = Callable[[Factors, Lanes], Lanes]


def _cut(factors: Factors, total: Lanes) -> Lanes:
    """Multiply, scale, cut to integers and add: sums whose terms are truncated."""
    up = constant(total.builder, F32, 1024.0, total.width)
    terms = [((x * y) * up).to(I32) for x, y in zip(*factors, strict=True)]
    return total + reduce(Lanes.__add__, terms)


def _floored(factors: Factors, total: Lanes) -> Lanes:
    """Multiply and add toward zero, a rounding of each instruction's own."""
    chains = [total, total]
    for k, (x, y) in enumerate(zip(*factors, strict=True)):
        chains[k % 2] = embedded_fused_toward_zero(x, y, chains[k % 2])
    return chains[0] + chains[1]


def _fused(factors: Factors, total: Lanes) -> Lanes:
    """Multiply and add float64, in chains of 4 that are then added."""
    kind = total.value.type
    signature = ir.FunctionType(kind, [kind] * 3)
    fused = cgutils.get_or_insert_function(total.builder.module, signature, f"llvm.fma.v{total.width}f64")
    chains = [total] * 4
    for k, (x, y) in enumerate(zip(*factors, strict=True)):
        chain = chains[k % 4]
        chains[k % 4] = Lanes(total.builder, total.builder.call(fused, [x.value, y.value, chain.value]))
    return reduce(Lanes.__add__, chains)


def _quads(factors: Factors, total: Lanes) -> Lanes:
    """Sum four products from zero, and add that; four times."""
    for start in range(0, PRODUCTS, 4):
        total = quad_step(factors[0][start : start + 4], factors[1][start : start + 4], total)
    return total


def _products(factors: Factors, total: Lanes) -> Lanes:
    """Multiply and add 16-bit integers."""
    return total + reduce(Lanes.__add__, [x * y for x, y in zip(*factors, strict=True)])


def _largest(factors: Factors, total: Lanes) -> Lanes:
    """Add bytes and keep the largest sum."""
    sums = [x.unsigned_sum(y) for x, y in zip(*factors, strict=True)]
    return total.unsigned_maximum(reduce(Lanes.unsigned_maximum, sums))


def _octets(factors: Factors, total: Lanes) -> Lanes:
    """Multiply four pairs of bytes and add them: 4 products a lane."""
    kind = ir.VectorType(I32, 16)
    signature = ir.FunctionType(kind, [kind] * 3)
    name = "llvm.x86.avx512.vpdpbusd.512"
    add = cgutils.get_or_insert_function(total.builder.module, signature, name)
    chains = [total] * 4
    for k, (x, y) in enumerate(zip(*factors, strict=True)):
        chain = chains[k % 4]
        chains[k % 4] = Lanes(total.builder, total.builder.call(add, [chain.value, x.value, y.value]))
    return reduce(Lanes.__add__, chains)


# name -> dtype of factors, dtype of sums, LLVM types of both, lanes, products of a lane, needs AVX-512
LOOPS: dict[str, tuple[Any, Any, Any, int, int, bool, Body]] = {
    "cut": (np.float32, np.int32, (F32, I32), 32, 1, False, _cut),
    "floored": (np.float32, np.float32, (F32, F32), 32, 1, True, _floored),
    "largest": (np.uint8, np.uint8, (I8, I8), 64, 1, False, _largest),
    "fused": (np.float64, np.float64, (F64, F64), 16, 1, False, _fused),
    "quads": (np.float32, np.float32, (F32, F32), 32, 1, False, _quads),
    "words": (np.int16, np.int16, (I16, I16), 64, 1, False, _products),
    "octets": (np.int32, np.int32, (I32, I32), 16, 4, True, _octets),
}


@intrinsic
def _row(typing: Any, code: Any, arrays: Any) -> Any:
    """Add the products of a row of b's columns to a row of sums; ``code``: the loop's place in LOOPS."""
    if not isinstance(code, types.IntegerLiteral):
        return None  # Numba asks again with the literal type
    *_, lanes, _, _, body = list(LOOPS.values())[code.literal_value]

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        a, b, c = pointers(context, builder, signature.args[1], values[1])
        left = [builder.load(builder.gep(a, [ir.Constant(I64, k)])) for k in range(PRODUCTS)]
        first, stop, step = (ir.Constant(I64, number) for number in (0, COLUMNS, lanes))
        with cgutils.for_range_slice(builder, first, stop, step, I64) as (j, _):
            places = [builder.add(j, ir.Constant(I64, k * COLUMNS)) for k in range(PRODUCTS)]
            right = [load(builder, b, place, lanes) for place in places]
            factors = [splat(builder, x, lanes) for x in left], right
            body(factors, load(builder, c, j, lanes)).store(c, j)
        return context.get_dummy_value()

    return types.none(code, arrays), emit


def bare_loop(name: str) -> Callable[[], None]:
    """Return what executes a loop ROUNDS times, for PRODUCTS * COLUMNS products a lane each."""
    code = list(LOOPS).index(name)
    dtype, of_sums = LOOPS[name][:2]

    @numba.njit(nogil=True)
    def rounds(a: Any, b: Any, c: Any) -> None:
        for number in range(ROUNDS):
            _row(code, (a[number % 2], b, c))

    a = np.ones((2, PRODUCTS), dtype)
    b, c = _aligned(PRODUCTS * COLUMNS, dtype), _aligned(COLUMNS, of_sums)
    return lambda: rounds(a, b, c)


def _aligned(size: int, dtype: Any) -> Any:
    """Return zeros that begin at a cache line."""
    room = np.zeros(size * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size * np.dtype(dtype).itemsize].view(dtype)
