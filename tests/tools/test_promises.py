"""Figures are read from what tools write, and the record says what pages and tables say today."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from tools.promises import __main__ as tool
from tools.promises.evidence import EVIDENCE
from tools.promises.joined import joined_lines
from tools.promises.readings import sentence, sums, total
from tools.promises.sources import SOURCES
from warpsim.show.views.promises.promises import promises

MARKDOWN = """# A page

Before: 3 named. After: 5 named,
1 hint. More.

| case | changes | found | missed |
|---|---:|---:|---:|
| one | 1,200 | 7 |  |
| all | 1,209 | 8 |  |
"""
COLUMNS = """
target    since   tried  accepted
 sm_80      7.0   1,000        12
sm_90a      8.0      20         3
Only ptxas accepts:
     -  superfluous words: nobody needs them
"""


RECORD: dict[str, Any] = json.loads(tool.RECORD.read_text(encoding="utf-8"))
ALL = promises(warpsim.instructions(), json.loads(tool.STATEMENTS.read_text(encoding="utf-8")))


# --- evidence --------------------------------------------------------------------------------------


def test_every_promise_has_evidence_and_all_evidence_a_promise() -> None:
    assert set(EVIDENCE) == {one.name for one in ALL}


@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence_names_what_exists(name: str) -> None:
    known = EVIDENCE[name]
    assert known.tests
    assert all((tool.ROOT / path).exists() for path in known.tests)
    for command in known.tools:
        module = re.match(r"python -m ([\w.]+)", command)
        assert module is not None
        place = tool.ROOT / module[1].replace(".", "/")
        assert place.with_suffix(".py").exists() or place.is_dir() or module[1] in COMING


# Tools of which figures are read as soon as they are there.
COMING = {"tools.mutants.every_type"}


def test_no_evidence_is_without_tests() -> None:
    """Each path is a file of tests, or a folder that has such files."""
    for path in {path for known in EVIDENCE.values() for path in known.tests}:
        place = tool.ROOT / path
        files = [place] if place.is_file() else [*place.rglob("test_*.py")]
        assert any("def test_" in file.read_text(encoding="utf-8") for file in files), path


def test_figures_have_sources_and_sources_promises() -> None:
    shown = {figure for one in EVIDENCE.values() for figure in one.figures}
    assert shown == {one.name for one in SOURCES}
    assert set(RECORD["figures"]) <= shown


def test_the_page_has_every_promise_and_figure() -> None:
    lines = list(joined_lines(ALL, RECORD))
    text = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= 110
    for one in ALL:
        assert f"{one.label} {one.what}" in text
    for name, figure in RECORD["figures"].items():
        assert f"last run: {figure['text']} [{figure['source']}]" in text, name


# --- figures ---------------------------------------------------------------------------------------


def test_a_total_is_a_rows_cells_with_their_headings() -> None:
    assert total("all")(MARKDOWN) == "1,209 changes, 8 found"
    assert total("none")(MARKDOWN) is None


def test_a_sentence_is_on_one_line() -> None:
    assert sentence(r"After: ([^.]+)\.")(MARKDOWN) == "5 named, 1 hint"
    assert sentence(r"(\d) named,\s(\d) hint", "{1} of {0}")(MARKDOWN) == "1 of 5"
    assert sentence(r"Later: ([^.]+)\.")(MARKDOWN) is None


@pytest.mark.parametrize(("text", "markdown", "expected"), [
    (MARKDOWN, True, "2 cases: 2,409 changes, 15 found"),
    (COLUMNS, False, None),
    ("", True, None),
])  # fmt: skip
def test_sums_of_rows(text: str, markdown: bool, expected: str | None) -> None:
    assert sums("changes", "found", markdown=markdown, of="cases")(text) == expected


def test_pages_to_come_are_read() -> None:
    """Those of other tools, as they write them."""
    read = {one.name: one.read for one in SOURCES}
    faults = (
        "9 faults, 4 forms, 1,234 cases: 30 faults on forms, **29 caught, 1 proven to be none, 0 survive**."
    )
    assert read["faults on every pair of types"](faults) == faults.replace("**", "").rstrip(".")
    releases = (
        "| ptxas | PTX | targets | statements | legal | explained | false accepts | false rejects |\n"
        "|---|---|---|---|---|---|---|---|\n"
        "| 13.5 | 9.5 | 9 | 17,526 | 4,146 | 270 | 0 | 0 |\n"
        "| 13.0 | 9.0 | 8 | 15,462 | 3,674 | 244 | 0 | 0 |\n"
    )
    assert read["legality under releases"](releases) == (
        "2 releases of ptxas: 32,988 statements, 7,820 legal, 514 explained, 0 false accepts, 0 false rejects"
    )


def test_sums_of_columns_below_headings() -> None:
    assert sums("tried", "accepted", of="targets")(COLUMNS) == "2 targets: 1,020 tried, 15 accepted"


def test_pages_that_are_there_have_their_figures() -> None:
    there = {one.name for one in SOURCES if one.page and (tool.ROOT / one.page).exists()}
    assert set(tool.page_figures()) == there


def test_a_page_that_is_not_there_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert tool.page_figures() == {}


def test_the_record_is_up_to_date() -> None:
    """After ``python -m tools.promises``, which writes it anew."""
    record = json.loads(tool.RECORD.read_text(encoding="utf-8"))
    assert tool.out_of_date(record) == []
    assert tool.RECORD.stat().st_size < 64 * 1024


def test_what_is_out_of_date_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    record = json.loads(tool.RECORD.read_text(encoding="utf-8"))
    statements = json.loads(tool.STATEMENTS.read_text(encoding="utf-8"))
    monkeypatch.setattr(tool, "all_statements", lambda: statements[1:])
    record["figures"].pop("mistakes")
    found = tool.out_of_date(record)
    assert [line.partition(":")[0] for line in found] == ["mistakes", "statements of launched kernels"]


def test_what_commands_printed_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure that a file does not have stays as it was."""
    (tmp_path / "record.json").write_text(json.dumps({"figures": {"faults": {"text": "old", "source": "x"}}}))
    (tmp_path / "faults.txt").write_text("a line\n7 of 8 faults caught in 3 s\n")
    (tmp_path / "fuzz.txt").write_text("nothing\n")
    monkeypatch.setattr(tool, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(tool, "STATEMENTS", tmp_path / "statements.json")
    monkeypatch.setattr(tool, "all_statements", list)
    files = (
        "--said",
        "fuzzing",
        str(tmp_path / "fuzz.txt"),
        "--said",
        "faults",
        str(tmp_path / "faults.txt"),
    )
    result = CliRunner().invoke(tool.main, files)
    assert result.exit_code == 0
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["figures"]["faults"] == {
        "text": "7 of 8 faults caught",
        "source": "python -m tools.mutants",
    }
    assert "fuzzing" not in record["figures"]


def test_a_figure_that_no_command_makes_is_refused() -> None:
    result = CliRunner().invoke(tool.main, ["--run", "mistakes"])
    assert result.exit_code == 2
    assert "no command makes mistakes; there are faults, legality" in result.stderr
