"""Places of operands: registers, or a tile of shared memory behind a matrix descriptor.

A placement belongs to one operand of one instruction (a, b, c, d; e, the metadata; scale_a, scale_b) and
says how many lanes and words the operand takes, how its codes are gathered, and how a result is scattered.
``Inputs`` are what one execution reads. A further place is a further class with the methods of ``Placement``,
as those of tensor memory in tensor_placements.py. Knows no arithmetic, no spellings and no targets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...base.errors import IllegalInstruction, present
from ..descriptors.matrix_descriptor import MAJORS, Descriptor
from ..descriptors.tile_addresses import load_tile, tile_addresses, touched_bytes
from ..descriptors.tile_shape import TileShape
from ..formats import Format
from ..layouts.field_layout import BIT, LANE, FieldLayout, scale_fields
from ..layouts.fragment_layout import Layout
from ..layouts.strides import points
from ..memory import Addresses
from ..products import Codes, Product, Storage
from ..registers import Words, checked, packed, unpacked

# --- what one execution reads ------------------------------------------------------------------------


class ScaleSelectors(NamedTuple):
    """The byte and the thread of a quad that supply the block scales of A and of B."""

    byte_id_a: int = 0
    thread_id_a: int = 0
    byte_id_b: int = 0
    thread_id_b: int = 0


NO_SCALE_SELECTORS = ScaleSelectors()


class TensorSettings(NamedTuple):
    """What tcgen05.mma takes besides its descriptors: scale-input-d, the words of disable-output-lane (32
    lanes each) and of the zero-column mask.
    """

    scale_input_d: int = 0
    disable_output_lane: tuple[int, ...] = ()
    zero_column_mask: int = 0

    def disabled(self, lanes: int) -> npt.NDArray[np.bool_]:
        """Return ``(lanes,)``: whose elements of D stay as they are."""
        words = (*self.disable_output_lane, *(0,) * (lanes // 32))
        bits = np.array(words[: lanes // 32], np.uint32)[:, None] >> np.arange(32, dtype=np.uint32) & 1
        return bits.astype(np.bool_).ravel()


NO_TENSOR_SETTINGS = TensorSettings()


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All that one execution reads, as the operands of the instruction give it.

    ``registers`` are arrays ``(..., lanes, registers)`` by operand. ``literal`` executes metadata that
    PTX leaves undefined, or whose effect is unknown, by reading every field as it stands. For wgmma:
    ``shared (..., bytes)`` uint8, 64-bit matrix descriptors of A (None: in registers) and B, and the
    immediates; ``scale_d`` false means that D is not read. tcgen05.mma has these descriptors as well, its
    ``tensor`` settings, and codes of A and B that are given as ``matrices``.
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
    tensor: TensorSettings = NO_TENSOR_SETTINGS
    matrices: Mapping[str, Codes] = field(default_factory=dict)

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

    def by_rows(self) -> Inputs:
        """Return the same with registers row by row in memory, so that elements in them can be viewed."""
        return self.with_words({role: np.ascontiguousarray(words) for role, words in self.registers.items()})

    @property
    def warp_level(self) -> bool:
        """Whether the inputs hold nothing that only instructions with tiles in shared memory take."""
        return (
            self.a_descriptor is self.b_descriptor is self.shared is None
            and self.scale_d
            and self.negate == self.transposed == (False, False)
            and (self.tensor is NO_TENSOR_SETTINGS or self.tensor == NO_TENSOR_SETTINGS)
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
    matrices = {name: codes[chosen] for name, codes in inputs.matrices.items()}
    return replace(inputs, registers=registers, matrices=matrices, **more)


def arrays_of(inputs: Inputs) -> Iterator[npt.NDArray[Any]]:
    """Yield every array that the inputs hold."""
    yield from inputs.registers.values()
    yield from inputs.matrices.values()
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
        """Return codes ``(..., rows, columns)`` of the operand, as the product transposes them.

        Of metadata they are fields ``(..., m, chunks)``; of scales ``(..., m, chunks)``, of B
        ``(..., chunks, n)``.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class InRegisters:
    """An operand in the registers of a warp or warpgroup: metadata and scales have one word in each lane."""

    operand: str
    lanes: int
    register_bits: int = 32

    @property
    def words(self) -> int:
        """Registers of the operand in one lane."""
        return 1

    @property
    def shape(self) -> tuple[int, int]:
        """Lanes, registers: the last two axes of the operand's arrays."""
        return self.lanes, self.words

    def holds(self, inputs: Inputs) -> bool:
        """Return whether the inputs give registers of the operand."""
        return self.operand in inputs.registers

    def checked(self, words: npt.ArrayLike) -> Words:
        """Return registers of the operand as unsigned words; raises OperandError."""
        return checked(words, self.shape, self.register_bits, self.operand)


@dataclass(frozen=True, kw_only=True, eq=False)
class Registers(InRegisters):
    """The elements of a, b, c or d in registers.

    ``matrix`` is the operand's rows and columns; ``fragment`` makes its layout.
    """

    element: Format
    matrix: tuple[int, int]
    fragment: Callable[[], Layout]
    storage: Storage
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

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return codes ``(..., rows, columns)`` of the operand's registers."""
        return self.codes(inputs.registers[self.operand])

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

    def written(self, codes: Codes, inputs: Inputs) -> Words:
        """Return the registers of D, all of which the instruction writes."""
        return self.scatter(codes)

    def places(self) -> npt.NDArray[np.intp]:
        """Return ``(lanes, registers, elements per register, 2)``: row and column of every element.

        Rows of independent products count within the product of the lane.
        """
        places = np.stack([self.layout.row_index % self.matrix[0], self.layout.column_index], axis=-1)
        return places.reshape(*self.shape, -1, 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class MetadataRegisters(InRegisters):
    """Fields of 4 bits that say which columns of sparse A are stored, in the lanes that a selector reads.

    ``fields(selector)`` is the layout ``(row, chunk) -> (lane, lowest bit)``.
    """

    fields: Callable[[int], FieldLayout]

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return the fields ``(..., m, chunks)`` of the registers under the selector of the inputs."""
        return self.codes(inputs.registers[self.operand], inputs.selector)

    def codes(self, words: Words, selector: int) -> Codes:
        """Return the fields ``(..., m, chunks)`` that the selector's lanes hold; other lanes are ignored."""
        index = _index(self, selector)
        fields: Codes = words[..., index[..., LANE], 0] >> index[..., BIT].astype(np.uint32) & np.uint32(15)
        return fields.astype(np.uint8)

    def scatter(self, fields: Codes, selector: int) -> Words:
        """Return registers ``(..., lanes, 1)`` with the fields in place and zeros elsewhere."""
        index = _index(self, selector).reshape(-1, 2)
        flat = fields.reshape(*fields.shape[:-2], len(index)).astype(np.uint32)
        flat = flat << index[:, BIT].astype(np.uint32)
        order = np.argsort(index[:, LANE], kind="stable").reshape(-1, 8)  # eight fields a word
        words = np.zeros((*fields.shape[:-2], self.lanes, 1), np.uint32)
        words[..., index[order[:, 0], LANE], 0] = np.bitwise_or.reduce(flat[..., order], axis=-1)
        return words


@lru_cache(maxsize=4096)
def _index(metadata: MetadataRegisters, selector: int) -> npt.NDArray[np.intp]:
    return metadata.fields(selector).index


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleRegisters(InRegisters):
    """The block scales of the rows of A or the columns of B: ``lines`` of so many ``chunks``, a byte each.

    Which lanes and bytes hold them, ids in the inputs say. PTX ISA 9.1, section 9.7.14.3.
    """

    lines: int
    chunks: int

    @property
    def side(self) -> str:
        """The operand that is scaled: a or b."""
        return self.operand.removeprefix("scale_")

    @property
    def byte_ids(self) -> range:
        """The legal byte ids: four bytes, or half of them."""
        return range(0, 4, self.chunks)

    @property
    def thread_ids(self) -> range:
        """The legal thread ids: half a quad for A, a whole quad for B."""
        return range(2 if self.side == "a" else 4)

    @cached_property
    def layout(self) -> FieldLayout:
        """The map ``(line, chunk, thread id, byte id) -> (lane, lowest bit)``."""
        threads = len(self.thread_ids)
        return scale_fields(side=self.side, lines=self.lines, chunks=self.chunks, threads=threads)

    def lanes_of(self, thread_id: Any) -> npt.NDArray[np.intp]:
        """Return the lane of every line, ``(..., lines)``, that holds its scales.

        ``thread_id`` is a number or an array (...).
        """
        (_, line), _, (_, thread), _ = self.layout.inputs
        first = points(thread, 2)[np.asarray(thread_id, np.intp), LANE]
        lanes: npt.NDArray[np.intp] = first[..., None] + points(line, 2)[:, LANE]
        return lanes

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return scale codes ``(..., m, chunks)`` of A, ``(..., chunks, n)`` of B."""
        ids = inputs.scale_selectors
        byte_id, thread_id = getattr(ids, f"byte_id_{self.side}"), getattr(ids, f"thread_id_{self.side}")
        return self.codes(inputs.registers[self.operand], byte_id, thread_id)

    def codes(self, words: Words, byte_id: int, thread_id: int) -> Codes:
        """Return scale codes as gather does; chunk i is byte ``byte_id + i`` of the word.

        Raises IllegalInstruction for ids that the form does not have.
        """
        if byte_id not in self.byte_ids:
            legal = ", ".join(map(str, self.byte_ids))
            message = f"byte-id-{self.side} {byte_id}: with {self.chunks} scales a word it is {legal}"
            raise IllegalInstruction(message)
        if thread_id not in self.thread_ids:
            raise IllegalInstruction(f"thread-id-{self.side} {thread_id}: expected 0..{self.thread_ids[-1]}")
        shifts = (8 * (byte_id + np.arange(self.chunks))).astype(np.uint32)
        codes = (words[..., self.lanes_of(thread_id), :] >> shifts & np.uint32(0xFF)).astype(np.uint8)
        return codes if self.side == "a" else np.swapaxes(codes, -1, -2)


@dataclass(frozen=True, kw_only=True)
class BehindDescriptor(ABC):
    """A multiplicand in shared memory, behind a descriptor."""

    operand: str

    ctas = 1  # whose shared memory holds a part, each behind the same descriptor

    @property
    def side(self) -> int:
        """0 for A, 1 for B."""
        return "ab".index(self.operand)

    def holds(self, inputs: Inputs) -> bool:
        """Return whether the inputs give a descriptor of the operand."""
        return inputs.descriptor(self.operand) is not None

    @abstractmethod
    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return codes ``(..., rows, columns)`` of A, ``(..., columns, rows)`` of B."""

    @abstractmethod
    def last_byte(self, word: int, inputs: Inputs, product: Product) -> int:
        """Return where what a descriptor reads ends: the byte behind the last, in the memory of a CTA."""

    @abstractmethod
    def element_addresses(self, word: int, inputs: Inputs, product: Product) -> Addresses:
        """Return the address of the first byte of each element, ``(rows, columns)`` of A or B."""

    @abstractmethod
    def explained(self, word: int, inputs: Inputs, product: Product) -> tuple[str, ...]:
        """Return lines of text on a descriptor."""


@dataclass(frozen=True, kw_only=True)
class SharedTile(BehindDescriptor):
    """A multiplicand in shared memory behind a matrix descriptor.

    ``rows`` run along M or N, ``columns`` along K. PTX ISA 9.1, section 9.7.15.5.1.2 "Shared Memory Matrix
    Layout".
    """

    element: Format
    rows: int
    columns: int

    lanes = words = 0

    @property
    def elements_in_unit(self) -> int:
        """Elements that an address stands for: 8 of 1 bit, in a byte, otherwise 1."""
        return 8 // min(self.element.bits, 8)

    def last_byte(self, word: int, inputs: Inputs, product: Product) -> int:
        """Return where what a descriptor reads ends: the byte behind the last, in the memory of a CTA."""
        size = present(inputs.shared, "shared").shape[-1]
        return int(tile_bytes(self, word, size, inputs.literal, inputs.transposed[self.side])[-1, 1])

    def element_addresses(self, word: int, inputs: Inputs, product: Product) -> Addresses:
        """Return the address of the first byte of each element, ``(rows, columns)`` of A or B."""
        shape = self.shape(transposed=inputs.transposed[self.side])
        addresses = tile_addresses(Descriptor.decode(word), shape, literal=inputs.literal)
        each = np.repeat(addresses, self.elements_in_unit, axis=1)
        return each.T if self.operand == "b" else each

    def explained(self, word: int, inputs: Inputs, product: Product) -> tuple[str, ...]:
        """Return lines of text on a descriptor."""
        return tuple(Descriptor.decode(word).explain(MAJORS[inputs.transposed[self.side]]))

    def shape(self, *, transposed: bool = False) -> TileShape:
        """Return the shape that descriptors address; bytes where elements have 1 bit."""
        units = self.elements_in_unit
        bits, major = self.element.bits * units, MAJORS[transposed]
        return TileShape(mn=self.rows, k=self.columns // units, element_bits=bits, major=major)

    def gather(self, inputs: Inputs, product: Product) -> Codes:
        """Return codes ``(..., rows, columns)`` of A, ``(..., columns, rows)`` of B."""
        shared = present(inputs.shared, "shared")
        descriptors = present(inputs.descriptor(self.operand), "descriptors")
        shape = self.shape(transposed=product.transposed[self.side])
        if np.unique(descriptors).size == 1:
            tile = self._read_tile(shared, int(descriptors.flat[0]), shape, inputs.literal)
        else:
            batch = np.broadcast_shapes(descriptors.shape, shared.shape[:-1])
            memories = np.broadcast_to(shared, (*batch, shared.shape[-1]))
            values = np.broadcast_to(descriptors, batch)
            tiles = [
                self._read_tile(memories[index], int(values[index]), shape, inputs.literal)
                for index in np.ndindex(batch)
            ]
            tile = np.stack(tiles).reshape(*batch, self.rows, self.columns)
        return np.swapaxes(tile, -1, -2) if self.operand == "b" else tile

    def _read_tile(self, memory: npt.NDArray[np.uint8], word: int, shape: TileShape, literal: bool) -> Codes:
        """Return one tile; eight 1-bit elements are read as a byte, the first in its lowest bit."""
        tile = load_tile(memory, Descriptor.decode(word), shape, literal=literal)
        return tile if self.elements_in_unit == 1 else np.unpackbits(tile, axis=-1, bitorder="little")


@lru_cache(maxsize=4096)
def tile_bytes(
    tile: SharedTile, descriptor: int, memory_bytes: int, literal: bool, transposed: bool
) -> npt.NDArray[np.int64]:
    """Return the bytes ``(n, 2)`` that a tile takes up in shared memory; do not write to them.

    Raises as touched_bytes does.
    """
    shape = tile.shape(transposed=transposed)
    word = Descriptor.decode(np.uint64(descriptor))
    return touched_bytes(word, shape, memory_bytes=memory_bytes, literal=literal)
