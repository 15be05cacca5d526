"""The command as a process: streams, signals, exit codes, files; what no call in this process can show."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import warpsim.show.cli
from tests.helpers.printing import PRINTING
from warpsim.show.cli import main

TRACES = Path(__file__).parents[3] / "traces"
TRACE = TRACES / "mma_m16n8k16_f16.ptx"
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FULL = Path("/dev/full")


def command(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "warpsim", *map(os.fspath, map(str, arguments))]
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False, **options}
    return subprocess.run(words, **options)  # type: ignore[call-overload,no-any-return]


def exit_code(*arguments: object) -> object:
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    return left.value.code


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A copy of a trace and its data."""
    for suffix in (".ptx", ".npz"):
        (tmp_path / TRACE.with_suffix(suffix).name).write_bytes(TRACE.with_suffix(suffix).read_bytes())
    return tmp_path / TRACE.name


def test_an_error_that_nobody_expected_has_an_exit_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was 1, which also says that a bit differs."""

    def broken(*_: object, **__: object) -> None:
        raise KeyError("nobody thought of this")

    monkeypatch.setattr(warpsim.show.cli.cli, "main", broken)
    assert exit_code("info") == 70
    shown = capsys.readouterr().err
    assert "nobody thought of this" in shown
    assert shown.rstrip().endswith("this is a mistake of warpsim: please report it")


def test_no_memory_is_no_mismatch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def large(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 4 TiB")

    monkeypatch.setattr(warpsim.show.cli.cli, "main", large)
    assert exit_code("info") == 4
    assert capsys.readouterr().err == "warpsim: error: not enough memory: Unable to allocate 4 TiB\n"


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_full_streams(tmp_path: Path) -> None:
    """A diagnostic that found no room on stderr once made the exit code 1."""
    with FULL.open("w") as full:
        assert command("run", tmp_path / "nope.ptx", stderr=full, capture_output=False).returncode == 3
        assert command("run", "--nope", stderr=full, capture_output=False).returncode == 2
        done = command("info", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 3
    assert done.stderr == "warpsim: error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("suffix", ["", ".ptx", ".npz", ".npy", ".cu"])
@pytest.mark.parametrize("verb", ["run", "view", "verify", "check", "diff", "explain --element 0,0", "gemm"])
def test_a_name_that_is_too_long_for_a_file(
    verb: str,
    suffix: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was said to be an output that cannot be written."""
    monkeypatch.chdir(tmp_path)
    name = "n" * 300 + suffix
    more = {"gemm": [DENSE, name, name, "-o", "d.npy", "--target", "sm_80"], "diff": [name, name]}
    assert exit_code(*verb.split(), *more.get(verb, [name])) in (2, 3)
    shown = capsys.readouterr().err
    assert "output" not in shown
    assert "nnn" in shown or verb == "diff"


def test_a_report_does_not_replace_its_trace(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trace.parent)
    page = trace.rename("r.html")
    text = page.read_text()
    assert exit_code("view", "r.html") == 3
    assert "r.html is one of the inputs" in capsys.readouterr().err
    assert Path("r.html").read_text() == text


def test_no_output_replaces_an_input(trace: Path, tmp_path: Path) -> None:
    data = trace.with_suffix(".npz")
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(a, np.zeros((16, 16), np.float16))
    np.save(b, np.zeros((16, 8), np.float16))
    words = tmp_path / "w.txt"
    words.write_text("0x0\n")
    before = {path: path.read_bytes() for path in (trace, data, a, b, words)}
    assert exit_code("run", trace, "--out", data) == 3
    assert exit_code("gemm", DENSE, a, b, "-o", b, "--target", "sm_80") == 3
    assert exit_code("pack", DENSE, "a", a, "-o", a) == 3
    assert exit_code("unpack", DENSE, "a", words, "-o", words) == 3
    assert exit_code("explain", trace, "--element", "0,0", "--html", trace) == 3
    assert exit_code("verify", trace, "--junit", trace) == 3
    assert {path: path.read_bytes() for path in before} == before


def test_nothing_half_written_stays_after_sigterm(tmp_path: Path) -> None:
    """The temporary file stayed."""
    script = (
        "import sys, time, warpsim.show.cli as c, warpsim.base.files.archives as f, numpy as np\n"
        "def slow(*a, **k):\n"
        "    with f.replacing(__import__('pathlib').Path('d.npy')) as t:\n"
        "        t.write_bytes(b'x'); print('writing', flush=True); time.sleep(30)\n"
        "c.cli.main = slow\n"
        "c.main([])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(TRACES.parent)},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    assert os.listdir(tmp_path) == []


def test_a_pipe_that_closes_while_a_kernel_prints(tmp_path):
    """``launch … | head -n 1``: the reader goes, and the launch ends as if it had stayed."""
    path = tmp_path / "k.ptx"
    path.write_text(PRINTING)
    command = [sys.executable, "-m", "warpsim", "launch", str(path), "--entry", "k"]
    arguments = ["--grid", "60", "--block", "1024"]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"hi\n"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 0
