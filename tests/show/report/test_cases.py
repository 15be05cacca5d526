"""Vector sets as pages: every case compared, those that differ shown first, operands and differences."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli
from warpsim.show.report import set_cases as cases
from warpsim.show.report.document import gather
from warpsim.show.report.set_cases import cases_of
from warpsim.workbench.vectors.formats import write_vectors
from warpsim.workbench.vectors.sets import VectorSet, make_vectors

FORM = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
WRONG = (3, 17)


def vectors() -> VectorSet:
    rng = np.random.default_rng(5)
    words = {
        name: rng.integers(0, 0x3C00, (20, 32, 2 * count), np.uint16).view(np.uint32)
        for name, count in (("a", 2), ("b", 1))
    }
    c = rng.standard_normal((20, 32, 4)).astype(np.float32).view(np.uint32)
    labels = tuple(f"number {at}" for at in range(20))
    return make_vectors(FORM, target="sm_80", labels=labels, **words, c=c)


GOOD = vectors()


def wrong() -> VectorSet:
    d = GOOD.d.copy()
    d[3, 7, 2] ^= 4
    d[17, 0, 0] ^= 1
    d[17, 31, 3] ^= 1 << 22
    return replace(GOOD, d=d)


def test_every_case_is_compared_and_every_difference_counted() -> None:
    assert not cases_of(GOOD).count
    found = cases_of(wrong())
    assert np.flatnonzero(found.different).tolist() == [*WRONG]
    assert found.different.sum() == 3
    assert [case.number for case in found.shown] == [*range(20)]
    assert all(np.array_equal(case.d, GOOD.d[case.number]) for case in found.shown)


def test_cases_that_differ_are_shown_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MOST_SHOWN", 4)
    shown = [case.number for case in cases_of(wrong()).shown]
    assert len(shown) == 4
    assert {*WRONG} < {*shown}
    monkeypatch.setattr(cases, "MOST_SHOWN", 1)
    assert [case.number for case in cases_of(wrong()).shown] == [3]


def test_the_document_has_operands_expectations_and_checks() -> None:
    report = gather(cases_of(wrong(), "unit.npz"))
    document = report.document
    assert (document["title"], document["passed"], document["cases"]["different"]) == ("unit.npz", False, 2)
    whole, third, last = document["checks"]
    assert (whole["different"], whole["compared"], whole["instruction"]) == (3, GOOD.d.size, 3)
    assert [third["registers"], last["registers"]] == ["case 3 (number 3)", "case 17 (number 17)"]
    assert [third["different"], last["different"]] == [1, 2]
    for number, item in enumerate(document["instructions"]):
        assert item["executed"] == f"case {number} (number {number})"
        assert item["different"] == {3: 1, 17: 2}.get(number, 0)
        assert item["line"] is None
        words = np.frombuffer(report.pool.content, "<u4", 64, item["words"]["a"]["at"])
        assert np.array_equal(words.reshape(32, 2), GOOD.registers["a"][number])


@pytest.mark.parametrize(("made", "code"), [(GOOD, 0), (wrong(), 1)])
@pytest.mark.parametrize("suffix", [".npz", ".jsonl"])
def test_view_takes_a_set(tmp_path: Path, monkeypatch: Any, made: VectorSet, code: int, suffix: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_vectors(f"unit{suffix}", made)
    done = CliRunner().invoke(cli, ["view", f"unit{suffix}"], standalone_mode=False)
    assert done.return_value == code
    count = 2 if code else 0
    assert re.fullmatch(rf"unit\.html: {count} of 20 cases differ, 20 shown, \d\.\d MB\n", done.stdout)
    html = Path("unit.html").read_text()
    verdict = "✗ 2 of 20 cases of model differ" if code else "✓ 20 cases of model: D is as computed here"
    assert verdict in html
    assert html.count('title="words of D that are not as expected"') == count
    done = CliRunner().invoke(cli, ["view", f"unit{suffix}", "--json"], standalone_mode=False)
    told = json.loads(done.stdout)
    assert (told["cases"], told["different_cases"]) == (20, count)


def test_bad_sets_and_options_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.npz").write_bytes(b"\x00\xff not a zip")
    done = CliRunner().invoke(cli, ["view", "bad.npz"], standalone_mode=False)
    assert done.return_value == 3
    assert done.stderr.startswith("bad.npz: error: ") or done.stderr.startswith("bad.npz:")
    assert "\x00" not in done.stderr
    assert not Path("bad.html").exists()
    write_vectors("good.npz", GOOD)
    done = CliRunner().invoke(cli, ["view", "good.npz", "--target", "sm_90"])
    assert done.exit_code == 2
    assert "--target goes with a trace: a vector set has its own" in done.stderr
    with pytest.raises(warpsim.WarpsimError):
        warpsim.view("bad.npz")
