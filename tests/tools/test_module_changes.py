"""The comparison of changed modules with ptxas: which changes there are, and what a few of them say."""

from __future__ import annotations

import pytest

from tests.helpers import ptxas
from tests.helpers.module_differences import ONLY_HERE, ONLY_PTXAS, reason
from tools.legality.modules import DECLARATIONS, ROOT, SECTIONS, Changed, changed, main, problem, said


def test_changes_depend_on_their_seed_alone() -> None:
    first, again, other = (list(changed(20, seed)) for seed in ("1", "1", "2"))
    assert first == again != other
    assert len({case.text for case in first}) == 20
    assert all(case.line.replace(" ", "") in case.text.replace(" ", "") for case in first)


def test_what_is_refused_here() -> None:
    assert problem(DECLARATIONS) == ""
    assert problem(DECLARATIONS.replace(".align 16", ".align 3", 1)).startswith("table has alignment 3")
    assert problem(DECLARATIONS.replace(".u32 one", ".texref one", 1)) != ""
    assert problem(DECLARATIONS.replace(".const", ".nope", 1)) == "PTX has no directive '.nope'"


def test_reasons_are_of_a_side() -> None:
    line = ".target compute_90"
    assert reason(line, "", "unknown target 'compute_90'") == "a virtual target, which is none of a chip"
    assert reason(line, "unknown target", "") == ""


def test_the_page_names_every_reason() -> None:
    page = " ".join((ROOT / "tools/legality/README.md").read_text().split())
    assert [why for _, why in (*ONLY_PTXAS, *ONLY_HERE) if f"- {why}" not in page] == []


def test_sections_take_part() -> None:
    assert problem(SECTIONS) == ""
    assert {"sections", "declarations"} <= {case.name for case in changed(20, "1")}


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there is a ptxas")
def test_ptxas_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(Changed(name="", line="", text=DECLARATIONS)) == ""
    assert "power of two" in said(Changed(name="", line="", text=DECLARATIONS.replace("16", "3", 1)))
    assert main(["--count", "24", "--seed", "before"]) == 0
    assert "0 false accepts, 0 false rejects" in capsys.readouterr().out
