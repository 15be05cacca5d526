"""Products of 8-bit integers by the instruction that multiplies four pairs of bytes and adds (AVX-512 VNNI).

Its first factor is unsigned, its second signed, and its sums wrap modulo 2**32. A block of D of ROWS rows and
COLUMNS columns stays in registers over all of k. ``has_octets`` is False for other CPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ._jit import Array, interpreted, kernel
from .llvm.vectors import (
    I1,
    I32,
    I64,
    Lanes,
    cgutils,
    constant,
    intrinsic,
    ir,
    load,
    pointer_of,
    splat,
    types,
)

ROWS, COLUMNS = 6, 64
_LANES = 16
_ADD = "llvm.x86.avx512.vpdpbusd.512"


@intrinsic
def _compiled_with_octets(typing: Any) -> tuple[Any, Callable[..., Any]]:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        features = context.codegen().magic_tuple()[2].split(",")
        return ir.Constant(I1, int("+avx512vnni" in features and "+avx512f" in features))

    return types.boolean(), emit


@kernel
def _asks_for_octets() -> bool:
    return bool(_compiled_with_octets())


@cache
def has_octets() -> bool:
    """Return whether the CPU that kernels are compiled for has the instruction."""
    return not interpreted() and bool(_asks_for_octets())


class _Block:
    """The emitter of a block of D; holds the pointers of the call."""

    def __init__(self, builder: Any, a: Any, b: Any) -> None:
        self.builder, self.a, self.b = builder, a, b
        vector = ir.VectorType(I32, _LANES)
        self.add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector, vector, vector]), _ADD
        )
        zero = constant(builder, I32, 0, _LANES).value
        self.sums = [
            [cgutils.alloca_once_value(builder, zero) for _ in range(COLUMNS // _LANES)] for _ in range(ROWS)
        ]

    def step(self, a_at: Any, stride: Any, b_at: Any) -> None:
        """Add four products along k: words of four bytes at ``a_at + row * stride`` and from ``b_at`` on."""
        builder = self.builder
        columns = [
            load(builder, self.b, builder.add(b_at, ir.Constant(I64, start)), _LANES)
            for start in range(0, COLUMNS, _LANES)
        ]
        for number, row in enumerate(self.sums):
            place = builder.add(a_at, builder.mul(stride, ir.Constant(I64, number)))
            word = splat(builder, builder.load(builder.gep(self.a, [place])), _LANES)
            for place, column in zip(row, columns, strict=True):
                total = builder.call(self.add, [builder.load(place), word.value, column.value])
                builder.store(total, place)

    def store(self, d: Any, d_at: Any, width: Any) -> None:
        """Write the sums to rows ``width`` apart."""
        builder = self.builder
        for number, row in enumerate(self.sums):
            first = builder.add(d_at, builder.mul(width, ir.Constant(I64, number)))
            for part, place in enumerate(row):
                at = builder.add(first, ir.Constant(I64, part * _LANES))
                Lanes(builder, builder.load(place)).store(d, at)


@intrinsic
def _block(typing: Any, a: Any, b: Any, d: Any, at: Any, words: Any, width: Any) -> Any:
    """Write a block of products of flat int32 arrays: a row by row, a panel of b word by word."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args
        a, b, d = (pointer_of(context, builder, kinds[i], values[i]) for i in range(3))
        a_at, b_at, d_at = cgutils.unpack_tuple(builder, values[3], 3)
        words, width = values[4], values[5]
        block = _Block(builder, a, b)
        zero, one = ir.Constant(I64, 0), ir.Constant(I64, 1)
        with cgutils.for_range_slice(builder, zero, words, one, I64) as (word, _):
            columns = builder.add(b_at, builder.mul(word, ir.Constant(I64, COLUMNS)))
            block.step(builder.add(a_at, word), words, columns)
        block.store(d, d_at, width)
        return context.get_dummy_value()

    return types.none(a, b, d, at, words, width), emit


@kernel
def octet_products(a: Array, b: Array, rows: int, words: int, width: int, d: Array) -> None:
    """Write ``a (rows, words)`` times b, as pack_octets leaves it, to ``d (rows, width)``; flat int32 arrays.

    A word is four elements along k: of a unsigned, of b signed. ``rows`` is a multiple of ROWS, ``width`` of
    COLUMNS.
    """
    for column in range(0, width, COLUMNS):
        for row in range(0, rows, ROWS):
            _block(a, b, d, (row * words, column * words, row * width + column), words, width)


@kernel
def pack_octets(b: Array, words: int, packed: Array) -> None:
    """Write ``b (k, n)`` int8 to ``packed (panels, words, COLUMNS)`` int32, a word four elements along k.

    Elements beyond k and n are zero.
    """
    depth, columns = b.shape
    packed[:] = 0
    for panel in range(packed.shape[0]):
        first = panel * COLUMNS
        count = min(COLUMNS, columns - first)
        for k in range(depth):
            row, word, shift = b[k], packed[panel, k // 4], np.int32(k % 4 * 8)
            for j in range(count):
                octet = np.int32(np.int32(row[first + j]) & np.int32(255))
                word[j] = np.int32(word[j] | np.int32(octet << shift))
