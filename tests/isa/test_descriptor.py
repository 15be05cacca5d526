"""Matrix descriptors: the word, the address of every element, packed tiles, and diagnosis.

The address map is derived a second and a third time here, sharing nothing with the package: by walking over
memory atom by atom with the manual's figures written out (``walk``), and by evaluating the canonical layouts
as the manual prints them (``evaluate``).
"""

import re
from dataclasses import replace
from itertools import combinations, product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.helpers.families import each_of, sample
from warpsim.base.errors import NotModelled, OperandError
from warpsim.isa.descriptors.matrix_descriptor import Descriptor
from warpsim.isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor, canonical_image
from warpsim.isa.descriptors.tile_addresses import load_tile, store_tile, tile_addresses, touched_bytes
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.memory import SHARED_BYTES
from warpsim.programs.interactive.shared_memory import SharedMemory
from warpsim.workbench.diagnosis.descriptors.described_tiles import diagnose

ROW = {"none": 16, "32B": 32, "64B": 64, "128B": 128}
MODES = [
    *(("K", swizzle, size) for swizzle in ROW for size in (1, 2, 4)),
    *(("MN", swizzle, 2) for swizzle in ROW),
]
EXTENTS = range(8, 257, 8)  # N of every wgmma; M is 64

all_modes = pytest.mark.parametrize(("major", "swizzle", "size"), MODES)


def random_tile(mn, k, size, seed=0):
    codes = np.random.default_rng(seed).integers(0, 256, (mn, k, size), dtype=np.uint8)
    return codes.view(f"u{size}")[..., 0]


def random_memory(size=SHARED_BYTES, seed=1):
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


def request(mn, k, size, major):
    return TileShape(mn=mn, k=k, element_bits=8 * size, major=major)


def read(memory, descriptor, tile, major, **more):
    return load_tile(memory, descriptor, TileShape.of(tile, major), **more).view(tile.dtype)


def raises(kind, message):
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


# --- second derivation: a walk over memory, atom by atom -----------------------------------------------

# The 16-byte chunk of the row that lies at each place of it, row by row (PTX ISA 9.1, figures 156 to 163).
CHUNKS = {
    "none": ("0",) * 8,
    "32B": ("01",) * 4 + ("10",) * 4,
    "64B": ("0123",) * 2 + ("1032",) * 2 + ("2301",) * 2 + ("3210",) * 2,
    "128B": ("01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"),
}


def walk_atom(address, swizzle, size):
    """(address, row, position in the row) of every element of one atom of eight rows."""
    for row, chunks in enumerate(CHUNKS[swizzle]):
        for chunk in map(int, chunks):
            for element in range(16 // size):
                yield address, row, chunk * (16 // size) + element
                address += size


def walk(start, mn, k, size, major, swizzle, between_mn, between_k):
    """The address of each element (mn, k), atoms being so many bytes apart along either dimension."""
    addresses = np.full((mn, k), -1)
    row = ROW[swizzle] // size
    height, breadth = (8, row) if major == "K" else (row, 8)
    for i, j in product(range(-(-mn // height)), range(-(-k // breadth))):
        origin = start + i * between_mn + j * between_k
        for address, across, along in walk_atom(origin, swizzle, size):
            element = (across, along) if major == "K" else (along, across)
            place = (i * height + element[0], j * breadth + element[1])
            if place[0] < mn and place[1] < k:
                assert addresses[place] == -1
                addresses[place] = address
    assert (addresses >= 0).all()
    return addresses


def strides(major, swizzle, between_mn, between_k):
    """(LBO, SBO) as the manual's two tables of strides define them."""
    if major == "K":
        return (between_k if swizzle == "none" else 16), between_mn
    return (between_k, between_mn) if swizzle == "none" else (between_mn, between_k)


@each_of([(*mode, extent) for mode in MODES for extent in EXTENTS], parts=2)
def test_every_element_of_every_packed_tile_is_where_the_walk_finds_it(major, swizzle, size, extent):
    k, start = 32 // size, 3072
    descriptor = canonical_descriptor(start, request(extent, k, size, major), swizzle=swizzle)
    atom, across = 8 * ROW[swizzle], (8 if major == "K" else ROW[swizzle] // size)
    between_k = atom * -(-extent // across)
    expected = walk(start, extent, k, size, major, swizzle, atom, between_k)
    addresses = tile_addresses(descriptor, request(extent, k, size, major))
    assert addresses.shape == (extent, k)
    assert np.array_equal(addresses, expected)


@all_modes
@given(data=st.data())
def test_every_element_is_where_the_walk_finds_it_for_any_strides(major, swizzle, size, data):
    pattern = 8 * ROW[swizzle] if swizzle != "none" else 16
    between = st.integers(0, 20).map(lambda count: count * pattern)
    mn, k = data.draw(st.sampled_from([8, 24, 64])), 32 // size
    start, between_mn, between_k = data.draw(between), data.draw(between), data.draw(between)
    leading, stride = strides(major, swizzle, between_mn, between_k)
    descriptor = Descriptor(
        start_address=start, leading_byte_offset=leading, stride_byte_offset=stride, swizzle=swizzle
    )
    expected = walk(start, mn, k, size, major, swizzle, between_mn, between_k)
    assert np.array_equal(tile_addresses(descriptor, request(mn, k, size, major)), expected)


@pytest.mark.parametrize(("swizzle", "size"), list(product(["32B", "64B", "128B"], [1, 2, 4])))
def test_steps_along_k_inside_a_row_read_the_next_columns(swizzle, size):
    whole = walk(2048, 64, ROW[swizzle] // size, size, "K", swizzle, 8 * ROW[swizzle], 0)
    first = Descriptor(start_address=2048, stride_byte_offset=8 * ROW[swizzle], swizzle=swizzle)
    k = 32 // size
    for step in range(ROW[swizzle] // 32):
        part = tile_addresses(first.advanced(32 * step), request(64, k, size, "K"))
        assert np.array_equal(part, whole[:, step * k : (step + 1) * k])


@pytest.mark.parametrize("swizzle", ["64B", "128B"])
def test_the_wider_b_of_sparse_forms_takes_64_bytes_of_a_row(swizzle):
    whole = walk(0, 32, ROW[swizzle] // 2, 2, "K", swizzle, 8 * ROW[swizzle], 0)
    first = Descriptor(start_address=0, stride_byte_offset=8 * ROW[swizzle], swizzle=swizzle)
    for start in range(0, ROW[swizzle] - 63, 32):
        part = tile_addresses(first.advanced(start), request(32, 32, 2, "K"))
        assert np.array_equal(part, whole[:, start // 2 : start // 2 + 32])


@all_modes
def test_a_packed_tile_is_a_bijection_onto_its_bytes(major, swizzle, size):
    mn, k = 256, ROW[swizzle] // size if major == "K" else 32
    shape = request(mn, k, size, major)
    descriptor = canonical_descriptor(0, shape, swizzle=swizzle)
    addresses = tile_addresses(descriptor, shape)
    assert np.array_equal(np.sort(addresses, axis=None), np.arange(0, mn * k * size, size))
    assert canonical_bytes(shape, swizzle=swizzle) == mn * k * size
    assert touched_bytes(descriptor, shape).tolist() == [[0, mn * k * size]]


# --- third derivation: the manual's canonical layouts --------------------------------------------------


def evaluate(shape, stride, index):
    """A CuTe layout at an index: the first mode runs fastest."""
    if isinstance(shape, int):
        return index * stride
    total = 0
    for i, (extent, step) in enumerate(zip(shape, stride, strict=True)):
        size = int(np.prod(np.array(extent)))
        last = i == len(shape) - 1
        total += evaluate(extent, step, index if last else index % size)
        index //= size
    return total


def cute_swizzle(bits, offset):
    """Swizzle<bits, 4, 3> of a byte offset, digit by digit."""
    digits = [offset >> i & 1 for i in range(20)]
    for i in range(bits):
        digits[4 + i] ^= digits[7 + i]
    return sum(digit << i for i, digit in enumerate(digits))


# section 9.7.15.5.1.2.1.3: swizzle bits, rows and columns of the exact layouts; bytes of element, LBO, SBO
EXAMPLES = [
    ("K", "none", 0, ((8, 2), (4, 32)), ((4, 4), (1, 64)), 4, 64 * 4, 32 * 4),
    ("MN", "none", 0, ((8, 1, 2), (1, 8, 64)), ((8, 2), (8, 128)), 2, 128 * 2, 64 * 2),
    ("MN", "32B", 1, ((8, 2, 2), (1, 8, 128)), ((8, 2), (16, 256)), 2, 128 * 2, 256 * 2),
    ("MN", "64B", 2, ((8, 4, 2), (1, 8, 256)), ((8, 2), (32, 512)), 2, 256 * 2, 512 * 2),
]


@pytest.mark.parametrize(
    ("major", "swizzle", "bits", "rows", "columns", "size", "leading", "stride"), EXAMPLES
)
def test_the_examples_of_the_manual(major, swizzle, bits, rows, columns, size, leading, stride):
    mn, k = int(np.prod(rows[0])), int(np.prod(columns[0]))
    descriptor = canonical_descriptor(0, request(mn, k, size, major), swizzle=swizzle)
    assert (descriptor.leading_byte_offset, descriptor.stride_byte_offset) == (leading, stride)
    expected = [
        [cute_swizzle(bits, size * (evaluate(*rows, i) + evaluate(*columns, j))) for j in range(k)]
        for i in range(mn)
    ]
    assert tile_addresses(descriptor, request(mn, k, size, major)).tolist() == expected


@all_modes
def test_the_canonical_layouts_of_the_manual(major, swizzle, size):
    bits, width, t = list(ROW).index(swizzle), ROW[swizzle] // 16, 16 // size
    mn, k = 128, 32 // size
    descriptor = canonical_descriptor(0, request(mn, k, size, major), swizzle=swizzle)
    leading, stride = descriptor.leading_byte_offset // size, descriptor.stride_byte_offset // size
    if major == "K":
        rows = ((8, mn // 8), (width * t, stride))
        columns = ((t, k // t), (1, leading if swizzle == "none" else t))
    else:
        across, along = (stride, leading) if swizzle == "none" else (leading, stride)
        rows = ((t, width, mn // (t * width)), (1, t, across))
        columns = ((8, k // 8), (width * t, along))
    expected = [
        [cute_swizzle(bits, size * (evaluate(*rows, i) + evaluate(*columns, j))) for j in range(k)]
        for i in range(mn)
    ]
    assert tile_addresses(descriptor, request(mn, k, size, major)).tolist() == expected


# --- the word ------------------------------------------------------------------------------------------

offsets = st.integers(0, 0x3FFF).map(lambda raw: raw * 16)
descriptors = st.builds(
    Descriptor,
    start_address=offsets,
    leading_byte_offset=offsets,
    stride_byte_offset=offsets,
    base_offset=st.integers(0, 7),
    swizzle=st.sampled_from(list(ROW)),
)


@given(descriptors)
def test_decode_gives_what_was_encoded(descriptor):
    word = descriptor.encode()
    assert Descriptor.decode(word) == descriptor
    assert Descriptor.decode(np.uint64(word)) == descriptor


@given(st.integers(0, 2**64 - 1))
def test_encode_gives_the_word_that_was_decoded(word):
    word &= 0xC00E_3FFF_3FFF_3FFF
    assert Descriptor.decode(word).encode() == word


@given(st.integers(0, 2**64 - 1))
def test_a_word_with_reserved_bits_is_refused(word):
    assume(word & ~0xC00E_3FFF_3FFF_3FFF)
    with pytest.raises(OperandError, match="has reserved bits"):
        Descriptor.decode(word)


def test_the_fields_lie_where_the_manual_puts_them():
    descriptor = Descriptor(
        start_address=0x400, leading_byte_offset=0x20, stride_byte_offset=0x30, base_offset=5, swizzle="32B"
    )
    assert descriptor.encode() == 0x40 | 2 << 16 | 3 << 32 | 5 << 49 | 3 << 62
    for swizzle, code in {"none": 0, "128B": 1, "64B": 2, "32B": 3}.items():
        assert Descriptor(start_address=0, swizzle=swizzle).encode() == code << 62


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"start_address": 262144}, "start address 262144 of a descriptor is outside 0..262128"),
        ({"start_address": -16}, "start address -16 of a descriptor is outside 0..262128"),
        ({"start_address": 8}, "start address 0x8 of a descriptor is not a multiple of 16 bytes"),
        ({"start_address": 16.0}, "start address 16.0 of a descriptor is not an integer"),
        (
            {"leading_byte_offset": 1},
            "leading dimension byte offset 0x1 of a descriptor is not a multiple of 16 bytes",
        ),
        (
            {"stride_byte_offset": 1 << 20},
            "stride dimension byte offset 1048576 of a descriptor is outside 0..262128",
        ),
        ({"base_offset": 8}, "base offset 8 of a descriptor is outside 0..7"),
        ({"swizzle": "16B"}, "swizzle '16B': expected 'none', '32B', '64B' or '128B'"),
    ],
)
def test_a_field_out_of_range_is_refused(values, message):
    with raises(OperandError, message):
        Descriptor(**{"start_address": 0} | values)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (-1, "a descriptor is an unsigned 64-bit word, not -0x1"),
        (1 << 64, "a descriptor is an unsigned 64-bit word, not 0x10000000000000000"),
        (
            1 << 15 | 1 << 30,
            "descriptor 0x0000000040008000 has reserved bits 15, 30 set: "
            "was a field written in bytes, without >> 4?",
        ),
        (
            1 << 46,
            "descriptor 0x0000400000000000 has reserved bits 46 set: "
            "bit 46 marks the descriptors of tcgen05, wgmma has it clear",
        ),
        (1 << 52, "descriptor 0x0010000000000000 has reserved bits 52 set"),
    ],
)
def test_a_word_that_is_no_descriptor_is_refused(word, message):
    with raises(OperandError, message):
        Descriptor.decode(word)


def test_numpy_integers_are_taken_by_value():
    descriptor = Descriptor(start_address=np.uint64(64), stride_byte_offset=np.int32(128))
    assert descriptor == Descriptor(start_address=64, stride_byte_offset=128)
    assert isinstance(descriptor.start_address, int)


def test_explain_shows_each_field_and_what_it_means():
    descriptor = Descriptor(
        start_address=0x420, leading_byte_offset=16, stride_byte_offset=1024, swizzle="128B"
    )
    assert "\n".join(descriptor.explain()) == (
        "matrix descriptor 0x4000004000010042, read K-major\n"
        "bits 13:0   start address                  0x0042  0x00420 (1056 bytes)   "
        "where the tile begins, before swizzling\n"
        "bits 29:16  leading dimension byte offset  0x0001  0x00010 (16 bytes)     "
        "not used in K-major swizzled tiles (1 by convention)\n"
        "bits 45:32  stride dimension byte offset   0x0040  0x00400 (1024 bytes)   "
        "from 8 rows of M or N to the next 8\n"
        "bits 51:49  base offset                    0x0000  0                      "
        "0 where the swizzle pattern starts at a multiple of its size\n"
        "bits 63:62  swizzle                        0x0001  128B                   "
        "rows of 128 bytes; bits 6:4 of an address ^= bits 9:7; repeats every 1024 bytes\n"
        "note: the tile starts 32 bytes into a row, as after a step along K"
    )


MEANINGS = {  # (major, swizzled): LBO, SBO
    ("K", False): ("from 16 bytes along K to the next 16", "from 8 rows of M or N to the next 8"),
    ("K", True): (
        "not used in K-major swizzled tiles (1 by convention)",
        "from 8 rows of M or N to the next 8",
    ),
    ("MN", False): ("from 8 elements along K to the next 8", "from 16 bytes along M or N to the next 16"),
    ("MN", True): ("from 64 bytes along M or N to the next 64", "from 8 elements along K to the next 8"),
}


@pytest.mark.parametrize(("major", "is_swizzled"), list(MEANINGS))
def test_the_strides_are_explained_for_the_mode(major, is_swizzled):
    descriptor = Descriptor(start_address=0, swizzle="64B" if is_swizzled else "none")
    fields = {field.name: field.meaning for field in descriptor.fields(major)}
    leading, stride = MEANINGS[major, is_swizzled]
    assert fields["leading dimension byte offset"] == leading
    assert fields["stride dimension byte offset"] == stride


# --- tiles that no descriptor reads, or whose addresses PTX does not give ----------------------------------


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (request(64, 16, 2, "M"), "major 'M': a tile is 'K' or 'MN' major"),
        (
            replace(request(64, 16, 2, "K"), element_bits=1),
            "tiles of 1-bit elements are tiles of bytes: element_bits=8, and k in bytes",
        ),
        (
            request(64, 16, 8, "K"),
            "elements of 64 bits: wgmma reads elements of 8, 16 or 32 bits",
        ),
        (
            request(64, 32, 1, "MN"),
            "MN-major tiles have 16-bit elements (f16, bf16), not 8-bit elements: store the tile K-major",
        ),
        (
            request(64, 8, 4, "MN"),
            "MN-major tiles have 16-bit elements (f16, bf16), not 32-bit elements: store the tile K-major",
        ),
        (request(60, 16, 2, "K"), "K-major tiles have multiples of 8 x 8 elements, not 60 x 16"),
        (request(64, 24, 1, "K"), "K-major tiles have multiples of 8 x 16 elements, not 64 x 24"),
        (request(64, 0, 2, "K"), "K-major tiles have multiples of 8 x 8 elements, not 64 x 0"),
        (request(64, 12, 2, "MN"), "MN-major tiles have multiples of 8 x 8 elements, not 64 x 12"),
    ],
)
def test_a_tile_that_no_descriptor_reads_is_refused(shape, message):
    with raises(OperandError, message):
        tile_addresses(Descriptor(start_address=0), shape)


def test_a_base_offset_belongs_to_a_swizzle():
    with raises(OperandError, "base offset is 1 (bits 51:49); legal without swizzle: 0"):
        tile_addresses(Descriptor(start_address=0x480, base_offset=1), request(64, 16, 2, "K"))


@pytest.mark.parametrize("swizzle", ["128B", "64B", "32B"])
@pytest.mark.parametrize("base", range(8))
def test_a_base_offset_moves_the_pattern(swizzle, base):
    """A tile and its pattern that both lie ``base`` lines of 128 bytes further on."""
    pattern = {"128B": 1024, "64B": 512, "32B": 256}[swizzle]
    aligned = Descriptor(start_address=0x800, stride_byte_offset=pattern, swizzle=swizzle)
    moved = changed(aligned, start_address=0x800 + 128 * base, base_offset=base)
    shape = request(64, 16, 2, "K")
    assert np.array_equal(tile_addresses(moved, shape), tile_addresses(aligned, shape) + 128 * base)
    assert (moved.unusual == "") is (base == 0)


@pytest.mark.parametrize(
    ("swizzle", "start", "row", "pattern"),
    [("128B", 0x480, 1, 1024), ("128B", 0x3F0, 7, 1024), ("64B", 0x240, 1, 512), ("32B", 0x2E0, 7, 256)],
)
def test_a_start_beyond_the_first_row_of_the_pattern_is_said(swizzle, start, row, pattern):
    descriptor = Descriptor(start_address=start, stride_byte_offset=pattern, swizzle=swizzle)
    message = (
        f"start address {start:#06x} is in row {row} of a {swizzle} pattern, which base offset 0 places at "
        f"multiples of {pattern} bytes (inferred: rows are swizzled by their distance from there, as TMA "
        f"writes them for base offset 0); a tile that was swizzled from its own start must begin at a "
        f"multiple of {pattern} bytes"
    )
    assert descriptor.explain()[6:] == (f"note: {message}",)


def test_an_unaligned_start_is_read_by_absolute_address_bits():
    whole = walk(0, 64, 64, 2, "K", "128B", 1024, 0)
    descriptor = Descriptor(start_address=256, stride_byte_offset=1024, swizzle="128B")
    addresses = tile_addresses(descriptor, request(56, 16, 2, "K"))
    assert np.array_equal(addresses, whole[2:58, :16])


@pytest.mark.parametrize(
    ("major", "swizzle", "start", "mn", "k", "first", "last"),
    [
        ("K", "32B", 0, 8, 32, 0, 63),  # B of wgmma.sp
        ("K", "32B", 16, 8, 16, 16, 47),
        ("K", "64B", 32, 8, 32, 32, 95),
        ("K", "128B", 96, 8, 32, 96, 159),
        ("MN", "128B", 32, 64, 16, 32, 159),
        ("MN", "32B", 16, 24, 16, 16, 47),
    ],
)
def test_a_tile_that_crosses_the_end_of_a_row_is_not_modelled(major, swizzle, start, mn, k, first, last):
    descriptor = Descriptor(
        start_address=start, stride_byte_offset=8 * ROW[swizzle], leading_byte_offset=2048, swizzle=swizzle
    )
    message = (
        f"the tile has bytes {first}..{last} of each {major}-major row, but with {swizzle} swizzle a row has "
        f"{ROW[swizzle]}, and PTX does not say where it continues"
    )
    with raises(NotModelled, message):
        tile_addresses(descriptor, request(mn, k, 2, major))
    assert tile_addresses(descriptor, request(mn, k, 2, major), literal=True).shape == (mn, k)


def test_a_row_that_is_crossed_runs_on_into_the_next_literally():
    descriptor = Descriptor(start_address=0, leading_byte_offset=16, stride_byte_offset=256, swizzle="32B")
    addresses = tile_addresses(descriptor, request(16, 32, 2, "K"), literal=True)
    rows = walk(0, 24, 16, 2, "K", "32B", 256, 0)
    assert np.array_equal(addresses[:, :16], rows[:16])
    assert np.array_equal(addresses[:, 16:], rows[1:17])


def test_a_tile_may_end_inside_a_row():
    descriptor = Descriptor(start_address=64, stride_byte_offset=1024, swizzle="128B")
    whole = walk(0, 64, 16, 2, "MN", "128B", 0, 1024)
    assert np.array_equal(tile_addresses(descriptor, request(32, 16, 2, "MN")), whole[32:])


def test_a_tile_that_leaves_the_memory_is_refused():
    descriptor = Descriptor(start_address=232_448 - 1024, stride_byte_offset=1024, swizzle="128B")
    assert tile_addresses(descriptor, request(8, 64, 2, "K")).max() == 232_446
    with raises(
        OperandError, "element (15, 7) of the tile lies at 0x38ffe, outside the 232448 bytes of memory"
    ):
        tile_addresses(descriptor, request(16, 64, 2, "K"))
    with raises(OperandError, "element (7, 7) of the tile lies at 0x7e, outside the 127 bytes of memory"):
        load_tile(np.zeros(127, np.uint8), Descriptor(start_address=0), request(8, 8, 2, "K"))


def test_the_largest_strides_never_wrap():
    descriptor = Descriptor(start_address=0x3FFF0, leading_byte_offset=0x3FFF0, stride_byte_offset=0x3FFF0)
    with raises(
        OperandError, "element (255, 15) of the tile lies at 0x83fe6e, outside the 232448 bytes of memory"
    ):
        tile_addresses(descriptor, request(256, 16, 2, "K"))


# --- tiles in memory -----------------------------------------------------------------------------------


@all_modes
def test_a_stored_tile_is_loaded_from_the_walked_bytes(major, swizzle, size):
    mn, k, start = 64, 32 // size, 4096
    tile, memory = random_tile(mn, k, size), random_memory()
    before = memory.copy()
    descriptor = canonical_descriptor(start, request(mn, k, size, major), swizzle=swizzle)
    store_tile(memory, descriptor, tile, major=major)
    assert np.array_equal(read(memory, descriptor, tile, major), tile)
    atom, across = 8 * ROW[swizzle], (8 if major == "K" else ROW[swizzle] // size)
    places = walk(start, mn, k, size, major, swizzle, atom, atom * -(-mn // across))
    for (row, column), address in np.ndenumerate(places):
        before[address : address + size] = np.frombuffer(tile[row, column].tobytes(), np.uint8)
    assert np.array_equal(memory, before)


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e4m3fn, np.int8, np.uint8]
)
def test_tiles_come_back_in_their_dtype_bit_for_bit(dtype):
    size = np.dtype(dtype).itemsize
    tile, memory = random_tile(24, 32 // size, size).view(dtype), random_memory()
    descriptor = canonical_descriptor(0, request(24, 32 // size, size, "K"), swizzle="64B")
    store_tile(memory, descriptor, tile, major="K")
    loaded = read(memory, descriptor, tile, "K")
    assert loaded.dtype == dtype
    assert loaded.tobytes() == tile.tobytes()


def test_a_batch_of_memories_is_read_and_written_at_once():
    descriptor = canonical_descriptor(1024, request(32, 16, 2, "MN"), swizzle="32B")
    tiles = np.stack([random_tile(32, 16, 2, seed) for seed in range(6)]).reshape(2, 3, 32, 16)
    memories = np.zeros((2, 3, 4096), np.uint8)
    store_tile(memories, descriptor, tiles, major="MN")
    assert np.array_equal(load_tile(memories, descriptor, request(32, 16, 2, "MN")), tiles)
    store_tile(memories, descriptor, tiles[0, 0], major="MN")
    assert np.array_equal(
        load_tile(memories, descriptor, request(32, 16, 2, "MN"))[1, 2],
        tiles[0, 0],
    )


def test_arrays_that_hold_no_tile_are_refused():
    descriptor, memory = Descriptor(start_address=0, stride_byte_offset=128), np.zeros(4096, np.uint8)
    with raises(
        OperandError, "tiles of 1-bit elements are tiles of bytes: np.packbits(…, bitorder='little')"
    ):
        store_tile(memory, descriptor, np.zeros((8, 128), bool), major="K")
    with raises(OperandError, "elements of dtype float64: wgmma reads elements of 8, 16 or 32 bits"):
        store_tile(memory, descriptor, np.zeros((8, 8)), major="K")
    with raises(OperandError, "a tile is an array (..., mn, k), not (64,)"):
        store_tile(memory, descriptor, np.zeros(64, np.uint8), major="K")
    with raises(OperandError, "an array of shape (2, 8, 8) cannot be stored as (8, 8): memories, addresses"):
        store_tile(memory, descriptor, np.zeros((2, 8, 8), np.uint16), major="K")
    with raises(OperandError, "a memory is a uint8 array (..., bytes), not a SharedMemory: pass its .data"):
        load_tile(SharedMemory(64), descriptor, request(8, 8, 2, "K"))
    with raises(
        OperandError, "two elements of the tile share an address: start 0x0000, LBO 0, SBO 128, swizzle none"
    ):
        store_tile(memory, descriptor, np.zeros((8, 16), np.uint16), major="K")


def test_the_touched_bytes_are_those_of_the_elements():
    descriptor = Descriptor(start_address=32, stride_byte_offset=1024, swizzle="128B")
    for mn, major in ((16, "K"), (32, "MN")):
        shape = request(mn, 16, 2, major)
        ranges = touched_bytes(descriptor, shape)
        named = np.concatenate([np.arange(*pair) for pair in ranges])
        used = np.unique(tile_addresses(descriptor, shape)[..., None] + np.arange(2))
        assert np.array_equal(named, used)
        assert (ranges[1:, 0] > ranges[:-1, 1]).all()
        assert len(ranges) > 1


def test_touched_bytes_with_small_gaps_stay_apart():
    descriptor = Descriptor(start_address=16, leading_byte_offset=288, stride_byte_offset=144)
    ranges = touched_bytes(descriptor, request(16, 16, 2, "K"))
    assert ranges.tolist() == [[16, 144], [160, 288], [304, 432], [448, 576]]


def test_the_touched_bytes_end_where_the_memory_does():
    with raises(OperandError, "element (7, 7) of the tile lies at 0x7e, outside the 126 bytes of memory"):
        touched_bytes(Descriptor(start_address=0), request(8, 8, 2, "K"), memory_bytes=126)


# --- packed tiles --------------------------------------------------------------------------------------


@all_modes
@pytest.mark.parametrize(("mn", "k_bytes"), [(64, 32), (128, 256), (320, 64), (40, 384)])
def test_a_packed_tile_is_cut_into_instructions(major, swizzle, size, mn, k_bytes):
    tile = random_tile(mn, k_bytes // size, size)
    shape = request(*tile.shape, size, major)
    image = canonical_image(tile, major=major, swizzle=swizzle)
    assert image.shape == (canonical_bytes(shape, swizzle=swizzle),)
    start, k = 2048, 32 // size
    memory = np.zeros(start + image.size, np.uint8)
    memory[start:] = image
    height = 40 if mn == 40 else 64
    for first_mn, first_k in product(range(0, mn, height), range(0, tile.shape[1], k)):
        descriptor = canonical_descriptor(start, shape, swizzle=swizzle, first_mn=first_mn, first_k=first_k)
        part = tile[first_mn : first_mn + height, first_k : first_k + k]
        assert np.array_equal(read(memory, descriptor, part, major), part)


def test_atoms_are_packed_along_m_or_n_first():
    tile = random_tile(128, 128, 2)
    image = canonical_image(tile, major="K", swizzle="128B")
    for i, j in product(range(16), range(2)):
        atom = np.zeros(1024, np.uint8)
        for address, row, along in walk_atom(0, "128B", 2):
            atom[address : address + 2].view(np.uint16)[0] = tile[8 * i + row, 64 * j + along]
        assert np.array_equal(image[1024 * (i + 16 * j) :][:1024], atom)


def test_a_batch_of_tiles_has_a_batch_of_images():
    tiles = np.stack([random_tile(64, 64, 2, seed) for seed in range(3)])
    images = canonical_image(tiles, major="MN", swizzle="64B")
    assert np.array_equal(images[2], canonical_image(tiles[2], major="MN", swizzle="64B"))


def test_a_tile_that_ends_inside_an_atom_takes_all_of_it():
    shape = request(24, 16, 2, "MN")
    assert canonical_bytes(shape, swizzle="128B") == 2048
    image = canonical_image(random_tile(24, 16, 2) | 1, major="MN", swizzle="128B")
    assert np.count_nonzero(image.view(np.uint16)) == 24 * 16


@pytest.mark.parametrize(("swizzle", "pattern"), [("none", 16), ("32B", 256), ("64B", 512), ("128B", 1024)])
def test_a_packed_tile_starts_at_a_multiple_of_its_pattern(swizzle, pattern):
    shape = request(64, 16, 2, "K")
    assert canonical_descriptor(3 * pattern, shape, swizzle=swizzle).start_address == 3 * pattern
    start = 3 * pattern + pattern // 2
    message = (
        f"start address {start:#x} of a packed tile with swizzle {swizzle} is not a multiple of "
        f"{pattern} bytes"
    )
    with raises(OperandError, message):
        canonical_descriptor(start, shape, swizzle=swizzle)


@pytest.mark.parametrize(("first_mn", "first_k"), [(4, 0), (64, 0), (-8, 0), (0, 4), (0, 64)])
def test_a_part_of_a_packed_tile_begins_inside_it(first_mn, first_k):
    place = f"({first_mn}, {first_k})"
    message = f"a part of a packed 64 x 64 tile begins at multiples of 8 x 8 inside it, not at {place}"
    with raises(OperandError, message):
        canonical_descriptor(0, request(64, 64, 2, "K"), swizzle="128B", first_mn=first_mn, first_k=first_k)


# --- diagnosis -----------------------------------------------------------------------------------------

ATOM = {swizzle: 8 * row for swizzle, row in ROW.items()}


def stored(major, swizzle, size, *, mn=128, start=8192, first_k=0, k_bytes=32):
    """A memory full of noise with a packed tile in it; the descriptor and the part of one instruction."""
    whole = random_tile(mn, 128 // size, size, seed=2)
    shape = request(*whole.shape, size, major)
    memory, image = random_memory(65536), canonical_image(whole, major=major, swizzle=swizzle)
    memory[start : start + image.size] = image
    descriptor = canonical_descriptor(start, shape, swizzle=swizzle, first_k=first_k // size)
    return memory, descriptor, whole[:, first_k // size : (first_k + k_bytes) // size]


def changed(descriptor, **values):
    fields = ("start_address", "leading_byte_offset", "stride_byte_offset", "base_offset", "swizzle")
    return Descriptor(**{name: getattr(descriptor, name) for name in fields} | values)


def check(memory, wrong, right, tile, major, *, wrong_major=None, phrase=None, mistakes=1):
    """Diagnosis names the mistake first, and every suggestion that leaves the data reads the tile."""
    suggestions = diagnose(memory, wrong, tile, major=wrong_major or major)
    assert suggestions
    first = suggestions[0]
    assert first.rewrites == mistakes
    if phrase is not None:
        assert phrase in first.sentence
    shape = request(*tile.shape, tile.dtype.itemsize, major)
    assert any(
        np.array_equal(tile_addresses(one.descriptor, shape), tile_addresses(right, shape))
        for one in suggestions
        if one.major == major and not one.move
    )
    for one in suggestions:
        if not one.move:
            assert np.array_equal(read(memory, one.descriptor, tile, one.major), tile)
    return suggestions


@all_modes
def test_a_tile_that_reads_as_expected_needs_no_diagnosis(major, swizzle, size):
    memory, descriptor, tile = stored(major, swizzle, size)
    assert diagnose(memory, descriptor, tile, major=major) == []
    assert diagnose(memory, descriptor.encode(), tile, major=major) == []


def raw_word(descriptor, *names):
    """The descriptor's word with some fields written in bytes."""
    word, lowest = (
        descriptor.encode(),
        {"start_address": 0, "leading_byte_offset": 16, "stride_byte_offset": 32},
    )
    for name in names:
        value = getattr(descriptor, name)
        word += (value << lowest[name]) - (value >> 4 << lowest[name])
    return word


@all_modes
@pytest.mark.parametrize("first_k", [0, 32])
def test_fields_written_in_bytes_are_found(major, swizzle, size, first_k):
    memory, right, tile = stored(
        major, swizzle, size, first_k=first_k if swizzle in ("none", "64B", "128B") else 0
    )
    used = {"stride_byte_offset"} if major == "K" and swizzle != "none" else set()
    names = ("start_address", "leading_byte_offset", "stride_byte_offset")
    for chosen in [{"stride_byte_offset"}, {"start_address"}, set(names), set(names[1:])]:
        relevant = chosen - {"leading_byte_offset"} if used else chosen
        word = raw_word(right, *chosen)
        suggestions = check(memory, word, right, tile, major)
        assert sum("in bytes" in each for each in suggestions[0].mistakes) == len(relevant)


@pytest.mark.parametrize("start", [0x4000, 0xC000, 0x8400])
def test_a_start_in_bytes_that_lost_bits_or_fills_reserved_bits_is_found(start):
    memory, right, tile = stored("K", "128B", 2, start=start)
    check(memory, raw_word(right, "start_address"), right, tile, "K", phrase="the start address is in bytes")
    cut = changed(right, start_address=(start & 0x3FFF) << 4)
    check(memory, cut, right, tile, "K", phrase=">> 4 is missing, and cut to 14 bits")


def test_a_word_with_a_field_in_reserved_bits_and_a_second_mistake_is_found():
    memory, right, tile = stored("K", "128B", 2, start=0xC000)
    wrong = raw_word(changed(right, swizzle="64B"), "start_address")
    check(memory, wrong, right, tile, "K", phrase="the swizzle is 64B where 128B fits; and ", mistakes=2)


def test_a_descriptor_of_tcgen05_is_found():
    memory, right, tile = stored("MN", "128B", 2)
    check(memory, right.encode() | 1 << 46, right, tile, "MN", phrase="bit 46 marks a descriptor of tcgen05")


@pytest.mark.parametrize("word", [1 << 52, 1 << 46 | 1 << 52, 1 << 15 | 1])
def test_a_word_that_cannot_be_a_descriptor_is_an_error(word):
    with pytest.raises(OperandError, match="has reserved bits"):
        diagnose(random_memory(4096), word, random_tile(8, 16, 2))


@all_modes
def test_exchanged_strides_are_found(major, swizzle, size):
    memory, right, tile = stored(major, swizzle, size)
    wrong = changed(
        right,
        leading_byte_offset=right.stride_byte_offset,
        stride_byte_offset=right.leading_byte_offset,
    )
    check(memory, wrong, right, tile, major, phrase="LBO and SBO are exchanged")


@all_modes
def test_a_wrong_swizzle_mode_is_found(major, swizzle, size):
    memory, right, tile = stored(major, swizzle, size)
    for other in set(ROW) - {swizzle}:
        phrase = f"the swizzle is {other} where {swizzle} fits"
        check(memory, changed(right, swizzle=other), right, tile, major, phrase=phrase)


@pytest.mark.parametrize("swizzle", ROW)
@pytest.mark.parametrize(("major", "other"), [("K", "MN"), ("MN", "K")])
def test_the_wrong_major_is_found(major, other, swizzle):
    memory, right, tile = stored(major, swizzle, 2)
    phrase = f"the tile is read {other}-major, but was stored {major}-major"
    check(memory, right, right, tile, major, wrong_major=other, phrase=phrase)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("swizzle", ["none", "128B"])
def test_an_mn_major_tile_of_other_elements_must_be_stored_anew(size, swizzle):
    mn, k, row = 128, 32 // size, ROW[swizzle] // size
    between_mn, between_k = ATOM[swizzle], ATOM[swizzle] * (mn // row)
    places = walk(2048, mn, k, size, "MN", swizzle, between_mn, between_k)
    leading, stride = strides("MN", swizzle, between_mn, between_k)
    tile, memory = random_tile(mn, k, size), random_memory(65536)
    memory.view(tile.dtype)[places // size] = tile
    given = Descriptor(
        start_address=2048, leading_byte_offset=leading, stride_byte_offset=stride, swizzle=swizzle
    )
    (only,) = diagnose(memory, given, tile)
    assert only.mistakes == (
        "the tile is read K-major, but was stored MN-major, which wgmma has for 16-bit elements only",
    )
    assert only.move
    assert only.major == "K"
    store_tile(memory, only.descriptor, tile, major="K")
    assert np.array_equal(read(memory, only.descriptor, tile, "K"), tile)


@all_modes
def test_a_start_off_by_k_steps_is_found(major, swizzle, size):
    memory, _, _ = stored(major, swizzle, size)
    columns = [stored(major, swizzle, size, first_k=32 * i)[1:] for i in range(4)]
    if major == "K" and swizzle != "none":
        columns = columns[: ROW[swizzle] // 32]
    for i, j in product(range(len(columns)), repeat=2):
        if i == j:
            continue
        (wrong, _), (right, tile), steps = columns[i], columns[j], abs(j - i)
        by = steps * abs(columns[1][0].start_address - columns[0][0].start_address)
        phrase = f"the start is {by} bytes too far {'back' if j > i else 'on'}"
        check(memory, wrong, right, tile, major, phrase=phrase)


@pytest.mark.parametrize(("major", "swizzle", "size"), [mode for mode in MODES if mode[1] != "none"])
@pytest.mark.parametrize("shift", [16, 128, 144, 208])
def test_a_tile_swizzled_relative_to_its_unaligned_start_is_found(major, swizzle, size, shift):
    start, memory = 8192 + shift, random_memory(65536)
    tile = random_tile(64, 32 // size, size)
    image = canonical_image(tile, major=major, swizzle=swizzle)
    memory[start : start + image.size] = image
    shape = request(*tile.shape, size, major)
    right = changed(canonical_descriptor(0, shape, swizzle=swizzle), start_address=start)
    suggestions = diagnose(memory, right, tile, major=major)
    assert suggestions[0].mistakes == (
        f"the tile is swizzled relative to {start:#06x}, in the middle of a pattern, but is read by absolute "
        f"address",
    )
    assert suggestions[0].move
    assert suggestions[0].descriptor.start_address == 8192 + ATOM[swizzle]
    store_tile(memory, suggestions[0].descriptor, tile, major=major)
    assert np.array_equal(read(memory, suggestions[0].descriptor, tile, major), tile)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_k_step_into_a_tile_swizzled_relative_to_its_start_is_found(step):
    whole, memory = random_tile(64, 64, 2), random_memory(65536)
    image = canonical_image(whole, major="K", swizzle="128B")
    memory[0x480 : 0x480 + image.size] = image
    given = Descriptor(
        start_address=0x480 + 32 * step, leading_byte_offset=16, stride_byte_offset=1024, swizzle="128B"
    )
    tile = whole[:, 16 * step : 16 * step + 16]
    (only,) = diagnose(memory, given, tile)
    assert "relative to 0x0480" in only.sentence
    assert only.descriptor.start_address == 0x800 + 32 * step


@pytest.mark.parametrize(("swizzle", "offset"), [("128B", 128), ("128B", -128), ("64B", 208), ("32B", -64)])
def test_a_start_beside_the_pattern_is_found(swizzle, offset):
    memory, right, tile = stored("K", swizzle, 2)
    wrong = changed(right, start_address=right.start_address + offset)
    phrase = f"the start is {abs(offset)} bytes too far {'on' if offset > 0 else 'back'}"
    check(memory, wrong, right, tile, "K", phrase=phrase)


def test_a_base_offset_that_should_be_zero_is_found():
    memory, right, tile = stored("K", "128B", 2)
    phrase = "the base offset is 3 where 0 fits"
    check(memory, changed(right, base_offset=3), right, tile, "K", phrase=phrase)


@pytest.mark.parametrize(("major", "swizzle", "size"), [mode for mode in MODES if mode[2] > 1])
def test_strides_in_elements_are_found(major, swizzle, size):
    memory, right, tile = stored(major, swizzle, size)
    wrong = changed(
        right,
        leading_byte_offset=right.leading_byte_offset // size & ~15,
        stride_byte_offset=right.stride_byte_offset // size & ~15,
    )
    check(memory, wrong, right, tile, major, phrase="(in elements, not bytes)")


@pytest.mark.parametrize(("major", "swizzle", "size"), [mode for mode in MODES if mode[1] != "none"])
def test_strides_shifted_twice_are_found(major, swizzle, size):
    memory, right, tile = stored(major, swizzle, size)
    wrong = changed(right, stride_byte_offset=right.stride_byte_offset >> 4)
    check(memory, wrong, right, tile, major, phrase="(shifted right by 4 twice)")


@all_modes
@pytest.mark.parametrize("sign", [1, -1])
def test_strides_and_starts_off_by_one_core_matrix_or_atom_are_found(major, swizzle, size, sign):
    memory, right, tile = stored(major, swizzle, size, mn=128)
    ignored = {"leading_byte_offset"} if major == "K" and swizzle != "none" else set()
    for name in {"leading_byte_offset", "stride_byte_offset", "start_address"} - ignored:
        wrong = changed(right, **{name: getattr(right, name) + sign * ATOM[swizzle]})
        suggestions = check(memory, wrong, right, tile, major)
        assert suggestions[0].rewrites == 1


@pytest.mark.parametrize(("major", "swizzle", "size"), [mode for mode in MODES if mode[1] != "none"])
def test_rows_that_were_not_swizzled_are_found(major, swizzle, size):
    mn, k = 64, 32 // size
    descriptor = canonical_descriptor(4096, request(mn, k, size, major), swizzle=swizzle)
    tile, memory = random_tile(mn, k, size), random_memory(65536)
    row, atom = ROW[swizzle], ATOM[swizzle]
    for i, j in np.ndindex(mn, k):
        leading, other = (j, i) if major == "K" else (i, j)
        place = leading * size % row + other % 8 * row
        across = leading * size // row
        atoms = across + other // 8 * (mn * size // row) if major == "MN" else other // 8
        memory[4096 + place + atoms * atom :][:size] = np.frombuffer(tile[i, j].tobytes(), np.uint8)
    (only,) = diagnose(memory, descriptor, tile, major=major)
    assert only.mistakes == (
        "rows are swizzled where they are read or where they are written, not in both places",
    )
    assert only.move
    assert only.descriptor == descriptor


def exchange(descriptor):
    return changed(
        descriptor,
        leading_byte_offset=descriptor.stride_byte_offset,
        stride_byte_offset=descriptor.leading_byte_offset,
    )


def step_on(descriptor):
    step = 32 if descriptor.swizzle != "none" else 2 * descriptor.leading_byte_offset
    return changed(descriptor, start_address=descriptor.start_address + step)


def scale(descriptor, factor):
    return changed(
        descriptor,
        leading_byte_offset=int(descriptor.leading_byte_offset * factor),
        stride_byte_offset=int(descriptor.stride_byte_offset * factor),
    )


def reads_as(memory, descriptor, tile):
    try:
        return np.array_equal(read(memory, descriptor, tile, "K", literal=True), tile)
    except (OperandError, NotModelled):
        return False


MISTAKES = {
    "strides in bytes": lambda d: scale(d, 16),
    "exchanged": exchange,
    "128B": lambda d: changed(d, swizzle="128B"),
    "64B": lambda d: changed(d, swizzle="64B"),
    "none": lambda d: changed(d, swizzle="none"),
    "a K step on": step_on,
    "base offset": lambda d: changed(d, base_offset=1),
    "in elements": lambda d: scale(d, 0.5),
    "SBO too large": lambda d: changed(d, stride_byte_offset=d.stride_byte_offset + ATOM[d.swizzle]),
}


@each_of(
    sample(
        (
            (swizzle, *pair)
            for swizzle in ("none", "32B", "64B", "128B")
            for pair in combinations(MISTAKES, 2)
        ),
        5,
    ),
    parts=4,
)
def test_two_mistakes_at_once_are_found(swizzle, first, second):
    memory, right, tile = stored("K", swizzle, 2)
    for corrupt in (
        lambda d: MISTAKES[second](MISTAKES[first](d)),
        lambda d: MISTAKES[first](MISTAKES[second](d)),
    ):
        try:
            wrong = corrupt(right)
        except OperandError:
            continue
        suggestions = diagnose(memory, wrong, tile)
        assert bool(suggestions) != reads_as(memory, wrong, tile), wrong
        for one in suggestions:
            if not one.move:
                assert np.array_equal(read(memory, one.descriptor, tile, one.major), tile)


def test_the_wrong_major_and_a_second_mistake_are_found():
    memory, right, tile = stored("MN", "128B", 2)
    wrong = changed(right, swizzle="32B")
    check(memory, wrong, right, tile, "MN", wrong_major="K", mistakes=2)


def test_a_tile_that_is_nowhere_has_no_suggestion():
    memory, descriptor, tile = stored("K", "128B", 2)
    assert diagnose(memory, descriptor, tile + np.uint16(1)) == []


def test_suggestions_read_different_addresses_and_come_simplest_first():
    memory, right, _ = stored("K", "128B", 2)
    blank = np.zeros((64, 16), np.uint16)
    memory[:] = 0
    memory[right.start_address : right.start_address + 64] = 1
    suggestions = diagnose(memory, right, blank)
    maps = {tile_addresses(one.descriptor, request(64, 16, 2, one.major)).tobytes() for one in suggestions}
    assert len(maps) == len(suggestions) > 1
    assert all(one.rewrites == 1 for one in suggestions)


def test_a_suggestion_reads_as_one_sentence():
    memory, right, tile = stored("K", "128B", 2)
    (one,) = diagnose(memory, changed(right, stride_byte_offset=1024 * 16), tile)
    assert str(one) == (
        "SBO is 16384 where 1024 fits (in bytes, without >> 4): use 0x4000004000010200 "
        "(start 0x2000, LBO 16, SBO 1024, swizzle 128B), K-major"
    )


def test_nan_tiles_are_compared_bit_for_bit():
    tile = np.full((64, 16), np.nan, np.float16)
    tile.view(np.uint16)[:] |= np.arange(16, dtype=np.uint16)
    memory = np.zeros(65536, np.uint8)
    right = canonical_descriptor(1024, request(64, 16, 2, "K"), swizzle="64B")
    store_tile(memory, right, tile, major="K")
    assert diagnose(memory, right, tile) == []
    assert diagnose(memory, changed(right, swizzle="128B"), tile)[0].descriptor == right


def test_diagnosis_takes_one_memory_and_one_tile():
    descriptor, tile = Descriptor(start_address=0), random_tile(8, 16, 2)
    with raises(OperandError, "diagnose takes one memory and one tile, not (2, 64) and (8, 16)"):
        diagnose(np.zeros((2, 64), np.uint8), descriptor, tile)
    with raises(OperandError, "diagnose takes one memory and one tile, not (64,) and (1, 8, 16)"):
        diagnose(np.zeros(64, np.uint8), descriptor, tile[None])
    with raises(OperandError, "a memory of 300000 bytes: a CTA has at most 232448"):
        diagnose(np.zeros(300_000, np.uint8), descriptor, tile)
    with raises(OperandError, "K-major tiles have multiples of 8 x 8 elements, not 8 x 12"):
        diagnose(np.zeros(64, np.uint8), descriptor, random_tile(8, 12, 2))
