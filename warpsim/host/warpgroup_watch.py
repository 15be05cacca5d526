"""What a warpgroup reports of its statements: accesses, fences and barriers become events of its checkers.

An observer of the wave that executes them (checks/), which tells the ordering rules of hazards.py and the
races of races.py before anything takes effect. Does not know registers, or wgmma.mma_async itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..checks.hazards import HazardChecker
from ..checks.races import RaceChecker
from ..errors import NotModelled
from ..isa.warps import WARP
from ..machine.opcodes.matrix.wgmma_groups import Verb
from ..machine.run.events import Observer
from ..machine.run.wave import Wave
from ..machine.state.lanes import DivergentPath, Lanes
from ..machine.state.memory_access import MemoryAccess

if TYPE_CHECKING:
    from ..checks.hazard import Place

_PROXIES = ("async", "async.shared::cta", "async.shared::cluster")  # whose fence orders shared memory


def _place(wave: Wave) -> Place:
    return wave.code[0].statement.location


class WarpgroupWatch(Observer):
    """Tells two checkers of the statements of a wave of one warpgroup."""

    def __init__(self, checker: HazardChecker, races: RaceChecker) -> None:
        self.checker = checker
        self.races = races

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Words in shared memory are about to be loaded."""
        self.checker.shared_read(access.ranges, _place(wave))
        self.races.read(access.ranges, access.lane_of // WARP, _place(wave))

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Words in shared memory are about to be stored."""
        self.checker.shared_write(access.ranges, _place(wave))
        self.races.write(access.ranges, access.lane_of // WARP, _place(wave))

    def atomic(self, wave: Wave, access: MemoryAccess) -> None:
        """Words are about to be changed; atomics are in no race among themselves."""
        self.checker.shared_write(access.ranges, _place(wave))

    def barrier(self, wave: Wave, number: int, ctas: Any, path: DivergentPath | None) -> None:
        """A barrier is complete; one of some warps counts like one of all, so that no race is made up."""
        self.checker.barrier(_place(wave))
        self.races.barrier()

    def fence(self, wave: Wave, path: DivergentPath, lanes: Lanes, words: tuple[str, ...]) -> None:
        """A fence, of which that of the async proxy counts. Raises NotModelled for one of some lanes."""
        if words[:1] != ("proxy",) or ".".join(words[1:]) not in _PROXIES:
            return
        if not lanes.whole:
            mnemonic = wave.code[0].statement.mnemonic
            raise NotModelled(f"{mnemonic} is modelled where all lanes execute it, not some of them")
        self.checker.proxy_fence(_place(wave))

    def wgmma_order(self, wave: Wave, path: DivergentPath, groups: Any, verb: Verb, most: int) -> None:
        """wgmma.fence, commit_group or wait_group."""
        if verb == "fence":
            self.checker.fence(_place(wave))
        elif verb == "commit":
            self.checker.commit(_place(wave))
            self.races.commit()
        else:
            self.checker.wait(most, _place(wave))
            self.races.wait(most)
