"""What follows values through a wave, from where they begin to be open, as those of unwritten bytes are.

A wave has one follower at most, which observes its memory accesses, too. Knows when it is called; does not
know what becomes of values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...isa.instruction import Instruction
from ..state.lanes import Frame, Lanes, Mask
from ..state.memory_access import MemoryAccess
from .events import Observer, helper
from .wave import Wave


class Follower(Observer):
    """Base of followers: a method for each thing that happens, which does nothing here."""

    due: bool = False  # whether statements are followed: some value is open

    @helper
    def executed(self, wave: Wave, frame: Frame, lanes: Lanes, first: int, past: int) -> None:
        """Follow statements from ``first`` to before ``past``, that lanes have executed, guards apart."""

    @helper
    def unwritten(self, wave: Wave, access: MemoryAccess, missing: Mask) -> None:
        """Handle a load of which some words ``(words,)`` have bytes that were never written."""

    @helper
    def unwritten_elsewhere(self, wave: Wave) -> None:
        """Handle another operation that reads bytes that were never written."""

    def undefined_rows(
        self, places: Sequence[int], form: Instruction, warps: npt.NDArray[np.intp], rows: Mask
    ) -> None:
        """Handle rows of D that come of undefined metadata: ``rows (statements, warps, m)``, before D is
        written."""
