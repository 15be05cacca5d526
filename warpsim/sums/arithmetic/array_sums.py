"""Fused sums of many matrices, or of large matrices, with NumPy alone, faster than sums of integers.

The sums of kernels.numpy_blocks, on blocks whose innermost axis is long: cases of a batch lie side by side if
matrices are small, and rows of a matrix where it is large. A sparse A is filled up with zeros, which no sum
of finite numbers shows; what is not finite, or near overflow, is computed again from the stored elements.
Knows rules and formats; no lanes. Imports no Numba.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import present
from ...isa.formats import Format
from ...isa.products import Codes, Operands, Product
from ...isa.rules import EmulatedF8, Rule
from ...isa.sparsity import Pattern
from .array_planes import Factor, decoded
from .fused_rules import applies, order_of, step_of
from .kernels import numpy_blocks
from .kernels.variants import SPECIAL, Variant
from .planes import canonical

Array = npt.NDArray[Any]

_ELEMENTS = 1 << 15  # of D in a block: what a step keeps of them stays in the second-level cache
_WIDEST = 1 << 12  # columns of a block


def serves(operands: Operands, rule: Rule) -> bool:
    """Return whether ``compute`` takes these operands: a fused sum, and metadata that names no element of B
    twice.
    """
    if not applies(operands.product, rule):
        return False
    pattern, columns = operands.product.pattern, operands.columns
    if pattern is None or columns is None:
        return columns is None
    units = columns[..., :: pattern.unit]
    return bool(pattern.kept == 1 or (units[..., ::2] != units[..., 1::2]).all())


def compute(operands: Operands, rule: Rule) -> Codes:
    """Return codes of D ``(batch, m, n)`` for operands that this module ``serves``."""
    step = present(step_of(rule), "step")
    result = np.empty(operands.c.shape, operands.product.d.code_dtype)
    sums = _Sums(
        steps=_steps(operands.product, rule),
        numbers=(step.fraction_bits, step.exponent_floor, step.output.precision),
        variant=_variant(operands, rule),
        d=operands.product.d,
    )
    for cases in _cuts(len(operands.c), _cases_of_a_block(operands.c.shape)):
        _Cases(operands, cases, sums).write(result)
    return result


@dataclass(frozen=True, kw_only=True)
class _Sums:
    """A rule in numbers; ``steps``: the stored columns of each pass, in its order, and its rows of B."""

    steps: list[tuple[Array, Array | slice]]
    numbers: tuple[int, int, int]
    variant: Variant
    d: Format


@cache
def _steps(product: Product, rule: Rule) -> list[tuple[Array, Array | slice]]:
    order, pattern = np.array(order_of(product, rule)), product.pattern
    each = len(order)
    if not isinstance(rule, EmulatedF8):
        each = min(present(step_of(rule), "step").length, each)
    parts = [order[start : start + each] for start in range(0, len(order), each)]
    return [(part, _run(part if pattern is None else _whole_chunks(part, pattern))) for part in parts]


def _variant(operands: Operands, rule: Rule) -> Variant:
    """Return the variant of kernels.numpy_blocks; it has no lanes, so width and stride have no meaning."""
    emulated, stored = isinstance(rule, EmulatedF8), operands.product.stored_k
    step = present(step_of(rule), "step")
    return Variant(
        width=1,
        stride=1,
        length=stored // 2 if emulated else min(step.length, stored),
        steps=2 if emulated else 1,
        half=step.output.format == "f16",
        emulated=emulated,
    )


def _cases_of_a_block(shape: tuple[int, ...]) -> int:
    return max(1, _ELEMENTS // max(shape[1] * shape[2], 1))


def _cuts(stop: int, width: int) -> Iterator[slice]:
    return (slice(first, min(first + width, stop)) for first in range(0, stop, width))


Place = tuple[Any, Any, Any]  # of elements of D: cases, rows, columns


class _Cases:
    """Some cases of a batch, decoded.

    A is ``(stored, cases, m, 1)`` and, with zeros, ``(k, cases, m, 1)``, B ``(k, cases, 1, n)``; where there
    are more cases than columns, cases are the last axis, for the innermost loop of NumPy runs along that.
    """

    def __init__(self, operands: Operands, cases: slice, sums: _Sums) -> None:
        self.operands, self.sums, self.cases = operands, sums, cases
        self.pattern: Pattern | None = operands.product.pattern
        self.c, b = operands.c[cases], operands.b[cases]
        self.order = (1, 2, 0) if len(self.c) >= self.c.shape[2] else (0, 1, 2)
        self.b = decoded(
            self._block_axes(b.transpose(1, 0, 2)[:, :, None]), operands.product.b, sums.variant.emulated
        )
        self.columns = None if operands.columns is None else operands.columns[cases]
        self.whole_a = self.a if self.columns is None else self._decoded_a(_filled_up(operands, cases))
        self.scale = _scale(operands, cases)

    @cached_property
    def a(self) -> Factor:
        """The stored elements of A."""
        return self._decoded_a(self.operands.a[self.cases].transpose(2, 0, 1))

    def _decoded_a(self, codes: Codes) -> Factor:
        return decoded(
            self._block_axes(codes[..., None]), self.operands.product.a, self.sums.variant.emulated
        )

    def _block_axes(self, array: Array) -> Array:
        """Return an array ``(k, cases, rows, columns)`` with its axes in the order of this block."""
        return array.transpose(0, *(axis + 1 for axis in self.order))

    def _at(self, *place: Any) -> Place:
        """Return a place of cases, rows and columns in the order of this block."""
        first, second, third = (place[axis] for axis in self.order)
        return first, second, third

    def write(self, result: Codes) -> None:
        """Compute all blocks of these cases."""
        _, m, n = self.c.shape
        for columns in _cuts(n, _WIDEST):
            width = columns.stop - columns.start
            for rows in _cuts(m, max(1, _ELEMENTS // (width * len(self.c)))):
                result[self.cases, rows, columns] = self._block(rows, columns)

    def _block(self, rows: slice, columns: slice) -> Codes:
        """Return codes ``(cases, rows, columns)``."""
        d, place = self.sums.d, (slice(None), rows, columns)
        with np.errstate(invalid="ignore"):  # a signaling NaN is still a NaN
            codes = np.ascontiguousarray(self.c[place].transpose(self.order))
            value = codes.view(d.dtype).astype(np.float32)
        scale = None if self.scale is None else np.ascontiguousarray(self.scale[place].transpose(self.order))
        for step in self.sums.steps:
            value = self._step(step, (rows, columns), scale, value)
        with np.errstate(over="ignore", invalid="ignore"):
            return canonical(value.astype(d.dtype), d).transpose(np.argsort(self.order))

    def _step(
        self, step: tuple[Array, Array | slice], place: tuple[slice, slice], scale: Array | None, c: Array
    ) -> Array:
        """Add a pass: the fast way, then the exact way for the elements that it leaves open."""
        (stored, at), (rows, columns) = step, place
        variant = self.sums.variant
        if self.pattern is not None:
            variant = _variant_of_length(variant, len(stored) * self.pattern.chunk // self.pattern.stored)
        every = slice(None)
        of_a, of_b = (at, *self._at(every, rows, every)), (at, *self._at(every, every, columns))
        x: Factor = (self.whole_a[0][of_a], self.whole_a[1][of_a])
        y: Factor = (self.b[0][of_b], self.b[1][of_b])
        value, hazard = numpy_blocks.pass_of(x, y, scale, c, self.sums.numbers, variant)
        if hazard.any():
            self._settle(stored, place, np.nonzero(hazard), scale, c, value)
        return value

    def _settle(
        self,
        stored: Array,
        place: tuple[slice, slice],
        open_: tuple[Array, ...],
        scale: Array | None,
        c: Array,
        value: Array,
    ) -> None:
        """Write results of some elements, named by their places in a block."""
        case, row, column = (open_[self.order.index(axis)] for axis in range(3))
        row, column = row + place[0].start, column + place[1].start
        which = stored[:, None]
        meets = which if self.columns is None else self.columns[case, row, which]
        of_a, of_b = (which, *self._at(case, row, 0)), (meets, *self._at(case, 0, column))
        x, y = (self.a[0][of_a], self.a[1][of_a]), (self.b[0][of_b], self.b[1][of_b])
        each = None if scale is None else scale[open_]
        value[open_] = numpy_blocks.exact_pass(x, y, each, c[open_], self.sums.numbers, self.sums.variant)


@cache
def _variant_of_length(variant: Variant, products: int) -> Variant:
    """Return the variant of passes of so many products."""
    numbers = {**vars(variant), "length": products // variant.steps}
    return Variant(**numbers)


def _run(numbers: Array) -> Array | slice:
    """Return numbers that ascend by 1 as a slice, of which NumPy copies nothing."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if (np.diff(numbers) == 1).all() else numbers


def _whole_chunks(stored: Array, pattern: Pattern) -> Array:
    """Return all logical columns of the chunks that stored columns belong to, in their order."""
    chunks = stored[:: pattern.stored] // pattern.stored
    columns: Array = (chunks[:, None] * pattern.chunk + np.arange(pattern.chunk)).reshape(-1)
    return columns


def _filled_up(operands: Operands, cases: slice) -> Codes:
    """Return codes of A ``(k, cases, m)`` with zeros where nothing is stored."""
    pattern, codes = present(operands.product.pattern, "pattern"), operands.a[cases]
    columns = present(operands.columns, "columns")[cases]
    chunks = codes.shape[2] // pattern.stored
    rest = codes.shape[:2]
    units = _units(columns, pattern).reshape(chunks, pattern.kept, 1, *rest)
    stored = codes.transpose(2, 0, 1).astype(codes.dtype, order="C")
    stored = stored.reshape(chunks, pattern.kept, pattern.unit, *rest)
    full = np.empty((chunks, pattern.choices, pattern.unit, *rest), codes.dtype)
    for place in range(pattern.choices):
        np.multiply(stored[:, 0], (units[:, 0] == place).astype(codes.dtype), out=full[:, place])
        for number in range(1, pattern.kept):  # a place holds a single unit
            full[:, place] += stored[:, number] * (units[:, number] == place).astype(codes.dtype)
    return full.reshape(-1, *rest)


def _units(columns: Array, pattern: Pattern) -> Array:
    """Return the place in its chunk of every unit ``(units, cases, m)`` of columns ``(cases, m, stored)``."""
    units = columns[..., :: pattern.unit].astype(np.uint8)  # 256 is a multiple of every chunk
    units &= np.uint8(pattern.chunk - 1)
    units >>= np.uint8(pattern.unit.bit_length() - 1)
    return np.ascontiguousarray(units.transpose(2, 0, 1))


def _scale(operands: Operands, cases: slice) -> Array | None:
    """Return exponents ``(cases, m, n)`` of the block scales of every element, where there are any."""
    if operands.product.scale is None or operands.scale_a is None or operands.scale_b is None:
        return None
    bias, nan = operands.product.scale.bias, operands.product.scale.canonical_nan
    of_a, of_b = (
        np.where(codes == nan, SPECIAL, codes.astype(np.int32) - bias)
        for codes in (operands.scale_a[cases, :, :1], operands.scale_b[cases, :1])
    )
    return np.asarray(of_a + of_b)
