"""How many threads compute: as many as asked for, or one for each core that this process may use.

The kernels release the interpreter's lock, so a pool of threads is all it takes; bits never depend on it.
"""

from __future__ import annotations

import os

from ..errors import OperandError


def thread_count(threads: int | None) -> int:
    """The number of threads; None is one for each core at hand. Raises OperandError."""
    if threads is None:
        cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
        return len(cores)
    if threads < 1:
        raise OperandError(f"threads={threads}: at least 1, or None for all cores")
    return threads
