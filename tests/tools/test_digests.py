"""Digests that are committed: a selection as it is here, what is said of differences, and other systems."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.digests import __main__ as entry
from tools.digests import digests_file

FEW = {"opcode add": "a" * 16, "sm_80 m16n8k8: gemm 1": "b" * 16}


def test_the_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "digests.txt"
    digests_file.write(FEW, path)
    assert path.read_text() == f"{'a' * 16} opcode add\n{'b' * 16} sm_80 m16n8k8: gemm 1\n"
    assert digests_file.committed(path) == FEW


def test_every_digest_is_committed_once() -> None:
    lines = digests_file.PATH.read_text().splitlines()
    assert len(lines) == len(digests_file.committed()) > 450
    assert all(len(line.partition(" ")[0]) == 16 for line in lines)


def test_differences_are_named() -> None:
    found = {"opcode add": "c" * 16, "new": "d" * 16, "sm_80 m16n8k8: gemm 1": "b" * 16}
    assert digests_file.differences(found, FEW) == [
        f"opcode add: {'c' * 16}, expected {'a' * 16}",
        f"new: {'d' * 16}, expected nothing of this name",
    ]


@pytest.mark.parametrize(("every", "lines"), [(False, 0), (True, 1)])
def test_a_check_says_how_many_differ(
    every: bool, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "computed", lambda every, word: {"opcode add": "a" * 16})
    monkeypatch.setattr(entry, "committed", lambda: FEW)
    assert entry.check(every) == lines
    out = capsys.readouterr().out
    assert out.endswith(f"1 digests, {lines} different\n")
    assert ("sm_80 m16n8k8: gemm 1: not computed" in out) == every
    assert f"Python 3.{sys.version_info.minor}." in out


def test_another_system_runs_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The emulator is a program that says what it has been given."""
    emulator = tmp_path / "emulator"
    emulator.write_text('#!/bin/sh\necho "$@"; echo "$PYTHONPATH"\nexit 1\n')
    emulator.chmod(0o755)
    monkeypatch.setattr(
        sys,
        "argv",
        ["", "--check", "--few", "--only", "f64", "--root", str(tmp_path), "--emulator", str(emulator)],
    )
    with pytest.raises(SystemExit, match="has no Python in usr/bin"):
        entry.main()
    python = tmp_path / "usr" / "bin" / "python3.13"
    python.parent.mkdir(parents=True)
    python.write_text("")
    assert entry.main() == 1
    assert capfd.readouterr().out.splitlines() == [
        f"-L {tmp_path} {python} -m tools.digests --check --only f64 --few",
        f"{tmp_path / 'site'}:{entry.ROOT}",
    ]
