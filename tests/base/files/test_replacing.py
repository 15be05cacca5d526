"""Files are written whole or not at all, by any number of threads, and never over what was read."""

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from warpsim.base.errors import TraceError
from warpsim.base.files.archives import (
    read_array,
    read_arrays,
    read_text,
    write_array,
    write_arrays,
    write_lines,
)
from warpsim.base.files.read_files import inputs_kept
from warpsim.base.files.replacing import replacing, together


def test_threads_that_write_one_path_leave_one_whole_file(tmp_path: Path) -> None:
    """Temporary names once held the process's number only, so that two threads wrote into one file."""
    path = tmp_path / "a.npz"

    def write(value: int) -> None:
        write_arrays(path, {"a": np.full(5000, value, np.uint32)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    (value,) = set(read_arrays(path)["a"].tolist())
    assert value in range(40)
    assert os.listdir(tmp_path) == ["a.npz"]


def test_the_mode_of_what_is_replaced_stays(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("old")
    path.chmod(0o640)
    write_lines(path, ["new"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "far" / "file")
    for text in ("made", "replaced"):
        write_lines(path, [text])
        assert path.is_symlink()
        assert (tmp_path / "far" / "file").read_text() == f"{text}\n"


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        write_lines(tmp_path / "a", ["x"])


def test_a_name_that_is_too_long_is_an_error_and_a_long_one_is_not(tmp_path: Path) -> None:
    write_lines(tmp_path / ("n" * 255), ["x"])
    with pytest.raises(OSError, match="too long"):
        write_lines(tmp_path / ("n" * 300), ["x"])
    assert os.listdir(tmp_path) == ["n" * 255]


def test_of_files_written_together_all_or_none_are_replaced(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text("old")

    def full() -> None:
        with together():
            write_lines(paths[0], ["new"])
            with replacing(paths[1]):
                raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="space"):
        full()
    assert [path.read_text() for path in paths] == ["old", "old"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_nothing_that_was_read_is_written_over_in_a_block_that_asks_for_it(tmp_path: Path) -> None:
    path, other = tmp_path / "a.npy", tmp_path / "hard.npy"
    write_array(path, np.arange(3))
    other.hardlink_to(path)
    with inputs_kept():
        read_array(path)
        for name in (path, other):
            with pytest.raises(TraceError, match="is one of the inputs"):
                write_array(name, np.arange(4))
    assert len(read_array(path)) == 3
    write_array(path, np.arange(4))
    assert len(read_array(path)) == 4


def test_names_that_are_no_text_are_written_as_escapes(tmp_path: Path) -> None:
    write_lines(tmp_path / "a", ["\udcff"])
    assert read_text(tmp_path / "a") == "\\udcff\n"


def test_an_array_that_promises_more_than_its_file_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    write_array(path, np.zeros(100, np.uint8))
    content = path.read_bytes().replace(b"(100,)", b"(9**9)"[:1] + b"99999,)"[:5] + b")")
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"claims|cannot be read"):
        read_array(path)
