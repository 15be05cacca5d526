"""Boxes of tensors on their way between global and shared memory: gather, fill, scatter, reduce.

Knows memories, the pieces of a box (isa/tensor_box.py) and what elements outside of a tensor read as. Does
not know statements, lanes' registers or when a copy completes. PTX ISA 9.1, sections 5.5.1 and 5.5.3.3.

Elements of tf32 are rounded on their way to shared memory: to nearest even, NaN and infinities as they are.
CUTLASS relies on it for its f32 products (sm90_mma_tma_gmma_ss_warpspecialized.hpp), and Triton's test of
round_f32_to_tf32 passed on sm_120 with ties, carries, NaN and infinities.

Inferred: OOB-NaN, whose bits the manual does not give, is 0x7ff7 in every 16 bits, as reported of f16 on
sm_120; gaps that b4x16_p64 and b6x16_p32 leave in shared memory keep what was there; stores of tf32 do not
round; .ftz changes nothing in copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.tensor_maps.tensor_box import Landing, Pieces, runs_of_pieces
from ....isa.tensor_maps.tensor_map import TensorMap
from ...bind.value_types import dtype_of
from ...run.addition_orders import Adder, note_copy
from ...run.pending import Moved, Stretches
from ...run.wave import Wave
from ...state.spaces import DEVICE_BASE, Bytes, Offsets
from ..floating.halves import OUT_OF_BOUNDS
from ..memory.updates import Update, apply, note_doubt

Content = npt.NDArray[Any]  # (pieces, words of a piece)
REDUCTIONS = {  # the elements that each takes (PTX ISA 9.1, section 9.7.9.27.1.3)
    "add": ("u32", "s32", "u64", "f32", "f16", "bf16"),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64", "f16", "bf16")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), ("u32", "s32", "u64", "s64")),
}
_ROUNDS = "inferred: elements of tf32 are rounded to nearest even on their way to shared memory"
_FILLS = "inferred: outside of the tensor every 16 bits are 0x7ff7, a NaN of f16"
_ROUNDED = ("tf32", "tf32.ftz")  # on their way to shared memory
_WIDE = np.dtype(np.complex128)  # 16 bytes that are copied as they are, in a third of the time of two words
_PACKED = "b6x16_p32"  # which stores as b6p2x16: 6 bits of each byte


def word_of(size: int) -> int:
    """Return the widest word in which so many bytes can be moved."""
    return next(word for word in (8, 4, 2, 1) if size % word == 0)


def gathered(memory: Bytes, offsets: Offsets, size: int) -> Content:
    """Return ``(offsets, words)``: so many bytes from each offset, which is a multiple of their widest
    word.
    """
    found: Content
    word = word_of(size)
    if size == _WIDE.itemsize:  # as most pieces are
        found = memory.view(_WIDE)[offsets >> 4].view(np.uint64).reshape(-1, 2)
    elif size & (size - 1) == 0:  # offsets are multiples of it
        found = memory.view(f"u{word}").reshape(-1, size // word)[offsets // size]
    else:
        found = memory.view(f"u{word}")[offsets[:, None] // word + np.arange(size // word)]
    return found


def scattered(memory: Bytes, offsets: Offsets, content: Content) -> None:
    """Store content at the offsets: the inverse of ``gathered``."""
    word, count = content.dtype.itemsize, content.shape[1]
    if word * count == _WIDE.itemsize:
        memory.view(_WIDE)[offsets >> 4] = np.ascontiguousarray(content).view(_WIDE)[:, 0]
    elif count & (count - 1) == 0:
        memory.view(content.dtype).reshape(-1, count)[offsets // (word * count)] = content
    else:
        memory.view(content.dtype)[offsets[:, None] // word + np.arange(count)] = content


@dataclass(frozen=True, eq=False)
class Landed:
    """Pieces that are ``shift`` bytes behind their places in ``wave.memories.shared``."""

    landing: Landing
    shift: int

    @property
    def offsets(self) -> Offsets:
        """Where each of them is."""
        return self.landing.places + self.shift

    def stretches(self, size: int) -> Stretches:
        """Return the bytes of pieces of a size, which may be less than what they take."""
        return Stretches(space="shared", ranges=lambda: self._runs(size))

    def _runs(self, size: int) -> npt.NDArray[np.int64]:
        landing = self.landing
        runs = landing.runs if size == landing.pitch else runs_of_pieces(landing.places, size)
        return runs + self.shift


@dataclass(frozen=True, kw_only=True, eq=False)
class Move:
    """A box of a map: its pieces, and where they lie in ``wave.memories.shared`` of each CTA that has it."""

    map: TensorMap
    pieces: Pieces
    landings: tuple[Landed, ...]

    # --- to shared memory ---

    @property
    def inferred(self) -> str | None:
        """Return what of a load is not documented; None for nothing."""
        if self.map.element in _ROUNDED:
            return _ROUNDS
        return _FILLS if self.map.fill == "nan" and not self.pieces.whole else None

    def fetched(self, wave: Wave) -> Content:
        """Return what lies in global memory, and what fills the rest."""
        fill = OUT_OF_BOUNDS if self.map.fill == "nan" else 0
        safe = self.offsets if self.pieces.whole else np.where(self.pieces.inside, self.offsets, 0)
        content = gathered(wave.memories.device.data, safe, self.pieces.size)
        if self.map.element in _ROUNDED:
            content = _nearest_tf32(content.view(np.uint32)).view(content.dtype)
        if not self.pieces.whole:
            word = content.dtype.itemsize
            filler = np.full(4, fill, np.uint16).view(np.uint8)[:word].view(content.dtype)[0]
            content[~self.pieces.inside] = filler
        return content

    def land(self, wave: Wave, content: Content) -> None:
        """Write what was fetched."""
        for landing in self.landings:
            scattered(wave.memories.shared, landing.offsets, content)

    # --- to global memory ---

    def taken(self, wave: Wave) -> Content:
        """Return what lies in shared memory, as global memory will have it."""
        content = gathered(wave.memories.shared, self.landings[0].offsets, self.pieces.pitch)
        return _six_bits(content) if self.map.element == _PACKED else content

    def store(self, wave: Wave, content: Content) -> None:
        """Write what was taken, as far as it is inside of the tensor."""
        scattered(wave.memories.device.data, self._values_inside(self.offsets), self._values_inside(content))

    def reduce(self, wave: Wave, content: Content, update: Update, by: Adder) -> None:
        """Update elements one by one; pieces are single elements."""
        words = content.view(dtype_of(f"b{self.map.type.bits}"))[self.pieces.inside]
        memory, offsets = wave.memories.device.data, self.offsets[self.pieces.inside]
        old = apply(memory, offsets, [words], update)
        note_doubt(wave, by.pc, update, old, words)
        note_copy(wave, update.adds, by, (memory, offsets, old, words))

    # --- places ---

    def loaded(self, wave: Wave) -> Moved:
        """Return where each byte of shared memory comes from."""
        bytes_ = np.arange(self.pieces.size)
        source = self.offsets[:, None] + bytes_
        if not self.pieces.whole:
            source = np.where(self.pieces.inside[:, None], source, -1)
        ends = [landed.offsets[:, None] + bytes_ for landed in self.landings]
        targets = tuple(("shared", end.reshape(-1)) for end in ends)
        return Moved(space="global", source=source.reshape(-1), targets=targets)

    def left(self, wave: Wave, update: str = "") -> Moved:
        """Return where each byte of global memory comes from, or what updates it."""
        bytes_ = np.arange(self.pieces.size)
        source = self._values_inside(self.landings[0].offsets)[:, None] + bytes_
        target = self._values_inside(self.offsets)[:, None] + bytes_
        ends = (("global", target.reshape(-1)),)
        kind = self.map.element
        return Moved(space="shared", source=source.reshape(-1), targets=ends, update=update, type=kind)

    def _values_inside(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return those of values ``(pieces, ...)`` that are inside of the tensor."""
        return values if self.pieces.whole else values[self.pieces.inside]

    @property
    def offsets(self) -> Offsets:
        """Where pieces lie in the memory of the device; without meaning for those outside."""
        return self.pieces.addresses - DEVICE_BASE

    def in_global(self) -> Stretches:
        """Return the bytes in global memory."""
        inside = self.pieces.inside
        first = int(inside.argmax()) if inside.any() else None
        some = None if first is None else int(self.pieces.addresses[first]) - DEVICE_BASE
        return Stretches(space="global", ranges=self._global_runs, some=some)

    def _global_runs(self) -> npt.NDArray[np.int64]:
        return runs_of_pieces(self._values_inside(self.offsets), self.pieces.size)

    def in_shared(self) -> tuple[Stretches, ...]:
        """Return the bytes in shared memory, of each CTA; gaps are none of them."""
        return tuple(landed.stretches(self.pieces.size) for landed in self.landings)

    def source(self) -> Stretches:
        """Return the bytes that a store reads in shared memory."""
        return self.landings[0].stretches(self.pieces.pitch)


def _nearest_tf32(codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return codes of f32 with 10 bits of fraction, rounded to nearest even; infinities and NaN as they
    are.
    """
    half = np.uint32(0xFFF) + (codes >> np.uint32(13) & np.uint32(1))
    finite = codes & np.uint32(0x7F800000) != np.uint32(0x7F800000)
    return np.where(finite, codes + half & np.uint32(0xFFFFE000), codes)


def _six_bits(content: Content) -> Content:
    """Return ``(pieces, 3)`` words of 32 bits: the lower six bits of 16 bytes, the first one lowest."""
    bits = np.unpackbits(content.view(np.uint8).reshape(-1, 16, 1), axis=2, bitorder="little")[:, :, :6]
    packed = np.packbits(bits.reshape(len(content), -1), axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint32)
