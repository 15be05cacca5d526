"""The numbered barriers of CTAs: the lanes that have arrived at each, and when it is complete.

PTX ISA 9.1, section 9.7.13.1 "barrier": a barrier counts whole warps, and without a number of threads
waits for all of the CTA. Knows arrivals; the waiting itself is the wave's. The wave is handed to every
method, for a reference to it would keep its memories alive until Python collects garbage.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ....isa.warps import WARP
from ...state.lanes import DivergentPath, Lanes, Mask
from ...state.side_tables import SideTable
from ..events import BarrierArrival, Observer, observers_of
from ..wave import Wave
from .waits import BarrierWait, Deliver

_COUNT = 16  # of a CTA


class Barriers:
    """The barriers of all CTAs of a wave: ``arrived`` (barriers, CTAs) threads at each.

    ``here`` (barriers, lanes) marks them.
    """

    def __init__(self, wave: Wave) -> None:
        self.arrived = np.zeros((_COUNT, len(wave.ctas)), np.int64)
        self.here = np.zeros((_COUNT, wave.lanes), np.bool_)
        self.passed = np.zeros(len(wave.ctas), np.int64)  # how often all threads of each CTA have met

    @classmethod
    def of(cls, wave: Wave) -> Barriers:
        """Return the barriers of a wave."""
        return _BARRIERS.of(wave)

    def arrive(
        self, wave: Wave, path: DivergentPath, lanes: Lanes, reason: BarrierWait, *, waits: bool
    ) -> bool:
        """Make lanes arrive at a barrier of their CTAs; lanes that wait stop until it is complete.

        True where paths changed; ``reason.deliver`` is then called with the lanes that go on, and must be
        called by the caller if not. Raises Fault where more come than complete it.
        """
        number, threads = reason.number, reason.threads
        if observers_of(wave).hear(Observer.arriving):
            arrival = BarrierArrival(path=path, lanes=lanes, number=number, threads=threads, waits=waits)
            observers_of(wave).arriving(wave, arrival)
        if (
            waits
            and lanes.count == wave.alive
            and threads in (None, wave.threads)
            and not wave.scheduler.waiting
        ):
            self.passed += 1
            observers_of(wave).barrier(wave, number, np.arange(len(wave.ctas)), path)
            observers_of(wave).meeting(wave, number, lanes.mask, lanes.mask)
            return False
        self.arrived[number] += wave.count_of(lanes)
        self.here[number] |= lanes.mask
        if threads is not None:
            self._check_count(wave, path, lanes, reason)
        changed = wave.scheduler.wait(path, lanes, reason) if waits else False
        self._complete(wave, reason)
        return changed

    def withdraw(self, wave: Wave, lanes: Lanes, number: int) -> None:
        """Undo the arrival of lanes at a barrier."""
        self.arrived[number] -= wave.count_of(lanes)
        self.here[number] &= ~lanes.mask

    def look_again(self, wave: Wave) -> None:
        """Complete the barriers that lacked only lanes that have exited."""
        for wait in {path.waits for path in wave.scheduler.waiting if isinstance(path.waits, BarrierWait)}:
            self._complete(wave, wait)

    def counts(self, wave: Wave, cta: int) -> Iterator[str]:
        """Yield the threads of a CTA that have arrived at each barrier, and its thread count, in words."""
        reasons = [path.waits for path in wave.scheduler.waiting if isinstance(path.waits, BarrierWait)]
        for number, count in enumerate(self.arrived[:, cta].tolist()):
            alive = int(wave.alive_of_cta[cta])
            wanted = {reason.threads or alive for reason in reasons if reason.number == number}
            if count:
                yield f"barrier {number} has {count}{f' of {max(wanted)}' if wanted else ''} threads"

    def _check_count(self, wave: Wave, path: DivergentPath, lanes: Lanes, reason: BarrierWait) -> None:
        """Check that no lane that comes now is left over when the barrier is complete; raises Fault."""
        number, threads = reason.number, reason.threads
        count = self.arrived[number] + self._count_absent(wave, number)
        left = np.flatnonzero(count[wave.cta[lanes.index]] > threads)
        if left.size:
            lane = int(lanes.index[left[0]])
            came, record = int(count[wave.cta[lane]]), wave.code[path.pc]
            what = f"{came} threads come to barrier {number}, which is complete with {threads}"
            fix = f"let it expect {came}, or the others another barrier"
            message = f"{record.statement.mnemonic}: {what}: the rest would begin its next phase; {fix}"
            raise wave.fault(record, lane, message)

    def _complete(self, wave: Wave, wait: BarrierWait) -> None:
        """Wake the lanes of every CTA that has reached the number of threads."""
        number, arrived = wait.number, self.arrived[wait.number]
        if wait.threads is None:
            done = (arrived >= wave.alive_of_cta) & (arrived > 0)
        else:
            done = (arrived + self._count_absent(wave, number) >= wait.threads) & (arrived > 0)
        if not done.any():
            return
        arrived[done] = 0
        if wait.threads in (None, wave.threads):
            self.passed[done] += 1
        lanes = done[wave.cta]
        if observers_of(wave).hear(Observer.meeting):
            self._notify_of_meeting(wave, number, lanes)
        self.here[number] &= ~lanes
        observers_of(wave).barrier(wave, number, np.flatnonzero(done), None)
        _deliver(wave, number, lanes)
        for reason in {path.waits for path in _waiting(wave, number)}:
            wave.scheduler.wake(reason, lanes)

    def _notify_of_meeting(self, wave: Wave, number: int, done: Mask) -> None:
        """Notify observers of the lanes that arrived at a complete barrier, and of those that waited."""
        here = self.here[number] & done
        waited = [path.lanes.mask for path in _waiting(wave, number)]
        observers_of(wave).meeting(
            wave, number, here, np.logical_or.reduce([np.zeros_like(here), *waited]) & here
        )

    def _count_absent(self, wave: Wave, number: int) -> npt.NDArray[np.int64]:
        """Count the lanes of each CTA that count although they have exited, or are no threads: those of warps
        that are there, which is why thread counts are multiples of 32.
        """
        here = self.here[number]
        warps = np.repeat(here.reshape(-1, WARP).any(axis=1), WARP)
        return wave.count_of(Lanes(warps & ~here & ~wave.alive_mask))


_BARRIERS = SideTable(Barriers)


def _waiting(wave: Wave, number: int) -> list[DivergentPath]:
    """Return the paths that wait at a barrier."""
    return [
        path
        for path in wave.scheduler.waiting
        if isinstance(path.waits, BarrierWait) and path.waits.number == number
    ]


def _deliver(wave: Wave, number: int, done: Mask) -> None:
    """Deliver the result of a barrier to the lanes that continue."""
    for path in _waiting(wave, number):
        deliver: Deliver | None = path.waits.deliver  # type: ignore[attr-defined]
        part = Lanes(path.lanes.mask & done)
        if deliver is not None and part.count:
            deliver(wave, path, part, number)
