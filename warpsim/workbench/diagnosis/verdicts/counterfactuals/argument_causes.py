"""Arguments, or axes of the grid, in the wrong order: the launch again with two of them exchanged.

An order that makes every output right is the cause: host and kernel disagree about it, and either can be
mended. Knows arguments; does not know statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from .....machine.host.arguments import buffer_of
from .....machine.run.events import Observer, helper
from .....machine.run.pending import Pending
from .....machine.run.wave import Wave
from .....machine.state.memory_access import MemoryAccess
from .....machine.state.spaces import DEVICE_BASE, Allocation
from .....ptx.symbols import shown_variable
from ..launch_causes import Cause
from ..output_errors import OutputError
from ..repeated_launch import RepeatedLaunch
from ..tried_repairs import Repair, Trial

Array = npt.NDArray[Any]
_MOST = 64  # launches
_AXES = "xyz"
_EVIDENCE = "the launch was executed so: every output is as expected"


def exchanged_causes(trial: Trial) -> list[Cause]:
    """Return two arguments, or axes of the grid, with which exchanged every output is as expected."""
    return trial.first("arguments exchanged", islice(_exchanged(trial), _MOST))


def _exchanged(trial: Trial) -> Iterator[Repair]:
    launch = trial.launch
    for first, second in combinations(range(len(launch.args)), 2):
        if _are_alike(trial, first, second):
            named = " and ".join(_shown(launch, index) for index in (first, second))
            message = f"{named} are exchanged: the other way round every output is as expected"
            fix = "exchange them where the kernel is launched, or in its list of parameters"
            yield _repair(_with_exchanged(launch, first, second), message, fix)
    yield from _other_grids(launch)


def _repair(launch: RepeatedLaunch, message: str, fix: str) -> Repair:
    cause = Cause(kind="argument", message=message, location=None, evidence=_EVIDENCE, fix=fix)
    return Repair(cause=cause, launch=launch)


def _are_alike(trial: Trial, first: int, second: int) -> bool:
    """Return whether two arguments may be taken for each other: numbers, or arrays that are read."""
    launch = trial.launch
    x, y = launch.args[first], launch.args[second]
    parameters = [launch.kernel.parameters[index] for index in (first, second)]
    if parameters[0].bytes != parameters[1].bytes:
        return False
    if first in launch.arrays and second in launch.arrays:
        return x is not y and not {first, second} & trial.expected.keys()
    kinds = ((int, np.integer), (float, np.floating))
    return any(isinstance(x, kind) and isinstance(y, kind) for kind in kinds) and bool(x != y)


def _with_exchanged(launch: RepeatedLaunch, first: int, second: int) -> RepeatedLaunch:
    args = list(launch.args)
    args[first], args[second] = args[second], args[first]
    moved = {first: second, second: first}
    before = {moved.get(index, index): array for index, array in launch.before.items()}
    return replace(launch, args=args, before=before)


def _shown(launch: RepeatedLaunch, index: int) -> str:
    value = launch.args[index]
    text = "" if index in launch.arrays else f" = {value}"
    return f"argument {index} ({launch.name(index)}{text})"


def _other_grids(launch: RepeatedLaunch) -> Iterator[Repair]:
    """Yield the grid with two axes exchanged, if the kernel reads `%ctaid` of each axis of the new grid."""
    grid = launch.sizes["grid"]
    sizes = [grid] if isinstance(grid, int) else [*grid]
    sizes += [1] * (3 - len(sizes))
    words = " ".join(record.statement.operand_text or "" for record in launch.kernel.entry.code)
    read = [f"%ctaid.{axis}" in words for axis in _AXES]
    for first, second in combinations(range(3), 2):
        if sizes[first] != sizes[second]:
            other = list(sizes)
            other[first], other[second] = other[second], other[first]
            if any(size > 1 and not own for size, own in zip(other, read, strict=True)):
                continue
            yield _repair(
                replace(launch, sizes={**launch.sizes, "grid": tuple(other)}),
                f"{_AXES[first]} and {_AXES[second]} of the grid {_sizes(sizes)} are exchanged: with "
                f"{_sizes(other)} every output is as expected",
                "exchange the sizes of the grid, or the axes of %ctaid (blockIdx) in the kernel",
            )


def _sizes(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))})"


_FOLLOWED = "the stores of the launch were followed, element by element"
_FIX = (
    "let the tiles of CTAs, warps and lanes cover the output once: check the grid, the numbers of tiles, the "
    "rows and strides of the stores, and their guards"
)


class Stores(Observer):
    """An observer of what is stored to one array: ``stored (elements,)``, and the statements that do."""

    def __init__(self, elements: int, size: int, owns: Callable[[Allocation], bool]) -> None:
        self.stored, self.statements = np.zeros(elements, np.bool_), set[int]()
        self._size, self._owns = size, owns

    def store(self, wave: Wave, access: MemoryAccess) -> None:
        """Note the elements that a statement stores."""
        if access.memory is wave.memories.device.data:
            parts = np.arange(0, access.size, min(self._size, access.size))
            if self._note(wave, (access.offsets[:, None] + parts).ravel()):
                self.statements.add(access.path.pc)

    atomic = store

    def completed(self, wave: Wave, pending: Pending) -> None:
        """Note the elements that an asynchronous operation has written."""
        for stretches in pending.writes:
            for first, past in stretches.ranges.tolist() if stretches.space == "global" else ():
                self._note(wave, np.arange(first, past, self._size))

    @helper
    def _note(self, wave: Wave, offsets: Array) -> bool:
        elements = self._elements(wave, offsets)
        self.stored[elements[elements >= 0]] = True
        return bool((elements >= 0).any())

    @helper
    def _elements(self, wave: Wave, offsets: Array) -> Array:
        """Return the elements of the array at offsets of the device's memory; -1 for those of others."""
        if not offsets.size:
            return offsets
        allocation = wave.memories.device.allocation_at(DEVICE_BASE + int(offsets[0]))
        elements = (offsets - (allocation.address - DEVICE_BASE)) // self._size
        return np.where(
            self._owns(allocation) & (elements >= 0) & (elements < len(self.stored)), elements, -1
        )


def unstored_elements(trial: Trial, errors: Sequence[OutputError]) -> list[Cause]:
    """Return wrong outputs of which some of the wrong elements are never stored."""
    return [cause for error in errors if (cause := _unstored_elements(trial, error)) is not None]


def _unstored_elements(trial: Trial, error: OutputError) -> Cause | None:
    owns = _owner(trial.launch.args[error.argument], error.name)
    stores = Stores(error.wrong.size, error.given.dtype.itemsize, owns)
    if trial.launch.attempt(checks="off", observers=(stores,)).error is not None:
        return None
    missing = ~stores.stored.reshape(error.wrong.shape)
    wrong = missing & error.wrong
    if not wrong.any() or not stores.stored.any():
        return None
    missing = missing if 2 * wrong.sum() > missing.sum() else wrong  # others may be meant to stay
    code = trial.launch.kernel._entry.code
    places = [code[pc].statement.location() for pc in sorted(stores.statements)]
    left = replace(error, wrong=missing)
    where = f": {left.pattern}" if left.pattern else f", the first at {list(left.first)}"
    return Cause(
        kind="unwritten",
        message=f"{left.count:,} of {error.wrong.size:,} elements of {error.name} are never stored{where}",
        location=places[0] if places else None,
        evidence=_FOLLOWED,
        fix=_FIX,
        also=tuple(("another store", place) for place in places[1:]),
    )


def _owner(argument: Any, name: str) -> Callable[[Allocation], bool]:
    """Return whether an allocation is that of an argument: a buffer, or an array, which has its name."""
    buffer = buffer_of(argument)
    if buffer is not None:
        return lambda allocation: allocation is buffer.allocation
    return lambda allocation: shown_variable(allocation.name) == name
