"""The processor and the BLAS that a benchmark is compared with."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

import numpy as np

_NAMES = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename64_")
_NAMES += ("openblas_get_corename",)


def machine() -> str:
    """Return the processor, as Linux names it, and what computes."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, BLAS core {blas_core()}"
    return f"{name}, {os.cpu_count()} cores; {versions}"


def blas_core() -> str:
    """Return the name of the core that OpenBLAS has kernels for, "unknown" where NumPy has another BLAS."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return "unknown"
    for path in sorted({line.split()[-1] for line in lines if "openblas" in line}):
        library = ctypes.CDLL(path)
        for symbol in _NAMES:
            if hasattr(library, symbol):
                function = getattr(library, symbol)
                function.restype = ctypes.c_char_p
                return str(function().decode())
    return "unknown"
