"""Modules and kernels as users hold them: ``module = load(...)``, ``module["name"](grid, block, args)``.

The shape is that of CuPy's RawModule and RawKernel. A call is executed by launch_execution.py; modules come
from loading.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...base.environment import in_default_environment
from ...base.errors import OperandError, WarpsimError
from ...machine.host.device import Device, Symbol, symbol_of
from ...machine.load.program import Module, load_module
from ...machine.run.engines import Engine, EngineName, Undefined
from ...machine.run.events import Observer
from ...machine.run.wave import Entry, Parameter
from ...machine.state.device import Device as DeviceState
from ...observe.checks.findings import Mode
from ...observe.recording.selection import Selection
from ...ptx.source_lines import Reader, unread
from ...ptx.symbols import demangled
from .device_output import to_stdout
from .launch_execution import (
    Launched,
    LaunchExecution,
    LaunchModes,
    LaunchReport,
    LaunchShape,
    LaunchWatch,
    Size,
)

if TYPE_CHECKING:
    from distributed import Client


class LaunchableKernel:
    """A kernel of a module; call it to launch it."""

    def __init__(self, module: Module, entry: Entry, home: Callable[[], DeviceState] | None = None) -> None:
        self._module = module
        self._entry = entry
        self._home = home if home and module.variables else lambda: Device(module.target)

    @property
    def module(self) -> Module:
        """The module as the machine runs it."""
        return self._module

    @property
    def entry(self) -> Entry:
        """The kernel as the machine runs it."""
        return self._entry

    def home(self) -> DeviceState:
        """Return the device of launches that name none: that of the module's variables, or a new device."""
        return self._home()

    @property
    def name(self) -> str:
        """The name of the kernel, as the PTX has it."""
        return self._entry.name

    @property
    def signature(self) -> str:
        """The name of the kernel and the types of its parameters in C++; the name where it has no others."""
        return demangled(self._entry.name)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Index, name, kind, bytes and alignment of each parameter."""
        return self._entry.parameters

    def __repr__(self) -> str:
        if self.signature != self.name:
            return f"<kernel {self.signature} for {self._module.target}>"
        names = ", ".join(f".{parameter.kind} {parameter.name}" for parameter in self.parameters)
        return f"<kernel {self.name}({names}) for {self._module.target}>"

    @in_default_environment
    def __call__(
        self,
        grid: Size,
        block: Size,
        args: Sequence[Any] = (),
        shared_bytes: int = 0,
        cluster: Size | None = None,
        schedule: str | int = "program",
        checks: Mode = "error",
        record: bool | str | Selection = False,
        timeline: bool | str | Selection = False,
        device: DeviceState | None = None,
        progress: Callable[[int, int], None] | None = None,
        scheduler: str | Client | None = None,
        observers: Sequence[Observer] = (),
        engine: EngineName | Engine = "kernel",
        undefined: Undefined = "error",
        most_statements: int | None = None,
        output: Callable[[str], object] | None = to_stdout,
        cooperative: bool = False,
        resident: int = 1,
        schedules: int = 1,
        processes: int | None = None,
    ) -> LaunchReport:
        """Execute the kernel on every CTA of ``grid``; arrays among ``args`` are written back in place.

        ``args`` as arguments.py has them; ``shared_bytes`` are of dynamic shared memory. ``schedule`` is
        "program", "earliest", "latest" or a seed: the order of CTAs and warps, and when what is asynchronous
        completes (schedules.py). ``checks`` says what
        becomes of races and reads of unwritten bytes: "error" raises the first error, "warn"
        collects all in ``hazards`` of the report, "off" does not look. ``record`` keeps the matrix
        instructions with their operands in ``events``: True for all, or a selection, "cta=0,0 warp=1
        line=120 step=3", each part of which may be left out. ``timeline`` takes the same, and keeps
        waits, copies and matrix instructions in their order. ``observers`` watch every wave
        (warpsim/observe/checks). ``engine`` computes mma: "kernel", "reference", or what takes an
        instruction and its Inputs and returns D; ``undefined`` says what becomes of metadata without a
        meaning, "error" or "fallback", as warpsim.execute has them. ``device`` has the memory, by default
        that of the buffers among the arguments or a new device. ``progress`` is called with the CTAs done,
        and their total.
        ``scheduler``, an address such as ``"tcp://host:8786"`` or a ``dask.distributed.Client``, spreads the
        CTAs over a Dask cluster, or over processes of this machine (spreading.py); for kernels without
        atomics, fences and ordered accesses.

        ``processes`` of this machine execute the CTAs, with the results and findings of a single process:
        the waves (4096 threads each) of kernels whose CTAs do not wait for each other
        (helper_processes.py). None takes as many as there are processors once the launch takes more than
        five seconds by estimate, 1 never more than this process. ``processes`` of the report says how many
        it were.

        ``cluster`` are the CTAs of a cluster, by which the grid is divided; without it those that the kernel
        names, else each CTA is a cluster of its own. More than 8 are not portable, and listed in ``hazards``.

        ``most_statements`` of all CTAs that run together, by turns, are executed before a kernel
        is said not to end, which is a Fault; None allows a thousand million for each 4096 threads.

        ``cooperative`` launches allow grid.sync() of cooperative groups; all CTAs run at one time, at most
        8192.

        ``resident`` are the CTAs that a multiprocessor has at a time: they share its tensor memory, so that
        tcgen05.alloc waits for columns of others; CTAs of a cluster are on different multiprocessors.

        With ``schedules`` of N the launch is repeated from the same memory under N - 1 other schedules,
        with all checks: ``hazards`` have between which bounds sums lie whose order PTX leaves open, and as
        an error what else another schedule leaves. What comes back is that of ``schedule``.

        ``output`` takes every text that device code prints, at once: sys.stdout by default, None for none.
        All are in ``printed`` of the report.

        Raises OperandError for arguments, Fault and UndefinedBehavior for what the kernel does; nothing is
        then written back.
        """
        shape = LaunchShape(grid, block, cluster, shared_bytes, cooperative, resident)
        modes = LaunchModes(schedule, engine, undefined, most_statements, scheduler, processes)
        watch = LaunchWatch(checks, record, timeline, observers, progress, output, schedules)
        execution = LaunchExecution(self._module, self._entry, shape, modes, watch)
        report = execution.report(args, device, self._home)
        options = {**modes._asdict(), "device": device}
        launched = Launched(self, shape._asdict(), args, options, execution.before)
        return replace(report, launched=launched)


class LoadedModule:
    """A PTX module; ``module["name"]`` is a kernel, ``entries`` are their names.

    ``module`` is what the machine runs.
    """

    def __init__(self, module: Module) -> None:
        self.module = module

    @cached_property
    def device(self) -> Device:
        """The device that has the variables of the module, for launches that name no other."""
        return Device(self.module.target)

    def symbol(self, name: str) -> Symbol:
        """Return a variable of the module, by its name in PTX or in C++, on the module's own device.

        Later launches see what is set there. Raises OperandError, which lists the variables.
        """
        return symbol_of(self.device, self.module, name)

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return self.module.entries

    @property
    def target(self) -> str:
        """The PTX target that it runs on."""
        return self.module.target

    @property
    def version(self) -> tuple[int, int]:
        """The PTX version that the text names."""
        return self.module.version

    @property
    def problems(self) -> tuple[WarpsimError, ...]:
        """What cannot be executed, with places, in the order of the text."""
        return tuple(self.module.problems)

    def parameters(self, name: str) -> tuple[Parameter, ...]:
        """Return the parameters of a kernel, whatever is wrong with its statements. Raises NoSuchKernel."""
        return self.module.parameters_of(name)

    def __getitem__(self, name: str) -> LaunchableKernel:
        """Return a kernel; raises NoSuchKernel, and one error of all problems of its statements."""
        return LaunchableKernel(self.module, self.module.entry(name), lambda: self.device)

    def __repr__(self) -> str:
        return f"<module for {self.target}: {', '.join(self.entries) or 'no kernels'}>"


def load_text(
    text: str, file: str = "<string>", target: str | None = None, read: Reader = unread
) -> LoadedModule:
    """Load a PTX text; ``read`` gives the lines of its sources. Raises PtxError, IllegalInstruction."""
    if not text.strip():
        raise OperandError("the PTX text is empty")
    return LoadedModule(load_module(text, file, target, read))


__all__ = ["LaunchReport", "LaunchableKernel", "LoadedModule", "load_text"]
