"""The 64-bit matrix descriptors of wgmma: fields, their meaning, and what is unusual about them.

PTX ISA 9.1, section 9.7.15.5.1.2.2 "Matrix Descriptor Format". Words: LBO and SBO are the leading and the
stride dimension byte offset; a *row* is the run of 16, 32, 64 or 128 bytes that lies contiguous before
swizzling; an *atom* is eight rows, after which a swizzle repeats (a core matrix, where there is none).
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ..layouts.swizzle import SWIZZLE_BYTES, Swizzle, pattern_bytes

Major = Literal["K", "MN"]
MAJORS: tuple[Major, Major] = ("K", "MN")  # by imm-trans: 0 and 1
Tile = npt.NDArray[Any]  # (..., mn, k)

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
LINE = 128  # bytes that a unit of the base offset counts: PTX ISA 9.1, (pattern start address >> 7) & 7
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
            raise OperandError(f"swizzle {self.swizzle!r}: expected 'none', '32B', '64B' or '128B'")
        for place in PLACES[:-1]:
            value, unit = getattr(self, place.attribute), 1 << place.shift
            limit = place.mask >> place.lowest << place.shift
            if not isinstance(value, (int, np.integer)):
                raise OperandError(f"{place.name} {value!r} of a descriptor is not an integer")
            if not 0 <= value <= limit:
                raise OperandError(f"{place.name} {value} of a descriptor is outside 0..{limit}")
            if value % unit:
                raise OperandError(
                    f"{place.name} {value:#x} of a descriptor is not a multiple of {unit} bytes"
                )
            object.__setattr__(self, place.attribute, int(value))

    def __str__(self) -> str:
        return (
            f"start {self.start_address:#06x}, LBO {self.leading_byte_offset}, "
            f"SBO {self.stride_byte_offset}, swizzle {self.swizzle}"
        )

    def encode(self) -> int:
        """Return the 64-bit word."""
        return sum(self._raw(place) << place.lowest for place in PLACES)

    @classmethod
    def decode(cls, value: SupportsIndex) -> Descriptor:
        """Return the descriptor of a 64-bit word; raises OperandError for reserved bits that are not zero."""
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
        """Return this descriptor with its start address moved by so many bytes, as kernels step along K."""
        return replace(self, start_address=self.start_address + size)

    def fields(self, major: Major = "K") -> tuple[Field, ...]:
        """Return the five fields and their meaning for a tile that is K- or MN-major."""
        return tuple(
            Field(
                name=place.name,
                bits=place.span,
                raw=self._raw(place),
                value=self._field_text(place),
                meaning=self._meaning(place.attribute, major),
            )
            for place in PLACES
        )

    def explain(self, major: Major = "K") -> tuple[str, ...]:
        """Return lines of text: the word, each field raw and in bytes, what it means, and what is unusual."""
        headline = f"matrix descriptor {self.encode():#018x}, read {major}-major"
        return (headline, *map(str, self.fields(major)), *self._notes())

    def _raw(self, place: _Place) -> int:
        if place.attribute == "swizzle":
            return _SWIZZLE_CODES.index(self.swizzle)
        return int(getattr(self, place.attribute)) >> place.shift

    def _field_text(self, place: _Place) -> str:
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
        """Return remarks on a start address inside the swizzle pattern, and on a base offset."""
        notes = []
        width, inside = SWIZZLE_BYTES[self.swizzle], self.start_address % pattern_bytes(self.swizzle)
        if 0 < inside < width:
            notes.append(f"note: the tile starts {inside} bytes into a row, as after a step along K")
        if self.unusual:
            notes.append(f"note: {self.unusual}")
        return tuple(notes)

    @property
    def pattern_begin(self) -> int:
        """Return how many bytes behind multiples of its size the swizzle pattern begins."""
        return LINE * self.base_offset

    @property
    def unusual(self) -> str:
        """Return what is inferred of where the swizzle pattern lies, "" where it begins with the tile."""
        return unusual_pattern(self.start_address, self.swizzle, self.base_offset)


def _stride_meaning(attribute: str, major: Major, swizzle: Swizzle) -> str:
    """Return what LBO or SBO is the distance of; the two exchange roles between the MN-major layouts."""
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
    return f"descriptor {word:#018x} has reserved bits {', '.join(map(str, bits))} set{reserved_hint(bits)}"


def reserved_hint(bits: Collection[int]) -> str:
    """Return what to say behind reserved bits that are set: what was meant by them, "" where that is open."""
    if set(bits) == {46}:
        return ": bit 46 marks the descriptors of tcgen05, wgmma has it clear"
    return ": was a field written in bytes, without >> 4?" * (set(bits) <= {14, 15, 30, 31, 46, 47})


def unusual_pattern(start: int, swizzle: str, base_offset: int) -> str:
    """Return what is inferred of the swizzle pattern of a tile, "" where the pattern begins with the tile.

    PTX ISA 9.3, section 9.7.17.4.1, says where a pattern begins; its examples begin with the tile.
    """
    if swizzle == "none":
        return ""
    width, begin = int(swizzle.partition("B")[0]), LINE * base_offset
    row, pattern = (start - begin) % (8 * width) // width, 8 * width
    if not base_offset and not row:
        return ""
    where = f"{begin} bytes behind multiples" if begin else "at multiples"
    return (
        f"start address {start:#06x} is in row {row} of a {swizzle} pattern, which base offset "
        f"{base_offset} places {where} of {pattern} bytes (inferred: rows are swizzled by their distance "
        f"from there, as TMA writes them for base offset 0); a tile that was swizzled from its own start "
        f"must begin at a multiple of {pattern} bytes"
    )
