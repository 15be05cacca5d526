"""Elements of an output that no statement stores.

The stores of a launch are followed. Knows stores; does not know what should be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from ..tried_repairs import Trial

Array = npt.NDArray[Any]
_EVIDENCE = "the stores of the launch were followed, element by element"
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
        evidence=_EVIDENCE,
        fix=_FIX,
        also=tuple(("another store", place) for place in places[1:]),
    )


def _owner(argument: Any, name: str) -> Callable[[Allocation], bool]:
    """Return whether an allocation is that of an argument: a buffer, or an array, which has its name."""
    buffer = buffer_of(argument)
    if buffer is not None:
        return lambda allocation: allocation is buffer.allocation
    return lambda allocation: shown_variable(allocation.name) == name
