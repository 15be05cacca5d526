"""Fields of tensor maps: what a tensor in global memory looks like, and which box of it a copy moves.

Knows the fields and the words of each; limits are in tensor_map_rules.py, bytes in tensor_map_bytes.py. Does
not know where the elements of a box lie (tensor_box.py), arrays, devices or instructions.

PTX ISA 9.1, section 5.5 "Tensors"; the documentation of cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col and
cuTensorMapEncodeIm2colWide in cuda.h of CUDA 13.0.

Dimensions stand innermost first, as PTX and the driver have them: sizes[0] are neighbours in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..layouts.swizzle import TensorSwizzle

Interleave = Literal["none", "16B", "32B"]
Fill = Literal["zero", "nan"]
Promotion = Literal["none", "64B", "128B", "256B"]
Mode = Literal["tile", "im2col", "im2col::w", "im2col::w::128"]

MAP_BYTES = 128
MAP_ALIGNMENT = 64
MOST_DIMENSIONS = 5


@dataclass(frozen=True, kw_only=True)
class ElementType:
    """One type of elements: its code in tensormap.replace, bits in global memory, and what it is.

    ``shared_bits`` are those that an element takes in shared memory, gaps included.
    """

    name: str
    code: int
    bits: int
    shared_bits: int
    floating: bool = False

    @property
    def packed(self) -> bool:
        """Whether several elements share a byte."""
        return self.bits % 8 > 0

    @property
    def padded(self) -> bool:
        """Whether shared memory has gaps between them."""
        return self.shared_bits != self.bits


def _types(*rows: tuple[str, int, int, bool]) -> dict[str, ElementType]:
    return {
        name: ElementType(name=name, code=code, bits=bits, shared_bits=shared, floating=floating)
        for code, (name, bits, shared, floating) in enumerate(rows)
    }


ELEMENT_TYPES = _types(  # in the order of their codes (PTX ISA 9.1, section 9.7.9.28, Table 33)
    ("u8",         8,  8, False),
    ("u16",       16, 16, False),
    ("u32",       32, 32, False),
    ("s32",       32, 32, False),
    ("u64",       64, 64, False),
    ("s64",       64, 64, False),
    ("f16",       16, 16, True),
    ("f32",       32, 32, True),
    ("f32.ftz",   32, 32, True),
    ("f64",       64, 64, True),
    ("bf16",      16, 16, True),
    ("tf32",      32, 32, True),
    ("tf32.ftz",  32, 32, True),
    ("b4x16",      4,  4, False),
    ("b4x16_p64",  4,  8, False),
    ("b6x16_p32",  6,  8, False),
)  # fmt: skip
INTERLEAVES: tuple[Interleave, ...] = ("none", "16B", "32B")
FILLS: tuple[Fill, ...] = ("zero", "nan")
PROMOTIONS: tuple[Promotion, ...] = ("none", "64B", "128B", "256B")
MODES: tuple[Mode, ...] = ("tile", "im2col", "im2col::w", "im2col::w::128")
SWIZZLES: dict[TensorSwizzle, tuple[int, int]] = {  # swizzle_mode and swizzle_atomicity
    "none": (0, 0),
    "32B": (1, 0),
    "64B": (2, 0),
    "128B": (3, 0),
    "96B": (4, 0),
    "128B_ATOM_32B": (3, 1),
    "128B_ATOM_32B_FLIP_8B": (3, 2),
    "128B_ATOM_64B": (3, 3),
}


@dataclass(frozen=True, kw_only=True)
class Im2col:
    """The box of an im2col map: corners along W, H and D as far as there are, channels and pixels."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int
    mode: Mode = "im2col"


@dataclass(frozen=True, kw_only=True)
class TensorFields:
    """The fields of a tensor map, innermost dimension first, before any limit is checked.

    ``strides`` in bytes, of all dimensions but the innermost; ``box`` is () where ``im2col`` has it.
    """

    address: int
    element: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    interleave: Interleave = "none"
    swizzle: TensorSwizzle = "none"
    fill: Fill = "zero"
    l2_promotion: Promotion = "none"
    im2col: Im2col | None = None

    def __post_init__(self) -> None:
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * len(self.sizes))

    @property
    def rank(self) -> int:
        """How many dimensions the tensor has."""
        return len(self.sizes)

    @property
    def type(self) -> ElementType:
        """What its elements are."""
        return ELEMENT_TYPES[self.element]

    @property
    def mode(self) -> Mode:
        """Which copies the map is for."""
        return "tile" if self.im2col is None else self.im2col.mode

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements that a copy in tile mode moves along each dimension: every ``element_strides``-th."""
        steps = self.element_strides if self.interleave != "none" else (1, *self.element_strides[1:])
        return tuple(-(-box // step) for box, step in zip(self.box, steps, strict=True))

    @property
    def inner(self) -> int:
        """Elements along the innermost dimension that a copy moves in a row."""
        return self.box[0] if self.im2col is None else self.im2col.channels
