"""Operands that a unit reads otherwise than they are: a bit that is stuck, a kind of number that is another.

Such a reading can concern an output only through elements that it changes, so wrong outputs without any such
element exclude it before a sum is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.formats import Format
from ....isa.instruction import Instruction
from ....isa.products import Operands
from .result_relations import kinds_of

Array = npt.NDArray[Any]
Read = Callable[[Array], Array]

_SIDES = {
    "a": "A",
    "b": "B",
    "c": "C",
    "ab": "A and B",
    "scale_a": "the scales of A",
    "scale_b": "the scales of B",
}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Codes that operands are read as: ``sides`` are names of Operands."""

    name: str
    sides: tuple[str, ...]
    read: Read

    def of(self, operands: Operands) -> Operands:
        """Return the operands as they are read."""
        made: dict[str, Any] = {side: self._read(getattr(operands, side)) for side in self.sides}
        return replace(operands, **made)

    def _read(self, codes: Array) -> Array:
        return self.read(codes.astype(np.uint64)).astype(codes.dtype)

    def concerns(self, operands: Operands) -> Array:
        """Return the outputs ``(tiles, m, n)`` that a changed element can reach."""
        found = np.zeros(operands.c.shape, np.bool_)
        for side in self.sides:
            codes = getattr(operands, side)
            changed = self._read(codes) != codes
            if side == "c":
                found |= changed
            elif side.endswith("a"):
                found |= changed.any(2)[:, :, None]
            else:
                found |= changed.any(1)[:, None, :]
        return found


def readings(form: Instruction) -> Iterator[Reading]:
    """Yield the readings of an instruction's operands."""
    for key, what in _SIDES.items():
        sides = tuple(key) if key == "ab" else (key,)
        element = form.scale if key.startswith("scale") else form.format(sides[0])
        if element is None or (key == "ab" and form.a != form.b):
            continue
        yield from (
            Reading(name=f"{bit} of {what} is read as {value}", sides=sides, read=read)
            for bit, value, read in _of_bits(element)
        )
        if key == "a":
            yield from _of_products(form)
        if element.is_float and element.signed:
            yield from (
                Reading(name=f"{kind} of {what} is read as {other}", sides=sides, read=read)
                for kind, other, read in _of_kinds(element)
            )


def _of_products(form: Instruction) -> Iterator[Reading]:
    """Yield products that a unit loses, by the stored column of A."""
    for place in range(form.stored_k):
        name = f"product {place} is lost (stored column {place} of A is read as 0)"
        yield Reading(name=name, sides=("a",), read=_lost(place))


def _lost(place: int) -> Read:
    def read(codes: Array) -> Array:
        made = codes.copy()
        made[..., place] = 0
        return made

    return read


def _of_bits(element: Format) -> Iterator[tuple[str, int, Read]]:
    for place in range(element.ignored_bits, element.bits):
        bit = np.uint64(1 << place)
        name = "the sign bit" if element.signed and place == element.bits - 1 else f"bit {place}"
        yield name, 0, partial(np.bitwise_and, ~bit)
        yield name, 1, partial(np.bitwise_or, bit)


def _of_kinds(element: Format) -> Iterator[tuple[str, str, Read]]:
    """Yield kinds of numbers, what they are read as, and the codes."""
    sign = np.uint64(element.sign_bit)
    others: dict[str, Read] = {
        "zero": lambda codes: codes & sign,
        "the largest finite number": lambda codes: (codes & sign) | np.uint64(element.largest_finite),
        "the smallest normal number": lambda codes: (
            (codes & sign) | np.uint64(1 << element.fraction_bits + element.ignored_bits)
        ),
        "the number of the other sign": lambda codes: codes ^ sign,
    }
    if element.has_infinity:
        others["Inf"] = lambda codes: (codes & sign) | np.uint64(element.infinity)
    for kind in ("NaN", "+Inf", "-Inf", "Inf", "-0", "subnormal", "negative subnormal", "positive subnormal"):
        if kind.endswith("Inf") and not element.has_infinity:
            continue
        for other, made in others.items():
            if kind[-3:] != other[-3:]:
                yield kind, other, _where(kind, element, made)


def _where(kind: str, element: Format, made: Read) -> Read:
    return lambda codes: np.where(_is(kind, codes, element), made(codes), codes)


def _is(kind: str, codes: Array, element: Format) -> Array:
    """Return where codes are of a kind; formats without Inf have NaNs above the largest number."""
    if kind == "NaN" and not element.has_infinity:
        magnitude = codes & np.uint64(element.mask & ~element.sign_bit)
        flags: Array = magnitude > np.uint64(element.largest_finite)
        return flags
    return kinds_of(codes, element)[kind]
