"""Two recordings of launches compared: which matrix instructions read or computed something else.

Executions are the same where line, column, CTA, warp and number are. Knows words; does not know why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....observe.recording.recorder import LaunchEvent
from ...vectors.recordings import Recording

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

    def __str__(self) -> str:
        targets = [side.instruction.target for side in (self.first, self.second)]
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
    """Return the codes behind the descriptor of an operand."""
    codes: npt.NDArray[Any] = event.instruction.gathered_tile(operand, event.inputs)
    return codes
