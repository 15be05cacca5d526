"""The divergent paths of a wave: which run, which wait, and how often each statement was executed.

Knows program counters, frames and active masks; does not know statements, registers or memories.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ..state.lanes import DivergentPath, Lanes, Mask, Values
from .geometry import Geometry

# Rounds of a loop before other lanes get their turn: many, so that a loop that makes progress keeps its lanes
# together; a round of a loop that waits for others (see livelock.py) counts as this many.
PATIENCE = 512

Order = Callable[["Scheduler", Geometry], DivergentPath]  # the next path; it may join and split paths


class Scheduler:
    """``paths`` run and ``waiting`` do not; ``order`` selects the next path.

    ``statements`` counts those executed, each once per path; ``counts`` has the executions of each statement.
    ``rounds`` counts rounds of loops since the last store, and ``vain`` is set where a wave stopped for them;
    ``waits_at`` are the branches of loops that wait for other lanes.
    """

    def __init__(self, first: DivergentPath, statements: int, order: Order) -> None:
        self.paths = [first]
        self.waiting: list[DivergentPath] = []
        self.order = order
        self.statements = 0
        self.singles = array("q", bytes(8 * statements))  # executions by themselves,
        self._block_counts: dict[
            tuple[int, int], int
        ] = {}  # and in basic blocks, by first statement and past
        self.rounds = 0
        self.vain = False
        self.waits_at: frozenset[int] = frozenset()

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Return ``(statements,)``: the executions of each."""
        basic_blocks, self._block_counts = self._block_counts, {}
        for (first, past), times in basic_blocks.items():
            for pc in range(first, past):
                self.singles[pc] += times
        return np.frombuffer(self.singles, np.int64)

    def executed(self, first: int, past: int) -> None:
        """Count the execution of all statements of a basic block."""
        self.statements += past - first
        self._block_counts[first, past] = self._block_counts.get((first, past), 0) + 1

    # --- divergence ---

    def jump(self, path: DivergentPath, lanes: Lanes, target: int) -> bool:
        """Branch some lanes of a path to a target; the others continue behind this statement.

        Returns whether paths changed.
        """
        if lanes.count == path.lanes.count:
            if target <= path.pc:
                path.turns += (turns := self._turns(path.pc))
                self.rounds += turns
                if len(self.paths) == 1 and path.turns % PATIENCE:
                    path.pc = target - 1  # continues at once: there is no other path to converge with
                    return False
            path.pc = target
            return True
        turns = path.turns + (self._turns(path.pc) if target <= path.pc else 0)
        self.leave(path, lanes)
        self.paths.append(DivergentPath(target, path.frame, lanes, turns))
        return True

    def _turns(self, pc: int) -> int:
        """Return how many rounds a round of the loop counts that a branch closes."""
        return PATIENCE if pc in self.waits_at else 1

    def leave(self, path: DivergentPath, lanes: Lanes) -> None:
        """Remove lanes from a path; those that stay, if any, continue behind this statement."""
        if lanes.count == path.lanes.count:
            self.paths.remove(path)
        else:
            path.lanes = Lanes(path.lanes.mask & ~lanes.mask)
            path.pc += 1

    def split(self, path: DivergentPath, parts: Sequence[Lanes]) -> list[DivergentPath]:
        """Make paths at this statement of parts of the lanes; the others continue behind it."""
        own = [DivergentPath(path.pc, path.frame, part, path.turns) for part in parts]
        self.leave(path, Lanes(np.logical_or.reduce([part.mask for part in parts])))
        self.paths += own
        return own

    def scatter(self, path: DivergentPath, lanes: Lanes, chosen: Values, targets: Sequence[int]) -> bool:
        """Branch each lane to the target that its value of ``chosen`` numbers; return True."""
        self.leave(path, lanes)
        for number in np.unique(chosen[lanes.index]).tolist():
            part = Lanes(lanes.mask & (chosen == number))
            self.paths.append(DivergentPath(targets[number], path.frame, part, path.turns))
        return True

    def call(self, path: DivergentPath, lanes: Lanes, entered: Sequence[DivergentPath]) -> bool:
        """Continue some lanes in other frames; they return behind this statement. Returns True."""
        self.leave(path, lanes)
        self.paths += entered
        for callee in entered:
            callee.frame.lanes += callee.lanes.count
        return True

    # --- waiting ---

    def wait(self, path: DivergentPath, lanes: Lanes, reason: object, *, behind: bool = True) -> bool:
        """Stop some lanes until they are woken; they continue behind this statement, or repeat it."""
        halted = DivergentPath(path.pc + behind, path.frame, lanes, path.turns)
        halted.waits = reason
        self.leave(path, lanes)
        self.waiting.append(halted)
        return True

    def waits_for(self, reason: object) -> bool:
        """Return whether any lanes wait for a reason."""
        return any(path.waits == reason for path in self.waiting)

    def wake(self, reason: object, mask: Mask) -> None:
        """Run the lanes of a mask again that wait for a reason."""
        left = list[DivergentPath]()
        for path in self.waiting:
            woken = path.lanes.mask & mask if path.waits == reason else None
            if woken is None or not woken.any():
                left.append(path)
                continue
            self.paths.append(DivergentPath(path.pc, path.frame, Lanes(woken), path.turns))
            path.lanes = Lanes(path.lanes.mask & ~mask)
            if path.lanes.count:
                left.append(path)
        self.waiting = left

    def release(self, halted: DivergentPath, mask: Mask) -> None:
        """Continue those of some waiting lanes that are in a mask behind their statement."""
        freed = Lanes(halted.lanes.mask & mask)
        if not freed.count:
            return
        self.paths.append(DivergentPath(halted.pc + 1, halted.frame, freed, halted.turns))
        halted.lanes = Lanes(halted.lanes.mask & ~mask)
        if not halted.lanes.count:
            self.waiting.remove(halted)
