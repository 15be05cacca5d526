"""What a timeline remembers of one wave, and which statements wait.

Knows statements by their words; does not know strips' meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...machine.state.lanes import Mask
from .selection import Selection
from .strips import Kind, Strip, WarpName

if TYPE_CHECKING:
    from ...machine.run.pending import Pending
    from ...machine.run.wave import Wave
    from ...ptx.statements import InstructionStatement

# opcode, words of which some stand there, words of which none does, what it is
_WAITS: tuple[tuple[str, frozenset[str], frozenset[str], Kind], ...] = (
    ("mbarrier", frozenset({"try_wait", "test_wait"}), frozenset(), "wait"),
    ("cp", frozenset({"wait_group", "wait_all"}), frozenset(), "wait"),
    ("wgmma", frozenset({"wait_group"}), frozenset(), "wait"),
    ("tcgen05", frozenset({"wait::ld", "wait::st"}), frozenset(), "wait"),
    ("bar", frozenset({"sync", "red", "arrive"}), frozenset({"warp"}), "barrier"),
    ("barrier", frozenset({"sync", "red"}), frozenset({"cluster"}), "barrier"),
    ("barrier", frozenset({"arrive"}), frozenset({"cluster"}), "barrier"),
    ("barrier", frozenset({"wait"}), frozenset(), "barrier"),
)


def wait_kind(statement: InstructionStatement) -> Kind | None:
    """Return what a statement waits for, "wait" or "barrier"; None for a statement that does not wait.

    Arrivals at barriers, which do not wait, count: they let others go on.
    """
    words = set(statement.modifiers)
    for opcode, some, none, kind in _WAITS:
        if statement.opcode == opcode and words & some and not words & none:
            return kind
    return None


def is_ended_by_itself(statement: InstructionStatement) -> bool:
    """Return whether no event reports the end of the wait: it ends when the statement has been executed."""
    words = set(statement.modifiers)
    return statement.opcode in ("cp", "tcgen05") or (
        statement.opcode in ("bar", "barrier") and _arrives(words)
    )


def _arrives(words: set[str]) -> bool:
    return "arrive" in words and "cluster" not in words


def is_commit(statement: InstructionStatement) -> bool:
    """Return whether a group of asynchronous operations is closed."""
    return statement.opcode in ("cp", "wgmma") and "commit_group" in statement.modifiers


class State:
    """The state of a wave: names of its warps, which are shown, and what has begun and not ended."""

    def __init__(self, wave: Wave, selection: Selection) -> None:
        ctas = [(x, y, z) for x, y, z in wave.ctas.tolist()]
        self.names: list[WarpName] = [(cta, warp) for cta in ctas for warp in range(wave.warps)]
        self.selection = selection
        self.chosen = np.array([self._shows(name) for name in self.names], np.bool_)
        self.runs: dict[int, tuple[str, Strip]] = {}  # by warp: its latest strip, and what would continue it
        self.waits: dict[tuple[int, int], tuple[Strip, Mask]] = {}  # by warp and statement: lanes that wait
        self.came: dict[int, Strip] = {}  # by warp: its latest wait
        self.flights: dict[Pending, Strip] = {}
        self.copies: dict[int, Strip] = {}  # cp.async, by the byte of shared memory
        self.causes: dict[int, Strip] = {}  # by mbarrier: what ended its latest phase
        self.clusters: dict[int, Strip] = {}  # the latest arrival at the barrier of a cluster,
        self.ended: dict[int, Strip] = {}  # and the arrival that has ended it
        self.open: dict[int, dict[Strip, None]] = {}  # by warpgroup: wgmma that is in no group yet,
        self.closed: dict[int, list[dict[Strip, None]]] = {}  # and its groups without a wait
        self._at: tuple[int, dict[str, int]] = (-1, {})
        self._matrices: dict[tuple[int, int], int] = {}  # by warp and statement: its latest execution, from 0
        self._executions: dict[tuple[int, int], tuple[int, int]] = {}  # how many, and when the latest

    def _shows(self, name: WarpName) -> bool:
        ctas, warp = self.selection.ctas, self.selection.warp
        return (not ctas or name[0] in ctas) and warp in (None, name[1])

    def shown(self) -> Iterator[WarpName]:
        """Return the warps that are shown."""
        return (name for name, chosen in zip(self.names, self.chosen.tolist(), strict=True) if chosen)

    def of_statement(self, number: int) -> dict[str, int]:
        """Return the moments of the so many-th statement of the wave, by what happened."""
        if self._at[0] != number:
            self._at = number, {}
        known = self._at[1]
        if "end" in known and "completed" in known and known["completed"] < known["end"]:
            del known["completed"]  # what completes now does so after the statement
        return known

    def takes(self, wave: Wave, warp: int, pc: int, line: int, warps: int) -> bool:
        """Return whether an execution of a statement is selected; it counts."""
        if not self.chosen[warp : warp + warps].any():
            return False
        if self.selection.line is None and self.selection.step is None:
            return True
        count, latest = self._executions.get((warp, pc), (-1, -1))
        if latest != wave.scheduler.statements:
            count += 1
            self._executions[warp, pc] = count, wave.scheduler.statements
        return self.selection.line in (None, line) and self.selection.step in (None, count)

    def execution(self, warp: int, pc: int) -> tuple[int, int]:
        """Count an execution of a matrix instruction by a warp; return its statement and the execution's
        number.
        """
        count = self._matrices[warp, pc] = self._matrices.get((warp, pc), -1) + 1
        return pc, count

    def end_runs(self, warps: Sequence[int]) -> None:
        """End the runs of these warps: what they do next begins a new strip."""
        for warp in warps:
            self.runs.pop(warp, None)

    def close_groups(self, warps: Sequence[int]) -> None:
        """Warpgroups with these first warps close a group of wgmma."""
        for warp in warps:
            self.closed.setdefault(warp, []).append(self.open.pop(warp, {}))

    def awaited(self, warp: int, most: int) -> list[Strip]:
        """Return what a warpgroup waits for that leaves so many groups in flight; once."""
        groups = self.closed.get(warp, [])
        keep = len(groups) - most
        self.closed[warp] = groups[max(keep, 0) :]
        return [strip for group in groups[: max(keep, 0)] for strip in group]
