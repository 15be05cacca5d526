"""Waits for phases that nothing keeps from being missed: the next phase may end before a warp has looked.

A wait by parity tells one phase from the next only. So whoever waits for the end of phase n must have looked
before phase n + 1 ends, which is so where something that ends it comes after the wait: the arrival of a warp
that knows of it. A warp of a warpgroup counts as having looked when the warpgroup has waited for its wgmma.
Knows clocks (clocks.py) and waits; does not know statements. PTX ISA 9.1, section 9.7.13.15.16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .clocks import Clock, Clocks, Warps


@dataclass(eq=False)
class Wait:
    """A warp's latest wait at an mbarrier: the phases that were over, its statement, and at which clocks of
    which warps it is known to have happened.
    """

    phase: int
    pc: int
    known_by: dict[int, int] = field(default_factory=dict)  # by warp


class PhaseWaits:
    """The latest wait of each warp at each mbarrier."""

    def __init__(self) -> None:
        self.waits: dict[int, dict[int, Wait]] = {}  # by mbarrier and warp
        self.open: dict[int, list[Wait]] = {}  # by warp: since its warpgroup has waited for a wgmma

    def begin(self, offset: int) -> None:
        """An mbarrier is initialised."""
        self.waits.pop(offset, None)

    def seen(self, clocks: Clocks, offset: int, warps: Warps, pc: int) -> None:
        """Warps have seen that the latest phase is over."""
        phase = clocks.barrier(offset).phases
        for warp in warps.tolist():
            wait = Wait(phase, pc, {warp: int(clocks.known[warp, warp])})
            self.waits.setdefault(offset, {})[warp] = wait
            self.open.setdefault(warp, []).append(wait)

    def multiplied(self, clocks: Clocks, group: Warps) -> None:
        """A warpgroup has waited for its wgmma, which all of its warps have issued."""
        now = {warp: int(clocks.known[warp, warp]) for warp in group.tolist()}
        for warp in now:
            for wait in self.open.pop(warp, ()):
                wait.known_by = now | wait.known_by

    def overrun(self, offset: int, phase: int, over: Clock) -> Iterator[tuple[int, Wait]]:
        """A phase, counted from 1, has ended with this knowledge: who has waited for the one before, unknown
        to all that ended it.
        """
        for warp, wait in self.waits.get(offset, {}).items():
            if wait.phase == phase - 1 and not any(
                over[one] >= clock for one, clock in wait.known_by.items()
            ):
                yield warp, wait
