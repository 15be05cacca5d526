"""Fused sums of many matrices, or of large matrices, with NumPy alone, faster than sums of integers.

The sums of kernels.whole, on blocks whose innermost axis is long: cases of a batch lie side by side where
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

from ..errors import present
from ..isa.codes import values_of
from ..isa.formats import FORMATS, Format
from ..isa.products import Codes, Operands
from ..isa.rules import EmulatedF8, Rule
from ..isa.sparsity import Pattern
from .fused_rules import applies, order_of, step_of
from .kernels import whole
from .kernels.variants import SPECIAL, ZERO, Variant
from .planes import canonical, converted, planes

Array = npt.NDArray[Any]
Factor = tuple[Array, Array]  # float32 values and int16 exponents, (k, rows, columns, cases)

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
        steps=_steps(operands, rule),
        numbers=(step.fraction_bits, step.exponent_floor, step.output.precision),
        variant=_variant(operands, rule),
        d=operands.product.d,
    )
    for cases in _cuts(len(operands.c), _cases_of_a_block(operands.c.shape)):
        _Cases(operands, cases, sums).write(result)
    return result


@dataclass(frozen=True, kw_only=True)
class _Sums:
    """A rule in numbers; ``steps``: the stored columns of each pass, in its order."""

    steps: list[Array]
    numbers: tuple[int, int, int]
    variant: Variant
    d: Format


def _steps(operands: Operands, rule: Rule) -> list[Array]:
    order = np.array(order_of(operands.product, rule))
    each = len(order)
    if not isinstance(rule, EmulatedF8):
        each = min(present(step_of(rule), "step").length, each)
    return [order[start : start + each] for start in range(0, len(order), each)]


def _variant(operands: Operands, rule: Rule) -> Variant:
    """Return the variant of kernels.whole; it has no lanes, so width and stride have no meaning."""
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
    """Return the cases of a block: 1 where that many are fewer than the columns of a matrix."""
    count = max(1, _ELEMENTS // max(shape[1] * shape[2], 1))
    return count if count >= shape[2] else 1


def _cuts(stop: int, width: int) -> Iterator[slice]:
    return (slice(first, min(first + width, stop)) for first in range(0, stop, width))


class _Cases:
    """Some cases of a batch, decoded: A ``(stored, m, 1, cases)`` and, with zeros, ``(k, m, 1, cases)``, B
    ``(k, 1, n, cases)``.
    """

    def __init__(self, operands: Operands, cases: slice, sums: _Sums) -> None:
        self.operands, self.sums, self.cases = operands, sums, cases
        self.pattern: Pattern | None = operands.product.pattern
        self.c, b = operands.c[cases], operands.b[cases]
        self.b = _decoded(b.transpose(1, 2, 0)[:, None], operands.product.b, sums.variant.emulated)
        self.columns = None if operands.columns is None else operands.columns[cases].transpose(2, 1, 0)
        self.whole_a = self.a if operands.columns is None else self._decoded_a(_filled_up(operands, cases))
        self.scale = _scale(operands, cases)

    @cached_property
    def a(self) -> Factor:
        """The stored elements of A."""
        return self._decoded_a(self.operands.a[self.cases])

    def _decoded_a(self, codes: Codes) -> Factor:
        along = codes.transpose(2, 1, 0)[:, :, None]
        return _decoded(along, self.operands.product.a, self.sums.variant.emulated)

    def write(self, result: Codes) -> None:
        """Compute all blocks of these cases."""
        _, m, n = self.c.shape
        for columns in _cuts(n, _WIDEST):
            width = columns.stop - columns.start
            for rows in _cuts(m, max(1, _ELEMENTS // (width * len(self.c)))):
                result[self.cases, rows, columns] = self._block(rows, columns)

    def _block(self, rows: slice, columns: slice) -> Codes:
        """Return codes ``(cases, rows, columns)``."""
        d = self.sums.d
        with np.errstate(invalid="ignore"):  # a signaling NaN is still a NaN
            codes = np.ascontiguousarray(self.c[:, rows, columns].transpose(1, 2, 0))
            value = codes.view(d.dtype).astype(np.float32)
        scale = None if self.scale is None else self.scale[rows, columns]
        for stored in self.sums.steps:
            value = self._step(stored, (rows, columns), scale, value)
        with np.errstate(over="ignore", invalid="ignore"):
            return canonical(value.astype(d.dtype), d).transpose(2, 0, 1)

    def _step(self, stored: Array, place: tuple[slice, slice], scale: Array | None, c: Array) -> Array:
        """Add a pass: the fast way, then the exact way for the elements that it leaves open."""
        rows, columns = place
        at = stored if self.pattern is None else _whole_chunks(stored, self.pattern)
        variant = self.sums.variant
        if self.pattern is not None:
            variant = _lengthened(variant, len(at))
        x: Factor = (self.whole_a[0][at, rows], self.whole_a[1][at, rows])
        y: Factor = (self.b[0][at, :, columns], self.b[1][at, :, columns])
        value, hazard = whole.pass_of(x, y, scale, c, self.sums.numbers, variant)
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
        """Write results of some elements, named by row, column and case of a block."""
        row, column, case = open_[0] + place[0].start, open_[1] + place[1].start, open_[2]
        which = stored[:, None]
        meets = which if self.columns is None else self.columns[which, row, case]
        x = self.a[0][which, row, 0, case], self.a[1][which, row, 0, case]
        y = self.b[0][meets, 0, column, case], self.b[1][meets, 0, column, case]
        each = None if scale is None else scale[open_]
        value[open_] = whole.exact_pass(x, y, each, c[open_], self.sums.numbers, self.sums.variant)


@cache
def _lengthened(variant: Variant, products: int) -> Variant:
    """Return the variant of passes of so many products."""
    numbers = {**vars(variant), "length": products // variant.steps}
    return Variant(**numbers)


def _whole_chunks(stored: Array, pattern: Pattern) -> Array:
    """Return all logical columns of the chunks that stored columns belong to, in their order."""
    chunks = stored[:: pattern.stored] // pattern.stored
    columns: Array = (chunks[:, None] * pattern.chunk + np.arange(pattern.chunk)).reshape(-1)
    return columns


def _filled_up(operands: Operands, cases: slice) -> Codes:
    """Return codes of A ``(cases, m, k)`` with zeros where nothing is stored."""
    a, columns = operands.a[cases], present(operands.columns, "columns")[cases]
    full = np.zeros((*a.shape[:2], operands.b.shape[1]), a.dtype)
    np.put_along_axis(full, columns, a, 2)
    return full


def _scale(operands: Operands, cases: slice) -> Array | None:
    """Return exponents ``(m, n, cases)`` of the block scales of every element, where there are any."""
    if operands.product.scale is None or operands.scale_a is None or operands.scale_b is None:
        return None
    bias, nan = operands.product.scale.bias, operands.product.scale.canonical_nan
    of_a, of_b = (
        np.where(codes == nan, SPECIAL, codes.astype(np.int32) - bias)
        for codes in (operands.scale_a[cases, :, :1], operands.scale_b[cases, :1])
    )
    return np.ascontiguousarray((of_a + of_b).transpose(1, 2, 0))


# --- values and exponents ------------------------------------------------------------------------------


def _decoded(codes: Array, element: Format, as_half: bool) -> Factor:
    """Return values and exponents; those of f16 for what is computed in it."""
    codes = np.ascontiguousarray(codes)
    if element.bits > 16:
        with np.errstate(invalid="ignore"):
            value = values_of(codes, element).astype(np.float32)
        return value, _exponents(value)
    values, exponents = _table(element, as_half)
    index = codes & codes.dtype.type(element.mask)
    return values.take(index), exponents.take(index)


@cache
def _table(element: Format, as_half: bool) -> Factor:
    """Return value and exponent of every code."""
    codes, half = np.arange(1 << element.bits, dtype=element.code_dtype), FORMATS["f16"]
    split = planes(converted(codes, element, half), half) if as_half else planes(codes, element)
    exponents = np.where(split.significand == 0, ZERO, split.exponent)
    exponents = np.where(split.special != 0, SPECIAL, exponents).astype(np.int16)
    with np.errstate(invalid="ignore"):
        return values_of(codes, element).astype(np.float32), exponents


def _exponents(value: Array) -> Array:
    """Return the exponents of float32 numbers: a subnormal number has the smallest."""
    field = (value.view(np.int32) >> 23 & 255).astype(np.int16)
    exponents = np.where(field == 255, np.int16(SPECIAL), np.maximum(field, 1) - np.int16(127))
    return np.where(value == 0, np.int16(ZERO), exponents)
