"""A launch of a host program, as what observes it is given it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...machine.host.device import Device
from ..launch.launching import LaunchableKernel, LoadedModule
from .fills import Fills

Dimensions3 = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class HostLaunch:
    """A launch of a host program that is about to begin: ``parameters`` as bytes of each, the device that it
    runs on, what has filled the memory, and how it is executed.
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
    options: Mapping[str, Any] = field(default_factory=dict)  # schedule, undefined, cooperative, resident
