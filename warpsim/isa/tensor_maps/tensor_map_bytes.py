"""Tensor maps as the 128 bytes that kernels take, and what tensormap.replace makes of them.

Knows where each field lies; what fields mean is in tensor_fields.py. PTX keeps the bytes to itself. Here they
are, little-endian:

    0  8   magic                    84  1   elemtype            92  3x2  lower corners, signed
    8  8   global_address           85  1   interleave_layout   98  3x2  upper corners, signed
   16 4x8  global_stride, bytes     86  1   swizzle_mode       104  2    channels per pixel
   48 5x4  global_dim, 2**32 is 0   87  1   swizzle_atomicity  106  2    pixels per column
   68 5x2  box_dim                  88  1   fill_mode          108  4    never set, a bit each
   78 5x1  element_stride           89  1   L2 promotion       112  12   zero
   83  1   rank - 1                 90  1   mode               124  4    CRC-32 of all before

Names and codes are those of tensormap.replace. The driver's own maps have other, undocumented
bytes: they cannot be read.

Inferred: that nothing else may change the bytes of a map, which is why they have a checksum; that
tensormap.replace takes 128 bytes of zeros for a tiled map whose codes are all 0, as Triton's kernels make
their maps (version 3.9 leaves out interleave_layout and fill_mode); its address, sizes and strides have to be
set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

from ...base.errors import OperandError
from ..layouts.swizzle import TensorSwizzle
from .tensor_fields import (
    ELEMENT_TYPES,
    FILLS,
    INTERLEAVES,
    MAP_BYTES,
    MODES,
    MOST_DIMENSIONS,
    PROMOTIONS,
    SWIZZLES,
    Im2col,
    TensorFields,
)

_MODE_NAMES = ("no swizzle", "32B", "64B", "128B", "96B")
_ATOMS = ("16B", "32B", "32B with 8B flip", "64B")
MAGIC = int.from_bytes(b"TENSMAP\x01", "little")


@dataclass(frozen=True, kw_only=True)
class FieldPlace:
    """Where a field lies in the 128 bytes: ``count`` integers of ``size`` bytes each."""

    first: int
    size: int
    count: int = 1
    signed: bool = False

    def read(self, content: bytes) -> tuple[int, ...]:
        """Return its integers."""
        starts = range(self.first, self.first + self.size * self.count, self.size)
        return tuple(
            int.from_bytes(content[at : at + self.size], "little", signed=self.signed) for at in starts
        )

    def write(self, content: bytearray, values: tuple[int, ...]) -> None:
        """Put integers there; the rest of them is 0."""
        for place in range(self.count):
            value = values[place] if place < len(values) else 0
            at = self.first + place * self.size
            content[at : at + self.size] = value.to_bytes(self.size, "little", signed=self.signed)


PLACES = {
    "magic": FieldPlace(first=0, size=8),
    "global_address": FieldPlace(first=8, size=8),
    "global_stride": FieldPlace(first=16, size=8, count=4),
    "global_dim": FieldPlace(first=48, size=4, count=5),
    "box_dim": FieldPlace(first=68, size=2, count=5),
    "element_stride": FieldPlace(first=78, size=1, count=5),
    "rank": FieldPlace(first=83, size=1),
    "elemtype": FieldPlace(first=84, size=1),
    "interleave_layout": FieldPlace(first=85, size=1),
    "swizzle_mode": FieldPlace(first=86, size=1),
    "swizzle_atomicity": FieldPlace(first=87, size=1),
    "fill_mode": FieldPlace(first=88, size=1),
    "l2_promotion": FieldPlace(first=89, size=1),
    "mode": FieldPlace(first=90, size=1),
    "lower": FieldPlace(first=92, size=2, count=3, signed=True),
    "upper": FieldPlace(first=98, size=2, count=3, signed=True),
    "channels": FieldPlace(first=104, size=2),
    "pixels": FieldPlace(first=106, size=2),
    "never_set": FieldPlace(first=108, size=4),
}
_CHECKSUM = FieldPlace(first=124, size=4)
_WORD = 1 << 32


def encode(map_: TensorFields) -> bytes:
    """Return the 128 bytes of a map."""
    im2col = map_.im2col or Im2col(lower=(), upper=(), channels=0, pixels=0, mode="tile")
    mode, atomicity = SWIZZLES[map_.swizzle]
    values: dict[str, tuple[int, ...]] = {
        "magic": (MAGIC,),
        "global_address": (map_.address,),
        "global_stride": map_.strides,
        "global_dim": tuple(size % _WORD for size in map_.sizes),
        "box_dim": map_.box,
        "element_stride": map_.element_strides,
        "rank": (map_.rank - 1,),
        "elemtype": (map_.type.code,),
        "interleave_layout": (INTERLEAVES.index(map_.interleave),),
        "swizzle_mode": (mode,),
        "swizzle_atomicity": (atomicity,),
        "fill_mode": (FILLS.index(map_.fill),),
        "l2_promotion": (PROMOTIONS.index(map_.l2_promotion),),
        "mode": (MODES.index(im2col.mode),),
        "lower": im2col.lower,
        "upper": im2col.upper,
        "channels": (im2col.channels,),
        "pixels": (im2col.pixels,),
        "never_set": (0,),
    }
    content = bytearray(MAP_BYTES)
    for name, place in PLACES.items():
        place.write(content, values[name])
    return _with_checksum(content)


def _with_checksum(content: bytearray) -> bytes:
    _CHECKSUM.write(content, (crc32(content[: _CHECKSUM.first]),))
    return bytes(content)


def decode_fields(content: bytes) -> TensorFields:
    """Return the fields in 128 bytes, without their limits checked; raise OperandError for other bytes."""
    check_bytes(content)
    return TensorFields(**_parts(content))


def check_bytes(content: bytes) -> None:
    """Raise OperandError for bytes that are not a map of ours."""
    if len(content) != MAP_BYTES:
        raise OperandError(f"a tensor map has {MAP_BYTES} bytes, not {len(content)}")
    if PLACES["magic"].read(content) != (MAGIC,):
        start = content[:8].hex(" ")
        raise OperandError(f"no tensor map: {start} is not how the bytes of one of warpsim.tensor_map start")
    if _CHECKSUM.read(content) != (crc32(content[: _CHECKSUM.first]),):
        raise OperandError("no tensor map any more: its bytes were changed, and not by tensormap.replace")


def _parts(content: bytes) -> dict[str, Any]:
    """Return the arguments of TensorFields."""
    found = {name: place.read(content) for name, place in PLACES.items()}
    rank = found["rank"][0] + 1
    mode = MODES[found["mode"][0]]
    corners = max(rank - 2, 0)
    im2col = Im2col(
        lower=found["lower"][:corners],
        upper=found["upper"][:corners],
        channels=found["channels"][0],
        pixels=found["pixels"][0],
        mode=mode,
    )
    return {
        "address": found["global_address"][0],
        "element": tuple(ELEMENT_TYPES)[found["elemtype"][0]],
        "sizes": tuple(size or _WORD for size in found["global_dim"][:rank]),
        "strides": found["global_stride"][: rank - 1],
        "box": found["box_dim"][:rank] if mode == "tile" else (),
        "element_strides": found["element_stride"][:rank],
        "interleave": INTERLEAVES[found["interleave_layout"][0]],
        "swizzle": _swizzle(found["swizzle_mode"][0], found["swizzle_atomicity"][0]),
        "fill": FILLS[found["fill_mode"][0]],
        "l2_promotion": PROMOTIONS[found["l2_promotion"][0]],
        "im2col": None if mode == "tile" else im2col,
    }


def _swizzle(mode: int, atomicity: int) -> TensorSwizzle:
    """Return the swizzle of two codes; raise OperandError (PTX ISA 9.1, Table 14)."""
    for name, codes in SWIZZLES.items():
        if codes == (mode, atomicity) or (codes[0] == mode == 0):
            return name
    raise OperandError(
        f"a swizzle of {_MODE_NAMES[mode]} with atoms of {_ATOMS[atomicity]}: only 128B has others than 16B"
    )


# --- tensormap.replace -----------------------------------------------------------------------------

LIMITS = {  # of new values, first and last: what fits in its field and can be in a map
    "global_address": (0, (1 << 64) - 1),
    "rank": (0, MOST_DIMENSIONS - 1),
    "box_dim": (1, 256),
    "global_dim": (1, _WORD - 1),
    "global_stride": (0, (1 << 40) - 1),
    "element_stride": (1, 8),
    "elemtype": (0, len(ELEMENT_TYPES) - 1),
    "interleave_layout": (0, len(INTERLEAVES) - 1),
    "swizzle_mode": (0, len(_MODE_NAMES) - 1),
    "swizzle_atomicity": (0, len(_ATOMS) - 1),
    "fill_mode": (0, len(FILLS) - 1),
}


_BY_DIMENSION = {"global_dim": 0, "box_dim": 0, "element_stride": 0, "global_stride": 1}  # a map has fewer by
# (name, ordinal) of what has no value unless it is set -> its bit in "never_set"
_BITS = {
    place: 1 << bit
    for bit, place in enumerate(
        (name, ordinal)
        for name in ("global_address", *_BY_DIMENSION)
        for ordinal in range(PLACES[name].count)
    )
}


def _blank() -> bytes:
    """Return a tiled map of which nothing has been set: all codes are 0."""
    content = bytearray(MAP_BYTES)
    PLACES["magic"].write(content, (MAGIC,))
    PLACES["never_set"].write(content, (sum(_BITS.values()),))
    return _with_checksum(content)


def check_set(content: bytes) -> None:
    """Raise OperandError for a map that began as zeros and lacks what its rank needs."""
    unset = PLACES["never_set"].read(content)[0]
    rank = PLACES["rank"].read(content)[0] + 1
    for (name, ordinal), bit in _BITS.items():
        if unset & bit and ordinal < rank - _BY_DIMENSION.get(name, 0):
            what = f"{name} {ordinal}" if name in _BY_DIMENSION else name
            raise OperandError(f"the map began as 128 bytes of zeros, and nothing has set its {what}")


def replaced(content: bytes, name: str, value: int, ordinal: int = 0) -> bytes:
    """Return the map with one field changed; its limits are checked when it is used.

    128 bytes of zeros are a map without address, sizes and strides. Raises OperandError for other bytes that
    are not a map, and values out of range.
    """
    content = content if any(content) else _blank()
    check_bytes(content)
    if PLACES["mode"].read(content) != (0,):
        raise OperandError("the map is one of im2col: tensormap.replace.tile changes tiled maps")
    first, last = LIMITS[name]
    if not first <= value <= last:
        raise OperandError(f"{name} {value}: expected {first} to {last}")
    place, changed = PLACES[name], bytearray(content)
    values = list(place.read(content))
    values[ordinal] = value
    place.write(changed, tuple(values))
    unset = PLACES["never_set"].read(content)[0] & ~_BITS.get((name, ordinal), 0)
    PLACES["never_set"].write(changed, (unset,))
    return _with_checksum(changed)
