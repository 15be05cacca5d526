"""Variations of what a unit makes of a tf32 operand: which bits stay, how they are rounded, what NaN is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warpsim.isa.formats import FORMATS
from warpsim.isa.products import Operands
from warpsim.isa.rules import Rule

from ..candidates import computing, rule_compute
from ..experiments.experiment import Trial
from ..operands import Array, Rng
from .variation import Variation

_SIGN, _INFINITY = 0x8000_0000, 0x7F80_0000
_HIGH = (
    0,
    1,
    2,
    3,
    0x3FF,
    0x400,
    0x1FC00,
    0x1FC01,
    0x1FFFF,
    0x3FBFE,
    0x3FBFF,
    0x3FC00,
    0x3FC01,
    0x3FE00,
    0x3FFFF,
)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """``dropped`` low bits, rounded as ``rounding`` says, in operands ``where``; ``noise`` is set in it.

    ``nan_first``: a NaN is known by all its bits. ``saturates``: what rounds beyond the largest number is it.
    """

    dropped: int
    rounding: str
    where: str = "ab"
    noise: int = 0
    nan_first: bool = False
    saturates: bool = False
    flushed: bool = False


def read(codes: Array, reading: Reading) -> Array:
    """Return the f32 codes that are multiplied."""
    wide = codes.astype(np.int64)
    sign, magnitude = wide & _SIGN, wide & ~_SIGN
    unit = 1 << reading.dropped
    rest, kept = magnitude % unit, magnitude // unit * unit
    half = unit // 2
    up = {
        "zero": rest < 0,
        "even": (2 * rest > unit) | ((2 * rest == unit) & (kept // unit % 2 == 1)),
        "away": rest >= max(half, 1),
        "up": (rest > 0) & (sign == 0),
        "down": (rest > 0) & (sign > 0),
        "odd": (rest > 0) & (kept // unit % 2 == 0),
        "any": rest > 0,
    }[reading.rounding]
    rounded = np.where(magnitude >= _INFINITY, kept, kept + up * unit) | np.where(
        magnitude < _INFINITY, reading.noise, 0
    )
    if reading.saturates:
        rounded = np.where((magnitude < _INFINITY) & (rounded >= _INFINITY), _INFINITY - unit, rounded)
    if reading.nan_first:
        rounded = np.where(magnitude > _INFINITY, 0x7FFF_E000, rounded)
    if reading.flushed:
        rounded = np.where(rounded < 0x0080_0000, 0, rounded)
    return (rounded | sign).astype(np.uint32)


def multiplied(operands: Operands, rule: Rule, reading: Reading) -> Array:
    """Return codes of D; an operand that is not read so loses its low bits."""
    plain, f32 = Reading(dropped=13, rounding="zero"), FORMATS["f32"]
    a, b = (read(getattr(operands, name), reading if name in reading.where else plain) for name in ("a", "b"))
    form = replace(operands.product, a=f32, b=f32)
    return rule_compute(replace(operands, a=a, b=b, product=form), rule)


def settled(reading: Reading) -> bytes:
    """Return what becomes of every code that can matter: all low bits, beside every sort of high ones."""
    high = np.array(_HIGH, np.uint32)[:, None] << np.uint32(13)
    codes = (high | np.arange(1 << 13, dtype=np.uint32)).ravel()
    both = np.concatenate([codes, codes | np.uint32(_SIGN)])
    plain = Reading(dropped=13, rounding="zero")
    tables = [_meaning(read(both, reading if name in reading.where else plain)) for name in "ab"]
    return b"".join(table.tobytes() for table in tables)


def _meaning(codes: Array) -> Array:
    """Return all NaNs are one."""
    return np.where((codes & ~np.uint32(_SIGN)) > _INFINITY, np.uint32(0x7FFF_FFFF), codes)


def variations(trial: Trial, count: int, rng: Rng) -> Iterator[Variation]:
    """So many of them."""
    seen = set[Reading]()
    while len(seen) < count:
        reading = _drawn(rng)
        if reading not in seen:
            seen.add(reading)
            yield Variation(
                name=str(reading),
                arithmetic=computing(
                    lambda operands, rule, reading=reading: multiplied(operands, rule, reading)  # type: ignore[misc]
                ),
                key=settled(reading),
            )


def listed(trial: Trial) -> dict[str, Any]:
    """Return the keys of the candidates."""
    readings = {
        "dropped first": Reading(dropped=13, rounding="zero"),
        "classified first": Reading(dropped=13, rounding="zero", nan_first=True),
        "rounded to even": Reading(dropped=13, rounding="even", nan_first=True),
        "rounded away": Reading(dropped=13, rounding="away", nan_first=True),
        "all bits": Reading(dropped=0, rounding="zero"),
    }
    return {candidate.name: settled(readings[candidate.name]) for candidate in trial.candidates}


def _drawn(rng: Rng) -> Reading:
    dropped = int(rng.choice([13, 13, 13, *range(13)]))
    return Reading(
        dropped=dropped,
        rounding=str(rng.choice(["zero", "even", "away", "up", "down", "odd", "any"])),
        where=str(rng.choice(["ab", "a", "b"])),
        noise=int(rng.choice([0, 0, 0, 1 << int(rng.integers(0, 13))])),
        nan_first=bool(rng.random() < 0.4),
        saturates=bool(rng.random() < 0.2),
        flushed=bool(rng.random() < 0.1),
    )
