"""Races in shared memory: warps of a CTA that touch one byte between two barriers, one of them writing.

Atomics are in none, nor are strong accesses (volatile, relaxed, acquire, release) among themselves. What
named barriers of some warps, phases of an mbarrier, fences and acquires order is taken for ordered between
all, so that no alarm is false. What CTAs of a cluster do in each other's memory is cluster_memory.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP
from ..machine.load.entries import Entry
from ..machine.run.clusters import far
from ..machine.run.events import Observer, helper
from ..machine.state.lanes import DivergentPath, Lanes, Mask
from ..machine.state.memory_access import MemoryAccess
from ..machine.state.slots import Slot
from .findings import Findings, LaunchFinding, Severity
from .memory_checks import Shadow

if TYPE_CHECKING:
    from ..machine.load.entries import Record
    from ..machine.run.wave import Wave

SEVERAL = 255  # warps that have read a byte
WARPGROUPS = 64  # plus its number in the CTA: a warpgroup whose wgmma has read a byte


def _no_statements(findings: Findings) -> dict[Entry, Mask]:
    return {}


_STRONG_STATEMENTS = Slot(_no_statements)  # by kernel: statements with strong accesses
_MOST = 256  # reads that wait to be noted
_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_ACQUIRES = frozenset({"acquire", "acq_rel", "sc"})
_ATOMIC = frozenset({"atom", "red"})
Numbers = npt.NDArray[np.int64]
Units = npt.NDArray[Any]  # up to 8 bytes of a shadow as one integer


def _is_strong(record: Record) -> bool:
    """Whether a statement's accesses are strong: they may meet others that are."""
    statement = record.statement
    return statement.opcode in _ATOMIC or not _STRONG.isdisjoint(statement.modifiers)


@dataclass(frozen=True)
class _Later:
    """Reads by warpgroups in some CTAs that nobody has asked about: ``note`` puts them in a shadow."""

    groups: Numbers
    ctas: Numbers
    note: Callable[[Numbers], None]

    def without(self, ctas: Mask) -> _Later:
        """Those of other CTAs."""
        left = ~ctas[self.ctas]
        return _Later(self.groups[left], self.ctas[left], self.note)


class Races(Observer):
    """Tells of warps of a CTA that touch one byte of shared memory without a barrier in between.

    ``writer`` and ``reader`` hold warp + 1 of who wrote and read each byte since the last barrier, 0 for
    nobody, 64 and more for a warpgroup, 255 for several readers; ``wrote_at`` and ``read_at`` the statement.
    ``marked`` and ``stored`` (CTAs,) say where anything may be there, and anything written.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.writer: Shadow = np.zeros(0, np.uint8)
        self.reader: Shadow = np.zeros(0, np.uint8)
        self.wrote_at: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.read_at: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.strong: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)  # by statement
        self.marked: Mask = np.zeros(0, np.bool_)
        self.stored: Mask = np.zeros(0, np.bool_)
        self.later: list[_Later] = []
        self.told: set[tuple[int, str]] = set()  # earlier accesses, "read" or "written", of which it has told
        self.landing = False

    @helper
    def prepare(self, wave: Wave) -> None:
        """Shadows of the size of the wave's shared memory."""
        if self.writer.size != wave.shared.size:
            self.writer, self.reader = (np.zeros(wave.shared.size, np.uint8) for _ in range(2))
            self.wrote_at, self.read_at = (np.zeros(wave.shared.size, np.int32) for _ in range(2))
            self.strong = self._strong_of(wave)
            self.marked, self.stored = np.zeros((2, len(wave.ctas)), np.bool_)

    def _strong_of(self, wave: Wave) -> Mask:
        """``(statements,)``: which of them have strong accesses; found once in a launch."""
        known = _STRONG_STATEMENTS.of(self.findings)
        if wave.entry not in known:
            strong = np.fromiter((_is_strong(one) for one in wave.code), np.bool_, len(wave.code))
            known[wave.entry] = strong
        return known[wave.entry]

    # --- accesses ---

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Written or read by another warp before: a race, but for warps that all write the same."""
        if access.memory is not wave.shared or wave.warps == 1 or far(wave, access.lanes, access.offsets):
            return
        units, own = self._looked_at(wave, access)
        self.stored |= _ctas_of(wave, access.lanes)
        writer, reader = (shadow.view(own.dtype) for shadow in (self.writer, self.reader))
        if not all(_nobody_but(own, seen[units]) for seen in (writer, reader)):
            self._check_store(wave, access)
        writer[units] = own
        if (writer[units] != own).any():
            self._check_together(wave, access)
        self.wrote_at.reshape(-1, own.itemsize)[units] = access.path.pc

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Written by another warp before: a race."""
        if access.memory is not wave.shared or wave.warps == 1 or far(wave, access.lanes, access.offsets):
            return
        self._acquired(wave, access.path, access.lanes)
        units, own = self._looked_at(wave, access)
        writer, reader = (shadow.view(own.dtype) for shadow in (self.writer, self.reader))
        several = own.dtype.type(np.iinfo(own.dtype).max)
        if not _nobody_but(own, writer[units]):
            self._check_load(wave, access)
        read = reader[units]
        if ((read != 0) & (read != own) & (read != several)).any():
            self._note_bytes(wave, access)
        else:
            reader[units] = np.where(read == several, several, own)
            reader[units[reader[units] != own]] = several  # read by another warp in this very statement, too
        self.read_at.reshape(-1, own.itemsize)[units] = access.path.pc

    def _looked_at(self, wave: Wave, access: MemoryAccess) -> tuple[Numbers, Units]:
        """``(words, units)``, ``(words, 1)``: units of a shadow, and those of the warps."""
        self.prepare(wave)
        self._note_all()
        self.marked |= _ctas_of(wave, access.lanes)
        unit = min(access.size, 8)
        ones = np.array((1 << 8 * unit) // 255, f"u{unit}")
        units = access.offsets[:, None] // unit + np.arange(access.size // unit)
        return units, _warps(wave, access).astype(ones.dtype) * ones

    def _check_store(self, wave: Wave, access: MemoryAccess) -> None:
        """Tell of bytes that other warps have touched before."""
        cells, mine = access.cells, _warps(wave, access)
        new = access.stored
        other = True if new is None else access.memory[cells] != new
        for kind, shadow, at, differs in (
            ("written", self.writer, self.wrote_at, other),
            ("read", self.reader, self.read_at, True),
        ):
            seen = shadow[cells]
            clash = (seen != 0) & (seen != mine) & differs & self._weak(access.path, at[cells])
            if clash.any():
                own = clash & (seen == WARPGROUPS + (mine - 1) // 4)  # of the warp's own warpgroup
                severity: Severity = "error" if (clash & ~own).any() else "warning"
                self._found(wave, access, clash, kind, at, "writes", severity)

    def _check_together(self, wave: Wave, access: MemoryAccess) -> None:
        """Tell of bytes to which warps write different values by one statement."""
        cells, mine = access.cells, _warps(wave, access)
        clash = (self.writer[cells] != mine) & ~self.strong[access.path.pc]
        if clash.any() and self._parted(cells, access.stored):
            self.wrote_at[cells] = access.path.pc
            self._found(wave, access, clash, "written", self.wrote_at, "writes")

    def _check_load(self, wave: Wave, access: MemoryAccess) -> None:
        """Tell of bytes that other warps have written before."""
        cells, mine = access.cells, _warps(wave, access)
        wrote = self.writer[cells]
        clash = (wrote != 0) & (wrote != mine) & self._weak(access.path, self.wrote_at[cells])
        if clash.any():
            self._found(wave, access, clash, "written", self.wrote_at, "reads")

    def _note_bytes(self, wave: Wave, access: MemoryAccess) -> None:
        """Note who reads, byte by byte."""
        cells, mine = access.cells, _warps(wave, access)
        read = self.reader[cells]
        self.reader[cells] = np.where((read == 0) | (read == mine), mine, SEVERAL)
        self.reader[cells[self.reader[cells] != mine]] = SEVERAL

    def _parted(self, cells: npt.NDArray[np.int64], new: Shadow | None) -> bool:
        """Whether lanes of one statement write different values to one byte."""
        if new is None:
            return True
        left = np.zeros(self.writer.size, np.uint8)
        left[cells] = new
        return bool((left[cells] != new).any())

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """An asynchronous copy may write at any time from now on."""
        self.store(wave, access)

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Until now; an access that the start of a copy was in a race with is not told of again."""
        self.landing = True
        self.store(wave, access)
        self.landing = False

    def _weak(self, path: DivergentPath, earlier: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Whether this access or an earlier one is weak: only strong ones go together."""
        weak: npt.NDArray[np.bool_] = ~(self.strong[path.pc] & self.strong[earlier])
        return weak

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """As a strong store, which meets other atomics; one that acquires orders what comes after it."""
        self._acquired(wave, access.path, access.lanes)
        self.store(wave, access)

    def _acquired(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        if not _ACQUIRES.isdisjoint(wave.code[path.pc].statement.modifiers):
            self.ordered(wave, lanes)

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """With a flag that the other side sets, it orders what comes after it."""
        if "proxy" not in words:
            self.ordered(wave, lanes)

    def ordered(self, wave: Wave, lanes: Lanes) -> None:
        """Lanes have synchronised with others of their CTAs, by the phase of an mbarrier for one."""
        self.barrier(wave, -1, np.flatnonzero(_ctas_of(wave, lanes)), None)

    def barrier(self, wave: Wave, number: int, ctas: Numbers, path: DivergentPath | None) -> None:
        """What happened before in these CTAs is ordered before what follows."""
        if self.writer.size != wave.shared.size:
            return
        chosen = np.zeros(len(wave.ctas), np.bool_)
        chosen[ctas] = True
        self.later = [left for one in self.later if (left := one.without(chosen)).groups.size]
        for cta in np.flatnonzero(chosen & self.marked).tolist():
            part = slice(cta * wave.shared_stride, (cta + 1) * wave.shared_stride)
            self.writer[part] = 0
            self.reader[part] = 0
        self.marked &= ~chosen
        self.stored &= ~chosen

    # --- reads of tiles ---

    @helper
    def note_later(self, wave: Wave, groups: Numbers, ctas: Numbers, note: Callable[[Numbers], None]) -> None:
        """Warpgroups have read something: ``note`` is called with them before anybody looks, if ever."""
        self.prepare(wave)
        self.later.append(_Later(groups, ctas, note))
        if len(self.later) > _MOST:
            self._note_all()

    def _note_all(self) -> None:
        for one in self.later:
            one.note(one.groups)
            self.marked[one.ctas] = True
        self.later.clear()

    # --- what is found ---

    def _found(
        self,
        wave: Wave,
        access: MemoryAccess,
        clash: npt.NDArray[np.bool_],
        before: str,
        at: npt.NDArray[np.int32],
        now: str,
        severity: Severity = "error",
    ) -> None:
        if self.landing:
            known = [pc for pc, how in self.told if how == before]
            clash = clash & ~np.isin(at[access.cells], known)
            if not clash.any():
                return
        row, column = (int(one) for one in np.argwhere(clash)[0])
        cell = int(access.cells[row, column])
        self.told.add((int(at[cell]), before))
        lane = int(access.lane_of[row])
        record, other = wave.code[access.path.pc], wave.code[int(at[cell])]
        address = cell - int(wave.shared_base[lane])
        message = (
            f"race: {record.statement.mnemonic} {now} byte {address:#x} of shared memory, "
            f"which another warp has {before} at line {other.statement.location().line} "
            f"without a barrier in between [{wave.describe_lane(lane)}]"
        )
        finding = LaunchFinding(
            kind="race",
            severity=severity,
            message=message,
            location=record.statement.location(),
            other=other.statement.location(),
        )
        self.findings.add(("race", access.path.pc, int(at[cell]), before), finding)


def _warps(wave: Wave, access: MemoryAccess) -> npt.NDArray[np.uint8]:
    """``(words, 1)``: warp + 1 of the lane of each word."""
    warps: npt.NDArray[np.uint8] = (wave.thread[access.lane_of] // WARP + 1).astype(np.uint8)[:, None]
    return warps


def _nobody_but(own: Units, seen: Units) -> bool:
    """Whether units are empty or the warps' own."""
    return bool(((seen == 0) | (seen == own)).all())


def _ctas_of(wave: Wave, lanes: Lanes) -> Mask:
    """``(CTAs,)``: those of some lanes."""
    return np.asarray(lanes.mask.reshape(len(wave.ctas), -1).any(axis=1))
