"""Expressions and functions of SystemVerilog for the places of elements; the expressions are also those of C.

A bit map: the place of a matrix element (a lane, a register, a bit) is made of the bits of its coordinates;
each coordinate bit goes to its own place bit. ``bit_map`` finds the mapping, and proves it for every
coordinate. In tensor memory an extent need not be a power of two: ``stepped`` writes the digits of a layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....isa.layouts.strides import Digit, Mode, Modes, placed

# --- functions ---------------------------------------------------------------------------------------


def function(name: str, arguments: tuple[str, ...], value: str) -> Iterator[str]:
    """Yield a function of integers."""
    listed = ", ".join(f"input int {argument}" for argument in arguments)
    yield f"  function automatic int {name}({listed});"
    yield f"    {name} = {value};"
    yield "  endfunction"


def reading(returned: str, name: str, inputs: str, arguments: tuple[str, ...], value: str) -> Iterator[str]:
    """Yield a function that extracts a value from ``inputs``, as all lanes' registers."""
    listed = "".join(f", input int {argument}" for argument in arguments)
    yield f"  function automatic {returned} {name}(input {inputs}{listed});"
    yield f"    {name} = {value};"
    yield "  endfunction"


# --- digits ------------------------------------------------------------------------------------------


def stepped(indices: Mapping[str, Modes], step: Callable[[Mode], int]) -> str:
    """Return an expression: the sum of what the digits of each index add, by ``step`` of their mode."""
    terms = [
        f"{_digit(digit, index)} * {added}" if added > 1 else _digit(digit, index)
        for index, modes in indices.items()
        for digit in placed(modes)
        if (added := step(digit.mode))
    ]
    return " + ".join(terms) or "0"


def _digit(digit: Digit, index: str) -> str:
    shifted = f"{index} / {digit.value}" if digit.value > 1 else index
    return shifted if digit.slowest else f"{shifted} % {digit.mode.extent}"


# --- bit maps ----------------------------------------------------------------------------------------


class Run(NamedTuple):
    """``bits`` consecutive bits of a coordinate, from bit ``source``, that go to bit ``goal`` and up."""

    name: str
    source: int
    goal: int
    bits: int

    def __str__(self) -> str:
        shifted = f"({self.name} >> {self.source})" if self.source else self.name
        masked = f"({shifted} & {(1 << self.bits) - 1})"
        return f"({masked} << {self.goal})" if self.goal else masked


def expression(values: npt.NDArray[Any], names: tuple[str, ...]) -> str:
    """Return an expression of C and SystemVerilog for ``values``, whose axes are
    coordinates of these names.
    """
    return " | ".join(str(run) for run in bit_map(values, names)) or "0"


def bit_map(values: npt.NDArray[Any], names: tuple[str, ...]) -> tuple[Run, ...]:
    """Return where the bits of the coordinates go in ``values``; AssertionError for any other function."""
    goals = {
        (name, bit): int(values[tuple(1 << bit if axis == item else 0 for item in range(values.ndim))])
        for axis, name in enumerate(names)
        for bit in range((values.shape[axis] - 1).bit_length())
    }
    _prove(values, names, goals)
    runs: list[Run] = []
    for (name, bit), goal in goals.items():
        if not goal:
            continue
        last, place = runs[-1] if runs else None, goal.bit_length() - 1
        if last and last.name == name and (last.source + last.bits, last.goal + last.bits) == (bit, place):
            runs[-1] = last._replace(bits=last.bits + 1)
        else:
            runs.append(Run(name, bit, place, 1))
    return tuple(runs)


def _prove(values: npt.NDArray[Any], names: tuple[str, ...], goals: Mapping[tuple[str, int], int]) -> None:
    """Raise AssertionError unless every value is the union of the goals of its coordinates' bits."""
    used = [goal for goal in goals.values() if goal]
    coordinates = dict(zip(names, np.indices(values.shape), strict=True))
    made = np.zeros(values.shape, np.int64)
    for (name, bit), goal in goals.items():
        made |= (coordinates[name] >> bit & 1) * goal
    single = all(goal & goal - 1 == 0 for goal in used) and len(set(used)) == len(used)
    if not single or not np.array_equal(made, values):
        raise AssertionError(f"no bit map of {', '.join(names)}")
