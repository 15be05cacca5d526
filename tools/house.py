"""Print the figures of the house: ``python -m tools.house``.

Counts, over ``warpsim/``: files of each folder, lines of each room, functions that are too long, functions
with too many parameters, circles of imports, basenames that stand more than once, and small files with one
importer. Imports count wherever they stand: in functions and under ``TYPE_CHECKING`` too.
tests/test_house.py holds the limits.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "warpsim"
LONGEST_FUNCTION = 40  # lines from "def" to the end, without docstring and inner functions
MOST_PARAMETERS = 6  # without self and cls
SMALL_FILE = 110  # lines

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of every module by its dotted name; a package goes by its own name."""
    files = sorted(ROOT.rglob("*.py"))
    return {_dotted(file.relative_to(ROOT)): ast.parse(file.read_text(encoding="utf-8")) for file in files}


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of a file, those of a node behind it."""
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def lines() -> dict[str, int]:
    """Return the number of lines of every module."""
    files = sorted(ROOT.rglob("*.py"))
    texts = {_dotted(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    return {name: len(text.splitlines()) for name, text in texts.items()}


def lines_per_room() -> Counter[str]:
    """Return the number of lines of every top-level package and module."""
    rooms: Counter[str] = Counter()
    for name, count in lines().items():
        rooms[name.partition(".")[0]] += count
    return rooms


def files_per_folder() -> Counter[str]:
    """Return the number of Python files of every folder, without ``__init__``."""
    modules = [file for file in ROOT.rglob("*.py") if file.stem != "__init__"]
    return Counter(file.parent.relative_to(ROOT.parent).as_posix() for file in modules)


def _functions() -> Iterator[tuple[str, Function]]:
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield f"{module}.{node.name}", node


def long_functions() -> dict[str, int]:
    """Return the lines of every function over the limit."""
    lengths = {name: _length(node) - _length_of_inner(node) for name, node in _functions()}
    return {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}


def _length(node: Function | ast.stmt) -> int:
    return (node.end_lineno or 0) - node.lineno + 1


def _length_of_inner(node: Function) -> int:
    inner = [part for part in node.body if isinstance(part, Function)]
    return sum(map(_length, [*inner, *(node.body[:1] if ast.get_docstring(node) else ())]))


def _parameters(node: Function) -> int:
    given = node.args
    names = [part.arg for part in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(set(names) - {"self", "cls"}) + bool(given.vararg) + bool(given.kwarg)


def many_parameters() -> dict[str, int]:
    """Return the parameters of every function over the limit."""
    counts = {f"{name}:{node.lineno}": _parameters(node) for name, node in _functions()}
    return {name: count for name, count in counts.items() if count > MOST_PARAMETERS}


@cache
def imports() -> dict[str, frozenset[str]]:
    """Return the modules of the package that every module imports."""
    modules = trees().keys()
    return {name: frozenset(_imported(name, tree) & modules) for name, tree in trees().items()}


@cache
def imports_while_running() -> dict[str, frozenset[str]]:
    """Return the same without those that annotations alone use."""
    modules = trees().keys()
    return {name: frozenset(_imported(name, _untyped(tree)) & modules) for name, tree in trees().items()}


def _untyped(tree: ast.Module) -> ast.Module:
    """Return a module without its blocks for type checkers."""
    body = [node for node in tree.body if not ast.unparse(node).startswith("if TYPE_CHECKING:")]
    return ast.Module(body=body, type_ignores=[])


def _imported(module: str, tree: ast.Module) -> set[str]:
    found = set()
    is_package = (ROOT / Path(*module.split("."))).is_dir()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = () if module == "__init__" else tuple(module.split("."))
            up = node.level - is_package - (module == "__init__")
            origin = ".".join((*parts[: len(parts) - up], *filter(None, [node.module])))
            names = {".".join(filter(None, (origin, alias.name))) for alias in node.names}
            inner = names & trees().keys()
            found |= inner
            if inner != names and origin:
                found.add(origin)
    return found


def circles() -> list[list[str]]:
    """Return every group of modules that import each other while they run, directly or through others."""
    reached = {name: _reached(name) for name in trees()}
    groups = {
        frozenset({name} | {other for other in reached[name] if name in reached[other]}) for name in reached
    }
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _reached(module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        fresh = imports_while_running()[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return found


def repeated_basenames() -> dict[str, list[str]]:
    """Return the modules of every basename that stands more than once."""
    places = defaultdict(list)
    for name in trees():
        file = ROOT / Path(*name.split("."))
        if not file.is_dir():
            places[file.name].append(name)
    return {name: modules for name, modules in sorted(places.items()) if len(modules) > 1}


def small_files_with_one_importer() -> dict[str, str]:
    """Return every file below the small size that one module alone imports, and that module."""
    importers = defaultdict(list)
    for name, inner in imports().items():
        for module in inner:
            importers[module].append(name)
    small = [name for name, count in lines().items() if count < SMALL_FILE and not (ROOT / name).is_dir()]
    return {name: importers[name][0] for name in small if len(importers[name]) == 1}


def _section(title: str, rows: Iterator[str]) -> str:
    texts = list(rows)
    return "\n".join((f"{title}:", *(f"  {text}" for text in texts), ""))


def report() -> str:
    """Return all figures as text."""
    long, many, repeated = long_functions(), many_parameters(), repeated_basenames()
    small = small_files_with_one_importer()
    return "\n".join(
        (
            _section(
                "files per folder, without __init__",
                (f"{count:4} {name}" for name, count in files_per_folder().most_common()),
            ),
            _section(
                f"lines, {sum(lines().values()):,} in all",
                (f"{count:6,} {name}" for name, count in lines_per_room().most_common()),
            ),
            _section(
                f"{len(long)} functions over {LONGEST_FUNCTION} lines",
                (f"{count:4} {name}" for name, count in Counter(long).most_common()),
            ),
            _section(
                f"{len(many)} functions with over {MOST_PARAMETERS} parameters",
                (f"{count:4} {name}" for name, count in Counter(many).most_common()),
            ),
            _section(f"{len(circles())} circles of imports", (", ".join(group) for group in circles())),
            _section(
                f"{len(repeated)} basenames more than once",
                (f"{name}: {', '.join(modules)}" for name, modules in repeated.items()),
            ),
            _section(
                f"{len(small)} files under {SMALL_FILE} lines with one importer",
                (f"{name} <- {importer}" for name, importer in small.items()),
            ),
        )
    )


if __name__ == "__main__":
    print(report())
