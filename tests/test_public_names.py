"""The public names: listed, importable, and stated alike in the three places that Python's tools look at."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

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
    blocks = [node for node in SOURCE.body if isinstance(node, ast.If)]
    stated = {
        alias.name: node.module
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }
    assert stated == warpsim._HOMES
    types = [name for names in warpsim._TYPES.values() for name in names.split()]
    assert sorted(warpsim._HOMES) == sorted([*warpsim.__all__, *types])


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


class _Elsewhere:
    """Names that signatures take from optional packages, or for type checkers alone."""


def _classes(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _classes(part)


def _signatures(name: str) -> Iterator[Any]:
    """Yield a public function, or the public methods and properties of a public class, and its fields."""
    public = getattr(warpsim, name)
    yield public
    for member, value in vars(public).items() if isinstance(public, type) else ():
        if not member.startswith("_") or member in ("__init__", "__call__", "__getitem__"):
            plain = getattr(value, "fget", None) or getattr(value, "func", None) or value
            plain = getattr(plain, "__func__", plain)
            if inspect.isfunction(plain):
                yield plain


@pytest.mark.parametrize("name", warpsim.__all__)
def test_types_of_signatures_have_public_names(name: str) -> None:
    known = {getattr(warpsim, each) for each in warpsim.__all__ if isinstance(getattr(warpsim, each), type)}
    known |= {getattr(warpsim, each) for names in warpsim._TYPES.values() for each in names.split()}
    late = {"Client": _Elsewhere, "Mode": _Elsewhere}
    named = {
        each
        for signature in _signatures(name)
        for hint in get_type_hints(signature, localns=late).values()
        for each in _classes(hint)
        if each.__module__.startswith("warpsim.") and not each.__name__.startswith("_")
    }
    assert not named - known
