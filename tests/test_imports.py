"""Which package may import which: one strict order, what the right wing must not know, who may do what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.families import each_of

ROOT = Path(__file__).parent.parent / "warpsim"
ORDER = (  # a package imports itself and those before it
    *(
        "errors",
        "environment",
        "folders",
        "isa",
        "files",
        "ptx",
        "arithmetic",
        "execution",
        "cluster",
        "products",
    ),
    *("machine", "checks", "recording", "host", "exec", "traces", "vectors", "generation"),
    *("diagnosis", "views"),
    *("explanation", "debugger", "report", "testing", "cli", "__init__", "__main__"),
)
ROOMS = {  # package -> its rooms in order; modules beside the rooms come last
    "diagnosis": (
        "library",
        "dumps",
        "locate",
        "origins",
        "search",
        "loops",
        "recordings",
        "units",
        "verdicts",
        "linting",
    ),
    "machine": ("state", "bind", "native", "run", "opcodes", "load"),
    "generation": ("sums", "cases", "coverage"),
}
NEVER = {  # part of the package -> parts and packages that it must not import, though they come before it
    "isa": {"files"},
    "ptx": {"files"},
    "arithmetic": {
        "files",
        "ptx",
        "instruction",
        "operand_places",
        "registers",
        "layouts",
        "fragments",
        "descriptors",
        "metadata",
        "memory",
    },
    "arithmetic.kernels": {"isa", "errors", "ml_dtypes"},
    "arithmetic.reference": {"kernels", "planes", "codes", "numerics", "ml_dtypes", "numba"},
    **{f"execution.{name}": {"ptx"} for name in ("pipeline", "inputs", "recipes", "fused_registers")},
}
TYPES_OF_LATER = {"host.launch_execution": {"diagnosis.verdicts"}}  # names that annotations alone use
ONLY_IN = {  # other packages, print -> the parts that may use them
    "numba": ("arithmetic.kernels", "host.compilers.numba_kernels"),
    "llvmlite": ("machine.native.objects",),
    "triton": ("host.compilers.triton_kernels",),
    "pytest": ("testing.plugin",),
    **dict.fromkeys(("click", "rich", "prompt_toolkit", "print"), ("cli",)),
}
FILES = {"open", ".open", ".read_text", ".read_bytes", ".write_text", ".write_bytes", ".fromfile", ".tofile"}
FILES_IN = (
    *("files", "cli", "vectors.formats"),
    *("cluster.versions", "arithmetic.kernels"),  # both read source
    *("exec.libraries", "exec.processes"),  # what is compiled; what Linux says of clients
    "folders",  # which locks them
)
MODULES = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py"))]


def dotted(path: Path) -> str:
    """The module of a file, as "isa.formats"; a package goes by its own name."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def tree(path: Path) -> ast.Module:
    """A module as it is parsed."""
    return ast.parse((ROOT / path).read_text())


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules of this package ("isa.formats") and other packages that a module imports anywhere in it."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        yield from imported_by(path, node)


def imported_by(path: Path, node: ast.AST) -> Iterator[str]:
    """Yield what a node of a module's tree imports; nothing of other nodes than imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        folder = ".".join(path.parts[: -node.level]) if node.level else ""
        origin = ".".join(filter(None, (folder, node.module)))
        for alias in node.names:
            name = ".".join(filter(None, (origin, alias.name)))
            yield name if is_module(name) else origin


@cache
def is_module(name: str) -> bool:
    """Whether there is a module or package of that name here."""
    place = ROOT / Path(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


@cache
def calls(path: Path) -> set[str]:
    """Names of the functions that a module calls, and of the methods with a dot before them."""
    functions = [node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    names = {one.id for one in functions if isinstance(one, ast.Name)}
    return names | {f".{one.attr}" for one in functions if isinstance(one, ast.Attribute)}


def within(module: str, part: str) -> bool:
    """Whether a module is that part of the package or lies in it."""
    return module == part or module.startswith(f"{part}.")


@each_of(MODULES)
def test_who_imports_and_calls_what(path: Path) -> None:
    module = dotted(path)
    package = module.partition(".")[0]
    assert package in ORDER, f"{package} has no place in the order yet: give it one in this test"
    for name in imports(path):
        first = name.partition(".")[0]
        late = first in ORDER and ORDER.index(first) > ORDER.index(package)
        late = late and name not in TYPES_OF_LATER.get(module, ())
        assert not late, f"{module} imports {name}, which comes after it"
        for part, forbidden in NEVER.items():
            assert not (within(module, part) and forbidden & set(name.split("."))), f"{module} imports {name}"
    for name in {*imports(path), *calls(path)}:
        assert any(within(module, one) for one in ONLY_IN.get(name, (module,))), f"{module} uses {name}"
    reads = calls(path) & FILES
    assert not reads or any(within(module, part) for part in FILES_IN), f"{module} opens files"


@pytest.mark.parametrize("module", TYPES_OF_LATER)
def test_types_of_later_rooms_are_imported_for_annotations_alone(module: str) -> None:
    """They stand under TYPE_CHECKING, so that no module is imported early while a program runs."""
    path = Path(*module.split(".")).with_suffix(".py")
    blocks = [node for node in tree(path).body if ast.unparse(node).startswith("if TYPE_CHECKING:")]
    inside = {ast.unparse(node) for block in blocks for node in ast.walk(block)}
    for name in TYPES_OF_LATER[module]:
        named = [node for node in ast.walk(tree(path)) if name in imported_by(path, node)]
        assert named
        assert inside.issuperset(map(ast.unparse, named))


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_of_a_package_import_in_one_order(package: str) -> None:
    """A room imports itself and rooms before it; each folder of the package is in the order."""
    rooms = ROOMS[package]
    assert {path.name for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()} == set(rooms)
    for path in MODULES:
        if path.parts[0] != package or path.parts[1] not in rooms:
            continue
        later = {package, *(f"{package}.{room}" for room in rooms[rooms.index(path.parts[1]) + 1 :])}
        for name in imports(path):
            assert ".".join(name.split(".")[:2]) not in later, f"{dotted(path)} imports {name}, a later room"


def test_the_top_is_small() -> None:
    rooms = [path for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    assert {path.stem for path in rooms} == set(ORDER)
    assert len(rooms) <= 25 + len(("__init__", "__main__"))


def test_the_rules_see_what_modules_do() -> None:
    """Imports of every sort are found: with one dot and two, late ones, and those of other packages."""
    assert {"click", "traces.running", "views.report", "files.archives"} <= set(imports(Path("cli/run.py")))
    assert {"errors", "traces.checks", "views.text_columns"} <= set(imports(Path("views/report.py")))
    assert {"isa.fragments", "isa.sparsity"} <= set(imports(Path("execution/interface.py")))
    assert "numba" in set(imports(Path("arithmetic/kernels/_jit.py")))
    assert {"echo", ".echo", "open"} <= calls(Path("cli/output.py"))
