"""Mistakes in one register, lane, row or half only, and shifts of metadata: many, each tried by itself.

Zero, stale or repeated registers, lanes, rows and columns; rows rotated; rearrangements of the tables on some
lanes only; metadata shifted by bits, in half-words, or in the order of memory. Does not know combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.codes import codes_of, matrix_of
from ....isa.fragments import codes_from, registers_of
from ....isa.instruction import Instruction
from ....isa.registers import Words
from .all_mistakes import mistakes
from .grids import Index, Rearrangement, Setting, grid_of
from .local_inputs import metadata_mistakes, scale_mistakes, tile_mistakes
from .mistake import Change, Mistake, in_operand

_NEAR = (1, -1, 4, -4)  # lanes from which a lane may have got what it holds
_LANE_SETS: tuple[tuple[str, Callable[[Index], npt.NDArray[np.bool_]]], ...] = (
    ("lanes 0-15", lambda lane: lane < 16),
    ("lanes 16-31", lambda lane: lane >= 16),
    ("odd lanes", lambda lane: lane % 2 == 1),
    ("even lanes", lambda lane: lane % 2 == 0),
)
_FACTORS = {0.5: "1/2", 0.25: "1/4", 0.125: "1/8", 0.0625: "1/16", 2.0: "2", 4.0: "4", 8.0: "8", 16.0: "16"}
Made = Iterator[Mistake]


@lru_cache(maxsize=16)
def local_mistakes(setting: Setting) -> tuple[Mistake, ...]:
    """Return every mistake of this kind that a setting can have."""
    if setting.instruction.products > 1:
        return ()
    given = setting.instruction.registers
    held = [name for name in "abc" if name in given and not setting.in_shared(name)]
    found = [mistake for name in "ab" if setting.in_shared(name) for mistake in tile_mistakes(setting, name)]
    for name in ("scale_a", "scale_b") if setting.instruction.scale else ():
        found += [*scale_mistakes(setting, name), *_lanes(setting, name), *_partly(setting, name)]
    found += [mistake for name in held for part in _PARTS for mistake in part(setting, name)]
    if setting.instruction.sparse:
        found += [*metadata_mistakes(setting), *_lanes(setting, "e"), *_partly(setting, "e")]
    return tuple(found)


# --- registers and lanes -------------------------------------------------------------------------------


def _registers(setting: Setting, operand: str) -> Made:
    """Yield registers that are zero, or hold what another register should."""
    count = setting.instruction.held(operand).words
    for register in range(count if 1 < count <= 8 else 0):
        advice = f"load register {register} of {operand.upper()}"
        yield in_operand(f"register {register} is zero", operand, advice, _with_register(register, None))
        for other in range(count):
            if other != register:
                name = f"register {register} holds register {other}'s elements"
                yield in_operand(name, operand, f"{advice}: it holds a copy", _with_register(register, other))


def _with_register(register: int, other: int | None) -> Callable[[Words], Words]:
    def change(words: Words) -> Words:
        copy = words.copy()
        copy[..., register] = 0 if other is None else words[..., other]
        return copy

    return change


def _lanes(setting: Setting, operand: str) -> Made:
    """Yield lanes that are zero, or hold what a neighbour should."""
    count = grid_of(setting, operand).lanes
    advice = "this lane's share does not arrive: check what is special about it"
    for at in range(count if count == 32 else 0):
        yield in_operand(f"lane {at} is zero", operand, advice, _with_lanes(np.array([at]), None))
        for other in (at + step for step in _NEAR):
            if 0 <= other < count:
                name = f"lane {at} holds lane {other}'s elements"
                yield in_operand(name, operand, advice, _with_lanes(np.array([at]), other))
    lane: Index = np.arange(count)
    for where, chosen in _LANE_SETS:
        yield in_operand(
            f"{where} are zero", operand, "load all lanes", _with_lanes(np.flatnonzero(chosen(lane)), None)
        )
    for warp in range(count // 32 if count > 32 else 0):
        lanes = np.flatnonzero(lane // 32 == warp)
        yield in_operand(f"warp {warp} is zero", operand, "load it in all warps", _with_lanes(lanes, None))
        for other in (warp - 1, warp + 1):
            if 0 <= other < count // 32:
                source = np.where(lane // 32 == warp, lane + 32 * (other - warp), lane)
                name = f"warp {warp} holds warp {other}'s elements"
                yield in_operand(name, operand, "add the warp to its row", _of_lanes(source))
    for first in range(0, 32 if count == 32 else 0, 4):
        yield from _quads(operand, lane, first)


def _quads(operand: str, lane: Index, first: int) -> Made:
    """Yield quads that are zero or hold another's elements, and larger groups that are zero."""
    advice = "these lanes' share does not arrive: check what is special about them"
    for size in (4, 8):
        if first % size == 0:
            lanes = np.arange(first, first + size)
            name = f"lanes {first}-{first + size - 1} are zero"
            yield in_operand(name, operand, advice, _with_lanes(lanes, None))
    for other in (first - 4, first + 4):
        if 0 <= other < len(lane):
            source = np.where(lane // 4 == first // 4, lane + other - first, lane)
            name = f"lanes {first}-{first + 3} hold the elements of lanes {other}-{other + 3}"
            yield in_operand(name, operand, advice, _of_lanes(source))


def _of_lanes(source: Index) -> Callable[[Words], Words]:
    return lambda words: words[..., source, :]


def _with_lanes(lanes: Index, other: int | None) -> Callable[[Words], Words]:
    def change(words: Words) -> Words:
        copy = words.copy()
        copy[..., lanes, :] = 0 if other is None else words[..., other, None, :]
        return copy

    return change


def _partly(setting: Setting, operand: str) -> Made:
    """Yield rearrangements of the tables on some lanes only."""
    lane = np.arange(grid_of(setting, operand).lanes)
    for known in mistakes(setting):
        if known.operands != (operand,) or known.change is None:
            continue
        for where, chosen in _LANE_SETS:
            yield Mistake(
                name=f"{known.name} on {where} only",
                advice=f"{known.advice}; the other lanes are right",
                operands=known.operands,
                change=_on_lanes(known.change, operand, chosen(lane)),
            )


def _on_lanes(change: Change, operand: str, where: npt.NDArray[np.bool_]) -> Change:
    return lambda given: {operand: np.where(where[:, None], change(given)[operand], given[operand])}


# --- rows and columns ----------------------------------------------------------------------------------


def _matrix(setting: Setting, operand: str) -> Made:
    """Yield rows and columns that are zero or repeat others; rotations; other addresses of C."""
    if setting.instruction.storage(operand).bits < 8:
        return
    rows, columns = setting.instruction.matrix_shape(operand)
    row, column = np.indices((rows, columns))
    axis, size, mine = ("column", columns, column) if operand == "b" else ("row", rows, row)
    for line in range(size if size <= 16 else 0):
        advice = f"{axis} {line} of {operand.upper()} does not arrive"
        yield in_operand(f"{axis} {line} is zero", operand, advice, _zeroed(setting, operand, mine == line))
        for other in range(size):
            if other != line:
                at = np.where(mine == line, other, mine)
                picked = (row, at) if operand == "b" else (at, column)
                yield _taken(setting, operand, f"{axis} {line} holds {axis} {other}", *picked)
    yield from _rotated(setting, operand, row, column)
    if operand in "ab":
        yield from _read_otherwise(setting, operand, row, column)
    if operand == "c":
        yield from _linear(setting, row, column)


def _rotated(setting: Setting, operand: str, row: Index, column: Index) -> Made:
    rows, columns = row.shape
    names = ("rows", "columns") if operand == "c" else ("rows", "k") if operand == "a" else ("k", "columns")
    for step in range(1, rows if rows <= 16 else 0):
        name = f"{names[0]} rotated by {step}: place r holds r + {step} (mod {rows})"
        yield _taken(setting, operand, name, (row + step) % rows, column)
    for step in range(1, rows if 16 < rows <= 256 else 0):
        if step <= 16 or step % 8 == 0:
            name = f"{names[0]} rotated by {step}: place r holds r + {step} (mod {rows})"
            yield _taken(setting, operand, name, (row + step) % rows, column)
    for step in range(1, min(columns, 17)):
        name = f"{names[1]} rotated by {step}: place j holds j + {step} (mod {columns})"
        yield _taken(setting, operand, name, row, (column + step) % columns)


def _read_otherwise(setting: Setting, operand: str, row: Index, column: Index) -> Made:
    """Yield row strides of padded tiles, swizzles of 16-byte chunks, and k as accumulators hold it."""
    if operand == "b":
        row, column = column.T, row.T
    rows, columns = row.shape
    mine = "rows" if operand == "a" else "columns"

    def taken(name: str, outer: Index, along: Index) -> Mistake:
        places = (outer, along) if operand == "a" else (along.T, outer.T)
        return _taken(setting, operand, name, *places)

    for pad in (1, 2, 4, 8, 16):
        for stride in (columns + pad, columns - pad):
            flat = (row * stride + column) % (rows * columns)
            name = f"{mine} read with a stride of {stride} elements, written with {columns}"
            yield taken(name, flat // columns, flat % columns)
    chunk = max(1, 128 // max(setting.instruction.storage(operand).bits, 1))
    chunks = columns // chunk
    for shift in range(4):
        if chunks > 1:
            moved = (column // chunk ^ (row >> shift) % chunks) * chunk + column % chunk
            name = f"swizzle: 16-byte chunk c of {mine[:-1]} r is chunk c xor (r >> {shift}) % {chunks}"
            yield taken(name, row, moved)
    if columns % 16 == 0:
        pairs = column % 4 // 2 * 8 + column // 4 % 4 * 2 + column % 2 + column // 16 * 16
        name = "k in the order of accumulators (FlashAttention's P for 8-bit types)"
        yield taken(name, row, pairs)
        yield taken(f"{name}, undone", row, np.argsort(pairs[0])[column])


def _linear(setting: Setting, row: Index, column: Index) -> Made:
    """Yield C loaded as if lane l had elements 4 l to 4 l + 3."""
    grid = grid_of(setting, "c")
    layout = setting.instruction.in_registers("c").layout
    each = layout.row_index.size // grid.lanes
    columns = row.shape[1]
    flat = np.arange(layout.row_index.size)
    place = layout.inverse[flat // columns, flat % columns].reshape(-1)
    name = f"lane l holds elements {each} * l to {each} * l + {each - 1} (addressed as lane * {each})"
    advice = "a lane's elements are in rows g and g + 8, columns 2 t and 2 t + 1: use the layout of C"
    yield in_operand(name, "c", advice, Rearrangement(grid=grid, source=place))


def _taken(setting: Setting, operand: str, name: str, row: Index, column: Index) -> Mistake:
    """Return the mistake that takes every element from another position of the matrix."""
    layout = setting.instruction.in_registers(operand).layout
    source = layout.inverse[row, column][layout.row_index, layout.column_index].reshape(-1)
    advice = f"check the addresses from which {operand.upper()} is loaded"
    return in_operand(name, operand, advice, Rearrangement(grid=grid_of(setting, operand), source=source))


def _zeroed(setting: Setting, operand: str, zero: npt.NDArray[np.bool_]) -> Callable[[Words], Words]:
    form = setting.instruction

    def change(words: Words) -> Words:
        codes = codes_from(words, form, operand)
        return registers_of(np.where(zero, codes.dtype.type(0), codes), form, operand)

    return change


def _scaled(setting: Setting, operand: str) -> Made:
    """Yield values of A or C off by a power of two."""
    element = setting.instruction.format(operand)
    if not element.is_float or operand == "b":
        return
    what = "products" if operand == "a" else "C"
    for factor, text in _FACTORS.items():
        yield Mistake(
            name=f"{what} times {text}",
            advice=f"{what} enter with a factor of {text}: check scales, "
            + ("alpha and the ranges of A and B" if operand == "a" else "beta"),
            operands=(operand,),
            change=_times(setting.instruction, operand, factor),
        )


def _times(form: Instruction, operand: str, factor: float) -> Change:
    element = form.format(operand)

    def change(given: Any) -> Any:
        values = matrix_of(codes_from(given[operand], form, operand), element)
        with np.errstate(all="ignore"):
            scaled = np.asarray(values.astype(np.float64) * factor).astype(element.dtype)
        return {operand: registers_of(codes_of(scaled, element, operand), form, operand)}

    return change


_PARTS = (_registers, _lanes, _partly, _matrix, _scaled)


# --- tiles ---------------------------------------------------------------------------------------------


def other_tiles(setting: Setting) -> Made:
    """Yield an operand of every tile from another tile of the batch."""
    held = [*(name for name in "abc" if not setting.in_shared(name)), *("e" * setting.instruction.sparse)]
    for operand in held:
        for name, change in (
            ("of the next tile", lambda words: np.roll(words, -1, axis=-3)),
            ("of the previous tile", lambda words: np.roll(words, 1, axis=-3)),
            ("of the first tile in every tile", lambda words: np.repeat(words[:1], len(words), axis=0)),
        ):
            yield in_operand(name, operand, "check the index of the tile in its addresses", change)
    for operand in (name for name in "abc" if not setting.in_shared(name)):
        count = setting.instruction.held(operand).words
        for register in range(count if count <= 8 else 0):
            name = f"register {register} is stale: it holds that of the previous tile"
            yield in_operand(name, operand, f"load register {register} for every tile", _stale(register))


def _stale(register: int) -> Callable[[Words], Words]:
    def change(words: Words) -> Words:
        copy = words.copy()
        copy[..., register] = np.roll(words, 1, axis=-3)[..., register]
        return copy

    return change
