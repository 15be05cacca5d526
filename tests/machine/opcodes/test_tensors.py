"""Tensor copies: every byte of both memories against the slow walk; what is wrong is named.

A kernel fills shared memory, makes one copy and writes shared memory out; tests.helpers.slow_boxes says where
each byte of a box lies.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from tests.helpers.slow_boxes import Steps, expected, pixel_steps, row_steps, walk
from tests.helpers.tensor_kernels import launch, load, store, text
from warpsim.base.errors import Fault, NotModelled, OperandError, UndefinedBehavior, WarpsimError
from warpsim.isa.tensor_maps.tensor_fields import SWIZZLES
from warpsim.isa.tensor_maps.tensor_map import TensorMap
from warpsim.machine.host.tensor_maps import ArrayMap
from warpsim.programs.launch.launching import load_text

Array = npt.NDArray[Any]
SCHEDULES = ("program", "latest", "random:1", "random:2")
BLACKWELL = {"target": "sm_100a", "version": "8.8"}


def _noise(size: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def _array(shape: tuple[int, ...], dtype: npt.DTypeLike, seed: int = 1) -> Array:
    """Any bits."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return _noise(size, seed).view(dtype).reshape(shape)


def _map(made: object) -> TensorMap:
    """The map with its array at address 0."""
    assert isinstance(made, ArrayMap)
    return made.map


def _filled(array: Array, before: Array, steps: Steps, map_: TensorMap, start: int, fill: bytes) -> Array:
    """What shared memory holds after a load."""
    content, found = array.reshape(-1).view(np.uint8), before.copy()
    for place, address in expected(map_, steps, start).items():
        found[place] = fill[place % len(fill)] if address is None else content[address]
    return found


TILED: list[tuple[tuple[int, ...], Any, dict[str, Any], list[tuple[int, ...]]]] = [
    ((4096,), np.uint8, {"box": (256,)}, [(0,), (3900,), (-16,)]),
    ((40, 64), np.float16, {"box": (16, 64), "swizzle": "128B"}, [(0, 0), (24, 30), (-3, -8), (39, 60)]),
    ((40, 72), np.float16, {"box": (16, 64), "swizzle": "128B"}, [(0, 0), (8, 5), (71, 39), (64, -5)]),
    ((40, 32), np.float32, {"box": (8, 16), "swizzle": "64B"}, [(0, 0), (20, 35)]),
    ((40, 32), np.float32, {"box": (12, 8), "swizzle": "32B", "element_strides": (3, 1)}, [(1, 2), (20, 36)]),
    ((9, 10, 16), ml_dtypes.bfloat16, {"box": (3, 4, 16)}, [(0, 0, 0), (-1, 8, 8)]),
    ((4, 5, 6, 16), np.int32, {"box": (2, 2, 2, 16), "element_strides": (1, 2, 1, 1)}, [(8, 4, -1, 3)]),
    ((3, 2, 4, 5, 8), np.float64, {"box": (2, 2, 2, 2, 8)}, [(0, 4, 3, 1, 2), (-2, 0, 0, 0, 0)]),
]


def _tiled_cases() -> list[tuple[Array, dict[str, Any], tuple[int, ...]]]:
    return [(_array(shape, dtype), more, at) for shape, dtype, more, places in TILED for at in places]


@pytest.mark.parametrize("number", range(len(_tiled_cases())))
def test_loads_of_tiles(number: int) -> None:
    array, more, at = _tiled_cases()[number]
    made = warpsim.tensor_map(array, **more)
    map_, before, start = _map(made), _noise(8192, 2), 128 * (number % 9)
    count = int(np.prod(map_.counts)) * array.itemsize
    wanted = _filled(array, before, walk(map_, at), map_, start, b"\0")
    body = load("tile", array.ndim, count, start)
    for schedule in SCHEDULES:
        after, _ = launch(body, made, np.array(at), before, schedule=schedule)
        np.testing.assert_array_equal(after, wanted)


def _slow_tf32(code: int) -> int:
    """The code of f32 with 10 bits of fraction next to one, ties to even; infinities and NaN as they are."""
    sign, magnitude = code & 1 << 31, code & (1 << 31) - 1
    if magnitude >= 0x7F800000:
        return code
    return sign | round(Fraction(magnitude, 1 << 13)) << 13  # round() of a fraction takes ties to even


def test_elements_of_tf32_are_rounded_on_the_way_to_shared_memory() -> None:
    nasty = [0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0x3FFFF000, 0x7F7FFFFF, 0x7F800000, 0xFFC01234]
    nasty += [0x7F800001, 0x80000000, 0x00001000, 0x00001001, 0x807FF000, 0x007FEFFF, 0xBF803000, 0xFF800000]
    array = _array((20, 16), np.uint32, 3)
    array[0] = nasty
    array = array.view(np.float32)
    made = warpsim.tensor_map(array, box=(16, 16), swizzle="64B", element="tf32")
    rounded = np.array([_slow_tf32(int(one)) for one in array.view(np.uint32).flat], np.uint32)
    before, map_ = _noise(8192, 2), replace(_map(made), element="f32")
    wanted = _filled(rounded, before, walk(map_, (0, 0)), map_, 0, b"\0")
    for schedule in SCHEDULES:
        body = load("tile", 2, 1024, 0)
        after, report = launch(body, made, np.array((0, 0)), before, schedule=schedule)
        np.testing.assert_array_equal(after, wanted)
        (inferred,) = report.fidelity["inferred"]
        assert inferred.note.startswith("inferred: elements of tf32 are rounded to nearest even")


@pytest.mark.parametrize("swizzle", [name for name in SWIZZLES if name != "96B"])
@pytest.mark.parametrize("start", [0, 128, 896])
def test_swizzles_of_loads_and_stores(swizzle: str, start: int) -> None:
    """The pattern is one of shared addresses: it does not begin with the box."""
    array = _array((33, 32), np.uint16)
    width = 8 if swizzle == "32B" else 16
    made = warpsim.tensor_map(array, box=(24, width), swizzle=swizzle)  # type: ignore[arg-type]
    map_, before, at = _map(made), _noise(4096, 3), (8, 12)
    options = BLACKWELL if "ATOM" in swizzle else {}
    after, _ = launch(load("tile", 2, 48 * width, start), made, np.array(at), before, **options)
    np.testing.assert_array_equal(after, _filled(array, before, walk(map_, at), map_, start, b"\0"))
    if swizzle.endswith("FLIP_8B"):
        return
    wanted = array.reshape(-1).view(np.uint8).copy()
    for place, address in expected(map_, walk(map_, at), start).items():
        if address is not None:
            wanted[address] = before[place]
    after, _ = launch(store("tile", 2, start), made, np.array(at), before, **options)
    np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(array.reshape(-1).view(np.uint8), wanted)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_what_is_outside_is_not_a_number(dtype: npt.DTypeLike) -> None:
    array = _array((6, 64), dtype)
    made = warpsim.tensor_map(array, box=(4, 16), fill="nan")
    map_, before = _map(made), _noise(1024, 3)
    after, report = launch(load("tile", 2, 64 * array.itemsize), made, np.array([56, 4]), before)
    assert "0x7ff7" in report.fidelity["inferred"][0].note
    inside = launch(load("tile", 2, 64 * array.itemsize), made, np.array([0, 0]), before)[1]
    assert inside.fidelity["inferred"] == ()
    wanted = _filled(array, before, walk(map_, (56, 4)), map_, 0, b"\xf7\x7f")
    np.testing.assert_array_equal(after, wanted)
    found = after[: 64 * array.itemsize].view(dtype).reshape(4, 16)
    assert np.isnan(found[2:].astype(np.float64)).all()


IMAGES = [  # shape (N, D, H, W, C), corners, element strides, channels, pixels, coordinates, offsets
    ((3, 9, 14, 16), (-1, -1), (-1, -1), None, 8, 64, (8, 4, 7, 1), (0, 0)),
    ((3, 9, 14, 16), (0, 0), (-2, -2), None, 16, 40, (0, 4, 6, 2), (2, 2)),
    ((3, 8, 14, 16), (-1, -1), (-1, -1), (1, 2, 2, 1), 16, 32, (0, 5, 6, 0), (1, 1)),
    ((4, 7, 24), (-2,), (1,), (1, 3, 1), 16, 40, (16, -2, 1), (3,)),
    ((2, 3, 4, 5, 16), (-1, 0, -1), (-1, 1, 0), None, 16, 100, (0, -1, 2, -1, 0), (1, 0, 2)),
]


@pytest.mark.parametrize(("shape", "lower", "upper", "steps", "channels", "pixels", "at", "offsets"), IMAGES)
def test_loads_of_columns(shape, lower, upper, steps, channels, pixels, at, offsets) -> None:  # type: ignore[no-untyped-def]
    array = _array(shape, np.float16)
    made = warpsim.tensor_map_im2col(
        array,
        lower=lower,
        upper=upper,
        channels=channels,
        pixels=pixels,
        element_strides=steps,
        swizzle="32B",
    )
    map_, before = _map(made), _noise(4096, 4)
    given = np.array([*at, *[0] * (5 - len(at)), *offsets])
    body = load("im2col", len(shape), channels * pixels * 2, 256, len(offsets), space="cta")
    after, report = launch(body, made, given, before)
    (inferred,) = report.fidelity["inferred"]
    assert inferred.mnemonic.startswith("cp.async.bulk.tensor")
    assert inferred.note.startswith("inferred: pixels are visited with W fastest")
    wanted = _filled(array, before, pixel_steps(map_, at, offsets), map_, 256, b"\0")
    np.testing.assert_array_equal(after, wanted)


def test_stores_of_columns() -> None:
    array = _array((2, 5, 6, 16), np.float16)
    made = warpsim.tensor_map_im2col(array, lower=(0, 1), upper=(-1, 0), channels=16, pixels=50)
    map_, before, at = _map(made), _noise(2048, 5), (0, 3, 2, 0)
    wanted = array.reshape(-1).view(np.uint8).copy()
    for place, address in expected(map_, pixel_steps(map_, at, (0, 0)), 0).items():
        if address is not None:
            wanted[address] = before[place]
    launch(store("im2col_no_offs", 4), made, np.array(at), before)
    np.testing.assert_array_equal(array.reshape(-1).view(np.uint8), wanted)
    outside = warpsim.tensor_map_im2col(array, lower=(0, -1), upper=(0, 0), channels=16, pixels=5)
    with pytest.raises(Fault, match="the corners of the map leave the tensor: those of a store stay inside"):
        launch(store("im2col_no_offs", 4), outside, np.array(at), before)


def test_four_rows() -> None:
    array = _array((20, 52), np.float32)
    made = warpsim.tensor_map(array, box=(1, 32), swizzle="128B")
    map_, before, at = _map(made), _noise(1024, 6), np.array([24, 19, 3, -1, 7])
    body = load("tile::gather4", 2, 512, 128)
    after, _ = launch(body, made, at, before, **BLACKWELL)
    steps = row_steps(map_, 24, at[1:].tolist())
    np.testing.assert_array_equal(after, _filled(array, before, steps, map_, 128, b"\0"))
    at[3] = 4
    wanted = array.reshape(-1).view(np.uint8).copy()
    for place, address in expected(map_, row_steps(map_, 24, at[1:].tolist()), 0).items():
        if address is not None:
            wanted[address] = before[place]
    launch(store("tile::scatter4", 2), made, at, before, **BLACKWELL)
    np.testing.assert_array_equal(array.reshape(-1).view(np.uint8), wanted)


# --- packed elements -------------------------------------------------------------------------------


def test_packed_elements() -> None:
    """Sixteen elements of 4 or 6 bits take 16 bytes of shared memory; stores take six bits of each byte."""
    before = _noise(1024, 7)
    for element, size in (("b4x16_p64", 8), ("b6x16_p32", 12)):
        array = _noise(4 * 192, 8).reshape(4, 192)
        made = warpsim.tensor_map(array, box=(2, 128), element=element)
        # gaps do not count: a launch that expects another number of bytes does not end
        after, _ = launch(load("tile", 2, 16 * size), made, np.array([128, 1]), before, **BLACKWELL)
        wanted = before.copy()
        for group in range(16):
            row, place = divmod(group, 8)
            first = size * (8 + place)
            wanted[16 * group : 16 * group + size] = array[1 + row, first : first + size]
        np.testing.assert_array_equal(after, wanted)
    launch(store("tile", 2), made, np.array([128, 2]), before, **BLACKWELL)
    bits = np.unpackbits(array[2:, 96:], axis=1, bitorder="little").reshape(2, 128, 6)
    stored = np.unpackbits(before[:256], bitorder="little").reshape(2, 128, 8)[:, :, :6]
    np.testing.assert_array_equal(bits, stored)
    with pytest.raises(Fault, match=r"elements of b6x16_p32: it needs sm_100 or higher, not sm_90a"):
        launch(load("tile", 2, 256), made, np.array([0, 0]), before)


# --- reductions ------------------------------------------------------------------------------------

SUMS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "min": np.minimum,
    "max": np.maximum,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "inc": lambda a, b: np.where(a >= b, 0, a + 1),
    "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("add", one) for one in (np.uint32, np.int32, np.uint64, np.float32, np.float16)),
        *((name, one) for name in ("min", "max") for one in (np.uint32, np.int32, np.uint64, np.int64)),
        *((name, one) for name in ("and", "or", "xor") for one in (np.uint32, np.int64)),
        *((name, np.uint32) for name in ("inc", "dec")),
    ],
)
def test_reductions(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(9)
    small = rng.integers(0, 100, (2, 24, 16)).astype(dtype)
    array, more = small[0].copy(), small[1]
    made = warpsim.tensor_map(array, box=(8, 16), swizzle="none")
    before = np.zeros(2048, np.uint8)
    before[: 128 * array.itemsize] = more[:8].reshape(-1).view(np.uint8)
    wanted = small[0].copy()
    wanted[20:] = SUMS[name](wanted[20:], more[:4]).astype(dtype)
    for schedule in ("program", "latest"):
        array[...] = small[0]
        launch(store("tile", 2, reduction=name), made, np.array([0, 20]), before, schedule=schedule)
        np.testing.assert_array_equal(array, wanted)


def test_elements_that_a_reduction_does_not_take() -> None:
    made = warpsim.tensor_map(np.zeros((8, 16), np.float16), box=(8, 16))
    with pytest.raises(Fault, match=r"\.xor of f16: it takes elements of u32, s32, u64, s64"):
        launch(store("tile", 2, reduction="xor"), made, np.zeros(2), np.zeros(512, np.uint8))


# --- what is wrong ---------------------------------------------------------------------------------

A = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
GOOD = warpsim.tensor_map(A, box=(8, 64), swizzle="128B")
LOAD = load("tile", 2, 1024)
STATEMENT = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
MISTAKES: list[tuple[str, object, tuple[int, ...], type[WarpsimError], str]] = [
    (
        load("tile", 2, 1024, start=64),
        GOOD,
        (0, 0),
        Fault,
        r"address 0x40 is not a multiple of 128, as those of boxes of tensors are",
    ),
    (
        load("tile", 2, 1024, start=1920),
        GOOD,
        (0, 0),
        Fault,
        r"address 0x780 lacks room: a box of 1024 bytes ends at 0xb80, beyond 2064 bytes of shared memory",
    ),
    (
        load("tile", 3, 1024),
        GOOD,
        (0, 0, 0),
        Fault,
        r"the map's tensor has 2 dimensions, but the instruction 3",
    ),
    (
        load("im2col", 3, 1024, offsets=1),
        warpsim.tensor_map(A[None], box=(1, 8, 64)),
        (0, 0, 0),
        Fault,
        r"the map is for tile, but the instruction for im2col",
    ),
    (LOAD, bytes(128), (0, 0), Fault, r"no tensor map: 00 00 00 00 00 00 00 00 is not how"),
    (
        load("tile", 2, 1024),
        warpsim.tensor_map(A, box=(8, 64), swizzle="128B_ATOM_64B"),
        (0, 0),
        Fault,
        r"the map has swizzle 128B_ATOM_64B: it needs sm_100 or higher, not sm_90a",
    ),
    (
        store("tile", 2),
        GOOD,
        (0, -1),
        Fault,
        r"coordinate -1: those of a store to global memory are not negative",
    ),
    (
        LOAD.replace("[%bar]", "[%tile]"),
        GOOD,
        (0, 0),
        UndefinedBehavior,
        r"no mbarrier has been initialised there",
    ),
    (
        load("tile", 2, 1024),
        warpsim.tensor_map(A, box=(8, 64), shape=(100, 64)),
        (0, 60),
        Fault,
        r"address 0x[0-9a-f]+ of the map's tensor is in no allocation: 0 bytes past the end of map of 8192",
    ),
    (
        load("tile", 3, 32),
        warpsim.tensor_map(A.reshape(64, 8, 8), box=(1, 2, 8), interleave="16B"),
        (0, 0, 0),
        NotModelled,
        r"a tensor with interleave 16B: no manual says which of its strides",
    ),
    (
        "add.u64 %map, %map, 8;" + LOAD,
        GOOD,
        (0, 0),
        Fault,
        r"is not a multiple of 64, as those of tensor maps are",
    ),
    (
        "cvta.shared.u64 %map, 0;" + LOAD,
        GOOD,
        (0, 0),
        Fault,
        r"is in .shared: tensor maps are in .param, .const or .global",
    ),
]


@pytest.mark.parametrize(("body", "map_", "at", "kind", "message"), MISTAKES)
def test_mistakes(
    body: str, map_: object, at: tuple[int, ...], kind: type[WarpsimError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        launch(body, map_, np.array(at), np.zeros(2048, np.uint8))
    assert caught.value.location is not None
    assert "CTA (0, 0, 0), warp 0, lane 0" in caught.value.message


def test_a_load_of_other_bytes_than_expected_never_ends() -> None:
    with pytest.raises(WarpsimError, match="deadlock"):
        launch(load("tile", 2, 1008), GOOD, np.zeros(2), np.zeros(2048, np.uint8))


def test_coordinates_are_a_vector_and_maps_have_no_offset() -> None:
    for body, message in (
        (LOAD.replace("{%c0, %c1}", "%c0"), "expected 2 values in braces, not '%c0'"),
        (LOAD.replace("{%c0, %c1}", "{%c0}"), "expected 2 values in braces, not '{%c0}'"),
        (LOAD.replace("[%map, {%c0, %c1}]", "[%map]"), "expected a map and coordinates, as"),
        (LOAD.replace("[%map,", "[%map+64,"), "the address of a tensor map takes no offset"),
        (LOAD.replace("cluster.global", "cluster.global.multicast::cluster"), "takes 4 operands"),
        (
            store("tile", 2).replace("global.shared::cta", "shared::cta.global"),
            "its modifiers do not go together",
        ),
    ):
        problems = [one.message for one in load_text(text(body, 512)).problems]
        assert len(problems) == 1
        assert message in problems[0]


def test_rows_of_pixels_are_not_modelled() -> None:
    body = load("im2col::w", 3, 1024, offsets=2)
    (problem,) = load_text(text(body, 512, **BLACKWELL)).problems
    assert isinstance(problem, NotModelled)
    assert problem.message.startswith("im2col::w: the manual shows the order of its pixels")


# --- clusters --------------------------------------------------------------------------------------

CLUSTER = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) .reqntid 32 {
.reg .b32 %r<9>, %own, %rank; .reg .b64 %map, %out, %word; .reg .pred %first, %p; .reg .b16 %mask;
.shared .align 1024 .b8 tile[2048];
.shared .align 8 .b64 bar;
mov.u32 %own, %tid.x;
mov.u32 %rank, %cluster_ctarank;
setp.eq.u32 %first, %own, 0;
mov.b64 %map, map;
cvta.param.u64 %map, %map;
mov.u32 %r1, tile;
mov.u32 %r2, bar;
@%first mbarrier.init.shared.b64 [bar], 1;
@%first fence.mbarrier_init.release.cluster;
@%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
shl.b32 %r3, %rank, 10;
add.u32 %r1, %r1, %r3;
shl.b32 %r4, %rank, 3;
mov.u16 %mask, MASK;
@%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [%r1], [%map, {0, %r4}], [%r2], %mask;
again: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra again;
ld.param.u64 %out, [out];
mad.lo.u32 %r5, %rank, 2048, 0;
mov.u32 %r6, 0;
next:
mad.lo.u32 %r7, %own, 4, %r6;
mov.u32 %r8, tile;
add.u32 %r8, %r8, %r7;
ld.shared.b32 %r3, [%r8];
add.u32 %r7, %r7, %r5;
cvt.u64.u32 %word, %r7;
add.u64 %word, %word, %out;
st.global.b32 [%word], %r3;
add.u32 %r6, %r6, 128;
setp.lt.u32 %p, %r6, 2048;
@%p bra next;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
}
"""


def test_each_cta_loads_a_part_for_all() -> None:
    """Rank r loads rows 8r to 8r + 7 to its place in both CTAs, which expect both parts."""
    array = _array((16, 64), np.uint16)
    for schedule in SCHEDULES:
        out = np.zeros((2, 16, 64), np.uint16)
        made = warpsim.tensor_map(array, box=(8, 64))
        load_text(CLUSTER.replace("MASK", "3"))["k"](2, 32, [made, out], cluster=2, schedule=schedule)
        np.testing.assert_array_equal(out, np.stack([array, array]))


def test_ctas_that_are_not_there() -> None:
    made = warpsim.tensor_map(_array((16, 64), np.uint16), box=(8, 64))
    with pytest.raises(Fault, match=r"is in shared memory of a CTA of rank 2: the cluster has 2 CTAs"):
        load_text(CLUSTER.replace("MASK", "5"))["k"](
            2, 32, [made, np.zeros((2, 16, 64), np.uint16)], cluster=2
        )


# --- prefetch --------------------------------------------------------------------------------------


def test_a_prefetch_looks_at_the_map() -> None:
    body = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%map, {%c0, %c1}];"
    before = _noise(512, 1)
    after, _ = launch(body, GOOD, np.array([-5, 90]), before)
    np.testing.assert_array_equal(after, before)
    with pytest.raises(Fault, match="no tensor map"):
        launch(body, bytes(128), np.array([0, 0]), before)


# --- maps as arguments -----------------------------------------------------------------------------


def test_maps_of_views_are_maps_of_one_array() -> None:
    """A store through one map is seen by a load through another; the array comes back."""
    whole = np.zeros((4, 32, 64), np.float16)
    before = _noise(4096, 4)
    launch(store("tile", 2), warpsim.tensor_map(whole[2], box=(32, 64)), np.array([0, 0]), before)
    np.testing.assert_array_equal(whole[2].reshape(-1).view(np.uint8), before)
    assert not whole[[0, 1, 3]].any()
    part = warpsim.tensor_map(whole[2, 8:, 16:], box=(8, 16))
    after, _ = launch(load("tile", 2, 256), part, np.array([8, 0]), np.zeros(512, np.uint8))
    np.testing.assert_array_equal(after[:256].view(np.float16).reshape(8, 16), whole[2, 8:16, 24:40])


def test_an_array_and_a_map_of_a_part_of_it_are_one_memory() -> None:
    """The kernel reads the array by its pointer and stores a box in it through the map."""
    both = _noise(4096, 9)
    first = both.copy()
    made = warpsim.tensor_map(both.view(np.float16).reshape(32, 64)[16:], box=(8, 64))
    after, _ = launch(store("tile", 2), made, np.array([0, 4]), both)
    np.testing.assert_array_equal(after, first)
    first[20 * 128 : 28 * 128] = first[: 8 * 128]
    np.testing.assert_array_equal(both, first)


def test_maps_of_buffers_by_value_and_in_memory() -> None:
    device = warpsim.Device("sm_90a")
    buffer = device.array(A)
    for made in (
        warpsim.tensor_map(buffer, box=(8, 64)),
        warpsim.tensor_map(buffer.at(0), box=(8, 64), shape=(64, 64)),
    ):
        after, _ = launch(LOAD, made, np.array([0, 8]), np.zeros(1024, np.uint8))
        np.testing.assert_array_equal(after.view(np.float16).reshape(8, 64), A[8:16])
    pointer = text(LOAD, 1024).replace(".param .align 64 .b8 map[128]", ".param .u64 map")
    pointer = pointer.replace("mov.b64 %map, map;\ncvta.param.u64 %map, %map;", "ld.param.u64 %map, [map];")
    for argument in (device.array(made), made, warpsim.tensor_map(A, box=(8, 64))):
        after = np.zeros(1024, np.uint8)
        at = np.zeros(32, np.int32)
        load_text(pointer)["k"](1, 32, [argument, at, after.copy(), after], device=device)
        np.testing.assert_array_equal(after.view(np.float16).reshape(8, 64), A[:8])
    with pytest.raises(OperandError, match="the buffer belongs to another device"):
        launch(LOAD, made, np.array([0, 8]), np.zeros(1024, np.uint8), device=warpsim.Device("sm_90a"))


def test_what_maps_are_not_made_of() -> None:
    for make, message in (
        (
            lambda: warpsim.tensor_map(A[:, ::2], box=(8, 8)),
            r"the innermost .* are 4 bytes apart, not 2",
        ),
        (lambda: warpsim.tensor_map(A[::-1], box=(8, 8)), r"strides of \(-128, 2\) bytes: .* not negative"),
        (lambda: warpsim.tensor_map(A[:, 1:], box=(8, 8)), r"global address 0x2: expected a multiple of 16"),
        (lambda: warpsim.tensor_map([1, 2], box=(8,)), r"expected an array or a buffer, given list"),
        (lambda: warpsim.tensor_map(A, box=(8, 8), element="f32"), r"it takes items of 32 bits"),
        (lambda: warpsim.tensor_map(A, box=(8, 1.5)), r"each of box is an integer, not 1.5"),  # type: ignore[arg-type]
        (lambda: warpsim.tensor_map(A.astype(complex), box=(8, 8)), r"elements of dtype complex128"),
        (lambda: bytes(GOOD), r"has no bytes before a launch puts the array on a device"),
    ):
        with pytest.raises(OperandError, match=message):
            make()
    padded = warpsim.tensor_map(A, box=(8, 8), shape=(60, 50), strides=(128,))
    assert _map(padded) == replace(_map(GOOD), sizes=(50, 60), box=(8, 8), swizzle="none")
