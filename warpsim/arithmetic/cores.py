"""How many threads compute: as many as asked for, or one for each core that this process may use; how much
memory there is.

The kernels release the interpreter's lock, so a pool of threads is all it takes; bits never depend on it.
"""

from __future__ import annotations

import os

from ..errors import OperandError
from ..isa.arrays import as_integer

_MOST = 1 << 10  # a pool of more threads computes nothing sooner


def thread_count(threads: int | None) -> int:
    """Return the number of threads; None is one for each core at hand. Raises OperandError."""
    if threads is None:
        cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
        return len(cores)
    count = threads if type(threads) is int else as_integer(threads, "threads")
    if count < 1:
        raise OperandError(f"threads={count}: at least 1, or None for all cores")
    return min(count, _MOST)


def memory_bytes() -> int | None:
    """Return the memory of this machine, None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
