"""Compilers as commands, nvcc and that of C: their temporary files and processes end with them.

Knows processes; does not know what is compiled.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def run_compiler(command: Sequence[str], temporary: Path) -> subprocess.CompletedProcess[str]:
    """Run a compiler to its end, with its temporary files in a folder; return its code and what it printed.

    Where this process is interrupted, the compiler ends with all that it has started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    try:
        out, said = process.communicate()
    except BaseException:
        with suppress(ProcessLookupError, AttributeError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, said)
