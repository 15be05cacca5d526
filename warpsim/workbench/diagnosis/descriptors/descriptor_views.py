"""A matrix descriptor as plain fields, what each may be instead, and how two descriptors differ, in words.

A rewrite changes some fields by a rule: it scales or moves an offset, exchanges two, chooses another mode.
Its cost is the length of its description. Does not know memories, tiles or instructions. PTX ISA 9.1,
section 9.7.15.5.1.2.2 "Matrix Descriptor Format".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, SupportsIndex, TypeVar

from ....base.errors import OperandError
from ....isa.descriptors.matrix_descriptor import MAJORS, PLACES, RESERVED, TCGEN05_BIT, Descriptor, Major
from ....isa.descriptors.tensor_descriptor import SwizzleMode, TensorDescriptor
from ....isa.layouts.swizzle import SWIZZLE_BYTES, Swizzle

Mode = Swizzle | SwizzleMode
UNIT = 16  # bytes of the unit of addresses and offsets
_RAW = 0xFFFF  # bits of a field together with the reserved bits above it
_KEPT = 0x3FFF
_STRIDES = {"stride_byte_offset": "SBO", "leading_byte_offset": "LBO"}
_OFFSETS = (*_STRIDES, "start_address")
_FIELDS = (*_OFFSETS, "swizzle", "base_offset")
_READING = {"major", "origin"}  # what is no field of the word
_COMMON = range(3, 7)  # moves by 2**n units: from a core matrix to the largest swizzle atom
Given = TypeVar("Given", Descriptor, TensorDescriptor)
PAIRED, WHOLE = 3.75, 3.5  # cost of rewrites that are tried in pairs, and by a launch or a product each


@dataclass(frozen=True, kw_only=True)
class DescriptorView:
    """The fields of a descriptor and how it is read; offsets in bytes, of any size.

    Rows are swizzled by their distance from ``origin``; None: not swizzled. ``constant`` is bit 46.
    """

    start_address: int
    leading_byte_offset: int
    stride_byte_offset: int
    swizzle: Mode
    base_offset: int = 0
    major: Major = "K"
    origin: int | None = 0
    constant: int = 0

    @classmethod
    def of(cls, given: Descriptor | TensorDescriptor, major: Major = "K") -> DescriptorView:
        """Return the view of a descriptor."""
        return cls(**{name: getattr(given, name) for name in _FIELDS}, major=major)

    @classmethod
    def of_word(cls, word: SupportsIndex, major: Major = "K") -> DescriptorView:
        """Return the view of a 64-bit word of wgmma, whose offsets may fill the reserved bits above them.

        Raises OperandError for other reserved bits, and for such offsets that cannot be bytes.
        """
        number = operator.index(word)
        constant = int(number & RESERVED == TCGEN05_BIT)
        values: dict[str, Any] = {}
        try:
            plain = Descriptor.decode(number - constant * TCGEN05_BIT)
        except OperandError:
            for place in PLACES[:3]:
                raw = number >> place.lowest & _RAW
                if raw > _KEPT and raw % UNIT:
                    raise
                values[place.attribute] = raw * UNIT
            plain = Descriptor.decode(number & ~sum(_RAW << place.lowest for place in PLACES[:3]))
        return replace(cls.of(plain, major), constant=constant, **values)

    def changed(self, other: DescriptorView) -> dict[str, tuple[Any, Any]]:
        """Return the fields that another view has otherwise, from and to."""
        pairs = {name: (own, getattr(other, name)) for name, own in vars(self).items()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    @property
    def descriptor(self) -> Descriptor:
        """The descriptor of wgmma; raises OperandError where a field has no such value."""
        return self.into(Descriptor(start_address=0))

    def into(self, given: Given) -> Given:
        """Return a descriptor with the fields of the view; raises OperandError where it has no such value."""
        values: Any = {name: getattr(self, name) for name in _FIELDS}
        return replace(given, **values)


class Rewrite(NamedTuple):
    """Other values of some fields: how long it takes to say, of which ``kind``, and the view with them."""

    cost: float
    kind: str
    change: Callable[[DescriptorView], DescriptorView]


def rewrites(
    view: DescriptorView,
    *,
    step: int = 0,
    memory_bytes: int = 0,
    swizzles: Sequence[Mode] = tuple(SWIZZLE_BYTES),
) -> list[Rewrite]:
    """Return what the fields of a view may be instead, the shortest description first.

    ``step`` are the bytes between steps along K, ``memory_bytes`` those that a start address in bytes may
    have lost bits of; 0 where not known.
    """
    found = [*_scaled(memory_bytes), *_chosen(view, swizzles), *_moved(step), *_placed(view, step)]
    return sorted(found, key=lambda rewrite: rewrite.cost)


def of_words(
    view: DescriptorView, swizzles: Sequence[Mode] = tuple(SWIZZLE_BYTES), most: float = WHOLE
) -> Iterator[tuple[Rewrite, DescriptorView]]:
    """Yield rewrites of one field of the word, or of LBO and SBO exchanged, and the view with each."""
    for rewrite in rewrites(view, swizzles=swizzles):
        changed = rewrite.change(view)
        offsets = [getattr(changed, name) for name in _OFFSETS]
        fits = all(0 <= each <= _KEPT * UNIT and each % UNIT == 0 for each in offsets)
        fields = view.changed(changed).keys()
        alone = len(fields - _READING) == 1 or rewrite.kind == "exchanged"
        if rewrite.cost <= most and alone and fits and not fields & _READING:
            yield rewrite, changed


def _with(cost: float, kind: str, **values: Any) -> Rewrite:
    return Rewrite(cost, kind, lambda view: replace(view, **values))


# --- neighbours of fields --------------------------------------------------------------------------------


def _scaled(memory_bytes: int) -> Iterator[Rewrite]:
    """Yield offsets in other units, one or several; a start in bytes may have lost its bits above 13."""
    for names in _subsets(_OFFSETS):
        yield _times(1.0 + len(names) / 4, names, -4)
        for high in range(1 << 14, memory_bytes if "start_address" in names else 0, 1 << 14):
            yield _times(1.0 + len(names) / 4, names, -4, high)
    for names in _subsets(tuple(_STRIDES)):
        for bits in (4, 1, 2, 3, -1, -2, -3):
            yield _times(2.75 + len(names) / 4, names, bits)
        yield _with(4.0, "none", **dict.fromkeys(names, 0))


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for count in range(1, len(names) + 1):
        yield from combinations(names, count)


def _times(cost: float, names: Sequence[str], bits: int, high: int = 0) -> Rewrite:
    def change(view: DescriptorView) -> DescriptorView:
        values = {name: getattr(view, name) for name in names}
        values = {name: each << bits if bits > 0 else each >> -bits for name, each in values.items()}
        if high:
            values["start_address"] |= high
        return replace(view, **values)

    return Rewrite(cost, "in bytes" if bits == -4 else "scaled", change)


def _chosen(view: DescriptorView, swizzles: Sequence[Mode]) -> Iterator[Rewrite]:
    yield Rewrite(
        2.0,
        "exchanged",
        lambda view: replace(
            view, leading_byte_offset=view.stride_byte_offset, stride_byte_offset=view.leading_byte_offset
        ),
    )
    yield from (_with(2.0, "swizzle", swizzle=mode) for mode in swizzles if mode != view.swizzle)
    yield from (_with(2.0, "major", major=major) for major in MAJORS if major != view.major)
    if view.constant:
        yield _with(1.0, "constant", constant=0)
    if view.base_offset:
        yield _with(2.5, "base", base_offset=0)


def _moved(step: int) -> Iterator[Rewrite]:
    """Yield a start some steps along K further on or back, and offsets that differ by a power of two."""
    for count in (1, -1, 2, -2, 3, -3) if step else ():
        yield _by(1.75 + abs(count) / 4, "start_address", count * step)
    for bit in range(10):
        for name in _OFFSETS:
            for sign in (1, -1):
                common = bit in _COMMON if name in _STRIDES else bit >= _COMMON[0]
                yield _by((3.5 + (name in _STRIDES) / 4) if common else 4.5, name, sign * UNIT << bit)


def _by(cost: float, name: str, amount: int) -> Rewrite:
    return Rewrite(cost, f"{name} moved", lambda view: replace(view, **{name: getattr(view, name) + amount}))


def _placed(view: DescriptorView, step: int) -> Iterator[Rewrite]:
    """Yield starts at the swizzle pattern, patterns that begin with the tile or steps before, and none."""
    start = view.start_address
    if view.swizzle not in SWIZZLE_BYTES or view.swizzle == "none":
        return
    size = 8 * SWIZZLE_BYTES[view.swizzle]
    if start % size:
        yield _with(2.5, "aligned", start_address=start - start % size)
        yield _with(2.5, "aligned", start_address=start + -start % size)
    yield _with(3.5, "origin", origin=None)
    for origin in range(start, max(0, start - size // 8), -max(UNIT, step)) if step else ():
        if origin % size:
            yield _with(3.0, "origin", origin=origin)


# --- words -----------------------------------------------------------------------------------------------


def differences(wrong: DescriptorView, right: DescriptorView, *, size: int = 0, of: str = "") -> list[str]:
    """Return how a descriptor differs from that which fits, a phrase for each field.

    ``size`` are the bytes of an element, ``of`` follows the names of the fields.
    """
    return [*_of_modes(wrong, right, of), *_of_strides(wrong, right, size, of), *_of_start(wrong, right, of)]


def remedy(wrong: DescriptorView, right: DescriptorView) -> str:
    """Return what to do about the first field of a word that differs."""
    if wrong.swizzle != right.swizzle:
        return f"describe the tile with the swizzle that it is written with: {right.swizzle}"
    if _exchanged(wrong, right):
        return "exchange bits 29..16 and bits 45..32 of the descriptor"
    for name, bits in (("stride_byte_offset", "45..32"), ("leading_byte_offset", "29..16")):
        if getattr(wrong, name) != getattr(right, name):
            return f"put {getattr(right, name)} >> 4 into bits {bits} of the descriptor"
    by = right.start_address - wrong.start_address
    return f"{'subtract' if by < 0 else 'add'} {abs(by)} bytes"


def _exchanged(wrong: DescriptorView, right: DescriptorView) -> bool:
    pair = wrong.leading_byte_offset, wrong.stride_byte_offset
    return pair[0] != pair[1] and pair == (right.stride_byte_offset, right.leading_byte_offset)


def _of_modes(wrong: DescriptorView, right: DescriptorView, of: str) -> Iterator[str]:
    if wrong.constant != right.constant:
        yield "bit 46 marks a descriptor of tcgen05 and must be clear"
    if wrong.major != right.major:
        yield f"the tile is read {wrong.major}-major, but was stored {right.major}-major"
    if wrong.swizzle != right.swizzle:
        yield f"the swizzle{of} is {wrong.swizzle} where {right.swizzle} fits"
    if wrong.base_offset != right.base_offset:
        yield f"the base offset{of} is {wrong.base_offset} where {right.base_offset} fits"
    if None in (wrong.origin, right.origin) and wrong.origin != right.origin:
        yield "rows are swizzled where they are read or where they are written, not in both places"
    elif wrong.origin != right.origin:
        yield (
            f"the tile is swizzled relative to {right.origin:#06x}, in the middle of a pattern, but is read "
            "by absolute address"
        )


def _of_strides(wrong: DescriptorView, right: DescriptorView, size: int, of: str) -> Iterator[str]:
    if _exchanged(wrong, right):
        leading, stride = wrong.leading_byte_offset, wrong.stride_byte_offset
        yield (
            f"LBO and SBO{of} are exchanged: LBO {leading}, SBO {stride} where LBO {stride}, "
            f"SBO {leading} fit"
        )
        return
    for name, short in _STRIDES.items():
        own, fits = getattr(wrong, name), getattr(right, name)
        if own != fits:
            yield f"{short}{of} is {own} where {fits} fits{_unit(own, fits, size)}"


def _unit(own: int, fits: int, size: int) -> str:
    """Return the unit that an offset is given in, as far as it follows."""
    if own and own == fits << 4:
        return " (in bytes, without >> 4)"
    if own and own << 4 == fits:
        return " (shifted right by 4 twice)"
    return " (in elements, not bytes)" if own and size > 1 and own * size == fits else ""


def _of_start(wrong: DescriptorView, right: DescriptorView, of: str) -> Iterator[str]:
    own, fits = wrong.start_address, right.start_address
    if own == fits:
        return
    lost = ", and cut to 14 bits" * (own != fits << 4)
    if own in (fits << 4, (fits & _KEPT) << 4):
        yield f"the start address{of} is in bytes, not in units of 16: >> 4 is missing{lost}"
        return
    where = "too far on" if own > fits else "too far back"
    yield f"the start{of} is {abs(own - fits)} bytes {where}"
