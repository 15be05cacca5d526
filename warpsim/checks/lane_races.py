"""Checks of shared memory within a warp: lanes that went different ways and touch one byte.

Only accesses of lanes that had left others of their warp behind are remembered: what lanes do side by side in
one statement is ordered enough. Lanes of a warp are ordered by bar.warp.sync; so that no alarm is false,
every statement that lanes of a warp execute together, every barrier, fence and acquire is taken to order all
of the warp. Accesses of several warps are for ``Races``. PTX ISA 9.1, section 3.1: threads of a warp that
have parted need not meet again before a statement that makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP
from ..machine.run.convergence import in_words, warp_words
from ..machine.run.events import Observer
from ..machine.state.lanes import DivergentPath, Lanes, Mask
from ..machine.state.memory_access import MemoryAccess
from .findings import Findings, LaunchFinding

if TYPE_CHECKING:
    from ..machine.run.wave import Wave

_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_ORDERING = frozenset({"acquire", "acq_rel", "sc"})
Cells = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]


class _Touched:
    """Of each byte of shared memory the last access by lanes that had parted: its number, and the lane."""

    def __init__(self, verb: str) -> None:
        self.number: Numbers = np.zeros(0, np.int32)
        self.lane: Numbers = np.zeros(0, np.int32)
        self.verb = verb

    def prepare(self, size: int) -> None:
        """Room for so many bytes, made when there is something to put there."""
        if not self.number.size:
            self.number, self.lane = np.zeros((2, size), np.int32)


class LaneRaces(Observer):
    """Tells of lanes of a warp that touch one byte, one of them writing, on ways that have parted."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.accesses: list[tuple[int, Mask]] = []  # statement, and who stood there; numbers begin with 1
        self.before: Numbers = np.zeros(0, np.int32)  # of each warp: accesses up to it are ordered
        self.latest: Numbers = np.zeros(0, np.int32)  # and the latest of its own
        self.wrote = _Touched("written")
        self.read = _Touched("read")

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Touched before by a lane that went another way; not where the byte stays what it is."""
        if access.memory is not wave.shared or (parted := self._parted(wave, access.path)) is None:
            return
        new = access.stored
        differs = None if new is None else access.memory[access.cells] != new
        for touched in (self.wrote, self.read):
            self._check(wave, access, touched, "writes", differs)
        if parted:
            self._note(wave, access, self.wrote)

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Written before by a lane that went another way."""
        self.atomic(wave, access)
        if access.memory is not wave.shared or (parted := self._parted(wave, access.path)) is None:
            return
        self._check(wave, access, self.wrote, "reads", None)
        if parted:
            self._note(wave, access, self.read)

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """No race; one that acquires orders what comes after it."""
        if not _ORDERING.isdisjoint(wave.code[access.path.pc].statement.modifiers):
            self.ordered(wave, access.lanes)

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """With a flag that the other side sets, it orders what comes after it."""
        self.ordered(wave, lanes)

    def barrier(
        self, wave: Wave, number: int, ctas: npt.NDArray[np.int64], path: DivergentPath | None
    ) -> None:
        """What happened before in these CTAs is ordered before what follows."""
        if self.accesses:
            warps = np.isin(wave.cta[::WARP], ctas)
            self.before[warps] = len(self.accesses)

    def ordered(self, wave: Wave, lanes: Lanes) -> None:
        """Lanes have met others of their warps."""
        if self.accesses:
            self.before[warp_words(lanes.mask) != 0] = len(self.accesses)

    def met(self, wave: Wave, lanes: Lanes) -> None:
        """Lanes execute a statement together with others of their warps."""
        self.ordered(wave, lanes)

    def _parted(self, wave: Wave, path: DivergentPath) -> bool | None:
        """Whether lanes of the path have left others of their warps; None where neither they have, nor
        anybody of their warps before with nothing in between.
        """
        if not self.before.size:
            self.before, self.latest = np.zeros((2, wave.lanes // WARP), np.int32)
        if path.lanes.count == wave.alive:
            return False if (self.latest > self.before).any() else None
        here = warp_words(path.lanes.mask)
        if ((here != 0) & (here != warp_words(wave.alive_mask))).any():
            return True
        return False if (self.latest > self.before)[here != 0].any() else None

    def _note(self, wave: Wave, access: MemoryAccess, touched: _Touched) -> None:
        cells, mine = access.cells, access.lane_of[:, None]
        touched.prepare(wave.shared.size)
        self.accesses.append((access.path.pc, access.path.lanes.mask))
        touched.number[cells] = len(self.accesses)
        touched.lane[cells] = mine
        self.latest[mine // WARP] = len(self.accesses)

    def _check(
        self,
        wave: Wave,
        access: MemoryAccess,
        touched: _Touched,
        verb: str,
        differs: npt.NDArray[np.bool_] | None,
    ) -> None:
        if not touched.number.size:
            return
        cells, mine = access.cells, access.lane_of[:, None]
        numbers, others = touched.number[cells], touched.lane[cells]
        clash = (numbers > self.before[others // WARP]) & (others // WARP == mine // WARP) & (others != mine)
        if differs is not None:
            clash &= differs
        for number in np.unique(numbers[clash]).tolist():
            pc, there = self.accesses[number - 1]
            found = clash & (numbers == number) & ~there[mine]
            if found.any() and not self._strong(wave, access.path.pc, pc):
                self._found(wave, access, found, others, pc, (verb, touched.verb))

    @staticmethod
    def _strong(wave: Wave, *places: int) -> bool:
        """Whether all these accesses are strong: then they may go on at once."""
        return all(not _STRONG.isdisjoint(wave.code[pc].statement.modifiers) for pc in places)

    def _found(
        self,
        wave: Wave,
        access: MemoryAccess,
        found: npt.NDArray[np.bool_],
        others: Numbers,
        pc: int,
        verbs: tuple[str, str],
    ) -> None:
        row, column = (int(one) for one in np.argwhere(found)[0])
        record, other = wave.code[access.path.pc], wave.code[pc]
        lane = int(others[row, column])
        address = int(access.cells[row, column]) - int(wave.shared_base[lane])
        here = in_words(int(warp_words(access.path.lanes.mask)[lane // WARP]))
        line, place = other.statement.location().line, wave.describe_lane(lane).rpartition(",")[0]
        message = (
            f"race: {record.statement.mnemonic} {verbs[0]} byte {address:#x} of shared memory, which lane "
            f"{lane % WARP} of the same warp has {verbs[1]} at line {line} on a way of its own: no "
            f"bar.warp.sync has come between [{place}, lanes {here}]"
        )
        finding = LaunchFinding(
            kind="race",
            severity="error",
            message=message,
            location=record.statement.location(),
            other=other.statement.location(),
        )
        self.findings.add(("race", access.path.pc, pc, verbs), finding)
