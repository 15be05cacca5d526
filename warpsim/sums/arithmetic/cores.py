"""The number of threads that compute, and the size of the memory.

The default is a thread for each core that this process may use. The kernels release the interpreter's lock,
so that a pool of threads is enough; bits never depend on it.
"""

from __future__ import annotations

import os

from ...base.errors import OperandError
from ...isa.arrays import as_integer

_MOST = 1 << 10  # a pool with more threads is not faster


def thread_count(threads: int | None) -> int:
    """Return the number of threads; None is the number of available cores. Raises OperandError."""
    if threads is None:
        cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
        return len(cores)
    count = threads if type(threads) is int else as_integer(threads, "threads")
    if count < 1:
        raise OperandError(f"threads={count}: at least 1, or None for all cores")
    return min(count, _MOST)


def memory_bytes() -> int | None:
    """Return the bytes of memory of this machine, None where the system does not report them."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
