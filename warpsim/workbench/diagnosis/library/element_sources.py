"""Where a place takes its content from when a mistake has been made, and for which operands that can be.

A formula is ``(grid, lane, register, slot) -> (lane, register, slot)`` on index arrays, from the place to
its source; g = lane // 4 and t = lane % 4 are the manual's groupID and threadID_in_group. Which formulas
are looked for, under which names, is in tables.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....isa.fragments import metadata_map
from ....isa.warps import WARP
from .grids import Grid, Index

Triple = tuple[Index, Index, Index]
Formula = Callable[[Grid, Index, Index, Index], Triple]
Predicate = Callable[[Grid], bool]


# --- predicates ----------------------------------------------------------------------------------------


def always(grid: Grid) -> bool:
    """Accept any operand."""
    return True


def row_halves(grid: Grid) -> int:
    """Return row halves that the registers of A, C or D of a warp run over: 2 for m16 and m64, 1 for m8."""
    return min(2, grid.instruction.shape.m // 8) if grid.instruction.products == 1 else 1


def two_row_halves(grid: Grid) -> bool:
    """Return whether the shape is m16 or m64."""
    return row_halves(grid) == 2


def k_blocks(grid: Grid) -> int:
    """Return how many registers of A or B run along k in one row half."""
    if grid.instruction.products > 1:
        return 1
    return grid.registers // (row_halves(grid) if grid.operand == "a" else 1)


def several_k_blocks(grid: Grid) -> bool:
    """Return whether a fragment has several registers along k."""
    return k_blocks(grid) > 1


def both(grid: Grid) -> bool:
    """Return whether registers of A run over row halves and along k."""
    return k_blocks(grid) > 1 and row_halves(grid) > 1


def words_read(count: int) -> Predicate:
    """Return lanes of a quad that a selector reads, at least."""
    return lambda grid: grid.instruction.metadata_words >= count


def several_warps(grid: Grid) -> bool:
    """Return whether the operand is a warpgroup's."""
    return grid.lanes > WARP


def one_product(grid: Grid) -> bool:
    """Return whether the form computes one product: all but m8n8k4 f16."""
    return grid.instruction.products == 1


# --- registers ---------------------------------------------------------------------------------------


def exchange(first: int, second: int) -> Formula:
    """Return two registers exchanged."""

    def formula(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
        moved = np.where(register == first, second, np.where(register == second, first, register))
        return lane, moved, slot

    return formula


def exchange_row_halves(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return registers of rows g and g + 8 exchanged."""
    columns = grid.instruction.shape.n // 8  # blocks of D that hold both halves
    across = 1 if grid.operand == "a" else grid.registers // columns // 2
    return lane, register ^ across, slot


def exchange_metadata_halves(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return rows g and g + 8 share a word with 16- and 32-bit elements, and a pair of lanes otherwise."""
    if grid.instruction.storage("a").bits >= 16:
        return lane, register, slot ^ 8
    return lane ^ 1, register, slot


def exchange_k_halves(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return the lower and the upper half of the registers exchanged."""
    return lane, register ^ grid.registers // 2, slot


def k_first(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return registers along k first where they run over row halves first."""
    half, block = register % 2, register // 2
    return lane, half * k_blocks(grid) + block, slot


def rows_first(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return the inverse of k_first."""
    half, block = register // k_blocks(grid), register % k_blocks(grid)
    return lane, block * 2 + half, slot


def reversed_registers(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return the last register first."""
    return lane, grid.registers - 1 - register, slot


# --- slots -------------------------------------------------------------------------------------------


def flip(mask: int) -> Formula:
    """Exchange slots whose bit positions differ in ``mask``."""

    def formula(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
        return lane, register, slot ^ mask // grid.bits

    return formula


def divides(mask: int) -> Predicate:
    """Return whether the rotation cuts no element; a 1:2 field is a single index and is not cut either."""

    def applies(grid: Grid) -> bool:
        pattern = grid.instruction.pattern
        field = grid.operand == "e" and pattern is not None and pattern.kept == 1
        unit = 4 if field else grid.bits
        return mask % unit == 0 and mask < grid.register_bits

    return applies


# --- lanes -------------------------------------------------------------------------------------------


def lanes(source: Callable[[Index], Index]) -> Formula:
    """Return all registers from the lane of the same warp that ``source`` gives."""

    def formula(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
        return lane // WARP * WARP + source(lane % WARP), register, slot

    return formula


def warps(source: Callable[[Index], Index]) -> Formula:
    """Return all registers from the same lane of the warp that ``source`` gives."""

    def formula(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
        return source(lane // WARP) % (grid.lanes // WARP) * WARP + lane % WARP, register, slot

    return formula


def next_thread(step: int) -> Callable[[Index], Index]:
    """Return the lane ``step`` further in the same quad."""
    return lambda lane: lane // 4 * 4 + (lane + step) % 4


# --- matrices ----------------------------------------------------------------------------------------


def by_element(element: Callable[[Grid, Index, Index], tuple[Index, Index]]) -> Formula:
    """Return a formula on (row, column) of the operand's stored matrix."""

    def formula(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
        layout = grid.instruction.in_registers(grid.operand).layout
        row, column = element(grid, layout.row_index, layout.column_index)
        place = layout.inverse[row, column].reshape(lane.shape)
        per_lane = grid.registers * grid.slots
        return place // per_lane, place % per_lane // grid.slots, place % grid.slots

    return formula


def read_across(grid: Grid, row: Index, column: Index) -> tuple[Index, Index]:
    """Return a matrix in row order read as if in column order."""
    rows, columns = grid.instruction.matrix_shape(grid.operand)
    product, place = row // rows * rows, column * rows + row % rows
    return product + place // columns, place % columns


def written_across(grid: Grid, row: Index, column: Index) -> tuple[Index, Index]:
    """Return a matrix in column order read as if in row order."""
    rows, columns = grid.instruction.matrix_shape(grid.operand)
    product, place = row // rows * rows, row % rows * columns + column
    return product + place % rows, place // rows


def transposed_blocks(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return every 8 x 8 block of 16-bit units transposed, as ldmatrix.trans does."""
    per_half = 16 // grid.bits
    unit, inside = 2 * (lane % 4) + slot // per_half, slot % per_half
    group = lane % WARP // 4
    return lane // WARP * WARP + 4 * unit + group // 2, register, group % 2 * per_half + inside


def contiguous(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return each lane given consecutive k over all its registers of a row."""
    halves = grid.registers // k_blocks(grid)
    block, half, blocks = register // halves, register % halves, k_blocks(grid)
    place = lane % 4 * blocks + block  # register-sized pieces of the row
    return lane // 4 * 4 + place % 4, place // 4 * halves + half, slot


def spread(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return the inverse of contiguous."""
    halves = grid.registers // k_blocks(grid)
    block, half, blocks = register // halves, register % halves, k_blocks(grid)
    place = block * 4 + lane % 4
    return lane // 4 * 4 + place // blocks, place % blocks * halves + half, slot


# --- metadata and scales -----------------------------------------------------------------------------


def other_selector(value: int) -> Formula:
    """Return the lanes of the selector hold what those of selector ``value`` should."""

    def formula(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
        words, used = grid.instruction.metadata_words, grid.setting.selector
        read = lane % 4 // words == used
        return np.where(read, lane + (value - used) * words, lane), register, slot

    return formula


def has_selector(value: int) -> Predicate:
    """Return a predicate: the form has this selector, and it is not in use."""

    def applies(grid: Grid) -> bool:
        return value in grid.instruction.selectors and value != grid.setting.selector

    return applies


def foreign(grid: Grid, *, undo: bool) -> tuple[Index, Index]:
    """Return the place of each field in its own arrangement, and in that of the other width of elements.

    Both ``(fields, 2)``: lane and nibble. Words of 16- and 32-bit elements hold four chunks of row g and
    four of row g + 8; those of narrower elements eight chunks of one row.
    """
    own = metadata_map(grid.instruction, grid.setting.selector)
    row, chunk = own[:, 3], own[:, 4]
    half, first = row // 8 % 2, own[:, 0] // 4 * 4 + grid.instruction.metadata_words * grid.setting.selector
    if grid.instruction.storage("a").bits >= 16:
        other = np.stack([first + 2 * (chunk // 8) + half, chunk % 8], axis=1)
    else:
        other = np.stack([first + chunk // 4, 4 * half + chunk % 4], axis=1)
    mine = np.stack([own[:, 0], own[:, 1] // 4], axis=1)
    return (other, mine) if undo else (mine, other)


def other_width(*, undo: bool) -> Formula:
    """Return the formula of metadata arranged for the other width; ``undo``: the inverse."""

    def formula(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
        source, place = foreign(grid, undo=undo)
        lanes, slots = lane.copy(), slot.copy()
        for index in range(2):  # a field is two 2-bit slots
            at = (place[:, 0], 0, 2 * place[:, 1] + index)
            lanes[at], slots[at] = source[:, 0], 2 * source[:, 1] + index
        return lanes, register, slots

    return formula


def rotated_bytes(step: int) -> Formula:
    """Return the formula that takes byte i from byte i + step."""

    def formula(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
        return lane, register, (slot + step) % 4

    return formula


def first_chunk(grid: Grid, lane: Index, register: Index, slot: Index) -> Triple:
    """Return every scale from the first of its group."""
    chunks = grid.instruction.scale_chunks
    return lane, register, slot // chunks * chunks
