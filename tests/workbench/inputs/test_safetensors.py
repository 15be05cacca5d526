"""Files of safetensors: a tensor is read when it is taken, and headers that lie are refused. (Verbs that read
them: test_cli_diff.py)
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import TraceError
from warpsim.base.files.archives import MOST_MEMBERS, read_array, read_arrays, write_arrays
from warpsim.workbench.inputs.tensor_files import read_tensors

DATA = np.arange(6, dtype=np.int32)
WHOLE = {"dtype": "I32", "shape": [2, 3], "data_offsets": [0, 24]}


def safetensors(path: Path, header: Any, claimed: int | None = None) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(
        (len(text) if claimed is None else claimed).to_bytes(8, "little") + text + DATA.tobytes()
    )
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.safetensors"


def test_tensors_share_bytes(file: Path) -> None:
    parts = {"dtype": "I32", "shape": [2], "data_offsets": [16, 24]}
    found = read_tensors(safetensors(file, {"whole": WHOLE, "__metadata__": {"a": "b"}, "end": parts}))
    assert list(found) == ["whole", "end"]
    assert found["whole"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["end"].tolist() == [4, 5]
    assert "__metadata__" not in found
    with pytest.raises(KeyError):
        found["none"]


def test_what_is_not_taken_is_not_read(tmp_path: Path) -> None:
    """A tensor for each of a thousand names over the same bytes was a thousand copies of them."""
    file, size = tmp_path / "many.safetensors", 1 << 40
    entry = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
    text = json.dumps({**{f"t{index}": entry for index in range(1000)}, "small": WHOLE}).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + DATA.tobytes())
    os.truncate(file, 8 + len(text) + size)  # a hole: no byte of it is on the disk
    found = read_tensors(file)
    assert len(found) == 1001
    assert found["small"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (WHOLE | {"data_offsets": [0, 28]}, "do not lie in bytes 0 to 28 of 24"),
        (WHOLE | {"data_offsets": [4, 28]}, "do not lie in bytes 4 to 28 of 24"),
        (WHOLE | {"data_offsets": [24, 0]}, "do not lie in bytes 24 to 0 of 24"),
        (WHOLE | {"data_offsets": [-24, 0]}, "do not lie in bytes -24 to 0 of 24"),
        (WHOLE | {"shape": [2, 4]}, "do not lie in bytes 0 to 24 of 24"),
        (WHOLE | {"shape": "ab"}, "cannot be read as safetensors"),
        (WHOLE | {"dtype": "X8"}, "cannot be read as safetensors: 'X8'"),
        (WHOLE | {"data_offsets": [0]}, "cannot be read as safetensors"),
        ({}, "cannot be read as safetensors"),
        (3, "cannot be read as safetensors"),
    ],
)
def test_headers_are_checked_before_a_tensor_is_taken(file: Path, entry: Any, said: str) -> None:
    with pytest.raises(TraceError) as raised:
        read_tensors(safetensors(file, {"good": WHOLE, "bad": entry}))
    assert str(raised.value).startswith(f"{file}: cannot be read as safetensors")
    assert said in raised.value.message


@pytest.mark.parametrize("header", [[WHOLE], None, "text"])
def test_headers_that_are_no_table(file: Path, header: Any) -> None:
    with pytest.raises(TraceError, match="cannot be read as safetensors"):
        read_tensors(safetensors(file, header))


@pytest.mark.parametrize("claimed", [1 << 20, 1 << 63])
def test_headers_longer_than_the_file(file: Path, claimed: int) -> None:
    with pytest.raises(TraceError, match=f"its header claims {claimed:,} bytes"):
        read_tensors(safetensors(file, {}, claimed))


@pytest.mark.parametrize("read", [read_tensors, read_array])
@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".npy"])
def test_pipes_and_devices_are_not_opened(tmp_path: Path, suffix: str, read: Any) -> None:
    """A pipe without a writer waited without end, and a device has no end."""
    pipe, device = tmp_path / f"pipe{suffix}", tmp_path / f"device{suffix}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with pytest.raises(TraceError, match=r"expected a regular file, given a (pipe|device)"):
            read(path)


def test_members_of_an_archive_are_counted_before_they_are_read(tmp_path: Path) -> None:
    """Sixty thousand empty arrays took half a minute."""
    path, empty = tmp_path / "a.npz", np.zeros(0, np.uint8)
    write_arrays(path, {f"m{index}": empty for index in range(MOST_MEMBERS + 1)})
    with pytest.raises(TraceError, match=r"4,097 arrays, more than 4,096$"):
        read_arrays(path)
