"""Layouts in CuTe's notation, ``(T32,V4) -> (M16,N8)`` with shape:stride, from the modes of isa/layouts.

As in CuTe's MMA traits, an element's number counts down the columns first: m + M*k in A, n + N*k in B,
m + M*n in C and D, row + M*chunk in the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ....isa.fragments import check_selector, metadata_layout
from ....isa.instruction import Instruction
from ....isa.layouts.field_layout import BIT, LANE
from ....isa.layouts.fragment_layout import separated
from ....isa.layouts.strides import Mode, Modes, extent, joined, placed
from ....isa.operand_places.places import check_operand
from .cells import cell_layout

_ALL = (Mode(1, (0,)),)  # the mode of a single thread or value


@dataclass(frozen=True, kw_only=True)
class CuteLayout:
    """A fragment as CuTe writes it: threads and values to elements.

    ``lanes`` is the mode from threads to lanes where these are not 0, 1, 2 …, counted from
    ``first_lane``.
    """

    operand: str
    domain: str
    codomain: str
    thread: Modes
    value: Modes
    lanes: Modes | None = None
    first_lane: int = 0

    def __str__(self) -> str:
        (threads, thread_strides), (values, value_strides) = _text(self.thread), _text(self.value)
        text = f"{self.domain} -> {self.codomain}  ({threads},{values}):({thread_strides},{value_strides})"
        if self.lanes is None:
            return text
        first = f" + {self.first_lane}" if self.first_lane else ""
        return f"{text}  lane = {':'.join(_text(self.lanes))}{first}"


def _text(modes: Modes) -> tuple[str, str]:
    """Return shape and stride of modes of one coordinate."""
    return _nested([mode.extent for mode in modes]), _nested([mode.along(0) for mode in modes])


def _nested(numbers: list[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"({','.join(map(str, numbers))})"


def cute_texts(instruction: Instruction, operand: str, selector: int = 0) -> list[str]:
    """Return the layouts of an operand as text, of tensor memory its addresses; raises as cute_layouts
    does.
    """
    if instruction.descriptor is not None:
        return [str(cell_layout(instruction, operand))]
    return [str(layout) for layout in cute_layouts(instruction, operand, selector)]


def cute_layouts(instruction: Instruction, operand: str, selector: int = 0) -> tuple[CuteLayout, ...]:
    """Return the layout of a, b, c, d or e; of m8n8k4 f16 a layout of each of the four products.

    Raises OperandError for an operand that does not lie in registers, UndefinedBehavior for a selector.
    """
    check_operand(instruction, operand)
    if operand == "e":
        check_selector(instruction, selector)
        return (_metadata(instruction, selector),)
    return tuple(_fragment(instruction, operand))


class _Digit(NamedTuple):
    """A digit of threads or values: its extent, and its steps through elements and lanes or bits."""

    extent: int
    element: int
    place: int


def _fragment(instruction: Instruction, operand: str) -> Iterator[CuteLayout]:
    """Yield the layout of every product, whose lanes are those that differ in no digit of the product."""
    layout = instruction.in_registers(operand).layout
    rows, columns = instruction.matrix_shape(operand)
    of_row, of_column = (columns, 1) if operand == "b" else (1, rows)
    threads, first = [], 0
    for lane in placed(separated(layout, layout.lane_modes)):
        product, row, column = lane.mode.steps
        if product:
            first = lane.value
        else:
            threads.append(_Digit(lane.mode.extent, of_row * row + of_column * column, lane.value))
    values = [
        _Digit(digit.mode.extent, of_row * digit.mode.steps[1] + of_column * digit.mode.steps[2], digit.value)
        for digit in placed(separated(layout, layout.value_modes))
    ]
    for product in range(layout.products):
        yield _cute(instruction, operand, threads, values, first * product)


def _metadata(instruction: Instruction, selector: int) -> CuteLayout:
    """Return the inverse of the map from rows and chunks: each digit moves along lanes or along bits."""
    layout = metadata_layout(instruction, selector)
    steps = {"row": 1, "chunk": layout.shape[0]}
    digits = [
        (coordinate, _Digit(digit.mode.extent, digit.value * steps[name], digit.mode.along(coordinate)))
        for name, modes in layout.inputs
        for digit in placed(modes)
        for coordinate in (LANE, BIT)
        if digit.mode.along(coordinate)
    ]
    threads, values = (
        sorted((digit for to, digit in digits if to == coordinate), key=lambda digit: digit.place)
        for coordinate in (LANE, BIT)
    )
    return _cute(instruction, "e", threads, values, layout.first_lane)


def _cute(
    instruction: Instruction, operand: str, threads: list[_Digit], values: list[_Digit], first: int
) -> CuteLayout:
    lanes = joined(Mode(digit.extent, (digit.place,)) for digit in threads)
    thread, value = (
        joined(Mode(digit.extent, (digit.element,)) for digit in digits) or _ALL
        for digits in (threads, values)
    )
    whole = len(lanes) == 1 and lanes[0].along(0) == 1 and not first
    return CuteLayout(
        operand=operand,
        domain=f"(T{extent(thread)},V{extent(value)})",
        codomain=_codomain(instruction, operand),
        thread=thread,
        value=value,
        lanes=None if whole else lanes,
        first_lane=first,
    )


def _codomain(instruction: Instruction, operand: str) -> str:
    m, n, k = instruction.shape.m, instruction.shape.n, instruction.stored_k
    chunks = instruction.shape.k // instruction.pattern.chunk if instruction.pattern else 0
    return {
        "a": f"(M{m},K{k})",
        "b": f"(N{n},K{instruction.shape.k})",
        "e": f"(M{m},C{chunks})",
    }.get(operand, f"(M{m},N{n})")
