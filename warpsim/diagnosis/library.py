"""The mistakes that a setting can suffer from: every row of the tables that applies, ready to use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..instruction import Instruction
from ..registers import Words
from .arithmetic import Arithmetic, alternatives, value_sum
from .grids import Rearrangement, Registers, Setting, grid_of
from .tables import ROWS, Row

Change = Callable[[Registers], Registers]  # registers -> those that change
Reading = Callable[[Words], Words]  # D as the instruction wrote it -> D as it was read, or back


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One mistake: its name, what to change, and what it does.

    ``change`` alters what the instruction reads; ``read`` makes of D as written what was read, and
    ``undo`` is its inverse; ``arithmetic`` is what is computed instead. ``operands`` are those that it
    touches. ``also`` names other rows with the same effect on this form.
    """

    name: str
    advice: str
    operands: tuple[str, ...]
    change: Change | None = None
    read: Reading | None = None
    undo: Reading | None = None
    arithmetic: Arithmetic | None = None
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=64)
def mistakes(setting: Setting) -> tuple[Mistake, ...]:
    """Every mistake that applies to a setting, in the order of reporting."""
    return (*_rearrangements(setting), *_value_mistakes(setting), *_arithmetic_mistakes(setting))


# --- rearrangements ------------------------------------------------------------------------------------


def _rearrangements(setting: Setting) -> tuple[Mistake, ...]:
    """Rows that apply; those that move the same slots are one mistake, known by its first name."""
    found: dict[tuple[str, bytes], Mistake] = {}
    for row, operand in _applicable(setting):
        parts = [_bound(row, setting, name) for name in _parts(operand)]
        if any(part.is_identity for part in parts):
            continue
        mistake = _mistake(row, operand, parts)
        key = operand, b"".join(part.source.tobytes() for part in parts)
        known = found.get(key)
        found[key] = replace(known, also=(*known.also, mistake.name)) if known else mistake
    return tuple(found.values())


def _parts(operand: str) -> tuple[str, ...]:
    return ("c", "d") if operand == "cd" else (operand,)


def _applicable(setting: Setting) -> Iterator[tuple[Row, str]]:
    """Rows with each operand of theirs that the instruction has and that the predicate lets pass."""
    registers = setting.instruction.registers
    for row in ROWS:
        for operand in row.operands:
            parts = _parts(operand)
            if all(part in registers and row.applies(grid_of(setting, part)) for part in parts):
                yield row, operand


def _bound(row: Row, setting: Setting, operand: str) -> Rearrangement:
    grid = grid_of(setting, operand)
    return Rearrangement(grid=grid, source=grid.source(*row.formula(grid, *grid.places)))


_SPELLED = {"cd": "C and D", "e": "metadata", "scale_a": "scales of A", "scale_b": "scales of B"}


def _mistake(row: Row, operand: str, parts: list[Rearrangement]) -> Mistake:
    spelled = _SPELLED.get(operand, operand.upper())
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
        read=read,
        undo=read.inverse if read else None,
    )


def _change(part: Rearrangement) -> Change:
    operand = part.grid.operand
    return lambda registers: {operand: part(registers[operand])}


# --- values --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ValueRow:
    """A mistake that changes values; the change is made for an instruction."""

    name: str
    advice: str
    operands: tuple[str, ...]
    applies: Callable[[Instruction], bool]
    change: Callable[[Instruction], Change]


def _value_mistakes(setting: Setting) -> Iterator[Mistake]:
    instruction = setting.instruction
    for row in _VALUE_ROWS:
        if row.applies(instruction):
            yield Mistake(
                name=row.name, advice=row.advice, operands=row.operands, change=row.change(instruction)
            )


def _zeroed(operand: str, axis: int, upper: bool) -> Callable[[Instruction], Change]:
    """The upper or lower half of the operand's rows (axis 0) or columns (axis 1) set to zero."""

    def build(instruction: Instruction) -> Change:
        layout = instruction.family.fragment(instruction, operand)
        size = instruction.matrix_shape(operand)[axis]
        index = (layout.row_index, layout.column_index)[axis] % size
        registers = index.reshape(layout.lanes, instruction.registers[operand], -1)
        keep = (registers[..., 0] >= size // 2) != upper
        return lambda given: {operand: given[operand] * keep.astype(given[operand].dtype)}

    return build


def _rounded_tf32(operands: str, to_even: bool) -> Callable[[Instruction], Change]:
    """f32 rounded to tf32: to nearest, ties away from zero (cvt.rna) or to even (cvt.rn)."""

    def rounded(words: Words) -> Words:
        half = np.uint32(0xFFF) + (words >> np.uint32(13) & np.uint32(1)) if to_even else np.uint32(0x1000)
        finite = words & np.uint32(0x7F800000) != np.uint32(0x7F800000)
        return np.where(finite, words + half & np.uint32(0xFFFFE000), words)

    return lambda _: lambda given: {name: rounded(given[name]) for name in operands}


def _exchanged(first: str, second: str) -> Callable[[Instruction], Change]:
    return lambda _: lambda given: {first: given[second], second: given[first]}


def _filled(operand: str) -> Callable[[Instruction], Change]:
    """Every scale one."""

    def build(instruction: Instruction) -> Change:
        assert instruction.scale is not None
        one = np.uint32((instruction.scale.bias << instruction.scale.fraction_bits) * 0x01010101)
        return lambda given: {operand: np.full_like(given[operand], one)}

    return build


def _has_container(operand: str) -> Callable[[Instruction], bool]:
    """Whether elements do not sit in the lowest bits of their bytes: e2m1 under f8f6f4 kinds."""
    return lambda instruction: instruction.storage(operand).shift > 0


def _shifted(operand: str, step: int) -> Callable[[Instruction], Change]:
    """Four bits of every byte shifted up or down."""

    def moved(words: Words) -> Words:
        if step > 0:
            return (words & np.uint32(0x0F0F0F0F)) << np.uint32(step)
        return (words & np.uint32(0x3C3C3C3C)) >> np.uint32(-step)

    return lambda _: lambda given: {operand: moved(given[operand])}


def _doubled(instruction: Instruction) -> Change:
    return lambda given: {"c": value_sum(given["c"], instruction.c)}


def _is_tf32(instruction: Instruction) -> bool:
    return instruction.a.ignored_bits > 0


def _is_scaled(instruction: Instruction) -> bool:
    return instruction.scale is not None


def _equal_fragments(instruction: Instruction) -> bool:
    return instruction.registers["a"] == instruction.registers["b"]


_TRUNCATED = (
    "the multiplier drops the low 13 bits of each register: round f32 to tf32 with cvt.rna (or cvt.rn) "
    "before packing {operands}"
)

_VALUE_ROWS = (
    ValueRow(
        name="accumulator not added",
        advice="the result has no C in it: pass C as the accumulator, or do not clear it",
        operands=("c",),
        applies=lambda instruction: True,
        change=lambda _: lambda given: {"c": np.zeros_like(given["c"])},
    ),
    ValueRow(
        name="accumulator added twice",
        advice="the result has C in it twice: load the accumulator once",
        operands=("c",),
        applies=lambda instruction: True,
        change=_doubled,
    ),
    *(
        ValueRow(
            name=f"{operand.upper()}: {half} half of k is zero",
            advice=f"the {half} half of k of {operand.upper()} does not arrive: k is cut short, or half of "
            "the registers is not loaded",
            operands=(operand,),
            applies=lambda instruction: True,
            change=_zeroed(operand, axis, upper=half == "second"),
        )
        for operand, axis in (("a", 1), ("b", 0))
        for half in ("second", "first")
    ),
    *(
        ValueRow(
            name=f"A: {rows} are zero",
            advice=f"A's {rows} do not arrive: load their registers",
            operands=("a",),
            applies=lambda instruction: instruction.shape.m == 16,
            change=_zeroed("a", 0, upper=upper),
        )
        for rows, upper in (("rows 8-15", True), ("rows 0-7", False))
    ),
    *(
        ValueRow(
            name=f"{' and '.join(operands.upper())}: f32 not rounded to tf32 ({how})",
            advice=_TRUNCATED.format(operands=" and ".join(operands.upper())),
            operands=tuple(operands),
            applies=_is_tf32,
            change=_rounded_tf32(operands, to_even=how == "cvt.rn"),
        )
        for operands in ("ab", "a", "b")
        for how in ("cvt.rna", "cvt.rn")
    ),
    *(
        ValueRow(
            name=f"{operand.upper()}: e2m1 in bits {place} of its byte",
            advice=f"e2m1 of {operand.upper()} belongs in bits 5..2 of its byte: shift the words left by 2",
            operands=(operand,),
            applies=_has_container(operand),
            change=_shifted(operand, step),
        )
        for operand in "ab"
        for place, step in (("3..0", -2), ("5..2, dumped in bits 3..0", 2))
    ),
    ValueRow(
        name="A and B registers exchanged",
        advice="exchange the registers of A and B",
        operands=("a", "b"),
        applies=_equal_fragments,
        change=_exchanged("a", "b"),
    ),
    ValueRow(
        name="scales of A and B exchanged",
        advice="exchange the registers of the scales of A and B",
        operands=("scale_a", "scale_b"),
        applies=_is_scaled,
        change=_exchanged("scale_a", "scale_b"),
    ),
    *(
        ValueRow(
            name=f"scales of {operand[-1].upper()} ignored",
            advice=f"the scales of {operand[-1].upper()} act as 1.0: check that their register is loaded",
            operands=(operand,),
            applies=_is_scaled,
            change=_filled(operand),
        )
        for operand in ("scale_a", "scale_b")
    ),
)


# --- arithmetic ----------------------------------------------------------------------------------------


def _arithmetic_mistakes(setting: Setting) -> Iterator[Mistake]:
    for name, advice, arithmetic in alternatives(Arithmetic(instruction=setting.instruction)):
        yield Mistake(name=name, advice=advice, operands=(), arithmetic=arithmetic)


def composed(first: Mistake, second: Mistake) -> Arithmetic | None:
    """Both wrong arithmetics at once: the second's change made to the first's; None if it has none."""
    assert first.arithmetic is not None
    by_name = {name: arithmetic for name, _, arithmetic in alternatives(first.arithmetic)}
    return by_name.get(second.name)
