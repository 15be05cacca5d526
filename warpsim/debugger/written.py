"""Bytes that a session watches, and what writes them: lanes by a statement, or an operation that completes.

Knows memories and offsets; does not know why they are watched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..machine.grid import Launch
from ..machine.run.pending import Pending
from ..machine.run.wave import Wave
from ..machine.state.memory_access import MemoryAccess
from ..machine.state.spaces import Bytes


class Running(Protocol):
    """An execution, as far as its memories are concerned."""

    time: int
    launch: Launch | None
    waves: list[Wave | None]
    watched: Sequence[Area]


@dataclass(frozen=True, kw_only=True)
class Area:
    """``size`` bytes of a memory from ``first`` on: "global" as a place in the memory of the device, "shared"
    or "local" in that of wave number ``wave``.
    """

    space: str
    first: int
    size: int
    wave: int = -1

    def memory(self, execution: Running) -> Bytes | None:
        """Return the memory; None of a wave that has not begun, or has ended."""
        if self.space == "global":
            return None if execution.launch is None else execution.launch.device.memory.data
        wave = execution.waves[self.wave] if self.wave < len(execution.waves) else None
        return None if wave is None else memory_of(wave, self.space)

    def read(self, execution: Running) -> bytes | None:
        """Return its bytes now; None where there is no such memory."""
        memory = self.memory(execution)
        return None if memory is None else memory[self.first : self.first + self.size].tobytes()


@dataclass(frozen=True, kw_only=True)
class Written:
    """A write to an area: ``lanes`` are those that write, of a copy the lane that has issued it."""

    area: Area
    time: int  # of the statement
    lanes: tuple[int, ...]
    copy: Pending | None = None


def memory_of(wave: Wave, space: str) -> Bytes:
    """Return a memory of a wave: "shared", "local", else that of the device."""
    memories = wave.memories
    return {"shared": memories.shared, "local": memories.local}.get(space, memories.device.data)


def written_by_lanes(execution: Running, wave: Wave, access: MemoryAccess) -> Iterator[Written]:
    """Yield the watched areas that a statement writes to."""
    for area in execution.watched:
        if not _is_in(execution, area, wave) or access.memory is not memory_of(wave, area.space):
            continue
        first, past = access.offsets, access.offsets + access.size
        hits = (first < area.first + area.size) & (past > area.first)
        if hits.any():
            lanes = tuple(np.unique(access.lane_of[hits]).tolist())
            yield Written(area=area, time=execution.time - 1, lanes=lanes)


def written_by_copy(execution: Running, wave: Wave, pending: Pending) -> Iterator[Written]:
    """Yield the watched areas that an operation has written to."""
    for area in execution.watched:
        if not _is_in(execution, area, wave):
            continue
        for stretches in pending.writes:
            first, past = stretches.ranges[:, 0], stretches.ranges[:, 1]
            inside = (first < area.first + area.size) & (past > area.first)
            if stretches.space == area.space and inside.any():
                yield Written(area=area, time=execution.time - 1, lanes=(pending.lane,), copy=pending)


def _is_in(execution: Running, area: Area, wave: Wave) -> bool:
    return area.space == "global" or (area.wave < len(execution.waves) and execution.waves[area.wave] is wave)
