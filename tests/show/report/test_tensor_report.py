"""The report of tcgen05.mma: lanes and columns of tensor memory, and every element of D computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.described_products import Product, mnemonic
from tests.helpers.reports import Scripts
from warpsim.show.report import Report
from warpsim.show.report.document import gather
from warpsim.workbench.vectors.recordings import Recording

SMALL = {"m": 64, "n": 8}
LANES = {"r8": 5, "r9": 0, "r10": 3, "r11": 0}  # lanes 0, 2, 64 and 65
CHANGES = {
    "lanes": ("r4, enable", "r4, {r8, r9, r10, r11}, enable"),
    "columns": ("enable;", "enable, q6;"),
    "power": ("enable;", "enable, 3;"),
}
CASES: dict[str, tuple[str, dict[str, Any], str, dict[str, int]]] = {
    "A in tensor memory": (mnemonic("f16"), {**SMALL, "in_memory": True}, "", {}),
    "f16 D, signs": (mnemonic("f16"), {**SMALL, "negate_a": 1, "d_type": 0}, "", {}),
    "disabled lanes": (mnemonic("f16"), SMALL, "lanes", LANES),
    "disabled lanes, D not read": (mnemonic("f16"), SMALL, "lanes", {**LANES, "r5": 0}),
    "D scaled down": (mnemonic("f16"), SMALL, "power", {}),
    "D scaled down, disabled lanes": (
        mnemonic("f16"),
        SMALL,
        "both",
        LANES,
    ),
    "rows moved": (mnemonic("f16") + ".ashift", {"n": 8, "in_memory": True}, "", {}),
    "zero columns": (mnemonic("f16", ws=True), {"m": 32, "n": 64}, "columns", {"q6": 1 << 39 | 3 << 48}),
    "sparse": (mnemonic("f16", sp=True), {"n": 8, "selector": 2}, "", {}),
    "a pair": (mnemonic("i8", ctas=2), {"m": 128, "n": 32}, "", {}),
    "scales": (mnemonic("mxf4nvf4", vector="block16"), {"n": 8}, "", {}),
}
CHANGES["both"] = ("r4, enable;", "r4, {r8, r9, r10, r11}, enable, 3;")


def recorded(name: str) -> Recording:
    spelling, fields, change, words = CASES[name]
    product = Product(spelling, **fields)
    run = product.run()
    if change:
        assert CHANGES[change][0] in run.statement
        run.statement = run.statement.replace(*CHANGES[change])
    run.words |= words
    events = run.report(record=True).events
    return Recording(
        kernel="k", file="k.ptx", target=product.target, grid=(1, 1, 1), block=(128, 1, 1), events=events
    )


@pytest.fixture(scope="module")
def scripts() -> Iterator[Scripts]:
    engine = Scripts()
    yield engine
    engine.close()


@pytest.mark.parametrize("name", CASES)
def test_the_page_computes_every_element_of_d(scripts: Scripts, name: str) -> None:
    scripts.load(gather(recorded(name)))
    assert scripts("unequal", 0) == []


def test_lanes_and_columns_are_named(scripts: Scripts) -> None:
    report = gather(recorded("A in tensor memory"))
    scripts.load(report)
    assert "lane 33 C301[31..16]" in scripts("described", 0, 0, "a/17/3")
    assert "lane 33 C2[31..0]" in scripts("described", 0, 0, "d/17/2")
    assert "lane 33 C300..C307" in scripts("described", 0, 0, "d/17/2")
    assert scripts("described", 0, 0, "lane/33") == "lane 33 holds 8 of A, 8 of C, 8 of D (columns)"
    assert scripts("described", 0, 0, "register/a/1") == "C301 column 1 of A in every lane"
    assert scripts("described", 0, 0, "word/a/33/1").startswith("lane 33 C301 0x")
    assert scripts("explained", 0, 17, 2, 0)["place"]["lane"] == 33
    (layout,) = report.document["layouts"]
    assert layout["tensor_memory"]


def test_the_selector_is_that_of_the_instruction_descriptor() -> None:
    (layout,) = gather(recorded("sparse")).document["layouts"]
    assert layout["selector"] == 2


def test_what_the_statement_changes_is_noted(scripts: Scripts) -> None:
    report = gather(recorded("D scaled down, disabled lanes"))
    scripts.load(report)
    (instruction,) = report.document["instructions"]
    assert instruction["kept"] == [0, 2, 64, 65]
    kept, computed = scripts("explained", 0, 2, 1, 0), scripts("explained", 0, 1, 1, 0)
    scaled = "scale-input-d is 3: the codes of C are those of C / 8"
    assert computed["notes"] == [scaled]
    assert kept["notes"] == [scaled, "disable-output-lane: this lane of D stays as it was"]
    moved = gather(recorded("rows moved")).document["instructions"][0]
    assert moved["notes"] == [".ashift: a row of A has the codes of the next row"]


def test_the_page_shows_32_lanes_at_a_time(browser: Any, tmp_path: Path) -> None:
    from tests.helpers.browser import Reader  # late: it skips where there is no browser

    path = tmp_path / "pair.html"
    Report(run=recorded("a pair")).save(path)
    page = Reader(browser, path, "#instruction=1&part=6&at=d/70/3")
    text = "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)"
    assert page.run(text, "#panel-registers h3 .name") == ["Tensor memory"]
    assert page.run(text, "#panel-registers tbody th")[:2] == ["192", "193"]
    # Lanes 64 to 95 of the odd CTA have rows 64 to 95 again, with the right half of the columns.
    assert page.run(text, "#panel-d tbody th") == [str(row) for row in np.arange(64, 96)]
    assert "lanes 192..223, odd CTA" in page.run(text, "button, option, label")
    page.picture("tensor_pair")
    assert browser.get_log("browser") == []
