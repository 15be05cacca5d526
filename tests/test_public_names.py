"""The public names: listed, importable, and stated alike in the three places that Python's tools look at."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import warpsim

SOURCE = ast.parse(Path(warpsim.__file__).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", warpsim.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(warpsim, name) is getattr(import_module(f"warpsim.{warpsim._HOMES[name]}"), name)


def test_dir_shows_the_public_names() -> None:
    """In a new process, where none has been used yet: what tab completion offers."""
    code = "import warpsim; print(*dir(warpsim))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(shown.split()) == {*warpsim.__all__, "__version__"}


def test_type_checkers_see_the_same_names() -> None:
    block = next(node for node in SOURCE.body if isinstance(node, ast.If))
    stated = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert stated == warpsim._HOMES
    assert sorted(warpsim._HOMES) == sorted(warpsim.__all__)


def test_type_checkers_refuse_other_names() -> None:
    """A ``__getattr__`` that they see would give every misspelled name the type Any."""
    hidden = [
        node for node in SOURCE.body if isinstance(node, ast.If) and ast.unparse(node.test)[:3] == "not"
    ]
    assert "__getattr__" in {part.name for node in hidden for part in node.body if hasattr(part, "name")}
    assert "__getattr__" not in {node.name for node in SOURCE.body if isinstance(node, ast.FunctionDef)}


def test_help_names_what_users_begin_with() -> None:
    words = {word for line in (warpsim.__doc__ or "").splitlines() for word in line[4:16].split()}
    assert {"decode", "execute", "matmul", "explain", "load", "why", "view"} <= words & set(warpsim.__all__)


def test_a_name_that_is_none() -> None:
    with pytest.raises(AttributeError, match="module 'warpsim' has no attribute 'multiply'"):
        warpsim.multiply  # noqa: B018
