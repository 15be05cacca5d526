"""Every rule stands in every table that asks for a rule's class, here and on the page of a report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import warpsim
from tools.capture.experiments.sparse_grouping import CANDIDATES
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.comparisons import Evidence
from warpsim.isa.rules import Rule
from warpsim.sums.arithmetic import numerics, reference
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.rule_programs import rule_templates
from warpsim.sums.rule_programs.rule_operations import RESULTS
from warpsim.workbench.generation.cases import themes
from warpsim.workbench.generation.sums import summing

PACKAGE = Path(warpsim.__file__).parent


def _classes(base: type[Rule]) -> Iterator[type[Rule]]:
    for one in base.__subclasses__():
        yield from _classes(one) if one.__subclasses__() else (one,)


CLASSES = [one for one in _classes(Rule) if one.__module__.startswith("warpsim.")]
IN_USE = {type(rule): rule for target in ARCHITECTURES.values() for rule in target.table.values()}
EVERYWHERE: dict[str, Any] = {
    "the kernels": numerics.RULES,
    "reference.py": reference.RULES,
    "the templates of programs": rule_templates.TEMPLATES,
    "the sums of coverage": summing.RULES,
}


@pytest.mark.parametrize("where", EVERYWHERE)
def test_every_rule_has_its_entry(where: str) -> None:
    assert set(EVERYWHERE[where]) == set(CLASSES), where


def test_every_operation_is_on_the_page() -> None:
    text = (PACKAGE / "show/report/static/rules.js").read_text(encoding="utf-8")
    table = re.search(r"^const OPERATIONS = \{(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    assert table is not None
    assert {*re.findall(r"^  (\w+):", table[1], re.MULTILINE), "read"} == set(RESULTS)


def test_every_rule_is_some_targets_rule() -> None:
    assert set(IN_USE) == set(CLASSES)


def test_every_rule_that_aligns_nothing_has_a_precision() -> None:
    precise = {one for one in CLASSES if one.precision}
    assert precise == {one for one, rule in IN_USE.items() if rule.aligned is None}
    assert {one for one in CLASSES if one.slips} <= precise


def test_every_aligned_sum_has_themes() -> None:
    assert set(themes.THEMES) == {type(rule.aligned) for rule in IN_USE.values()}


def test_every_rule_of_sparse_floats_has_candidates() -> None:
    """The capture tool asks for these rules only: what sums are made of depends on no other."""
    sparse = {
        type(rule_for(form))
        for target in ARCHITECTURES
        for form in warpsim.instructions(target)
        if form.sparse and form.a.is_float
    }
    assert set(CANDIDATES) == sparse


@pytest.mark.parametrize("rule", IN_USE.values(), ids=lambda rule: type(rule).__name__)
def test_a_rule_says_what_it_aligns(rule: Rule) -> None:
    """A rule with a floor, or with another rule in it, is or has an aligned sum, whose numbers can change."""
    values = [getattr(rule, one.name) for one in fields(rule)]
    inner = [value for value in values if isinstance(value, Rule)]
    if not inner and not hasattr(rule, "exponent_floor"):
        assert rule.aligned is None
        return
    assert rule.aligned is (inner[0] if inner else rule)
    changed = rule.realigned(fraction_bits=7)
    assert type(changed) is type(rule)
    assert changed.aligned is not None
    assert changed.aligned.fraction_bits == 7


@pytest.mark.parametrize("rule", IN_USE.values(), ids=lambda rule: type(rule).__name__)
def test_a_bare_rule_has_its_numbers_and_no_evidence(rule: Rule) -> None:
    other = Evidence(label="inferred", detail="something else")
    step = {} if rule.aligned in (None, rule) else {"step": replace(rule.aligned, evidence=other)}
    assert replace(rule, evidence=other, **step).bare == rule.bare
    assert rule.bare.evidence.label == ""
