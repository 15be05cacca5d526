"""Which module may import which: the layers of the package, and who may touch what outside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "warpsim"
LAYERS = (  # a module imports its own layer and those before it
    "errors environment kernels versions",
    "threads formats layout sparsity",
    "architectures registers memory encoding instruction",
    "fragments descriptor descriptor_mistakes families reference numerics integers panels recipes batches "
    "arrangements",
    "pipeline ptx",
    "register_file moves machine hazards variables synchronization shared_statements warpgroup races "
    "interface product_requests accumulation connection distribution matrix_products linting diagnosis "
    "register_text inspection archives checks traces views report vectors vector_formats verification "
    "outcomes register_traces generation warming",
    "cli",
    "__init__ __main__",
)
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names.split()}
NEVER = {"pipeline": {"ptx"}, "reference": {"kernels", "encoding", "numerics"}, "kernels": {"errors"}}
ONLY_IN = {"numba": "kernels", "click": "cli", "rich": "cli", "print": "cli"}
FILES = {"open", ".open", ".read_text", ".read_bytes", ".write_text", ".write_bytes", ".fromfile", ".tofile"}
FILES_IN = {"archives", "cli", "kernels", "vector_formats", "versions"}  # kernels and versions read source
MODULES = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def imports(path: Path) -> Iterator[str]:
    """Parts of this package, and other packages, that a module imports anywhere in it."""
    for node in ast.walk(MODULES[path]):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            folder = ".".join(path.parts[: -node.level]) if node.level else ""
            origin = ".".join(filter(None, (folder, node.module)))
            names = [origin] if origin else names
        yield from (name.partition(".")[0] for name in names)


def calls(path: Path) -> set[str]:
    """Names of the functions that a module calls, and of the methods with a dot before them."""
    functions = [node.func for node in ast.walk(MODULES[path]) if isinstance(node, ast.Call)]
    names = {one.id for one in functions if isinstance(one, ast.Name)}
    return names | {f".{one.attr}" for one in functions if isinstance(one, ast.Attribute)}


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_who_imports_and_calls_what(path: Path) -> None:
    part = path.parts[0].removesuffix(".py")
    assert part in LAYER, f"{part} has no layer yet: give it one in this test"
    for name in imports(path):
        assert LAYER.get(name, 0) <= LAYER[part], f"{path} imports {name}, which is of a later layer"
        assert name not in NEVER.get(part, ()), f"{path} imports {name}"
    for name in {*imports(path), *calls(path)}:
        assert ONLY_IN.get(name, part) == part, f"{path} uses {name}"
    assert part in FILES_IN or not calls(path) & FILES, f"{path} opens files"


def test_the_rules_see_what_modules_do() -> None:
    """Imports of every sort are found: with one dot and two, late ones, and those of other packages."""
    assert {"click", "traces", "views", "archives"} <= set(imports(Path("cli/run.py")))
    assert {"errors", "checks", "views"} <= set(imports(Path("views/report.py")))
    assert "numba" in set(imports(Path("kernels/_jit.py")))
    assert {"echo", ".echo", "open"} <= calls(Path("cli/output.py"))
