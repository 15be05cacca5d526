"""Operands as grids of small slots, and rearranging the slots of many register sets at once.

Knows lanes, registers and slots (an element, a 2-bit metadata index, a scale byte). Does not know which
rearrangements are mistakes (see tables) nor what the elements are worth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleSelectors
from ....isa.products import Storage
from ....isa.registers import Words, packed, unpacked

Index = npt.NDArray[np.intp]
Registers = dict[str, Words]  # operand -> (variants, tiles, lanes, registers)
# Of a warpgroup also the tiles of A and B in shared memory, (variants, tiles, mn, k) codes, and the memory
# itself as "shared", (variants, tiles, bytes).

_METADATA_BITS = 2  # one index
_SCALE_BITS = 8


@dataclass(frozen=True, kw_only=True)
class SharedTiles:
    """How a wgmma reads shared memory: descriptors of A (None: in registers) and B, and its immediates."""

    a: int | None
    b: int
    memory_bytes: int
    scale_d: bool = True
    negate: tuple[bool, bool] = (False, False)
    transposed: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An instruction with the immediates that say which lanes and bytes it reads."""

    instruction: Instruction
    selector: int = 0
    scale_selectors: ScaleSelectors = field(default_factory=ScaleSelectors)
    tiles: SharedTiles | None = None

    def in_shared(self, operand: str) -> bool:
        """Return whether a or b lies in shared memory."""
        return self.tiles is not None and (operand == "b" or (operand == "a" and self.tiles.a is not None))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """One operand: ``lanes x registers x slots`` of ``bits`` each.

    A tile in shared memory is a grid too: a lane for each row along M or N, a register of one slot for each
    element along K.
    """

    setting: Setting
    operand: str
    lanes: int
    registers: int
    slots: int
    bits: int

    @property
    def instruction(self) -> Instruction:
        """The setting's instruction."""
        return self.setting.instruction

    @property
    def register_bits(self) -> int:
        """Width of a register."""
        return self.slots * self.bits

    @cached_property
    def places(self) -> tuple[Index, Index, Index]:
        """Lane, register and slot of every place, each ``(lanes, registers, slots)``."""
        lane, register, slot = np.indices((self.lanes, self.registers, self.slots))
        return lane, register, slot

    def source(self, lane: Index, register: Index, slot: Index) -> Index:
        """Return ``(lanes * registers * slots,)``: flat places, from where each place takes its content."""
        flat = (lane * self.registers + register) * self.slots + slot
        return np.broadcast_to(flat, self.places[0].shape).reshape(-1)


def grid_of(setting: Setting, operand: str) -> Grid:
    """Return the grid of operand a, b, c, d, e, scale_a or scale_b."""
    instruction = setting.instruction
    if setting.in_shared(operand):
        rows, columns = instruction.matrix_shape(operand)
        mn, k = (rows, columns) if operand == "a" else (columns, rows)
        bits = 8 * instruction.format(operand).code_dtype.itemsize
        return Grid(setting=setting, operand=operand, lanes=mn, registers=k, slots=1, bits=bits)
    if operand in "abcd":
        bits, width = instruction.storage(operand).bits, instruction.register_bits
    else:
        bits, width = (_METADATA_BITS if operand == "e" else _SCALE_BITS), 32
    return Grid(
        setting=setting,
        operand=operand,
        lanes=instruction.lanes,
        registers=instruction.held(operand).words,
        slots=width // bits,
        bits=bits,
    )


@dataclass(frozen=True, kw_only=True)
class Rearrangement:
    """Every slot of one operand takes the content of slot ``source`` (flat, as Grid.source)."""

    grid: Grid
    source: Index

    @property
    def is_identity(self) -> bool:
        """Whether nothing moves."""
        return bool(np.array_equal(self.source, np.arange(self.source.size)))

    @cached_property
    def inverse(self) -> Rearrangement | None:
        """The rearrangement that undoes this rearrangement; None if it loses slots."""
        back = np.argsort(self.source, kind="stable")
        if not np.array_equal(self.source[back], np.arange(back.size)):
            return None
        return Rearrangement(grid=self.grid, source=back)

    @cached_property
    def _whole_registers(self) -> Index | None:
        """Source register of each register, where registers move as a whole."""
        slots = self.grid.slots
        first = self.source.reshape(-1, slots)
        if (first % slots == np.arange(slots)).all() and (first // slots == first[:, :1] // slots).all():
            return first[:, 0] // slots
        return None

    def __call__(self, words: Words) -> Words:
        """Return the rearranged ``(..., lanes, registers)``."""
        grid = self.grid
        flat = words.reshape(*words.shape[:-2], -1)
        if self._whole_registers is not None:
            whole: Words = flat[..., self._whole_registers].reshape(words.shape)
            return whole
        storage = Storage(bits=grid.bits)
        slots = unpacked(flat, storage, grid.register_bits, (1 << grid.bits) - 1)
        moved = packed(slots[..., self.source], storage, grid.register_bits)
        return moved.reshape(words.shape)
