"""One ``mma`` of every warp that executes it: all as a batch, or each by itself to say whose error it is.

Knows warps and inputs; does not know registers by name, or what an engine computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import NotModelled, UndefinedBehavior, WarpsimError, located
from ..isa.instruction import Inputs, Instruction
from ..isa.warps import WARP
from ..machine.bind.register_arrays import bits_dtype
from ..ptx.binding import Bound
from ..ptx.statements import InstructionStatement
from ..recording.events import Event

Multiply = Callable[[Instruction, Inputs], npt.NDArray[Any]]


def computed(
    multiply: Multiply,
    statement: InstructionStatement,
    bound: Bound,
    inputs: Inputs,
    *,
    warps: tuple[int, ...],
    lanes: int,
) -> Event:
    """What those warps of a machine of so many lanes compute; raises what ``multiply`` does, and where."""
    form = bound.instruction
    d = _together(multiply, form, inputs, warps, lanes)
    if d is not None:
        return Event(statement=statement, bound=bound, inputs=inputs, d=d, warps=warps)
    d = np.zeros((lanes, form.registers["d"]), bits_dtype(form.register_bits))
    event = Event(statement=statement, bound=bound, inputs=inputs, d=d, warps=warps)
    # Only metadata can be undefined or not modelled where every register has been written.
    place = partial(statement.operand_location, bound.places.get("e", 0))
    for first, part, result in event.executions():
        with _of_warp(first // WARP, lanes), located(place, (UndefinedBehavior, NotModelled)):
            result[:] = multiply(form, part)
    return event


def _together(
    multiply: Multiply, form: Instruction, inputs: Inputs, warps: tuple[int, ...], lanes: int
) -> npt.NDArray[Any] | None:
    """D of all warps, a batch of as many cases; None where one of them is in error."""
    every, batch = len(warps) * WARP == lanes, inputs
    if lanes > WARP:
        registers = {}
        for name, array in inputs.registers.items():
            cases = array.reshape(-1, WARP, array.shape[-1])
            registers[name] = cases if every else cases[list(warps)]
        batch = replace(inputs, registers=registers)
    try:
        products = multiply(form, batch)
    except WarpsimError:
        return None
    if every:
        return products.reshape(lanes, -1)
    d = np.zeros((lanes // WARP, *products.shape[1:]), products.dtype)
    d[list(warps)] = products
    return d.reshape(lanes, -1)


@contextmanager
def _of_warp(warp: int, lanes: int) -> Iterator[None]:
    """A block whose errors say which warp they are about, where there are several."""
    try:
        yield
    except WarpsimError as error:
        if lanes > WARP:
            error.message = f"warp {warp}: {error.message}"
        raise
