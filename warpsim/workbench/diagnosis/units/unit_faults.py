"""Faults of arithmetic units: what a unit computes in place of the rule of the chip.

A fault is a set of changes that combine: numbers of the rule, a ``Change`` of its steps, another product,
another order of the products. The library starts from the wrong versions that corner vectors are made to
show (``generation.sums.rule_changes``) and widens their numbers. Does not know what a unit gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.formats import FORMATS, Format
from ....isa.products import Codes, Operands
from ....isa.rules import BitCount, FusedMultiplyAdd, FusedSum, IntegerSum, Rule, ScaledGroups
from ...generation.sums.limits import Limits
from ...generation.sums.rule_changes import changes
from ...generation.sums.summing import AS_IT_IS, Change, summed
from .operand_readings import Reading, readings

Array = npt.NDArray[Any]

_WIDEST = 36  # fraction bits whose sums the second derivation holds
_FEWER, _MORE = 14, 12  # fraction bits that a unit may keep less, or more
_FLOORS = 8
_CUTS = {
    "nearest": "to nearest",
    "halves up": "to nearest, ties away from zero",
    "down": "down",
    "up": "up",
    "away": "away from zero",
}
_ROUNDINGS = {
    "rn": "to nearest even",
    "ra": "to nearest, ties away from zero",
    "rz": "toward zero, and too large becomes the largest finite number",
    "rm": "toward -Inf",
    "rp": "toward +Inf",
}
_WIDTHS = (16, 20, 24, 28)  # bits of accumulators that hold too few


@dataclass(frozen=True, kw_only=True)
class UnitFault:
    """A wrong unit.

    ``numbers`` replace those of the aligned sum, ``change`` fields of Change, ``product`` fields of the
    product; ``order`` permutes the stored columns; ``bits`` is the width of an integer accumulator, which
    wraps, or saturates where ``clamps``; ``adds_c`` is false where C is left out; ``reading`` alters
    operands.
    """

    name: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    change: Mapping[str, Any] = field(default_factory=dict)
    product: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[int, ...] = ()
    bits: int = 0
    clamps: bool = False
    adds_c: bool = True
    reading: Reading | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What it changes, to find two names of the same fault."""
        parts = (self.numbers, self.change, self.product)
        return (*(tuple(sorted(part.items(), key=str)) for part in parts), *self._rest)

    @property
    def _rest(self) -> tuple[Any, ...]:
        return self.order, self.bits, self.clamps, self.adds_c, self.reading

    def beside(self, other: UnitFault) -> UnitFault | None:
        """Return a unit with both faults; None where both change the same thing."""
        pairs = ((self.numbers, other.numbers), (self.change, other.change), (self.product, other.product))
        single = any(
            (
                self.order and other.order,
                self.bits and other.bits,
                self.reading and other.reading,
                not (self.adds_c or other.adds_c),
            )
        )
        if single or any(mine.keys() & its.keys() for mine, its in pairs):
            return None
        numbers, change, product = ({**mine, **its} for mine, its in pairs)
        return UnitFault(
            name=f"{self.name}, and {other.name}",
            numbers=numbers,
            change=change,
            product=product,
            order=self.order or other.order,
            bits=self.bits or other.bits,
            clamps=self.clamps or other.clamps,
            adds_c=self.adds_c and other.adds_c,
            reading=self.reading or other.reading,
        )

    def codes(self, operands: Operands, limits: Limits) -> Codes:
        """Return D ``(tiles, m, n)`` as the wrong unit computes it."""
        rule = limits.rule.realigned(**self.numbers) if self.numbers else limits.rule
        change = Change(**self.change) if self.change else AS_IT_IS
        made = summed(self._operands(operands), rule, change).code
        return made if not self.bits else _narrowed(made, self.bits, clamps=self.clamps)

    def _operands(self, operands: Operands) -> Operands:
        parts: dict[str, Any] = {}
        if self.reading:
            operands = self.reading.of(operands)
        if self.product:
            parts["product"] = replace(operands.product, **self.product)
        if not self.adds_c:
            parts["c"] = np.zeros_like(operands.c)
        if self.order:
            parts |= _reordered(operands, np.array(self.order))
        return replace(operands, **parts)


def _reordered(operands: Operands, order: Array) -> dict[str, Any]:
    """Return A, and the columns or B that it meets, with the products in another order."""
    parts: dict[str, Any] = {"a": operands.a[..., order]}
    if operands.columns is None:
        return parts | {"b": operands.b[:, order]}
    return parts | {"columns": operands.columns[..., order]}


def _narrowed(codes: Codes, bits: int, *, clamps: bool) -> Codes:
    """Return 32-bit results of an accumulator of fewer bits, sign extended."""
    value, top = codes.astype(np.uint32).view(np.int32).astype(np.int64), 1 << (bits - 1)
    value = np.clip(value, -top, top - 1) if clamps else ((value + top) & (2 * top - 1)) - top
    return value.astype(np.int32).view(np.uint32).astype(codes.dtype)


def unit_faults(limits: Limits) -> list[UnitFault]:
    """Return the wrong units of an instruction, each once, in the order of the library."""
    found: dict[tuple[Any, ...], UnitFault] = {}
    parts = (_of_coverage, _of_numbers, _of_steps, _of_products, _of_order, _of_integers, _of_readings)
    for fault in (fault for part in parts for fault in part(limits)):
        found.setdefault(fault.key, fault)
    return list(found.values())


def _of_coverage(limits: Limits) -> Iterator[UnitFault]:
    """Yield the wrong versions that coverage asks about."""
    for wrong in changes(limits):
        numbers = _numbers_of(limits.rule, wrong.rule)
        altered = {
            item.name: getattr(wrong.change, item.name)
            for item in fields(Change)
            if getattr(wrong.change, item.name) != getattr(AS_IT_IS, item.name)
        }
        yield UnitFault(name=_precise(wrong.name, numbers), numbers=numbers, change=altered)


def _numbers_of(right: Rule, wrong: Rule) -> dict[str, Any]:
    mine, its = right.aligned, wrong.aligned
    if mine is None or its is None:
        return {}
    return {
        item.name: getattr(its, item.name)
        for item in fields(its)
        if item.name != "evidence" and getattr(its, item.name) != getattr(mine, item.name)
    }


def _precise(name: str, numbers: Mapping[str, Any]) -> str:
    """Return the name of a fault with its number, where it has one number."""
    if "fraction_bits" in numbers:
        return f"{name}: alignment keeps {numbers['fraction_bits']} fraction bits"
    return name


def _of_numbers(limits: Limits) -> Iterator[UnitFault]:
    """Yield other widths, floors and lengths of an aligned sum."""
    step = limits.step
    if step is None:
        return
    for bits in range(max(1, step.fraction_bits - _FEWER), min(step.fraction_bits + _MORE, _WIDEST) + 1):
        if bits != step.fraction_bits:
            more = f"{bits - step.fraction_bits:+d} fraction bits"
            yield UnitFault(
                name=f"{more}: alignment keeps {bits} fraction bits", numbers={"fraction_bits": bits}
            )
    for more in (*range(-_FLOORS, 0), *range(1, _FLOORS + 1)):
        floor = step.exponent_floor + more
        yield UnitFault(name=f"the exponent floor is {floor}", numbers={"exponent_floor": floor})
    yield from _of_lengths(limits, step)


def _of_lengths(limits: Limits, step: FusedSum | ScaledGroups) -> Iterator[UnitFault]:
    stored = limits.instruction.stored_k
    divisors = [size for size in range(1, stored + 1) if stored % size == 0]
    for size in divisors:
        if isinstance(step, ScaledGroups) and size != step.group:
            yield UnitFault(name=f"groups of {size} products", numbers={"group": size})
        if isinstance(step, FusedSum) and size != step.length and not limits.emulated:
            yield UnitFault(name=f"steps of {size} products", numbers={"length": size})


def _of_steps(limits: Limits) -> Iterator[UnitFault]:
    """Yield other ways of cutting, rounding and flushing."""
    if not limits.instruction.a.is_float:
        return
    if limits.step is not None:
        yield from _of_cuts(limits)
    if limits.step is not None or isinstance(limits.rule, FusedMultiplyAdd):
        for rounding, how in _ROUNDINGS.items():
            yield UnitFault(name=f"results rounded {how}", change={"rounding": rounding})
    yield UnitFault(name="subnormal C read as zero", change={"flush_c": True})
    both = {"flush_inputs": True, "flush_results": True}
    yield UnitFault(name="subnormal operands and results are zero", change=both)
    yield UnitFault(name="C is not added", adds_c=False)


def _of_cuts(limits: Limits) -> Iterator[UnitFault]:
    """Yield what alignment may do to all terms, to products or C alone, and terms that do not set it."""
    hows = {cut: f"rounded {how}" for cut, how in _CUTS.items()} | {"sticky": "cut with a sticky bit"}
    for cut, how in hows.items():
        yield UnitFault(name=f"terms {how}", change={"cut": cut})
        yield UnitFault(name=f"products {how}, not C", change={"cut": cut, "cut_c": "zero"})
        yield UnitFault(name=f"C {how} in the alignment, not the products", change={"cut_c": cut})
    yield UnitFault(name="alignment leaves a bit more of C", change={"spared": -1})
    yield UnitFault(name="C alone sets the alignment", change={"products_align": False})
    places = limits.instruction.stored_k // limits.steps
    for place in range(places if isinstance(limits.step, FusedSum) else 0):
        yield UnitFault(
            name=f"product {place} of a step does not take part in the alignment", change={"silent": place}
        )


def _of_products(limits: Limits) -> Iterator[UnitFault]:
    """Yield other readings of the factors of integer products."""
    form = limits.instruction
    if isinstance(limits.rule, IntegerSum):
        for sides in ("a", "b", "ab"):
            other = {side: _other_sign(form.format(side)) for side in sides}
            if all(other.values()):
                read = " and ".join(
                    f"{side.upper()} is read as {item.name}" for side, item in other.items() if item
                )
                yield UnitFault(name=read, product=other)
        how = "does not saturate" if form.satfinite else "saturates"
        yield UnitFault(name=f"the sum {how}", product={"satfinite": not form.satfinite})
        yield UnitFault(name="C is not added", adds_c=False)
    if isinstance(limits.rule, BitCount):
        operation = {"xor": "and", "and": "xor"}[form.bit_operation]
        yield UnitFault(name=f"bits are combined by {operation}", product={"bit_operation": operation})
        yield UnitFault(name="C is not added", adds_c=False)


def _other_sign(element: Format) -> Format | None:
    return FORMATS.get({"s": "u", "u": "s"}.get(element.name[0], "-") + element.name[1:])


def _of_order(limits: Limits) -> Iterator[UnitFault]:
    """Yield other orders of the products, where the order decides the result."""
    form, stored = limits.instruction, limits.instruction.stored_k
    one_step = limits.step is not None and limits.steps < 2 and not limits.emulated
    if not form.a.is_float or form.scale or one_step:
        return
    place = np.arange(stored)
    orders = {"the products are summed in reversed order": place[::-1]}
    for parts in (2, 4, 8, 16):
        if stored % parts == 0 and stored > parts:
            by_rest = place.reshape(-1, parts).T.reshape(-1)
            orders[f"step by step every {parts}th product is summed"] = by_rest
            orders[f"the {parts} parts of k are interleaved in the steps"] = place.reshape(
                parts, -1
            ).T.reshape(-1)
    for name, order in orders.items():
        if (order != place).any():
            yield UnitFault(name=name, order=tuple(order.tolist()))


def _of_integers(limits: Limits) -> Iterator[UnitFault]:
    """Yield accumulators of too few bits."""
    if limits.instruction.d.is_float:
        return
    for bits in _WIDTHS:
        yield UnitFault(name=f"the sum wraps at {bits} bits", bits=bits)
        yield UnitFault(name=f"the sum saturates at {bits} bits", bits=bits, clamps=True)


def _of_readings(limits: Limits) -> Iterator[UnitFault]:
    """Yield operands that a unit reads otherwise than they are."""
    for reading in readings(limits.instruction):
        yield UnitFault(name=reading.name, reading=reading)
