"""Matrix products of any size, as panels: what is decoded where, and the order and threads of the sums.

Codes in, float32 results out (f16 results are widened). Knows formats and plans; does not know how a panel is
summed (kernels.panels, or kernels.numpy_blocks where there is no compiler) and no lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import present
from ...isa.codes import values_of
from ...isa.formats import FORMATS, Format
from ...isa.products import Codes
from .kernels import decode, distances, numpy_blocks
from .kernels._jit import interpreted
from .kernels.panels import ROWS, canonical_nan, half_codes, panel_kernel
from .kernels.variants import LIFT_A, LIFT_B, SPECIAL, ZERO, Variant
from .planes import canonical as canonical_codes
from .planes import converted, planes, read_only
from .plans import LANES, Plan, coding_of

Floats = npt.NDArray[np.float32]
_A_BYTES = 64 << 20  # planes of A held at once


# --- products ----------------------------------------------------------------------------------------
_LINE = 64  # bytes of a cache line, as wide as a vector may be
KEPT = 4 << 20  # bytes of the largest array that is kept

_memory = local()


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Codes ``a (m, stored)``, ``b (k, n)`` and their indices and scales; results are added to ``out (m,
    n)``.

    ``indices (m, units)`` where A is sparse, ``scale_a (m, passes)`` and ``scale_b (passes, n)`` where it is
    scaled. ``bounds`` and ``promote`` as in kernels.panels.
    """

    plan: Plan
    a: Codes
    b: Codes
    out: Floats
    bounds: npt.NDArray[np.int64]
    promote: bool = False
    indices: Codes | None = None
    scale_a: Codes | None = None
    scale_b: Codes | None = None

    @property
    def passes(self) -> int:
        """Number of passes along k."""
        return int(self.bounds[-1])


Plane = npt.NDArray[Any]
PlanesA = tuple[Floats, Plane, Plane, Plane, Plane]  # see kernels.panels
PlanesB = tuple[Floats, Plane, Plane, Plane]


def decoded_a(problem: Problem, first: int, stop: int) -> PlanesA:
    """Return planes of some rows of A."""
    plan, rows, passes = problem.plan, stop - first, problem.passes
    size = rows * passes * plan.products
    values, exponents = scratch("a", size, np.float32), scratch("a_exponents", size, plan.exponents)
    element, codes = plan.product.a, read_only(problem.a[first:stop])
    emulated = plan.variant.emulated
    coding = coding_of(element, as_half=emulated, lift=LIFT_A)
    decode.pack_a(codes, values, exponents, plan.order, emulated, coding)
    offsets = np.empty(size if problem.indices is not None else 0, np.int32)
    if problem.indices is not None:
        stored, stride = codes.shape[1], plan.variant.stride
        decode.pack_offsets(
            read_only(problem.indices[first:stop]),
            offsets,
            stored,
            plan.units,
            plan.bases,
            plan.unit,
            stride,
        )
    if plan.variant.relative:
        bounds, far = scratch("a_bounds", rows * passes, np.uint8), scratch("a_bytes", size, np.uint8)
        distances.pack_distances_a(exponents, bounds, far, plan.products)
        return values, exponents, offsets, bounds, far
    scales = np.empty(rows * passes if problem.scale_a is not None else 0, np.int16)
    if problem.scale_a is not None:
        decode.pack_scales_a(read_only(problem.scale_a[first:stop]), scales, *_scale_numbers(plan))
    return values, exponents, offsets, scales, _lows(plan, "a_bytes", values, negative=True)


def decoded_b(problem: Problem, first: int, count: int, n: int) -> PlanesB:
    """Return planes of some columns of B, filled up to n columns."""
    plan, passes = problem.plan, problem.passes
    stride = plan.variant.stride
    part = (first, count, n, stride)
    size = passes * plan.depth * stride
    values, exponents = scratch("b", size, np.float32), scratch("b_exponents", size, plan.exponents)
    element = plan.product.b
    order = np.arange(plan.depth) if plan.variant.sparse else plan.order
    coding = coding_of(element, as_half=plan.variant.emulated, lift=LIFT_B)
    decode.pack_b(read_only(problem.b), part, values, exponents, order, coding)
    if plan.variant.relative:
        bounds, far = scratch("b_bounds", passes * stride, np.uint8), scratch("b_bytes", size, np.uint8)
        distances.pack_distances_b(exponents, bounds, far, (plan.depth, n, stride))
        return values, exponents, bounds, far
    scales = np.empty(passes * stride if problem.scale_b is not None else 0, np.int16)
    if problem.scale_b is not None:
        decode.pack_scales_b(read_only(problem.scale_b), part, scales, *_scale_numbers(plan))
    return values, exponents, scales, _lows(plan, "b_bytes", values, negative=False)


def _lows(plan: Plan, name: str, values: Floats, *, negative: bool) -> Plane:
    """Return the plane of lowest bits that belongs to values, where the plan has it."""
    lows = scratch(name, values.size if plan.variant.floored else 0, np.uint8)
    decode.pack_lows(values[: lows.size], lows, int(negative))
    return lows


def _scale_numbers(plan: Plan) -> tuple[int, int]:
    """Return bias and NaN code of scales that are powers of two."""
    scale = present(plan.product.scale, "scale")
    if scale.fraction_bits:
        raise AssertionError(f"scales have {scale.fraction_bits} fraction bits: not powers of two")
    return scale.bias, scale.canonical_nan


@cache
def _compiled(variant: Variant) -> Callable[..., int]:
    return panel_kernel(variant)


Task = tuple[int, int, int, int]  # first column, columns, first row, stop of the rows of a block of A


def _blocks(problem: Problem) -> Iterator[tuple[int, int]]:
    """Yield rows of A that are decoded at once."""
    rows = problem.a.shape[0]
    each = problem.passes * problem.plan.products * 10
    height = max(ROWS, _A_BYTES // max(each, 1) // ROWS * ROWS)
    for first in range(0, rows, height):
        yield first, min(first + height, rows)


def _tasks(columns: int, width: int, rows: int, threads: int) -> list[Task]:
    """Return panels, cut along the rows too where there are too few of them to keep the threads busy."""
    panels = -(-columns // width)
    cuts = 1 if threads == 1 else max(1, min(-(-4 * threads // panels), rows // ROWS))
    height = -(-rows // (cuts * ROWS)) * ROWS
    return [
        (first, min(width, columns - first), row, min(row + height, rows))
        for first in range(0, columns, width)
        for row in range(0, rows, height)
    ]


@in_default_environment
def multiply(problem: Problem, threads: int = 1) -> None:
    """Add all products to ``problem.out``; the bits do not depend on the number of threads."""
    rows, columns = problem.out.shape
    if not rows or not columns or not problem.passes:
        return
    if interpreted():
        _without_jit(problem)
        return
    width = problem.plan.variant.stride
    n = min(width, -(-columns // LANES) * LANES)
    kernel = _compiled(problem.plan.variant)
    with ThreadPoolExecutor(threads) as pool:
        for start, stop in _blocks(problem):
            a = decoded_a(problem, start, stop)

            @in_default_environment
            def run(task: Task, a: PlanesA = a, start: int = start, stop: int = stop) -> None:
                first, count, row, last = task
                b = decoded_b(problem, first, count, n)
                c, marks = scratch("c", ROWS * n, np.float32), np.empty(n, np.int8)
                place = ((row, last, stop - start, start), (first, count, n))
                segments = (problem.bounds, problem.promote)
                kernel((a, b), problem.out, place, segments, problem.plan.numbers, (c, marks))

            tasks = _tasks(columns, width, stop - start, threads)
            for _ in map(run, tasks) if threads == 1 else pool.map(run, tasks):
                pass


# --- without a compiler ------------------------------------------------------------------------------

_BLOCK_ROWS, _BLOCK_COLUMNS = 128, 256


def _without_jit(problem: Problem) -> None:
    """Multiply with NumPy alone, block by block."""
    rows, columns = problem.out.shape
    problem = _filled_up(problem)
    for j in range(0, columns, _BLOCK_COLUMNS):
        right = slice(j, min(j + _BLOCK_COLUMNS, columns))
        b = _planes(problem.b[:, right], problem, problem.plan.product.b)
        for i in range(0, rows, _BLOCK_ROWS):
            left = slice(i, min(i + _BLOCK_ROWS, rows))
            a = _planes(problem.a[left], problem, problem.plan.product.a)
            _block(problem, left, right, a, b)


def _filled_up(problem: Problem) -> Problem:
    """Return the problem with zeros up to the end of the last pass."""
    plan = problem.plan
    stored = problem.passes * plan.products - problem.a.shape[1]
    depth = problem.passes * plan.depth - problem.b.shape[0]
    indices = problem.indices
    if indices is not None:
        indices = np.pad(indices, ((0, 0), (0, stored // plan.unit)))
    a, b = np.pad(problem.a, ((0, 0), (0, stored))), np.pad(problem.b, ((0, depth), (0, 0)))
    return replace(problem, a=a, b=b, indices=indices)


def _planes(codes: Codes, problem: Problem, element: Format) -> tuple[Codes, Codes]:
    """Return values and exponents, for the passes that codes hold."""
    half = FORMATS["f16"]
    as_half = problem.plan.variant.emulated
    split = planes(converted(codes, element, half), half) if as_half else planes(codes, element)
    exponents = np.where(split.significand == 0, ZERO, split.exponent)
    exponents = np.where(split.special != 0, SPECIAL, exponents).astype(np.int16)
    with np.errstate(invalid="ignore"):  # a signaling NaN is still a NaN
        return values_of(codes, element).astype(np.float32), exponents


def _block(
    problem: Problem, left: slice, right: slice, a: tuple[Codes, Codes], b: tuple[Codes, Codes]
) -> None:
    out = problem.out[left, right]
    for first, stop in zip(problem.bounds, problem.bounds[1:], strict=False):
        c = np.zeros_like(out) if problem.promote else out
        for number in range(int(first), int(stop)):
            c = _block_pass(problem, (left, right), a, b, number, c)
        with np.errstate(all="ignore"):
            problem.out[left, right] = out = out + c if problem.promote else c


def _block_pass(
    problem: Problem,
    place: tuple[slice, slice],
    a: tuple[Codes, Codes],
    b: tuple[Codes, Codes],
    number: int,
    c: Floats,
) -> Floats:
    """Add a pass over a block: the fast way, then the exact way for the elements that it leaves open."""
    plan = problem.plan
    stored = number * plan.products + plan.order
    meets = _meets(problem, place[0], number, stored)
    x = a[0][:, stored].T[..., None], a[1][:, stored].T[..., None]
    y = b[0][meets], b[1][meets]
    scale = _block_scale(problem, *place, number)
    value, hazard = numpy_blocks.pass_of(x, y, scale, c, plan.numbers, plan.variant)
    i, j = np.nonzero(hazard)
    if len(i):
        row = i if meets.shape[1] > 1 else np.zeros_like(i)
        x = x[0][:, i, 0], x[1][:, i, 0]
        y = y[0][:, row, j], y[1][:, row, j]
        scale = None if scale is None else scale[i, j]
        value[i, j] = numpy_blocks.exact_pass(x, y, scale, c[i, j], plan.numbers, plan.variant)
    return value


def _meets(problem: Problem, left: slice, number: int, stored: Codes) -> Codes:
    """Return rows of B, ``(products, 1 or rows)``, that the stored columns of a pass meet."""
    if problem.indices is None:
        return stored[:, None]
    plan = problem.plan
    which = number * (plan.products // plan.unit) + plan.units
    units = problem.indices[left][:, which].T.astype(np.intp)
    return number * plan.depth + plan.bases[:, None] + plan.unit * units


def _block_scale(problem: Problem, left: slice, right: slice, number: int) -> Codes | None:
    if problem.scale_a is None or problem.scale_b is None:
        return None
    bias, nan = _scale_numbers(problem.plan)
    of_a, of_b = (
        np.where(codes == nan, SPECIAL, codes.astype(np.int32) - bias)
        for codes in (problem.scale_a[left, number, None], problem.scale_b[None, number, right])
    )
    return of_a + of_b


def canonical(codes: Codes) -> Codes:
    """Return f32 codes (m, n), in which every NaN has been replaced, in place, by the canonical NaN."""
    if interpreted():
        codes[codes & 0x7FFFFFFF > 0x7F800000] = 0x7FFFFFFF
    else:
        canonical_nan(codes.view(np.int32))
    return codes


def halves(numbers: Floats) -> Codes:
    """Return f16 codes (m, n) of float32 numbers that f16 holds; every NaN is the canonical NaN."""
    half = FORMATS["f16"]
    if interpreted():
        return canonical_codes(numbers.astype(half.dtype), half)
    codes = np.empty(numbers.shape, half.code_dtype)
    half_codes(numbers.reshape(-1), codes.reshape(-1))
    return codes


# --- memory that is reused: the page faults of new memory cost more than small products themselves --


def aligned(size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a new, uninitialised array that begins at a cache line, so that no vector of it crosses two."""
    itemsize = np.dtype(dtype).itemsize
    room = np.empty(size * itemsize + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + size * itemsize].view(dtype)


def scratch(name: str, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an aligned, uninitialised array: the caller's until the thread asks for the same name again."""
    needed = size * np.dtype(dtype).itemsize
    room = getattr(_memory, name, None)
    if room is None or room.size < needed:
        room = aligned(needed, np.uint8)
        if needed <= KEPT:
            setattr(_memory, name, room)
    return room[:needed].view(dtype)
