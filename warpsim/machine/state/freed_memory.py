"""What becomes of the memory of arrays that a launch frees: the process keeps it for the next arrays.

A wave makes and frees thousands of arrays of some hundred KiB. The C library of Linux (glibc) at first gives
each of these back to the system, which takes as long as to fill it: the next array begins with page faults.
It learns from the largest block that was freed so far, up to 32 MiB: smaller blocks stay in the process from
then on, and of free memory at the end of the heap twice as much (glibc manual, "Memory Allocation Tunables").
So the first launch frees such a block, of which no page was ever touched. Settings of the user
(MALLOC_MMAP_THRESHOLD_ and others) prevail, and other C libraries take no notice.

Knows no launch.
"""

from __future__ import annotations

from functools import cache

import numpy as np

_BLOCK = 31 << 20  # bytes: below the largest block from which glibc learns


@cache
def keep_freed_memory() -> None:
    """Let this process keep the memory of arrays that it frees, as far as its C library learns that."""
    np.empty(_BLOCK, np.uint8)  # freed at once
