"""cuTensorMapEncodeTiled, Im2col and ReplaceAddress: numbers of cuda.h become fields of a tensor map."""

from __future__ import annotations

from typing import NamedTuple

from ....base.errors import OperandError
from ....isa.layouts.swizzle import TensorSwizzle
from ....isa.tensor_maps.tensor_fields import (
    ELEMENT_TYPES,
    FILLS,
    INTERLEAVES,
    MAP_BYTES,
    PROMOTIONS,
    Im2col,
)
from ....isa.tensor_maps.tensor_map import TensorMap, decode
from ..calls import Call, Int, Pointer, Unsigned, row
from ..error_codes import CudaError

_ELEMENTS = (  # in the order of CUtensorMapDataType
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz"),
    *("b4x16", "b4x16_p64", "b6x16_p32"),
)
_SWIZZLES: tuple[TensorSwizzle, ...] = (  # in the order of CUtensorMapSwizzle
    "none",
    "32B",
    "64B",
    "128B",
    "128B_ATOM_32B",
    "128B_ATOM_32B_FLIP_8B",
    "128B_ATOM_64B",
)
assert set(_ELEMENTS) == set(ELEMENT_TYPES)


def _choice(values: tuple[str, ...], number: int, what: str) -> str:
    if not 0 <= number < len(values):
        raise CudaError("InvalidValue", f"{what} {number}: expected 0 to {len(values) - 1}")
    return values[number]


def _encode(call: Call, result: int, tensor: tuple[int, int, int], fields: dict[str, object]) -> None:
    """Write a map; ``tensor`` are the addresses of sizes, strides and element strides."""
    rank = fields.pop("rank")
    sizes, strides, steps = tensor
    assert isinstance(rank, int)
    try:
        made = TensorMap(
            sizes=call.get(sizes, f"{rank}Q"),
            strides=call.get(strides, f"{rank - 1}Q") if rank > 1 else (),
            element_strides=call.get(steps, f"{rank}I"),
            **fields,  # type: ignore[arg-type]
        )
    except OperandError as error:
        raise CudaError("InvalidValue", f"{call.name}: {error}") from None
    call.write(result, bytes(made))


def _checked_rank(rank: int) -> int:
    if not 1 <= rank <= 5:
        raise CudaError("InvalidValue", f"a tensor of rank {rank}: 1 to 5")
    return rank


class TiledMap(NamedTuple):
    """The parameters of cuTensorMapEncodeTiled."""

    result: Pointer
    element: Int
    rank: Unsigned
    address: Pointer
    sizes: Pointer
    strides: Pointer
    box: Pointer
    steps: Pointer
    interleave: Int
    swizzle: Int
    promotion: Int
    fill: Int


class Im2colMap(NamedTuple):
    """The parameters of cuTensorMapEncodeIm2col."""

    result: Pointer
    element: Int
    rank: Unsigned
    address: Pointer
    sizes: Pointer
    strides: Pointer
    lower: Pointer
    upper: Pointer
    channels: Unsigned
    pixels: Unsigned
    steps: Pointer
    interleave: Int
    swizzle: Int
    promotion: Int
    fill: Int


def _modes(asked: TiledMap | Im2colMap) -> dict[str, object]:
    """Return the fields that both have."""
    return {
        "rank": _checked_rank(asked.rank),
        "address": asked.address,
        "element": _choice(_ELEMENTS, asked.element, "data type"),
        "interleave": _choice(INTERLEAVES, asked.interleave, "interleave"),
        "swizzle": _choice(_SWIZZLES, asked.swizzle, "swizzle"),
        "l2_promotion": _choice(PROMOTIONS, asked.promotion, "promotion"),
        "fill": _choice(FILLS, asked.fill, "fill"),
    }


@row("cuTensorMapEncodeTiled")
def encode_tiled(call: Call, asked: TiledMap) -> None:
    """Make a tensor map for tiles."""
    fields = {**_modes(asked), "box": call.get(asked.box, f"{asked.rank}I")}
    _encode(call, asked.result, (asked.sizes, asked.strides, asked.steps), fields)


@row("cuTensorMapEncodeIm2col")
def encode_im2col(call: Call, asked: Im2colMap) -> None:
    """Make a tensor map for columns of pixels."""
    fields = _modes(asked)
    corners = asked.rank - 2
    fields["im2col"] = Im2col(
        lower=call.get(asked.lower, f"{corners}i"),
        upper=call.get(asked.upper, f"{corners}i"),
        channels=asked.channels,
        pixels=asked.pixels,
    )
    _encode(call, asked.result, (asked.sizes, asked.strides, asked.steps), fields)


@row("cuTensorMapReplaceAddress")
def replace_address(call: Call, result: Pointer, address: Pointer) -> None:
    """Give a tensor map another address."""
    try:
        found = decode(call.read(result, MAP_BYTES))
        made = TensorMap(**{**vars(found), "address": address})
    except OperandError as error:
        raise CudaError("InvalidValue", f"{call.name}: {error}") from None
    call.write(result, bytes(made))
