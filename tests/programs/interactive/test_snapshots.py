"""Shared memory as it was at a moment: whatever is written is seen, and nothing is copied without need."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.programs.interactive import shared_memory
from warpsim.programs.interactive.machines import Warpgroup
from warpsim.programs.interactive.shared_memory import SharedMemory
from warpsim.sums.execution.pipeline import execute_inputs

ACCUMULATOR = "{" + ", ".join(f"%c{i}" for i in range(32)) + "}"
WGMMA = f"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {ACCUMULATOR}, %x, %y, 1, 1, 1, 0, 0;"
ORDER = "wgmma.fence.sync.aligned; fence.proxy.async;"
CLOSE = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


def multiplier(**settings: Any) -> Warpgroup:
    """A warpgroup whose descriptors point at bytes 0 and 4096."""
    machine = Warpgroup(**settings)
    for name, start in (("%x", 0), ("%y", 4096)):
        tile = canonical_descriptor(start, TileShape(mn=64, k=16, element_bits=16, major="K"), swizzle="none")
        machine[name] = np.uint64(tile.encode())
    machine["%c<32>"] = np.float32(0)
    return machine


class Watched:
    """NumPy, with comparisons of whole arrays counted."""

    def __init__(self) -> None:
        self.comparisons = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def array_equal(self, first: Any, second: Any) -> bool:
        self.comparisons += 1
        return np.array_equal(first, second)


def test_memory_that_nobody_can_have_written_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    monkeypatch.setattr(shared_memory, "np", watched)
    group = multiplier()
    events = group.run(f"{ORDER} {WGMMA * 8} {CLOSE}")
    assert watched.comparisons == 0
    assert len({id(event.inputs.shared) for event in events}) == 1
    group.shared.data[0] = 1
    events = group.run(f"{ORDER} {WGMMA * 8} {CLOSE}")
    assert watched.comparisons == 1


WRITES = {
    "an element": lambda data: data.__setitem__(3, 9),
    "a view": lambda data: data[4:].view(np.uint16).reshape(2, -1).__setitem__((0, 0), 9),
    "copyto": lambda data: np.copyto(data, 9),
    "out": lambda data: np.add(data, 9, out=data),
    "fill": lambda data: data.fill(9),
    "flat": lambda data: data.flat.__setitem__(3, 9),
    "memoryview": lambda data: memoryview(data).__setitem__(3, 9),
    "frombuffer": lambda data: np.frombuffer(data, np.uint32).__setitem__(3, 9),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("kept", [True, False])
def test_whatever_is_written_is_seen(write: Any, kept: bool) -> None:
    memory = SharedMemory(64)
    held = memory.data if kept else None
    before = memory.snapshot()
    write(memory.data if held is None else held)
    after = memory.snapshot()
    assert not before.any()
    assert after.any()
    assert np.array_equal(after, memory.data)
    assert memory.snapshot() is after


@pytest.mark.parametrize(
    "derive",
    [
        lambda data: data[4:],
        lambda data: data.view(np.uint16)[::2],
        lambda data: np.asarray(data)[8:].reshape(7, 8).T,
        lambda data: np.frombuffer(memoryview(data), np.uint8),
        lambda data: np.lib.stride_tricks.as_strided(data, (8,), (1,)),
        lambda data: data.flat,
        memoryview,
    ],
)
def test_a_part_that_is_kept_can_write_at_any_time(derive: Any) -> None:
    memory = SharedMemory(64)
    part = derive(memory.data)
    for value in (1, 2, 3):
        before = memory.snapshot()
        index = (0, 0) if getattr(part, "ndim", 1) == 2 else 0
        part[index] = value
        assert memory.snapshot() is not before
        assert value in memory.snapshot()


def test_stores_and_views_are_seen_and_equal_bytes_are_one_copy() -> None:
    memory = SharedMemory(64)
    first = memory.snapshot()
    memory.store([8], np.array([5], np.uint32), 4)
    second = memory.snapshot()
    memory.view(0, 4)[:] = 1
    third = memory.snapshot()
    memory.view(0, 4)[:] = 1
    assert memory.snapshot() is third
    assert [int(one.sum()) for one in (first, second, third)] == [0, 5, 9]
    assert not any(one.flags.writeable for one in (first, second, third))


def test_a_copy_of_a_memory_is_another_memory() -> None:
    memory = SharedMemory(64)
    held = memory.data
    other = copy.deepcopy(memory)
    other.data[0] = 1
    assert not held.any()
    assert not memory.snapshot().any()
    held[1] = 1
    assert other.snapshot().tolist()[:3] == [1, 0, 0]


@pytest.mark.parametrize("kept", [True, False])
def test_events_hold_the_memory_of_their_moment(kept: bool) -> None:
    group, random = multiplier(shared_bytes=8192, hazards="off"), np.random.default_rng(1)
    held = group.shared.data if kept else None
    events, memories = [], []
    for _ in range(3):
        data = group.shared.data if held is None else held
        data.view(np.float16)[:] = random.standard_normal(4096)
        memories.append(data.copy())
        del data
        events += group.run(WGMMA)
    group.shared.data[:] = 0
    group["%c<32>"] = np.float32(0)
    for event, memory in zip(events, memories, strict=True):
        assert np.array_equal(event.inputs.shared, memory)
        assert np.array_equal(execute_inputs(event.instruction, event.inputs, "reference"), event.d)
