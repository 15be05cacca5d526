"""Maps as formulas: rows, columns or addresses as sums of lane, register and slot.

l is the lane of a warp w, t = l % 4 and g = l / 4 as in the PTX manual; i is the register, h the element in
it; i0 is bit 0 of i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .dump_places import Places
from .index_maps import Flags, IndexMap

_LANE_BITS = 5
_NAMED = 8  # registers


def formula(places: Places, found: IndexMap) -> str:
    """Return ``row = g + 8*i0, column = 2*t + h + 8*i1``, or the address in the matrix.

    Bits that are the same in all places that follow the map are a part of its base.
    """
    space, bits = found.space, places.index_bits[found.hits]
    varying = np.ptp(bits, axis=0) > 0
    base, weights = found.base, list(found.weights)
    for bit in np.flatnonzero(~varying).tolist():
        fixed = weights[bit] * int(bits[0, bit])
        base = base ^ fixed if space.xor else base + fixed
        weights[bit] = 0
    if not space.separate:
        which = "column" if space.across else "row"
        text = _terms(places, weights, base, " + ")
        own = space.rows if space.across else space.columns
        apart = f"{which}s {space.stride} apart" + f", not {own}" * (space.stride != own)
        return f"address = {text} ({apart})"
    parts = [_split(space.stride, weight, xor=space.xor) for weight in weights]
    bases = _split(space.stride, base, xor=space.xor)
    join = " ^ " if space.xor else " + "
    texts = [_terms(places, [part[side] for part in parts], bases[side], join) for side in (0, 1)]
    return _both(places, texts)


def layout_formula(places: Places) -> str:
    """Return the formula of the layout, where a sum for each bit gives it; else nothing."""
    texts = []
    for values in (places.row, places.column):
        base = int(values[0])
        weights = []
        for clear, given in places.pairs:
            steps = np.unique(values[given] - values[clear])
            if len(steps) > 1:
                return ""
            weights.append(int(steps[0]) if len(steps) else 0)
        texts.append(_terms(places, weights, base, " + "))
    return _both(places, texts)


def _both(places: Places, texts: Sequence[str]) -> str:
    return ", ".join(f"{name} = {text}" for name, text in zip(places.axes, texts, strict=True))


def _split(stride: int, weight: int, *, xor: bool) -> tuple[int, int]:
    """Return what a weight of an address adds to row and column."""
    if xor:
        return weight // stride, weight % stride
    row = (weight + stride // 2) // stride
    return row, weight - row * stride


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
