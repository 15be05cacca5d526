"""Places of the operands of tcgen05.mma: words of tensor memory, tiles behind its descriptors, matrices.

Words of tensor memory are ``(..., lanes, columns)`` uint32 from the address of the operand on: the 128 lanes
of a CTA, of a pair the 128 of the even CTA and then those of the odd CTA. Shared memory of a pair is that
of the even CTA and then, as long, that of the odd CTA. PTX ISA 9.3, section 9.7.17.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError, UndefinedBehavior, present
from ..descriptors.matrix_descriptor import Major
from ..descriptors.tensor_descriptor import TensorDescriptor, tile_byte_addresses
from ..element_packing import byte_of_element, codes_of_bytes
from ..layouts.strides import Indices
from ..layouts.tensor_memory import BIT, COLUMN, CTA, LANE, LANES, TensorLayout
from ..memory import Addresses
from ..products import Codes, Product
from ..registers import Words, as_unsigned, with_registers
from .placements import BehindDescriptor, Inputs, InRegisters


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorCells(InRegisters):
    """An operand in tensor memory: elements, metadata fields or scale factors, each some bits of a cell.

    ``bits`` of an element lie ``low_bit`` above the place of the layout, ``first_column`` columns further on.
    """

    layout: TensorLayout
    bits: int
    low_bit: int = 0
    first_column: int = 0
    code_dtype: np.dtype[Any]

    @property
    def words(self) -> int:
        """Columns of tensor memory from the address of the operand on."""
        return self.first_column + self.layout.width

    @property
    def slots(self) -> int:
        """Elements for which a cell has room."""
        steps = [mode.along(BIT) for mode in (*self.layout.rows, *self.layout.columns) if mode.along(BIT)]
        return 32 // min(steps, default=32)

    @cached_property
    def index(self) -> tuple[Indices, Indices, npt.NDArray[np.uint32]]:
        """``(rows, columns)`` each: lane, column and lowest bit of every element, in its first copy."""
        cells = self.layout.cells
        lanes = cells[..., CTA] * LANES + cells[..., LANE]
        bits = (cells[..., BIT] + self.low_bit).astype(np.uint32)
        return lanes, cells[..., COLUMN] + self.first_column, bits

    @cached_property
    def mask(self) -> Words:
        """``(lanes, columns)``: the bits that belong to elements, of all copies."""
        return self.scatter(np.full(self.layout.shape, (1 << self.bits) - 1, self.code_dtype))

    def checked(self, words: npt.ArrayLike) -> Words:
        """Return words of the operand, uint32 ``(..., lanes, columns)``; raises OperandError.

        Metadata may have further columns, of other selectors.
        """
        array = as_unsigned(words, 32, self.operand)
        array = with_registers(array, *self.shape)
        lanes, columns = array.shape[-2:] if array.ndim > 1 else (0, 0)
        enough = columns >= self.words if self.operand == "e" else columns == self.words
        if lanes != self.lanes or not enough:
            raise OperandError(
                f"{self.operand} has shape {array.shape}, but its words of tensor memory come as "
                f"(..., {self.lanes}, {self.words}): lanes, then columns from its address on"
            )
        return array

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return codes ``(..., rows, columns)`` of the words; of the scales of B ``(..., chunks, n)``."""
        codes = self.codes(inputs.registers[self.operand])
        return np.ascontiguousarray(np.swapaxes(codes, -1, -2)) if self.operand == "scale_b" else codes

    def codes(self, words: Words, selector: int = 0) -> Codes:
        """Return codes ``(..., rows, columns)``, the inverse of scatter.

        Raises UndefinedBehavior where lanes that repeat others hold other bits. The selector of metadata is
        in the instruction descriptor.
        """
        lane, column, bit = self.index
        mask = np.uint32((1 << self.bits) - 1)
        found = words[..., lane, column] >> bit & mask
        for copy in self.layout.copies[1:]:
            differs = (words[..., lane + copy, column] >> bit & mask) != found
            if differs.any():
                row, place = (int(number) for number in np.argwhere(differs)[0][-2:])
                raise UndefinedBehavior(
                    f"{self.operand}: lane {lane[row, place] + copy}, column {column[row, place]} holds "
                    f"other bits than lane {lane[row, place]}, which it repeats"
                )
        codes: Codes = found.astype(self.code_dtype)
        return codes

    def scatter(self, codes: Codes, selector: int = 0) -> Words:
        """Return words ``(..., lanes, columns)`` with the elements in place, in every copy, and 0
        elsewhere.
        """
        lane, column, bit = self.index
        words = np.zeros((*codes.shape[:-2], self.lanes, self.words), np.uint32)
        for lowest in np.unique(bit):  # of elements with the same lowest bit none share a cell
            chosen = bit == lowest
            placed = codes[..., chosen].astype(np.uint32) << lowest
            for copy in self.layout.copies:
                words[..., lane[chosen] + copy, column[chosen]] |= placed
        return words

    def written(self, codes: Codes, inputs: Inputs) -> Words:
        """Return words of D: those of C, where it is given, with the elements of enabled lanes replaced."""
        shape = (self.lanes, self.words)
        before = inputs.registers.get("c", np.zeros(shape, np.uint32))
        lead = np.broadcast_shapes(before.shape[:-2], codes.shape[:-2])
        words = np.broadcast_to(before, (*lead, *shape)).copy()
        lane, column, _ = self.index
        kept = ~inputs.tensor.disabled(self.lanes)[lane]
        words[..., lane[kept], column[kept]] = codes[..., kept]
        return words

    def places(self) -> npt.NDArray[np.intp]:
        """Return ``(lanes, columns, elements per cell, 2)``: row and column of every element, -1 where a
        place holds none.
        """
        lane, column, bit = self.index
        slot = bit.astype(np.intp) * self.slots // 32
        found = np.full((self.lanes, self.words, self.slots, 2), -1, np.intp)
        for copy in self.layout.copies:
            found[lane + copy, column, slot] = np.moveaxis(np.indices(lane.shape), 0, -1)
        return found


@dataclass(frozen=True, kw_only=True)
class DescribedTile(BehindDescriptor):
    """A multiplicand in the shared memory of each CTA, behind one shared-memory descriptor for all.

    ``rows`` of a CTA run along M or N, ``row_bytes`` along K. PTX ISA 9.3, section 9.7.17.4.1.
    """

    rows: int
    row_bytes: int
    ctas: int
    element_bytes: int

    lanes = words = 0

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return codes ``(..., rows, columns)`` of A, ``(..., columns, rows)`` of B, of all CTAs."""
        shared = present(inputs.shared, "shared")
        descriptors = present(inputs.descriptor(self.operand), "descriptors")
        major = self.major(product)
        batch = np.broadcast_shapes(descriptors.shape, shared.shape[:-1])
        values = np.broadcast_to(descriptors, batch)
        rows = [self._rows(shared, values, batch, major, cta) for cta in range(self.ctas)]
        data = np.concatenate(rows, axis=-2).reshape(-1, self.row_bytes)
        codes = codes_of_bytes(data, product, self.operand)
        tile: Codes = codes.reshape(*batch, self.ctas * self.rows, -1)
        return np.ascontiguousarray(np.swapaxes(tile, -1, -2)) if self.operand == "b" else tile

    def _rows(
        self,
        shared: npt.NDArray[np.uint8],
        words: npt.NDArray[np.uint64],
        batch: tuple[int, ...],
        major: Major,
        cta: int,
    ) -> npt.NDArray[np.uint8]:
        """Return the bytes ``(..., rows, row bytes)`` of the tile in one CTA."""
        if shared.dtype != np.uint8 or shared.shape[-1] % self.ctas:
            halves = f", in {self.ctas} halves of one size" if self.ctas > 1 else ""
            raise OperandError(
                f"shared has shape {shared.shape} of {shared.dtype}: it is uint8 bytes{halves}"
            )
        size = shared.shape[-1] // self.ctas
        own = np.broadcast_to(shared[..., cta * size : (cta + 1) * size], (*batch, size))
        if np.unique(words).size == 1:
            return own[..., self.addresses(int(words.flat[0]), major, size)]
        found = [own[index][self.addresses(int(words[index]), major, size)] for index in np.ndindex(batch)]
        return np.stack(found).reshape(*batch, self.rows, self.row_bytes)

    def last_byte(self, word: int, inputs: Inputs, product: Product) -> int:
        """Return where what a descriptor reads ends: the byte behind the last, in the memory of a CTA."""
        size = present(inputs.shared, "shared").shape[-1] // self.ctas
        return int(self.addresses(word, self.major(product), size).max()) + 1

    def element_addresses(self, word: int, inputs: Inputs, product: Product) -> Addresses:
        """Return the address of the first byte of each element, ``(rows, columns)`` of A or B.

        The memory of the odd CTA of a pair follows that of the even CTA.
        """
        size = present(inputs.shared, "shared").shape[-1] // self.ctas
        columns = product.stored_k if self.operand == "a" else product.shape.k
        bits, padded = product.format(self.operand).bits, product.storage(self.operand).bits == 8
        place = byte_of_element(np.arange(columns), bits, padded=padded)
        own = self.addresses(word, self.major(product), size)[:, place]
        each: Addresses = np.concatenate([own + cta * size for cta in range(self.ctas)])
        return each.T if self.operand == "b" else each

    def explained(self, word: int, inputs: Inputs, product: Product) -> tuple[str, ...]:
        """Return lines of text on a descriptor."""
        return TensorDescriptor.decode(word).explain(self.major(product))

    def major(self, product: Product) -> Major:
        """Return whether rows of the tile run along K, or along M or N."""
        return "MN" if product.transposed[self.side] else "K"

    def addresses(self, word: int, major: Major, size: int) -> Addresses:
        """Return ``(rows, row bytes)`` of a descriptor, in a shared memory of so many bytes.

        Raises OperandError, UndefinedBehavior and NotModelled, as tile_byte_addresses does.
        """
        addresses = _addresses(self, word, major)
        if addresses.max() >= size:
            raise OperandError(
                f"{self.operand.upper()}: {TensorDescriptor.decode(word)} reads byte {addresses.max():#x}, "
                f"outside the {size} bytes of shared memory"
            )
        return addresses


@lru_cache(maxsize=256)
def _addresses(tile: DescribedTile, word: int, major: Major) -> Addresses:
    return tile_byte_addresses(
        TensorDescriptor.decode(word),
        rows=tile.rows,
        row_bytes=tile.row_bytes,
        element_bytes=tile.element_bytes,
        major=major,
    )


@dataclass(frozen=True, kw_only=True)
class GivenMatrix:
    """A multiplicand that the caller gives as a matrix, in no memory at all."""

    operand: str

    lanes = words = 0

    def holds(self, inputs: Inputs) -> bool:
        """Return whether the inputs give the matrix."""
        return self.operand in inputs.matrices

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return its codes ``(..., rows, columns)``."""
        return inputs.matrices[self.operand]
