"""All matrix instructions of a recording at a glance: a cell each, by line, warp and step, with what is odd.

A page has the matrices of a bounded number of instructions: the first and last of each warp and line, some
that a mark is on, then others spread evenly. Knows recordings and words; does not know how cells are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.formats import Format
from ...observe.recording.recorder import LaunchEvent
from ...workbench.vectors.recordings import Recording
from .arrays import Pool

Document = dict[str, Any]

MOST_EVENTS = 1 << 16  # of an overview
MOST_SHOWN = 512  # whose matrices a page has,
SHOWN_BYTES = 6 << 20  # and as many words
FEW = 32  # are seen without an overview

MARKS = (  # name, and what it says of an instruction
    ("origins", "elements of an operand do not come from where they belong"),
    ("special", "D has NaN or infinity"),
    ("zero", "A or B is zero in every lane"),
    ("repeated", "A and B are those of the step before"),
)


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The marks of each event of a recording, a bit each in the order of MARKS, and which a page has."""

    recording: Recording
    marks: Sequence[int]
    shown: Sequence[int]

    def detailed(self) -> Recording:
        """Return the recording of the instructions whose matrices the page has."""
        return replace(self.recording, events=tuple(self.recording.events[at] for at in self.shown))

    def document(self, pool: Pool) -> Document | None:
        """Return rows, and arrays of a number for each cell; None where the list says as much."""
        events = self.recording.events
        if len(events) <= FEW and not any(self.marks):
            return None
        rows = sorted({_row(self.recording, event) for event in events})
        numbers = {row: at for at, row in enumerate(rows)}
        places = np.zeros(len(events), np.uint32)
        places[list(self.shown)] = np.arange(1, len(self.shown) + 1)
        named = {_row(self.recording, event): event for event in events}
        counts = Counter(bit for value in self.marks for bit in range(len(MARKS)) if value >> bit & 1)
        return {
            "path": self.recording.path,
            "rows": [_row_document(named[row]) for row in rows],
            "steps": max(event.index for event in events) + 1,
            "count": len(events),
            "row": pool.add_narrow(np.array([numbers[_row(self.recording, event)] for event in events])),
            "step": pool.add_narrow(np.array([event.index for event in events])),
            "marked": pool.add_narrow(np.array(self.marks)),
            "place": pool.add_narrow(places),  # 0: the page does not have it; otherwise its number from 1 on
            "marks": [
                {"name": name, "text": text, "bit": bit, "count": counts[bit]}
                for bit, (name, text) in enumerate(MARKS)
                if counts[bit]
            ],
        }


def overview_of(recording: Recording) -> Overview:
    """Return the overview of a recording; raises OperandError for one of too many events."""
    count = len(recording.events)
    if count > MOST_EVENTS:
        raise OperandError(
            f"the recording has {count:,} matrix instructions, but a page shows {MOST_EVENTS:,}: "
            "select fewer, by cta=, warp=, line= or step="
        )
    marks = _marks(recording)
    return Overview(recording=recording, marks=marks, shown=_chosen(recording.events, marks))


def _row(recording: Recording, event: LaunchEvent) -> tuple[int, int, int]:
    cta, _, warp = recording.order(event)
    return event.line, cta, warp


def _row_document(event: LaunchEvent) -> Document:
    return {
        "line": event.line,
        "source": None if event.source is None else str(event.location.source),
        "cta": list(event.cta),
        "warp": event.warp,
        "what": event.instruction.mnemonic,
    }


# --- which matrices a page has ----------------------------------------------------------------------


def _chosen(events: Sequence[LaunchEvent], marks: Sequence[int]) -> list[int]:
    """Return the numbers of the events whose matrices the page has, in their order."""
    if not events:
        return []
    most = min(MOST_SHOWN, len(events), max(1, SHOWN_BYTES // max(map(_size, events))))
    if most == len(events):
        return list(range(most))
    chosen = set(spread(_ends(events), most // 4))
    chosen |= set(spread([at for at, value in enumerate(marks) if value and at not in chosen], most // 4))
    others = [at for at in range(len(events)) if at not in chosen]
    return sorted(chosen | set(spread(others, most - len(chosen))))


def _ends(events: Sequence[LaunchEvent]) -> list[int]:
    """Return the numbers of the first and the last execution of each statement by each warp."""
    first, last = dict[tuple[Any, ...], int](), dict[tuple[Any, ...], int]()
    for at, event in enumerate(events):
        first.setdefault((event.cta, event.warp, event.pc), at)
        last[event.cta, event.warp, event.pc] = at
    return sorted({*first.values(), *last.values()})


def spread(numbers: Sequence[int], count: int) -> list[int]:
    """Return at most so many of the numbers, the first and the last among them."""
    if len(numbers) <= count:
        return list(numbers)
    if count < 1:
        return []
    return [numbers[at] for at in np.linspace(0, len(numbers) - 1, count).astype(int)]


def _size(event: LaunchEvent) -> int:
    inputs = event.inputs
    tiles = 0 if inputs.shared is None else min(inputs.shared.nbytes, 1 << 15)
    return event.d.nbytes + sum(words.nbytes for words in inputs.registers.values()) + tiles


# --- marks ------------------------------------------------------------------------------------------


def _marks(recording: Recording) -> list[int]:
    wrong = {(note.line, note.where) for note in recording.packing or ()}
    before: dict[tuple[Any, ...], LaunchEvent] = {}
    found = []
    for event in recording.events:
        own = event.cta, event.warp, event.pc
        last = before.get(own)
        facts = (
            bool({(event.line, event.place), (event.line, event.where)} & wrong),
            _has_special(event.d, event.instruction.d),
            any(not words.any() for name, words in event.inputs.registers.items() if name in ("a", "b")),
            last is not None and _same_operands(event, last),
        )
        found.append(sum(1 << bit for bit, fact in enumerate(facts) if fact))
        before[own] = event
    return found


def _has_special(words: npt.NDArray[Any], element: Format) -> bool:
    """Return whether a word of D holds an element whose exponent field has every bit set."""
    if not element.is_float or element.bits < 16:
        return False
    ones = ((1 << element.exponent_bits) - 1) << element.fraction_bits
    return any(
        bool(((words >> low & ones) == ones).any()) for low in range(0, 8 * words.itemsize, element.bits)
    )


def _same_operands(event: LaunchEvent, last: LaunchEvent) -> bool:
    """Return whether A and B have the words, or the descriptors and the memory, that they had before."""
    own, other = event.inputs, last.inputs
    names = [name for name in ("a", "b", "e") if name in own.registers]
    if names != [name for name in ("a", "b", "e") if name in other.registers]:
        return False
    if not all(np.array_equal(own.registers[name], other.registers[name]) for name in names):
        return False
    if (own.a_descriptor, own.b_descriptor) != (other.a_descriptor, other.b_descriptor):
        return False
    if own.shared is None or other.shared is None:
        return own.shared is other.shared
    return own.shared is other.shared or np.array_equal(own.shared, other.shared)
