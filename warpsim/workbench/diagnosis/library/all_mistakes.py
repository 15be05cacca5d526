"""The mistakes that a setting can suffer from: every row of the tables that applies, ready to use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ....isa.formats import Format
from .arithmetic_mistakes import Arithmetic, alternatives
from .descriptor_mistakes import Misreading
from .grids import Rearrangement, Setting, grid_of
from .mistake import SPELLED, Change, Mistake
from .rearrangements import ROWS, Row
from .tile_mistakes import TILE_ROWS, codes_at, misread
from .value_mistakes import value_mistakes


@lru_cache(maxsize=16)
def mistakes(setting: Setting) -> tuple[Mistake, ...]:
    """Return every mistake that applies to a setting, in the order of reporting."""
    values = tuple(value_mistakes(setting))
    return (
        *_descriptor_mistakes(setting),
        *(mistake for mistake in values if mistake.operands == ("e",)),  # nearer to a cause than a place is
        *_rearrangements(setting),
        *(mistake for mistake in values if mistake.operands != ("e",)),
        *_arithmetic_mistakes(setting),
    )


# --- rearrangements ------------------------------------------------------------------------------------


def _rearrangements(setting: Setting) -> tuple[Mistake, ...]:
    """Return rows that apply; rows that move the same slots are one mistake with the first name."""
    found: dict[tuple[str, bytes], Mistake] = {}
    for row, operand in _applicable(setting):
        parts = [_bound(row, setting, name) for name in _parts(operand)]
        if any(part.is_identity for part in parts):
            continue
        mistake = _mistake(row, operand, parts)
        key = operand, b"".join(part.source.tobytes() for part in parts)
        known = found.get(key)
        found[key] = _merged(known, mistake) if known else mistake
    return tuple(found.values())


def _merged(known: Mistake, other: Mistake) -> Mistake:
    """Return the first of two mistakes of the same effect, which names the other."""
    halves = known.exchanges_row_halves or other.exchanges_row_halves
    return replace(known, also=(*known.also, other.name), exchanges_row_halves=halves)


def _parts(operand: str) -> tuple[str, ...]:
    return ("c", "d") if operand == "cd" else (operand,)


def _applicable(setting: Setting) -> Iterator[tuple[Row, str]]:
    """Yield rows with each operand of theirs that the instruction has and that the predicate lets pass."""
    shared = {name for name in "ab" if setting.in_shared(name)}
    registers = set(setting.instruction.registers) - shared
    for rows, given in ((ROWS, registers), (TILE_ROWS, shared)):
        for row in rows:
            for operand in row.operands:
                parts = _parts(operand)
                if all(part in given and row.applies(grid_of(setting, part)) for part in parts):
                    yield row, operand


def _bound(row: Row, setting: Setting, operand: str) -> Rearrangement:
    grid = grid_of(setting, operand)
    return Rearrangement(grid=grid, source=grid.source(*row.formula(grid, *grid.places)))


def _mistake(row: Row, operand: str, parts: list[Rearrangement]) -> Mistake:
    spelled = SPELLED.get(operand, operand.upper())
    read: Rearrangement | None = None
    if operand == "d":
        read = parts[0]
    elif operand == "cd":
        read = parts[1].inverse  # D is stored as C was loaded
    return Mistake(
        name=row.name.format(operand=spelled),
        advice=row.advice.format(operand=spelled),
        operands=_parts(operand),
        change=None if operand == "d" else _change(parts[0]),
        mend=_mend(row, operand, parts[0]),
        read=read,
        undo=read.inverse if read else None,
        exchanges_row_halves=row.exchanges_row_halves,
    )


def _mend(row: Row, operand: str, part: Rearrangement) -> Change | None:
    """Return what mends a mistake: the same change for another selector, the inverse for any other."""
    back = part if row.chooses else part.inverse
    return None if operand == "d" or back is None else _change(back)


def _change(part: Rearrangement) -> Change:
    operand = part.grid.operand
    return lambda registers: {operand: part(registers[operand])}


# --- descriptors ---------------------------------------------------------------------------------------


def _descriptor_mistakes(setting: Setting) -> Iterator[Mistake]:
    """Yield tiles in shared memory read through a descriptor that is wrong."""
    for operand in "ab":
        if setting.in_shared(operand):
            for reading, element in misread(setting, operand):
                first, *others = (f"{operand.upper()} descriptor: {phrase}" for phrase in reading.mistakes)
                yield Mistake(
                    name=first,
                    also=tuple(others),
                    advice=f"the result is that of reading {operand.upper()} by {reading.how}",
                    operands=(operand,),
                    change=_read_again(operand, reading, element),
                )


def _read_again(operand: str, reading: Misreading, element: Format) -> Change:
    return lambda given: {operand: codes_at(reading.addresses, element, given["shared"])}


# --- arithmetic ----------------------------------------------------------------------------------------


def _arithmetic_mistakes(setting: Setting) -> Iterator[Mistake]:
    """Yield other arithmetics; none where the target is not chosen, which only lint allows."""
    if setting.instruction.target is None:
        return
    for name, advice, arithmetic in alternatives(Arithmetic(instruction=setting.instruction)):
        yield Mistake(name=name, advice=advice, operands=(), arithmetic=arithmetic)
