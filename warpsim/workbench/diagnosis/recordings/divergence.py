"""Where two recordings of a launch part: the first instruction that differs by itself, and what follows.

An instruction whose accumulators had parted before, and nothing else of it, follows; all others differ by
themselves. Of the first, in the order of time, what it read is compared; what no instruction of the other
recording reads is searched for the mistake that makes one D of the operands of the other. Knows events; what
differs at all is recordings.py's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.fragments import codes_from
from ....observe.recording.recorder import LaunchEvent
from ...vectors.recordings import Recording
from ...vectors.sets import expected
from ..search.diagnose import Diagnosis
from ..search.tensor_search import TensorDiagnosis, diagnose_executions

_Key = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class OperandChange:
    """Registers that were read otherwise: how many words, in which lanes.

    ``known`` is which instruction of the first recording reads what the second has here, "" for none.
    """

    name: str
    words: int
    total: int
    lanes: tuple[int, ...]
    known: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Divergence:
    """The first execution that differs by itself, ``numbers`` its places in both recordings.

    ``made`` says of each D whether it is the model's of what was read. ``element`` is the first of D that
    differs, None where none does. ``diagnosis`` takes the D of one recording for that of operands, as
    ``subject`` says; None where there is nothing to look for. ``follows`` others have read nothing else than
    accumulators that had parted; ``apart`` others differ by themselves.
    """

    difference: EventDifference
    numbers: tuple[int, int]
    changes: tuple[OperandChange, ...]
    made: tuple[bool, bool]
    element: tuple[int, int] | None
    subject: str
    diagnosis: Diagnosis | TensorDiagnosis | None
    follows: int
    apart: tuple[EventDifference, ...]


def first_divergence(
    comparison: RecordingComparison, first: Recording, second: Recording, most: int = 2
) -> Divergence | None:
    """Return the first of a comparison's differences in the order of time; None where there is none.

    ``most`` mistakes at once are looked for, 0 for none.
    """
    ordered = sorted(
        comparison.differences, key=lambda difference: (difference.first.time, first.order(difference.first))
    )
    if not ordered:
        return None
    made = [
        _made(side, [difference.events[at] for difference in ordered])
        for at, side in enumerate((first, second))
    ]
    follow, apart = _parted(ordered, made)
    difference = apart[0]
    right = (made[0][id(difference.first)], made[1][id(difference.second)])
    changes = tuple(_changes(difference, first))
    explained = bool(changes) and all(change.known for change in changes if change.name != "c")
    subject, diagnosis = _diagnosed(difference, right, 0 if explained else most)
    return Divergence(
        difference=difference,
        numbers=(_place(first, difference.first), _place(second, difference.second)),
        changes=changes,
        made=right,
        element=_element(difference),
        subject=subject,
        diagnosis=diagnosis,
        follows=len(follow),
        apart=tuple(apart[1:]),
    )


def _place(recording: Recording, event: LaunchEvent) -> int:
    return next(at for at, other in enumerate(recording.events) if other is event)


def _made(recording: Recording, events: Sequence[LaunchEvent]) -> dict[int, bool]:
    """Return by event whether D is what the model makes of what was read."""
    found = dict[int, bool]()
    for vector_set in replace(recording, events=tuple(events)).sets():
        equal = (expected(vector_set.vectors, undefined="fallback") == vector_set.vectors.d).all(axis=(1, 2))
        found |= dict(zip(map(id, vector_set.events), equal.tolist(), strict=True))
    return found


def _parted(
    ordered: Sequence[EventDifference], made: Sequence[dict[int, bool]]
) -> tuple[list[EventDifference], list[EventDifference]]:
    """Return differences that only follow from accumulators, and those that do not."""
    left: dict[_Key, set[tuple[bytes, bytes]]] = {}
    follow, apart = list[EventDifference](), list[EventDifference]()
    for difference in ordered:
        known = left.setdefault((difference.first.cta, difference.first.warp), set())
        right = made[0][id(difference.first)] and made[1][id(difference.second)]
        after = difference.operands == ("c",)
        after = after and tuple(each.inputs.registers["c"].tobytes() for each in difference.events) in known
        (follow if right and after else apart).append(difference)
        known.add((difference.first.d.tobytes(), difference.second.d.tobytes()))
    return follow, apart


def _element(difference: EventDifference) -> tuple[int, int] | None:
    form = difference.first.instruction
    if form.mnemonic != difference.second.instruction.mnemonic or form.products > 1:
        return None
    x, y = (codes_from(event.d, form, "d").reshape(form.shape.m, -1) for event in difference.events)
    places = np.argwhere(x != y)
    return (int(places[0][0]), int(places[0][1])) if len(places) else None


def _changes(difference: EventDifference, first: Recording) -> Iterator[OperandChange]:
    for name in difference.operands:
        x, y = (event.inputs.registers.get(name) for event in difference.events)
        if x is None or y is None or x.shape != y.shape:
            continue
        differ = x != y
        yield OperandChange(
            name=name,
            words=int(differ.sum()),
            total=differ.size,
            lanes=tuple(np.flatnonzero(differ.any(axis=1)).tolist()),
            known=_known(difference.first, name, y, first),
        )


def _known(event: LaunchEvent, name: str, words: Any, first: Recording) -> str:
    """Return which instruction of the first recording reads these words; its own warp comes first."""
    if not words.any():
        return "zeros"
    held = ((candidate, candidate.inputs.registers.get(name)) for candidate in first.events)
    same = [candidate for candidate, own in held if own is not None and np.array_equal(own, words)]

    def distance(other: LaunchEvent) -> tuple[bool, bool, int]:
        elsewhere = (other.cta, other.warp) != (event.cta, event.warp)
        return elsewhere, other.pc != event.pc, abs(other.time - event.time)

    nearest = min(same, key=distance, default=None)
    return "" if nearest is None else nearest.where


def _diagnosed(
    difference: EventDifference, right: tuple[bool, bool], most: int
) -> tuple[str, Diagnosis | TensorDiagnosis | None]:
    """Return what of the two recordings is taken for a wrong D, and what is found.

    Nothing is where D is the same, another C accounts for it, or both are the model's on their chips.
    """
    same = difference.first.instruction.mnemonic == difference.second.instruction.mnemonic
    apart = set(difference.operands) - {"c"}
    if not most or not same or not difference.words or (difference.operands and not apart):
        return "", None
    form, inputs = difference.first.instruction, difference.first.inputs
    if difference.operands or not right[1]:
        reader = "the first" if difference.operands else "both"
        return f"the second's D against what {reader} read", diagnose_executions(
            form, inputs, difference.second.d, most=most
        )
    if not right[0]:
        return "the first's D against what both read", diagnose_executions(
            form, inputs, difference.first.d, most=most
        )
    return "", None


Key = tuple[Any, ...]
_SETTINGS = {  # by what messages call them
    "scale-d": "scale_d",
    "imm-scale": "negate",
    "imm-trans": "transposed",
    "settings": "tensor",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class EventDifference:
    """An execution in both recordings: operands that were read otherwise, and words of D that differ."""

    first: LaunchEvent
    second: LaunchEvent
    operands: tuple[str, ...]
    words: int

    @property
    def events(self) -> tuple[LaunchEvent, LaunchEvent]:
        """The execution in both."""
        return self.first, self.second

    def __str__(self) -> str:
        targets = [event.instruction.target for event in self.events]
        if not self.operands:
            chips = f", on {targets[0]} and on {targets[1]}" if targets[0] != targets[1] else ""
            why = f"from the same operands{chips}"
        else:
            why = f"which read another {', '.join(self.operands)}"
        place = self.first.where
        return f"{place}: {self.words} of {self.first.d.size} words of D differ, {why}"


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordingComparison:
    """How many executions were compared, those that differ in their order, and those of one side only."""

    compared: int
    differences: tuple[EventDifference, ...]
    only_first: tuple[LaunchEvent, ...]
    only_second: tuple[LaunchEvent, ...]

    @property
    def equal(self) -> bool:
        """Whether both have the same executions, bit for bit."""
        return not (self.differences or self.only_first or self.only_second)


def compare_recordings(first: Recording, second: Recording) -> RecordingComparison:
    """Return what differs, in the order of the first recording."""
    here, there = ({_key(event): event for event in side.events} for side in (first, second))
    both = [(event, there[key]) for key, event in here.items() if key in there]
    return RecordingComparison(
        compared=len(both),
        differences=tuple(_differences(both)),
        only_first=tuple(event for key, event in here.items() if key not in there),
        only_second=tuple(event for key, event in there.items() if key not in here),
    )


def _key(event: LaunchEvent) -> Key:
    place = event.statement.source.location(event.statement.start)
    return place.line, place.column, event.cta, event.warp, event.index


def _differences(pairs: list[tuple[LaunchEvent, LaunchEvent]]) -> Iterator[EventDifference]:
    for first, second in pairs:
        operands = tuple(_operands(first, second))
        words = first.d.size
        if first.d.shape == second.d.shape:
            words = int(np.count_nonzero(first.d != second.d))
        if words or operands:
            yield EventDifference(first=first, second=second, operands=operands, words=words)


def _operands(first: LaunchEvent, second: LaunchEvent) -> Iterator[str]:
    """Yield names of what the two read otherwise; the instruction comes first, its chip is none of that."""
    if first.instruction.mnemonic != second.instruction.mnemonic:
        yield "instruction"
    for name, words in first.inputs.registers.items():
        other = second.inputs.registers.get(name)
        if other is None or not np.array_equal(words, other):
            yield name
    yield from _tiles(first, second)
    if first.inputs.selector != second.inputs.selector:
        yield "selector"
    if first.inputs.scale_selectors != second.inputs.scale_selectors:
        yield "scale ids"


def _tiles(first: LaunchEvent, second: LaunchEvent) -> Iterator[str]:
    """Yield names of what was read otherwise besides registers: descriptors, tiles behind them, immediates
    and settings.
    """
    for name in "ab":
        word, other = (getattr(event.inputs, f"{name}_descriptor") for event in (first, second))
        if (word is None) != (other is None) or (word is not None and int(word) != int(other)):
            yield f"{name}-desc"
        elif word is not None and not np.array_equal(_tile(first, name), _tile(second, name)):
            yield name
    for name, words in _SETTINGS.items():
        if getattr(first.inputs, words) != getattr(second.inputs, words):
            yield name


def _tile(event: LaunchEvent, operand: str) -> npt.NDArray[Any]:
    codes: npt.NDArray[Any] = event.instruction.gathered_tile(operand, event.inputs)
    return codes
