"""Races of tiles that wgmma reads from shared memory with warps that write there.

A wgmma that reads what a warp of another warpgroup has written, with nothing that orders the two, is in a
race; where the warp is of its own it is a warning, as the steps that PTX ISA 9.1 lists for wgmma (section
9.7.15) name no barrier. So is a warp that writes what a wgmma has read which its warpgroup has waited for: a
warp of another warpgroup must know of that wait, and one of its own of those of the other three warps.
Does not know proxies or wgmma in flight (see warpgroup_order.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import le
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ....base.errors import Location
from ....isa.warps import WARP
from ....machine.run.clusters import in_shared
from ....machine.run.convergence import Warpgroups, warps_of
from ....machine.run.events import CHUNK, Observer
from ....machine.state.lanes import DivergentPath, Lanes, Mask
from ....machine.state.memory_access import MemoryAccess
from ..findings import Findings, LaunchFinding, Severity
from ..order import Order
from ..shadow import OPERATION, Cells, Records, Shadow, has, places, record, times, whose

if TYPE_CHECKING:
    from ....machine.opcodes.matrix.wgmma_groups import Verb
    from ....machine.run.events import Groups, Share, WgmmaStatement
    from ....machine.run.wave import Wave

_GROUP = 4  # warps of a warpgroup


FaultKind = Literal["race", "uninitialised", "in flight"]
_SENTENCES: dict[FaultKind, str] = {
    "race": (
        "race: wgmma reads byte {byte:#x} of shared memory, which another warp has written at {other} "
        "without a barrier in between"
    ),
    "uninitialised": "{mnemonic} reads byte {byte:#x} of shared memory, which was never written",
    "in flight": (
        "{mnemonic} reads byte {byte:#x} of shared memory while the cp.async of {other} is in flight"
    ),
}


@dataclass(frozen=True)
class TileFault:
    """What is wrong with bytes that a wgmma reads: the kind of finding, and another statement."""

    kind: FaultKind
    severity: Severity
    other: int | None = None


class TileReads(Observer):
    """An observer of wgmma, and of stores to what it has read."""

    latest: npt.NDArray[np.int32]  # (warpgroups, 4): when the warps of each have waited last

    def __init__(self, findings: Findings, order: Order) -> None:
        self.findings, self.order = findings, order
        # by warpgroup: the last wait that all of its warps know of and those after it, each the groups that
        # were complete, and when
        self.waits: dict[int, list[tuple[int, list[int]]]] = {}
        self._late: tuple[Lanes | None, int, list[int]] = None, 0, []  # of lanes, and a version of the clocks

    def wgmma(self, wave: Wave, path: DivergentPath, statement: WgmmaStatement, share: Share) -> None:
        """Check the tiles that some warpgroups are about to read."""
        cells, shadow = self.order.tiles(wave, share), self.order.shared(wave)
        if self.order.reads(wave, share).unordered:
            self._race(wave, path, share, cells, shadow)
        columns = self.order.groups_of(wave, share.groups)[:, None]
        records = record(self.order.committed[share.groups][:, None] + 1, path.pc, columns, OPERATION)
        shadow.take_later(share.key, 1 + self._numbers(wave, share.groups)[:, None], records)

    def _numbers(self, wave: Wave, groups: Groups) -> Cells:
        """Return the numbers of warpgroups in their clusters."""
        found: Cells = groups % self._cluster_size(wave)
        return found

    @staticmethod
    def _cluster_size(wave: Wave) -> int:
        return len(Warpgroups.of(wave).first) // len(wave.ctas) * wave.cluster.count

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """Tiles have been read, as the warps of each warpgroup know by themselves."""
        if verb != "wait":
            return
        clocks = self.order.prepare(wave)
        if not self.waits:
            self.latest = np.zeros((len(Warpgroups.of(wave).first), _GROUP), np.int32)
        warps, complete = Warpgroups.of(wave).members(groups), self.order.committed[groups] - most
        every, now = self._known_to_all(warps), clocks.own(warps)
        self.latest[groups] = now
        self._late = None, 0, []
        each = zip(groups.tolist(), complete.tolist(), every.tolist(), now.tolist(), strict=True)
        for group, number, known, own in each:
            waits = self.waits.get(group, [])
            over = [wait for wait in waits if all(map(le, wait[1], known))]
            last = sorted(over, key=lambda wait: wait[0])[-1:]  # what it waited for stays known
            self.waits[group] = [*last, *waits[len(over) :], (number, own)]

    # --- stores ---

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Bytes that a wgmma has read are about to be written."""
        if access.memory is not wave.memories.shared or not self.waits:
            return
        late = self._late_rows(wave, access)
        if late:
            shadow = self.order.shared(wave)
            cells, taken = shadow.of(access), shadow.taken
            lent = shadow.rows(shadow.takes, cells[:, 0]).tolist()
            for row in late:
                if row in lent and (records := taken[row, cells]).any():
                    self._check_store(wave, access, row, records)

    copying = landed = atomic = store

    def _late_rows(self, wave: Wave, access: MemoryAccess) -> list[int]:
        """Return the rows of warpgroups that may have read what lanes of an access need not know; kept until
        anything is known besides.
        """
        lanes, version = access.lanes, self.order.clocks.version
        if self._late[0] is not lanes or self._late[1] != version:
            each = self._cluster_size(wave)
            rows = sorted({1 + group % each for group in self.waits})  # of warpgroups that have multiplied
            found = [row for row in rows if self._may_be_late(wave, row, access)]
            self._late = lanes, version, found
        return self._late[2]

    def _may_be_late(self, wave: Wave, row: int, access: MemoryAccess) -> bool:
        """Return whether warps that write need not know of all waits of the warpgroups that have a row."""
        clocks, each = self.order.clocks, self._cluster_size(wave)
        groups = np.arange(row - 1, len(Warpgroups.of(wave).first), each)
        column = int(self.order.groups_of(wave, groups[:1])[0])
        warps, writers = Warpgroups.of(wave).members(groups), warps_of(access.lanes.mask)
        known = clocks.visible[warps[:, 0], column]
        if (clocks.visible[writers, column] < known[writers // clocks.of_cluster]).any():
            return True
        return bool((self._known_to_all(warps) < self.latest[groups]).any())

    def _known_to_all(self, warps: Cells) -> npt.NDArray[np.int32]:
        """Return ``(warpgroups, 4)``: the time of each warp of which all warps of its warpgroup know."""
        clocks = self.order.clocks
        each = clocks.visible[warps[:, :, None], clocks.column[warps][:, None]]
        known: npt.NDArray[np.int32] = each.min(axis=1)
        return known

    def _check_store(self, wave: Wave, access: MemoryAccess, row: int, taken: Records) -> None:
        """Find cells that a warpgroup has read and waited for, which the warps that write do not know."""
        clocks, warps = self.order.clocks, access.lane_of[:, None] // WARP
        groups = warps // clocks.of_cluster * self._cluster_size(wave) + row - 1
        first, column, due = Warpgroups.of(wave).warps[groups], whose(taken), times(taken)
        over = (taken != 0) & (clocks.visible[first, column] >= due)
        late = over & (clocks.visible[warps, column] < due)
        own = over & (warps >= first) & (warps < first + _GROUP)
        for warp in np.unique(np.broadcast_to(warps, own.shape)[own]).tolist():
            here = own & (warps == warp)
            group = int(groups[here.any(axis=1)][0, 0])
            for time in np.unique(due[here]).tolist():
                if self._knows_wait(wave, group, warp, time):
                    own &= ~(here & (due == time))
        severities: tuple[Severity, Severity] = ("error", "warning")
        for clash, severity in zip((late, own), severities, strict=True):
            if clash.any() and wave.code[access.path.pc].statement.opcode not in ("atom", "red"):
                self._check_write(wave, access, clash, taken, severity)
                break

    def _knows_wait(self, wave: Wave, group: int, warp: int, due: int) -> bool:
        """Return whether a warp of a warpgroup knows of the first wait of the other warps for a group of
        wgmma.
        """
        clocks, warps = self.order.clocks, Warpgroups.of(wave).members(np.array([group]))[0]
        when = next((then for number, then in self.waits.get(group, ()) if number >= due), None)
        if when is None:
            return True
        late = clocks.visible[warp, clocks.column[warps]] < when
        return not late[warps != warp].any()

    def _check_write(
        self, wave: Wave, access: MemoryAccess, clash: Any, taken: Records, severity: Severity
    ) -> None:
        row, column = np.argwhere(clash)[0].tolist()
        cell = access.size // taken.shape[1]
        lane, byte = int(access.lane_of[row]), int(access.offsets[row]) + column * cell
        pc = int(places(taken[row, column]))
        statement, other = (wave.code[place].statement for place in (access.path.pc, pc))
        message = (
            f"race: {statement.mnemonic} writes byte {in_shared(wave, lane, byte)}, which another warp has "
            f"read at {other.location().short} without a barrier in between [{wave.describe_lane(lane)}]"
        )
        finding = LaunchFinding(
            kind="race",
            severity=severity,
            message=message,
            location=statement.location(),
            other=other.location(),
        )
        self.findings.add(("race", access.path.pc, pc, "read"), finding)

    # --- wgmma ---

    def _race(self, wave: Wave, path: DivergentPath, share: Share, cells: Cells, shadow: Shadow) -> None:
        """Bytes that another warp has written, with nothing in between."""
        clocks = self.order.clocks
        if not self.order.fresh(shadow, shadow.writes).any():
            return
        wrote = shadow.wrote[cells]
        column = whose(wrote) // WARP
        generic = (wrote != 0) & ~has(wrote, OPERATION)
        if not generic.any():
            return
        warps = Warpgroups.of(wave).members(share.groups)
        known = clocks.visible[warps[:, :, None], np.where(generic, column, 0)[:, None]].min(axis=1)
        late = generic & (times(wrote) > known)
        if not late.any():
            return
        first = clocks.column[warps[:, :1]]
        own = (column >= first) & (column < first + _GROUP)
        severities: tuple[Severity, Severity] = ("error", "warning")
        for clash, severity in zip((late & ~own, late & own), severities, strict=True):
            if clash.any():
                self._read(wave, path, share, clash, wrote, severity)
                break

    def _read(
        self, wave: Wave, path: DivergentPath, share: Share, clash: Mask, wrote: Records, severity: Severity
    ) -> None:
        """Report tiles that another warp has written."""
        fault = TileFault("race", severity, int(places(wrote[clash][0])))
        tile_finding(self.findings, wave, path, share, clash, fault)


def tile_finding(
    findings: Findings,
    wave: Wave,
    path: DivergentPath,
    share: Share,
    wrong: Mask,
    fault: TileFault,
) -> None:
    """Report the first cell that is wrong, ``(warpgroups, cells)``."""
    row, byte = first_of_tiles(share, wrong)
    other = fault.other
    place: Location | None = None if other is None else wave.code[other].statement.location()
    statement = wave.code[path.pc].statement
    said = _SENTENCES[fault.kind].format(mnemonic=statement.mnemonic, byte=byte, other=place and place.short)
    where = Warpgroups.of(wave).place(wave, int(share.groups[row]))
    finding = LaunchFinding(
        kind=fault.kind,
        severity=fault.severity,
        message=f"{said} [{where}]",
        location=statement.location(),
        other=place,
    )
    findings.add((fault.kind, path.pc, other), finding)


def first_of_tiles(share: Share, wrong: Mask) -> tuple[int, int]:
    """Return the first warpgroup and byte of a mask of the cells of tiles."""
    row, column = np.argwhere(wrong)[0].tolist()
    each = wrong.shape[1] // share.chunks.size
    return row, int(share.chunks[column // each]) * CHUNK + column % each * (CHUNK // each)
