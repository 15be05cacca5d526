"""Matrix instructions that add to each other's D: which follows which, and several of them as one product.

An instruction follows the latest before it whose D, bit for bit, is its C. Knows events; the search for
mistakes is that of products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError, UndefinedBehavior
from ....isa.codes import matrix_of
from ....isa.fragments import gather
from ....isa.operand_places.placements import Inputs
from ....isa.products import Codes, Operands
from ....observe.recording.matrix_events import Event
from ....sums.execution.interface import unpack
from ....sums.execution.pipeline import checked_inputs, execute_inputs
from ..loops.loop_search import LoopDiagnosis, diagnose_product


@dataclass(frozen=True, kw_only=True, eq=False)
class EventChain:
    """Consecutive events up to an event whose D is wrong; ``inputs`` of the first start from the D that
    was expected before it, if known."""

    events: tuple[int, ...]
    inputs: Inputs


def predecessors(events: Sequence[Event]) -> list[int | None]:
    """Return for every event the event whose D it starts from; None if it starts anew."""
    latest: dict[tuple[Any, ...], int] = {}
    found = list[int | None]()
    for number, event in enumerate(events):
        where = getattr(event, "cta", None), getattr(event, "warp", None)
        c = event.inputs.registers.get("c")
        found.append(None if c is None or not c.any() else latest.get((*where, c.tobytes())))
        latest[*where, event.d.tobytes()] = number
    return found


def chain_before(
    events: Sequence[Event], before: Sequence[int | None], last: int, known: Mapping[int, npt.NDArray[Any]]
) -> EventChain:
    """Return the events that make the D of ``last`` of the last D that is ``known`` before it, or of a C."""
    found = [last]
    while (earlier := before[found[0]]) is not None and earlier not in known:
        if events[earlier].instruction != events[last].instruction:
            break
        found.insert(0, earlier)
    inputs, start = events[found[0]].inputs, before[found[0]]
    if start is not None and start in known:
        inputs = replace(inputs, registers={**inputs.registers, "c": known[start]})
    return EventChain(events=tuple(found), inputs=inputs)


def reproduces_d(events: Sequence[Event], found: EventChain, d: npt.NDArray[Any]) -> bool:
    """Return whether D comes out if the chain starts from what was expected."""
    first, *rest = found.events
    made = execute_inputs(events[first].instruction, found.inputs)
    for number in rest:
        inputs = events[number].inputs
        made = execute_inputs(
            events[number].instruction, replace(inputs, registers={**inputs.registers, "c": made})
        )
    return bool(np.array_equal(made, d))


def diagnose_chain(events: Sequence[Event], found: EventChain, d: npt.NDArray[Any]) -> LoopDiagnosis | None:
    """Diagnose several events as a product along k with a wrong D; None if they do not form a product."""
    form = events[found.events[0]].instruction
    whole = all(len(events[event].d) == form.lanes for event in found.events)
    if len(found.events) < 2 or not whole:
        return None
    read = [found.inputs, *(events[event].inputs for event in found.events[1:])]
    try:
        steps = [gather(form, checked_inputs(form, inputs)) for inputs in read]
        return diagnose_product(
            form,
            np.concatenate([_left(step) for step in steps], axis=1),
            np.concatenate([step.b for step in steps], axis=0),
            unpack(form, "d", d),
            matrix_of(steps[0].c, form.c),
            scale_a=_scales(steps, "scale_a", 1),
            scale_b=_scales(steps, "scale_b", 0),
        )
    except (OperandError, UndefinedBehavior):  # loops are not searched for it, or metadata has no meaning
        return None


def _left(operands: Operands) -> Codes:
    """Return the logical A ``(m, k)``. Raises OperandError if two stored elements have one column."""
    if operands.columns is None:
        return operands.a
    form, columns = operands.product, operands.columns
    if (np.diff(np.sort(columns, axis=1), axis=1) == 0).any():
        raise OperandError("metadata names a column twice")
    a = np.zeros((*operands.a.shape[:1], form.shape.k), operands.a.dtype)
    np.put_along_axis(a, columns, operands.a, axis=1)
    return a


def _scales(steps: Sequence[Operands], operand: str, axis: int) -> Codes | None:
    codes = [getattr(step, operand) for step in steps]
    return None if codes[0] is None else np.concatenate(codes, axis=axis)
