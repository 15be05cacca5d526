"""The 64-bit shared-memory descriptor of tcgen05: fields, addresses of the tile, and what is unusual.

PTX ISA 9.3, section 9.7.17.4.1 "Shared memory descriptor", and 9.7.17.5 for canonical layouts. It differs
from the matrix descriptor of wgmma in bits 46 to 48, which are 1 here, and in the codes of its swizzles.
Knows words and bytes; does not know elements, instructions or memories.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Literal, SupportsIndex

import numpy as np

from ...base.errors import NotModelled, OperandError
from ..layouts.strides import Modes, modes, points
from ..layouts.swizzle import tensor_swizzled
from ..memory import Addresses
from .instruction_descriptor import BitField
from .matrix_descriptor import LINE, Field, Major, unusual_pattern

WINDOW = 0x3FFFF  # bits of a shared address that a descriptor holds
CHUNK = 16  # bytes of a row that stay together under every swizzle but that of 32-byte atoms
_CONSTANT = BitField("constant", "constant", 46, 3)
FIELDS = (
    BitField("start address", "start_address", 0, 14, 16),
    BitField("leading byte offset", "leading_byte_offset", 16, 14, 16),
    BitField("stride byte offset", "stride_byte_offset", 32, 14, 16),
    _CONSTANT,
    BitField("base offset", "base_offset", 49, 3),
    BitField("LBO mode", "absolute", 52, 1),
    BitField("swizzle", "swizzle_code", 61, 3),
)
RESERVED = ((1 << 64) - 1) & ~sum(field.mask for field in FIELDS)
SwizzleMode = Literal["none", "32B", "64B", "128B", "128B_ATOM_32B"]
SWIZZLES: dict[int, SwizzleMode] = {0: "none", 1: "128B_ATOM_32B", 2: "128B", 4: "64B", 6: "32B"}
_CODES = {name: code for code, name in SWIZZLES.items()}
WIDTH: dict[SwizzleMode, int] = {"none": 16, "32B": 32, "64B": 64, "128B": 128, "128B_ATOM_32B": 128}
_HOPPER = {0: "none", 1: "128B", 2: "64B", 3: "32B"}  # codes of wgmma, in bits 62 and 63


@dataclass(frozen=True, kw_only=True)
class TensorDescriptor:
    """A shared-memory descriptor of tcgen05; addresses and offsets in bytes, multiples of 16.

    ``absolute`` says that the leading byte offset is an address (sm_103a). Raises OperandError for a field
    out of range.
    """

    start_address: int
    leading_byte_offset: int = 0
    stride_byte_offset: int = 0
    base_offset: int = 0
    swizzle: SwizzleMode = "none"
    absolute: int = 0

    def __post_init__(self) -> None:
        if self.swizzle not in _CODES:
            raise OperandError(f"swizzle {self.swizzle!r}: expected {', '.join(_CODES)}")
        for field in FIELDS:
            value, most = getattr(self, field.attribute), ((1 << field.bits) - 1) * field.unit
            if not 0 <= value <= most:
                raise OperandError(f"{field.name} {value} of a descriptor is outside 0..{most}")
            if value % field.unit:
                raise OperandError(
                    f"{field.name} {value:#x} of a descriptor is not a multiple of {field.unit} bytes"
                )

    @property
    def constant(self) -> int:
        """What bits 46 to 48 hold."""
        return 1

    @property
    def swizzle_code(self) -> int:
        """What bits 61 to 63 hold."""
        return _CODES[self.swizzle]

    def __str__(self) -> str:
        return (
            f"start {self.start_address:#06x}, LBO {self.leading_byte_offset}, "
            f"SBO {self.stride_byte_offset}, swizzle {self.swizzle}"
        )

    def encode(self) -> int:
        """Return the 64-bit word."""
        return sum(getattr(self, field.attribute) // field.unit << field.lowest for field in FIELDS)

    @classmethod
    def decode(cls, value: SupportsIndex) -> TensorDescriptor:
        """Return the descriptor of a word. Raises OperandError for a word that is none, and says so where it
        looks like a descriptor of wgmma.
        """
        word = operator.index(value)
        if not 0 <= word < 1 << 64:
            raise OperandError(f"a descriptor is an unsigned 64-bit word, not {word:#x}")
        if _CONSTANT.value(word) != 1:
            raise OperandError(_constant_message(word))
        if word & RESERVED:
            bits = [bit for bit in range(64) if word & RESERVED & 1 << bit]
            listed = ", ".join(map(str, bits))
            raise OperandError(
                f"descriptor {word:#018x} has reserved bits {listed} set{tensor_reserved_hint(bits)}"
            )
        values = {field.attribute: field.value(word) for field in FIELDS}
        code = values.pop("swizzle_code")
        if code not in SWIZZLES:
            legal = ", ".join(f"{known} ({name})" for known, name in SWIZZLES.items())
            raise OperandError(f"descriptor {word:#018x}: swizzle is {code} (bits 63:61); legal: {legal}")
        del values["constant"]
        return cls(**values, swizzle=SWIZZLES[code])

    def advanced(self, size: int) -> TensorDescriptor:
        """Return this descriptor with its start address moved by so many bytes, as kernels step along K."""
        return replace(self, start_address=self.start_address + size)

    @property
    def unusual(self) -> str:
        """Return what is inferred of where the swizzle pattern lies, "" where it begins with the tile."""
        width = "128B" if self.swizzle.startswith("128B") else self.swizzle
        return unusual_pattern(self.start_address, width, self.base_offset)

    def fields(self, major: Major = "K") -> tuple[Field, ...]:
        """Return the fields and their meaning for a tile that is K- or MN-major."""
        return tuple(
            Field(
                name=field.name,
                bits=field.span,
                raw=getattr(self, field.attribute) // field.unit,
                value=self._field_text(field),
                meaning=self._meaning(field.attribute, major),
            )
            for field in FIELDS
        )

    def explain(self, major: Major = "K") -> tuple[str, ...]:
        """Return lines of text: the word, each field raw and in bytes, what it means, and what is unusual."""
        headline = f"shared-memory descriptor of tcgen05 {self.encode():#018x}, read {major}-major"
        lines = (
            f"bits {field.bits:<6} {field.name:<20} {field.raw:#06x}  {field.value:<22} {field.meaning}"
            for field in self.fields(major)
        )
        return (headline, *lines, *(f"note: {note}" for note in [self.unusual] if note))

    def _field_text(self, field: BitField) -> str:
        value = getattr(self, field.attribute)
        return f"{value:#07x} ({value} bytes)" if field.unit > 1 else str(value)

    def _meaning(self, attribute: str, major: Major) -> str:
        if attribute == "swizzle_code":
            return f"{self.swizzle}; the codes of wgmma are others: 128B is 2 here and 1 there"
        if attribute in ("leading_byte_offset", "stride_byte_offset"):
            return stride_meaning(self.swizzle, attribute == "leading_byte_offset", major)
        return {
            "start_address": "where the tile begins, before swizzling",
            "constant": "always 1; 0 in the descriptors of wgmma",
            "base_offset": "0 where the swizzle pattern starts at a multiple of its size",
            "absolute": "the LBO is the address of the second chunk" * self.absolute
            or "the LBO is an offset",
        }[attribute]


def stride_meaning(swizzle: SwizzleMode, leading: bool, major: Major) -> str:
    """Return what LBO or SBO is the distance of."""
    width = WIDTH[swizzle]
    if major == "K":
        if leading:
            return "from 16 bytes along K to the next 16" if swizzle == "none" else "not used"
        return "from 8 rows of M or N to the next 8"
    if leading == (swizzle == "none"):
        return f"from {4 if swizzle == '128B_ATOM_32B' else 8} elements along K to the next"
    return f"from {width} bytes along M or N to the next {width}"


def tensor_reserved_hint(bits: Collection[int]) -> str:
    """Return what to say behind reserved bits that are set, "" where what was meant by them is open."""
    return ": was a field written in bytes, without >> 4?" * (set(bits) <= {14, 15, 30, 31})


def _constant_message(word: int) -> str:
    """Return what is wrong with bits 46 to 48; a descriptor of wgmma has 0 there."""
    found = _CONSTANT.value(word)
    message = f"descriptor {word:#018x}: bits 48:46 are {found}; legal: 1"
    if found == 0 and not word & 0x1FF0_8000_C000_C000 and word >> 61 & 1 == 0:
        code = word >> 62
        fix = _CODES.get(_HOPPER[code], 0)  # type: ignore[call-overload]
        message += (
            f". This looks like a descriptor of wgmma: its swizzle {code} is {_HOPPER[code]} there, "
            f"which is {fix} in bits 63:61 here"
        )
    return message


# --- addresses ---------------------------------------------------------------------------------------


def tile_byte_addresses(
    descriptor: TensorDescriptor, *, rows: int, row_bytes: int, element_bytes: int, major: Major
) -> Addresses:
    """Return ``(rows, row_bytes)``: the address in shared memory of each byte of a tile.

    ``rows`` run along M or N, ``row_bytes`` along K in the order of the elements of a row; an element has
    ``element_bytes`` (of 6-bit and 4-bit elements, bytes of 16-byte chunks count: 1). Rows of 48 bytes may
    continue at an absolute LBO; the base offset says where the swizzle pattern begins (``unusual``). Raises
    NotModelled for rows that continue elsewhere beyond the width of the swizzle; OperandError for a major, a
    base offset or an absolute LBO that the swizzle does not have. PTX ISA 9.3, sections 9.7.17.3.1 "Leading
    dimension stride" and 9.7.17.5 "Canonical layouts".
    """
    _check_mode(descriptor, row_bytes, element_bytes, major)
    strides = replace(descriptor, start_address=0)
    linear = descriptor.start_address + _offsets(strides, rows, row_bytes, element_bytes, major)
    if descriptor.absolute:
        linear = linear + _lbo_offsets(descriptor, row_bytes)
    begin = LINE * descriptor.base_offset
    return begin + tensor_swizzled(linear - begin, descriptor.swizzle)


def _lbo_offsets(descriptor: TensorDescriptor, row_bytes: int) -> Addresses:
    """Return what is added to each byte of a row whose bytes beyond 128 are at the address of the LBO."""
    width, start = WIDTH[descriptor.swizzle], descriptor.start_address
    beyond = start % width + np.arange(row_bytes, dtype=np.int64) >= width
    return np.where(beyond, descriptor.leading_byte_offset - (start - start % width) - width, 0)


@lru_cache(maxsize=256)
def _offsets(descriptor: TensorDescriptor, rows: int, row_bytes: int, size: int, major: Major) -> Addresses:
    """Return ``(rows, row_bytes)``: distances from the start, before swizzling; do not write to them."""
    down, along = tensor_modes(descriptor, rows, row_bytes, size, major)
    found: Addresses = points(down, 1)[:rows] + points(along, 1)[:row_bytes, 0]
    return found


def tensor_modes(
    descriptor: TensorDescriptor, rows: int, row_bytes: int, size: int, major: Major
) -> tuple[Modes, Modes]:
    """Return the modes of the rows and of the bytes of a row, whose steps are bytes before swizzling.

    A tile may end inside the slowest digit of either. PTX ISA 9.3, section 9.7.17.5 "Canonical layouts".
    """
    swizzle, width = descriptor.swizzle, WIDTH[descriptor.swizzle]
    leading, stride = descriptor.leading_byte_offset, descriptor.stride_byte_offset
    if major == "K":
        run, further = (CHUNK, leading) if swizzle == "none" else (row_bytes, 0)
        return _digits(rows, ((8, width),), stride), _digits(row_bytes, ((run, 1),), further)
    across, deep = width // size, 4 if swizzle == "128B_ATOM_32B" else 8
    along_m, along_k = (stride, leading) if swizzle == "none" else (leading, stride)
    down = _digits(rows, ((across, size),), along_m)
    return down, _digits(row_bytes, ((size, 1), (deep, width)), along_k)


def _digits(count: int, inner: tuple[tuple[int, int], ...], last: int) -> Modes:
    """Return the modes of so many indices: inner digits by extent and step, and the step of the slowest."""
    outer = -(-count // prod(extent for extent, _ in inner))
    return modes(*((extent, (step,)) for extent, step in (*inner, (outer, last))))


def _check_mode(descriptor: TensorDescriptor, row_bytes: int, element_bytes: int, major: Major) -> None:
    swizzle, width = descriptor.swizzle, WIDTH[descriptor.swizzle]
    if descriptor.base_offset and swizzle == "none":
        raise OperandError(
            f"{descriptor}: base offset is {descriptor.base_offset} (bits 51:49); legal without swizzle: 0"
        )
    if descriptor.absolute:
        _check_absolute(descriptor, row_bytes, major)
    atoms = swizzle == "128B_ATOM_32B"
    if atoms and (major == "K" or element_bytes != 4):
        raise OperandError(
            f"{descriptor}: 32-byte atoms belong to transposed (MN-major) tiles of 32-bit elements; "
            f"this tile is {major}-major with elements of {8 * element_bytes} bits"
        )
    if major == "MN" and element_bytes == 4 and not atoms:
        legal = f"{_CODES['128B_ATOM_32B']} (128B_ATOM_32B)"
        raise OperandError(
            f"{descriptor}: swizzle is {descriptor.swizzle_code} (bits 63:61); legal where 32-bit elements "
            f"are transposed: {legal}"
        )
    inside = descriptor.start_address % width
    if major == "K" and swizzle != "none" and not descriptor.absolute and inside + row_bytes > width:
        hint = ": set bit 52, and the LBO to the address of the other bytes" * (row_bytes == _DEEP_ROW)
        raise NotModelled(
            f"{descriptor}: the tile has bytes {inside}..{inside + row_bytes - 1} of each row, but with "
            f"{swizzle} swizzle a row has {width}, and PTX does not say where it continues{hint}"
        )


_DEEP_ROW = 48  # bytes of 96 elements of 4 bits


def _check_absolute(descriptor: TensorDescriptor, row_bytes: int, major: Major) -> None:
    """Raise OperandError for an absolute LBO that PTX has not, NotModelled for rows that continue twice."""
    fits = row_bytes == _DEEP_ROW and major == "K" and descriptor.swizzle == "128B"
    if not fits or descriptor.base_offset:
        raise OperandError(
            f"{descriptor}: LBO mode is 1 (bit 52: an address); legal: 0, or 1 for K of 96 where the tile "
            f"is K-major with 128B swizzle and base offset 0; this tile is {major}-major with rows of "
            f"{row_bytes} bytes, base offset {descriptor.base_offset}"
        )
    first, second = (place % 128 for place in (descriptor.start_address, descriptor.leading_byte_offset))
    if first + row_bytes > 128 and second + first + row_bytes - 128 > 128:
        raise NotModelled(
            f"{descriptor}: rows go on {first + row_bytes - 128} bytes from byte {second} of those at the "
            f"address {descriptor.leading_byte_offset:#06x}, beyond their 128, and PTX does not say where to"
        )
