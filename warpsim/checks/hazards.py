"""The ordering rules of asynchronous wgmma: which statement came too early, and what to insert before it.

Knows byte ranges of shared memory and places in a text, as events of one warpgroup in program order, whose
registers and groups are register_order.py's business. Knows neither PTX syntax nor numbers. Section numbers
are those of PTX ISA 9.1: 9.7.15.4 async proxy, 9.7.15.5 wgmma.mma_async, 9.7.15.7.1 to .3 wgmma.fence,
commit_group and wait_group.

Every event has a number, its step, and what is not ordered yet is what lies behind one of four marks:

    a wgmma is in flight              until a wait completes its wgmma-group     step > completed
    a wgmma is in no wgmma-group      until the next commit_group                step > committed
    a register access is unordered    until the next wgmma.fence                 step > fenced
    a generic store is unordered      until the next fence.proxy.async           step > proxied

so a register or a byte only remembers its newest use of each sort. That is enough because marks move
forward only, and groups complete in the order of their commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np

from .hazard import (
    Hazard,
    HazardError,
    Integers,
    Kind,
    Mode,
    Place,
    differing,
    overwritten,
    resolved,
    runs_of,
    unproxied,
)
from .register_order import RegisterOrder

__all__ = ["Hazard", "HazardChecker", "HazardError", "Mode", "Place", "resolved"]

Proxy = Literal["generic", "async"]
ByteRanges = Sequence[tuple[int, int]] | Integers  # (n, 2): the first byte, the byte after the last
Stretches = list[slice]  # the same, none of them empty

_SHARED_BYTES = 1 << 18  # what the 14-bit start address of a matrix descriptor can reach


class HazardChecker:
    """The asynchronous state of one warpgroup, told of every statement just before it takes effect.

    ``mode`` "error" raises HazardError at the first error, and leaves the state as it was before that
    event; "warn" only collects; "off" does nothing at all. Warnings never raise. ``hazards`` are those
    collected, each of them once: the turns of a loop do not repeat it.

    Register names are compared as they are: the caller makes those of inner scopes unique. Byte ranges
    must lie within ``shared_bytes``. That a bulk copy has completed (mbarrier) is not checked. Events of
    registers and groups are those of RegisterOrder.
    """

    def __init__(self, mode: Mode = "error", shared_bytes: int = _SHARED_BYTES) -> None:
        self.mode: Mode = mode
        self._found: dict[Hazard, None] = {}
        self._order = RegisterOrder(self._report)
        self._proxied = 0
        self._stores: dict[int, Place] = {}  # generic stores since the last fence.proxy.async, by step
        self._stored: Integers = np.zeros(0 if mode == "off" else shared_bytes, np.int64)
        self._read: Integers = np.zeros_like(self._stored)  # by wgmma; both hold a step for every byte

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """What has been collected, in program order."""
        return tuple(self._found)

    # --- events: find, report, then change the state ---

    def access(self, registers: Iterable[str], kind: Kind, place: Place) -> None:
        """Registers are read or written, by anything but the D, A and metadata operands of a wgmma."""
        if self.mode != "off":
            self._order.access(registers, kind, place)

    def wgmma(
        self,
        shape: str,
        *,
        d: Sequence[str],
        place: Place,
        a: Sequence[str] = (),
        metadata: str | None = None,
        shared: ByteRanges = (),
        accumulate: bool = True,
    ) -> None:
        """wgmma.mma_async with D, perhaps A and metadata in registers, reading ranges of shared memory."""
        if self.mode == "off":
            return
        stretches = self._stretches(shared)
        step = self._order.wgmma(
            shape,
            d=d,
            place=place,
            a=a,
            metadata=metadata,
            accumulate=accumulate,
            late=self._unproxied(stretches, place),
        )
        for stretch in stretches:
            self._read[stretch] = step

    def fence(self, place: Place) -> None:
        """wgmma.fence."""
        if self.mode != "off":
            self._order.fence()

    def commit(self, place: Place) -> None:
        """wgmma.commit_group."""
        if self.mode != "off":
            self._order.commit()

    def wait(self, n: int, place: Place) -> None:
        """wgmma.wait_group n."""
        if self.mode != "off":
            self._order.wait(n, place)

    def shared_write(self, ranges: ByteRanges, place: Place, proxy: Proxy = "generic") -> None:
        """Bytes are written: through the generic proxy by st, stmatrix, cp.async; async by bulk copies.

        That the bytes of a wgmma in flight must stay as they are follows from its being asynchronous;
        9.7.15.7.3 does not name them. An async write over a generic one leaves the latter unordered.
        """
        if self.mode == "off":
            return
        stretches = self._stretches(ranges)
        self._report(list(self._overwritten(stretches, place)))
        self._order.step += 1
        if proxy == "generic":
            self._stores[self._order.step] = place
            for stretch in stretches:
                self._stored[stretch] = self._order.step

    def shared_read(self, ranges: ByteRanges, place: Place, proxy: Proxy = "generic") -> None:
        """Bytes are read. That a wgmma in flight reads them too does no harm; crossing proxies does."""
        if self.mode != "off" and proxy == "async":
            self._report(list(self._unproxied(self._stretches(ranges), place)))

    def proxy_fence(self, place: Place) -> None:
        """fence.proxy.async, of shared memory at least: the async proxy sees the generic stores before it."""
        if self.mode != "off":
            self._proxied = self._order.step = self._order.step + 1
            self._stores.clear()

    def barrier(self, place: Place) -> None:
        """bar.sync: completes no wgmma, orders no proxies and no registers; nothing changes.

        Nor is its absence reported: 9.7.15 has wgmma.fence "indicate that the register/shared-memory
        across the warpgroup have been written into", and this warpgroup runs its warps in step.
        """

    def uniform(self, what: str, values: Iterable[int], place: Place) -> None:
        """An operand that must not differ: its four values, one a warp, or 128, one a lane.

        9.7.15.5: "The contents of a matrix descriptor must be same across all the warps in the
        warpgroup". Selectors are constants in PTX text.
        """
        if self.mode != "off":
            self._report(list(differing(what, [int(value) for value in values], place)))

    def finish(self, place: Place) -> None:
        """The end of the program."""
        if self.mode != "off":
            self._order.finish(place)

    # --- state ---

    def _report(self, hazards: Sequence[Hazard]) -> None:
        """Raise the first error where errors raise; otherwise collect."""
        for hazard in hazards:
            if self.mode == "error" and hazard.severity == "error":
                raise HazardError(hazard)
        self._found.update(dict.fromkeys(hazards))

    def _stretches(self, ranges: ByteRanges) -> Stretches:
        """The ranges, joined where one begins at the end of the one before."""
        bounds = np.asarray(ranges, np.int64).reshape(-1, 2)
        if not bounds.size:
            return []
        inside = (bounds >= 0) & (bounds <= self._stored.size) & (bounds[:, :1] <= bounds[:, 1:])
        assert inside.all(), f"byte ranges {bounds.tolist()} do not lie within 0..{self._stored.size}"
        apart = np.flatnonzero(bounds[1:, 0] != bounds[:-1, 1])
        starts, stops = bounds[[0, *(apart + 1)], 0].tolist(), bounds[[*apart, -1], 1].tolist()
        return [slice(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]

    # --- rules about shared memory ---

    def _overwritten(self, stretches: Stretches, place: Place) -> Iterator[Hazard]:
        latest, completed = _latest(self._read, stretches), self._order.completed
        if latest > completed:
            operation = self._order.operations[latest]
            ranges = runs_of(_after(self._read, stretches, completed))
            yield overwritten(ranges, operation.place, self._order.cause(operation, place), place)

    def _unproxied(self, stretches: Stretches, place: Place) -> Iterator[Hazard]:
        latest = _latest(self._stored, stretches)
        if latest > self._proxied:
            ranges = runs_of(_after(self._stored, stretches, self._proxied))
            yield unproxied(ranges, self._stores[latest], place)


def _latest(steps: Integers, stretches: Stretches) -> int:
    """The highest step of any byte."""
    return max((int(steps[stretch].max()) for stretch in stretches), default=0)


def _after(steps: Integers, stretches: Stretches, mark: int) -> Integers:
    """The addresses whose step lies behind a mark."""
    return np.concatenate([one.start + np.flatnonzero(steps[one] > mark) for one in stretches])
