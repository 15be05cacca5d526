"""What a launch has left at its end: findings, and arrays against those that are expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ....machine.state.spaces import DEVICE_BASE
from ....workbench.debugger.words_shown import number

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
    return any(
        given is None or bool(wrong.any())
        for given, _, wrong in (_wrong(session, index) for index in session.expected)
    )


def _wrong(session: Travel, index: int) -> tuple[Any, Any, Any]:
    """Return an array, what is expected, and where they differ; None where sizes or types differ."""
    given, expected = array_of(session, index), session.expected[index]
    if given is None or given.dtype.itemsize != expected.dtype.itemsize or given.size != expected.size:
        return None, expected, None
    wanted = np.ascontiguousarray(expected.reshape(given.shape))
    size = given.dtype.itemsize
    bits = f"u{size}" if size in (1, 2, 4, 8) else given.dtype
    wrong = np.ascontiguousarray(given).view(bits) != wanted.view(bits)
    if session.given.tolerance:
        with np.errstate(all="ignore"):
            near, far = given.astype(np.float64), wanted.astype(np.float64)
            wrong &= ~(np.abs(near - far) <= session.given.tolerance * np.abs(far).max())
    return given, wanted, wrong


def _compared(session: Travel, index: int) -> Iterator[str]:
    given, wanted, wrong = _wrong(session, index)
    if given is None:
        yield f"  argument {index} is no array of {wanted.size} elements of {wanted.dtype}"
        return
    count = int(wrong.sum())
    if not count:
        yield f"  argument {index} is as expected: {given.size} elements"
        return
    place = tuple(int(part) for part in np.argwhere(wrong)[0])
    where = ",".join(map(str, place))
    yield f"  argument {index}: {count} of {given.size} elements are not as expected"
    yield f"    first: arg{index}[{where}] is {number(given[place])}, expected {number(wanted[place])}"


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
