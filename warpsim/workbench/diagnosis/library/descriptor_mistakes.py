"""Common mistakes in the matrix descriptors of wgmma: which of them explains a tile that reads wrong.

Knows what each mistake makes of a descriptor; what a descriptor means is in descriptor.py, where the words
(LBO, SBO, row, atom) are explained. Does not know instructions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError
from ....isa.descriptors.matrix_descriptor import PLACES, RESERVED, TCGEN05_BIT, Descriptor, Major, Tile
from ....isa.descriptors.packed_tiles import canonical_descriptor
from ....isa.descriptors.tile_addresses import is_aligned, row_bytes, tile_offsets
from ....isa.descriptors.tile_shape import TileShape, element_dtype
from ....isa.layouts.swizzle import SWIZZLE_BYTES, Swizzle, pattern_bytes, swizzled
from ....isa.memory import SHARED_BYTES, Addresses, Bytes, element_view


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
    """Return what is wrong with a descriptor through which ``tile (mn, k)`` does not come out of a memory.

    ``descriptor`` may be the 64-bit word, even if its fields overflow. Common mistakes are tried
    alone, most likely first, and then, if none explains the tile, in pairs; every suggestion reproduces
    the tile bit for bit, and suggestions that read the same addresses are given once. Empty where the
    tile reads as expected, and where no suggestion was found. Raises OperandError for arguments that no
    tile can have.
    """
    element_dtype(tile.dtype)
    if memory.ndim != 1 or tile.ndim != 2:
        raise OperandError(f"diagnose takes one memory and one tile, not {memory.shape} and {tile.shape}")
    if memory.size > SHARED_BYTES:
        raise OperandError(f"a memory of {memory.size} bytes: a CTA has at most {SHARED_BYTES}")
    shape = TileShape.of(tile, major)
    shape.check()
    expected = np.ascontiguousarray(tile).view(shape.code_dtype)
    question = _Question(view=element_view(memory, shape.size), expected=expected)
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


def misreadings(descriptor: Descriptor, shape: TileShape, memory_bytes: int) -> tuple[Misreading, ...]:
    """Return the tile as each of the mistakes that diagnose knows would read it, once for each set of
    addresses.

    Only those that stay inside the memory and read anything else than the descriptor itself.
    """
    dtype = shape.code_dtype
    memory = np.broadcast_to(dtype.type(0), memory_bytes // dtype.itemsize)
    question = _Question(view=memory, expected=np.broadcast_to(dtype.type(0), shape.extents))
    given = _Reading(descriptor, shape.major)
    own = question.addresses(given)
    own = np.empty(0, np.int64) if own is None else own
    found: dict[bytes, Misreading] = {}
    for fix in _FIXES:
        for phrase, reading in fix(given, question):
            addresses = question.addresses(reading)
            if addresses is None or (addresses % dtype.itemsize).any() or np.array_equal(addresses, own):
                continue
            misreading = found.setdefault(addresses.tobytes(), _misreading(reading, addresses))
            found[addresses.tobytes()] = replace(misreading, mistakes=(*misreading.mistakes, phrase))
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
        """Return ``(mn, k)``, or None where the reading leaves the memory."""
        descriptor, major, origin = reading
        linear = descriptor.start_address + tile_offsets(descriptor, TileShape.of(self.expected, major))
        if origin is not None:
            begin = origin + descriptor.pattern_begin
            linear = begin + swizzled(linear - begin, descriptor.swizzle)
        inside = linear.min() >= 0 and linear.max() < self.view.nbytes
        return linear if inside else None

    def is_answered_by(self, reading: _Reading) -> bool:
        """Return whether a reading gives the expected tile."""
        if reading.descriptor.base_offset and reading.descriptor.swizzle == "none":
            return False  # no legal descriptor
        addresses = self.addresses(reading)
        return addresses is not None and np.array_equal(self.view[addresses // self.size], self.expected)

    def is_legal(self, reading: _Reading, given: _Reading) -> bool:
        """Return whether a reading could be recommended; a start that is given may be unaligned."""
        descriptor, shape = reading.descriptor, TileShape.of(self.expected, reading.major)
        start, swizzle = descriptor.start_address - (reading.xor_origin or 0), descriptor.swizzle
        kept = start == given.descriptor.start_address
        _, end = row_bytes(start, swizzle, shape)
        return end <= SWIZZLE_BYTES[swizzle] and (kept or is_aligned(start, swizzle))

    def suggestion(self, reading: _Reading, mistakes: tuple[str, ...]) -> Suggestion:
        """Return what a reading suggests; tiles that must move go to the next aligned start."""
        descriptor, major, origin = reading
        if major == "MN" and self.size != 2:
            shape = TileShape.of(self.expected, "K")
            descriptor, major, origin = _k_major(descriptor, shape), "K", None
        if origin:
            descriptor = descriptor.advanced(-origin % pattern_bytes(descriptor.swizzle))
        return Suggestion(mistakes=mistakes, descriptor=descriptor, major=major, move=origin != 0)


def _k_major(descriptor: Descriptor, shape: TileShape) -> Descriptor:
    """Return the descriptor of the same tile stored packed and K-major, at the next aligned start."""
    fits = shape.k * shape.size <= SWIZZLE_BYTES[descriptor.swizzle]
    swizzle: Swizzle = descriptor.swizzle if fits else "none"
    start = descriptor.start_address + -descriptor.start_address % pattern_bytes(swizzle)
    return canonical_descriptor(start, shape, swizzle=swizzle)


def _first_reading(descriptor: Descriptor | SupportsIndex, major: Major) -> tuple[_Reading, tuple[str, ...]]:
    """Return the reading of the descriptor as it is; a word with reserved bits is one mistake already."""
    if isinstance(descriptor, Descriptor):
        return _Reading(descriptor, major), ()
    word = operator.index(descriptor)
    if word & RESERVED == TCGEN05_BIT:
        plain = Descriptor.decode(word - TCGEN05_BIT)
        return _Reading(plain, major), ("bit 46 marks a descriptor of tcgen05 and must be clear",)
    try:
        return _Reading(Descriptor.decode(word), major), ()
    except OperandError:
        names = [place.attribute for place in PLACES[:3] if word & 0b11 << place.lowest + place.bits]
        overflowed = _overflowed(word, names)
        if overflowed is None:
            raise
        return _Reading(overflowed, major), (_unshifted_phrase(tuple(names)),)


def _overflowed(word: int, names: list[str]) -> Descriptor | None:
    """Return the descriptor of a word with fields in bytes that fill their reserved bits, else None."""
    places = [place for place in PLACES if place.attribute in names]
    values: dict[str, Any] = {place.attribute: word >> place.lowest & 0xFFFF for place in places}
    try:
        return replace(Descriptor.decode(word & ~sum(0xFFFF << place.lowest for place in places)), **values)
    except OperandError:
        return None


def _search(question: _Question, given: _Reading, mistakes: tuple[str, ...]) -> list[Suggestion]:
    """Return the suggestions one mistake away, or else those that are two away."""
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
    """Return the suggestions among the steps, in their order, of those with equal addresses the first."""
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
    """Yield the reading with other descriptor fields; nothing where a field cannot have such a value."""
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
    """Yield fields that hold bytes; a start address may have lost its bits above 13 as well."""
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
    """Return bytes between the start addresses of two steps along K."""
    descriptor, k = reading.descriptor, question.expected.shape[1]
    leading, stride = descriptor.leading_byte_offset, descriptor.stride_byte_offset
    plain = descriptor.swizzle == "none"
    if reading.major == "K":
        extent = int(k) * question.size
        return extent // 16 * leading if plain else extent
    return int(k) // 8 * (leading if plain else stride)


def _off_by_steps(reading: _Reading, question: _Question) -> _Candidates:
    """Yield up to three steps along K; where rows are swizzled K-major, only those inside the row."""
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
    """Yield a tile beside the pattern, swizzled by the distance from its start, or some K steps back."""
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
    """Yield one core matrix, or one swizzle atom, too many or too few."""
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
