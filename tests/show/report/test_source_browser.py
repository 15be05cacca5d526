"""The source pane in a browser: lines, statements and instructions mark each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import warpsim
from tests.helpers.browser import Keys, Reader
from tests.helpers.command_runner import CliRunner
from tests.show.report.test_looks_browser import FAINT, OVERFLOW, sized
from tests.show.report.test_source_pane import SOURCE, TEXT
from warpsim.show.cli import cli

CHOSEN = """return [...document.querySelectorAll(`#source .${arguments[0]}.${arguments[1]} .number`)]
    .map(one => Number(one.textContent))"""
STEPS = "return [...document.querySelectorAll('#steps li')].map(one => one.classList.contains('of-line'))"


@pytest.fixture(scope="module")
def path(folder: Path) -> Path:
    before = Path.cwd()
    os.chdir(folder)
    try:
        Path("k.cu").write_text("\n".join(SOURCE))
        Path("k.ptx").write_text(TEXT.replace("FOLDER", str(folder)))
        arguments = ["launch", "k.ptx", "--entry", "k", "--block", "64", "--arg", "hex:b64:0x0"]
        done = CliRunner().invoke(cli, [*arguments, "--trace-mma", "k.npz"], standalone_mode=False)
        assert done.exception is None, done.exception
        warpsim.view("k.npz").save("source.html")
    finally:
        os.chdir(before)
    return folder / "source.html"


def press_line(page: Reader, number: int, kind: str = "line") -> None:
    page.run(
        "[...document.querySelectorAll(`#source .${arguments[1]}`)]"
        ".find(one => one.querySelector('.number').textContent === String(arguments[0]))"
        ".querySelector('button').click()",
        number,
        kind,
    )


def test_a_source_line_marks_its_statements_and_instructions(browser: Any, path: Path) -> None:
    page = sized(browser, path, 1600)
    assert page.run(CHOSEN, "line", "shown") == [9, 20]  # the line, and that it was inlined at
    assert page.run(CHOSEN, "statement", "shown") == [9]
    press_line(page, 9)
    assert page.run(CHOSEN, "statement", "chosen") == [9, 10]
    assert page.run(STEPS) == [True] * 4
    assert page.run("return document.querySelector('#overview canvas').dataset.lit") == "4"
    press_line(page, 20)  # its own statements, and those of the call that was inlined
    assert page.run(CHOSEN, "statement", "chosen") == [7, 7, 7, 9, 10]
    page.press(Keys.ESCAPE)
    assert page.run(CHOSEN, "statement", "chosen") == page.run(CHOSEN, "line", "chosen") == []
    assert page.run("return document.querySelector('#overview canvas').dataset.lit") == "0"
    assert browser.get_log("browser") == []


def test_a_statement_marks_its_lines_and_shows_its_instruction(browser: Any, path: Path) -> None:
    page = sized(browser, path, 1600)
    press_line(page, 10, "statement")
    assert page.run(CHOSEN, "line", "chosen") == [9, 20]
    assert page.run(STEPS) == [False, False, True, True]
    assert page.one("#position").text == "3 of 4"
    press_line(page, 10, "statement")
    assert page.one("#position").text == "4 of 4"
    page.one("#before").click()
    page.one("#before").click()
    assert page.run(CHOSEN, "statement", "shown") == [9]
    assert browser.get_log("browser") == []


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (800, "dark"), (1600, "dark")])
def test_both_listings_fit_and_can_be_read(browser: Any, path: Path, width: int, scheme: str) -> None:
    page = sized(browser, path, width, scheme)
    press_line(page, 20)
    assert page.run(OVERFLOW) <= 0
    assert page.run(FAINT, "#source code, #source .number, #source small, #source h3") == []
    source, ptx = (
        page.run(f"return document.querySelector('#source .of-{name}').getBoundingClientRect().toJSON()")
        for name in ("source", "ptx")
    )
    assert (source["right"] <= ptx["left"]) == (width == 800)  # beside each other, or one above the other
    page.run("document.getElementById('source').scrollIntoView()")
    page.picture(f"source-{width}-{scheme}")
