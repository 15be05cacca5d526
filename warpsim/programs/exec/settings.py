"""What a run of host programs is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol

from ...isa.architectures import ARCHITECTURES, SM_90A, Architecture

if TYPE_CHECKING:
    from ...machine.run.engines import Undefined
    from ...machine.run.events import Observer
    from ...observe.checks.findings import Mode
    from .host_launch import HostLaunch

DEFAULT_CHIP = SM_90A.name
_WORDS = {"checks": ("error", "warn", "off"), "undefined": ("error", "fallback")}


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
    resident: int = 1  # CTAs that a multiprocessor has at a time
    torch_on_cpu: bool = False  # PyTorch's own kernels, which are machine code, are computed by the CPU
    looking: Looking = field(default_factory=Unobserved)
    scheduler: Any = None  # a client of a Dask cluster, for launches of many CTAs

    @property
    def architecture(self) -> Architecture:
        """The record of the chip."""
        return ARCHITECTURES[self.chip]

    def document(self) -> dict[str, Any]:
        """Return the fields as JSON has them, less what is of this process."""
        own = ("looking", "scheduler")
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in own}


def settings_of(document: dict[str, Any]) -> Settings:
    """Return settings of their document. Raises ValueError for what no document is."""
    from ...machine.run.schedules import Schedule  # with the machine, which a program without launches lacks

    usual = Settings().document()
    for name, value in document.items():
        if name not in usual or not _is_legal(name, value, type(usual[name])):
            raise ValueError(f"{name}: {value!r} is not a setting")
    if document.get("chip", DEFAULT_CHIP) not in ARCHITECTURES:
        raise ValueError(f"{document['chip']} is not a chip")
    Schedule(document.get("schedule", usual["schedule"]))
    return Settings(**document)


def _is_legal(name: str, value: Any, kind: type) -> bool:
    """Return whether a setting whose default has that type may have a value."""
    if type(value) not in ((float, int, type(None)) if name == "limit" else (kind,)):
        return False
    if type(value) in (int, float):
        return bool(0 < value < float("inf"))
    return value in _WORDS.get(name, (value,))
