"""Layouts in CuTe's notation, ``(T32,V4) -> (M16,N8)`` with shape:stride, derived from the layouts.

Shape and stride are found by looking at the layout and then evaluated against it at every point; a
layout that has no such form is our bug. As in CuTe's MMA traits, an element's number counts down the
columns first: m + M*k in A, n + N*k in B, m + M*n in C and D, row + M*chunk in the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...isa.instruction import Instruction
from ...isa.places import Place, places

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One mode of a layout: extents and strides, fastest first."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def offsets(self) -> Indices:
        """The number that each coordinate of the mode adds."""
        total = np.zeros(1, np.intp)
        for extent, stride in zip(self.shape, self.stride, strict=True):
            total = (total + stride * np.arange(extent)[:, None]).reshape(-1)
        return total


@dataclass(frozen=True, kw_only=True)
class CuteLayout:
    """A fragment as CuTe writes it: threads and values to elements.

    ``lanes`` is the mode from threads to lanes where these are not 0, 1, 2 …, counted from
    ``first_lane``.
    """

    operand: str
    domain: str
    codomain: str
    thread: Mode
    value: Mode
    lanes: Mode | None = None
    first_lane: int = 0

    def __str__(self) -> str:
        shape = f"({_nested(self.thread.shape)},{_nested(self.value.shape)})"
        stride = f"({_nested(self.thread.stride)},{_nested(self.value.stride)})"
        text = f"{self.domain} -> {self.codomain}  {shape}:{stride}"
        if self.lanes is None:
            return text
        first = f" + {self.first_lane}" if self.first_lane else ""
        return f"{text}  lane = {_nested(self.lanes.shape)}:{_nested(self.lanes.stride)}{first}"

    def elements(self) -> Indices:
        """``(threads, values)``: the number of the element that each value of each thread is."""
        return self.thread.offsets()[:, None] + self.value.offsets()


def _nested(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"({','.join(map(str, numbers))})"


def cute_layouts(instruction: Instruction, operand: str, selector: int = 0) -> tuple[CuteLayout, ...]:
    """The layout of a, b, c, d or e; of m8n8k4 f16 one for each of the four products.

    Raises what places raises.
    """
    held = places(instruction, operand, selector)
    products = sorted({place.product for place in held})
    return tuple(
        _layout(instruction, operand, [place for place in held if place.product == product])
        for product in products
    )


def _layout(instruction: Instruction, operand: str, held: Sequence[Place]) -> CuteLayout:
    lanes = sorted({place.lane for place in held})
    ordered = sorted(held, key=lambda place: (place.lane, place.index))
    number = np.array([_number(instruction, place) for place in ordered], np.intp).reshape(len(lanes), -1)
    lane_mode = None if lanes == list(range(len(lanes))) else _mode(np.array(lanes) - lanes[0])
    layout = CuteLayout(
        operand=operand,
        domain=f"(T{number.shape[0]},V{number.shape[1]})",
        codomain=_codomain(instruction, operand),
        thread=_mode(number[:, 0]),
        value=_mode(number[0]),
        lanes=lane_mode,
        first_lane=lanes[0],
    )
    if not np.array_equal(layout.elements(), number):
        raise AssertionError(f"{operand} of {instruction} is not {layout}")
    return layout


def _number(instruction: Instruction, place: Place) -> int:
    """The element's number, down the columns first; B is n x k."""
    if place.operand == "b":
        return place.column + instruction.shape.n * place.row
    return place.row + instruction.shape.m * place.column


def _codomain(instruction: Instruction, operand: str) -> str:
    m, n, k = instruction.shape.m, instruction.shape.n, instruction.stored_k
    chunks = instruction.shape.k // instruction.pattern.chunk if instruction.pattern else 0
    return {
        "a": f"(M{m},K{k})",
        "b": f"(N{n},K{instruction.shape.k})",
        "e": f"(M{m},C{chunks})",
    }.get(operand, f"(M{m},N{n})")


def _mode(numbers: Indices) -> Mode:
    """Extents and strides of ``numbers``, which start at 0 up to a constant: as few as will do."""
    shape: list[int] = []
    stride: list[int] = []
    rest = numbers - numbers[0]
    while len(rest) > 1:
        step = int(rest[1])
        straight = int(np.argmin(np.append(rest == step * np.arange(len(rest)), False)))
        extent = max(size for size in range(2, straight + 1) if len(rest) % size == 0)
        shape.append(extent)
        stride.append(step)
        rest = rest[::extent]
    return Mode(shape=tuple(shape) or (1,), stride=tuple(stride) or (0,))
