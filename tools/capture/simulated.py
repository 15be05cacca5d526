"""A device for computers without a GPU: it takes the calls of a driver, and the PTX text itself.

The text that it is given is what it runs, so that whatever a kernel gets wrong is wrong here too. It computes
as the model of its target does, or as it is told to. Knows nothing of vector sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from warpsim import __version__
from warpsim.errors import WarpsimError
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.memory import SHARED_BYTES
from warpsim.ptx.parser import parse
from warpsim.ptx.statements import Directive, Kernel, Program

from .driver import Device, DriverError
from .interpreter import Arithmetic, GlobalMemory, Launch


class SimulatedDriver:
    """The driver of a simulated chip, as driver.Driver says.

    ``target`` is the chip's own; ``arithmetic`` computes the D of every matrix instruction in place of the
    model, from the instruction and what it reads.
    """

    def __init__(self, target: str, arithmetic: Arithmetic | None = None) -> None:
        if target not in ARCHITECTURES:
            raise DriverError(f"no target {target!r}; there are {', '.join(ARCHITECTURES)}")
        self.architecture = ARCHITECTURES[target]
        self.arithmetic = arithmetic
        major, minor = divmod(self.architecture.number, 10)
        self.device = Device(f"simulated {target}", (major, minor), f"warpsim {__version__}", SHARED_BYTES)
        self.memory = GlobalMemory()
        self._modules: dict[int, tuple[Program, str]] = {}
        self._functions: dict[int, tuple[int, Kernel]] = {}
        self._handles = count(1)

    # --- modules ---

    def load(self, ptx: str) -> int:
        """Parse a module; its target must be one that the chip runs."""
        try:
            program = parse(ptx, "module.ptx")
        except WarpsimError as error:
            raise DriverError(f"the driver refuses the PTX: {error}") from None
        target = next(
            (
                one.text.strip()
                for one in program.statements
                if isinstance(one, Directive) and one.name == "target"
            ),
            "",
        )
        if not self._runs(target):
            raise DriverError(
                f"the driver refuses the PTX: {self.device.chip} does not run .target {target or 'unknown'}"
            )
        handle = next(self._handles)
        self._modules[handle] = program, target
        return handle

    def _runs(self, target: str) -> bool:
        """Whether the chip runs code for a target: its own, or an older one without a or f."""
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
        """An entry of a module."""
        program, _ = self._modules[module]
        for statement in program.statements:
            if isinstance(statement, Kernel) and statement.name == name:
                handle = next(self._handles)
                self._functions[handle] = module, statement
                return handle
        raise DriverError(f"no entry {name} in the module")

    # --- memory ---

    def allocate(self, size: int) -> int:
        """The address of memory on the device."""
        return self.memory.allocate(size)

    def free(self, address: int) -> None:
        """Give memory back."""
        with _as_driver_error():
            self.memory.free(address)

    def write(self, address: int, content: bytes) -> None:
        """Copy bytes to the device."""
        with _as_driver_error():
            self.memory.view(address, len(content))[:] = memoryview(content)

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes from the device."""
        with _as_driver_error():
            return self.memory.view(address, size).tobytes()

    # --- launching ---

    def launch(
        self, function: int, blocks: int, threads: int, shared_bytes: int, pointers: Sequence[int]
    ) -> None:
        """Run a kernel, block after block."""
        module, kernel = self._functions[function]
        program, target = self._modules[module]
        names = [parameter.name for parameter in kernel.parameters if hasattr(parameter, "name")]
        run = Launch(
            program=program,
            kernel=kernel,
            target=target,
            threads=threads,
            shared_bytes=shared_bytes,
            parameters=dict(zip(names, pointers, strict=True)),
            memory=self.memory,
            arithmetic=self.arithmetic,
        )
        with _as_driver_error():
            for block in range(blocks):
                run.run(block)

    def close(self) -> None:
        """Nothing to give back."""


class _as_driver_error:
    """A block whose errors are those of a device."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, WarpsimError):
            raise DriverError(f"the simulated device: {error}") from None
