"""Tiles in shared memory as a descriptor reads them: the tile, what else is read there, and which was meant.

Knows memories and the addresses of descriptors; does not know what a tile is multiplied with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError, present
from ....isa.descriptors.matrix_descriptor import Descriptor, Major, Tile
from ....isa.descriptors.packed_tiles import canonical_descriptor
from ....isa.descriptors.tile_addresses import is_aligned, row_bytes, tile_addresses, tile_offsets
from ....isa.descriptors.tile_shape import TileShape, element_dtype
from ....isa.formats import Format
from ....isa.layouts.swizzle import SWIZZLE_BYTES, Swizzle, pattern_bytes, swizzled
from ....isa.memory import SHARED_BYTES, Addresses, Bytes, element_view
from ..library.setting import Index, Setting
from .descriptor_views import PAIRED, DescriptorView, Rewrite, differences, rewrites

Codes = npt.NDArray[Any]  # (..., mn, k): of A, or of B transposed


# --- tiles of an instruction -----------------------------------------------------------------------------


def read_tile(setting: Setting, operand: str, memory: Bytes) -> Codes:
    """Return codes ``(..., mn, k)`` of A or B as its descriptor finds them in memories ``(..., bytes)``."""
    descriptor, shape = _described(setting, operand)
    addresses = tile_addresses(descriptor, shape, memory_bytes=memory.shape[-1], literal=True)
    return codes_at(addresses, setting.instruction.format(operand), memory)


def codes_at(addresses: Index, element: Format, memory: Bytes) -> Codes:
    """Return the codes at byte addresses; eight 1-bit elements are a byte, the first in its lowest bit."""
    size = max(element.bits, 8) // 8
    words: Codes = element_view(memory, size)[..., addresses // size]
    return words if element.bits >= 8 else np.unpackbits(words, axis=-1, bitorder="little")


def _described(setting: Setting, operand: str) -> tuple[Descriptor, TileShape]:
    tiles, tile = present(setting.tiles, "tiles"), setting.instruction.in_shared_memory(operand)
    word = present(tiles.b if operand == "b" else tiles.a, "word")
    return Descriptor.decode(word), tile.shape(transposed=tiles.transposed[tile.side])


def view_addresses(view: DescriptorView, shape: TileShape, memory_bytes: int) -> Addresses | None:
    """Return ``(mn, k)``: the bytes that are read, None where the descriptor is none or leaves the memory."""
    try:
        descriptor = view.descriptor
    except OperandError:
        return None
    linear = descriptor.start_address + tile_offsets(descriptor, replace(shape, major=view.major))
    if view.origin is not None:
        begin = view.origin + descriptor.pattern_begin
        linear = begin + swizzled(linear - begin, descriptor.swizzle)
    inside = linear.min() >= 0 and linear.max() < memory_bytes and not (linear % shape.size).any()
    return linear if inside else None


def tile_rewrites(view: DescriptorView, shape: TileShape, memory_bytes: int) -> list[Rewrite]:
    """Return what a descriptor may be instead, for a tile of a shape."""
    plain = view.swizzle == "none"
    if view.major == "K":
        step = shape.k * shape.size // (16 if plain else 1) * (view.leading_byte_offset if plain else 1)
    else:
        step = shape.k // 8 * (view.leading_byte_offset if plain else view.stride_byte_offset)
    return rewrites(view, step=step, memory_bytes=memory_bytes)


@dataclass(frozen=True, kw_only=True)
class Misreading:
    """A tile that is read by another descriptor.

    ``mistakes`` are phrases of equal cost that all have this effect, and ``fields`` what the first changes,
    from and to; ``addresses (mn, k)`` are the bytes that are read then, and ``how`` is the descriptor with
    its major-ness.
    """

    mistakes: tuple[str, ...]
    fields: dict[str, tuple[Any, Any]]
    cost: float
    how: str
    addresses: Addresses


def misread(setting: Setting, operand: str) -> Iterator[tuple[Misreading, Format]]:
    """Yield every way to read a tile with one field otherwise, and the format of its elements."""
    descriptor, shape = _described(setting, operand)
    memory_bytes = present(setting.tiles, "tiles").memory_bytes
    element = setting.instruction.format(operand)
    yield from ((each, element) for each in misreadings(descriptor, shape, memory_bytes))


def misreadings(descriptor: Descriptor, shape: TileShape, memory_bytes: int) -> tuple[Misreading, ...]:
    """Return the tile as each rewrite of a descriptor reads it, once for each set of addresses.

    Only what stays inside the memory and is not what the descriptor itself reads.
    """
    given = DescriptorView.of(descriptor, shape.major)
    own = view_addresses(given, shape, memory_bytes)
    found = dict[bytes, Misreading]()
    for rewrite in tile_rewrites(given, shape, memory_bytes):
        view = rewrite.change(given)
        addresses = view_addresses(view, shape, memory_bytes)
        if addresses is None or (own is not None and (addresses == own).all()):
            continue
        phrase = "; ".join(differences(given, view, size=shape.size))
        read = Misreading(
            mistakes=(phrase,),
            fields=given.changed(view),
            cost=rewrite.cost,
            how=_described_view(view),
            addresses=addresses,
        )
        first = found.setdefault(addresses.tobytes(), read)
        if first.cost == rewrite.cost and phrase not in first.mistakes:
            found[addresses.tobytes()] = replace(first, mistakes=(*first.mistakes, phrase))
    return tuple(found.values())


def _described_view(view: DescriptorView) -> str:
    text = f"{view.descriptor.encode():#018x} ({view.descriptor}), {view.major}-major"
    return text + ", not swizzled by absolute address" * (view.origin != 0)


# --- the descriptor that was meant -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A way to read a tile that gives what was expected.

    ``mistakes`` says what was wrong, one phrase each, and ``descriptor`` and ``major`` what would be
    right. ``move`` means that no descriptor can be right for the memory as it is: the tile must be
    stored anew, and the descriptor is for then. ``rewrites`` is how many rules it takes.
    """

    mistakes: tuple[str, ...]
    descriptor: Descriptor
    major: Major
    move: bool = False
    rewrites: int = 1

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

    ``descriptor`` may be the 64-bit word, even if its fields overflow. Rewrites of its fields are tried
    alone, the shortest first, and then, if none explains the tile, in pairs; every suggestion reproduces
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
    word = descriptor.encode() if isinstance(descriptor, Descriptor) else descriptor
    given = DescriptorView.of_word(word, major)
    return _Search(memory, given, np.ascontiguousarray(tile).view(shape.code_dtype), shape).suggestions()


class _Search:
    """A memory, the descriptor that was given, and the codes of the expected tile ``(mn, k)``."""

    def __init__(self, memory: Bytes, given: DescriptorView, expected: Codes, shape: TileShape) -> None:
        self.words, self.given, self.expected, self.shape = (
            element_view(memory, shape.size),
            given,
            expected,
            shape,
        )
        self.tried, self.found = {given}, dict[bytes, Suggestion]()

    def suggestions(self) -> list[Suggestion]:
        """Return those of one rewrite, or else those of two."""
        if self._read(self.given) is not None:
            return []
        single = [(rewrite, rewrite.change(self.given)) for rewrite in self._rewrites(self.given)]
        for _, view in single:
            self._try(view, 1)
        if not self.found:
            for _, view in self._pairs(single):
                self._try(view, 2)
        return list(self.found.values())

    def _pairs(self, single: list[tuple[Rewrite, DescriptorView]]) -> list[tuple[float, DescriptorView]]:
        """Return views two rewrites of different kinds away, the cheapest first."""
        found = [
            (first.cost + second.cost, second.change(view))
            for first, view in single
            if first.cost <= PAIRED
            for second in self._rewrites(view)
            if second.kind != first.kind and second.cost <= PAIRED
        ]
        return sorted(found, key=lambda each: each[0])

    def _rewrites(self, view: DescriptorView) -> list[Rewrite]:
        return tile_rewrites(view, self.shape, self.words.nbytes)

    def _read(self, view: DescriptorView) -> Addresses | None:
        if view.constant or (view.base_offset and view.swizzle == "none"):
            return None  # no legal descriptor
        addresses = view_addresses(view, self.shape, self.words.nbytes)
        if addresses is None or (self.words[addresses // self.shape.size] != self.expected).any():
            return None
        return addresses

    def _try(self, view: DescriptorView, count: int) -> None:
        """Keep a view as a suggestion, of those that read the same addresses the first."""
        if view in self.tried:
            return
        self.tried.add(view)
        addresses = self._read(view)
        if addresses is not None and self._is_legal(view):
            self.found.setdefault(addresses.tobytes(), self._suggestion(view, count))

    def _is_legal(self, view: DescriptorView) -> bool:
        """Return whether a view could be recommended; a start that is given may be unaligned."""
        descriptor, shape = view.descriptor, replace(self.shape, major=view.major)
        start, swizzle = descriptor.start_address - (view.origin or 0), descriptor.swizzle
        kept = start == self.given.start_address
        _, end = row_bytes(start, swizzle, shape)
        return end <= SWIZZLE_BYTES[swizzle] and (kept or is_aligned(start, swizzle))

    def _suggestion(self, view: DescriptorView, count: int) -> Suggestion:
        """Return what a view suggests; tiles that must move go to the next aligned start."""
        phrases = differences(self.given, view, size=self.shape.size)
        descriptor, major, move = view.descriptor, view.major, view.origin != 0
        if major == "MN" and self.shape.size != 2:
            phrases = [f"{phrases[0]}, which wgmma has for 16-bit elements only", *phrases[1:]]
            # the descriptor of the same tile stored packed and K-major, at the next aligned start
            shape = replace(self.shape, major="K")
            fits = shape.k * shape.size <= SWIZZLE_BYTES[descriptor.swizzle]
            swizzle: Swizzle = descriptor.swizzle if fits else "none"
            start = descriptor.start_address + -descriptor.start_address % pattern_bytes(swizzle)
            descriptor, major, move = canonical_descriptor(start, shape, swizzle=swizzle), "K", True
        elif view.origin:
            descriptor = descriptor.advanced(-view.origin % pattern_bytes(descriptor.swizzle))
        return Suggestion(
            mistakes=tuple(phrases), descriptor=descriptor, major=major, move=move, rewrites=count
        )
