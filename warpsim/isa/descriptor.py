"""Matrix descriptors of wgmma: the 64-bit word, and the bytes it addresses.

Knows the fields of a descriptor, where each element of a tile lies, and the layouts CuTe would choose for
a packed tile; the common mistakes are in descriptor_mistakes. Does not know instructions: a tile is
``mn x k`` elements, rows of A (M) or columns of B (N) first, K second, for A and B alike. PTX ISA 9.1,
section 9.7.15.5.1.2 "Shared Memory Matrix Layout"; CuTe ``mma_traits_sm90_gmma.hpp`` for the tiling.

Words: LBO and SBO are the leading and the stride dimension byte offset; a *row* is the run of 16, 32,
64 or 128 bytes that lies contiguous before swizzling; an *atom* is eight rows, after which a swizzle
repeats (a core matrix, where there is none). Tiles of 1-bit elements are tiles of bytes: element_bits
is 8 and k counts bytes, the element of lowest k in the lowest bit.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from ..errors import NotModelled, OperandError, UndefinedBehavior
from .memory import SHARED_BYTES, Addresses, Bytes, element_view, write_elements
from .swizzle import SWIZZLE_BYTES, Swizzle, pattern_bytes, swizzled

Major = Literal["K", "MN"]  # imm-trans 0 and 1
Tile = npt.NDArray[Any]  # (..., mn, k)

LARGEST_OFFSET = 0x3FFF0  # 14 bits of multiples of 16 bytes
_SWIZZLE_CODES: tuple[Swizzle, ...] = ("none", "128B", "64B", "32B")


# --- the 64-bit word -------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a field lies; a field with a shift holds multiples of ``1 << shift``."""

    name: str
    attribute: str
    lowest: int
    bits: int
    shift: int

    @property
    def mask(self) -> int:
        return ((1 << self.bits) - 1) << self.lowest

    @property
    def span(self) -> str:
        return f"{self.lowest + self.bits - 1}:{self.lowest}"


PLACES = (
    #       name                             attribute             lowest bits shift
    _Place("start address",                 "start_address",        0,    14,   4),
    _Place("leading dimension byte offset", "leading_byte_offset",  16,   14,   4),
    _Place("stride dimension byte offset",  "stride_byte_offset",   32,   14,   4),
    _Place("base offset",                   "base_offset",          49,    3,   0),
    _Place("swizzle",                       "swizzle",              62,    2,   0),
)  # fmt: skip
TCGEN05_BIT = 1 << 46  # always set in the descriptors of tcgen05
RESERVED = ((1 << 64) - 1) & ~sum(place.mask for place in PLACES)


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field as explain shows it: its bits, its raw value, its value, and what it means."""

    name: str
    bits: str
    raw: int
    value: str
    meaning: str

    def __str__(self) -> str:
        return f"bits {self.bits:<6} {self.name:<30} {self.raw:#06x}  {self.value:<22} {self.meaning}"


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """A matrix descriptor; start address, LBO and SBO in bytes, multiples of 16 up to 262128.

    Raises OperandError for a field out of range. PTX ISA 9.1, section 9.7.15.5.1.2.2 "Matrix Descriptor
    Format".
    """

    start_address: int
    leading_byte_offset: int = 0
    stride_byte_offset: int = 0
    base_offset: int = 0
    swizzle: Swizzle = "none"

    def __post_init__(self) -> None:
        if self.swizzle not in _SWIZZLE_CODES:
            raise OperandError(f"swizzle {self.swizzle!r}: it is 'none', '32B', '64B' or '128B'")
        for place in PLACES[:-1]:
            value, unit = getattr(self, place.attribute), 1 << place.shift
            limit = place.mask >> place.lowest << place.shift
            if not isinstance(value, (int, np.integer)):
                raise OperandError(f"{place.name} {value!r} of a descriptor is no integer")
            if not 0 <= value <= limit:
                raise OperandError(f"{place.name} {value} of a descriptor is outside 0..{limit}")
            if value % unit:
                raise OperandError(f"{place.name} {value:#x} of a descriptor is no multiple of {unit} bytes")
            object.__setattr__(self, place.attribute, int(value))

    def __str__(self) -> str:
        return (
            f"start {self.start_address:#06x}, LBO {self.leading_byte_offset}, "
            f"SBO {self.stride_byte_offset}, swizzle {self.swizzle}"
        )

    def encode(self) -> int:
        """The 64-bit word."""
        return sum(self._raw(place) << place.lowest for place in PLACES)

    @classmethod
    def decode(cls, value: SupportsIndex) -> Descriptor:
        """The descriptor of a 64-bit word; raises OperandError for reserved bits that are not zero."""
        word = operator.index(value)
        if not 0 <= word < 1 << 64:
            raise OperandError(f"a descriptor is an unsigned 64-bit word, not {word:#x}")
        if word & RESERVED:
            raise OperandError(_reserved_message(word))
        values = {
            place.attribute: (word & place.mask) >> place.lowest << place.shift for place in PLACES[:-1]
        }
        return cls(**values, swizzle=_SWIZZLE_CODES[word >> 62])

    def advanced(self, size: int) -> Descriptor:
        """This descriptor with its start address moved by so many bytes, as kernels step along K."""
        return replace(self, start_address=self.start_address + size)

    def fields(self, major: Major = "K") -> tuple[Field, ...]:
        """The five fields and their meaning for a tile that is K- or MN-major."""
        return tuple(
            Field(
                name=place.name,
                bits=place.span,
                raw=self._raw(place),
                value=self._shown(place),
                meaning=self._meaning(place.attribute, major),
            )
            for place in PLACES
        )

    def explain(self, major: Major = "K") -> tuple[str, ...]:
        """Lines of text: the word, each field raw and in bytes, what it means, and what is unusual."""
        headline = f"matrix descriptor {self.encode():#018x}, read {major}-major"
        return (headline, *map(str, self.fields(major)), *self._notes())

    def _raw(self, place: _Place) -> int:
        if place.attribute == "swizzle":
            return _SWIZZLE_CODES.index(self.swizzle)
        return int(getattr(self, place.attribute)) >> place.shift

    def _shown(self, place: _Place) -> str:
        value = getattr(self, place.attribute)
        return f"{value:#07x} ({value} bytes)" if place.shift else str(value)

    def _meaning(self, attribute: str, major: Major) -> str:
        width = SWIZZLE_BYTES[self.swizzle]
        if attribute == "start_address":
            return "where the tile begins, before swizzling"
        if attribute == "swizzle" and self.swizzle == "none":
            return "no swizzle: rows of 16 bytes, a core matrix is 8 of them"
        if attribute == "swizzle":
            bits = {"32B": "bit 7", "64B": "bits 8:7", "128B": "bits 9:7"}[self.swizzle]
            low = {"32B": "bit 4", "64B": "bits 5:4", "128B": "bits 6:4"}[self.swizzle]
            return f"rows of {width} bytes; {low} of an address ^= {bits}; repeats every {8 * width} bytes"
        if attribute == "base_offset":
            return "0 where the swizzle pattern starts at a multiple of its size"
        return _stride_meaning(attribute, major, self.swizzle)

    def _notes(self) -> tuple[str, ...]:
        """Remarks on a start address inside the swizzle pattern, and on a base offset."""
        notes = []
        width, inside = SWIZZLE_BYTES[self.swizzle], self.start_address % pattern_bytes(self.swizzle)
        if 0 < inside < width:
            notes.append(f"note: the tile starts {inside} bytes into a row, as after a step along K")
        if inside >= width:
            notes.append(f"note: {_unaligned_message(self)}")
        if self.base_offset:
            notes.append(f"note: {_BASE_OFFSET_MESSAGE.format(self.base_offset)}")
        return tuple(notes)


def _stride_meaning(attribute: str, major: Major, swizzle: Swizzle) -> str:
    """What LBO or SBO is the distance of; the two exchange roles between the MN-major layouts."""
    width = SWIZZLE_BYTES[swizzle]
    leading = attribute == "leading_byte_offset"
    if major == "K" and leading and swizzle != "none":
        return "not used in K-major swizzled tiles (1 by convention)"
    if major == "K":
        step = "16 bytes along K to the next 16" if leading else "8 rows of M or N to the next 8"
        return f"from {step}"
    if leading == (swizzle == "none"):
        return "from 8 elements along K to the next 8"
    return f"from {width} bytes along M or N to the next {width}"


def _reserved_message(word: int) -> str:
    bits = [bit for bit in range(64) if word & RESERVED & 1 << bit]
    message = f"descriptor {word:#018x} has reserved bits {', '.join(map(str, bits))} set"
    if bits == [46]:
        return f"{message}: bit 46 marks the descriptors of tcgen05, wgmma has it clear"
    if set(bits) <= {14, 15, 30, 31, 46, 47}:
        return f"{message}: was a field written in bytes, without >> 4?"
    return message


# --- where the elements lie ------------------------------------------------------------------------

_BASE_OFFSET_MESSAGE = (
    "base offset {}: PTX does not document how a base offset other than 0 changes the swizzle; "
    "place the tile at a multiple of its pattern and leave the field 0"
)


def _unaligned_message(descriptor: Descriptor) -> str:
    pattern, width = pattern_bytes(descriptor.swizzle), SWIZZLE_BYTES[descriptor.swizzle]
    row = descriptor.start_address % pattern // width
    return (
        f"start address {descriptor.start_address:#06x} is in row {row} of a {descriptor.swizzle} pattern, "
        f"which base offset 0 places at multiples of {pattern} bytes: align the tile to {pattern} bytes"
    )


def tile_addresses(
    descriptor: Descriptor,
    *,
    mn: int,
    k: int,
    element_bits: int,
    major: Major,
    memory_bytes: int = SHARED_BYTES,
    literal: bool = False,
) -> Addresses:
    """``(mn, k)``: the byte address of each element of the tile that one instruction reads.

    ``element_bits`` is 8, 16 or 32; 1-bit elements come as bytes, with ``k`` in bytes. Raises
    OperandError for a tile that no descriptor has (MN-major other than 16-bit, extents) or that leaves
    ``memory_bytes``; NotModelled for a base offset, and for a tile that crosses a swizzled row's end;
    UndefinedBehavior for a start address beyond the first row of the swizzle pattern while base offset 0
    says that the pattern is aligned. ``literal`` takes the last two by the formulas as they stand: a row
    runs on into the next, and the exclusive-or uses absolute address bits. PTX ISA 9.1, sections
    9.7.15.5.1.2.1 and 9.7.15.5.1.2.2.
    """
    check_tile(mn, k, element_bits, major)
    _check_descriptor(descriptor, mn, k, element_bits // 8, major, literal)
    linear = descriptor.start_address + tile_offsets(descriptor, mn, k, element_bits // 8, major)
    addresses = swizzled(linear, descriptor.swizzle)
    _check_inside(addresses, element_bits // 8, memory_bytes)
    return addresses


def tile_offsets(descriptor: Descriptor, mn: int, k: int, size: int, major: Major) -> Addresses:
    """``(mn, k)``: distance of each element from the first, before swizzling."""
    plain = descriptor.swizzle == "none"
    width = SWIZZLE_BYTES[descriptor.swizzle]
    leading, stride = descriptor.leading_byte_offset, descriptor.stride_byte_offset
    first, second = np.arange(mn)[:, None], np.arange(k)
    if major == "K":
        along_k = leading if plain else width
        return _split(first, 8, width, stride) + _split(second, width // size, size, along_k)
    along_mn, along_k = (stride, leading) if plain else (leading, stride)
    return _split(first, width // size, size, along_mn) + _split(second, 8, width, along_k)


def _split(index: Addresses, period: int, inside: int, outside: int) -> Addresses:
    """Distance of an index that steps by ``inside`` within a period and by ``outside`` between them."""
    distance: Addresses = index % period * inside + index // period * outside
    return distance


def check_tile(mn: int, k: int, element_bits: int, major: Major) -> None:
    """Raise OperandError for a tile that no descriptor has."""
    if major not in ("K", "MN"):
        raise OperandError(f"major {major!r}: a tile is 'K' or 'MN' major")
    if element_bits == 1:
        raise OperandError("tiles of 1-bit elements are tiles of bytes: element_bits=8, and k in bytes")
    if element_bits not in (8, 16, 32):
        raise OperandError(f"elements of {element_bits} bits: wgmma reads elements of 8, 16 or 32 bits")
    if major == "MN" and element_bits != 16:
        raise OperandError(
            f"MN-major tiles have 16-bit elements (f16, bf16), not {element_bits}-bit ones: "
            f"store the tile K-major"
        )
    unit = 128 // element_bits if major == "K" else 8
    if mn < 1 or mn % 8 or k < 1 or k % unit:
        raise OperandError(f"{major}-major tiles have multiples of 8 x {unit} elements, not {mn} x {k}")


def _check_descriptor(
    descriptor: Descriptor, mn: int, k: int, size: int, major: Major, literal: bool
) -> None:
    """Refuse what PTX does not say; ``literal`` allows all but a base offset."""
    if descriptor.base_offset:
        raise NotModelled(_BASE_OFFSET_MESSAGE.format(descriptor.base_offset))
    if literal:
        return
    if not is_aligned(descriptor.start_address, descriptor.swizzle):
        raise UndefinedBehavior(_unaligned_message(descriptor))
    first, end = row_bytes(descriptor.start_address, descriptor.swizzle, mn, k, size, major)
    width = SWIZZLE_BYTES[descriptor.swizzle]
    if end > width:
        raise NotModelled(
            f"the tile has bytes {first}..{end - 1} of each {major}-major row, but with "
            f"{descriptor.swizzle} swizzle a row has {width}, and PTX does not say where it continues"
        )


def is_aligned(start: int, swizzle: Swizzle) -> bool:
    """Whether a start lies in the first row of its swizzle pattern, as after steps along K."""
    return start % pattern_bytes(swizzle) < SWIZZLE_BYTES[swizzle]


def row_bytes(start: int, swizzle: Swizzle, mn: int, k: int, size: int, major: Major) -> tuple[int, int]:
    """The stretch ``first <= byte < end`` that a tile takes of each row; all of it without swizzle."""
    width = SWIZZLE_BYTES[swizzle]
    if swizzle == "none":
        return 0, width
    extent = k * size if major == "K" else min(mn * size, width)
    return start % width, start % width + extent


def _check_inside(addresses: Addresses, size: int, memory_bytes: int) -> None:
    if addresses.max() + size <= memory_bytes:
        return
    mn, k = np.unravel_index(int(np.argmax(addresses)), addresses.shape)
    raise OperandError(
        f"element ({mn}, {k}) of the tile lies at {int(addresses[mn, k]):#x}, "
        f"outside the {memory_bytes} bytes of memory"
    )


# --- tiles in memory -------------------------------------------------------------------------------


def load_tile(
    memory: Bytes,
    descriptor: Descriptor,
    *,
    mn: int,
    k: int,
    dtype: npt.DTypeLike,
    major: Major,
    literal: bool = False,
) -> Tile:
    """``(..., mn, k)`` of ``dtype``: the tile in each memory ``(..., bytes)``.

    ``dtype`` has 1, 2 or 4 bytes. Raises as tile_addresses does.
    """
    element, view = element_dtype(dtype), element_view(memory, np.dtype(dtype).itemsize)
    addresses = tile_addresses(
        descriptor,
        mn=mn,
        k=k,
        element_bits=8 * element.itemsize,
        major=major,
        memory_bytes=memory.shape[-1],
        literal=literal,
    )
    tile: Tile = view.take(addresses // element.itemsize, -1).view(element)
    return tile


def store_tile(
    memory: Bytes, descriptor: Descriptor, tile: Tile, *, major: Major, literal: bool = False
) -> None:
    """Write a tile ``(..., mn, k)`` into memories ``(..., bytes)`` where the descriptor will read it.

    One tile may go to a batch of memories. Raises as tile_addresses does, and OperandError where the
    strides put two elements at one address.
    """
    element = element_dtype(tile.dtype)
    if tile.ndim < 2:
        raise OperandError(f"a tile is an array (..., mn, k), not {tile.shape}")
    addresses = tile_addresses(
        descriptor,
        mn=tile.shape[-2],
        k=tile.shape[-1],
        element_bits=8 * element.itemsize,
        major=major,
        memory_bytes=memory.shape[-1],
        literal=literal,
    )
    if np.unique(addresses).size < addresses.size:
        raise OperandError(f"two elements of the tile share an address: {descriptor}")
    codes = np.ascontiguousarray(tile).view(f"u{element.itemsize}")
    write_elements(memory, addresses // element.itemsize, codes)


def touched_bytes(
    descriptor: Descriptor,
    *,
    mn: int,
    k: int,
    element_bits: int,
    major: Major,
    memory_bytes: int = SHARED_BYTES,
    literal: bool = False,
) -> Addresses:
    """``(n, 2)``: the byte ranges ``first <= address < end`` that an instruction reads, ascending, apart.

    Raises as tile_addresses does.
    """
    addresses = tile_addresses(
        descriptor,
        mn=mn,
        k=k,
        element_bits=element_bits,
        major=major,
        memory_bytes=memory_bytes,
        literal=literal,
    )
    starts, size = np.unique(addresses), element_bits // 8
    gaps = np.flatnonzero(np.diff(starts) != size)
    firsts = starts[np.concatenate(([0], gaps + 1))]
    ends = starts[np.concatenate((gaps, [starts.size - 1]))] + size
    return np.stack((firsts, ends), axis=-1)


def element_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The dtype of a tile's elements; raises OperandError where they have not 1, 2 or 4 bytes."""
    element = np.dtype(dtype)
    if element.kind == "b":
        raise OperandError("tiles of 1-bit elements are tiles of bytes: np.packbits(…, bitorder='little')")
    if element.itemsize not in (1, 2, 4):
        raise OperandError(f"elements of dtype {element}: wgmma reads elements of 8, 16 or 32 bits")
    return element


# --- packed tiles ----------------------------------------------------------------------------------


def canonical_descriptor(
    start: int,
    *,
    mn: int,
    k: int,
    element_bits: int,
    major: Major,
    swizzle: Swizzle,
    first_mn: int = 0,
    first_k: int = 0,
) -> Descriptor:
    """The descriptor of a tightly packed ``mn x k`` tile at ``start``, as CuTe lays it out.

    Atoms follow one another along M or N first, then along K (``tile_to_shape`` of the Layout_*_Atom);
    a tile that ends inside an atom still takes all of it. ``first_mn, first_k`` is where the part that
    one instruction reads begins. Raises OperandError for a start that is no multiple of the pattern and
    for a part that begins outside the tile or inside a core matrix.
    """
    check_tile(mn, k, element_bits, major)
    unit = 128 // element_bits if major == "K" else 8
    if first_mn not in range(0, mn, 8) or first_k not in range(0, k, unit):
        raise OperandError(
            f"a part of a packed {mn} x {k} tile begins at multiples of 8 x {unit} inside it, "
            f"not at ({first_mn}, {first_k})"
        )
    packing = _Packing.of(mn, k, element_bits // 8, major, swizzle)
    if start % pattern_bytes(swizzle):
        raise OperandError(
            f"start address {start:#x} of a packed tile with swizzle {swizzle} is no multiple of "
            f"{pattern_bytes(swizzle)} bytes"
        )
    return packing.descriptor(start, first_mn, first_k)


def canonical_bytes(*, mn: int, k: int, element_bits: int, major: Major, swizzle: Swizzle) -> int:
    """The bytes that a packed tile takes."""
    check_tile(mn, k, element_bits, major)
    return _Packing.of(mn, k, element_bits // 8, major, swizzle).bytes


def canonical_image(tile: Tile, *, major: Major, swizzle: Swizzle) -> Bytes:
    """``(..., canonical_bytes)`` uint8: the bytes of packed tiles ``(..., mn, k)``.

    The image is right at every start that is a multiple of the pattern; bytes of partial atoms that no
    element occupies are 0.
    """
    element = element_dtype(tile.dtype)
    mn, k = tile.shape[-2:]
    check_tile(mn, k, 8 * element.itemsize, major)
    packing = _Packing.of(mn, k, element.itemsize, major, swizzle)
    image: Bytes = np.zeros((*tile.shape[:-2], packing.bytes), np.uint8)
    for first in range(0, k, packing.step):
        part = tile[..., first : first + packing.step]
        store_tile(image, packing.descriptor(0, 0, first), part, major=major)
    return image


@dataclass(frozen=True, kw_only=True)
class _Packing:
    """Numbers of one packed tile: elements to an atom, distances between atoms, and K of one descriptor."""

    size: int
    major: Major
    swizzle: Swizzle
    atom_mn: int
    atom_k: int
    along_mn: int
    along_k: int
    step: int
    bytes: int

    @classmethod
    def of(cls, mn: int, k: int, size: int, major: Major, swizzle: Swizzle) -> _Packing:
        """The packing of an ``mn x k`` tile of elements of ``size`` bytes."""
        width = SWIZZLE_BYTES[swizzle]
        atom = (8, width // size) if major == "K" else (width // size, 8)
        across, along = -(-mn // atom[0]), -(-k // atom[1])
        return cls(
            size=size,
            major=major,
            swizzle=swizzle,
            atom_mn=atom[0],
            atom_k=atom[1],
            along_mn=8 * width,
            along_k=8 * width * across,
            step=atom[1] if major == "K" and swizzle != "none" else k,
            bytes=8 * width * across * along,
        )

    def descriptor(self, start: int, mn: int, k: int) -> Descriptor:
        """The descriptor of what begins at element (mn, k)."""
        width = SWIZZLE_BYTES[self.swizzle]
        inside = (width, self.size) if self.major == "K" else (self.size, width)
        skipped = mn % self.atom_mn * inside[0] + mn // self.atom_mn * self.along_mn
        skipped += k % self.atom_k * inside[1] + k // self.atom_k * self.along_k
        leading, stride = self.along_k, self.along_mn
        if self.swizzle != "none":
            leading, stride = (16, self.along_mn) if self.major == "K" else (self.along_mn, self.along_k)
        return Descriptor(
            start_address=start + skipped,
            leading_byte_offset=leading,
            stride_byte_offset=stride,
            swizzle=self.swizzle,
        )
