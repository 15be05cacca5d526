"""Warming up: afterwards nothing is compiled any more, whatever is executed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from tests.helpers.compilation import done_by_numpy
from warpsim.arithmetic.kernels._jit import interpreted
from warpsim.cli import cli
from warpsim.execution.compilation_budget import PROCESS
from warpsim.products import warming

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"  # which sm_75 has not
EXECUTE = """
import numpy as np
import warpsim
from warpsim.execution.compilation_budget import PROCESS
from warpsim.products import warming
PROCESS.limit = 0
for form in warpsim.instructions("sm_75"):
    words = {name: np.zeros((32, n), np.uint32) for name, n in form.registers.items() if name != "d"}
    warpsim.execute(form, **words)
    shapes = [form.matrix_shape(operand) for operand in "abc"]
    many = [np.zeros((1 << 12, *shape), form.format(x).code_dtype) for x, shape in zip("abc", shapes)]
    warpsim.matmul(form, *many)
    if form.c == form.d:
        warpsim.gemm(form, *(matrix[0] for matrix in many))
"""


def files(folder: Path, *arguments: str) -> set[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {path.name for path in folder.rglob("*.nbc")}


@pytest.mark.skipif(interpreted(), reason="nothing is compiled")
def test_nothing_is_compiled_afterwards(tmp_path: Path) -> None:
    warm = files(tmp_path, "-m", "warpsim", "warmup", "--target", "sm_75")
    assert warm
    assert files(tmp_path, "-c", EXECUTE) == warm


def test_every_kernel_of_every_form_has_its_job() -> None:
    jobs, every = list(warming._jobs("sm_90a")), list(warming._jobs(None))
    assert 100 < len(jobs) < len(every) < 200
    assert any("wgmma" in name for name, _ in jobs)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(warming, "_jobs", lambda _: [(name, lambda: None) for name in ("one", "two")])
    monkeypatch.setattr(warming, "interpreted", lambda: False)
    assert warpsim.warmup(progress=lambda *news: done.append(str(news))) == 2
    assert done == ["(0, 2)", "(1, 2)"]


def test_kernels_compute_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the first execution of an instruction is left to NumPy."""
    monkeypatch.setattr(warming, "_jobs", lambda _: [("one", lambda: None)])
    monkeypatch.setattr(warming, "interpreted", lambda: False)
    form, other = next(warpsim.instructions("sm_75")), warpsim.decode(SPARSE, target="sm_90a")
    with done_by_numpy():
        assert PROCESS.spend(form.product, 1)
        warpsim.warmup("sm_75")
        assert not PROCESS.spend(form.product, 1)
        assert PROCESS.spend(other.product, 1)


def test_the_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_jobs", lambda _: [])
    assert CliRunner().invoke(cli, ["warmup"]).output == "there is no JIT: nothing to compile\n"
    done = CliRunner().invoke(cli, ["warmup", "--target", "sm_1"])
    assert done.exit_code == 2
    assert "'sm_1' is none of" in done.stderr


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(warpsim.IllegalInstruction, match="unknown target 'sm_1'"):
        warpsim.warmup("sm_1")
