"""A device for computers without a GPU: it takes the calls of a driver, and the PTX text itself.

The text that it is given is what it runs, as warpsim launches any kernel, so that whatever a kernel gets
wrong is wrong here too. It computes as the model of its target does, or as it is told to. Knows nothing of
vector sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from warpsim import __version__
from warpsim.base.errors import OperandError, WarpsimError
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.memory import SHARED_BYTES
from warpsim.machine.run.engines import Engine
from warpsim.machine.state.device import Device as Memory
from warpsim.machine.state.spaces import Bytes
from warpsim.programs.launch.launching import LoadedModule, load_text

from .driver import Device, DriverError

RESERVED_BYTES = 1024  # of shared memory, which a driver keeps for itself
_GARBAGE = 0xCD  # what new memory holds


class SimulatedDriver:
    """The driver of a simulated chip, as driver.Driver says.

    ``target`` is the chip's own; ``arithmetic`` computes the D of every matrix instruction in place of the
    model, from the instruction and what it reads.
    """

    def __init__(self, target: str, arithmetic: Engine | None = None) -> None:
        if target not in ARCHITECTURES:
            raise DriverError(f"no target {target!r}; there are {', '.join(ARCHITECTURES)}")
        self.architecture = ARCHITECTURES[target]
        self.arithmetic = arithmetic
        major, minor = divmod(self.architecture.number, 10)
        self.device = Device(f"simulated {target}", (major, minor), f"warpsim {__version__}", SHARED_BYTES)
        self.memory = Memory()
        self._modules: dict[int, LoadedModule] = {}
        self._functions: dict[int, tuple[int, str]] = {}
        self._handles = count(1)

    # --- modules ---

    def load(self, ptx: str) -> int:
        """Load a module; its target must be one that the chip runs."""
        try:
            module = load_text(_shifted(ptx), "module.ptx")
            if not self._runs(module.target):
                raise OperandError(f"{self.device.chip} does not run .target {module.target}")
            if module.problems:
                raise module.problems[0]
        except WarpsimError as error:
            raise DriverError(f"the driver refuses the PTX: {error}") from None
        handle = next(self._handles)
        self._modules[handle] = module
        return handle

    def _runs(self, target: str) -> bool:
        """Return whether the chip runs code for a target: its own, or an older one without a or f."""
        wanted = ARCHITECTURES.get(target)
        if wanted is None:
            return False
        plain = target == f"sm_{wanted.number}"
        return wanted.number == self.architecture.number or (
            plain and wanted.number < self.architecture.number
        )

    def unload(self, module: int) -> None:
        """Forget a module."""
        if self._modules.pop(module, None) is None:
            raise DriverError(f"no module {module}")

    def function(self, module: int, name: str) -> int:
        """Return an entry of a module."""
        if name not in self._modules[module].entries:
            raise DriverError(f"no entry {name} in the module")
        handle = next(self._handles)
        self._functions[handle] = module, name
        return handle

    # --- memory ---

    def allocate(self, size: int) -> int:
        """Return the address of memory on the device."""
        allocation = self.memory.memory.allocate(size)
        self.memory.memory.bytes_of(allocation)[:] = _GARBAGE
        return allocation.address

    def free(self, address: int) -> None:
        """Give memory back."""
        with _as_driver_error():
            self.memory.memory.free(address)

    def write(self, address: int, content: bytes) -> None:
        """Copy bytes to the device."""
        with _as_driver_error():
            self._view(address, len(content))[:] = memoryview(content)

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes from the device."""
        with _as_driver_error():
            return self._view(address, size).tobytes()

    def _view(self, address: int, size: int) -> Bytes:
        """Return the bytes at an address; raises OperandError where not all of them are of one allocation."""
        memory = self.memory.memory
        for allocation in memory.allocations:
            if allocation.address <= address and address + size <= allocation.address + allocation.size:
                start = address - allocation.address
                return memory.bytes_of(allocation)[start : start + size]
        raise OperandError(f"{size} bytes at {address:#x} are outside every allocation")

    # --- launching ---

    def launch(
        self, function: int, blocks: int, threads: int, shared_bytes: int, pointers: Sequence[int]
    ) -> None:
        """Run a kernel; whatever the checks of a launch find is an error, but undefined metadata."""
        module, name = self._functions[function]
        with _as_driver_error():
            report = self._modules[module][name](
                blocks,
                threads,
                [np.uint64(pointer) for pointer in pointers],
                shared_bytes=shared_bytes,
                device=self.memory,
                engine=self.arithmetic or "kernel",
                undefined="fallback",
            )
            for finding in report.hazards:
                if finding.kind == "undefined metadata":
                    continue
                raise OperandError(finding.message, finding.location)

    def close(self) -> None:
        """Nothing to give back."""


def _shifted(ptx: str) -> str:
    """Return the text, whose own variables in shared memory do not begin at address 0, as on a chip they
    may not.
    """
    reserved = f"\n{{ .shared .align {RESERVED_BYTES} .b8 reserved_by_the_driver[{RESERVED_BYTES}];"
    return ptx.replace("\n{", reserved, 1) if ".shared" in ptx else ptx


class _as_driver_error:
    """A block whose errors are those of a device."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, WarpsimError):
            raise DriverError(f"the simulated device: {error}") from None
