"""Files of PyTorch are read by PyTorch, which may not run what they hold. (Others: test_safetensors.py)"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import pytest

from warpsim.base.errors import TraceError
from warpsim.workbench.inputs.tensor_files import read_tensors


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.pt").touch()


class _Torch(ModuleType):
    """Stands in for the library: what it is asked to load, and how."""

    def __init__(self, content: Any) -> None:
        super().__init__("torch")
        self.content, self.calls = content, list[tuple[bytes, dict[str, Any]]]()

    def load(self, file: BinaryIO, **options: Any) -> Any:
        self.calls.append((file.read(), options))
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


@pytest.mark.parametrize("content", [np.arange(3), {"A": np.arange(3)}])
def test_only_tensors_are_unpickled(content: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickles run programs: a file of weights must not."""
    torch = _Torch(content)
    monkeypatch.setitem(sys.modules, "torch", torch)
    (found,) = read_tensors(Path("a.pt")).items()
    assert found[0] == ("A" if isinstance(content, dict) else "")
    assert found[1].tolist() == [0, 1, 2]
    assert torch.calls == [(b"", {"map_location": "cpu", "weights_only": True})]


def test_what_torch_refuses_is_an_error_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", _Torch(ValueError("no weights\nand more")))
    with pytest.raises(TraceError, match=r"^a\.pt: cannot be read as tensors: no weights$"):
        read_tensors(Path("a.pt"))


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(TraceError, match=r"PyTorch, which is not installed: save \.safetensors"):
        read_tensors(Path("a.pt"))
