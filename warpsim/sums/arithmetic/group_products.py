"""Products with block scales and exactly summed groups: what is decoded where, for kernels.group_chains.

Operands in, f32 codes out. Knows formats and rules; does not know how a row is summed, nor lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import present
from ...isa.formats import Format
from ...isa.products import Codes, Operands, Product
from ...isa.rules import ScaledGroups
from .kernels.group_chains import COLUMNS, WIDTH, fits, group_kernel, pack_a, pack_b
from .planes import NOT_A_NUMBER, canonical, planes, read_only

_LOWEST_FLOOR = -600  # below, powers of two that align to it would be subnormal

Scales = tuple[Codes, Codes, Codes]  # significands and exponents of every group, and NaN of every step


def applies(product: Product, rule: ScaledGroups) -> bool:
    """Return whether the kernels compute the rule exactly, and groups lie as they take them."""
    output, stored = rule.output, product.stored_k
    if output.format != "f32" or output.nearest or rule.exponent_floor < _LOWEST_FLOOR or stored % rule.group:
        return False
    groups = stored // rule.group
    largest = int(np.abs(_units(product.a)).max()) * int(np.abs(_units(product.b)).max())
    scale_bits = 2 * present(product.scale, "scale").fraction_bits
    whole = groups % product.scale_chunks == 0
    return whole and fits(
        rule.group, largest, scale_bits, rule.fraction_bits, groups + 1, product.shape.k // groups
    )


def compute(operands: Operands, rule: ScaledGroups) -> Codes:
    """Return codes of D ``(batch, m, n)``, for a rule that ``applies``."""
    layout = _Layout.of(operands, rule)
    batch, m, n = operands.c.shape
    result = np.zeros((batch, m, layout.stride), np.float32)
    result[..., :n] = np.ascontiguousarray(operands.c).view(np.float32)
    width = -(-n // COLUMNS) * COLUMNS
    step = (layout.steps, layout.product.shape.k)
    chain = _chain(rule.group, layout.groups)
    chain(
        layout.planes_a(operands),
        layout.planes_b(operands),
        result.reshape(-1),
        (m, width, layout.stride),
        step,
        layout.numbers(rule),
    )
    return canonical(result[..., :n], layout.product.d)


@cache
def _chain(group: int, groups: int) -> Callable[..., None]:
    return group_kernel(group, groups)


@cache
def _units(element: Format) -> npt.NDArray[np.int16]:
    """Return the values of all codes in units of the format's smallest subnormal number."""
    number = planes(np.arange(1 << element.bits, dtype=element.code_dtype), element)
    return (number.significand << (number.exponent - element.minimum_exponent)).astype(np.int16)


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """How operands lie in planes: groups of a step and their products, steps, and columns of b's planes."""

    product: Product
    group: int
    groups: int
    steps: int
    stride: int

    @classmethod
    def of(cls, operands: Operands, rule: ScaledGroups) -> _Layout:
        product = operands.product
        return cls(
            product=product,
            group=rule.group,
            groups=product.stored_k // rule.group,
            steps=operands.a.shape[2] // product.stored_k,
            stride=-(-operands.b.shape[2] // WIDTH) * WIDTH,
        )

    @property
    def span(self) -> int:
        """Rows of B that a group may meet."""
        return self.product.shape.k // self.groups

    @property
    def scale(self) -> Format:
        return present(self.product.scale, "scale")

    def numbers(self, rule: ScaledGroups) -> tuple[int, int, int, int]:
        """Return the run-time numbers of the kernel."""
        factors = (self.product.a, self.product.b)
        unit_bits = sum(element.fraction_bits - element.minimum_exponent for element in factors)
        unit_bits += 2 * self.scale.fraction_bits
        return rule.fraction_bits, rule.exponent_floor, unit_bits, rule.output.precision

    def planes_a(self, operands: Operands) -> tuple[npt.NDArray[Any], ...]:
        """Return the planes of A."""
        codes = np.ascontiguousarray(operands.a)
        codes = codes.reshape(-1, codes.shape[2])
        columns = operands.columns
        if columns is None:
            columns = np.arange(codes.shape[1])[None]
        columns = np.ascontiguousarray(columns, np.int64).reshape(-1, codes.shape[1])
        significands, exponents, nan = self._scales(present(operands.scale_a, "scale a"))
        masks = np.empty(significands.size, np.int32)
        values = np.empty(codes.size, np.int16)
        starts = (columns % self.product.shape.k * self.stride).astype(np.int32).reshape(-1)
        a = values, starts, masks, significands.reshape(-1), exponents.reshape(-1), nan.reshape(-1)
        numbers = self.group, self.span, self.product.a.mask
        pack_a(read_only(codes), _units(self.product.a), columns, numbers, a)
        return a

    def planes_b(self, operands: Operands) -> tuple[npt.NDArray[Any], ...]:
        """Return the planes of B."""
        codes = np.ascontiguousarray(operands.b)
        codes = codes.reshape(-1, codes.shape[2])
        scales = self._scales(present(operands.scale_b, "scale b").swapaxes(1, 2))
        significands, exponents, nan = (self._columns(plane) for plane in scales)
        masks = np.empty(significands.size, np.int32)
        values = np.empty(len(codes) * self.stride, np.int16)
        b = values, masks, significands, exponents, nan
        pack_b(read_only(codes), _units(self.product.b), (self.span, self.stride, self.product.b.mask), b)
        return b

    def _scales(self, codes: Codes) -> Scales:
        """Return the scales of rows ``(batch, rows, chunks)``, those of a chunk for each of its groups."""
        number = planes(codes, self.scale)
        each = self.groups // self.product.scale_chunks
        significands = np.repeat(number.significand.astype(np.int32), each, 2)
        exponents = np.repeat(number.exponent.astype(np.int32), each, 2)
        chunks = (*codes.shape[:2], self.steps, self.product.scale_chunks)
        nan = (number.special == NOT_A_NUMBER).reshape(chunks).any(3)
        return significands, exponents, nan.astype(np.int32)

    def _columns(self, plane: Codes) -> Codes:
        """Return a plane ``(batch, n, entries)`` of columns as ``(batch, entries, stride)``, flat."""
        batch, n, entries = plane.shape
        filled = np.zeros((batch, entries, self.stride), plane.dtype)
        filled[..., :n] = plane.swapaxes(1, 2)
        return filled.reshape(-1)
