"""How a fragment of wmma lies in registers, which PTX does not document (PTX ISA 9.1, section 9.7.14.4).

From sm_75 on an accumulator lies as those of two or four ``mma`` m16n8 or m8n8 do, so that element-wise code
may take an f32 fragment to an f16 fragment: SASS that nvcc 13.0 makes of wmma.store.d for sm_75 to sm_120
stores registers at these places. That is inferred, not documented. Multiplicands, and all fragments of sm_70,
are here the matrix itself, rows of A, columns of B and rows of C and D after each other, as words that are
dealt out to registers and lanes: word ``32 r + lane`` is register r; where there are more registers than
words they repeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.architectures import ARCHITECTURES
from ....isa.features import Feature
from ....isa.formats import FORMATS
from ....isa.layouts.fragment_layout import Layout, row_fragment
from ....isa.layouts.strides import modes
from ....isa.warps import WARP
from ...state.lanes import Values

Codes = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
SHAPES = {
    "m16n16k16": (16, 16, 16),
    "m8n32k16": (8, 32, 16),
    "m32n8k16": (32, 8, 16),
    "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
    "m8n8k32": (8, 8, 32),
    "m8n8k128": (8, 8, 128),
}
_TYPES = {
    "f16": "f16x2", "bf16": "bf16x2", "tf32": "bf16x2", "f32": "f32", "f64": "f64",
    "s8": "s32", "u8": "s32", "s32": "s32",
}  # fmt: skip


@cache
def accumulator_layout(shape: str, kind: str, target: str) -> Layout | None:
    """Return where the elements of C or D of a kind lie; None where that is not known, on sm_70.

    SASS of wmma.store.d by nvcc 13.0 for sm_75, sm_80, sm_86, sm_89, sm_90, sm_100 and sm_120: 8 rows of D a
    register as in mma; m8n32 is the transposed of m32n8, as its product is made; not so s32 on sm_75, where
    mma m8n8k16 makes it.
    """
    m, n, _ = SHAPES[shape]
    features = ARCHITECTURES[target].features
    if Feature.INTEGER_MMA not in features:
        return None
    if n <= m or (kind == "s32" and Feature.WIDE_MMA not in features):
        return row_fragment(lanes=WARP, values=m * n // WARP, width=2, halves=m // 8)
    # (T32,V8) -> (M8,N32)
    return Layout(
        lane_modes=modes((4, (2, 0)), (8, (0, 1))), value_modes=modes((2, (1, 0)), (n // 8, (0, 8)))
    )


@dataclass(frozen=True, slots=True)
class Fragment:
    """One operand: ``lines`` of ``length`` elements of a format, in registers of so many bits."""

    lines: int
    length: int
    kind: str
    layout: Layout | None = None  # of an accumulator, (lane, value) -> (line, place in it)

    @classmethod
    def of(cls, role: str, shape: str, kind: str, target: str) -> Fragment:
        """Return the fragment of operand a, b, c or d on a target."""
        m, n, k = SHAPES[shape]
        if role in "ab":
            return cls(m if role == "a" else n, k, kind)
        return cls(m, n, kind, accumulator_layout(shape, kind, target))

    @property
    def bits(self) -> int:
        """Of an element."""
        return FORMATS[self.kind].bits

    @property
    def word(self) -> np.dtype[Any]:
        """A register."""
        return np.dtype(np.uint64 if self.bits == 64 else np.uint32)

    @property
    def type(self) -> str:
        """The type of its registers, as ptxas has it."""
        return _TYPES.get(self.kind, "b32")

    @property
    def words(self) -> int:
        """Different words of the whole fragment."""
        return self.lines * self.length * self.bits // (8 * self.word.itemsize)

    def registers(self, role: str) -> int:
        """Of a lane; f16 multiplicands always have eight."""
        return 8 if self.kind == "f16" and role in "ab" else self.words // WARP

    # --- registers ---

    def bytes_of(self, words: Values) -> Bytes:
        """Return ``(warps, lines, bytes of a line)`` of registers ``(warps, 32, n)``."""
        if self.layout is not None:
            elements = np.ascontiguousarray(words).view(f"u{self.bits // 8}")
            return np.ascontiguousarray(self.layout.collect(elements)).view(np.uint8)
        count = self.words // WARP
        dealt = np.ascontiguousarray(words[..., :count].swapaxes(1, 2))
        return dealt.view(np.uint8).reshape(len(words), self.lines, -1)

    def words_of(self, lines: Bytes, count: int) -> Values:
        """Return registers ``(warps, 32, count)``; the inverse of bytes_of."""
        if self.layout is not None:
            elements = np.ascontiguousarray(lines).view(f"u{self.bits // 8}")
            held: Values = np.ascontiguousarray(self.layout.distribute(elements)).view(self.word)
            return held
        dealt = np.ascontiguousarray(lines).reshape(len(lines), -1).view(self.word)
        found: Values = dealt.reshape(len(lines), -1, WARP).swapaxes(1, 2)
        return np.tile(found, count // found.shape[2])

    # --- elements ---

    def codes_of(self, lines: Bytes) -> Codes:
        """Return ``(warps, lines, length)``."""
        if self.bits >= 8:
            return lines.view(f"u{self.bits // 8}")
        bits = np.unpackbits(lines, axis=-1, bitorder="little").reshape(*lines.shape[:2], -1, self.bits)
        weights = np.left_shift(1, np.arange(self.bits)).astype(np.uint8)
        found: Codes = (bits * weights).sum(axis=-1, dtype=np.uint8)
        return found

    def turned(self, lines: Bytes, turned: bool) -> Bytes:
        """Return bytes of the lines of the transposed matrix ``(warps, length, lines)``, or as they are."""
        if not turned:
            return lines
        elements = lines.view(f"u{self.bits // 8}")
        return np.ascontiguousarray(elements.swapaxes(1, 2)).view(np.uint8)
