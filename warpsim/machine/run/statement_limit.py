"""The number of statements that a launch may execute before it ends in an error.

The text does not say whether a kernel ends: loops that change nothing are a livelock (livelock.py), all
others may execute so many statements. A statement counts once for all lanes of a wave that execute it
together. Knows counts; does not know what statements do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import Fault, OperandError

if TYPE_CHECKING:
    from .wave import Wave

OF_A_WAVE = 1_000_000_000  # where nothing is asked for: a quarter of an hour or more


def checked(most: object) -> int | None:
    """The statements that a launch is given, None for OF_A_WAVE for each wave; raises OperandError."""
    if most is None:
        return None
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
        raise OperandError(f"most_statements={most!r}: it is a positive integer, or None")
    return int(most)


class Allowance:
    """Statements that are left: of all waves together where so many are given, else of each wave."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._left = most

    def run(self, wave: Wave, turn: int) -> bool:
        """Execute at most so many statements of a wave; whether it has ended. Raises Fault for the last."""
        left = OF_A_WAVE - wave.scheduler.statements if self._left is None else self._left
        before = wave.scheduler.statements
        ended = wave.run(min(turn, left))
        spent = wave.scheduler.statements - before
        if self._left is not None:
            self._left -= spent
        if not ended and spent >= left:
            raise _endless(wave, self._most)
        return ended


def _endless(wave: Wave, most: int | None) -> Fault:
    """Who is still where, and what was executed most."""
    most_often = int(np.argmax(wave.scheduler.counts))
    often = wave.code[most_often].statement
    path = min(
        (*wave.scheduler.paths, *wave.scheduler.waiting), key=lambda one: (one.waits is not None, one.pc)
    )
    record = wave.waiting_record(path) if path.waits else wave.code[path.pc]
    place = record.statement.location()
    whose = "of CTAs that run together" if most is None else "of the launch"
    return Fault(
        f"not ended after {OF_A_WAVE if most is None else most:,} statements {whose}: "
        f"{wave.describe_lanes(path.lanes)} at line {place.line}; line {often.location().line}, "
        f"{often.mnemonic}, was executed {wave.scheduler.counts[most_often]:,} times; "
        "most_statements, or --limit, allows more",
        often.location(),
    )
