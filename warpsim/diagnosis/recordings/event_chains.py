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

from ...errors import OperandError, UndefinedBehavior
from ...execution.interface import unpack
from ...execution.pipeline import checked_inputs, execute_inputs
from ...isa.codes import matrix_of
from ...isa.fragments import gather
from ...isa.instruction import Codes, Inputs, Instruction, Operands
from ...recording.events import Event
from ..loops.loop_search import LoopDiagnosis, diagnose_product


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
    whole = all(len(events[one].d) == form.lanes for one in found.events)
    if len(found.events) < 2 or not whole:
        return None
    read = [found.inputs, *(events[one].inputs for one in found.events[1:])]
    try:
        steps = [_gathered(form, one) for one in read]
        return diagnose_product(
            form,
            np.concatenate([_left(one) for one in steps], axis=1),
            np.concatenate([one.b for one in steps], axis=0),
            unpack(form, "d", d),
            matrix_of(steps[0].c, form.c),
            scale_a=_scales(steps, "scale_a", 1),
            scale_b=_scales(steps, "scale_b", 0),
        )
    except (OperandError, UndefinedBehavior):  # loops are not searched for it, or metadata has no meaning
        return None


def _gathered(form: Instruction, inputs: Inputs) -> Operands:
    """The matrices of one instruction, wherever they lie, as codes."""
    return gather(form, checked_inputs(form, inputs))


def _left(operands: Operands) -> Codes:
    """The logical A ``(m, k)``. Raises OperandError where several stored elements are of one column."""
    if operands.columns is None:
        return operands.a
    form, columns = operands.product, operands.columns
    if (np.diff(np.sort(columns, axis=1), axis=1) == 0).any():
        raise OperandError("metadata names a column twice")
    a = np.zeros((*operands.a.shape[:1], form.shape.k), operands.a.dtype)
    np.put_along_axis(a, columns, operands.a, axis=1)
    return a


def _scales(steps: Sequence[Operands], operand: str, axis: int) -> Codes | None:
    """The scales of all steps, one after the other along k."""
    codes = [getattr(one, operand) for one in steps]
    return None if codes[0] is None else np.concatenate(codes, axis=axis)
