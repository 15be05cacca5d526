"""What is said of tensor memory: both statements, lanes and columns, what is missing, and where to put it.

Knows wording, and when loads, stores and commits were issued; what is wrong is found in tensor_order.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ....isa.warps import WARP
from ....machine.run.asynchronous import ASYNCHRONY
from ....machine.run.barriers.mbarrier import named
from ....machine.run.events import TensorAccess
from ....machine.run.pending import Pending
from ....machine.state.lanes import DivergentPath, Mask
from ....machine.state.tensor_cells import Block
from ..clocks import Clocks
from ..findings import Findings, LaunchFinding, Severity
from ..shadow import places, times, whose

if TYPE_CHECKING:
    from ....machine.run.wave import Wave
    from ..order import Order

_TRY = "mbarrier.try_wait.parity"
_WAITS = {"tcgen05.ld": "tcgen05.wait::ld.sync.aligned", "tcgen05.st": "tcgen05.wait::st.sync.aligned"}
_Commit = tuple[int, tuple[int, ...], int]  # its number, mbarriers and statement
_KEPT = 256  # accesses of a group that is not waited for
_OPERANDS = ("D", "A", "metadata", "scale factors of A", "scale factors of B")


class Held(NamedTuple):
    """An allocation: the lane and the statement that made it, and its columns."""

    lane: int
    pc: int
    size: int


@dataclass(frozen=True, eq=False)
class Late:
    """Cells of a block, a mask ``(columns, lanes)``, that an earlier access may still read or write."""

    block: Block
    cells: Mask
    earlier: int  # the record of the first
    how: Literal["read", "write"]


class _Missing(NamedTuple):
    """What says that an earlier access is over and is missing, what to do, and how grave that is."""

    what: str
    fix: str
    severity: Severity = "error"


class Words:
    """The findings of an observer of tensor memory."""

    def __init__(self, findings: Findings, order: Order) -> None:
        self.findings, self.order = findings, order
        # by family, lane of the cluster and group: the times of the warp, and the columns that it touched
        self.times: dict[tuple[str, int, int], list[tuple[int, range]]] = {}
        self.filled: set[tuple[str, int, int]] = set()  # groups of commits with any work
        # by family and lane of the cluster
        self.commits: dict[tuple[str, int], list[_Commit]] = {}

    # --- what messages need ---

    def issued(self, clocks: Clocks, access: TensorAccess) -> None:
        """Remember when a warp loads or stores, and which groups of commits have anything in them."""
        if access.family not in _WAITS:
            lane = access.lane % (clocks.of_cluster * WARP)
            self.filled.add((access.family, lane, access.number))
            return
        key = access.family, access.lane % (clocks.of_cluster * WARP), access.number
        known, time = self.times.setdefault(key, []), int(clocks.own(np.array([access.lane // WARP]))[0])
        for block in (*access.reads, *access.writes):
            known.append((time, range(block.columns.start, block.columns.stop)))
        del known[:-_KEPT]

    def committed(self, pending: Pending, pc: int) -> None:
        """Remember a commit."""
        lane = pending.lane % (self.order.clocks.of_cluster * WARP)
        self.commits.setdefault((pending.group, lane), []).append((pending.number, pending.arrivals, pc))

    # --- findings ---

    def read_early(self, wave: Wave, access: TensorAccess, late: Late) -> None:
        """Report cells that are read while they may still be written."""
        self._early(wave, access, late, "reads", "read early")

    def overwritten(self, wave: Wave, access: TensorAccess, late: Late) -> None:
        """Report cells that are written while they may still be read or written."""
        self._early(wave, access, late, "writes", "overwritten early")

    def _early(self, wave: Wave, access: TensorAccess, late: Late, verb: str, kind: str) -> None:
        pc, lane, earlier = access.path.pc, access.lane, int(places(late.earlier))
        operand = f"{late.block.name} in " if late.block.name in _OPERANDS else ""
        where = f"{_name(wave, pc)} {verb} {operand}{_cells(wave, lane, late)}"
        if int(whose(late.earlier)) < self.order.clocks.of_cluster:
            self._report_foreign_allocation(wave, access, where, late)
            return
        missing, fix = self._missing_wait(wave, lane, late, pc), ""
        if access.in_order and late.how == "read" and missing.severity == "error":
            fix = (
                f"; or, if line {_line(wave, earlier)} is to read this product, put {_TRY} on the mbarrier "
                f"of a tcgen05.commit behind line {_line(wave, pc)} before line {_line(wave, earlier)}"
            )
        other = f"{_name(wave, earlier)} of line {_line(wave, earlier)}"
        message = f"{where}, which {other} may still {late.how}: {missing.what}"
        self._say(wave, kind, lane, (message, missing.fix + fix), (pc, earlier), missing.severity)

    def _report_foreign_allocation(self, wave: Wave, access: TensorAccess, where: str, late: Late) -> None:
        """Report an allocation of another warp, of which nothing says that it is done."""
        pc, earlier = access.path.pc, int(places(late.earlier))
        here, line = _line(wave, pc), _line(wave, earlier)
        far = late.block.cta != int(wave.cta[access.lane])
        owner = "the other CTA of the pair" if far else "another warp"
        barrier = "barrier.cluster.arrive and barrier.cluster.wait" if far else "bar.sync 0"
        message = (
            f"{where}, which {owner} allocates at line {line}, and nothing says here that this is done"
            + ": the pair need not be ready, unless an allocation waits for both" * far
        )
        fix = f"put {barrier} between lines {line} and {here}"
        severity: Severity = "warning" if far else "error"
        self._say(wave, "not allocated yet", access.lane, (message, fix), (pc, earlier), severity)

    def freed(self, wave: Wave, path: DivergentPath, lane: int, late: Late) -> None:
        """Report columns that are freed while they may still be used."""
        pc, earlier = path.pc, int(places(late.earlier))
        if int(whose(late.earlier)) < self.order.clocks.of_cluster:
            missing = _Missing(
                "no barrier says here that they are allocated",
                f"put bar.sync 0 between lines {_line(wave, earlier)} and {_line(wave, pc)}",
            )
        else:
            missing = self._missing_wait(wave, lane, late, pc)
        message = (
            f"{_name(wave, pc)} frees {_cells(wave, lane, late)}, which {_name(wave, earlier)} of line "
            f"{_line(wave, earlier)} may still {late.how}: {missing.what}"
        )
        severity = missing.severity
        self._say(wave, "deallocated early", lane, (message, missing.fix), (pc, earlier), severity)

    def kept(self, wave: Wave, first: int, held: Held) -> None:
        """Report columns that a CTA has not freed when it ends."""
        place = wave.code[held.pc].statement.location()
        message = (
            f"the CTA ends and columns {first}..{first + held.size - 1} of tensor memory are still "
            "allocated: a CTA that comes after it may wait for them forever "
            f"[{wave.describe_lane(held.lane)}]"
        )
        group = next(word for word in wave.code[held.pc].statement.modifiers if word.startswith("cta_group"))
        fix = f"put tcgen05.dealloc.{group}.sync.aligned.b32 of this address, {held.size} before the end"
        finding = LaunchFinding(
            kind="not deallocated", severity="error", message=message, location=place, fix=fix
        )
        self.findings.add(("not deallocated", held.pc), finding)

    def ordered_by_issue(self, wave: Wave, access: TensorAccess, late: Late) -> None:
        """Note an order of issue that the manual does not list."""
        pc, earlier = access.path.pc, int(places(late.earlier))
        if ("issue order", pc, earlier) in self.findings.known:
            return
        message = (
            f"{_name(wave, pc)} writes {_cells(wave, access.lane, late)}, which {_name(wave, earlier)} of "
            f"line {_line(wave, earlier)} of the same thread may still {late.how}: the manual does not list "
            "this order of issue; kernels of CUTLASS rely on it, and launches here keep it"
        )
        self._say(wave, "issue order", access.lane, (message, ""), (pc, earlier), "note")

    # --- what is missing ---

    def _missing_wait(self, wave: Wave, lane: int, late: Late, pc: int) -> _Missing:
        component, due = int(whose(late.earlier)), int(times(late.earlier))
        groups = self.order.clocks.groups
        family = next(name for name, known in groups.items() if component in known)
        waiter = int(np.flatnonzero(groups[family] == component)[0])
        earlier, size = int(places(late.earlier)), self.order.clocks.of_cluster * WARP
        closed = int(ASYNCHRONY.of(wave).closed(wave, family)[lane // size * size + waiter])
        lines = _line(wave, earlier), _line(wave, pc)
        if family not in _WAITS:
            return self._commit(wave, (family, waiter, due), lane, lines)
        wait, warp = _WAITS[family], waiter // WARP
        columns = np.flatnonzero(late.cells.any(axis=1)) + late.block.columns.start
        touched = self.times.get((family, waiter, due - 1), [])
        when = max((time for time, own in touched if int(columns[0]) in own), default=0)
        known = bool(self.order.clocks.visible[lane // WARP, warp] >= when)
        if known:
            mild, done = family == "tcgen05.ld", closed >= due
            same = warp == lane // WARP % self.order.clocks.of_cluster
            what = f"warp {warp % wave.warps} " + (
                "waits for it too late" if done else "has not waited for it"
            )
            if done and not same:
                what += ", behind the barrier or arrival that orders the two"
            if mild:
                what += ", so that only a use of its registers says that it is done"
            fix = f"put {wait} behind line {lines[0]}" + ", before the barrier or arrival there" * (not same)
            return _Missing(what, fix, "warning" if mild else "error")
        what = f"no barrier orders this behind {wait.split('.sync')[0]} of warp {warp % wave.warps}"
        fix = (
            f"put {wait} and then mbarrier.arrive, or bar.sync, behind line {lines[0]}, and wait for that "
            f"before line {lines[1]}"
        )
        return _Missing(what, fix)

    def _commit(self, wave: Wave, work: tuple[str, int, int], lane: int, lines: tuple[int, int]) -> _Missing:
        """Return what is missing between work of one thread, (family, lane, group), and a later access."""
        family, waiter, due = work
        commit = self._covering(family, waiter, due)
        warp, group = lane // WARP % wave.warps, family.removeprefix("tcgen05.")
        if commit is None:
            return _Missing(
                "no tcgen05.commit of its thread has followed",
                f"put tcgen05.commit.{group} behind line "
                f"{lines[0]}, and {_TRY} on its mbarrier before line {lines[1]}",
            )
        barriers = " or ".join(dict.fromkeys(named(wave, offset) for offset in commit[1]))
        what = (
            f"it is complete when the tcgen05.commit of line {_line(wave, commit[2])} has arrived at the "
            f"mbarrier {barriers}, and warp {warp} has not waited for that"
        )
        return _Missing(what, f"put {_TRY} on {barriers} before line {lines[1]}")

    def _covering(self, family: str, waiter: int, due: int) -> _Commit | None:
        """Return the first commit that covers a group, or the last of those that follow it at once."""
        covering = [found for found in self.commits.get((family, waiter), []) if found[0] >= due]
        chosen = None
        for commit in covering:
            if chosen is not None and (family, waiter, commit[0] - 1) in self.filled:
                break
            chosen = commit
        return chosen

    def _say(
        self,
        wave: Wave,
        kind: str,
        lane: int,
        text: tuple[str, str],
        pcs: tuple[int, int],
        severity: Severity = "error",
    ) -> None:
        """Add a finding about two statements, the later one first."""
        pc, other = pcs
        finding = LaunchFinding(
            kind=kind,
            severity=severity,
            message=f"{text[0]} [{wave.describe_lane(lane)}]",
            location=wave.code[pc].statement.location(),
            other=wave.code[other].statement.location(),
            note="the earlier statement",
            fix=text[1],
        )
        self.findings.add((kind, pc, other), finding)


def _cells(wave: Wave, lane: int, late: Late) -> str:
    """Return columns and lanes in words, and the CTA where it is not that of the lane."""
    columns = np.flatnonzero(late.cells.any(axis=1)) + late.block.columns.start
    lanes = np.flatnonzero(late.cells.any(axis=0)) + late.block.lanes.start
    far = late.block.cta != int(wave.cta[lane])
    rank = f" of CTA rank {late.block.cta % wave.cluster.count}" if far else ""
    return f"{_range('column', columns)}, {_range('lane', lanes)} of tensor memory{rank}"


def _range(word: str, numbers: np.ndarray) -> str:
    first, last = int(numbers[0]), int(numbers[-1])
    return f"{word} {first}" if first == last else f"{word}s {first}..{last}"


def _line(wave: Wave, pc: int) -> int:
    return wave.code[pc].statement.location().line


def _name(wave: Wave, pc: int) -> str:
    return wave.code[pc].statement.mnemonic
