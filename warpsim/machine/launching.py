"""Modules and kernels as users hold them: ``module = load(...)``, ``module["name"](grid, block, args)``.

The shape is that of CuPy's RawModule and RawKernel. Knows paths, arguments and reports; what happens in a
launch is grid.py's and wave.py's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..environment import in_default_environment
from ..errors import OperandError
from .arguments import arguments_of
from .device import Device
from .grid import check_block, dimensions, launch
from .observers.findings import Findings, Mode
from .observers.memory_checks import checks_of
from .observers.recorder import LaunchEvent, Recorder
from .observers.selection import Selection, selection_of
from .program import Entry, Module, Parameter, load_module

_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_BLOCK_LIMITS = (1024, 1024, 64)

Size = int | Sequence[int]


@dataclass(frozen=True, kw_only=True)
class LaunchReport:
    """What a launch did: ``hazards``, findings; ``fidelity``, how exact it was; ``events``, if recorded."""

    hazards: tuple[Any, ...] = ()
    fidelity: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[LaunchEvent, ...] = ()


class LaunchableKernel:
    """A kernel of a module; call it to launch it."""

    def __init__(self, module: Module, entry: Entry) -> None:
        self._module = module
        self._entry = entry

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self._entry.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Index, name, kind, bytes and alignment of each parameter."""
        return self._entry.parameters

    @in_default_environment
    def __call__(
        self,
        grid: Size,
        block: Size,
        args: Sequence[Any] = (),
        *,
        shared_bytes: int = 0,
        checks: Mode = "error",
        record: bool | str | Selection = False,
        observers: Sequence[Any] = (),
        device: Device | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> LaunchReport:
        """Execute the kernel on every CTA of ``grid``; arrays among ``args`` are written back in place.

        ``checks`` says what becomes of races and reads of bytes that nobody wrote: "error" raises the first
        error, "warn" collects all in ``hazards`` of the report, "off" does not look. ``record`` keeps the matrix
        instructions in ``events``: True for all, or a selection such as "cta=0,0 warp=1 line=120 step=3".
        ``observers`` watch every wave (see machine/observers).
        Raises OperandError for arguments, Fault and UndefinedBehavior for what the kernel does; nothing is
        then written back.
        """
        sizes = dimensions(grid, "grid", _GRID_LIMITS), dimensions(block, "block", _BLOCK_LIMITS)
        check_block(self._entry, sizes[1])
        device = device or Device(self._module.target)
        entry = self._entry
        arguments = arguments_of(device, entry.parameters, entry.parameter_bytes, args)
        findings = Findings(mode=checks)
        recorder = Recorder(selection_of(record)) if record else None
        watching = (*observers, *([recorder] if recorder else []))
        launch(
            self._module,
            entry,
            device,
            *sizes,
            arguments.content,
            shared_bytes=shared_bytes,
            observers=lambda: (*checks_of(findings), *watching),
            progress=progress,
        )
        for back in arguments.write_back:
            back()
        events = recorder.events() if recorder else ()
        return LaunchReport(hazards=tuple(findings.found), events=events)


class LoadedModule:
    """A PTX module; ``module["name"]`` is a kernel, ``entries`` are their names."""

    def __init__(self, module: Module) -> None:
        self._module = module

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return self._module.entries

    @property
    def target(self) -> str:
        """The PTX target that it runs on."""
        return self._module.target

    @property
    def problems(self) -> tuple[Exception, ...]:
        """What cannot be executed, with places, in the order of the text."""
        return tuple(self._module.problems)

    def __getitem__(self, name: str) -> LaunchableKernel:
        return LaunchableKernel(self._module, self._module.entry(name))


def load_text(text: str, file: str = "<string>", target: str | None = None) -> LoadedModule:
    """The module of a PTX text; raises PtxError, IllegalInstruction."""
    if not text.strip():
        raise OperandError("the PTX text is empty")
    return LoadedModule(load_module(text, file, target))
