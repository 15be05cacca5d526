"""Templates of findings: what each may name, that facts fill it, and that every template is used."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from string import Formatter
from types import SimpleNamespace
from typing import Any

import pytest

import warpsim
from warpsim.base.errors import Location
from warpsim.observe.checks.finding_catalogue import CATALOGUE, Site, report
from warpsim.observe.checks.findings import FindingError, Findings

CHECKS = Path(warpsim.__file__).parent / "observe" / "checks"
NUMBERS = {"offset", "address", "byte", "late", "size", "number", "warp"}


def _wave() -> Any:
    statements = [
        SimpleNamespace(mnemonic=name, location=lambda line=line: Location("k.ptx", line))
        for name, line in (("st.shared", 4), ("ld.shared", 7))
    ]
    code = [SimpleNamespace(statement=statement) for statement in statements]
    return SimpleNamespace(code=code, describe_lane=lambda lane: f"warp 0, lane {lane}")


def _facts(name: str) -> dict[str, Any]:
    template = CATALOGUE[name]
    fields = [
        field for text in (template.message, template.fix) for _, field, _, _ in Formatter().parse(text)
    ]
    named = {re.split(r"[.\[]", field)[0] for field in fields if field}
    return {each: 5 if each in NUMBERS else f"<{each}>" for each in named - {"now", "then", "here", "other"}}


@pytest.mark.parametrize("name", CATALOGUE)
def test_facts_fill_a_template(name: str) -> None:
    template, findings, facts = CATALOGUE[name], Findings(mode="warn"), _facts(name)
    needs_other = any(word in template.message + template.fix for word in ("{other", "{then"))
    for _ in range(2):
        site = Site(_wave(), 1, 3, 0 if needs_other else None)
        report(findings, name, site, **facts)
    (finding,) = findings.found
    assert (finding.kind, finding.severity, finding.legal) == (
        template.kind,
        template.severity,
        template.legal,
    )
    assert finding.location.line == 7
    assert (finding.other is None) != needs_other
    assert finding.message.endswith(" [warp 0, lane 3]")
    assert all(str(fact) in finding.message + finding.fix for fact in facts.values())
    assert "{" not in finding.message + finding.fix


def test_the_message_of_a_race() -> None:
    findings = Findings(mode="warn")
    facts = {"verb": "reads", "byte": "0x10 of shared memory", "done": "written"}
    report(findings, "race of warps", Site(_wave(), 1, 3, 0, "warning"), **facts)
    assert str(findings.found[0].message) == (
        "race: ld.shared reads byte 0x10 of shared memory, which another warp has written at line 4 "
        "without a barrier in between [warp 0, lane 3]"
    )
    assert findings.found[0].severity == "warning"


def test_an_error_is_raised_and_a_known_key_adds_nothing() -> None:
    findings = Findings(mode="error")
    with pytest.raises(FindingError, match=r"reaches <place>, and nothing says"):
        report(findings, "CTA not begun", Site(_wave(), 1, 3), key=("not begun", 1), place="<place>")
    report(findings, "CTA not begun", Site(_wave(), 1, 4), key=("not begun", 1), place="elsewhere")
    assert len(findings.found) == 1


def test_every_template_is_used() -> None:
    texts = set[str]()
    for path in CHECKS.rglob("*.py"):
        if path.name != "finding_catalogue.py":
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            texts |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    assert CATALOGUE.keys() <= texts
