"""The sum of groups over a row of D, each summed exactly and with its own scale, as LLVM code (see vectors).

    t = max(floor, exponent of C, exponents of the scales of groups that have a product)
    D = round(trunc(C * 2**(F - t)) + sum over groups of trunc(sum * scales * 2**(F - t)))

Integers until a group's sum is known, which fits int16; then float64, exactly: the sum times two significands
of scales is an integer below 2**24, powers of two are normal, and a sum of terms is below 2**53. Layouts are
those of group_chains; the bounds are checked there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from . import steps
from .vectors import F64, I32, I64, Lanes, cgutils, ir, load, power_of_two, splat

SUMMED, ALIGNED = 32, 16  # lanes of the two loops over columns
_LOWEST = -1 << 20  # below every exponent
_INFINITY = 0x7F800000


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """LLVM values of a call: pointers to the planes of A and B, to C and scratch, and indices in them.

    ``a``: values, row starts in b, masks, significands, exponents and NaN of scales; ``b``: the same without
    row starts. ``at``: of the row in a's values, in its row starts, in its groups, in its NaN; of the step in
    b's values, in its groups, in its NaN; of the row in c.
    """

    a: list[Any]
    b: list[Any]
    c: Any
    sums: Any
    at: list[Any]


class GroupRow:
    """The emitter of a step of ``groups`` groups of ``group`` products; ``extent``: columns and stride."""

    def __init__(self, builder: Any, place: Place, group: int, groups: int, extent: tuple[Any, Any]) -> None:
        self.builder, self.place, self.group, self.groups = builder, place, group, groups
        self.n, self.stride = extent
        self.a_at, self.start_at, self.a_group, self.a_nan, self.b_at, self.b_group, self.b_nan, self.c_at = (
            place.at
        )

    def emit(self, numbers: list[Any]) -> None:
        """Emit the whole row; ``numbers``: fraction bits, floor, fraction bits of a term, precision."""
        for number in range(self.groups):
            self._sum(number)
        with self._loop(ALIGNED) as (j, _):
            lanes = [splat(self.builder, self.builder.trunc(x, I32), ALIGNED) for x in numbers]
            self._align(j, *lanes)

    def _loop(self, width: int) -> Any:
        return cgutils.for_range_slice(
            self.builder, ir.Constant(I64, 0), self.n, ir.Constant(I64, width), I64
        )

    def _scalar(self, plane: Any, at: Any, number: int) -> Any:
        """Return an element of a row of A."""
        return self.builder.load(self.builder.gep(plane, [self.builder.add(at, ir.Constant(I64, number))]))

    def _sum(self, number: int) -> None:
        """Write a group's sums of all columns: integers that fit int16."""
        builder, (values, starts) = self.builder, self.place.a[:2]
        products = range(number * self.group, (number + 1) * self.group)
        factors = [splat(builder, self._scalar(values, self.a_at, k), SUMMED) for k in products]
        rows = [builder.sext(self._scalar(starts, self.start_at, k), I64) for k in products]
        rows = [builder.add(self.b_at, row) for row in rows]
        first = builder.mul(self.stride, ir.Constant(I64, number))
        with self._loop(SUMMED) as (j, _):
            columns = (load(builder, self.place.b[0], builder.add(row, j), SUMMED) for row in rows)
            total = reduce(Lanes.__add__, [x * y for x, y in zip(factors, columns, strict=True)])
            total.store(self.place.sums, builder.add(first, j))

    def _align(self, j: Any, fraction_bits: Lanes, floor: Lanes, unit_bits: Lanes, precision: Lanes) -> None:
        """Write the results of some columns."""
        place = self.builder.add(self.c_at, j)
        c = load(self.builder, self.place.c, place, ALIGNED)
        exponents = [self._pair(4, 3, g, j) for g in range(self.groups)]
        tops = [self._nonzero_groups(g, j).choose(exponents[g], floor) for g in range(self.groups)]
        top = reduce(Lanes.maximum, [_exponent(c), *tops]).maximum(floor)
        up = fraction_bits - top
        total = (c.to(F64) * power_of_two(up, F64)).to(I64)
        for number, exponent in enumerate(exponents):
            factor = power_of_two(exponent + up - unit_bits, F64)
            total = total + (self._scaled_sum(number, j).to(F64) * factor).to(I64)
        value = steps.rounded(total.to(F64) * power_of_two(up * -1, F64), precision, half=False)
        field = c.seen_as(I32) & _INFINITY
        value = field.equals(_INFINITY).choose(c, value)
        self._invalid(j).choose(steps.canonical_nan(value), value).store(self.place.c, place)

    def _pair(self, of_a: int, of_b: int, number: int, j: Any) -> Lanes:
        """Return a plane of A's row plus that of B's columns, of a group."""
        return self._row_element(of_a, number) + self._column_elements(of_b, number, j)

    def _row_element(self, plane: int, number: int) -> Lanes:
        return splat(self.builder, self._scalar(self.place.a[plane], self.a_group, number), ALIGNED)

    def _column_elements(self, plane: int, number: int, j: Any) -> Lanes:
        at = self.builder.add(self.builder.mul(self.stride, ir.Constant(I64, number)), j)
        return load(self.builder, self.place.b[plane], self.builder.add(self.b_group, at), ALIGNED)

    def _nonzero_groups(self, number: int, j: Any) -> Lanes:
        """Return where a group has a product that is not 0, and scales that are not 0."""
        return ~(self._row_element(2, number) & self._column_elements(1, number, j)).equals(0)

    def _scaled_sum(self, number: int, j: Any) -> Lanes:
        """Return a group's sum times the significands of its scales."""
        at = self.builder.add(self.builder.mul(self.stride, ir.Constant(I64, number)), j)
        total = load(self.builder, self.place.sums, at, ALIGNED).to(I32)
        return total * (self._row_element(3, number) * self._column_elements(2, number, j))

    def _invalid(self, j: Any) -> Lanes:
        """Return where a scale is NaN."""
        of_row = splat(self.builder, self._scalar(self.place.a[5], self.a_nan, 0), ALIGNED)
        of_columns = load(self.builder, self.place.b[4], self.builder.add(self.b_nan, j), ALIGNED)
        return ~(of_row | of_columns).equals(0)


def _exponent(c: Lanes) -> Lanes:
    """Return exponents of accumulators: a subnormal number has the smallest, zero is below all others."""
    bits = c.seen_as(I32)
    return (bits << 1).equals(0).choose(_LOWEST, bits.field(23, 8).maximum(1) - 127)
