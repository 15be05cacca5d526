"""What a trace's checks expected of the D of each instruction.

A check compares registers by name with what they hold then; here every word that it compared is traced
back to the instruction that had written it last. Checks whose words cannot be traced back are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...machine.bind.register_arrays import converted, register_names, split
from ...observe.recording.matrix_events import Event
from ...workbench.traces.checks import Check
from ...workbench.traces.reading import Load
from ...workbench.traces.running import Run


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One register of an instruction's D as a check expected it, in all lanes."""

    check: int
    event: int
    register: int
    words: npt.NDArray[Any]


def expectations(run: Run) -> list[Expectation]:
    """Return every register of D that a check compared, in the order of the checks."""
    loads = sorted((start, load) for start, load in run.trace.loads.items() if load.expected)
    found: list[Expectation] = []
    for number, (check, (start, load)) in enumerate(zip(run.checks, loads, strict=True)):
        traced = [] if load.shared else list(_traced(run, number, start, load))
        if _explains(run, check, traced):
            found += traced
    return found


def _traced(run: Run, number: int, start: int, load: Load) -> Iterator[Expectation]:
    names = register_names(load.registers)
    for name, part in zip(names, split(load.registers, load.words, run.machine.lanes), strict=True):
        writers = [at for at, event in enumerate(run.events) if _writes(event, name, start)]
        if writers:
            event = run.events[writers[-1]]
            words = np.broadcast_to(converted(name, part, event.d.dtype), run.machine.lanes)
            yield Expectation(
                check=number, event=writers[-1], register=event.bound.d.index(name), words=words
            )


def _writes(event: Event, name: str, before: int) -> bool:
    """Return whether an instruction above that place writes the register; statements run in text order."""
    return event.statement.start < before and name in event.bound.d


def _explains(run: Run, check: Check, traced: list[Expectation]) -> bool:
    """Return whether the traced words are those compared: as many of them, and as many that differ."""
    different = sum(int((run.events[item.event].d[:, item.register] != item.words).sum()) for item in traced)
    return len(traced) * run.machine.lanes == check.compared and different == check.different
