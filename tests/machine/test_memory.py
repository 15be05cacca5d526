"""Words at addresses of shared memory, and the swizzle of address bits."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsim.base.errors import OperandError
from warpsim.isa.layouts.swizzle import SWIZZLE_BYTES, pattern_bytes, swizzled
from warpsim.isa.memory import SHARED_BYTES, WORD_BYTES, load_words, store_words
from warpsim.programs.interactive.shared_memory import SharedMemory

MODES = tuple(SWIZZLE_BYTES)


def filled(size, seed=0):
    memory = SharedMemory(size)
    memory.data[:] = np.random.default_rng(seed).integers(0, 256, size)
    return memory


def raises(message):
    return pytest.raises(OperandError, match=f"^{re.escape(message)}$")


# --- sizes and views ---


@pytest.mark.parametrize("size", [1, 15, 1024, SHARED_BYTES])
def test_a_new_memory_is_zero_and_as_large_as_asked(size):
    memory = SharedMemory(size)
    assert len(memory) == size
    assert memory.data.dtype == np.uint8
    assert not memory.data.any()


def test_the_largest_memory_is_227_kib():
    assert SHARED_BYTES == 232_448


@pytest.mark.parametrize("size", [0, -1, SHARED_BYTES + 1])
def test_a_memory_of_another_size_is_refused(size):
    with raises(f"shared memory of {size} bytes: a CTA has 1 to 232448 (227 KiB)"):
        SharedMemory(size)


def test_a_view_is_the_memory_itself():
    memory = SharedMemory(64)
    memory.view(16, 4)[:] = [1, 2, 3, 4]
    assert memory.data[16:20].tolist() == [1, 2, 3, 4]
    assert np.shares_memory(memory.view(), memory.data)
    assert memory.view().shape == (64,)
    assert memory.view(60).shape == (4,)
    assert memory.view(64).shape == (0,)


@pytest.mark.parametrize(("address", "size"), [(0, 65), (60, 5), (-1, 2), (65, 0), (4, -1)])
def test_a_view_that_leaves_the_memory_is_refused(address, size):
    with raises(f"{size} bytes from {address:#x} leave shared memory of 64 bytes"):
        SharedMemory(64).view(address, size)


# --- loads and stores ---


@pytest.mark.parametrize("size", WORD_BYTES)
def test_every_word_of_every_size_is_its_bytes_in_little_endian_order(size):
    memory = filled(256, seed=size)
    addresses = np.arange(0, 256, size)
    words = memory.load(addresses, size)
    for address, word in zip(addresses, words.reshape(addresses.size, -1), strict=True):
        value = sum(int(half) << 64 * i for i, half in enumerate(word))
        assert value.to_bytes(size, "little") == memory.data[address : address + size].tobytes()


def test_a_16_byte_word_is_four_registers():
    memory = filled(64)
    words = memory.load([32, 0], 16)
    assert words.shape == (2, 2)
    assert np.array_equal(words.view(np.uint32)[0], memory.data[32:48].view(np.uint32))


@pytest.mark.parametrize("size", WORD_BYTES)
@given(data=st.data())
def test_a_load_gives_what_was_stored_and_nothing_else_changes(size, data):
    before = filled(128)
    memory = SharedMemory(128)
    memory.data[:] = before.data
    places = data.draw(st.lists(st.integers(0, 128 // size - 1), unique=True, max_size=8))
    addresses = np.array(places, np.uint32) * size
    shape = (len(places), 2) if size == 16 else (len(places),)
    dtype = np.dtype(f"u{min(size, 8)}")
    words = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    memory.store(addresses, words, size)
    assert np.array_equal(memory.load(addresses, size), words)
    untouched = np.setdiff1d(np.arange(128), (addresses[:, None] + np.arange(size)).ravel())
    assert np.array_equal(memory.data[untouched], before.data[untouched])


def test_addresses_of_any_shape_and_dtype_serve_a_batch_of_memories():
    batch = np.stack([filled(64, seed).data for seed in range(3)])
    addresses = np.array([[0, 8], [16, 56]], np.uint64)
    words = load_words(batch, addresses, 8)
    assert words.shape == (3, 2, 2)
    assert np.array_equal(words[2], load_words(batch[2], addresses, 8))
    store_words(batch, addresses, np.zeros((2, 2), np.uint64), 8)
    assert not load_words(batch, addresses, 8).any()


def test_a_memory_whose_size_is_no_multiple_of_the_word_serves_its_whole_words():
    memory = filled(15)
    assert memory.load([8], 4).view(np.uint8).tolist() == memory.data[8:12].tolist()
    with raises("an access loads 4 bytes at address 0xc, outside the 15 bytes of memory"):
        memory.load([12], 4)
    assert SharedMemory(1).load([], 8).shape == (0,)


def test_the_last_of_two_overlapping_stores_stays():
    memory = SharedMemory(16)
    memory.store([4, 4], np.array([1, 2], np.uint32), 4)
    assert memory.load([4], 4).tolist() == [2]


def test_one_word_can_be_stored_at_many_addresses():
    memory = SharedMemory(16)
    memory.store([0, 8], np.array(7, np.uint32), 4)
    assert memory.load([0, 4, 8], 4).tolist() == [7, 0, 7]


# --- errors ---


@pytest.mark.parametrize(("size", "address"), [(2, 1), (4, 2), (8, 4), (16, 8), (16, 1)])
def test_a_misaligned_address_is_refused(size, address):
    with raises(f"an access loads {size} bytes at address {address:#x}, no multiple of {size}"):
        SharedMemory(64).load([0, address], size)


def test_an_error_names_the_first_lane_at_fault():
    memory, addresses = SharedMemory(128), np.arange(32) * 4
    addresses[[5, 9]] = 6, 7
    with raises("lane 5 loads 4 bytes at address 0x6, no multiple of 4"):
        memory.load(addresses, 4, lanes=np.arange(32))
    with raises("lane 20 stores 16 bytes at address 0x80, outside the 128 bytes of memory"):
        memory.store(np.array([0, 128]), np.zeros((2, 2), np.uint64), 16, lanes=[3, 20])


@pytest.mark.parametrize("address", [128, 124 + 4096, -4, -128, 2**31, 2**63 - 4, 2**64 - 4])
def test_an_address_outside_is_refused_and_never_wraps(address):
    dtype = np.uint64 if address >= 2**63 else np.int64
    with raises(f"an access loads 4 bytes at address {address:#x}, outside the 128 bytes of memory"):
        SharedMemory(128).load(np.array([address], dtype), 4)


@pytest.mark.parametrize("size", WORD_BYTES)
def test_the_last_word_can_be_reached_and_the_next_cannot(size):
    memory = SharedMemory(64)
    memory.load([64 - size], size)
    with raises(f"an access loads {size} bytes at address 0x40, outside the 64 bytes of memory"):
        memory.load([64], size)


def test_a_word_larger_than_the_memory_is_refused():
    with raises("an access loads 8 bytes at address 0x0, outside the 4 bytes of memory"):
        SharedMemory(4).load(np.zeros(1, np.uint32), 8)


def test_a_refused_store_writes_nothing():
    memory = filled(64)
    before = memory.data.copy()
    with pytest.raises(OperandError):
        memory.store([0, 62], np.array([1, 2], np.uint32), 4)
    assert np.array_equal(memory.data, before)


@pytest.mark.parametrize("size", [0, 3, 32])
def test_other_word_sizes_are_refused(size):
    with raises(f"words of {size} bytes: a word has 1, 2, 4, 8 or 16"):
        SharedMemory(64).load([0], size)


def test_arguments_of_the_wrong_type_are_refused():
    memory = SharedMemory(64)
    with raises("addresses are integers, not float64"):
        memory.load([0.0], 4)
    with raises("words of 4 bytes are uint32 arrays, not int64"):
        memory.store([0], np.array([1]), 4)
    with raises("words of 16 bytes are uint64 arrays, not uint32"):
        memory.store([0], np.zeros((1, 4), np.uint32), 16)
    with raises("an array of shape (3,) cannot be stored as (2,): memories, addresses"):
        memory.store([0, 4], np.zeros(3, np.uint32), 4)
    with raises("a memory is a uint8 array (..., bytes), not a SharedMemory: pass its .data"):
        load_words(memory, [0], 4)
    with raises("a memory is a uint8 array (..., bytes), not int64 (64,)"):
        load_words(np.zeros(64, np.int64), [0], 4)
    with raises("a memory is a uint8 array (..., bytes), not a list"):
        load_words([0] * 64, [0], 4)
    with raises("the bytes of a memory must be contiguous: pass a copy"):
        load_words(np.zeros(64, np.uint8)[::2], [0], 4)


def test_a_read_only_memory_is_refused():
    memory = np.zeros(64, np.uint8)
    memory.flags.writeable = False
    with raises("the memory is read-only"):
        store_words(memory, [0], np.zeros(1, np.uint32), 4)


# --- swizzle ---

# Of each row of a pattern, the 16-byte chunk that lies at each place. PTX ISA 9.1, figures 156 to 163.
CHUNKS = {
    "none": ("0",) * 8,
    "32B": ("01",) * 4 + ("10",) * 4,
    "64B": ("0123",) * 2 + ("1032",) * 2 + ("2301",) * 2 + ("3210",) * 2,
    "128B": ("01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"),
}


@pytest.mark.parametrize("mode", MODES)
def test_the_swizzle_places_every_byte_as_the_figures_do(mode):
    width = SWIZZLE_BYTES[mode]
    for pattern in range(0, 4096, 8 * width):
        for row, chunks in enumerate(CHUNKS[mode]):
            for place, chunk in enumerate(map(int, chunks)):
                for byte in range(16):
                    before = pattern + row * width + chunk * 16 + byte
                    after = pattern + row * width + place * 16 + byte
                    assert swizzled(np.array(before), mode) == after


@pytest.mark.parametrize("mode", MODES)
def test_the_swizzle_undoes_itself_and_repeats_with_its_pattern(mode):
    addresses = np.arange(SHARED_BYTES)
    moved = swizzled(addresses, mode)
    assert np.array_equal(swizzled(moved, mode), addresses)
    assert np.array_equal(np.sort(moved), addresses)
    pattern = pattern_bytes(mode)
    assert np.array_equal(moved[pattern:] - pattern, moved[:-pattern])
