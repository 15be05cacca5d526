"""Where every element, metadata field and scale of an instruction lies: lane, register and bits.

Both ways: from an element to its place and from a lane to what it holds, and everything that one
element of D is made of. Derived from isa/layouts and the readers of scales. Knows no values and no drawing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ..fragments import check_selector, metadata_map
from ..instruction import Instruction
from ..layouts.tensor_memory import LANES
from .placements import Inputs, ScaleSelectors
from .tensor_placements import TensorCells

NO_SCALES = ScaleSelectors()


@dataclass(frozen=True, kw_only=True)
class Place:
    """The bits of one element (of a, b, c, d), metadata field (e) or block scale (scale_a, scale_b).

    ``index`` numbers the elements of a lane, lowest register and lowest bits first: the i of the
    manual's ``ai``. ``row`` and ``column`` are the element's in its matrix, the stored column in a
    sparse A; a field has the row and chunk that it describes, a scale_a the row and chunk and a scale_b
    the chunk and column that it scales.
    """

    operand: str
    lane: int
    register: int
    index: int
    low_bit: int
    bits: int
    row: int
    column: int
    product: int = 0

    @property
    def high_bit(self) -> int:
        """The highest of the bits."""
        return self.low_bit + self.bits - 1

    @property
    def bit_range(self) -> str:
        """``[15..0]``, as the manual writes it."""
        return f"[{self.high_bit}..{self.low_bit}]"

    @property
    def register_name(self) -> str:
        """``%a0``: register 0 of operand a; ``%e``, ``%scale_a`` and ``%scale_b`` are single registers."""
        return f"%{self.operand}{self.register if self.operand in 'abcd' else ''}"

    @property
    def holder(self) -> str:
        """``T5``: thread 5, as the manual's figures have it."""
        return f"T{self.lane}"

    @property
    def box(self) -> str:
        """``T5:[15..0]``: the text of a field in a figure."""
        return f"{self.holder}:{self.bit_range}"

    @property
    def where(self) -> str:
        """The place in words."""
        return f"lane {self.lane}, register {self.register_name}, bits {self.high_bit}..{self.low_bit}"

    def __str__(self) -> str:
        return f"{self.holder} {self.register_name}{self.bit_range}"


@dataclass(frozen=True, kw_only=True)
class CellPlace(Place):
    """The bits of an element in tensor memory: ``register`` is the column from the operand's address on.

    In a pair of CTAs ``lane`` counts on through the lanes of the odd CTA.
    """

    paired: bool = False

    @property
    def register_name(self) -> str:
        """``C3``: column 3 from the address on."""
        return f"C{self.register}"

    @property
    def holder(self) -> str:
        """``L5``: lane 5; ``1.L5`` of a pair is that of the odd CTA."""
        cta, lane = divmod(self.lane, LANES)
        return f"{cta}.L{lane}" if self.paired else f"L{lane}"

    @property
    def box(self) -> str:
        """``L5 C0[7..0]``: the text of a field in a figure."""
        return str(self)

    @property
    def where(self) -> str:
        """The place in words."""
        cta, lane = divmod(self.lane, LANES)
        odd = f" of the {'odd' if cta else 'even'} CTA" * self.paired
        return f"lane {lane}, column {self.register}{odd}, bits {self.high_bit}..{self.low_bit}"


# --- all places of an operand ----------------------------------------------------------------------


def register_operands(instruction: Instruction) -> tuple[str, ...]:
    """Return the operands that lie in registers, in the order a, b, c, d, e, scale_a, scale_b."""
    return tuple(instruction.registers)


def check_operand(instruction: Instruction, operand: str) -> None:
    """Raise OperandError for an operand that the instruction does not have in registers."""
    if operand in instruction.registers:
        return
    if instruction.descriptor is not None and operand in instruction.operands:
        raise OperandError(
            f"{operand} of {instruction} lies in shared memory, or in figures of the manual only, and not in "
            "tensor memory"
        )
    if operand == "b" and instruction.lanes > 32:
        raise OperandError(f"B of {instruction} lies in shared memory, not in registers")
    names = ", ".join(register_operands(instruction))
    raise OperandError(f"{instruction} has no operand {operand!r} in registers; it has {names}")


def places(
    instruction: Instruction, operand: str, selector: int = 0, scales: ScaleSelectors = NO_SCALES
) -> tuple[Place, ...]:
    """Return every place of an operand, by lane and index (fields and scales by row and column).

    Raises OperandError for an operand the form does not have, UndefinedBehavior for a selector and
    IllegalInstruction for byte and thread ids that PTX does not define.
    """
    check_operand(instruction, operand)
    if instruction.descriptor is not None:
        if operand == "e":
            check_selector(instruction, selector)
        return _cell_places(instruction, operand)
    if operand == "e":
        check_selector(instruction, selector)
        return _field_places(instruction, selector)
    if operand.startswith("scale_"):
        return _scale_places(instruction, operand, scales)
    return _element_places(instruction, operand)


@lru_cache(maxsize=16)
def _cell_places(instruction: Instruction, operand: str) -> tuple[CellPlace, ...]:
    """Return the places in tensor memory, by lane and index, or by row and column; the first of copies."""
    rows, columns = tensor_cells(instruction, operand).index[0].shape
    by_row = [_cell(instruction, operand, row, column) for row in range(rows) for column in range(columns)]
    if operand in "acd":
        return tuple(sorted(by_row, key=lambda place: (place.lane, place.index)))
    return tuple(by_row)


def tensor_cells(instruction: Instruction, operand: str) -> TensorCells:
    """Return the cells of an operand in tensor memory; raises OperandError where it lies elsewhere."""
    held = instruction.held(operand)
    if not isinstance(held, TensorCells):
        raise OperandError(f"{operand} of {instruction} does not lie in tensor memory")
    return held


def _cell(instruction: Instruction, operand: str, line: int, across: int) -> CellPlace:
    """Return the place of an element; of scales of B a line is a column of B."""
    cells = tensor_cells(instruction, operand)
    lane, column, bit = (int(index[line, across]) for index in cells.index)
    row, place = (across, line) if operand == "scale_b" else (line, across)
    return CellPlace(
        operand=operand,
        lane=lane,
        register=column,
        index=column * cells.slots + bit * cells.slots // 32,
        low_bit=bit,
        bits=cells.bits,
        row=row,
        column=place,
        paired=instruction.lanes > LANES,
    )


@lru_cache(maxsize=16)
def _element_places(instruction: Instruction, operand: str) -> tuple[Place, ...]:
    layout = instruction.in_registers(operand).layout
    return tuple(
        _element(instruction, operand, lane, index)
        for lane in range(layout.lanes)
        for index in range(layout.values)
    )


def _element(instruction: Instruction, operand: str, lane: int, index: int) -> Place:
    held = instruction.in_registers(operand)
    layout = held.layout
    rows, _ = instruction.matrix_shape(operand)
    storage = instruction.storage(operand)
    slots = layout.values // held.words
    row, column = int(layout.row_index[lane, index]), int(layout.column_index[lane, index])
    return Place(
        operand=operand,
        lane=lane,
        register=index // slots,
        index=index,
        low_bit=index % slots * storage.bits + storage.shift,
        bits=instruction.format(operand).bits,
        row=row % rows,
        column=column,
        product=row // rows,
    )


@lru_cache(maxsize=16)
def _field_places(instruction: Instruction, selector: int) -> tuple[Place, ...]:
    return tuple(
        Place(
            operand="e",
            lane=lane,
            register=0,
            index=bit // bits,
            low_bit=bit,
            bits=bits,
            row=row,
            column=chunk,
        )
        for lane, bit, bits, row, chunk in metadata_map(instruction, selector).tolist()
    )


@lru_cache(maxsize=16)
def _scale_places(instruction: Instruction, operand: str, scales: ScaleSelectors) -> tuple[Place, ...]:
    """Tagged words go through the reader of scales: which lane, and which byte, each scale comes from."""
    lane = _read_tags(instruction, operand, scales, np.arange(32, dtype=np.uint32) * 0x0101_0101)
    byte = _read_tags(instruction, operand, scales, np.full(32, 0x0302_0100, np.uint32))
    return tuple(
        Place(
            operand=operand,
            lane=int(lane[place]),
            register=0,
            index=int(byte[place]),
            low_bit=8 * int(byte[place]),
            bits=8,
            row=place[0],
            column=place[1],
        )
        for place in np.ndindex(*lane.shape)
    )


def _read_tags(
    instruction: Instruction, operand: str, scales: ScaleSelectors, words: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint8]:
    inputs = Inputs(registers={operand: words[:, None]}, scale_selectors=scales)
    return instruction.place(operand, inputs).gather(inputs, instruction.product)


# --- lookups ---------------------------------------------------------------------------------------


def element_place(instruction: Instruction, operand: str, row: int, column: int, product: int = 0) -> Place:
    """Return the place of element (row, column) of a, b, c or d; the stored column for a sparse A.

    ``product`` chooses one of the four of m8n8k4 f16. Raises OperandError.
    """
    check_operand(instruction, operand)
    check_element(instruction, operand, row, column, product)
    if instruction.descriptor is not None:
        return _cell(instruction, operand, row, column)
    held = instruction.in_registers(operand)
    layout = held.layout
    rows, _ = instruction.matrix_shape(operand)
    lane, index = divmod(int(layout.inverse[product * rows + row, column]), layout.values)
    return _element(instruction, operand, lane, index)


def check_element(instruction: Instruction, operand: str, row: int, column: int, product: int = 0) -> None:
    """Raise OperandError for an element outside the matrix of a, b, c or d, and for another operand."""
    if operand not in ("a", "b", "c", "d"):
        raise OperandError(
            f"{operand} has no elements by row and column: ask for a lane, or for a, b, c or d"
        )
    rows, columns = instruction.matrix_shape(operand)
    if not (0 <= row < rows and 0 <= column < columns):
        name = operand.upper()
        raise OperandError(
            f"{name}[{row},{column}] does not exist: {name} of {instruction} is {rows} x {columns}"
        )
    if not 0 <= product < instruction.products:
        raise OperandError(
            f"product {product}: {instruction} computes {instruction.products}, counted from 0"
        )


def lane_places(
    instruction: Instruction,
    operand: str,
    lane: int,
    register: int | None = None,
    *,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
) -> tuple[Place, ...]:
    """Return what a lane, or one of its registers, holds of an operand; nothing where no bits are read."""
    if not 0 <= lane < instruction.lanes:
        raise OperandError(f"lane {lane}: {instruction} has lanes 0..{instruction.lanes - 1}")
    found = places(instruction, operand, selector, scales)
    if instruction.descriptor is not None:
        copies = tensor_cells(instruction, operand).layout.copies
        found = tuple(replace(place, lane=place.lane + copy) for copy in copies for place in found)
    count = instruction.held(operand).words
    if register is not None and not 0 <= register < count:
        raise OperandError(f"register {register} of {operand}: {instruction} has 0..{count - 1}")
    return tuple(place for place in found if place.lane == lane and register in (None, place.register))


@dataclass(frozen=True, kw_only=True)
class Feeds:
    """Everything that one element of D is made of, and where it is written.

    ``a`` is the row of A by stored column and ``b`` the column of B by k; either is empty where the
    matrix lies in shared memory. ``metadata`` and scales are empty where the form has none.
    """

    d: Place
    c: Place
    a: tuple[Place, ...]
    b: tuple[Place, ...]
    metadata: tuple[Place, ...]
    scale_a: tuple[Place, ...]
    scale_b: tuple[Place, ...]

    def __repr__(self) -> str:
        d = self.d
        counts = ", ".join(f"{len(getattr(self, name))} of {name}" for name in ("a", "b", "metadata"))
        return f"<what feeds d[{d.row},{d.column}] in lane {d.lane}, register {d.register}: {counts}>"


def feeds(
    instruction: Instruction,
    row: int,
    column: int,
    *,
    product: int = 0,
    selector: int = 0,
    scales: ScaleSelectors = NO_SCALES,
) -> Feeds:
    """Return which registers, lanes, metadata bits and scales D[row, column] is computed from."""
    have = set(instruction.registers)
    shape = instruction.shape
    fields = places(instruction, "e", selector) if "e" in have else ()
    scale_a = places(instruction, "scale_a", scales=scales) if "scale_a" in have else ()
    scale_b = places(instruction, "scale_b", scales=scales) if "scale_b" in have else ()
    return Feeds(
        d=element_place(instruction, "d", row, column, product),
        c=element_place(instruction, "c", row, column, product),
        a=tuple(
            element_place(instruction, "a", row, k, product)
            for k in range(instruction.stored_k)
            if "a" in have
        ),
        b=tuple(element_place(instruction, "b", k, column, product) for k in range(shape.k) if "b" in have),
        metadata=tuple(place for place in fields if place.row == row),
        scale_a=tuple(place for place in scale_a if place.row == row),
        scale_b=tuple(place for place in scale_b if place.column == column),
    )
