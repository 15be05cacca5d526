"""Which room may import which: a strict order of nine; what sums must not know, who may do what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.families import each_of
from tools.house import nodes

ROOT = Path(__file__).parent.parent / "warpsim"
ORDER = (  # a room imports itself and those before it
    *("base", "isa", "ptx", "sums", "machine", "observe", "programs", "workbench", "show"),
    *("__init__", "__main__"),
)
PARTS = {  # room or package -> its parts in order; modules that are not named come last
    "base": ("errors", "environment", "folders", "text_columns", "files", "cluster"),
    "sums": ("arithmetic", "rule_programs", "execution", "products"),
    "machine": ("state", "bind", "native", "run", "opcodes", "load", "independence", "grid", "host"),
    "observe": ("checks", "recording", "stops", "algebra"),  # checks may not depend on the algebra
    "programs": ("launch", "interactive", "compilers", "exec"),
    "workbench": (
        "inputs",
        "traces",
        "vectors",
        "generation",
        "models",
        "diagnosis",
        "explanation",
        "debugger",
    ),
    "workbench.generation": ("sums", "cases", "coverage"),
    "workbench.diagnosis": (
        *("library", "descriptors", "dumps", "solving", "contents", "origins", "search", "loops"),
        *("recordings", "units", "formulas", "verdicts", "linting"),
    ),
    "show": ("views", "debugger", "report", "testing", "cli"),
}
NEVER = {  # part of the package -> parts and packages that it must not import, though they come before it
    "isa": {"files", "cluster"},
    "ptx": {"files", "cluster"},
    "sums.arithmetic": {
        "files",
        "cluster",
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
    "sums.arithmetic.kernels": {"isa", "errors", "ml_dtypes"},
    "sums.arithmetic.reference": {
        "kernels",
        "planes",
        "codes",
        "numerics",
        "ml_dtypes",
        "numba",
        "rule_programs",
    },
    "sums.rule_programs": {"arithmetic", "reference", "kernels", "numerics", "ml_dtypes", "numba"},
    "sums.execution": {"cluster"},
    **{f"sums.execution.{name}": {"ptx"} for name in ("pipeline", "inputs", "recipes", "fused_registers")},
}
LATER = {  # module -> what it imports by name while running, though it comes later
    "isa.displayed": "show.report.notebooks",  # how a result shows itself in a notebook
    "programs.launch.launch_execution": "workbench.diagnosis.verdicts",  # LaunchReport.why
}
TYPES_OF_LATER = {
    "programs.launch.launch_execution": {"workbench.diagnosis.verdicts"}
}  # for annotations alone
ONLY_IN = {  # other packages, print -> the parts that may use them
    "numba": ("sums.arithmetic.kernels", "programs.compilers.numba_kernels"),
    "llvmlite": ("machine.native.objects",),
    "triton": ("programs.compilers.triton_kernels",),
    "pytest": ("show.testing.plugin",),
    **dict.fromkeys(("click", "rich", "prompt_toolkit", "print"), ("show.cli",)),
}
FILES = {"open", ".open", ".read_text", ".read_bytes", ".write_text", ".write_bytes", ".fromfile", ".tofile"}
FILES_IN = (
    *("base.files", "workbench.inputs.tensor_files", "show.cli", "workbench.vectors.formats"),
    *("base.cluster.versions", "sums.arithmetic.kernels"),  # both read source
    *("programs.exec.libraries", "programs.exec.processes"),  # what is compiled; what Linux says of clients
    "base.folders",  # which locks them
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
    for node in nodes(ROOT / path):
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
    functions = [node.func for node in nodes(ROOT / path) if isinstance(node, ast.Call)]
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


def imported_by_name(path: Path) -> Iterator[str]:
    """Yield the modules of this package that a module imports as import_module(".show.report", …)."""
    for node in nodes(ROOT / path):
        match node:
            case ast.Call(
                func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name)), ast.Subscript()]
            ):
                yield name.removeprefix(".")


def test_imports_by_name_of_later_rooms_are_known() -> None:
    """No module gets round the order by import_module, but for two results."""
    assert {dotted(path): name for path in MODULES for name in imported_by_name(path)} == LATER
    assert all(map(is_module, LATER.values()))


def part_of(module: str, package: str) -> str | None:
    """The part of a package that a module is or lies in; "" is the package itself, None is elsewhere."""
    return module[len(package) + 1 :].partition(".")[0] if within(module, package) else None


@pytest.mark.parametrize("package", PARTS)
def test_parts_of_a_room_import_in_one_order(package: str) -> None:
    """A part imports itself and parts before it; each folder of the package is in the order."""
    parts, folder = PARTS[package], ROOT / Path(*package.split("."))
    assert {path.parent.name for path in folder.glob("*/__init__.py")} <= set(parts)
    for path in MODULES:
        own = part_of(dotted(path), package)
        if own not in parts:
            continue
        for name in imports(path):
            part = part_of(name, package)
            assert part is None or part in parts[: parts.index(own) + 1], f"{dotted(path)} imports {name}"


def test_the_top_is_the_rooms() -> None:
    rooms = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms == set(ORDER)


def test_the_rules_see_what_modules_do() -> None:
    """Imports of every sort are found: with one dot and more, late ones, and those of other packages."""
    run = set(imports(Path("show/cli/run.py")))
    assert {"click", "workbench.traces.running", "show.views.report", "base.files.archives"} <= run
    report = set(imports(Path("show/views/report.py")))
    assert {"base.errors", "workbench.traces.checks", "base.text_columns"} <= report
    assert {"isa.fragments", "isa.sparsity"} <= set(imports(Path("sums/execution/interface.py")))
    assert "numba" in set(imports(Path("sums/arithmetic/kernels/_jit.py")))
    assert {"echo", ".echo", "open"} <= calls(Path("show/cli/output.py"))
    assert part_of("machine.run.wave", "machine") == "run"
    assert part_of("machine", "machine") == ""
    assert part_of("machinery.run", "machine") is None
