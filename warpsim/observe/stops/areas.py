"""Bytes that a session watches, and what writes them: lanes by a statement, or an operation that completes.

Knows memories and offsets; does not know why they are watched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ...isa.layouts.tensor_memory import COLUMNS, LANES
from ...machine.grid import Launch
from ...machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ...machine.run.events import TensorAccess
from ...machine.run.pending import Pending
from ...machine.run.wave import Record, Wave
from ...machine.state.memory_access import MemoryAccess
from ...machine.state.spaces import Bytes
from ...machine.state.tensor_cells import Block


class Running(Protocol):
    """An execution, as far as its memories are concerned."""

    time: int
    launch: Launch | None
    waves: list[Wave | None]

    @property
    def writes(self) -> Writes:
        """What was written to watched areas since the last statement."""


@dataclass(frozen=True, kw_only=True)
class Area:
    """``size`` bytes of a memory from ``first`` on: "global" as a place in the memory of the device,
    "shared", "local" or "tmem" (tensor memory) in that of wave number ``wave``.
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
        """Return its bytes now; None where there is no such memory, and of a cell that was never written."""
        memory = self.memory(execution)
        if memory is None or (self.space == "tmem" and not self._is_written(execution)):
            return None
        return memory[self.first : self.first + self.size].tobytes()

    def _is_written(self, execution: Running) -> bool:
        wave = execution.waves[self.wave]
        return wave is not None and bool(TENSOR_MEMORY.of(wave).written[self.cell])

    @property
    def cell(self) -> tuple[int, int, int]:
        """Return CTA of the wave, lane and column of a cell of tensor memory."""
        cta, rest = divmod(self.first // CELL, LANES * COLUMNS)
        return cta, *divmod(rest, COLUMNS)


@dataclass(frozen=True, kw_only=True)
class Issued:
    """A copy of ``kind`` that the statement ``record`` has issued, and that writes later."""

    kind: str
    record: Record


@dataclass(frozen=True, kw_only=True)
class Written:
    """A write to an area: ``lanes`` are those that write, of a copy the lane that has issued it."""

    area: Area
    time: int  # of the statement
    lanes: tuple[int, ...]
    copy: Pending | Issued | None = None


class Writes:
    """What is written to ``watched`` areas of an execution: ``found`` since it was last cleared."""

    def __init__(self, execution: Running) -> None:
        self.watched: Sequence[Area] = ()
        self.found: list[Written] = []
        self._execution = execution
        self._copied: dict[Area, Record] = {}  # the latest cp.async to an area
        self._touched: dict[
            tuple[int, int], list[Area]
        ] = {}  # what a lane of a wave issues next writes these
        self._flying: dict[Pending, list[Area]] = {}

    def by_lanes(self, wave: Wave, access: MemoryAccess) -> None:
        """Note what lanes are about to write."""
        self.found += _written_by_lanes(self._execution, self.watched, wave, access)

    def copying(self, wave: Wave, access: MemoryAccess) -> None:
        """Note which statement has begun to copy to an area."""
        for written in _written_by_lanes(self._execution, self.watched, wave, access):
            self._copied[written.area] = wave.code[access.path.pc]

    def landed(self, wave: Wave, access: MemoryAccess) -> None:
        """Note copies of lanes that write now."""
        for written in _written_by_lanes(self._execution, self.watched, wave, access):
            record = self._copied.get(written.area)
            issued = None if record is None else Issued(kind="cp.async", record=record)
            self.found.append(replace(written, copy=issued))

    def tensor_access(self, wave: Wave, access: TensorAccess) -> None:
        """Note which areas the operation writes that is issued next."""
        areas = [area for area in self.watched if _holds(self._execution, area, wave, access.writes)]
        if areas:
            self._touched[id(wave), access.lane] = areas

    def issued(self, wave: Wave, pending: Pending) -> None:
        """Note an operation that writes tensor memory."""
        areas = self._touched.pop((id(wave), pending.lane), None)
        if areas:
            self._flying[pending] = areas

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Note what an operation has written."""
        self.found += _written_by_copy(self._execution, self.watched, wave, pending)
        for area in self._flying.pop(pending, ()):
            time = self._execution.time - 1
            self.found.append(Written(area=area, time=time, lanes=(pending.lane,), copy=pending))


def memory_of(wave: Wave, space: str) -> Bytes:
    """Return a memory of a wave: "shared", "local", "tmem", else that of the device."""
    if space == "tmem":
        cells: Bytes = TENSOR_MEMORY.of(wave).cells.reshape(-1).view(np.uint8)
        return cells
    memories = wave.memories
    return {"shared": memories.shared, "local": memories.local}.get(space, memories.device.data)


def _written_by_lanes(
    execution: Running, watched: Sequence[Area], wave: Wave, access: MemoryAccess
) -> Iterator[Written]:
    """Yield the watched areas that a statement writes to."""
    for area in watched:
        if not _is_in(execution, area, wave) or access.memory is not memory_of(wave, area.space):
            continue
        first, past = access.offsets, access.offsets + access.size
        hits = (first < area.first + area.size) & (past > area.first)
        if hits.any():
            lanes = tuple(np.unique(access.lane_of[hits]).tolist())
            yield Written(area=area, time=execution.time - 1, lanes=lanes)


def _written_by_copy(
    execution: Running, watched: Sequence[Area], wave: Wave, pending: Pending
) -> Iterator[Written]:
    """Yield the watched areas that an operation has written to."""
    for area in watched:
        if not _is_in(execution, area, wave):
            continue
        for stretches in pending.writes:
            first, past = stretches.ranges[:, 0], stretches.ranges[:, 1]
            inside = (first < area.first + area.size) & (past > area.first)
            if stretches.space == area.space and inside.any():
                yield Written(area=area, time=execution.time - 1, lanes=(pending.lane,), copy=pending)


def _holds(execution: Running, area: Area, wave: Wave, blocks: Sequence[Block]) -> bool:
    """Return whether an area is a cell of blocks of tensor memory."""
    if area.space != "tmem" or not _is_in(execution, area, wave):
        return False
    return any(_has(block, *area.cell) for block in blocks)


def _has(block: Block, cta: int, lane: int, column: int) -> bool:
    lanes, columns = block.lanes, block.columns
    if block.cta != cta or not (lanes.start <= lane < lanes.stop and columns.start <= column < columns.stop):
        return False
    return block.mask is None or bool(block.mask[column - columns.start, lane - lanes.start])


CELL = 4  # bytes of a cell of tensor memory


def _is_in(execution: Running, area: Area, wave: Wave) -> bool:
    return area.space == "global" or (area.wave < len(execution.waves) and execution.waves[area.wave] is wave)
