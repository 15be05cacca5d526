"""Named pipes as inputs: read where a program writes, and given up where none does."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from warpsim.base.errors import TraceError
from warpsim.base.files import named_pipes
from warpsim.base.files.archives import read_content, read_lines, read_text
from warpsim.show.cli import cli


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(named_pipes, "_PATIENCE", 0.2)
    os.mkfifo(tmp_path / "pipe.ptx")
    return tmp_path / "pipe.ptx"


def test_a_pipe_that_is_written_to_is_read(pipe: Path) -> None:
    writer = Thread(target=pipe.write_bytes, args=(b"first\nsecond\n",))
    writer.start()
    assert list(read_lines(pipe)) == ["first", "second"]
    writer.join()


def test_a_pipe_without_a_writer_is_given_up(pipe: Path) -> None:
    for read in (read_text, read_content, lambda path: list(read_lines(path))):
        with pytest.raises(TraceError, match=r"no program has opened for writing within 0\.2 s"):
            read(pipe)


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


def test_a_map_is_not_read_without_end() -> None:
    result = CliRunner().invoke(cli, ["desc", "--map", "/dev/zero"], standalone_mode=False)
    assert result.return_value == 3
    assert "more than 67,108,864 bytes" in result.stderr
