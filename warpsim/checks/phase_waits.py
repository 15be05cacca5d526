"""Waits for phases that nothing keeps from being missed: the next phase may end before a warp has looked.

A wait by parity distinguishes a phase from the next only. So a warp that waits for the end of phase n must
have looked before phase n + 1 ends, which is so where something that ends it comes after the wait: the
arrival of a warp that knows of it. Knows clocks (clocks.py) and waits; does not know statements. PTX ISA 9.1,
section 9.7.13.15.16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .clocks import Clocks, Warps


@dataclass(frozen=True)
class Wait:
    """A warp's latest wait at an mbarrier: the phases that were complete, its statement, and its time."""

    phase: int
    pc: int
    time: int


class PhaseWaits:
    """The latest wait of each warp at each mbarrier."""

    def __init__(self) -> None:
        self.waits: dict[int, dict[int, Wait]] = {}  # by mbarrier and warp

    def begin(self, offset: int) -> None:
        """Forget the waits of an mbarrier that is initialised."""
        self.waits.pop(offset, None)

    def seen(self, clocks: Clocks, offset: int, phase: int, warps: Warps, pc: int) -> None:
        """Warps have seen that a phase is complete."""
        known = self.waits.setdefault(offset, {})
        for warp, time in zip(warps.tolist(), clocks.own(warps).tolist(), strict=True):
            known[warp] = Wait(phase, pc, time)

    def overrun(
        self, offset: int, phase: int, over: npt.NDArray[np.int32], clocks: Clocks
    ) -> Iterator[tuple[int, Wait]]:
        """Yield, for a complete phase (counted from 1), the warps whose wait for the phase before is not
        ordered before its end.
        """
        for warp, wait in self.waits.get(offset, {}).items():
            if wait.phase == phase - 1 and over[clocks.column[warp]] < wait.time:
                yield warp, wait
