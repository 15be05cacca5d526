"""The device heap: blocks, the limit, and places that are used again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsim.base.errors import Location
from warpsim.machine.state.heap import HEAP_BYTES, Heap
from warpsim.machine.state.spaces import DeviceMemory

HERE = Location("k.ptx", 3)


def heap(limit: int = HEAP_BYTES) -> Heap:
    return Heap(DeviceMemory(), limit)


def test_blocks_are_aligned_and_unwritten() -> None:
    one = heap()
    addresses = [one.allocate(size, HERE) for size in (1, 16, 100)]
    assert all(address % 16 == 0 and address for address in addresses)
    assert len(set(addresses)) == 3
    assert one._memory.fresh is not None
    assert [one.blocks[address].location for address in addresses] == [HERE] * 3


def test_beyond_the_limit_is_a_null_pointer() -> None:
    one = heap(64)
    first = one.allocate(48, HERE)
    assert first
    assert one.allocate(32, HERE) == 0
    assert one.free(first)
    assert one.allocate(64, HERE) != 0


def test_no_bytes_are_a_null_pointer() -> None:
    assert heap().allocate(0, HERE) == 0


@pytest.mark.parametrize("offset", [16, -16, 1])
def test_only_the_start_of_a_block_is_freed(offset: int) -> None:
    one = heap()
    address = one.allocate(64, HERE)
    assert not one.free(address + offset)
    assert one.free(address)
    assert not one.free(address)


def test_a_loop_of_malloc_and_free_takes_one_place() -> None:
    one = heap()
    addresses = {one.allocate(24, HERE) for _ in range(100) if one.free(one.allocate(24, HERE)) or True}
    assert len(one._memory.allocations) == len(one.blocks) == len(addresses)
    assert one._memory.data.size < 1 << 17


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 200)), max_size=60))
def test_blocks_in_use_never_overlap(steps: list[tuple[bool, int]]) -> None:
    one, live = heap(4096), list[int]()
    for gives, size in steps:
        if gives or not live:
            address = one.allocate(size, HERE)
            live += [address] if address else []
        else:
            assert one.free(live.pop(size % len(live)))
        blocks = sorted((block.allocation for block in one.blocks.values()), key=lambda block: block.address)
        assert all(a.address + a.size <= b.address for a, b in pairwise(blocks))
        assert one.used == sum(-(-block.size // 16) * 16 for block in blocks) <= 4096


def test_releasing_a_launch_keeps_the_heap() -> None:
    memory = DeviceMemory()
    memory.allocate(16, "argument of the user")
    one = Heap(memory)
    memory.allocate(256, "array of the launch")
    address = one.allocate(32, HERE)
    memory.release(1, one.blocks)
    assert [block.name for block in memory.allocations] == ["argument of the user", "malloc(32)"]
    assert memory.allocate(16).address > address
