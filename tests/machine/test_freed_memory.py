"""Memory that launches free stays in the process: the next arrays begin without page faults."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_FAULTS = """
import resource
import numpy as np
{first}
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        arrays = [np.ones(1 << 17, np.float32) for _ in range(8)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""
_KEPT = """
from warpsim.machine.state.freed_memory import keep_freed_memory
keep_freed_memory()
"""


def _has_glibc() -> bool:
    names = getattr(os, "confstr_names", {})
    return "CS_GNU_LIBC_VERSION" in names and bool(os.confstr("CS_GNU_LIBC_VERSION"))


def _faults(first: str) -> int:
    """Return the page faults of 160 arrays of 512 KiB, once as many have been freed before."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    script = [sys.executable, "-c", _FAULTS.format(first=first)]
    return int(subprocess.run(script, check=True, capture_output=True, env=known).stdout)


@pytest.mark.skipif(not _has_glibc(), reason="other C libraries keep memory in ways of their own")
def test_arrays_that_follow_freed_arrays_begin_without_page_faults() -> None:
    assert _faults(_KEPT) < 2000 < _faults("")
