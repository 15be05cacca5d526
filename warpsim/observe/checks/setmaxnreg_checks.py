"""Checks of setmaxnreg: statements that may have no effect, two with no barrier between, or in place of a
barrier.

PTX ISA 9.1, section 9.7.20.5. Does not know which warps wait for registers: that is the statement's own
business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ...machine.run.events import Observer
from ...machine.state.lanes import DivergentPath, Lanes
from .finding_catalogue import Site, report
from .findings import Findings

if TYPE_CHECKING:
    from ...machine.run.wave import Wave


class SetmaxnregChecks(Observer):
    """Reports setmaxnreg that may have no effect, and a setmaxnreg that follows another without a barrier."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.changed: dict[int, int] = {}  # warp -> where it has changed its registers since a barrier
        self.apart: set[int] = set()  # statements that others are executed instead of

    def setmaxnreg_ignored(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Report that the registers with which the warps begin are not known."""
        report(self.findings, "setmaxnreg ignored", Site(wave, path.pc, int(lanes.index[0])))

    def setmaxnreg(self, wave: Wave, path: DivergentPath, warp: int, moves: bool) -> None:
        """Check a warp's change of registers; a warning is enough where it asks for those that it has.

        Triton's warps do that when they come back from a loop, with the statement that they began with.
        """
        before = self.changed.get(warp)
        if before is not None:
            name = "setmaxnreg twice" if moves else "setmaxnreg twice without a move"
            report(self.findings, name, Site(wave, path.pc, warp * WARP, before))
        self.changed[warp] = path.pc

    def setmaxnreg_apart(self, wave: Wave, path: DivergentPath, warp: int, other: int, before: int) -> None:
        """Two warps of a warpgroup ask for the same, or give registers back, but not by one statement, as
        .aligned demands.

        Triton's roles of one or two warps do, and those of CUTLASS, which give back different numbers.
        """
        if path.pc in self.apart:
            return
        self.apart.add(path.pc)
        same = wave.code[before].statement.operands == wave.code[path.pc].statement.operands
        asks, name = "asks for the same" if same else "keeps other registers", other % wave.warps
        report(
            self.findings, "setmaxnreg apart", Site(wave, path.pc, warp * WARP, before), warp=name, asks=asks
        )

    def barrier(
        self, wave: Wave, number: int, ctas: npt.NDArray[np.int64], path: DivergentPath | None
    ) -> None:
        """Warps of some CTAs have met."""
        met = set(ctas.tolist())
        self.changed = {warp: pc for warp, pc in self.changed.items() if warp // wave.warps not in met}
