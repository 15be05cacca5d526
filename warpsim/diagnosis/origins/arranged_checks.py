"""What is wrong with operands whose arrays are no matrices: fragments kept in an order of their own.

Any order is taken for right in which the place of an element is a sum of what each bit of the lane's and the
element's numbers adds, as in arrays of fragments; the elements that break the sum are reported. Knows places;
does not know which order was meant.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from .loaded_operands import Mask, Operand, index_text, mode
from .packing_checks import PackingFinding
from .tags import Indices

_LEAST = 0.75  # of the elements follow the sum, or there is none
_LISTED = 3


def arranged_findings(operand: Operand) -> Iterator[PackingFinding]:
    """Yield lanes and registers whose elements break the sum; nothing if hardly any follow it."""
    _, lanes, values = operand.bits.shape
    if operand.buffer is None or values & values - 1 or lanes & lanes - 1:
        return
    index = operand.index.reshape(len(operand.index), -1)
    known = operand.moved.reshape(index.shape)
    if not known.any():
        return
    expected = _sum(index, known)
    wrong = known & (index != expected)
    if wrong.sum() > (1 - _LEAST) * known.sum():
        return
    found: dict[str, list[int]] = {}
    for event in np.flatnonzero(wrong.any(axis=1)).tolist():
        found.setdefault(_message(operand, index[event], expected[event], wrong[event]), []).append(event)
    for message, events in found.items():
        yield PackingFinding(
            kind="order",
            operand=operand.role,
            message=message,
            location=operand.given.location,
            places=operand.places[events],
        )


def _sum(index: Indices, known: Mask) -> Indices:
    """Return ``(n, lanes * values)``: the sum that most elements follow, from the commonest start of each."""
    places = np.arange(index.shape[1])
    factors = [_factor(index, known, bit) for bit in range((index.shape[1] - 1).bit_length())]
    inner = (places[:, None] >> np.arange(len(factors)) & 1) @ np.array(factors, np.int64)
    starts = [
        mode((row - inner)[inside]) if inside.any() else 0 for row, inside in zip(index, known, strict=True)
    ]
    total: Indices = np.array(starts)[:, None] + inner
    return total


def _factor(index: Indices, known: Mask, bit: int) -> int:
    """Return what one bit of the place mostly adds."""
    low = np.flatnonzero(~np.arange(index.shape[1]) >> bit & 1)
    both = known[:, low] & known[:, low | 1 << bit]
    steps = (index[:, low | 1 << bit] - index[:, low])[both]
    return mode(steps) if steps.size else 0


def _message(operand: Operand, index: Indices, expected: Indices, wrong: npt.NDArray[np.bool_]) -> str:
    """Return the first wrong elements and the right ones, without the places of the execution."""
    assert operand.buffer is not None
    values, width = operand.bits.shape[2], operand.width
    places = np.flatnonzero(wrong)
    lanes, registers = np.unique(places // values), np.unique(places % values // operand.each)
    texts = list[str]()
    for place in places[:_LISTED].tolist():
        held, should = (
            index_text(operand.buffer, int(indices[place]), width) for indices in (index, expected)
        )
        register = place % values // operand.each
        if operand.in_shared:
            texts.append(f"row {place // values}, k {register} is {held}, not {should}")
            continue
        texts.append(f"lane {place // values} holds {held} in {operand.role}{register}, not {should}")
    where = (
        "in shared memory"
        if operand.in_shared
        else (
            f"lane{'s'[: lanes.size != 1]} {', '.join(map(str, lanes.tolist()))}, "
            f"{', '.join(f'{operand.role}{register}' for register in registers.tolist())}"
        )
    )
    return f"elements of {operand.buffer.name} that are out of order ({where}): {'; '.join(texts)}"
