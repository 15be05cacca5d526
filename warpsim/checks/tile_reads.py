"""Checks of the tiles that wgmma reads from shared memory: bytes that nobody wrote, or that others write.

The shadows are those of memory_checks.py and warp_races.py, looked at by chunks of 16 bytes. A wgmma that
reads what a warp of another warpgroup has written with no barrier in between is in a race; where the warp is
one of its own it is a warning, as the steps that PTX ISA 9.1 lists for wgmma (section 9.7.15) name no
barrier. A tile counts as read when its warpgroup has waited for it, and for other warps after the next one.
Knows shadows; does not know proxies or wgmma in flight (see warpgroup_order.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import Location
from ..machine.run.convergence import Warpgroups
from ..machine.run.events import Observer
from ..machine.state.lanes import DivergentPath
from .findings import Findings, LaunchFinding, Severity
from .memory_checks import CopiesInFlight, UninitialisedReads
from .warp_races import SEVERAL, WARPGROUPS, Races

if TYPE_CHECKING:
    from ..machine.opcodes.matrix.wgmma_groups import Verb
    from ..machine.run.events import Groups, Share, WgmmaStatement
    from ..machine.run.wave import Wave

_Read = tuple["Share", int]  # what some warpgroups read at once, and the statement
Cells = npt.NDArray[np.int64]  # (warpgroups, chunks): chunks of the wave

_CHUNK = 16
_WARPS = 4  # of a warpgroup


class TileReads(Observer):
    """An observer of wgmma, for others that observe loads and stores."""

    def __init__(
        self, findings: Findings, reads: UninitialisedReads, copies: CopiesInFlight, races: Races
    ) -> None:
        self.findings = findings
        self.reads, self.copies, self.races = reads, copies, races
        self.loose: dict[int, list[_Read]] = {}  # by warpgroup: what is in no group yet
        self.complete: set[tuple[bytes, bytes]] = set()  # ranges that are written all over, and warpgroups
        self.groups: dict[int, list[list[_Read]]] = {}  # by warpgroup: those that are pending, oldest first

    def wgmma(self, wave: Wave, path: DivergentPath, one: WgmmaStatement, share: Share) -> None:
        """Some warpgroups are about to read tiles."""
        base = Warpgroups.of(wave).cta[share.groups] * (wave.shared_stride // _CHUNK)
        cells = base[:, None] + share.chunks
        self._unwritten(wave, path, share, cells)
        self._in_flight(wave, path, share, cells)
        self._race(wave, path, share, cells)
        for group in share.groups.tolist():
            self.loose.setdefault(group, []).append((share, path.pc))

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Groups, verb: Verb, most: int) -> None:
        """A group is closed, or tiles have been read: for all others that is so after the next barrier."""
        done: dict[_Read, list[int]] = {}
        for group in groups.tolist() if verb != "fence" else ():
            pending = self.groups.setdefault(group, [])
            if verb == "commit":
                pending.append(self.loose.pop(group, []))
                continue
            for one in (read for part in pending[: max(len(pending) - most, 0)] for read in part):
                done.setdefault(one, []).append(group)
            del pending[: max(len(pending) - most, 0)]
        for (share, pc), those in done.items():
            groups = np.array(those)
            ctas = Warpgroups.of(wave).cta[groups]
            self.races.note_later(wave, groups, ctas, partial(self._read, wave, share, pc))

    def _unwritten(self, wave: Wave, path: DivergentPath, share: Share, cells: Cells) -> None:
        """Bytes that nobody has written."""
        key = share.ranges.tobytes(), share.groups.tobytes()
        if key in self.complete:
            return
        shadow = self.reads.shadow(wave, wave.shared)
        assert shadow is not None
        missing = _of_chunks(shadow, cells) == 0
        if not missing.any():
            self.complete.add(key)
        else:
            message = "reads {byte} of shared memory, which nobody has written"
            self._found(wave, path, share, cells, missing, "uninitialised", "warning", message)

    def _in_flight(self, wave: Wave, path: DivergentPath, share: Share, cells: Cells) -> None:
        """Bytes that a cp.async may still be writing."""
        if not self.copies.flying or not self.copies.started_at.size:
            return
        started = _of_chunks(self.copies.started_at, cells)
        if started.any():
            place = int(started[started > 0][0]) - 1
            message = "reads {byte} of shared memory while the cp.async of line {line} is in flight"
            self._found(wave, path, share, cells, started > 0, "in flight", "error", message, place)

    def _race(self, wave: Wave, path: DivergentPath, share: Share, cells: Cells) -> None:
        """Bytes that another warp has written since the last barrier."""
        races = self.races
        races.prepare(wave)
        if not races.stored[Warpgroups.of(wave).cta[share.groups]].any():
            return
        number = share.groups % (len(Warpgroups.of(wave).first) // len(wave.ctas))
        first = (_WARPS * number[:, None, None] + 1).astype(np.uint8)
        wrote = races.writer.reshape(-1, _CHUNK)[cells]
        if wrote.any():
            own = (wrote >= first) & (wrote < first + _WARPS)
            message = (
                "race: wgmma reads {byte} of shared memory, which another warp has written at line {line}"
            )
            for clash, severity in (((wrote != 0) & ~own, "error"), (own, "warning")):
                if clash.any():
                    place = int(races.wrote_at.reshape(-1, _CHUNK)[cells][clash][0])
                    late = f"{message} without a barrier in between"
                    self._found(wave, path, share, cells, clash, "race", severity, late, place)
                    break

    def _read(self, wave: Wave, share: Share, pc: int, groups: Groups) -> None:
        """Some warpgroups have read the tiles of a wgmma."""
        places = Warpgroups.of(wave)
        number = groups % (len(places.first) // len(wave.ctas))
        cells = (places.cta[groups] * (wave.shared_stride // _CHUNK))[:, None] + share.chunks
        reader = self.races.reader.reshape(-1, _CHUNK)
        code = (WARPGROUPS + number[:, None, None]).astype(np.uint8)
        read, first = reader[cells], (_WARPS * number[:, None, None] + 1).astype(np.uint8)
        alone = (read == 0) | (read == code) | ((read >= first) & (read < first + _WARPS))
        reader[cells] = np.where(alone, code, np.uint8(SEVERAL))
        others = (reader[cells] != code).any(axis=2)  # read by another warpgroup of the CTA, perhaps just now
        reader[cells[others]] = SEVERAL
        self.races.read_at.reshape(-1, _CHUNK)[cells] = pc

    def _found(
        self,
        wave: Wave,
        path: DivergentPath,
        share: Share,
        cells: Cells,
        wrong: npt.NDArray[np.bool_],
        kind: str,
        severity: Any,
        message: str,
        other: int | None = None,
    ) -> None:
        """A finding about the first byte that is wrong, ``(warpgroups, chunks[, bytes])``."""
        row, column, *rest = (int(one) for one in np.argwhere(wrong)[0])
        byte = int(cells[row, column]) % (wave.shared_stride // _CHUNK) * _CHUNK + sum(rest)
        place: Location | None = None if other is None else wave.code[other].statement.location()
        said = message.format(byte=f"byte {byte:#x}", line=0 if place is None else place.line)
        statement = wave.code[path.pc].statement
        prefix = "" if said.startswith("race") else f"{statement.mnemonic} "
        where = Warpgroups.of(wave).place(wave, int(share.groups[row]))
        found: Severity = severity
        finding = LaunchFinding(
            kind=kind,
            severity=found,
            message=f"{prefix}{said} [{where}]",
            location=statement.location(),
            other=place,
        )
        self.findings.add((kind, path.pc, other), finding)


def _of_chunks(shadow: npt.NDArray[Any], cells: Cells) -> npt.NDArray[Any]:
    """``(warpgroups, chunks, bytes)``: what a shadow has of the bytes of chunks."""
    return shadow[: shadow.size // _CHUNK * _CHUNK].reshape(-1, _CHUNK)[cells]
