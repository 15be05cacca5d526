"""Inputs: pipes are read where a program writes, and no file is read without end or beyond its bound."""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from click.testing import CliRunner

from warpsim.base.errors import OperandError, TraceError
from warpsim.base.files import opening
from warpsim.base.files.archives import (
    LARGEST_OPERAND,
    LARGEST_TEXT,
    map_array,
    read_array,
    read_arrays,
    read_content,
    read_lines,
    read_text,
)
from warpsim.programs.exec.processes import runs_python, why_unfit
from warpsim.programs.launch.loading import load
from warpsim.programs.launch.reference_runs import reference_of
from warpsim.show.cli import cli
from warpsim.workbench.vectors.formats import read_vectors

FORM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(opening, "_PATIENCE", 0.2)
    os.mkfifo(tmp_path / "pipe.ptx")
    return tmp_path / "pipe.ptx"


def test_a_pipe_that_is_written_to_is_read(pipe: Path) -> None:
    writer = Thread(target=pipe.write_bytes, args=(b"first\nsecond\n",))
    writer.start()
    assert list(read_lines(pipe)) == ["first", "second"]
    writer.join()


def test_an_empty_pipe_is_an_empty_file(pipe: Path) -> None:
    writer = Thread(target=pipe.write_bytes, args=(b"",))
    writer.start()
    assert read_content(pipe) == b""
    writer.join()


def test_a_pipe_without_a_writer_is_given_up(pipe: Path) -> None:
    for read in (read_text, read_content, lambda path: list(read_lines(path))):
        with pytest.raises(TraceError, match=r"no program has opened for writing within 0\.2 s"):
            read(pipe)


def test_a_writer_that_stays_silent_is_given_up(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_SILENCE", 0.3)
    descriptor = os.open(pipe, os.O_RDWR)
    os.write(descriptor, b"first\n")
    with pytest.raises(TraceError, match=r"no program has written to within 0\.3 s"):
        list(read_lines(pipe))
    os.close(descriptor)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("pipe", "expected a regular file, given a pipe"),
        ("/dev/zero", "expected a regular file, given a device"),
        ("sparse", "more than 67,108,864 bytes"),
        ("folder", "Is a directory"),
    ],
)
def test_what_nvcc_and_python_read_is_bounded(kind: str, message: str, tmp_path: Path) -> None:
    """They read a file at once: 4 GiB of zeros took 8."""
    for suffix, read in ((".cu", load), (".py:f", reference_of)):
        path = tmp_path / f"file{suffix.removesuffix(':f')}"
        if kind == "sparse":
            path.touch()
            os.truncate(path, LARGEST_TEXT + 1)
        else:
            {"pipe": os.mkfifo, "folder": os.mkdir}.get(kind, lambda path: path.symlink_to(kind))(path)
        with pytest.raises((OperandError, TraceError), match=message):
            read(f"{tmp_path}/file{suffix}")


@pytest.mark.parametrize("words", [["check"], ["launch"], ["lint"], ["desc", "--map"]])
def test_commands_give_up(pipe: Path, words: list[str]) -> None:
    result = CliRunner().invoke(cli, [*words, str(pipe)], standalone_mode=False)
    assert result.return_value == 3
    assert "pipe.ptx: error: a named pipe that no program has opened" in result.stderr


def test_pipes_of_a_shell_are_read_however_late(pipe: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"text")
    os.close(writing)
    assert read_content(Path(f"/dev/fd/{reading}")) == b"text"
    os.close(reading)


def test_a_pipe_is_read_up_to_the_bound_of_its_kind(pipe: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"0123456789\n" * 10)
    os.close(writing)
    with pytest.raises(TraceError, match=r"more than 64 bytes$"):
        list(read_lines(Path(f"/dev/fd/{reading}"), 64))
    os.close(reading)


def test_the_empty_device_is_an_empty_file() -> None:
    assert read_text(Path("/dev/null")) == ""


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "FILE.npz"],
        ["convert", "FILE.npz", "out.hex"],
        ["lint", "FILE.npz"],
        ["view", "FILE.npz", "-o", "out.html"],
        ["run", "FILE.npz"],
        ["explain", "FILE.npz", "--element", "0,0"],
        ["vectors", "FILE.npz", "--coverage"],
        ["diff", "FILE.npz", "FILE.npz"],
        ["diff", "set.npz", "d=FILE.log"],
        ["diff", "set.npz", "d=FILE.npy"],
        ["replay", "--target", "sm_80", "FILE.log"],
        ["unpack", FORM, "a", "FILE.npz"],
        ["pack", FORM, "a", "FILE.npy"],
        ["metadata", "f16", "FILE.npy", "--rows", "16", "--k", "64", "--detect"],
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "/dev/urandom"])
def test_no_verb_waits_or_reads_without_end(
    words: list[str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(opening, "_PATIENCE", 0.1)
    made = ["vectors", FORM, "--target", "sm_80", "-n", "2", "--kind", "random", "-o", "set.npz"]
    assert CliRunner().invoke(cli, made, standalone_mode=False).return_value == 0
    for suffix in ("npz", "npy", "log"):
        path = tmp_path / f"FILE.{suffix}"
        os.mkfifo(path) if kind == "pipe" else path.symlink_to(kind)
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert result.return_value == 3
    assert "given a" in result.stderr or "no program has opened" in result.stderr


def test_an_array_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (LARGEST_OPERAND,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + LARGEST_OPERAND)
    with pytest.raises(TraceError, match=r"more than 1,073,741,824 bytes$"):
        read_array(path)
    assert map_array(path).shape == (LARGEST_OPERAND,)


def test_the_directory_of_an_archive_is_bounded(tmp_path: Path) -> None:
    """A sparse file whose end claims a directory of gigabytes, which zipfile reads at once."""
    path, size = tmp_path / "a.npz", 1 << 31
    made = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, size, 0, 0)
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(made)
    with pytest.raises(TraceError, match=r"its directory claims 2,147,483,648 bytes"):
        read_vectors(path)
    with pytest.raises(TraceError, match=r"more than 285,212,672 bytes"):
        read_arrays(path)


def test_columns_first_and_empty_arrays(tmp_path: Path) -> None:
    for array in (np.asfortranarray(np.arange(6).reshape(2, 3)), np.zeros((0, 4)), np.array(7)):
        np.save(tmp_path / "a.npy", array)
        for read in (read_array, map_array):
            assert np.array_equal(read(tmp_path / "a.npy"), array)


def test_a_program_may_be_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "program"
    os.mkfifo(path, 0o755)
    assert not runs_python(str(path))
    assert why_unfit(str(path)) is None


def test_an_archive_may_hold_nothing(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w"):
        pass
    assert read_arrays(tmp_path / "a.npz") == {}
