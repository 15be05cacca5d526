"""The capture tool as it is used: from traces and vector sets to files with the same bits, simulated."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tools.capture import __main__ as entry
from tools.capture import campaign, command, sources
from tools.capture.operands import random_set
from tools.capture.simulated import SimulatedDriver
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace
from warpsim.workbench.vectors.formats import read_vectors, write_vectors

ROOT = Path(__file__).parents[2]
TRACES = ("mma_sp_m16n8k32_f16", "mma_sp_m16n8k64_mxf8f6f4", "wgmma_sp_m64n16k32_f16", "mma_m8n8k4_f16_volta")
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
FEW = ("--experiment", "tf32-low-bits")


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = command.run([str(argument) for argument in arguments])
    out, error = capsys.readouterr()
    return code, out, error


def report(folder: Path) -> dict[str, Any]:
    return json.loads((folder / campaign.REPORT).read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", TRACES)
def test_from_a_trace_to_vector_sets(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = ROOT / "traces" / f"{name}.ptx"
    target = trace.read_text().partition("//! target ")[2].split()[0]
    code, out, error = run(capsys, trace, "--simulate", target, "--out", tmp_path, "--verify")
    assert code == 0, error
    files = sorted((tmp_path / f"simulated_{target}" / "files").glob("*.npz"))
    events = [event.d for event in run_trace(read_trace(trace)).events]
    captured = [read_vectors(path) for path in files]
    assert len(out.splitlines()) == len(files) >= 2
    assert sum(map(len, captured)) == len(events)
    bits = {d.tobytes() for vectors in captured for d in vectors.d}
    assert bits == {d.tobytes() for d in events}
    for vectors in captured:
        assert vectors.provenance["chip"] == f"simulated {target}"
        assert f".target {target}\n" in vectors.provenance["ptx"]
        assert vectors.title == f"trace {name}.ptx"


def vector_file(folder: Path, **immediates: Any) -> Path:
    vectors = random_set(warpsim.decode(SPARSE, target="sm_90a"), 6, 3)
    path = folder / "set.npz"
    write_vectors(path, vectors)
    return path


def test_from_a_vector_set_to_a_vector_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = vector_file(tmp_path)
    code, out, _ = run(capsys, path, "--simulate", "sm_90a", "--out", tmp_path, "--json")
    assert code == 0
    record = json.loads(out)
    assert record.pop("seconds") >= 0
    assert record == {
        "path": "files/set.npz",
        "mnemonic": SPARSE,
        "cases": 6,
        "outputs": 768,
        "differences": 0,
    }
    ours, given = read_vectors(tmp_path / "simulated_sm_90a/files/set.npz"), read_vectors(path)
    assert list(ours.arrays()) == list(given.arrays())
    assert all(np.array_equal(ours.arrays()[name], array) for name, array in given.arrays().items())


def test_a_set_for_another_chip_is_captured_on_the_one_at_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = vector_file(tmp_path)
    assert run(capsys, path, "--simulate", "sm_80", "--out", tmp_path, "--verify")[0] == 0
    ours, given = read_vectors(tmp_path / "simulated_sm_80/files/set.npz"), read_vectors(path)
    assert ours.instruction.target == "sm_80"
    assert not np.array_equal(ours.d, given.d)  # another chip, other bits


def test_differences_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = vector_file(tmp_path)
    arguments = (path, "--simulate", "sm_90a", "--behave", "sm_80", "--out", tmp_path)
    code, out, error = run(capsys, *arguments, "--verify")
    assert code == 1
    assert "of 768 outputs differ; case 0, D[" in out
    assert "the device has 0x" in out
    (record,) = report(tmp_path / "simulated_sm_90a")["records"]
    assert record["differences"] > 0
    assert f"{record['differences']} in 1 sets differ from the model" in error
    (tmp_path / "simulated_sm_90a/files/set.npz").unlink()
    assert run(capsys, *arguments)[0] == 0  # capturing went well, whatever came


def test_the_decision_rule_is_printed_before_the_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(
        capsys, *FEW, "--simulate", "sm_80", "--out", tmp_path, "--behave", "tf32-low-bits:all bits"
    )
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"tf32-low-bits: {sources.EXPERIMENTS['tf32-low-bits'].question}"
    assert lines[2] == (
        "  decision rule: a candidate survives where it predicts every output bit for bit; "
        "the others are refuted"
    )
    assert lines.count("  VERDICT: all bits") == 6
    assert sum("VERDICT" in line for line in lines) == 6
    folder = tmp_path / "simulated_sm_80/experiments"
    verdicts = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    assert len(verdicts) == len(list(folder.glob("*.npz"))) == 6
    assert {one["verdict"] for one in verdicts} == {"all bits"}
    assert all(one["differences"]["dropped first"] > 0 for one in verdicts)


def test_what_is_done_is_not_done_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (*FEW, "--simulate", "sm_80", "--out", tmp_path, "--tar", tmp_path / "all.tgz")
    assert "6 sets captured" in run(capsys, *arguments)[2]
    victim = next((tmp_path / "simulated_sm_80/experiments").glob("*.npz"))
    victim.unlink()
    assert "1 sets captured" in (again := run(capsys, *arguments)[2])
    assert "5 were done before" in again
    assert len(report(tmp_path / "simulated_sm_80")["records"]) == 6
    with tarfile.open(tmp_path / "all.tgz") as tar:
        assert f"simulated_sm_80/experiments/{victim.name}" in tar.getnames()


def test_time_runs_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = run(
        capsys, *FEW, "--simulate", "sm_80", "--out", tmp_path, "--minutes", "1e-9", "--json"
    )
    assert (code, out) == (0, "")
    assert (
        "0 sets captured, 0 outputs, 0 in 0 sets differ from the model; 0 failed, 0 were done before, 6 left"
        in error
    )


def test_every_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sources, "_has_corners", lambda: False)
    code, out, error = run(
        capsys, "--all", "--simulate", "sm_75", "--out", tmp_path, "--cases", 3, "--soak", 4, "--verify"
    )
    assert code == 0, error
    forms = list(warpsim.instructions("sm_75"))
    assert len(out.splitlines()) == 2 * len(forms)
    kept = sorted((tmp_path / "simulated_sm_75/forms").glob("*.npz"))
    assert sorted(read_vectors(path).instruction.mnemonic for path in kept) == sorted(map(str, forms))
    assert len(kept) == len(forms)
    assert f"{2 * len(forms)} were done before" in run(
        capsys, "--all", "--simulate", "sm_75", "--out", tmp_path, "--cases", 3, "--soak", 4
    )[2]  # fmt: skip


def test_what_is_only_compared_is_kept_where_it_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sources, "_has_corners", lambda: False)
    forms = [warpsim.decode(SPARSE, target="sm_90a")]
    monkeypatch.setattr(warpsim, "instructions", lambda target: iter(forms))
    for behave, names in ((), {"random"}), (("--behave", "sm_80"), {"random", "soak_5"}):
        folder = tmp_path / str(len(names))
        run(capsys, "--all", "--soak", 5, "--simulate", "sm_90a", "--out", folder, *behave)
        found = {path.stem.rpartition(".")[2] for path in folder.rglob("*.npz")}
        assert found == names


def test_corner_sets_have_few_kernels() -> None:
    pytest.importorskip("warpsim.workbench.generation.generate")
    from tools.capture.capturing import parts_of

    items = [item for item in sources.form_items("sm_90a", sources.Size()) if ".corner" in item.path]
    for item in [items[0], next(item for item in items if "wgmma.mma_async.sp" in item.path)]:
        assert 1 <= len(list(parts_of(item.make()))) <= 16


def test_wide_forms_come_last_and_every_path_is_another() -> None:
    items = list(sources.form_items("sm_90a", sources.Size(soak=7)))
    assert len({item.path for item in items}) == len(items)
    kept = [item.kept for item in items]
    assert kept == sorted(kept, reverse=True)
    assert {item.mnemonic for item in items} == {str(form) for form in warpsim.instructions("sm_90a")}


# --- bundles ---------------------------------------------------------------------------------------


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose run.py can be imported."""
    folder = tmp_path / "bundle"
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name == "run" or name.partition(".")[0] == "capture"]:
        del sys.modules[name]


def test_a_bundle_there_and_back(runner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = vector_file(tmp_path)
    code, out, _ = run(capsys, path, *FEW, "--target", "sm_90a", "--emit", runner)
    assert (code, out) == (
        0,
        f"{runner}: 9 sets for sm_90a; run 'python3 {runner}/run.py' where the GPU is\n",
    )
    module = importlib.import_module("run")
    assert module.main(["--minutes", "0"], SimulatedDriver("sm_90a")) == 1
    assert capsys.readouterr().out == "0 sets done, 0 failed, 9 left for another run\n"
    assert module.main([], SimulatedDriver("sm_90a")) == 0
    assert capsys.readouterr().out == "9 sets done, 0 failed, 0 left for another run\n"
    code, out, _ = run(capsys, "--fold", runner, "--out", tmp_path)
    assert code == 0
    assert out.count("VERDICT: dropped first") == 8
    ours = read_vectors(tmp_path / "simulated_sm_90a/files/set.npz")
    assert np.array_equal(ours.d, read_vectors(path).d)
    assert ours.provenance["chip"] == "simulated sm_90a"


def test_a_bundle_from_another_version_is_refused(
    runner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, vector_file(tmp_path), "--target", "sm_90a", "--emit", runner)
    importlib.import_module("run").main([], SimulatedDriver("sm_90a"))
    kernels = json.loads((runner / "sets/00000.json").read_text())
    kernels[0]["ptx"] += "\n"
    (runner / "sets/00000.json").write_text(json.dumps(kernels))
    code, _, error = run(capsys, "--fold", runner, "--out", tmp_path)
    assert code == 3
    assert "set 0 has other kernels than this version of warpsim writes" in error


def test_a_bundle_needs_numpy_and_nothing_of_warpsim(runner: Path, tmp_path: Path) -> None:
    command.run([str(vector_file(tmp_path)), "--target", "sm_90a", "--emit", str(runner)])
    blocked = (
        "import sys; sys.modules.update(dict.fromkeys(('warpsim', 'tools', 'ml_dtypes', 'numba', 'click')))"
    )
    code = f"{blocked}; import run; print(run.main(['--help']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=runner, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "run the kernels of this bundle on a GPU" in done.stdout


# --- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "nothing to capture: name files, --experiment, --all or --everything (see --help)"),
        (("--plan", "--list"), 2, "--list and --plan do not go together"),
        ((*FEW, "--behave", "sm_80"), 2, "--behave is for a simulated device: add --simulate TARGET"),
        (
            (*FEW, "--simulate", "sm_80", "--behave", "nan:x"),
            2,
            "--behave nan:x: expected a target, or EXPERIMENT",
        ),
        (
            (*FEW, "--simulate", "sm_80", "--behave", "tf32-low-bits:x"),
            2,
            "--behave tf32-low-bits:x: tf32-low-bits has no candidate 'x' on sm_80; see --list",
        ),
        ((*FEW, "--simulate", "sm_1"), 2, "--simulate sm_1: the targets are sm_70, "),
        (("none.ptx", "--simulate", "sm_80"), 3, "No such file or directory"),
        (("none.npz", "--simulate", "sm_80"), 3, "none.npz"),
        (("--fold", "none"), 3, "none/index.json: no such file; a bundle has it once it has been run"),
        ((ROOT / "traces/wgmma_m64n8k8_tf32.ptx", "--simulate", "sm_80"), 3, "is not on sm_80"),
    ],
)
def test_failures(
    arguments: tuple[Any, ...], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, error = run(capsys, *arguments, "--out", tmp_path)
    assert (found, out.count("VERDICT")) == (code, 0)
    assert error.splitlines()[-1].startswith("capture: ")
    assert message in error


def test_a_device_that_is_lost_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SimulatedDriver, "_runs", lambda self, target: False)
    code, _, error = run(capsys, *FEW, "--simulate", "sm_80", "--out", tmp_path)
    assert code == 4
    assert error.count("FAILED") == 3
    assert "capture: 3 sets in a row failed, the last with: the driver refuses the PTX" in error


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "find_spec", lambda name: None if name == "ml_dtypes" else name)
    monkeypatch.setattr(sys, "argv", ["capture", "--all"])
    assert entry.main() == 4
    message = capsys.readouterr().err
    assert message.startswith(
        "cannot capture: Python package ml_dtypes is missing here. Either install it, or write"
    )


def test_plan_and_list(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, *FEW, "--plan", "--target", "sm_80")
    assert code == 0
    assert out.splitlines()[0].endswith(".tf32-low-bits.npz: 7 cases, 1 kernels")
    assert out.splitlines()[-1].startswith("6 sets for sm_80, 42 cases, ")
    code, out, _ = run(capsys, "--list")
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines() if line[0] != " "][:-1] == list(
        sources.EXPERIMENTS
    )
    code, out, _ = run(capsys, "--list", "--target", "sm_80", *FEW)
    assert "    rounded away: rounded to 10 fraction bits, ties away from zero" in out.splitlines()
