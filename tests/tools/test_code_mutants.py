"""The list of one-line changes fits the code that there is, and a trial tells killed from living."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tools.code_mutants.mutant import CLASSES, LIST, ROOT, Mutant, Stale, read_list, write_list
from tools.code_mutants.operators import slips
from tools.code_mutants.page import page
from tools.code_mutants.tree import changed
from tools.code_mutants.trial import Verdict

MUTANTS = read_list()
SWIZZLE = next(one for one in MUTANTS if one.file.endswith("/swizzle.py") and ">> 8" in one.new)


@cache
def source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def tree(file: str) -> str:
    return ast.dump(ast.parse(source(file)))


def test_there_are_enough_of_every_class_and_no_two_are_the_same() -> None:
    counts = Counter(one.kind for one in MUTANTS if not one.equivalent)
    assert set(counts) == set(CLASSES)
    assert counts.total() >= 300
    assert min(counts.values()) >= 15
    assert len({one.key for one in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_mutant_is_another_program(kind: str) -> None:
    for one in MUTANTS:
        if one.kind == kind:
            assert ast.dump(ast.parse(one.applied(source(one.file)))) != tree(one.file), one


def test_tests_of_mutants_are_there() -> None:
    names: dict[str, set[str]] = {}
    for one in MUTANTS:
        assert one.tests or one.equivalent, one
        for test in one.tests:
            file, _, function = test.partition("[")[0].partition("::")
            if file not in names:
                known = ast.walk(ast.parse(source(file))) if (ROOT / file).is_file() else ()
                names[file] = {node.name for node in known if isinstance(node, ast.FunctionDef)}
            assert (ROOT / file).exists(), one
            assert not function or function in names[file], one


def test_the_list_is_as_it_is_written(tmp_path: Path) -> None:
    write_list(MUTANTS, tmp_path / "list")
    assert (tmp_path / "list").read_text(encoding="utf-8") == LIST.read_text(encoding="utf-8")


def test_a_line_is_found_by_its_occurrence() -> None:
    one = Mutant(file="f.py", old="x = 1", new="x = 2", kind="rule", what="number", occurrence=2)
    assert one.applied("x = 1\nif x:\n    x = 1\n") == "x = 1\nif x:\n    x = 2\n"
    with pytest.raises(Stale, match=r"f.py: 'x = 1' occurs 1 times, not 2"):
        one.applied("x = 1\n")


def _texts(code: str) -> set[str]:
    return {text for _, text, _ in slips(ast.parse(code))}


def test_slips() -> None:
    assert _texts("x < 3") == {"x <= 3", "4", "2", "6"}
    assert _texts("a and b") == {"(a or b)", "(a)", "(b)"}
    assert _texts("x = f(y, z)") == {"f(z, y)"}
    assert _texts("def f(row, column):\n    return row") == {"column"}
    assert not _texts('x: int = "a text"')


def run(folder: Path, *mutants: Mutant) -> tuple[int, str]:
    """Exit code and text of the command for a list of its own."""
    write_list(mutants, folder / "list")
    command = [sys.executable, "-m", "tools.code_mutants", "--list", str(folder / "list"), "--narrow"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_trials_kill_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    """Bytes of tensor maps do not depend on what the swizzle does to addresses."""
    blind = ("tests/isa/test_tensor_map.py::test_bytes_and_back",)
    seeing = ("tests/isa/test_tensor_box.py::test_a_box_lands_where_wgmma_reads_it[8-32B]",)
    living, broken = replace(SWIZZLE, tests=blind), replace(SWIZZLE, new="moved = nothing", tests=seeing)
    code, text = run(tmp_path, replace(SWIZZLE, tests=seeing), living, broken)
    assert code == 1, text
    assert text.count("killed by tests/isa/test_tensor_box.py::test_a_box_lands_where_wgmma_reads_it") == 2
    assert "2 of 3 mutants killed" in text


def test_nothing_is_tried_by_tests_that_fail_anyway(tmp_path: Path) -> None:
    code, text = run(tmp_path, replace(SWIZZLE, tests=("tests/isa/test_tensor_map.py::test_of_nothing",)))
    assert code != 0
    assert "not found" in text
    assert "mutants killed" not in text


def test_a_copy_is_changed_and_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / SWIZZLE.file
    path.parent.mkdir(parents=True)
    shutil.copy2(ROOT / SWIZZLE.file, path)
    before = path.stat()
    with changed(tmp_path, SWIZZLE):
        assert SWIZZLE.new in path.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") == source(SWIZZLE.file)
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_the_page_counts() -> None:
    verdicts = [
        Verdict(mutant=MUTANTS[0], killer="a test", seconds=1.0),
        Verdict(mutant=replace(MUTANTS[0], survives="for a reason"), killer="", seconds=1.0),
    ]
    text = page([verdicts[0].mutant, replace(MUTANTS[1], equivalent="the same")], verdicts)
    assert "**2 injected: 1 killed (50.0 %), 1 survive**" in text
    assert f"| {MUTANTS[0].kind} | 2 | 1 | 1 |" in text
    assert ": for a reason\n" in text
    assert text.endswith(": the same\n")
