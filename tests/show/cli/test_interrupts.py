"""Ctrl-C at any moment, and a disk that is full in the middle of a file."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner
from warpsim.base.files.archives import write_array, write_arrays, write_lines
from warpsim.show.cli import cli, interrupts
from warpsim.show.cli.output import Failure, attempt

AT_AN_IMPORT = """
import os, signal, sys
from warpsim.__main__ import main
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["warpsim", "info", "--target", "sm_80"]
main()
"""


@pytest.mark.parametrize("name", ["click", "warpsim.show.cli.info", "numpy"])
def test_an_interrupt_while_something_is_imported(name: str) -> None:
    """The first is before there is any handler of verbs, the others are in a verb."""
    words = [sys.executable, "-c", AT_AN_IMPORT.format(name=name)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


def lost(seconds: float = 0.0) -> None:
    """Be interrupted, and go on."""
    with interrupts.interruptible():
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(seconds)


def otherwise(*, interrupted: bool) -> None:
    """Raise another error, after an interrupt or not."""
    with interrupts.interruptible():
        try:
            if interrupted:
                os.kill(os.getpid(), signal.SIGINT)
        finally:
            raise RuntimeError("what a class statement makes of it")


def test_an_interrupt_that_gets_lost_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_AGAIN", 0.05)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        lost(20.0)
    assert time.monotonic() - start < 10


def test_an_interrupt_that_was_lost_is_no_success() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        lost()
    with pytest.raises(KeyboardInterrupt):
        otherwise(interrupted=True)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(RuntimeError, match="class statement"):
        otherwise(interrupted=False)


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_other_signals_get_lost_as_little(name: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba made another error of it, and the exit code was 70."""
    number = getattr(signal, name)
    monkeypatch.setattr(interrupts, "_AGAIN", 0.05)

    def other_error() -> None:
        with interrupts.interruptible():
            try:
                os.kill(os.getpid(), number)
            except SystemExit as error:
                raise SystemError("a function returned a result with an exception set") from error

    def swallowed() -> None:
        with interrupts.interruptible(), suppress(SystemExit):
            os.kill(os.getpid(), number)

    def again() -> None:
        with interrupts.interruptible():
            with suppress(SystemExit):
                os.kill(os.getpid(), number)
            time.sleep(20)

    start = time.monotonic()
    for way in (other_error, swallowed, again):
        with pytest.raises(SystemExit) as left:
            way()
        assert left.value.code == code
    assert time.monotonic() - start < 10


def test_a_signal_where_nothing_can_be_raised_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """SIGTERM in a finaliser of llvmlite's objects printed a traceback."""

    class Object:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    def finalised() -> None:
        with interrupts.interruptible():
            Object()

    hook = sys.unraisablehook
    sys.unraisablehook = sys.__unraisablehook__
    try:
        with pytest.raises(SystemExit) as left:
            finalised()
    finally:
        sys.unraisablehook = hook
    assert (left.value.code, capsys.readouterr().err) == (143, "")


def test_sighup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts.interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


# --- a full disk -----------------------------------------------------------------------------------

LARGE = np.zeros(1 << 16, np.uint32)
WRITERS: dict[str, Callable[[Path], object]] = {
    "array.npy": lambda path: write_array(path, LARGE),
    "arrays.npz": lambda path: write_arrays(path, {"a": LARGE}, compressed=False),
    "lines.txt": lambda path: write_lines(path, ["a line"] * 10_000),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_does_not_fit(name: str, tmp_path: Path) -> None:
    """The error is that of the system, with the file; what was there stays, and nothing else."""
    path = tmp_path / name
    path.write_text("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)) as caught:
            WRITERS[name](path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(name, "before")]


def test_a_verb_names_the_file_that_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """It named the kernel that was launched."""

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out.npy")

    assert isinstance(attempt(full, Path("kernel.ptx")), Failure)
    assert capsys.readouterr().err == "out.npy: error: No space left on device\n"


def test_a_set_that_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is made it lies in files without a name."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("warpsim.workbench.vectors.parted.SpooledSet.add", full)
    form = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    words = ["vectors", form, "--target", "sm_90", "-n", "3", "-o", str(tmp_path / "set.npz")]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert (done.return_value, done.stderr) == (3, f"{tmp_path}/set.npz: error: No space left on device\n")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("verb", ["unpack", "diff"])
def test_a_closed_stdin_is_an_input_that_cannot_be_read(verb: str) -> None:
    form = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    words = {"unpack": ["unpack", form, "a", "-"], "diff": ["diff", "-", "-"]}[verb]
    line = " ".join([sys.executable, "-m", "warpsim", *words, "<&-"])
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "<stdin>:1:1: error: stdin is closed\n"
