"""Matrix products of any size, as panels: what to decode where, and in which order and thread.

Codes in, float32 results out (f16 results are widened). Knows formats and rules; does not know how a
panel is summed (kernels.panels, or kernels.whole where there is no compiler) and no lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from ..environment import in_default_environment
from ..errors import present
from ..isa.architectures import EmulatedF8, FusedSum, Rule
from ..isa.codes import values_of
from ..isa.formats import FORMATS, Format
from ..isa.instruction import Codes, Instruction
from .kernels import decode, whole
from .kernels._jit import interpreted
from .kernels.panels import ROWS, canonical_nan, panel_kernel
from .kernels.variants import SPECIAL, ZERO, Variant
from .planes import converted, planes

Floats = npt.NDArray[np.float32]
_A_BYTES = 64 << 20  # planes of A held at once
_LANES = 64  # panels are a multiple of them wide
_LOWEST_FLOOR = -100  # kernels.steps: an f32 rule's floor must be below what the fast step takes on


# --- plans -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one instruction's rule becomes passes of a kernel.

    ``order``: which stored column of a pass each of its products is. ``units`` and ``bases`` say for sparse
    A, product by product, which unit of the pass it belongs to and where that unit's chunk begins.
    """

    instruction: Instruction
    variant: Variant
    numbers: tuple[int, int, int]
    order: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]
    bases: npt.NDArray[np.int64]
    unit: int

    @property
    def products(self) -> int:
        """Products of a pass."""
        return self.variant.products

    @property
    def depth(self) -> int:
        """Rows of B of a pass."""
        return self.products * (2 if self.variant.sparse else 1)

    def passes(self, instructions: int) -> int:
        """Passes of a number of instructions along k."""
        return instructions * self.instruction.stored_k // self.products


def applies(instruction: Instruction, rule: Rule) -> bool:
    """Whether the kernels compute this rule: sums of products of at most 12 significant bits."""
    step = _step_of(rule)
    if step is None or instruction.c != instruction.d:
        return False
    half = step.output.format == "f16"
    return half or (step.exponent_floor <= _LOWEST_FLOOR and step.output.format == "f32")


def _step_of(rule: Rule) -> FusedSum | None:
    """The fused sum that a rule repeats, if it does."""
    step = rule.step if isinstance(rule, EmulatedF8) else rule
    return step if isinstance(step, FusedSum) else None


def plan_of(instruction: Instruction, rule: Rule, columns: int | None = None) -> Plan:
    """The plan of a rule that ``applies``, for panels of so many ``columns``; None: what is best for many."""
    emulated = isinstance(rule, EmulatedF8)
    step = present(_step_of(rule), "step")
    stored = instruction.stored_k
    length = stored // 2 if emulated else min(step.length, stored)
    sparse = instruction.pattern is not None
    steps = 2 if emulated else 1
    # A pass of the planes of a panel, 6 bytes an element, should stay in the first-level cache.
    stride = columns or (256 if length * steps * (1 + sparse) <= 16 else 128)
    lanes = _LANES if length <= 8 and not sparse else _LANES // 2
    variant = Variant(
        width=min(lanes, stride & -stride),
        stride=stride,
        length=length,
        steps=steps,
        half=step.output.format == "f16",
        emulated=emulated,
        scaled=instruction.scale is not None,
        sparse=sparse,
    )
    order = np.arange(variant.products)
    if emulated:
        order = np.argsort(order % 4 // 2, kind="stable")
    chunk, kept, unit = _pattern(instruction)
    return Plan(
        instruction=instruction,
        variant=variant,
        numbers=(step.fraction_bits, step.exponent_floor, step.output.precision),
        order=order,
        units=order // unit,
        bases=order // (kept * unit) * chunk + order % unit,
        unit=unit,
    )


def _pattern(instruction: Instruction) -> tuple[int, int, int]:
    """Elements of a chunk, units kept of it and elements of a unit (1, 1, 1 for dense A)."""
    pattern = instruction.pattern
    return (pattern.chunk, pattern.kept, pattern.unit) if pattern else (1, 1, 1)


# --- decoding ----------------------------------------------------------------------------------------


@cache
def coding_of(element: Format, *, as_half: bool = False, shift: int = 0) -> decode.Coding:
    """What kernels.decode needs to know of a format: ``as_half``, with the exponents of f16.

    ``shift``: the lowest bit of the code in its byte.
    """
    ignored = element.ignored_bits
    magnitude = (element.mask & ~element.sign_bit) & ~((1 << ignored) - 1)
    special = planes(np.arange(1 << min(element.bits, 16)).astype(element.code_dtype), element).special
    first = int(np.argmax(special != 0)) if element.bits <= 16 else magnitude & ~0x7FFFFF
    return (
        element.bits + shift,
        shift,
        magnitude,
        element.fraction_bits + ignored,
        element.bias,
        first or 1 << 30,
        FORMATS["f16"].minimum_exponent if as_half else element.minimum_exponent,
    )


# --- products ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Codes ``a (m, stored)``, ``b (k, n)`` and what belongs to them; results are added to ``out (m, n)``.

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
        """All passes along k."""
        return int(self.bounds[-1])


def read_only(array: Codes) -> Codes:
    """The array as the kernels take it: Numba compiles anew for arrays that must not be written."""
    view = array.view()
    view.flags.writeable = False
    return view


PlanesA = tuple[Floats, npt.NDArray[np.int16], npt.NDArray[np.int32], npt.NDArray[np.int16]]
PlanesB = tuple[Floats, npt.NDArray[np.int16], npt.NDArray[np.int16]]


def decoded_a(problem: Problem, first: int, stop: int) -> PlanesA:
    """Planes of some rows of A."""
    plan, rows, passes = problem.plan, stop - first, problem.passes
    size = rows * passes * plan.products
    values, exponents = np.empty(size, np.float32), np.empty(size, np.int16)
    element, codes = plan.instruction.a, read_only(problem.a[first:stop])
    emulated = plan.variant.emulated
    coding = coding_of(element, as_half=emulated)
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
    scales = np.empty(rows * passes if problem.scale_a is not None else 0, np.int16)
    if problem.scale_a is not None:
        decode.pack_scales_a(read_only(problem.scale_a[first:stop]), scales, *_scale_numbers(plan))
    return values, exponents, offsets, scales


def decoded_b(problem: Problem, first: int, count: int, n: int) -> PlanesB:
    """Planes of some columns of B, filled up to n columns."""
    plan, passes = problem.plan, problem.passes
    stride = plan.variant.stride
    part = (first, count, n, stride)
    size = passes * plan.depth * stride
    values, exponents = np.empty(size, np.float32), np.empty(size, np.int16)
    element = plan.instruction.b
    order = np.arange(plan.depth) if plan.variant.sparse else plan.order
    coding = coding_of(element, as_half=plan.variant.emulated)
    decode.pack_b(read_only(problem.b), part, values, exponents, order, coding)
    scales = np.empty(passes * stride if problem.scale_b is not None else 0, np.int16)
    if problem.scale_b is not None:
        decode.pack_scales_b(read_only(problem.scale_b), part, scales, *_scale_numbers(plan))
    return values, exponents, scales


def _scale_numbers(plan: Plan) -> tuple[int, int]:
    """Bias and NaN code of scales that are powers of two."""
    scale = present(plan.instruction.scale, "scale")
    if scale.fraction_bits:
        raise AssertionError(f"scales have {scale.fraction_bits} fraction bits: not powers of two")
    return scale.bias, scale.canonical_nan


@cache
def _compiled(variant: Variant) -> Callable[..., int]:
    return panel_kernel(variant)


Task = tuple[int, int, int, int]  # first column, columns, first row, stop of the rows of a block of A


def _blocks(problem: Problem) -> Iterator[tuple[int, int]]:
    """Rows of A that are decoded at once."""
    rows = problem.a.shape[0]
    each = problem.passes * problem.plan.products * 10
    height = max(ROWS, _A_BYTES // max(each, 1) // ROWS * ROWS)
    for first in range(0, rows, height):
        yield first, min(first + height, rows)


def _tasks(columns: int, width: int, rows: int, threads: int) -> list[Task]:
    """Panels, cut along the rows too where there are fewer of them than keep the threads busy."""
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
    n = min(width, -(-columns // _LANES) * _LANES)
    kernel = _compiled(problem.plan.variant)
    with ThreadPoolExecutor(threads) as pool:
        for start, stop in _blocks(problem):
            a = decoded_a(problem, start, stop)

            @in_default_environment
            def run(task: Task, a: PlanesA = a, start: int = start, stop: int = stop) -> None:
                first, count, row, last = task
                b = decoded_b(problem, first, count, n)
                c, marks = np.empty(ROWS * n, np.float32), np.empty(n, np.int8)
                place, wide = (row, last, stop - start, start), (first, count, n)
                how = (problem.bounds, problem.promote, problem.plan.numbers)
                kernel(a, b, problem.out, place, wide, *how, c, marks)

            tasks = _tasks(columns, width, stop - start, threads)
            for _ in map(run, tasks) if threads == 1 else pool.map(run, tasks):
                pass


# --- without a compiler ------------------------------------------------------------------------------

_BLOCK_ROWS, _BLOCK_COLUMNS = 128, 256


def _without_jit(problem: Problem) -> None:
    """multiply with NumPy alone, block by block."""
    rows, columns = problem.out.shape
    problem = _filled_up(problem)
    for j in range(0, columns, _BLOCK_COLUMNS):
        right = slice(j, min(j + _BLOCK_COLUMNS, columns))
        b = _planes(problem.b[:, right], problem, problem.plan.instruction.b)
        for i in range(0, rows, _BLOCK_ROWS):
            left = slice(i, min(i + _BLOCK_ROWS, rows))
            a = _planes(problem.a[left], problem, problem.plan.instruction.a)
            _block(problem, left, right, a, b)


def _filled_up(problem: Problem) -> Problem:
    """The problem with zeros up to the end of the last pass."""
    plan = problem.plan
    stored = problem.passes * plan.products - problem.a.shape[1]
    depth = problem.passes * plan.depth - problem.b.shape[0]
    indices = problem.indices
    if indices is not None:
        indices = np.pad(indices, ((0, 0), (0, stored // plan.unit)))
    a, b = np.pad(problem.a, ((0, 0), (0, stored))), np.pad(problem.b, ((0, depth), (0, 0)))
    return replace(problem, a=a, b=b, indices=indices)


def _planes(codes: Codes, problem: Problem, element: Format) -> tuple[Codes, Codes]:
    """Values and exponents, for the passes that codes hold."""
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
            c = _block_pass(problem, left, right, a, b, number, c)
        with np.errstate(all="ignore"):
            problem.out[left, right] = out = out + c if problem.promote else c


def _block_pass(
    problem: Problem,
    left: slice,
    right: slice,
    a: tuple[Codes, Codes],
    b: tuple[Codes, Codes],
    number: int,
    c: Floats,
) -> Floats:
    """One pass over a block: the fast way, then the exact way for what it leaves open."""
    plan = problem.plan
    stored = number * plan.products + plan.order
    meets = _meets(problem, left, number, stored)
    x = a[0][:, stored].T[..., None], a[1][:, stored].T[..., None]
    y = b[0][meets], b[1][meets]
    scale = _block_scale(problem, left, right, number)
    value, hazard = whole.pass_of(x, y, scale, c, plan.numbers, plan.variant)
    i, j = np.nonzero(hazard)
    if len(i):
        row = i if meets.shape[1] > 1 else np.zeros_like(i)
        x = x[0][:, i, 0], x[1][:, i, 0]
        y = y[0][:, row, j], y[1][:, row, j]
        scale = None if scale is None else scale[i, j]
        value[i, j] = whole.exact_pass(x, y, scale, c[i, j], plan.numbers, plan.variant)
    return value


def _meets(problem: Problem, left: slice, number: int, stored: Codes) -> Codes:
    """Rows of B, ``(products, 1 or rows)``, that the stored columns of a pass meet."""
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
    one, other = (
        np.where(codes == nan, SPECIAL, codes.astype(np.int32) - bias)
        for codes in (problem.scale_a[left, number, None], problem.scale_b[None, number, right])
    )
    return one + other


def canonical(codes: Codes) -> Codes:
    """f32 codes (m, n), in which every NaN has been replaced, in place, by the canonical one."""
    if interpreted():
        codes[codes & 0x7FFFFFFF > 0x7F800000] = 0x7FFFFFFF
    else:
        canonical_nan(codes.view(np.int32))
    return codes
