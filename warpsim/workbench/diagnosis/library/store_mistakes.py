"""What may go wrong when D is stored: places are zero, or hold the elements of others.

Such mistakes leave the product right, so that a trial computes nothing. Those that can be
undone, and combined with others, are in the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.fragments import codes_from, registers_of
from ....isa.registers import Words
from .all_mistakes import mistakes
from .grids import Index, Rearrangement, Setting, grid_of
from .mistake import Mistake, Reading

LANE_SETS: tuple[tuple[str, Callable[[Index], npt.NDArray[np.bool_]]], ...] = (
    ("lanes 0-15", lambda lane: lane % 32 < 16),
    ("lanes 16-31", lambda lane: lane % 32 >= 16),
    ("odd lanes", lambda lane: lane % 2 == 1),
    ("even lanes", lambda lane: lane % 2 == 0),
)
_MOST = 16  # registers of D, up to which each is tried
Made = Iterator[Mistake]


@lru_cache(maxsize=16)
def stored_mistakes(setting: Setting) -> tuple[Mistake, ...]:
    """Return every mistake of this kind that a setting can have."""
    if setting.instruction.products > 1:
        return ()
    return tuple(mistake for part in _PARTS for mistake in part(setting))


def _made(name: str, advice: str, read: Reading) -> Mistake:
    return Mistake(name=f"D: {name}", advice=advice, operands=("d",), read=read)


def _lanes(setting: Setting) -> Made:
    """Yield lanes and warps that did not store, or stored what others should."""
    lane = np.arange(setting.instruction.lanes)
    advice = "these lanes do not store: check their condition"
    for text, chosen in LANE_SETS:
        yield _made(f"{text} are zero", advice, _where(~chosen(lane)))
    for at in range(32):
        yield _made(f"lane {at}{_of_warps(lane)} is zero", advice, _where(lane % 32 != at))
        for by in (1, -1, 4, -4):
            if 0 <= at + by < 32:
                name = f"lane {at}{_of_warps(lane)} holds lane {at + by}'s elements"
                source = np.where(lane % 32 == at, lane + by, lane)
                yield _made(name, "check the address of this lane", lambda d, s=source: d[..., s, :])  # type: ignore[misc]
    for warp in range(len(lane) // 32 if len(lane) > 32 else 0):
        yield _made(f"warp {warp} is zero", "this warp does not store", _where(lane // 32 != warp))


def _of_warps(lane: Index) -> str:
    return " of every warp" if len(lane) > 32 else ""


def _where(kept: npt.NDArray[np.bool_]) -> Reading:
    return lambda d: d * kept[:, None].astype(d.dtype)


def _registers(setting: Setting) -> Made:
    """Yield registers that are not stored, or stored in another's place."""
    count = setting.instruction.held("d").words
    halves = [(np.arange(count) + count // 2) % count] if count % 2 == 0 else []
    for register in range(count if count <= _MOST else 0):
        keep = np.arange(count) != register
        advice = f"store register {register}"
        yield _made(f"register {register} is zero", advice, lambda d, k=keep: d * k.astype(d.dtype))  # type: ignore[misc]
        for other in range(count):
            source = np.where(keep, np.arange(count), other)
            if other != register:
                name = f"register {register} holds register {other}'s elements"
                yield _made(name, f"{advice}: it is stored twice", lambda d, s=source: d[..., s])  # type: ignore[misc]
    for order in halves:
        upper = np.maximum(order, np.arange(count))
        lower = np.minimum(order, np.arange(count))
        rows = "rows 0-7 hold rows 8-15 (row r has what belongs in row r | 8)", "rows 8-15 hold rows 0-7"
        if count == 4:
            advice = "registers 0, 1 are row g, registers 2, 3 row g + 8"
            for name, source in zip(rows, (upper, lower), strict=True):
                yield _made(f"{name}", advice, lambda d, s=source: d[..., s])  # type: ignore[misc]


def _partly(setting: Setting) -> Made:
    """Yield rearrangements of the tables on some lanes only."""
    lane = np.arange(setting.instruction.lanes)
    for known in mistakes(setting):
        if known.operands != ("d",) or known.read is None:
            continue
        for text, chosen in LANE_SETS:
            yield Mistake(
                name=f"{known.name} on {text} only",
                advice=f"{known.advice}; the other lanes are right",
                operands=("d",),
                read=_on_lanes(known.read, chosen(lane)),
            )
    count = setting.instruction.held("d").words
    swapped = np.arange(count) ^ 1
    for text, chosen in LANE_SETS if count % 2 == 0 else ():
        read = _on_lanes(lambda d: d[..., swapped], chosen(lane))
        yield _made(f"columns 2 t and 2 t + 1 exchanged on {text} only", "store a pair as it comes", read)


def _on_lanes(read: Reading, where: npt.NDArray[np.bool_]) -> Reading:
    return lambda d: np.where(where[:, None], read(d), d)


def _matrix(setting: Setting) -> Made:
    """Yield rows and columns that are zero or rotated; fragments stored in the order of lanes."""
    form = setting.instruction
    rows, columns = form.matrix_shape("d")
    row, column = np.indices((rows, columns))
    for axis, size, mine in (("row", rows, row), ("column", columns, column)):
        for line in range(size if size <= _MOST else 0):
            read = _cleared(setting, mine == line)
            yield _made(f"{axis} {line} is zero", f"{axis} {line} is not stored", read)
        for by in range(1, size if size <= _MOST else 0):
            moved = (mine + by) % size
            picked = (moved, column) if axis == "row" else (row, moved)
            name = f"{axis}s rotated by {by}: place r holds r + {by} (mod {size})"
            yield _made(name, "check the addresses to which D is stored", _taken(setting, *picked))
    layout = form.in_registers("d").layout
    each = layout.row_index.size // form.lanes
    place = np.empty((rows, columns), np.intp)
    place[layout.row_index.reshape(-1), layout.column_index.reshape(-1)] = np.arange(rows * columns)
    flat = row * columns + column
    linear = layout.row_index.reshape(-1)[flat], layout.column_index.reshape(-1)[flat]
    name = f"stored as lane * {each}: lane l had elements {each} * l to {each} * l + {each - 1}"
    advice = "lanes hold elements of several rows: store each register at its own row and column"
    yield _made(name, advice, _taken(setting, *linear))


def _cleared(setting: Setting, where: npt.NDArray[np.bool_]) -> Reading:
    form = setting.instruction

    def read(d: Words) -> Words:
        codes = codes_from(d, form, "d")
        return registers_of(np.where(where, codes.dtype.type(0), codes), form, "d")

    return read


def _taken(setting: Setting, row: Any, column: Any) -> Rearrangement:
    """Return the mistake that takes every element of D from another."""
    layout = setting.instruction.in_registers("d").layout
    source = layout.inverse[row, column][layout.row_index, layout.column_index].reshape(-1)
    return Rearrangement(grid=grid_of(setting, "d"), source=source)


_PARTS = (_lanes, _registers, _matrix, _partly)
