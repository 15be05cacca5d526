"""What a run of host programs is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from ..checks.findings import Mode
from ..isa.architectures import ARCHITECTURES, SM_90A, Architecture
from ..machine.run.engines import Undefined

DEFAULT_CHIP = SM_90A.name


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

    @property
    def architecture(self) -> Architecture:
        """The record of the chip."""
        return ARCHITECTURES[self.chip]
