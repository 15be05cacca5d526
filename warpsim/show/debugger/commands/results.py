"""What a launch has left at its end: findings, and arrays against those that are expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ....machine.state.spaces import DEVICE_BASE
from ....observe.stops.values import number
from ....programs.launch.array_agreement import Agreement, agreement

if TYPE_CHECKING:
    from ....workbench.debugger.travel import Travel


def result_lines(session: Travel) -> Iterator[str]:
    """Yield what is known at the end of a launch."""
    yield f"the launch has ended, time {session.time}"
    for finding in session.findings:
        yield f"  {finding.severity}: {finding.message} ({finding.location.short})"
    for index in session.expected:
        yield from _compared(session, index)


def differs(session: Travel) -> bool:
    """Return whether an array is not as expected."""
    found = [_agreement(session, index) for index in session.expected]
    return any(each is None or each.different for each in found)


def _agreement(session: Travel, index: int) -> Agreement | None:
    """Compare an array with what is expected; None where sizes or types differ."""
    given, expected = array_of(session, index), session.expected[index]
    if given is None or given.dtype.itemsize != expected.dtype.itemsize or given.size != expected.size:
        return None
    return agreement(given, expected.reshape(given.shape), session.given.tolerance)


def _compared(session: Travel, index: int) -> Iterator[str]:
    found, wanted = _agreement(session, index), session.expected[index]
    if found is None:
        yield f"  argument {index} is not an array of {wanted.size} elements of {wanted.dtype}"
        return
    yield f"  argument {index}: {found}"
    if found.first is not None:
        where = ",".join(map(str, found.first))
        given, expected = number(found.given[found.first]), number(found.expected[found.first])
        yield f"    first: arg{index}[{where}] is {given}, expected {expected}"


def array_of(session: Travel, index: int) -> Any:
    """Return what the array of an argument holds now; None where there is none."""
    execution, shape = session.execution, session.shapes.get(index)
    if execution is None or execution.launch is None or shape is None:
        return None
    extents, dtype = shape
    address = session.argument_address(index)
    if address is None:
        return None
    count = int(np.prod(extents, dtype=np.int64)) * dtype.itemsize
    data = execution.launch.device.memory.data
    content = data[address - DEVICE_BASE : address - DEVICE_BASE + count]
    return content.copy().view(dtype).reshape(extents) if content.size == count else None
