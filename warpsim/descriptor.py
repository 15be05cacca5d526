"""Matrix descriptors of wgmma: the 64-bit word, the bytes it addresses, and what may be wrong with it.

Knows the fields of a descriptor, where each element of a tile lies, the layouts CuTe would choose for
a packed tile, and the common mistakes. Does not know instructions: a tile is ``mn x k`` elements, rows
of A (M) or columns of B (N) first, K second, for A and B alike. PTX ISA 9.1, section 9.7.15.5.1.2
"Shared Memory Matrix Layout"; CuTe ``mma_traits_sm90_gmma.hpp`` for the tiling.

Words: LBO and SBO are the leading and the stride dimension byte offset; a *row* is the run of 16, 32,
64 or 128 bytes that lies contiguous before swizzling; an *atom* is eight rows, after which a swizzle
repeats (a core matrix, where there is none). Tiles of 1-bit elements are tiles of bytes: element_bits
is 8 and k counts bytes, the element of lowest k in the lowest bit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from .errors import NotModelled, OperandError, UndefinedBehavior
from .memory import (
    SHARED_BYTES,
    SWIZZLE_BYTES,
    Addresses,
    Bytes,
    Swizzle,
    element_view,
    pattern_bytes,
    swizzled,
    write_elements,
)

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


_PLACES = (
    #       name                             attribute             lowest bits shift
    _Place("start address",                 "start_address",        0,    14,   4),
    _Place("leading dimension byte offset", "leading_byte_offset",  16,   14,   4),
    _Place("stride dimension byte offset",  "stride_byte_offset",   32,   14,   4),
    _Place("base offset",                   "base_offset",          49,    3,   0),
    _Place("swizzle",                       "swizzle",              62,    2,   0),
)  # fmt: skip
_TCGEN05_BIT = 1 << 46  # always set in the descriptors of tcgen05
_RESERVED = ((1 << 64) - 1) & ~sum(place.mask for place in _PLACES)


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
        for place in _PLACES[:-1]:
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
        return sum(self._raw(place) << place.lowest for place in _PLACES)

    @classmethod
    def decode(cls, value: SupportsIndex) -> Descriptor:
        """The descriptor of a 64-bit word; raises OperandError for reserved bits that are not zero."""
        word = operator.index(value)
        if not 0 <= word < 1 << 64:
            raise OperandError(f"a descriptor is an unsigned 64-bit word, not {word:#x}")
        if word & _RESERVED:
            raise OperandError(_reserved_message(word))
        values = {
            place.attribute: (word & place.mask) >> place.lowest << place.shift for place in _PLACES[:-1]
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
            for place in _PLACES
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
    bits = [bit for bit in range(64) if word & _RESERVED & 1 << bit]
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
    _check_tile(mn, k, element_bits, major)
    _check_descriptor(descriptor, mn, k, element_bits // 8, major, literal)
    linear = descriptor.start_address + _offsets(descriptor, mn, k, element_bits // 8, major)
    addresses = swizzled(linear, descriptor.swizzle)
    _check_inside(addresses, element_bits // 8, memory_bytes)
    return addresses


def _offsets(descriptor: Descriptor, mn: int, k: int, size: int, major: Major) -> Addresses:
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


def _check_tile(mn: int, k: int, element_bits: int, major: Major) -> None:
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
    if not _is_aligned(descriptor.start_address, descriptor.swizzle):
        raise UndefinedBehavior(_unaligned_message(descriptor))
    first, end = _row_bytes(descriptor.start_address, descriptor.swizzle, mn, k, size, major)
    width = SWIZZLE_BYTES[descriptor.swizzle]
    if end > width:
        raise NotModelled(
            f"the tile has bytes {first}..{end - 1} of each {major}-major row, but with "
            f"{descriptor.swizzle} swizzle a row has {width}, and PTX does not say where it continues"
        )


def _is_aligned(start: int, swizzle: Swizzle) -> bool:
    """Whether a start lies in the first row of its swizzle pattern, as after steps along K."""
    return start % pattern_bytes(swizzle) < SWIZZLE_BYTES[swizzle]


def _row_bytes(start: int, swizzle: Swizzle, mn: int, k: int, size: int, major: Major) -> tuple[int, int]:
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
    element, view = _element(dtype), element_view(memory, np.dtype(dtype).itemsize)
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
    element = _element(tile.dtype)
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


def _element(dtype: npt.DTypeLike) -> np.dtype[Any]:
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
    _check_tile(mn, k, element_bits, major)
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
    _check_tile(mn, k, element_bits, major)
    return _Packing.of(mn, k, element_bits // 8, major, swizzle).bytes


def canonical_image(tile: Tile, *, major: Major, swizzle: Swizzle) -> Bytes:
    """``(..., canonical_bytes)`` uint8: the bytes of packed tiles ``(..., mn, k)``.

    The image is right at every start that is a multiple of the pattern; bytes of partial atoms that no
    element occupies are 0.
    """
    element = _element(tile.dtype)
    mn, k = tile.shape[-2:]
    _check_tile(mn, k, 8 * element.itemsize, major)
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


# --- what may be wrong -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A way to read a tile that gives what was expected.

    ``mistakes`` says what was wrong, one phrase each, and ``descriptor`` and ``major`` what would be
    right. ``move`` means that no descriptor can be right for the memory as it is: the tile must be
    stored anew, and the descriptor is for then.
    """

    mistakes: tuple[str, ...]
    descriptor: Descriptor
    major: Major
    move: bool = False

    @property
    def sentence(self) -> str:
        """The mistakes and the remedy, in one sentence."""
        remedy = "store the tile anew for" if self.move else "use"
        return (
            f"{'; and '.join(self.mistakes)}: {remedy} {self.descriptor.encode():#018x} "
            f"({self.descriptor}), {self.major}-major"
        )

    def __str__(self) -> str:
        return self.sentence


def diagnose(
    memory: Bytes, descriptor: Descriptor | SupportsIndex, tile: Tile, *, major: Major = "K"
) -> list[Suggestion]:
    """What is wrong with a descriptor through which ``tile (mn, k)`` does not come out of a memory.

    ``descriptor`` may be the 64-bit word, also one whose fields overflow. Common mistakes are tried
    alone, most likely first, and then, if none explains the tile, in pairs; every suggestion reproduces
    the tile bit for bit, and suggestions that read the same addresses are given once. Empty where the
    tile reads as expected, and where no suggestion was found. Raises OperandError for arguments that no
    tile can have.
    """
    element = _element(tile.dtype)
    if memory.ndim != 1 or tile.ndim != 2:
        raise OperandError(f"diagnose takes one memory and one tile, not {memory.shape} and {tile.shape}")
    if memory.size > SHARED_BYTES:
        raise OperandError(f"a memory of {memory.size} bytes: a CTA has at most {SHARED_BYTES}")
    mn, k = tile.shape
    _check_tile(mn, k, 8 * element.itemsize, major)
    expected = np.ascontiguousarray(tile).view(f"u{element.itemsize}")
    question = _Question(view=element_view(memory, element.itemsize), expected=expected)
    given, mistakes = _first_reading(descriptor, major)
    if question.is_answered_by(given):
        return [question.suggestion(given, mistakes)] if mistakes else []
    return _search(question, given, mistakes)


@dataclass(frozen=True, kw_only=True)
class Misreading:
    """A tile as it would be read if one common mistake were made, or undone.

    ``mistakes`` are phrases, the most likely first, that all have this effect; ``addresses (mn, k)`` are the
    bytes that are read then, and ``how`` is the descriptor with its major-ness.
    """

    mistakes: tuple[str, ...]
    how: str
    addresses: Addresses


def misreadings(
    descriptor: Descriptor, *, mn: int, k: int, element_bits: int, major: Major, memory_bytes: int
) -> tuple[Misreading, ...]:
    """The tile as each of the mistakes that diagnose knows would read it, once for each set of addresses.

    Only those that stay inside the memory and read anything else than the descriptor itself.
    """
    dtype = np.dtype(f"u{element_bits // 8}")
    memory = np.broadcast_to(dtype.type(0), memory_bytes // dtype.itemsize)
    question = _Question(view=memory, expected=np.broadcast_to(dtype.type(0), (mn, k)))
    given = _Reading(descriptor, major)
    own = question.addresses(given)
    own = np.empty(0, np.int64) if own is None else own
    found: dict[bytes, Misreading] = {}
    for fix in _FIXES:
        for phrase, reading in fix(given, question):
            addresses = None if reading.descriptor.base_offset else question.addresses(reading)
            if addresses is None or (addresses % dtype.itemsize).any() or np.array_equal(addresses, own):
                continue
            one = found.setdefault(addresses.tobytes(), _misreading(reading, addresses))
            found[addresses.tobytes()] = replace(one, mistakes=(*one.mistakes, phrase))
    return tuple(found.values())


def _misreading(reading: _Reading, addresses: Addresses) -> Misreading:
    descriptor, major, origin = reading
    how = f"{descriptor.encode():#018x} ({descriptor}), {major}-major"
    how += "" if origin == 0 else ", not swizzled by absolute address"
    return Misreading(mistakes=(), how=how, addresses=addresses)


class _Reading(NamedTuple):
    """One way to read a tile. ``xor_origin`` None: rows are not swizzled; 0: as wgmma does, by absolute
    address; otherwise relative to that address."""

    descriptor: Descriptor
    major: Major
    xor_origin: int | None = 0


class _Step(NamedTuple):
    """A mistake undone: its rank (0 is the most likely), what to say, and how to read then."""

    rank: int
    mistakes: tuple[str, ...]
    reading: _Reading


@dataclass(frozen=True, kw_only=True)
class _Question:
    """The memory as words of the element size, and the words of the expected tile ``(mn, k)``."""

    view: npt.NDArray[Any]
    expected: npt.NDArray[Any]

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.expected.itemsize

    def addresses(self, reading: _Reading) -> Addresses | None:
        """``(mn, k)``, or None where the reading leaves the memory."""
        descriptor, major, origin = reading
        mn, k = self.expected.shape
        linear = descriptor.start_address + _offsets(descriptor, mn, k, self.size, major)
        if origin is not None:
            linear = origin + swizzled(linear - origin, descriptor.swizzle)
        inside = linear.min() >= 0 and linear.max() < self.view.nbytes
        return linear if inside else None

    def is_answered_by(self, reading: _Reading) -> bool:
        """Whether a reading gives the expected tile."""
        if reading.descriptor.base_offset:
            return False
        addresses = self.addresses(reading)
        return addresses is not None and np.array_equal(self.view[addresses // self.size], self.expected)

    def is_legal(self, reading: _Reading, given: _Reading) -> bool:
        """Whether a reading could be recommended; a start that is given may be unaligned."""
        descriptor, (mn, k) = reading.descriptor, self.expected.shape
        start, swizzle = descriptor.start_address - (reading.xor_origin or 0), descriptor.swizzle
        kept = start == given.descriptor.start_address
        _, end = _row_bytes(start, swizzle, mn, k, self.size, reading.major)
        return end <= SWIZZLE_BYTES[swizzle] and (kept or _is_aligned(start, swizzle))

    def suggestion(self, reading: _Reading, mistakes: tuple[str, ...]) -> Suggestion:
        """The suggestion that a reading amounts to; tiles that must move go to the next aligned start."""
        descriptor, major, origin = reading
        if major == "MN" and self.size != 2:
            mn, k = self.expected.shape
            descriptor, major, origin = _k_major(descriptor, mn, k, self.size), "K", None
        if origin:
            descriptor = descriptor.advanced(-origin % pattern_bytes(descriptor.swizzle))
        return Suggestion(mistakes=mistakes, descriptor=descriptor, major=major, move=origin != 0)


def _k_major(descriptor: Descriptor, mn: int, k: int, size: int) -> Descriptor:
    """The descriptor of the same tile stored packed and K-major, at the next aligned start."""
    swizzle: Swizzle = descriptor.swizzle if k * size <= SWIZZLE_BYTES[descriptor.swizzle] else "none"
    start = descriptor.start_address + -descriptor.start_address % pattern_bytes(swizzle)
    return canonical_descriptor(start, mn=mn, k=k, element_bits=8 * size, major="K", swizzle=swizzle)


def _first_reading(descriptor: Descriptor | SupportsIndex, major: Major) -> tuple[_Reading, tuple[str, ...]]:
    """The reading of the descriptor as it is; a word with reserved bits is one mistake already."""
    if isinstance(descriptor, Descriptor):
        return _Reading(descriptor, major), ()
    word = operator.index(descriptor)
    if word & _RESERVED == _TCGEN05_BIT:
        plain = Descriptor.decode(word - _TCGEN05_BIT)
        return _Reading(plain, major), ("bit 46 marks a descriptor of tcgen05 and must be clear",)
    try:
        return _Reading(Descriptor.decode(word), major), ()
    except OperandError:
        names = [place.attribute for place in _PLACES[:3] if word & 0b11 << place.lowest + place.bits]
        overflowed = _overflowed(word, names)
        if overflowed is None:
            raise
        return _Reading(overflowed, major), (_unshifted_phrase(tuple(names)),)


def _overflowed(word: int, names: list[str]) -> Descriptor | None:
    """The descriptor of a word with some fields in bytes that fill their reserved bits, if it is one."""
    places = [place for place in _PLACES if place.attribute in names]
    values: dict[str, Any] = {place.attribute: word >> place.lowest & 0xFFFF for place in places}
    try:
        return replace(Descriptor.decode(word & ~sum(0xFFFF << place.lowest for place in places)), **values)
    except OperandError:
        return None


def _search(question: _Question, given: _Reading, mistakes: tuple[str, ...]) -> list[Suggestion]:
    """The suggestions one mistake away, or else those that are two away."""
    start = _Step(0, mistakes, given)
    single = [step for fix in _FIXES for step in _steps(fix, start, question)]
    found = _answers(question, given, single)
    if found or mistakes:
        return found
    double = [
        step
        for fix in _FIXES
        for first in single
        for step in _steps(fix, first, question)
        if _FIXES.index(fix) != first.rank
    ]
    return _answers(question, given, sorted(double, key=lambda step: step.rank))


def _steps(fix: _Fix, before: _Step, question: _Question) -> Iterator[_Step]:
    for phrase, reading in fix(before.reading, question):
        yield _Step(before.rank + _FIXES.index(fix), (*before.mistakes, phrase), reading)


def _answers(question: _Question, given: _Reading, steps: list[_Step]) -> list[Suggestion]:
    """The suggestions among the steps, in their order, one for each set of addresses."""
    suggestions, tried, maps = [], {given}, set()
    for step in steps:
        reading = step.reading
        if reading in tried:
            continue
        tried.add(reading)
        if not (question.is_legal(reading, given) and question.is_answered_by(reading)):
            continue
        addresses = question.addresses(reading)
        if addresses is not None and addresses.tobytes() not in maps:
            maps.add(addresses.tobytes())
            suggestions.append(question.suggestion(reading, step.mistakes))
    return suggestions


# Each fix supposes one mistake, and yields what to say about it and how the tile would then be read.
_Candidates = Iterator[tuple[str, _Reading]]
_Fix = Callable[[_Reading, _Question], _Candidates]
_SHORT = {"stride_byte_offset": "SBO", "leading_byte_offset": "LBO", "start_address": "the start address"}
_STRIDES = ("stride_byte_offset", "leading_byte_offset")


def _with(phrase: str, reading: _Reading, **values: Any) -> _Candidates:
    """The reading with other descriptor fields; nothing where a field cannot have such a value."""
    try:
        yield phrase, reading._replace(descriptor=replace(reading.descriptor, **values))
    except OperandError:
        return


def _subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for count in range(1, len(names) + 1):
        yield from combinations(names, count)


def _listed(names: tuple[str, ...]) -> str:
    *others, last = (_SHORT[name] for name in names)
    return f"{', '.join(others)} and {last} were" if others else f"{last} was"


def _unshifted_phrase(names: tuple[str, ...]) -> str:
    return f"{_listed(names)} written in bytes, without >> 4"


def _unshifted(reading: _Reading, question: _Question) -> _Candidates:
    """Fields that hold bytes; a start address may have lost its bits above 13 as well."""
    start = reading.descriptor.start_address >> 4
    for names in _subsets((*_STRIDES, "start_address")):
        values = {name: getattr(reading.descriptor, name) >> 4 for name in names}
        phrase = _unshifted_phrase(names)
        yield from _with(phrase, reading, **values)
        lost = range(1 << 14, question.view.nbytes, 1 << 14) if "start_address" in names else ()
        for high in lost:
            yield from _with(
                f"{phrase} and cut to 14 bits", reading, **values | {"start_address": start | high}
            )


def _exchanged(reading: _Reading, question: _Question) -> _Candidates:
    leading, stride = reading.descriptor.leading_byte_offset, reading.descriptor.stride_byte_offset
    yield from _with(
        "LBO and SBO are exchanged", reading, leading_byte_offset=stride, stride_byte_offset=leading
    )


def _other_swizzle(reading: _Reading, question: _Question) -> _Candidates:
    old = reading.descriptor.swizzle
    for mode in ("128B", "64B", "32B", "none"):
        phrase = f"the swizzle mode is {old}, but the tile was stored with {mode}"
        yield from _with(phrase, reading, swizzle=mode)


def _other_major(reading: _Reading, question: _Question) -> _Candidates:
    new: Major = "MN" if reading.major == "K" else "K"
    phrase = f"the tile is read {reading.major}-major, but was stored {new}-major"
    if question.size != 2:
        phrase += ", which wgmma has for 16-bit elements only"
    yield phrase, reading._replace(major=new)


def _k_step(reading: _Reading, question: _Question) -> int:
    """Bytes between the start addresses of two steps along K."""
    descriptor, k = reading.descriptor, question.expected.shape[1]
    leading, stride = descriptor.leading_byte_offset, descriptor.stride_byte_offset
    plain = descriptor.swizzle == "none"
    if reading.major == "K":
        extent = int(k) * question.size
        return extent // 16 * leading if plain else extent
    return int(k) // 8 * (leading if plain else stride)


def _off_by_steps(reading: _Reading, question: _Question) -> _Candidates:
    """Up to three steps along K; where rows are swizzled K-major, only those inside the row."""
    step, start = _k_step(reading, question), reading.descriptor.start_address
    width = SWIZZLE_BYTES[reading.descriptor.swizzle]
    for count in (1, -1, 2, -2, 3, -3):
        moved = start + count * step
        if reading.major == "K" and width > 16 and moved // width != start // width:
            continue
        steps = f"{abs(count)} K step{'s' * (abs(count) > 1)} of {step} bytes"
        phrase = f"the start address is {steps} too {'low' if count > 0 else 'high'}"
        yield from _with(phrase, reading, start_address=moved)


def _based(reading: _Reading, question: _Question) -> _Candidates:
    if reading.descriptor.base_offset:
        phrase = f"the base offset is {reading.descriptor.base_offset}, but must be 0 for an aligned pattern"
        yield from _with(phrase, reading, base_offset=0)


def _unaligned(reading: _Reading, question: _Question) -> _Candidates:
    pattern, start = pattern_bytes(reading.descriptor.swizzle), reading.descriptor.start_address
    if start % pattern:
        phrase = f"the start address is not the multiple of {pattern} at which the tile begins"
        yield from _with(phrase, reading, start_address=start - start % pattern)
        yield from _with(phrase, reading, start_address=start + -start % pattern)


def _relative(reading: _Reading, question: _Question) -> _Candidates:
    """A tile beside the pattern, swizzled by the distance from its own start, perhaps some K steps back."""
    descriptor = reading.descriptor
    pattern, start = pattern_bytes(descriptor.swizzle), descriptor.start_address
    step = max(16, _k_step(reading, question))
    for origin in range(start, max(0, start - SWIZZLE_BYTES[descriptor.swizzle]), -step):
        if origin % pattern:
            phrase = (
                f"the tile was swizzled relative to its own start {origin:#06x}, no multiple of {pattern}, "
                f"but wgmma swizzles by absolute address"
            )
            yield phrase, reading._replace(xor_origin=origin)


def _other_units(reading: _Reading, question: _Question) -> _Candidates:
    units = ((question.size, "given in elements, not bytes"), (16, "shifted right by 4 twice"))
    for factor, phrase in units:
        for names in _subsets(_STRIDES):
            values = {name: getattr(reading.descriptor, name) * factor for name in names}
            yield from _with(f"{_listed(names)} {phrase}", reading, **values)


def _off_by_one(reading: _Reading, question: _Question) -> _Candidates:
    """One core matrix, or one swizzle atom, too many or too few."""
    amounts = {8 * SWIZZLE_BYTES[reading.descriptor.swizzle]: "swizzle atom", 128: "core matrix"}
    for name in (*_STRIDES, "start_address"):
        value = getattr(reading.descriptor, name)
        for amount, what in amounts.items():
            for sign, word in ((1, "small"), (-1, "large")):
                phrase = f"{_SHORT[name]} is one {what} ({amount} bytes) too {word}"
                yield from _with(phrase, reading, **{name: value + sign * amount})


def _unswizzled(reading: _Reading, question: _Question) -> _Candidates:
    width = SWIZZLE_BYTES[reading.descriptor.swizzle]
    if width > 16:
        yield f"the rows are {width} bytes apart but not swizzled", reading._replace(xor_origin=None)


_FIXES: tuple[_Fix, ...] = (  # in order of likelihood
    _unshifted,
    _exchanged,
    _other_swizzle,
    _other_major,
    _off_by_steps,
    _based,
    _unaligned,
    _relative,
    _other_units,
    _off_by_one,
    _unswizzled,
)
