"""Compiled kernels on disk: found again by the next process, and never mistaken for one another.

Numba names a compiled function by its place in the process that compiled it, so that variants of one kernel
that were compiled in different processes have the same name. Each must still be the one that runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from warpsim.arithmetic import panels
from warpsim.arithmetic.kernels import batches
from warpsim.arithmetic.kernels.panels import panel_kernel
from warpsim.arithmetic.kernels.variants import Variant

VARIANT = Variant(width=8, stride=8, length=8, steps=1)

SCRIPT = """
import sys
import numpy as np
import warpsim

random = np.random.default_rng(0)
A = random.standard_normal((64, 16, 16)).astype(np.float16)
B = random.standard_normal((64, 16, 8)).astype(np.float16)
for target in sys.argv[1:]:
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target=target)
    operands = {"a": warpsim.pack(form, "a", A), "b": warpsim.pack(form, "b", B)}
    operands["c"] = warpsim.pack(form, "c", np.zeros((64, 16, 8), np.float32))
    expected = warpsim.execute(form, engine="reference", **operands)
    assert np.array_equal(warpsim.execute(form, **operands), expected), f"registers on {target}"
    expected = warpsim.unpack(form, "d", expected)
    many = np.tile(A, (64, 1, 1)), np.tile(B, (64, 1, 1))
    assert np.array_equal(warpsim.matmul(form, *many)[:64], expected), f"matrices on {target}"
    whole = warpsim.gemm(form, A[0], B[0])
    assert np.array_equal(whole, expected[0]), f"panels on {target}"
"""


def run(folder: Path, *targets: str) -> set[str]:
    """Execute on each target, one after the other in one new process; the files that the cache holds then."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", SCRIPT, *targets]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.name for path in folder.rglob("*.nbc")}


@pytest.mark.skipif(panels.interpreted(), reason="nothing is compiled")
def test_variants_compiled_apart_are_found_again_and_told_apart(tmp_path: Path) -> None:
    first = run(tmp_path, "sm_80")
    both = run(tmp_path, "sm_90a")
    assert first < both
    assert run(tmp_path, "sm_80", "sm_90a") == both  # nothing was compiled again
    assert run(tmp_path, "sm_90a", "sm_80") == both


def test_variants_have_names_of_their_own() -> None:
    kernels = [batches.register_kernel(VARIANT, bits, 0) for bits in (16, 32)]
    kernels += [panel_kernel(VARIANT), panel_kernel(replace(VARIANT, half=True))]
    assert len({kernel.__qualname__ for kernel in kernels}) == len(kernels)


UNWRITABLE = """
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []  # no place where a cache can be written
import numpy as np
import warpsim
form = warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", target="sm_80")
D = warpsim.matmul(form, np.full((8, 4), 2.0), np.full((4, 8), 3.0))
assert (D == 24).all()
"""


def test_kernels_work_where_no_cache_can_be_written() -> None:
    command = [sys.executable, "-W", "error", "-c", UNWRITABLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
