"""A launch that is executed again: on its arrays as they were before, with nothing written back for good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import OperandError, WarpsimError
from ...host.arguments import put_bits
from ...host.launching import LaunchableKernel, LaunchReport
from ...machine.state.device import Buffer, BufferPlace
from ...ptx.symbols import shown_variable

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One execution: its report, or the error that ended it, and the arrays by argument afterwards."""

    report: LaunchReport | None
    error: WarpsimError | None
    arrays: Mapping[int, Array]
    schedule: str | int


@dataclass(frozen=True, kw_only=True)
class RepeatedLaunch:
    """A kernel, its arguments and the options of its launch.

    ``before`` has the content of arrays that a launch has changed, by argument; where it has none, the
    arrays are as they should be at the start. Raises OperandError for arguments in device buffers, whose
    content is not kept.
    """

    kernel: LaunchableKernel
    sizes: Mapping[str, Any]  # grid, block, cluster, shared_bytes, cooperative
    args: Sequence[Any]
    options: Mapping[str, Any]  # schedule, engine, undefined, most_statements
    before: Mapping[int, Array]

    def __post_init__(self) -> None:
        for index, value in enumerate(self.args):
            if isinstance(value, Buffer | BufferPlace) or isinstance(getattr(value, "buffer", None), Buffer):
                raise OperandError(
                    f"argument {index} is in a device buffer, whose content before the launch is not kept: "
                    "pass arrays"
                )

    @property
    def arrays(self) -> dict[int, Array]:
        """The arrays by argument, those of tensor maps too."""
        found = {}
        for index, value in enumerate(self.args):
            held = getattr(value, "array", value)
            if isinstance(held, np.ndarray) and held.ndim:
                found[index] = held
        return found

    def name(self, index: int) -> str:
        """Return the name of a parameter."""
        return shown_variable(self.kernel.parameters[index].name)

    def initial(self, index: int) -> Array:
        """Return the content of an array before the launch."""
        return self.before.get(index, self.arrays[index])

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put arrays as they were before the launch, and afterwards as they are now."""
        now = {index: array.copy() for index, array in self.arrays.items() if array.flags.writeable}
        try:
            for index, content in self.before.items():
                put_bits(self.arrays[index], content)
            yield
        finally:
            for index, content in now.items():
                put_bits(self.arrays[index], content)

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
        return Attempt(report=report, error=error, arrays=after, schedule=chosen.get("schedule", "program"))
