"""The list of one-line changes fits the code that there is, and a trial tells killed from living."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tools.code_mutants.mutant import CLASSES, LIST, ROOT, Mutant, Stale, read_list, write_list
from tools.code_mutants.operators import slips
from tools.code_mutants.page import page
from tools.code_mutants.tree import changed, copy_tree
from tools.code_mutants.trial import Verdict, failing, try_mutant, warm

MUTANTS = read_list()
SWIZZLE = next(one for one in MUTANTS if one.file == "warpsim/isa/swizzle.py" and ">> 8" in one.new)


@cache
def source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def tree(file: str) -> str:
    return ast.dump(ast.parse(source(file)))


def test_there_are_enough_of_every_class_and_no_two_are_the_same() -> None:
    counts = Counter(one.kind for one in MUTANTS if not one.equivalent)
    assert set(counts) == set(CLASSES)
    assert counts.total() >= 330
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


def test_trials_kill_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    warm()
    tests = ("tests/isa/test_tensor_map.py::test_bytes_and_back",)
    same = replace(
        SWIZZLE, new=SWIZZLE.old, tests=("tests/isa/test_descriptor.py::test_nothing_of_the_kind",)
    )
    with pytest.raises(LookupError, match="pytest ends with 4"):
        try_mutant(same, tmp_path, wider=False)
    living = replace(SWIZZLE, new=f"{SWIZZLE.old}  # as it is", tests=tests)
    assert not failing(tmp_path, [living])
    assert not try_mutant(living, tmp_path, wider=False).killed
    assert try_mutant(SWIZZLE, tmp_path, wider=False).killed
    broken = replace(SWIZZLE, new="moved: Addresses = undefined_name", tests=SWIZZLE.tests)
    with changed(tmp_path, broken):
        assert "undefined_name" in (tmp_path / broken.file).read_text()
    assert (tmp_path / broken.file).read_text() == source(broken.file)


def test_the_page_counts() -> None:
    verdicts = [
        Verdict(mutant=MUTANTS[0], killer="a test", seconds=1.0),
        Verdict(mutant=replace(MUTANTS[0], survives="for a reason"), killer="", seconds=1.0),
    ]
    text = page(verdicts)
    assert "**2 injected: 1 killed (50.0 %), 1 survive**" in text
    assert f"| {MUTANTS[0].kind} | 2 | 1 | 1 |" in text
    assert ": for a reason\n" in text
