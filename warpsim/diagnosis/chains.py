"""Matrix instructions that add to each other's D: which follows which, and several of them as one product.

An instruction follows the latest one before it whose D, bit for bit, is its C. Knows events; the search for
mistakes is that of products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from ..execution.interface import decompress, unpack, unpack_metadata
from ..execution.pipeline import execute_inputs
from ..isa.instruction import Inputs
from ..isa.warps import WARP
from ..machine.events import Event
from . import LoopDiagnosis, diagnose_product


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretch:
    """Events one after the other up to one whose D is wrong; ``inputs`` of the first start from the D that
    was expected before it, where one was."""

    events: tuple[int, ...]
    inputs: Inputs


def predecessors(events: Sequence[Event]) -> list[int | None]:
    """Of every event the one whose D it starts from; None for one that starts anew."""
    latest: dict[tuple[Any, ...], int] = {}
    found = list[int | None]()
    for number, event in enumerate(events):
        where = getattr(event, "cta", None), getattr(event, "warp", None)
        c = event.inputs.registers.get("c")
        found.append(None if c is None or not c.any() else latest.get((*where, c.tobytes())))
        latest[*where, event.d.tobytes()] = number
    return found


def stretch(
    events: Sequence[Event], before: Sequence[int | None], last: int, known: Mapping[int, npt.NDArray[Any]]
) -> Stretch:
    """The events that make the D of ``last`` of the last D that is ``known`` before it, or of a C."""
    found = [last]
    while (one := before[found[0]]) is not None and one not in known:
        if events[one].instruction != events[last].instruction:
            break
        found.insert(0, one)
    inputs, start = events[found[0]].inputs, before[found[0]]
    if start is not None and start in known:
        inputs = replace(inputs, registers={**inputs.registers, "c": known[start]})
    return Stretch(events=tuple(found), inputs=inputs)


def is_made(events: Sequence[Event], found: Stretch, d: npt.NDArray[Any]) -> bool:
    """Whether D comes out if the stretch starts from what was expected."""
    first, *rest = found.events
    made = execute_inputs(events[first].instruction, found.inputs)
    for number in rest:
        inputs = events[number].inputs
        made = execute_inputs(
            events[number].instruction, replace(inputs, registers={**inputs.registers, "c": made})
        )
    return bool(np.array_equal(made, d))


def diagnose_stretch(events: Sequence[Event], found: Stretch, d: npt.NDArray[Any]) -> LoopDiagnosis | None:
    """Several events as a product along k, whose D was to be another; None where that is not for them."""
    form = events[found.events[0]].instruction
    whole = all(len(events[one].d) == form.family.lanes == WARP for one in found.events)
    if len(found.events) < 2 or not whole:
        return None
    read = [found.inputs, *(events[one].inputs for one in found.events[1:])]
    try:
        return diagnose_product(
            form,
            np.concatenate([_left(form, one) for one in read], axis=1),
            np.concatenate([unpack(form, "b", one.registers["b"]) for one in read], axis=0),
            unpack(form, "d", d),
            unpack(form, "c", found.inputs.registers["c"]),
        )
    except OperandError:  # of a family that loops are not searched for, or metadata without a meaning
        return None


def _left(form: Any, inputs: Inputs) -> npt.NDArray[Any]:
    """The logical A ``(m, k)``."""
    values = unpack(form, "a", inputs.registers["a"])
    if not form.sparse:
        return values
    return decompress(values, unpack_metadata(form, inputs.registers["e"], inputs.selector), form)
