"""Programs of rules over many outputs at once, exact for every program, rewritten or not.

An int64 holds the sums of a program whose ranges are known and small; other programs are computed in
Python's integers. Knows the operations of programs; does not know rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ....base.errors import present
from ....isa.formats import FORMATS
from ....isa.products import Operands
from ....sums.rule_programs.rule_interpreter import CUTS
from ....sums.rule_programs.rule_operations import Program
from ....sums.rule_programs.value_ranges import ranges_of
from .exact_numbers import (
    FINITE,
    Array,
    Numbers,
    bit_length,
    cut,
    decode,
    grows,
    product,
    rounded,
    special_of,
    with_specials,
)
from .factors import broadcast_factors

_WIDTH = 52  # bits of sums that int64 holds, and whose length float64 knows
_BELOW = -(1 << 20)  # an exponent below all others


@dataclass(frozen=True)
class _Numbers:
    """Numbers of every output, ``(outputs, count)``, and which take part in the alignment."""

    numbers: Numbers
    live: Array

    @classmethod
    def of(cls, numbers: Numbers) -> _Numbers:
        return cls(numbers, _flags(numbers.nonzero))

    def places(self, at: Any) -> _Numbers:
        return _Numbers(self.numbers[:, at], self.live[:, at])


def inputs_of(operands: Operands, outputs: Array) -> dict[str, Array]:
    """Return the codes ``(outputs, count)`` that a program reads for some outputs, by their numbers."""
    form, stored = operands.product, operands.a.shape[2]
    shape = operands.c.shape
    at = np.unravel_index(outputs, shape)
    found = {side: broadcast_factors(getattr(operands, side), operands, side)[at] for side in "ab"}
    found["c"] = operands.c[at][:, None]
    if form.scale is not None:
        chunk = np.arange(stored) * form.scale_chunks // stored
        a, b = (present(getattr(operands, f"scale_{side}"), "scale") for side in "ab")
        found["scale_a"] = a[at[0], at[1]][:, chunk]
        found["scale_b"] = b.swapaxes(1, 2)[at[0], at[2]][:, chunk]
    return found


def program_codes(program: Program, inputs: Mapping[str, Array]) -> Array:
    """Return the code of D of every output, uint64."""
    wide, values = _is_wide(program), dict[str, Any](inputs)
    for each in program.operations:
        given = (*(values[name] for name in each.values), *each.given)
        value = _OPERATIONS[each.name](*given) if given else _zero(len(inputs["c"]))
        if wide and each.name in ("read", "zero", "convert"):
            exact = value.numbers.significand.astype(object)
            value = replace(value, numbers=replace(value.numbers, significand=exact))
        values[each.result] = value
    return np.asarray(values[program.result]).astype(np.uint64)


@lru_cache(maxsize=1 << 10)
def _is_wide(program: Program) -> bool:
    """Return whether sums may be too large for an int64."""
    tops = {each.values[0] for each in program.named("top")}
    if tops and any(each.values[0] not in tops for each in program.named("cut")):
        return True  # what is cut is not what is aligned by
    try:
        ranges = ranges_of(program)
    except (OverflowError, ValueError, KeyError):
        return True
    most = [part.most for parts in ranges.parts.values() for part in parts]
    return max(*most, *ranges.units.values(), 0) >= 1 << _WIDTH


def _flags(array: Array) -> Array:
    return np.asarray(array).astype(np.bool_, copy=False)


# --- lists of numbers ----------------------------------------------------------------------------------


def _read(codes: Array, element: str, subnormals: str = "") -> _Numbers:
    form = FORMATS[element]
    numbers = decode(codes if codes.ndim > 1 else codes[:, None], form)
    if subnormals == "zero":
        numbers = numbers.flushed(form)
    elif subnormals == "leading":
        exponent = np.where(numbers.subnormal(form), _leading(numbers), numbers.exponent)
        numbers = replace(numbers, exponent=exponent)
    elif subnormals == "raised":
        largest = _flags(np.abs(numbers.significand) == (1 << form.fraction_bits) - 1)
        more = np.where(largest, np.sign(numbers.significand), 0)
        numbers = replace(numbers, significand=numbers.significand + more)
    return _Numbers.of(numbers)


def _zero(count: int) -> _Numbers:
    return _read(np.zeros(count, np.uint64), "f32")


def _leading(numbers: Numbers) -> Array:
    """Return the exponents of leading 1 bits; of zero, Inf and NaN the exponents that they have."""
    finite = _flags(numbers.nonzero) & (numbers.special == FINITE)
    lead = numbers.scale + bit_length(np.abs(numbers.significand)) - 1
    return np.where(finite, lead, numbers.exponent).astype(np.int64)


def _multiplied(x: _Numbers, y: _Numbers, aligned: str = "") -> _Numbers:
    made = product(x.numbers, y.numbers)
    if aligned:
        lead = _leading(made)
        made = replace(made, exponent=lead if aligned == "leading" else np.maximum(made.exponent, lead))
    return _Numbers(made, x.live & y.live)


def _combined(x: _Numbers, y: _Numbers, operation: str) -> _Numbers:
    both = {"and": np.bitwise_and, "xor": np.bitwise_xor}[operation]
    return _Numbers.of(replace(x.numbers, significand=both(x.numbers.significand, y.numbers.significand)))


def _converted(x: _Numbers, element: str, rounding: str = "rn") -> _Numbers:
    alone = replace(x.numbers, **{name: array[..., None] for name, array in vars(x.numbers).items()})
    return _Numbers.of(decode(_ieee(_Numbers(alone, x.live), element, rounding), FORMATS[element]))


def _summed(x: _Numbers, count: int) -> _Numbers:
    members = {name: array.reshape(len(array), -1, count) for name, array in vars(x.numbers).items()}
    scale = members["scale"].min(-1)
    total = (members["significand"] << (members["scale"] - scale[..., None])).sum(-1)
    found = Numbers(
        significand=total,
        scale=scale,
        exponent=np.zeros(scale.shape, np.int64),
        special=members["special"].max(-1),
        negative=_flags(total < 0),
    )
    return _Numbers(found, x.live.reshape(*scale.shape, count).any(-1))


def _joined(*lists: _Numbers) -> _Numbers:
    numbers = {
        name: np.concatenate([getattr(each.numbers, name) for each in lists], axis=1)
        for name in vars(lists[0].numbers)
    }
    return _Numbers(Numbers(**numbers), np.concatenate([each.live for each in lists], axis=1))


# --- exponents and totals ------------------------------------------------------------------------------


def _top(
    x: _Numbers, of: _Numbers, floor: int, zeros: str = "", places: Sequence[int] | None = None
) -> Array:
    live = of.live
    if zeros:
        counted = ~_flags(of.numbers.nonzero)
        counted = counted if zeros == "all" else counted & of.numbers.negative
        chosen = np.zeros(live.shape[1], np.bool_)
        chosen[slice(None) if places is None else list(places)] = True
        live = live | (counted & chosen)
    exponent = np.where(live, x.numbers.exponent.astype(np.int64), _BELOW).max(-1)
    return np.maximum(exponent, floor)


def _cut(x: _Numbers, unit: Array, mode: str, other: str = "", place: int = -1) -> Array:
    unit = np.broadcast_to(unit, len(x.live))
    kept = _in_units(x.numbers, unit[:, None], mode)
    if other:
        kept[:, place] = _in_units(x.numbers[:, place], unit, other)
    return kept


def _in_units(numbers: Numbers, unit: Array, mode: str) -> Array:
    """Return numbers in units of ``2**unit``, cut by a mode."""
    kept, _, tail = cut(np.abs(numbers.significand), unit - numbers.scale)
    negative = _flags(numbers.significand < 0)
    if mode == "coarse":
        kept = kept - (kept & 1)
    elif mode == "sticky":
        kept = kept | (tail > 0).astype(kept.dtype)
    else:
        kept = kept + grows(CUTS[mode], negative, _flags(kept & 1), tail)
    return np.where(negative, -kept, kept)


def _totalled(units: Array, vanishing: bool = False) -> Array:
    total = units.sum(-1)
    return np.where(_flags(np.abs(total) == 1), 0, total) if vanishing else total


# --- codes ---------------------------------------------------------------------------------------------


def _rounded(
    total: Array, unit: Array, x: _Numbers, output: Any, rounding: str = "", flushes: bool = False
) -> Array:
    element, mode = FORMATS[output.format], rounding or ("rn" if output.nearest else "cut")
    done = rounded(total, np.broadcast_to(unit, total.shape), element, output.precision, mode)
    gone = done.vanished | _flags(total == 0) | (done.subnormal & flushes)
    code = np.where(gone, 0, done.code).astype(np.uint64)
    return with_specials(code, *special_of(x.numbers), element)


def _ieee(x: _Numbers, element_name: str, rounding: str, flushes: bool = False) -> Array:
    """Return the codes of exact sums over the last axis."""
    element, numbers = FORMATS[element_name], x.numbers
    total, unit = _exact_sum(numbers)
    done = rounded(total, unit, element, element.fraction_bits + 1, rounding)
    negative = numbers.negative.all(-1) | (numbers.negative.any(-1) & (rounding == "rm"))
    zero = np.where(negative, np.uint64(element.sign_bit), np.uint64(0))
    code = np.where(_flags(total == 0), zero, done.code.astype(np.uint64))
    code = np.where(done.subnormal & flushes, np.uint64(0), code)
    return with_specials(code, *special_of(numbers), element)


def _exact_sum(numbers: Numbers) -> tuple[Array, Array]:
    """Return sums in Python's integers, and their units; single numbers as they are."""
    if numbers.significand.shape[-1] == 1:
        return numbers.significand[..., 0], numbers.scale[..., 0]
    nonzero = _flags(numbers.nonzero)
    lowest = np.where(nonzero, numbers.scale, -_BELOW).min(-1)
    lift = np.where(nonzero, numbers.scale - lowest[..., None], 0)
    total = (numbers.significand.astype(object) << lift.astype(object)).sum(-1)
    return total, np.where(nonzero.any(-1), lowest, 0)


def _wrapped(total: Array, bits: int, clamps: bool, width: int = 0) -> Array:
    least = -1 << bits - 1
    kept = np.clip(total, least, ~least) if clamps else (total - least & (1 << bits) - 1) + least
    return kept & (1 << (width or bits)) - 1


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "read": _read,
    "mul": _multiplied,
    "bits": _combined,
    "convert": _converted,
    "sum": _summed,
    "take": lambda numbers, places: numbers.places(list(places)),
    "join": _joined,
    "top": _top,
    "int": np.int64,
    "add": lambda exponent, addend: exponent + addend,
    "max": np.maximum,
    "ge": lambda x, y: x >= y,
    "pick": np.where,
    "cut": _cut,
    "total": _totalled,
    "round": _rounded,
    "ieee": _ieee,
    "wrap": _wrapped,
}
