"""Pages of vector sets in a browser: cases that differ, and matrices, at all widths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import warpsim
from tests.helpers.browser import WebDriverWait
from tests.show.report.test_cases import wrong
from tests.show.report.test_looks_browser import FAINT, MARKS, OVERFLOW, sized
from warpsim.workbench.vectors.formats import write_vectors


@pytest.fixture(scope="module")
def path(folder: Path) -> Path:
    write_vectors(folder / "set.npz", wrong())
    warpsim.view(folder / "set.npz").save(folder / "set.html")
    return folder / "set.html"


def test_it_opens_at_the_first_case_that_differs(browser: Any, path: Path) -> None:
    page = sized(browser, path, 1600)
    assert "case 3 (number 3)" in page.one("#facts").text
    assert "2 of 20 cases" in page.one("header").text
    states = page.run(
        "return [...document.querySelectorAll('#steps li')].map(one => one.innerText.includes('✗'))"
    )
    assert [at for at, wrong_ in enumerate(states) if wrong_] == [3, 17]
    differs = "return [...document.querySelectorAll('#board td.differs')].map(one => one.dataset.key)"
    assert page.run(differs) == ["d/9/6"]  # T7's d2: row 1 + 8, column 6
    page.press("n")  # to the next element that differs, in another case
    assert "case 17 (number 17)" in page.one("#facts").text
    page.one("#after").click()
    assert "case 18 (number 18)" in page.one("#facts").text
    WebDriverWait(browser, 5).until(lambda _: page.run(differs) == [])  # cells out of view follow
    page.picture("set-1600")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (800, "light"), (1600, "dark")])
def test_cases_fit_and_can_be_read(browser: Any, path: Path, width: int, scheme: str) -> None:
    page = sized(browser, path, width, scheme)
    assert page.run(OVERFLOW) <= 0
    assert page.run(FAINT, MARKS) == []
    assert page.run("return document.querySelector('.rail').offsetHeight") < 900 // (
        1 if width == 1600 else 3
    )
    page.picture(f"set-{width}-{scheme}")
