"""What a run of host programs is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from ..checks.findings import Mode
from ..host.device import Device
from ..host.launching import LaunchableKernel, LoadedModule
from ..isa.architectures import ARCHITECTURES, SM_90A, Architecture
from ..machine.run.engines import Undefined
from ..machine.run.events import Observer
from .fills import Fills

DEFAULT_CHIP = SM_90A.name
Dimensions3 = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class HostLaunch:
    """A launch of a host program that is about to begin: ``parameters`` as bytes of each, the device that it
    runs on, and what has filled the memory.
    """

    module: LoadedModule
    kernel: LaunchableKernel
    grid: Dimensions3
    block: Dimensions3
    parameters: Sequence[bytes] = ()
    shared_bytes: int = 0
    cluster: Dimensions3 | None = None
    device: Device = field(default_factory=Device)
    fills: Fills = field(default_factory=Fills)


class Looking(Protocol):
    """What is asked to observe launches: records, breakpoints, origins of operands."""

    def at(self, launch: HostLaunch) -> AbstractContextManager[Sequence[Observer]]:
        """Return the observers of the next launch, as a context that ends with it."""


class Unobserved:
    """No launch is observed."""

    def at(self, launch: HostLaunch) -> AbstractContextManager[Sequence[Observer]]:
        """Return no observers."""
        return nullcontext(())


@dataclass(frozen=True, kw_only=True)
class Settings:
    """``limit`` is in seconds of a launch; ``memory_bytes`` are those of the device."""

    chip: str = DEFAULT_CHIP
    checks: Mode = "warn"
    schedule: str = "program"
    undefined: Undefined = "fallback"  # chips execute what PTX leaves undefined
    limit: float | None = None
    trace_calls: bool = False
    compares: bool = False  # what goes to the host is noted, to be compared with another run
    memory_bytes: int = 16 << 30
    multiprocessors: int = 16  # enough for the largest cluster
    looking: Looking = field(default_factory=Unobserved)

    @property
    def architecture(self) -> Architecture:
        """The record of the chip."""
        return ARCHITECTURES[self.chip]
