"""A launch that is executed again: on its arrays as they were before, with nothing written back for good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError, WarpsimError
from ....machine.host.arguments import buffer_of, put_bits
from ....machine.state.device import Buffer, Device
from ....observe.algebra.leaves import Argument
from ....programs.launch.launching import LaunchableKernel, LaunchReport
from ....programs.launch.reference_runs import launch_argument
from ....ptx.symbols import shown_variable

Array = npt.NDArray[Any]


STATEMENTS = 400_000  # half a minute at most of launches that fill a wave, with matrix instructions
_SHARE = 4  # an execution may run that part of what its search has left
_TIMES = 4  # or that many times the statements of the launch itself


class Budget:
    """Statements that the executions of a diagnosis may run together, without the launch itself.

    A statement counts once for all lanes of a wave that execute it together. ``whole`` are the statements of
    the launch, which each further execution is taken to need before it begins.
    """

    def __init__(self, statements: int = STATEMENTS) -> None:
        self.statements = self.left = statements
        self.whole = 0
        self._kept, self._search = 0, "further executions"
        self._untried: dict[str, None] = {}  # searches, in order
        self._unended = Counter[str]()  # executions, by search

    @contextmanager
    def search(self, name: str) -> Iterator[None]:
        """Leave half of the statements to later searches, while this search executes."""
        outer = self._kept, self._search
        self._kept, self._search = self._kept + (self.left - self._kept) // 2, name
        try:
            yield
        finally:
            self._kept, self._search = outer

    def allows(self) -> bool:
        """Return whether the search may execute once more; remember the search where it may not."""
        if self.left - self._kept >= max(self.whole, 1):
            return True
        self._untried[self._search] = None
        return False

    @property
    def most(self) -> int:
        """The statements that the next execution may run: a mistake undone can make a loop endless."""
        return max((self.left - self._kept) // _SHARE, _TIMES * self.whole, 1)

    def spend(self, statements: int) -> None:
        """Count an execution; the first is the launch itself."""
        if self.whole:
            self.left -= statements
        else:
            self.whole = max(statements, 1)

    def cut(self) -> None:
        """Remember an execution that has not ended within the budget."""
        self._unended[self._search] += 1

    def notes(self) -> Iterator[str]:
        """Yield what of the searches was not tried, or not to its end."""
        limit = f"(budget of {self.statements:,} statements)"
        if self._untried:
            yield f"not tried: the rest of {', '.join(self._untried)} {limit}"
        if self._unended:
            counts = ", ".join(f"{count} of {name}" for name, count in self._unended.items())
            yield f"not executed to the end: {counts} {limit}"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One execution: its report, or the error that ended it, and the arrays by argument afterwards.

    ``cut`` says that it ended because the budget allows no more statements.
    """

    report: LaunchReport | None
    error: WarpsimError | None
    arrays: Mapping[int, Array]
    schedule: str | int
    cut: bool = False


def _put(buffer: Buffer, content: Array) -> None:
    """Give a buffer other bytes; what of it counts as written stays as it is."""
    bytes_of = buffer.device.memory.bytes_of(buffer.allocation)
    bytes_of[:] = np.ascontiguousarray(content).reshape(-1).view(np.uint8)


class _Memory:
    """The memory of a device as it is, and which of its bytes were written."""

    def __init__(self, device: Device) -> None:
        self._device, memory = device, device.memory
        self._data, self._count = memory.data.copy(), len(memory.allocations)
        self._fresh = None if memory.fresh is None else memory.fresh.copy()

    def put_back(self) -> None:
        """Restore it; allocations that have come since are given back."""
        memory = self._device.memory
        memory.release(self._count)
        memory.data[: self._data.size] = self._data
        if self._fresh is not None and memory.fresh is not None:
            memory.fresh[: self._fresh.size] = self._fresh


@dataclass(frozen=True, kw_only=True)
class RepeatedLaunch:
    """A kernel, its arguments and the options of its launch.

    ``before`` has the content of arrays that a launch has changed, by argument; where it has none, the
    arrays are as they should be at the start. Arguments in device buffers are arrays too: the memory of
    their device is put back after each execution. ``budget`` counts the statements of all executions.
    """

    kernel: LaunchableKernel
    sizes: Mapping[str, Any]  # grid, block, cluster, shared_bytes, cooperative, resident
    args: Sequence[Any]
    options: Mapping[str, Any]  # schedule, engine, undefined, most_statements
    before: Mapping[int, Array]
    budget: Budget = field(default_factory=Budget, compare=False, repr=False)

    @property
    def arrays(self) -> dict[int, Array]:
        """The arrays by argument, those of tensor maps too; of buffers what they hold now."""
        found = {}
        for index, value in enumerate(self.args):
            buffer = buffer_of(value)
            held = buffer.get() if buffer is not None else getattr(value, "array", value)
            if isinstance(held, np.ndarray) and held.ndim:
                found[index] = held
        return found

    def name(self, index: int) -> str:
        """Return the name of a parameter."""
        return shown_variable(self.kernel.parameters[index].name)

    def initial(self, index: int) -> Array:
        """Return the content of an array before the launch."""
        return self.before.get(index, self.arrays[index])

    def formula_arguments(self) -> list[Argument]:
        """Return the arguments as a reference is called with them."""
        arrays = self.arrays
        return [
            launch_argument(index, self.name(index), value, self.initial(index) if index in arrays else None)
            for index, value in enumerate(self.args)
        ]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put arrays as they were before the launch, and afterwards as they are now."""
        buffers = {index: found for index, value in enumerate(self.args) if (found := buffer_of(value))}
        own = {index: array for index, array in self.arrays.items() if index not in buffers}
        now = {index: array.copy() for index, array in own.items() if array.flags.writeable}
        devices = {id(buffer.device): buffer.device for buffer in buffers.values()}
        memories = [_Memory(device) for device in devices.values()]
        try:
            for index, content in self.before.items():
                if index in buffers:
                    _put(buffers[index], content)
                else:
                    put_bits(own[index], content)
            yield
        finally:
            for index, content in now.items():
                put_bits(own[index], content)
            for memory in memories:
                memory.put_back()

    def attempt(self, **options: Any) -> Attempt:
        """Execute once, with these options in place of its own."""
        chosen = {**self.options, "output": None, **options}
        report: LaunchReport | None = None
        error: WarpsimError | None = None
        with self.restored():
            try:
                report = self.kernel(args=self.args, **self.sizes, **chosen)
            except OperandError as mistake:
                if mistake.location is None:
                    raise
                error = mistake
            except WarpsimError as fault:
                error = fault
            after = {index: array.copy() for index, array in self.arrays.items()}
        self.budget.spend(_executed(report, error))
        return Attempt(report=report, error=error, arrays=after, schedule=chosen.get("schedule", "program"))

    @property
    def most_statements(self) -> int:
        """The statements that another execution may run, by the launch's own limit and by the budget."""
        own = self.options.get("most_statements")
        return min(own or self.budget.most, self.budget.most)

    def again(self, **options: Any) -> Attempt:
        """Execute once more, within the budget."""
        most = self.most_statements
        attempt = self.attempt(most_statements=most, **options)
        if attempt.error is None or attempt.error.executed < most:
            return attempt
        self.budget.cut()
        return replace(attempt, cut=True)


def _executed(report: LaunchReport | None, error: WarpsimError | None) -> int:
    if report is not None:
        return sum(report.fidelity.counts.values())
    return 0 if error is None else error.executed
