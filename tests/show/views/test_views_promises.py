"""The page of promises names modules that exist, and misses nothing that tables and modules decide."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import warpsim
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.families.tcgen05 import reported, typical
from warpsim.show.views.promises.promise import LABELS, Promise
from warpsim.show.views.promises.promises import promises, promises_document, promises_lines
from warpsim.show.views.promises.promises_derived import result_promises
from warpsim.show.views.promises.promises_stated import STATED

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "warpsim"
STATEMENTS: list[dict[str, Any]] = json.loads(
    (PACKAGE / "show/views/promises/statements.json").read_text(encoding="utf-8")
)
FORMS = [*warpsim.instructions(), *typical(), *reported()]
REFUSALS = {  # label -> what modules call to make its error
    "not modelled": {"NotModelled", "not_modelled"},
    "undefined by PTX": {"UndefinedBehavior", "undefined", "_undefined"},
}


def called(path: Path) -> set[str]:
    """Names of the functions, classes and methods that a module calls."""
    nodes = [one.func for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call)]
    return {getattr(one, "id", "") or getattr(one, "attr", "") for one in nodes}


@cache
def calls() -> dict[str, set[str]]:
    """What each module outside views/ calls."""
    return {
        path.relative_to(PACKAGE).as_posix(): called(path)
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.is_relative_to(PACKAGE / "show" / "views")
    }


@cache
def every_promise() -> list[Promise]:
    return list(promises(FORMS, STATEMENTS))


def modules_of(label: str) -> set[str]:
    return {module for one in every_promise() if one.label == label for module in one.modules}


# --- what is named is there ------------------------------------------------------------------------


@pytest.mark.parametrize("promise", STATED, ids=lambda one: one.what[:40])
def test_what_a_stated_promise_names_exists(promise: Promise) -> None:
    _check(promise)


def test_what_derived_promises_name_exists() -> None:
    for one in every_promise():
        _check(one)


def _check(promise: Promise) -> None:
    assert promise.label in LABELS
    assert promise.modules
    assert all((PACKAGE / path).exists() for path in promise.modules)


# --- nothing is missed -----------------------------------------------------------------------------


def test_every_form_on_every_target_is_promised_something() -> None:
    """Each once, with the label of its rule."""
    rows = [(one.label, row) for one in result_promises(FORMS) for row in one.rows]
    assert len(rows) == len(set(rows)) == len({row for _, row in rows})
    labels = {row: label for label, row in rows}
    for form in FORMS:
        for target in form.targets:
            for with_c in (True, False):
                types = f"{form.a.name}.{form.b.name}.{form.c.name}"
                use = form.d.name, types, form.stored_k, form.satfinite, with_c
                told = warpsim.evidence(form, target, with_c=with_c).label
                shape = f"m{form.shape.m}n{form.shape.n}" * (told == "reported")
                assert labels.pop((form.family.name, form.operation, *use, shape, target), told) == told
    assert not labels


def test_what_is_said_of_types_holds_on_all_targets_named() -> None:
    for one in result_promises(FORMS):
        uses, targets = {row[:-1] for row in one.rows}, {row[-1] for row in one.rows}
        assert len(one.rows) == len(uses) * len(targets), one.what


def test_every_row_of_every_table_of_rules_is_some_promises() -> None:
    """On its target, or on another of the same chip: sm_120 has rules that only sm_120a has forms of."""
    tables = {one.family.name: one.family.rules for one in FORMS}
    promised = {
        (_chip(target), tables[family], operation, d)
        for one in result_promises(FORMS)
        for family, operation, d, *_, target in one.rows
    }
    assert promised == {(_chip(name), *key) for name, target in ARCHITECTURES.items() for key in target.table}


def _chip(target: str) -> str:
    return target.rstrip("af")


@pytest.mark.parametrize("label", REFUSALS)
def test_every_module_that_refuses_is_named(label: str) -> None:
    raising = {module for module, names in calls().items() if names & REFUSALS[label]}
    assert raising == modules_of(label)


def test_every_module_that_infers_while_it_runs_is_named() -> None:
    assert {module for module, names in calls().items() if "infer" in names} <= modules_of("inferred")


# --- text and data ---------------------------------------------------------------------------------


def _words(lines: Iterator[str] | list[str]) -> str:
    return " ".join(" ".join(lines).split())


def test_the_text_has_every_promise_and_no_test() -> None:
    lines = list(promises_lines(FORMS, STATEMENTS))
    text = _words(lines)
    assert max(map(len, lines)) <= 110
    assert lines == list(promises_lines(FORMS, STATEMENTS))
    for one in every_promise():
        assert _words([f"{one.label} {one.what}"]) in text
    assert "tests/" not in text


def test_a_form_has_its_own_results_only() -> None:
    form = warpsim.decode(FORMS[0].mnemonic, target="sm_90a")
    results = [one for one in promises([form], STATEMENTS) if one.rows]
    assert [one.label for one in results] == [warpsim.evidence(form).label]


def test_the_document_is_the_page_as_data() -> None:
    document = json.loads(json.dumps(promises_document(FORMS, STATEMENTS)))
    expected = [{"section": one.section, "label": one.label, "what": one.what} for one in every_promise()]
    assert document["promises"] == expected
    assert list(document["labels"]) == list(LABELS)
