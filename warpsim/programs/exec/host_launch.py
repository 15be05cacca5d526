"""A launch of a host program, as what observes it is given it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...machine.host.device import Device
from ..launch.launching import LaunchableKernel, LoadedModule
from .fills import Fills

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
