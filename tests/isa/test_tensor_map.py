"""Tensor maps: 128 bytes and back, every limit with its message, and what tensormap.replace makes of one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import OperandError
from warpsim.isa.tensor_maps.tensor_fields import ELEMENT_TYPES, MAP_BYTES, SWIZZLES, Im2col
from warpsim.isa.tensor_maps.tensor_map import TensorMap, decode
from warpsim.isa.tensor_maps.tensor_map_bytes import decode_fields, replaced

GOOD: dict[str, Any] = {
    "address": 0x1000,
    "element": "f16",
    "sizes": (100, 37, 5),
    "strides": (256, 16384),
    "box": (64, 8, 1),
    "swizzle": "128B",
}
IMAGE: dict[str, Any] = {
    "address": 0x1000,
    "element": "f16",
    "sizes": (64, 14, 9, 3),
    "strides": (128, 1792, 16128),
    "im2col": Im2col(lower=(-1, -2), upper=(-1, 0), channels=64, pixels=128),
}
PIXELS = IMAGE["im2col"]
PADDED: dict[str, Any] = {
    "address": 0x1000,
    "element": "b6x16_p32",
    "sizes": (256, 4),
    "strides": (192,),
    "box": (128, 4),
}


def _varied(rng: np.random.Generator) -> TensorMap:
    rank = int(rng.integers(1, 6))
    return TensorMap(
        address=16 * int(rng.integers(0, 1 << 60)),
        element=str(rng.choice([name for name, one in ELEMENT_TYPES.items() if not one.packed])),
        sizes=tuple(int(one) for one in rng.integers(1, (1 << 32) + 1, rank)),
        strides=tuple(16 * int(one) for one in rng.integers(0, 1 << 36, rank - 1)),
        box=(16, *(int(one) for one in rng.integers(1, 257, rank - 1))),
        element_strides=tuple(int(one) for one in rng.integers(1, 9, rank)),
        swizzle=str(rng.choice([name for name in SWIZZLES if name.startswith(("none", "128B"))])),  # type: ignore[arg-type]
        l2_promotion=str(rng.choice(["none", "64B", "128B", "256B"])),  # type: ignore[arg-type]
    )


def test_bytes_and_back() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        map_ = _varied(rng)
        assert len(bytes(map_)) == MAP_BYTES
        assert decode(bytes(map_)) == map_
    for map_ in (
        TensorMap(**GOOD | {"fill": "nan"}),
        TensorMap(**IMAGE),
        TensorMap(**PADDED),
        TensorMap(**IMAGE | {"im2col": replace(PIXELS, mode="im2col::w"), "swizzle": "128B"}),
        TensorMap(**GOOD | {"box": (256, 2, 1), "interleave": "32B", "swizzle": "32B"}),
    ):
        assert decode(bytes(map_)) == map_


def test_what_is_no_map() -> None:
    with pytest.raises(OperandError, match=r"no tensor map: 00 00 00 00 00 00 00 00 is not how"):
        decode(bytes(MAP_BYTES))
    with pytest.raises(OperandError, match=r"a tensor map has 128 bytes, not 64"):
        decode(bytes(64))
    changed = bytearray(bytes(TensorMap(**GOOD)))
    changed[16] ^= 16
    with pytest.raises(OperandError, match=r"its bytes were changed, and not by tensormap.replace"):
        decode(bytes(changed))


LIMITS = [
    (GOOD, {"sizes": (8,) * 6}, "a tensor of 6 dimensions: a map has 1 to 5"),
    (GOOD, {"sizes": ()}, "a tensor of 0 dimensions: a map has 1 to 5"),
    (
        GOOD,
        {"sizes": (64, 8), "interleave": "16B"},
        "a tensor of 2 dimensions: a map with interleave has 3 to 5",
    ),
    (GOOD, {"box": (64, 8)}, "box has 2 values, but a tensor of 3 dimensions has 3"),
    (GOOD, {"strides": (256,)}, "strides has 1 values, but a tensor of 3 dimensions has 2"),
    (GOOD, {"element_strides": (1, 1)}, "element_strides has 2 values, but a tensor of 3 dimensions has 3"),
    (GOOD, {"address": 0x1008}, "global address 0x1008: expected a multiple of 16 bytes"),
    (
        GOOD,
        {"address": 0x1010, "interleave": "32B", "swizzle": "32B"},
        "global address 0x1010: expected a multiple of 32 bytes with interleave 32B",
    ),
    (PADDED, {"address": 0x1010}, "global address 0x1010: expected a multiple of 32 bytes with b6x16_p32"),
    (GOOD, {"sizes": (0, 1, 1)}, "the innermost dimension has 0 elements: a map has 1 to 2**32"),
    (
        GOOD,
        {"sizes": (1, (1 << 32) + 1, 1)},
        "dimension 1 from inside has 4294967297 elements: a map has 1 to 2**32",
    ),
    (
        PADDED,
        {"sizes": (64, 4)},
        "the innermost dimension has 64 elements: with b6x16_p32 it is a multiple of 128",
    ),
    (
        GOOD,
        {"strides": (200, 16384)},
        "the stride of 200 bytes of dimension 1 from inside: expected a multiple of 16 bytes",
    ),
    (
        GOOD,
        {"strides": (256, 1 << 40)},
        "the stride of 1099511627776 bytes of dimension 2 from inside: expected less than 2**40",
    ),
    (
        PADDED,
        {"strides": (208,)},
        "the stride of 208 bytes of dimension 1 from inside: expected a multiple of 32 bytes with b6x16_p32",
    ),
    (
        GOOD,
        {"element_strides": (1, 9, 1)},
        "the element stride 9 of dimension 1 from inside: expected 1 to 8",
    ),
    (
        GOOD,
        {"element_strides": (1, 1, 0)},
        "the element stride 0 of dimension 2 from inside: expected 1 to 8",
    ),
    (GOOD, {"box": (64, 257, 1)}, "a box of 257 elements along dimension 1 from inside: it has 1 to 256"),
    (GOOD, {"box": (0, 1, 1)}, "a box of 0 elements along the innermost dimension: it has 1 to 256"),
    (
        GOOD,
        {"box": (12, 1, 1)},
        "a box with 12 elements of the innermost dimension of f16 has rows of 24 bytes: "
        "expected a multiple of 16 bytes",
    ),
    (
        GOOD,
        {"box": (72, 1, 1)},
        "a box with 72 elements of the innermost dimension of f16 has rows of 144 bytes: "
        "with swizzle 128B it has at most 128",
    ),
    (
        PADDED,
        {"box": (64, 1)},
        "a box with 64 elements of the innermost dimension of b6x16_p32: it has exactly 128 of them",
    ),
    (GOOD, {"interleave": "32B"}, "interleave 32B with swizzle 128B: it goes with swizzle 32B only"),
    (
        PADDED,
        {"swizzle": "64B"},
        "a box with 128 elements of the innermost dimension of b6x16_p32 has rows of 128 bytes: "
        "with swizzle 64B it has at most 64",
    ),
    (
        PADDED,
        {"swizzle": "128B_ATOM_32B_FLIP_8B"},
        "swizzle 128B_ATOM_32B_FLIP_8B with b6x16_p32: it goes with none, 128B, 128B_ATOM_32B, 128B_ATOM_64B",
    ),
    (
        GOOD,
        {"element": "u16", "fill": "nan"},
        'fill "nan" with u16: only elements in floating point have NaN',
    ),
    (GOOD, {"element": "f8"}, "element 'f8': expected 'u8', "),
    (GOOD, {"swizzle": "256B"}, "swizzle '256B': expected 'none', '32B', "),
    (IMAGE, {"sizes": (64, 14), "strides": (128,)}, "a tensor of 2 dimensions: a map of im2col has 3 to 5"),
    (
        IMAGE,
        {"im2col": replace(PIXELS, lower=(-1,))},
        "the lower corner has 1 values, but a tensor of 4 dimensions has 2 of pixels",
    ),
    (
        IMAGE,
        {"im2col": replace(PIXELS, upper=(0, 128))},
        "128 in the upper corner: in a tensor of 4 dimensions it is -128 to 127",
    ),
    (
        IMAGE,
        {"im2col": replace(PIXELS, lower=(5, 0), upper=(-9, 0))},
        "corners 5 and -9 leave no pixel of 14: the last pixel is 4",
    ),
    (IMAGE, {"im2col": replace(PIXELS, channels=257)}, "257 channels per pixel: expected 1 to 256"),
    (IMAGE, {"im2col": replace(PIXELS, pixels=1025)}, "1025 pixels per column: expected 1 to 1024"),
    (
        IMAGE,
        {"im2col": replace(PIXELS, channels=12)},
        "a box with 12 channels of f16 has rows of 24 bytes: expected a multiple of 16 bytes",
    ),
    (
        IMAGE,
        {"im2col": replace(PIXELS, mode="im2col::w")},
        "swizzle none with im2col::w: it goes with 64B, 128B, 128B_ATOM_32B",
    ),
]


@pytest.mark.parametrize(("fields", "change", "message"), LIMITS)
def test_limits(fields: dict[str, Any], change: dict[str, Any], message: str) -> None:
    TensorMap(**fields)
    with pytest.raises(OperandError) as caught:
        TensorMap(**fields | change)
    assert caught.value.message.startswith(message)
    if not message.endswith(", "):
        assert caught.value.message == message


def test_at_the_limits() -> None:
    TensorMap(**GOOD | {"sizes": (1 << 32,) * 3, "strides": ((1 << 40) - 16, 0), "element_strides": (8,) * 3})
    TensorMap(**GOOD | {"box": (64, 256, 256)})
    TensorMap(**GOOD | {"box": (128, 1, 1), "swizzle": "none"})
    TensorMap(**IMAGE | {"im2col": replace(PIXELS, lower=(-128, 0), upper=(127, -8), pixels=1024)})
    heads = TensorMap(**GOOD | {"strides": (16384, 256)})  # nearer than the dimension inside of it
    assert heads.counts == (64, 8, 1)


# --- tensormap.replace -----------------------------------------------------------------------------


def test_every_field_is_replaced() -> None:
    content = bytes(TensorMap(**GOOD))
    for name, value, ordinal in (
        ("global_address", 0x8000, 0),
        ("global_dim", 64, 0),
        ("global_dim", 3, 2),
        ("global_stride", 512, 0),
        ("global_stride", 32768, 1),
        ("box_dim", 32, 0),
        ("box_dim", 16, 1),
        ("element_stride", 2, 1),
        ("elemtype", ELEMENT_TYPES["bf16"].code, 0),
        ("swizzle_mode", 2, 0),
        ("fill_mode", 1, 0),
        ("rank", 1, 0),
    ):
        content = replaced(content, name, value, ordinal)
    assert decode(content) == TensorMap(
        address=0x8000,
        element="bf16",
        sizes=(64, 37),
        strides=(512,),
        box=(32, 16),
        element_strides=(1, 2),
        swizzle="64B",
        fill="nan",
    )
    assert decode(replaced(content, "interleave_layout", 0)) == decode(content)


def test_what_is_replaced_is_checked_when_it_is_used() -> None:
    content = replaced(bytes(TensorMap(**GOOD)), "swizzle_mode", 1)
    assert decode_fields(content).swizzle == "32B"
    with pytest.raises(OperandError, match="with swizzle 32B it has at most 32"):
        decode(content)
    with pytest.raises(OperandError, match="a swizzle of 32B with atoms of 64B: only 128B has others"):
        decode(replaced(content, "swizzle_atomicity", 3))
    assert decode(replaced(bytes(TensorMap(**GOOD)), "swizzle_atomicity", 3)).swizzle == "128B_ATOM_64B"


def test_values_that_no_field_takes() -> None:
    content = bytes(TensorMap(**GOOD))
    for name, value, message in (
        ("box_dim", 257, "box_dim 257: expected 1 to 256"),
        ("global_dim", 0, "global_dim 0: expected 1 to 4294967295"),
        ("global_stride", 1 << 40, "global_stride 1099511627776: expected 0 to 1099511627775"),
        ("element_stride", 0, "element_stride 0: expected 1 to 8"),
        ("rank", 5, "rank 5: expected 0 to 4"),
    ):
        with pytest.raises(OperandError, match=message):
            replaced(content, name, value)
    with pytest.raises(OperandError, match=r"tensormap.replace.tile changes tiled maps"):
        replaced(bytes(TensorMap(**IMAGE)), "global_address", 0)
