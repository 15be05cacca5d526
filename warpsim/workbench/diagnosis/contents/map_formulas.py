"""Maps as formulas: rows and columns as sums, or exclusive ors, of lane, register and slot.

l is the lane of a warp w, t = l % 4 and g = l / 4 as in the PTX manual; i is the register, h the element in
it; i0 is bit 0 of i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..solving.atoms import Flags
from ..solving.views import Index
from .dump_places import Places

_LANE_BITS = 5
_NAMED = 8  # registers


def formula(places: Places, row: Index, column: Index, followed: Flags | None = None) -> str:
    """Return ``row = g + 8*i0, column = 2*t + h + 8*i1`` where each is a sum, or an exclusive or, of bits.

    Bits that are the same in all places that ``followed`` are a part of the base. Empty for other maps.
    """
    chosen = np.ones(len(row), np.bool_) if followed is None else followed
    texts = [_of_axis(places, values, chosen) for values in (row, column)]
    if not all(texts):
        return ""
    return ", ".join(f"{name} = {text}" for name, text in zip(places.axes, texts, strict=True))


def _of_axis(places: Places, values: Index, chosen: Flags) -> str:
    for xor in (False, True):
        weights = []
        for clear, given in places.pairs:
            both = chosen[clear] & chosen[given]
            before, after = values[clear[both]], values[given[both]]
            steps = np.unique(before ^ after if xor else after - before)
            weights.append(int(steps[0]) if len(steps) else 0)
        each = places.index_bits * np.array(weights, np.intp)
        moved = np.bitwise_xor.reduce(each, axis=1) if xor else each.sum(axis=1)
        base = np.unique((values ^ moved if xor else values - moved)[chosen])
        if len(base) == 1:
            return _terms(places, weights, int(base[0]), " ^ " if xor else " + ")
    return ""


def _terms(places: Places, weights: Sequence[int], base: int, join: str) -> str:
    """Return the sum of the bits of each name: ``4*g`` where all its bits follow, else a term for each bit.

    Lanes that follow no groups of four are written as l, the lane.
    """
    terms = [str(base)] if base else []
    digits = places.digits
    parts: dict[str, list[str]] = {}
    for name in sorted({name for name, _ in digits}, key="wgtih".index):
        own = [(bit, weight) for (other, bit), weight in zip(digits, weights, strict=True) if other == name]
        first = own[0][1]
        if places.is_whole(name) and all(weight == first << bit for bit, weight in own):
            parts[name] = [_times(first, name)] if first else []
        else:
            parts[name] = [_times(weight, f"{name}{bit}") for bit, weight in own if weight]
    lane = [weight for (name, _), weight in zip(digits, weights, strict=True) if name in "tg"]
    by_bits = any(name in "tg" and terms and terms[0][-1].isdigit() for name, terms in parts.items())
    if by_bits and len(lane) == _LANE_BITS and len(runs := _lane_terms(lane)) <= len(parts["g"] + parts["t"]):
        parts["g"], parts["t"] = runs, []
    terms += [term for part in parts.values() for term in part]
    return join.join(terms).replace("+ -", "- ") or "0"


def _lane_terms(weights: Sequence[int]) -> list[str]:
    """Return the terms of runs of bits of the lane, as ``8*(l / 16)`` and ``l % 16``."""
    terms, start = [], 0
    while start < len(weights):
        end = start + 1
        while end < len(weights) and weights[start] and weights[end] == weights[start] << (end - start):
            end += 1
        if weights[start]:
            text = f"l / {1 << start}" if start else "l"
            text += f" % {1 << (end - start)}" if end < len(weights) else ""
            terms.append(_times(weights[start], f"({text})" if " " in text else text))
        start = end
    return terms


def _times(factor: int, name: str) -> str:
    return name if factor == 1 else f"-{name}" if factor == -1 else f"{factor}*{name}"


def several(values: Sequence[int], most: int = 8) -> str:
    """Return ``0 to 3, 8``: numbers with their ranges."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ", ".join(texts[:most]) + ", …" * (len(texts) > most)


def where_of(places: Places, chosen: Flags, *, by_row: bool = False) -> str:
    """Return which lanes, registers, rows or columns places are, as ``lanes 0 to 12, a0``; empty if they are
    no product of such. ``by_row``: rows and columns go before lanes and registers.
    """
    sides = [
        ("lane", places.lane),
        (places.operand, places.register),
        ("element", places.slot),
        ("row", places.row),
        ("column", places.column),
    ]
    texts: list[tuple[str, Flags]] = []
    for what, values in (*sides[3:], *sides[:3]) if by_row else sides:
        own = np.unique(values[chosen])
        if len(own) < len(np.unique(values)):
            texts.append((_which(what, own.tolist()), np.isin(values, own)))
    for text, flags in texts:
        if (flags == chosen).all():
            return text
    product = np.ones_like(chosen)
    for _, flags in texts:
        product &= flags
    return ", ".join(text for text, _ in texts) if texts and (product == chosen).all() else ""


def _which(what: str, numbers: list[int]) -> str:
    if len(what) == 1:
        return ", ".join(f"{what}{number}" for number in numbers[:_NAMED]) + ", …" * (len(numbers) > _NAMED)
    return f"{what}{'s'[: len(numbers) > 1]} {several(numbers)}"
