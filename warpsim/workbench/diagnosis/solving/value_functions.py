"""Value functions of codes: what may stand in the places of an operand besides the values that belong there.

Rounding, range, types, signs and the order of bytes, generated from the formats. Each function maps codes
of a format to codes of it and has the length of its description. Knows no places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ....isa.codes import integers
from ....isa.formats import FORMATS, Format
from ....isa.products import Codes
from ..dumps.dump_comparison import numbers
from .atoms import Facts
from .fitting import Block

Change = Callable[[Codes], Codes]
_FACTORS = (2.0, 0.5, 4.0, 0.25, 8.0, 0.125, 16.0, 0.0625, 3.0, 1 / 3, 2**0.5, 0.5**0.5, 448.0, 1 / 448)
_HALF_BYTE = 4


@dataclass(frozen=True, eq=False)
class ValueFunction(Block):
    """One function of codes, which makes a block of values."""

    change: Change


Row = tuple[float, str, Facts, Change]


@lru_cache(maxsize=64)
def value_functions(element: Format, shift: int = 0) -> tuple[ValueFunction, ...]:
    """Return the functions of a format; ``shift`` is that of its codes in bytes of their own."""
    parts = [_signs, _parts_of_codes]
    parts += [_factors, _integral, _roundings, _readings] if element.is_float else [_offsets]
    found = [ValueFunction(*row) for part in parts for row in part(element)]
    if shift or (element.is_float and element.bits < 8):
        found += [ValueFunction(*row) for row in _misplaced(element)]
    return tuple(found)


def encoded(values: Any, element: Format) -> Codes:
    """Return the codes of values, rounded to nearest even."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(element.dtype).view(element.code_dtype) & element.mask


def _of(element: Format, values: Callable[[Any], Any]) -> Change:
    if element.is_float:
        return lambda codes: encoded(values(numbers(codes, element)), element)
    mask = element.mask
    return lambda codes: (values(integers(codes, element)) & mask).astype(codes.dtype)


def _bits(change: Callable[[Any], Any], element: Format) -> Change:
    return lambda codes: (change(codes.astype(np.uint64)) & np.uint64(element.mask)).astype(codes.dtype)


def _signs(element: Format) -> Iterator[Row]:
    sign = np.uint64(element.sign_bit)
    if not element.signed or element.bits == 1:
        return
    if element.is_float:
        yield 2, "negated", {}, _bits(lambda codes: codes ^ sign, element)
        yield 3, "absolute", {}, _bits(lambda codes: codes & ~sign, element)
    else:
        yield 2, "negated", {}, _of(element, np.negative)
        yield 3, "absolute", {}, _of(element, np.abs)
        yield 3, "sign inverted", {}, _bits(lambda codes: codes ^ sign, element)
    yield 3, "positive", {}, _bits(lambda codes: np.where(codes & sign, np.uint64(0), codes), element)


def _factors(element: Format) -> Iterator[Row]:
    for factor in _FACTORS:
        cost = 3 + (factor not in (2, 0.5))
        yield cost, "times", {"factor": factor}, _of(element, partial(np.multiply, factor))


def _integral(element: Format) -> Iterator[Row]:
    """Yield values that lose their fractions on the way, or that are flushed where they are subnormal."""
    for how, function in (("trunc", np.trunc), ("round", np.round), ("floor", np.floor)):
        yield 3, "integers", {"by": how}, _of(element, function)
    exponents = np.uint64(element.mask >> 1 & ~((1 << element.fraction_bits) - 1))
    if exponents:
        flushed = lambda codes: np.where(codes & exponents, codes, np.uint64(0))  # noqa: E731
        yield 3, "flushed", {}, _bits(flushed, element)


def _roundings(element: Format) -> Iterator[Row]:
    """Yield values rounded, or cut, to narrower types on the way."""
    for other in FORMATS.values():
        if not other.is_float or not other.signed or other.fraction_bits >= element.fraction_bits:
            continue
        if other.bits < element.bits or other.ignored_bits:
            facts = {"to": other.name}
            yield 3, "rounded", facts, _of(element, partial(_through, other))
            cut = element.fraction_bits - other.fraction_bits + element.ignored_bits
            if other.exponent_bits == element.exponent_bits:
                keep = np.uint64(element.mask & ~((1 << cut) - 1))
                yield 3, "cut", facts, _bits(partial(np.bitwise_and, keep), element)
    if 16 <= element.bits <= 32 and element.exponent_bits != FORMATS["bf16"].exponent_bits:
        yield 3, "rounded", {"to": "bf16"}, _of(element, partial(_through, FORMATS["bf16"]))
        yield 3, "cut", {"to": "bf16"}, _of(element, _upper_half)
    if element.ignored_bits:
        for to_even in (False, True):
            yield 2, "tf32", {"to even": to_even}, partial(_to_tf32, to_even)


def _upper_half(values: Any) -> Any:
    return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def _through(other: Format, values: Any) -> Any:
    return numbers(encoded(values, other), other)


def _to_tf32(to_even: bool, codes: Codes) -> Codes:
    """Return f32 rounded to tf32: to nearest, ties away from zero (cvt.rna) or to even (cvt.rn)."""
    words = codes.astype(np.uint32)
    half = np.uint32(0xFFF) + (words >> np.uint32(13) & np.uint32(1)) if to_even else np.uint32(0x1000)
    finite = words & np.uint32(0x7F800000) != np.uint32(0x7F800000)
    return np.where(finite, words + half & np.uint32(0xFFFFE000), words)


def _readings(element: Format) -> Iterator[Row]:
    for other in FORMATS.values():
        if other.bits == element.bits and other is not element and other.is_float and other.signed:
            facts = {"type": other.name, "own": element.name}
            yield 3, "read as", facts, partial(_converted, other, element)
            yield 3, "passed as", facts, partial(_converted, element, other)


def _converted(source: Format, target: Format, codes: Codes) -> Codes:
    return encoded(numbers(codes, source), target)


def _offsets(element: Format) -> Iterator[Row]:
    if element.bits == 1:
        return
    for by in (1, -1, 8, -8, 128, -128):
        if abs(by) <= element.mask >> 1:
            yield 3, "offset", {"by": by}, _of(element, partial(np.add, by))
    yield 3, "times", {"factor": 2.0}, _of(element, lambda values: values * 2)
    yield 3, "times", {"factor": 0.5}, _of(element, lambda values: values >> 1)


def _parts_of_codes(element: Format) -> Iterator[Row]:
    width, unit = element.bits, np.uint64(1)
    yield 3, "inverted", {}, _bits(np.invert, element)
    if width >= 16:
        yield 3, "bytes exchanged", {}, _bits(partial(_swapped, width, 8, width // 8), element)
    if width >= 32:
        yield 3, "halves exchanged", {}, _bits(partial(_swapped, width, 16, 2), element)
    if width == 8:
        yield 3, "nibbles exchanged", {}, _bits(partial(_swapped, 8, 4, 2), element)
        for shift, part in ((0, "low"), (4, "high")) if not element.is_float else ():
            facts = {"part": part}
            low = lambda codes, by=shift: codes >> np.uint64(by) & np.uint64(15)  # noqa: E731
            yield 3, "nibble", {**facts, "signed": False}, _bits(low, element)
            extended = lambda codes, low=low: (low(codes) ^ np.uint64(8)) - np.uint64(8)  # noqa: E731
            yield 3, "nibble", {**facts, "signed": True}, _bits(extended, element)
    for half, part in ((0, "low"), (1, "high")):
        if width >= 8:
            kept = ((unit << np.uint64(width // 2)) - unit) << np.uint64(half * (width // 2))
            yield 3, "part lost", {"kept": part}, _bits(partial(np.bitwise_and, kept), element)


def _swapped(width: int, part: int, count: int, codes: Any) -> Any:
    total = np.zeros_like(codes)
    mask = np.uint64((1 << part) - 1)
    for at in range(count):
        total |= (codes >> np.uint64(part * at) & mask) << np.uint64(width - part * (at + 1))
    return total


def _misplaced(element: Format) -> Iterator[Row]:
    for by in range(1, 8 - element.bits + 1):
        yield 3, "misplaced", {"by": by}, _bits(lambda codes, by=by: codes << np.uint64(by), element)  # type: ignore[misc]
        yield 3, "misplaced", {"by": -by}, _bits(lambda codes, by=by: codes >> np.uint64(by), element)  # type: ignore[misc]


# --- metadata and scales ---------------------------------------------------------------------------------


def index_functions(bits: int) -> tuple[ValueFunction, ...]:
    """Return the functions of indices of 2 bits, or of 1:2 fields of 4."""
    mask, rows = (1 << bits) - 1, list[Row]()
    for by in range(1, mask + 1) if bits == 2 else (mask,):
        rows.append((3, "index xor", {"by": by}, lambda codes, by=by: codes ^ by))  # type: ignore[misc]
    if bits == 2:
        rows.append((3, "index bits exchanged", {}, lambda codes: codes >> 1 | (codes & 1) << 1))
    else:
        rows.append((3, "indices as fields", {}, lambda codes: codes >> 3 & 1))
        rows.append((3, "fields as indices", {}, lambda codes: (codes & 1) * 10 + 4 & mask))
    for value in (1, 2, 3):
        rows.append((4, "index everywhere", {"value": value}, partial(np.full_like, fill_value=value)))
    return tuple(ValueFunction(*row) for row in rows)


def scale_functions(element: Format) -> tuple[ValueFunction, ...]:
    """Return the functions of block scales: the exponent off, inverted, or 1."""
    unit, step, top = element.bias << element.fraction_bits, element.fraction_bits, element.mask
    rows: list[Row] = [(2, "scale of 1", {}, lambda codes: codes * 0 + codes.dtype.type(unit))]
    for by in (1, -1, 2, -2, element.bias, -element.bias):
        moved = partial(_moved_exponent, by << step if by > 0 else -(-by << step), top)
        rows.append((3, "exponent off", {"by": by}, moved))
    rows.append((4, "scale inverted", {}, partial(_inverted_scale, 2 * unit, top)))
    return tuple(ValueFunction(*row) for row in rows)


def _moved_exponent(by: int, top: int, codes: Codes) -> Codes:
    return np.clip(codes.astype(np.int64) + by, 0, top).astype(codes.dtype)


def _inverted_scale(unit: int, top: int, codes: Codes) -> Codes:
    return np.clip(unit - codes.astype(np.int64), 0, top).astype(codes.dtype)
