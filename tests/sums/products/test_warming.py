"""Warming up: what is compiled, and who computes from then on.

That nothing is compiled afterwards is shown where kernels are compiled cold anyway: test_environment.py.
"""

from __future__ import annotations

import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from tests.helpers.compilation import done_by_numpy
from warpsim.show.cli import cli
from warpsim.sums.execution.compilation_budget import PROCESS
from warpsim.sums.products import warming

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"  # which sm_75 has not


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
    assert "unknown target 'sm_1'; known are" in done.stderr


def test_an_unknown_target_is_an_error() -> None:
    with pytest.raises(warpsim.IllegalInstruction, match="unknown target 'sm_1'"):
        warpsim.warmup("sm_1")
