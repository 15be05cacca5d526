"""Places of operands: registers, or a tile of shared memory behind a matrix descriptor.

A placement belongs to one operand of one instruction and says how many lanes and words the operand takes,
how its codes are gathered, and how a result is scattered. ``Inputs`` are what one execution reads. A further
place (tensor memory) is a further class with the methods of ``Placement``. Knows no arithmetic, no spellings
and no targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import present
from .descriptors.matrix_descriptor import Descriptor, Major
from .descriptors.tile_addresses import load_tile, touched_bytes
from .formats import Format
from .layouts.fragment_layout import Layout
from .products import Codes, Product, Storage
from .registers import Words, checked, packed, unpacked

# --- what one execution reads ------------------------------------------------------------------------


class ScaleSelectors(NamedTuple):
    """The byte and the thread of a quad that supply the block scales of A and of B."""

    byte_id_a: int = 0
    thread_id_a: int = 0
    byte_id_b: int = 0
    thread_id_b: int = 0


NO_SCALE_SELECTORS = ScaleSelectors()


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All that one execution reads, as the operands of the instruction give it.

    ``registers`` are arrays ``(..., lanes, registers)`` by operand. ``literal`` executes metadata that
    PTX leaves undefined, or whose effect is unknown, by reading every field as it stands. For wgmma:
    ``shared (..., bytes)`` uint8, 64-bit matrix descriptors of A (None: in registers) and B, and the
    immediates; ``scale_d`` false means that D is not read.
    """

    registers: dict[str, npt.NDArray[Any]]
    selector: int = 0
    scale_selectors: ScaleSelectors = NO_SCALE_SELECTORS
    literal: bool = False
    shared: npt.NDArray[np.uint8] | None = None
    a_descriptor: npt.NDArray[np.uint64] | None = None
    b_descriptor: npt.NDArray[np.uint64] | None = None
    scale_d: bool = True
    negate: tuple[bool, bool] = (False, False)  # of A, of B: imm-scale -1
    transposed: tuple[bool, bool] = (False, False)  # of A, of B: imm-trans 1, MN-major

    @classmethod
    def plain(cls, registers: dict[str, npt.NDArray[Any]], selector: int, literal: bool) -> Inputs:
        """Return the inputs of an instruction without settings, a microsecond faster than Inputs(...)."""
        inputs = object.__new__(cls)
        inputs.__dict__.update(_PLAIN, registers=registers, selector=selector, literal=literal)
        return inputs

    def with_words(self, registers: dict[str, npt.NDArray[Any]], **others: Any) -> Inputs:
        """Return the same with other registers and fields, two microseconds faster than replace(...)."""
        inputs = object.__new__(Inputs)
        inputs.__dict__.update(self.__dict__, registers=registers, **others)
        return inputs

    @property
    def warp_level(self) -> bool:
        """Whether the inputs hold nothing that only instructions with tiles in shared memory take."""
        return (
            self.a_descriptor is self.b_descriptor is self.shared is None
            and self.scale_d
            and self.negate == self.transposed == (False, False)
        )

    def descriptor(self, operand: str) -> npt.NDArray[np.uint64] | None:
        """Return the matrix descriptors of A or B; None where there are none."""
        return {"a": self.a_descriptor, "b": self.b_descriptor}.get(operand)


_PLAIN = dict(vars(Inputs(registers={})))
_BATCHED = ("shared", "a_descriptor", "b_descriptor")  # with an axis of executions in front, where not None


def part_of(inputs: Inputs, chosen: Any) -> Inputs:
    """Return the inputs of one execution of a batch, by its number, or of several, by a mask."""
    registers = {name: words[chosen] for name, words in inputs.registers.items()}
    more = {name: value[chosen] for name in _BATCHED if (value := getattr(inputs, name)) is not None}
    return replace(inputs, registers=registers, **more)


def arrays_of(inputs: Inputs) -> Iterator[npt.NDArray[Any]]:
    """Yield every array that the inputs hold."""
    yield from inputs.registers.values()
    yield from (value for name in _BATCHED if (value := getattr(inputs, name)) is not None)


# --- places ------------------------------------------------------------------------------------------


class Placement(Protocol):
    """Where one operand of an instruction lies."""

    @property
    def lanes(self) -> int:
        """Lanes that hold the operand; 0 where no lane does."""

    @property
    def words(self) -> int:
        """Registers of the operand in one lane; 0 where no lane holds it."""

    def holds(self, inputs: Inputs) -> bool:
        """Return whether the inputs give the operand in this place."""

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return codes ``(..., rows, columns)`` of the operand, as the product transposes them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Registers:
    """An operand in the registers of a warp or warpgroup.

    ``matrix`` is the operand's rows and columns; ``fragment`` makes its layout.
    """

    operand: str
    element: Format
    lanes: int
    matrix: tuple[int, int]
    fragment: Callable[[], Layout]
    storage: Storage
    register_bits: int
    products: int = 1

    @cached_property
    def layout(self) -> Layout:
        """The map (lane, value) -> (row, column); the rows of independent products are stacked."""
        return self.fragment()

    @property
    def words(self) -> int:
        """Registers of the operand in one lane."""
        rows, columns = self.matrix
        return rows * columns * self.products * self.storage.bits // (self.lanes * self.register_bits)

    @property
    def shape(self) -> tuple[int, int]:
        """Lanes, registers: the last two axes of the operand's arrays."""
        return self.lanes, self.words

    def holds(self, inputs: Inputs) -> bool:
        """Return whether the inputs give registers of the operand."""
        return self.operand in inputs.registers

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return codes ``(..., rows, columns)`` of the operand's registers."""
        return self.codes(inputs.registers[self.operand])

    def checked(self, words: npt.ArrayLike) -> Words:
        """Return registers of the operand as unsigned words; raises OperandError."""
        return checked(words, self.shape, self.register_bits, self.operand)

    def codes(self, words: Words) -> Codes:
        """Return the matrix of codes that registers hold: the inverse of scatter."""
        values = unpacked(words, self.storage, self.register_bits, self.element.mask)
        codes = self.layout.collect(values)
        if self.products > 1:
            codes = codes.reshape(*codes.shape[:-2], self.products, *self.matrix)
        return codes.astype(self.element.code_dtype, copy=False)

    def scatter(self, codes: Codes) -> Words:
        """Return registers ``(..., lanes, registers)`` of a matrix of codes."""
        if self.products > 1:
            *lead, products, rows, columns = codes.shape
            codes = codes.reshape(*lead, products * rows, columns)
        return packed(self.layout.distribute(codes), self.storage, self.register_bits)

    def places(self) -> npt.NDArray[np.intp]:
        """Return ``(lanes, registers, elements per register, 2)``: row and column of every element.

        Rows of independent products count within the product of the lane.
        """
        places = np.stack([self.layout.row_index % self.matrix[0], self.layout.column_index], axis=-1)
        return places.reshape(*self.shape, -1, 2)


@dataclass(frozen=True, kw_only=True)
class SharedTile:
    """A multiplicand in shared memory behind a matrix descriptor.

    ``rows`` run along M or N, ``columns`` along K. PTX ISA 9.1, section 9.7.15.5.1.2 "Shared Memory Matrix
    Layout".
    """

    operand: str
    element: Format
    rows: int
    columns: int

    lanes = words = 0

    @property
    def side(self) -> int:
        """0 for A, 1 for B."""
        return "ab".index(self.operand)

    def holds(self, inputs: Inputs) -> bool:
        """Return whether the inputs give a matrix descriptor of the operand."""
        return inputs.descriptor(self.operand) is not None

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return codes ``(..., rows, columns)`` of A, ``(..., columns, rows)`` of B."""
        shared = present(inputs.shared, "shared")
        descriptors = present(inputs.descriptor(self.operand), "descriptors")
        major: Major = "MN" if product.transposed[self.side] else "K"
        if np.unique(descriptors).size == 1:
            tile = self._read(shared, int(descriptors.flat[0]), major, inputs.literal)
        else:
            batch = np.broadcast_shapes(descriptors.shape, shared.shape[:-1])
            memories = np.broadcast_to(shared, (*batch, shared.shape[-1]))
            values = np.broadcast_to(descriptors, batch)
            tiles = [
                self._read(memories[index], int(values[index]), major, inputs.literal)
                for index in np.ndindex(batch)
            ]
            tile = np.stack(tiles).reshape(*batch, self.rows, self.columns)
        return np.swapaxes(tile, -1, -2) if self.operand == "b" else tile

    def _read(self, memory: npt.NDArray[np.uint8], word: int, major: Major, literal: bool) -> Codes:
        """Return one tile; eight 1-bit elements are read as a byte, the first in its lowest bit."""
        bits = self.element.bits
        tile = load_tile(
            memory,
            Descriptor.decode(word),
            mn=self.rows,
            k=self.columns * bits // max(bits, 8),
            dtype=np.dtype(f"u{max(bits, 8) // 8}"),
            major=major,
            literal=literal,
        )
        return tile if bits >= 8 else np.unpackbits(tile, axis=-1, bitorder="little")


@lru_cache(maxsize=4096)
def tile_bytes(
    tile: SharedTile, descriptor: int, memory_bytes: int, literal: bool, transposed: bool
) -> npt.NDArray[np.int64]:
    """Return the bytes ``(n, 2)`` that a tile takes up in shared memory; do not write to them.

    Raises as descriptor.touched_bytes does.
    """
    bits = tile.element.bits
    return touched_bytes(
        Descriptor.decode(np.uint64(descriptor)),
        mn=tile.rows,
        k=tile.columns * bits // max(bits, 8),
        element_bits=max(bits, 8),
        major="MN" if transposed else "K",
        memory_bytes=memory_bytes,
        literal=literal,
    )
