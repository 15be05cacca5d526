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
from .findings import Findings, LaunchFinding, Severity

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
        what = "may have no effect: it needs .maxnreg, or .minnctapersm with .maxntid or .reqntid"
        self._report(wave, path, int(lanes.index[0]), "warning", what)

    def setmaxnreg(self, wave: Wave, path: DivergentPath, warp: int, moves: bool) -> None:
        """Check a warp's change of registers; a warning is enough where it asks for those that it has.

        Triton's warps do that when they come back from a loop, with the statement that they began with.
        """
        before = self.changed.get(warp)
        if before is not None:
            line, here = (wave.code[pc].statement.location().line for pc in (before, path.pc))
            what = (
                f"follows that of line {line} with no barrier between, at which the warps of the warpgroup "
                f"meet: put bar.sync before line {here}"
            )
            if not moves:
                what += "; no registers move, as the warp has so many"
            self._report(wave, path, warp * WARP, "error" if moves else "warning", what, before)
        self.changed[warp] = path.pc

    def setmaxnreg_apart(self, wave: Wave, path: DivergentPath, warp: int, other: int, before: int) -> None:
        """Two warps of a warpgroup ask for the same, or give registers back, but not by one statement, as
        .aligned demands.

        Triton's roles of one or two warps do, and those of CUTLASS, which give back different numbers.
        """
        if path.pc in self.apart:
            return
        self.apart.add(path.pc)
        line = wave.code[before].statement.location().line
        same = wave.code[before].statement.operands == wave.code[path.pc].statement.operands
        what = (
            f"is executed while warp {other % wave.warps} of the warpgroup has executed that of line {line}, "
            f"which {'asks for the same' if same else 'keeps other registers'}: all warps of a warpgroup "
            "execute one statement"
        )
        self._report(wave, path, warp * WARP, "warning", what, before)

    def barrier(
        self, wave: Wave, number: int, ctas: npt.NDArray[np.int64], path: DivergentPath | None
    ) -> None:
        """Warps of some CTAs have met."""
        met = set(ctas.tolist())
        self.changed = {warp: pc for warp, pc in self.changed.items() if warp // wave.warps not in met}

    def _report(
        self,
        wave: Wave,
        path: DivergentPath,
        lane: int,
        severity: Severity,
        what: str,
        before: int | None = None,
    ) -> None:
        statement = wave.code[path.pc].statement
        finding = LaunchFinding(
            kind="registers",
            severity=severity,
            message=f"{statement.mnemonic} {what} [{wave.describe_lane(lane)}]",
            location=statement.location(),
            legal=before is None,  # what is wrong is wrong beside another statement
            other=None if before is None else wave.code[before].statement.location(),
        )
        self.findings.add(("registers", path.pc, before), finding)
