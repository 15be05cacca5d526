"""Checks of memories: bytes that nobody wrote or that are still on their way, and races in shared memory.

A shadow has one byte for each byte of memory, so that an access to the one is an access to the other. Warps
that touch one byte of shared memory between two barriers, one of them writing, are in a race; atomics are
not, nor strong accesses (volatile, relaxed, acquire, release) among themselves. What named barriers of some
warps, phases of an mbarrier, fences and acquires order is taken for ordered between all, so that no alarm is
false. Of global memory it knows what nobody wrote, no more. What CTAs of a cluster do in each other's memory
is cluster_memory.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..asynchrony import Pending
from ..clusters import far, in_shared
from ..lanes import Front, Lanes, Values
from ..spaces import DEVICE_BASE, Bytes, Offsets
from .findings import Findings, LaunchFinding, Severity

if TYPE_CHECKING:
    from ..program import Record
    from ..wave import Wave

_WARP = 32
_SEVERAL = 255  # warps that have read a byte
WARPGROUPS = 64  # plus its number in the CTA: a warpgroup whose wgmma has read a byte
_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
_ACQUIRES = frozenset({"acquire", "acq_rel", "sc"})
_ATOMIC = frozenset({"atom", "red"})
Shadow = npt.NDArray[np.uint8]


def _is_strong(record: Record) -> bool:
    """Whether a statement's accesses are strong: they may meet others that are."""
    statement = record.statement
    return statement.opcode in _ATOMIC or not _STRONG.isdisjoint(statement.modifiers)


def _cells(offsets: Offsets, size: int) -> npt.NDArray[np.int64]:
    """``(lanes, size)``: the bytes of each lane's word."""
    cells: npt.NDArray[np.int64] = offsets[:, None] + np.arange(size)
    return cells


class UninitialisedReads:
    """Tells of bytes of shared and local memory that are read before anybody wrote them, and of registers."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.written: dict[int, Shadow] = {}

    def shadow(self, wave: Wave, memory: Bytes) -> Shadow | None:
        """The shadow of a memory of the wave; device memory and parameters have none."""
        if memory is not wave.shared and memory is not wave.local:
            return None
        known = self.written.get(memory is wave.shared)
        if known is None or known.size < memory.size:
            grown = np.zeros(memory.size, np.uint8)
            if known is not None:  # local memory has grown: a lane's bytes are no longer where they were
                grown[:] = 1
            known = self.written[memory is wave.shared] = grown
        return known

    def store(
        self,
        wave: Wave,
        front: Front,
        lanes: Lanes,
        memory: Bytes,
        offsets: Offsets,
        size: int,
        words: Values | None = None,
    ) -> None:
        """The bytes hold something from now on."""
        shadow = self.shadow(wave, memory)
        if memory is wave.memory.data and wave.memory.fresh is not None:
            wave.memory.fresh[_cells(offsets, size)] = 0
        if shadow is not None:
            unit = min(size, 8)
            view = shadow.view(f"u{unit}")
            for place in range(0, size, unit):
                view[(offsets + place) // unit] = (1 << 8 * unit) // 255

    landed = store

    def completed(self, wave: Wave, pending: Pending) -> None:
        """What an operation has written holds something."""
        for stretches in pending.writes:
            outside = stretches.space == "global"
            shadow = wave.memory.fresh if outside else self.shadow(wave, wave.shared)
            if shadow is not None:
                for first, past in stretches.ranges.tolist():
                    shadow[first:past] = 0 if outside else 1

    def fetched(self, wave: Wave, pending: Pending) -> None:
        """Bytes that nobody wrote are read by an operation."""
        for stretches in pending.reads:
            outside = stretches.space == "global"
            shadow = wave.memory.fresh if outside else self.shadow(wave, wave.shared)
            if shadow is not None:
                for first, past in stretches.ranges.tolist():
                    missing = (shadow[first:past] != 0) == outside
                    if missing.any():
                        self._fetched(wave, pending, stretches.space, first + int(missing.argmax()))

    def atomic(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """Bytes that nobody wrote are found, unless they are only exchanged; then they hold something."""
        if "exch" not in wave.code[front.pc].statement.modifiers:
            self.load(wave, front, lanes, memory, offsets, size)
        self.store(wave, front, lanes, memory, offsets, size)

    def load(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """Bytes that nobody wrote are found."""
        if memory is wave.memory.data and wave.memory.fresh is not None:
            missing = wave.memory.fresh[_cells(offsets, size)].any(axis=1)
            if missing.any():
                self._found(wave, front, lanes, memory, offsets, size, int(missing.argmax()))
            return
        shadow = self.shadow(wave, memory)
        if shadow is None:
            return
        unit = min(size, 8)
        view, whole = shadow.view(f"u{unit}"), (1 << 8 * unit) // 255
        for place in range(0, size, unit):
            missing = view[(offsets + place) // unit] != whole
            if missing.any():
                self._found(wave, front, lanes, memory, offsets, size, int(missing.argmax()))
                return

    def _found(
        self,
        wave: Wave,
        front: Front,
        lanes: Lanes,
        memory: Bytes,
        offsets: Offsets,
        size: int,
        first: int,
    ) -> None:
        lane = int(lanes.index[first % lanes.count]) if offsets.size >= lanes.count else int(lanes.index[0])
        where = self._where(wave, lane, memory, int(offsets[first]))
        record = wave.code[front.pc]
        message = (
            f"{record.statement.mnemonic} reads {size} bytes at {where} that nobody has written "
            f"[{wave.place(lane)}]"
        )
        finding = LaunchFinding(
            kind="uninitialised", severity="warning", message=message, location=record.statement.location()
        )
        self.findings.add(("uninitialised", front.pc), finding)

    def _fetched(self, wave: Wave, pending: Pending, space: str, offset: int) -> None:
        statement = pending.record.statement
        memory = wave.memory.data if space == "global" else wave.shared
        where = self._where(wave, pending.lane, memory, offset)
        message = f"{statement.mnemonic} reads {where} that nobody has written [{wave.place(pending.lane)}]"
        finding = LaunchFinding(
            kind="uninitialised", severity="warning", message=message, location=statement.location()
        )
        self.findings.add(("uninitialised", statement.location().line), finding)

    @staticmethod
    def _where(wave: Wave, lane: int, memory: Bytes, offset: int) -> str:
        """A place in a memory in words."""
        if memory is wave.shared:
            return in_shared(wave, lane, offset)
        if memory is wave.local:
            return "local memory"
        allocation = wave.memory.allocation_at(DEVICE_BASE + offset)
        return f"byte {DEVICE_BASE + offset - allocation.address} of the {allocation}"

    def uninitialised(self, wave: Wave, front: Front, register: int, mask: npt.NDArray[np.bool_]) -> None:
        """A register that was never written is read."""
        if not mask.any():
            return
        message = "reads a register that was never written, as 0"
        self._warned(wave, front, "register", int(mask.argmax()), message, register)

    def unspecified(self, wave: Wave, front: Front, lanes: Lanes, what: str) -> None:
        """Lanes get a result that PTX leaves open; here it is 0."""
        self._warned(wave, front, "unspecified", int(lanes.index[0]), f"{what}: PTX leaves the result open")

    def _warned(
        self, wave: Wave, front: Front, kind: str, lane: int, what: str, detail: int | None = None
    ) -> None:
        """A warning about one lane at this statement, once."""
        statement = wave.code[front.pc].statement
        message = f"{statement.mnemonic} {what} [{wave.place(lane)}]"
        finding = LaunchFinding(kind=kind, severity="warning", message=message, location=statement.location())
        self.findings.add((kind, front.pc, detail), finding)


class Races:
    """Tells of warps of a CTA that touch one byte of shared memory without a barrier in between.

    ``writer`` and ``reader`` hold warp + 1 of who wrote and read each byte since the last barrier, 0 for
    nobody, 64 and more for a warpgroup, 255 for several readers; ``wrote_at`` and ``read_at`` the statement.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.writer: Shadow = np.zeros(0, np.uint8)
        self.reader: Shadow = np.zeros(0, np.uint8)
        self.wrote_at: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.read_at: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.strong: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)  # by statement
        self.told: set[tuple[int, str]] = set()  # earlier accesses, "read" or "written", of which it has told
        self.landing = False

    def prepare(self, wave: Wave) -> None:
        """Shadows of the size of the wave's shared memory."""
        if self.writer.size != wave.shared.size:
            self.writer, self.reader = (np.zeros(wave.shared.size, np.uint8) for _ in range(2))
            self.wrote_at, self.read_at = (np.zeros(wave.shared.size, np.int32) for _ in range(2))
            self.strong = np.fromiter((_is_strong(one) for one in wave.code), np.bool_, len(wave.code))

    def store(
        self,
        wave: Wave,
        front: Front,
        lanes: Lanes,
        memory: Bytes,
        offsets: Offsets,
        size: int,
        words: Values | None = None,
    ) -> None:
        """Written or read by another warp before: a race, but for warps that all write the same."""
        if memory is not wave.shared or wave.warps == 1 or far(wave, lanes, offsets):
            return
        self.prepare(wave)
        cells, mine = _cells(offsets, size), self._warps(wave, lanes, offsets)
        new = None if words is None else np.ascontiguousarray(words).view(np.uint8).reshape(cells.shape)
        wrote, read = self.writer[cells], self.reader[cells]
        other = True if new is None else memory[cells] != new
        for kind, seen, at, differs in (
            ("written", wrote, self.wrote_at, other),
            ("read", read, self.read_at, True),
        ):
            clash = (seen != 0) & (seen != mine) & differs & self._weak(front, at[cells])
            if clash.any():
                own = clash & (seen == WARPGROUPS + (mine - 1) // 4)  # of the warp's own warpgroup
                severity: Severity = "error" if (clash & ~own).any() else "warning"
                self._found(wave, front, lanes, cells, clash, kind, at, "writes", severity)
        self.writer[cells] = mine
        clash = (self.writer[cells] != mine) & ~self.strong[front.pc]
        if clash.any() and self._parted(cells, new):
            self.wrote_at[cells] = front.pc
            self._found(wave, front, lanes, cells, clash, "written", self.wrote_at, "writes")
        self.wrote_at[cells] = front.pc

    def _parted(self, cells: npt.NDArray[np.int64], new: Shadow | None) -> bool:
        """Whether lanes of one statement write different values to one byte."""
        if new is None:
            return True
        left = np.zeros(self.writer.size, np.uint8)
        left[cells] = new
        return bool((left[cells] != new).any())

    def copying(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """An asynchronous copy may write at any time from now on."""
        self.store(wave, front, lanes, memory, offsets, size)

    def landed(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """Until now; an access that the start of a copy was in a race with is not told of again."""
        self.landing = True
        self.store(wave, front, lanes, memory, offsets, size)
        self.landing = False

    def load(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """Written by another warp before: a race."""
        if memory is not wave.shared or wave.warps == 1 or far(wave, lanes, offsets):
            return
        self.prepare(wave)
        self._acquired(wave, front, lanes)
        cells, mine = _cells(offsets, size), self._warps(wave, lanes, offsets)
        wrote, read = self.writer[cells], self.reader[cells]
        clash = (wrote != 0) & (wrote != mine) & self._weak(front, self.wrote_at[cells])
        if clash.any():
            self._found(wave, front, lanes, cells, clash, "written", self.wrote_at, "reads")
        self.reader[cells] = np.where((read == 0) | (read == mine), mine, _SEVERAL)
        again = self.reader[cells]
        if (again != mine).any():  # another warp reads the same byte in this very statement
            self.reader[cells[again != mine]] = _SEVERAL
        self.read_at[cells] = front.pc

    def _weak(self, front: Front, earlier: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Whether this access or an earlier one is weak: only strong ones go together."""
        weak: npt.NDArray[np.bool_] = ~(self.strong[front.pc] & self.strong[earlier])
        return weak

    def atomic(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """As a strong store, which meets other atomics; one that acquires orders what comes after it."""
        self._acquired(wave, front, lanes)
        self.store(wave, front, lanes, memory, offsets, size)

    def _acquired(self, wave: Wave, front: Front, lanes: Lanes) -> None:
        if not _ACQUIRES.isdisjoint(wave.code[front.pc].statement.modifiers):
            self.ordered(wave, lanes)

    def fence(self, wave: Wave, front: Front, lanes: Lanes, words: tuple[str, ...]) -> None:
        """With a flag that the other side sets, it orders what comes after it."""
        if "proxy" not in words:
            self.ordered(wave, lanes)

    def ordered(self, wave: Wave, lanes: Lanes) -> None:
        """Lanes have synchronised with others of their CTAs, by the phase of an mbarrier for one."""
        self.barrier(wave, -1, np.unique(wave.cta[lanes.index]), None)

    def barrier(self, wave: Wave, number: int, ctas: npt.NDArray[np.int64], front: Front | None) -> None:
        """What happened before in these CTAs is ordered before what follows."""
        if self.writer.size != wave.shared.size:
            return
        if len(ctas) == len(wave.ctas):
            self.writer[:] = 0
            self.reader[:] = 0
            return
        for cta in ctas.tolist():
            part = slice(cta * wave.shared_stride, (cta + 1) * wave.shared_stride)
            self.writer[part] = 0
            self.reader[part] = 0

    def _warps(self, wave: Wave, lanes: Lanes, offsets: Offsets) -> npt.NDArray[np.uint8]:
        """``(words, 1)``: warp + 1 of the lane of each word."""
        warp = wave.thread[lanes.index] // _WARP + 1
        repeated = np.resize(warp, offsets.size) if offsets.size != warp.size else warp
        return repeated.astype(np.uint8)[:, None]

    def _found(
        self,
        wave: Wave,
        front: Front,
        lanes: Lanes,
        cells: npt.NDArray[np.int64],
        clash: npt.NDArray[np.bool_],
        before: str,
        at: npt.NDArray[np.int32],
        now: str,
        severity: Severity = "error",
    ) -> None:
        if self.landing:
            known = [pc for pc, how in self.told if how == before]
            clash = clash & ~np.isin(at[cells], known)
            if not clash.any():
                return
        row, column = (int(one) for one in np.argwhere(clash)[0])
        cell = int(cells[row, column])
        self.told.add((int(at[cell]), before))
        lane = int(lanes.index[row % lanes.count])
        record, other = wave.code[front.pc], wave.code[int(at[cell])]
        address = cell - int(wave.shared_base[lane])
        message = (
            f"race: {record.statement.mnemonic} {now} byte {address:#x} of shared memory, "
            f"which another warp has {before} at line {other.statement.location().line} "
            f"without a barrier in between [{wave.place(lane)}]"
        )
        finding = LaunchFinding(
            kind="race",
            severity=severity,
            message=message,
            location=record.statement.location(),
            other=other.statement.location(),
        )
        self.findings.add(("race", front.pc, int(at[cell]), before), finding)


class CopiesInFlight:
    """Tells of bytes of shared memory that are read while an asynchronous copy may still be writing them.

    ``started_at`` has, of each byte in flight, the statement that started its copy, plus 1.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.started_at: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.flying = 0

    def copying(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """The bytes are in flight from now on."""
        if self.started_at.size != wave.shared.size:
            self.started_at = np.zeros(wave.shared.size, np.int32)
        self.started_at[_cells(offsets, size)] = front.pc + 1
        self.flying += offsets.size

    def landed(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """The bytes are there."""
        self.started_at[_cells(offsets, size)] = 0
        self.flying -= offsets.size

    def load(
        self, wave: Wave, front: Front, lanes: Lanes, memory: Bytes, offsets: Offsets, size: int
    ) -> None:
        """Bytes in flight are read: what is there is left to chance."""
        if not self.flying or memory is not wave.shared:
            return
        cells = _cells(offsets, size)
        started = self.started_at[cells]
        if not started.any():
            return
        row, column = (int(one) for one in np.argwhere(started)[0])
        lane = int(lanes.index[row % lanes.count])
        record, copy = wave.code[front.pc], wave.code[int(started[row, column]) - 1]
        line = copy.statement.location().line
        address = int(cells[row, column]) - int(wave.shared_base[lane])
        message = (
            f"{record.statement.mnemonic} reads byte {address:#x} of shared memory while the cp.async of "
            f"line {line} is in flight: no cp.async.wait_group that covers it has come between "
            f"[{wave.place(lane)}]"
        )
        finding = LaunchFinding(
            kind="in flight",
            severity="error",
            message=message,
            location=record.statement.location(),
            other=copy.statement.location(),
        )
        self.findings.add(("in flight", front.pc, int(started[row, column])), finding)
