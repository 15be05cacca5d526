"""Launches of the kernels in traces/kernels: their arguments, and what they must leave. Everything is seeded.

Products are made in kernel_products. Knows nothing about how kernels are executed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tests.helpers import tensor_products
from tests.helpers.cluster_cases import CLUSTERS
from tests.helpers.fragment_cases import FRAGMENTS
from tests.helpers.kernel_products import (
    SORTS,
    Array,
    Case,
    Rng,
    benchmark,
    inexact_products,
    products,
    warpgroup_benchmark,
)
from tests.helpers.pipeline_products import PIPELINE_OF_512, PIPELINES
from tests.helpers.tensor_core_products import TENSOR_CORE
from tests.helpers.tensor_kinds_products import TENSOR_KINDS
from tests.helpers.tensor_persistent_products import TENSOR_PERSISTENT
from tests.helpers.tensor_pipeline_products import TENSOR_PIPELINES

FOLDER = Path(__file__).parents[2] / "traces" / "kernels"


def _softmax(rng: Rng) -> Case:
    """Seven rows in CTAs of two warps: the last warp has none; 75 columns: some lanes have fewer."""
    rows, columns = 7, 75
    x = rng.normal(scale=3, size=(rows, columns)).astype(np.float32)
    scaled = (x - x.max(axis=1, keepdims=True)) * np.float32(1.44269504)
    powers = np.exp2(scaled.astype(np.float64)).astype(np.float32)
    sums = np.zeros((rows, 32), np.float32)
    for first in range(0, columns, 32):
        part = powers[:, first : first + 32]
        sums[:, : part.shape[1]] += part
    for distance in (16, 8, 4, 2, 1):
        sums = sums + sums[:, np.arange(32) ^ distance]
    return Case(
        file="softmax.ptx",
        entry="softmax",
        grid=4,
        block=64,
        arguments=(x, np.zeros((rows, columns), np.uint32), rows, columns),
        expected={1: (powers / sums[:, :1]).view(np.uint32)},
    )


# --- reductions and cooperation ----------------------------------------------------------------------


def _any_integers(rng: Rng, size: int | tuple[int, ...]) -> Array:
    return rng.integers(-(2**31), 2**31, size).astype(np.int32)


def _sum_all(rng: Rng) -> Case:
    values = _any_integers(rng, 1000)
    total = np.array([values.astype(np.int64).sum()])
    return Case(
        file="reduction.ptx",
        entry="sum_all",
        grid=3,
        block=128,
        arguments=(values, 1000, np.zeros(1, np.int64)),
        expected={2: total},
        shared_bytes=128 * 8,
    )


def _largest(rng: Rng) -> Case:
    values = rng.integers(0, 2**32, (5, 150), np.uint64).astype(np.uint32)
    return Case(
        file="reduction.ptx",
        entry="largest",
        grid=5,
        block=64,
        arguments=(values, 150, np.zeros(5, np.uint32)),
        expected={2: values.max(axis=1)},
    )


def _chained_scan(rng: Rng, *, ctas: int) -> Case:
    values = _any_integers(rng, ctas * 64)
    sums = values.astype(np.int64).cumsum().astype(np.int32)
    return Case(
        file="cooperation.ptx",
        entry="chained_scan",
        grid=ctas,
        block=64,
        arguments=(values, np.zeros_like(values), np.zeros(ctas, np.int32), np.zeros(ctas, np.int32)),
        expected={1: sums, 2: sums[63::64], 3: np.ones(ctas, np.int32)},
        shared_bytes=64 * 4,
    )


def _locked_sum(rng: Rng) -> Case:
    values = _any_integers(rng, 70)
    total = values.astype(np.int64).sum(keepdims=True).astype(np.int32)
    return Case(
        file="cooperation.ptx",
        entry="locked_sum",
        grid=3,
        block=32,
        arguments=(values, 70, np.zeros(1, np.int32), np.zeros(1, np.int32)),
        expected={2: np.zeros(1, np.int32), 3: total},
    )


def _last_adds(rng: Rng) -> Case:
    values = _any_integers(rng, (40, 32))
    sums = values.astype(np.int64).sum(axis=1).astype(np.int32)
    zero = np.zeros(1, np.uint32)
    return Case(
        file="cooperation.ptx",
        entry="last_adds",
        grid=40,
        block=32,
        arguments=(values, np.zeros(40, np.int32), zero, np.zeros(1, np.int32)),
        expected={1: sums, 2: zero, 3: sums.astype(np.int64).sum(keepdims=True).astype(np.int32)},
    )


def _met(rng: Rng, *, ctas: int) -> Case:
    values = _any_integers(rng, ctas)
    return Case(
        file="cooperation.ptx",
        entry="neighbours",
        grid=ctas,
        block=32,
        arguments=(values, np.zeros_like(values), np.zeros(1, np.uint32), np.zeros_like(values)),
        expected={1: values, 2: np.array([ctas], np.uint32), 3: np.roll(values, -1)},
    )


# --- ordinary code -----------------------------------------------------------------------------------

_TABLE = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3)
_FRAME = np.dtype([("scale", "<i4"), ("shift", "<i4"), ("weight", "<f8"), ("order", "u1", 4), ("_", "V4")])


def _wrapped(value: int) -> int:
    """As an int of 32 bits."""
    return (value + 2**31) % 2**32 - 2**31


def _collatz(x: int) -> int:
    return 0 if x <= 1 else 1 + _collatz(3 * x + 1 if x % 2 else x // 2)


def _called(rng: Rng) -> Case:
    x = rng.integers(0, 1000, 50).astype(np.int32)
    own = np.zeros((), _FRAME)
    own["scale"], own["shift"], own["weight"], own["order"] = -3, 11, -1.75, (0, 3, 1, 2)

    def result(one: int) -> int:
        scale, shift, weight = (-3, 11, -1.75) if one % 2 else (2, 7, 0.25)
        found = int((one * scale + shift) * weight) + _TABLE[one & 15]
        if one % 3 == 0:
            found += one ** (0, 3, 1, 2)[one & 3]
        return _wrapped(found + _collatz((one & 31) + 1))

    return Case(
        file="functions.ptx",
        entry="called",
        grid=2,
        block=32,
        arguments=(x, np.zeros_like(x), 50, own[()]),
        expected={1: np.array([result(one) for one in x.tolist()], np.int32)},
    )


def _swapped_halves(value: int) -> int:
    value %= 2**32
    return (value >> 16 | value << 16) % 2**32


_UNARY: dict[int, Callable[[int, int], int]] = {  # the last value and the operand -> the new last value
    2: lambda last, operand: last + _TABLE[operand],
    3: lambda last, operand: last * (operand - 11),
    6: lambda last, operand: last % 2**32 // (operand + 1),
    7: lambda last, operand: (last & 15) ** (operand & 3),
    8: lambda last, operand: (last % 2**32).bit_count() + operand,
    9: lambda last, operand: (32 - ((last | 1) % 2**32).bit_length()) * last,
    10: lambda last, operand: int(f"{last % 2**32:032b}"[::-1], 2),
    11: lambda last, operand: -(2**31 % (operand + 3)) if last == -(2**31) else abs(last) % (operand + 3),
    12: lambda last, operand: ~last | operand,
    14: lambda last, operand: _swapped_halves(last),
    15: lambda last, operand: last >> operand,
}


def _interpreted(program: Sequence[int]) -> int:
    """What the stack machine of functions.cu leaves."""
    stack, top = [0] * 16, 0
    for instruction in program:
        opcode, operand = instruction & 15, instruction >> 4
        if opcode in (0, 1, 13):
            pushed = stack[top] if opcode == 13 else operand
            top = min(top + 1, 15)
            stack[top] = pushed
        elif opcode == 4:
            top = max(top - 1, 0)
            stack[top] = _wrapped(stack[top] - stack[top + 1])
        elif opcode == 5:
            stack[top] ^= stack[operand % (top + 1)]
        else:
            stack[top] = _wrapped(_UNARY[opcode](stack[top], operand))
    return _wrapped(stack[top] + top)


def _interpret(rng: Rng) -> Case:
    programs = rng.integers(0, 256, (96, 40)).astype(np.uint8)
    expected = np.array([_interpreted(one) for one in programs.tolist()], np.int32)
    return Case(
        file="functions.ptx",
        entry="interpret",
        grid=3,
        block=32,
        arguments=(programs, 40, np.zeros(96, np.int32)),
        expected={2: expected},
        shared_bytes=32 * 40,
    )


# --- all of them -------------------------------------------------------------------------------------

_MAKERS: dict[str, Callable[[Rng], Case]] = {
    **{f"{name} {sort}": partial(make, sort) for name, make in products() for sort in SORTS},
    **{f"{name} {sort}": partial(make, sort) for name, make in inexact_products() for sort in SORTS[:2]},
    "softmax": _softmax,
    "sum_all": _sum_all,
    "largest": _largest,
    "chained_scan of 3 CTAs": partial(_chained_scan, ctas=3),
    "chained_scan of 40 CTAs": partial(_chained_scan, ctas=40),
    "locked_sum": _locked_sum,
    "last_adds": _last_adds,
    "neighbours of 20 CTAs": partial(_met, ctas=20),
    "neighbours of 100 CTAs": partial(_met, ctas=100),
    "called": _called,
    "interpret": _interpret,
    "tensor_ring of whole tiles": partial(tensor_products.ring, size=(128, 64, 192), ctas=3),
    "tensor_ring of parts of tiles": partial(tensor_products.ring, size=(100, 72, 80), ctas=2),
    "tensor_split": tensor_products.split,
    **CLUSTERS,
    **FRAGMENTS,
    **PIPELINES,
    **TENSOR_CORE,
    **TENSOR_PIPELINES,
    **TENSOR_KINDS,
    **TENSOR_PERSISTENT,
}
NAMES = tuple(_MAKERS)
BENCHMARK = "sparse_product of 512"
WARPGROUP_BENCHMARK = "warpgroup_f16 of 512"
PIPELINE_BENCHMARK = "cooperative_f16 of 512"
_BENCHMARKS = {
    BENCHMARK: benchmark,
    WARPGROUP_BENCHMARK: warpgroup_benchmark,
    PIPELINE_BENCHMARK: PIPELINE_OF_512,
}


def case(name: str) -> Case:
    """The launch of that name; it is the same every time."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if name in _BENCHMARKS:
        return _BENCHMARKS[name](rng)
    return _MAKERS[name](rng)
