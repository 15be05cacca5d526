"""A folder of test programs: which of its files are programs, and what became of each.

Knows files and results; does not know how they are shown (views).
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..libraries import HostError
from ..tally import Tally
from .programs import OVERDUE

_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_SIGNALLED = 128  # exit codes from here on are of a signal, as shells have it


@dataclass(frozen=True, kw_only=True)
class ProgramResult:
    """One program of a folder. ``code`` is its exit code; ``error`` says why it could not be started."""

    name: str
    code: int
    seconds: float
    tally: Tally
    error: str = ""

    @property
    def launches(self) -> int:
        """How many launches there were."""
        return sum(kernel.launches for kernel in self.tally.kernels.values())

    def count(self, severity: str) -> int:
        """Return how many findings are of a severity."""
        return sum(finding.severity == severity for finding in self.tally.findings.values())

    @property
    def ending(self) -> str:
        """The exit code, and what it stands for."""
        if self.error:
            return "not started"
        if self.code == OVERDUE:
            return f"{self.code} (took too long)"
        try:
            return f"{self.code} ({signal.Signals(self.code - _SIGNALLED).name})"
        except ValueError:
            return str(self.code)

    def document(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        own = {"exit_code": self.code, "seconds": round(self.seconds, 3), "error": self.error}
        return {**self.tally.document(), **own}


def programs_of(folder: Path) -> list[Path]:
    """Return the executable files of a folder by their names, less shared libraries. Raises HostError."""
    try:
        found = [
            path
            for path in sorted(folder.iterdir())
            if path.is_file() and os.access(path, os.X_OK) and not _LIBRARY.search(path.name)
        ]
    except OSError as error:
        raise HostError(f"{folder}: {error.strerror}") from None
    if not found:
        raise HostError(f"{folder} has no executable files")
    return found
