"""The explorer in a real browser: pointed at, clicked, typed at, read, exported from.

Needs Debian's chromium with chromium-driver, and selenium (``pip install '.[browser]'``); skipped, saying
so, where one is missing. Screenshots are kept in build/screenshots, which git ignores.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import warpsim
from tests.helpers.browser import READY, SCREENSHOTS, ActionChains, By, Keys, Select, WebDriverWait, started
from warpsim.isa.operand_places.places import element_place, feeds, lane_places, places
from warpsim.show.views.layouts.layout import layout_lines
from warpsim.show.views.layouts.shared_tiles import shared_tile

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e4m3.f32.ue8m0"
QUADS = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16"
BITS = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"
GROUP = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = started("1600,1200", ("browser", "performance"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("explorer") / "explorer.html"
    warpsim.explore(DENSE).save(made)
    return made


class Reader:
    """The page, open at a form, and what can be done and read in it."""

    def __init__(self, driver: Any, path: Path, form: str = "", more: str = "") -> None:
        self.driver = driver
        address = f"#form={quote(form)}{more}" if form else ""
        driver.get("about:blank")
        driver.get(f"{path.as_uri()}{address}")
        WebDriverWait(driver, 20).until(lambda one: one.execute_script(READY))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def box(self, figure: str, text: str) -> Any:
        """The first box of a figure with that text in its first line."""
        script = """return [...document.querySelectorAll(`svg[data-figure="${arguments[0]}"] .box`)]
            .find((box) => box.querySelector("text")?.textContent === arguments[1])"""
        self.run("document.querySelector(`[data-name=${arguments[0]}]`).scrollIntoView()", figure)
        found = WebDriverWait(self.driver, 10).until(lambda _: self.run(script, figure, text))
        self.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", found)
        return found

    def hover(self, figure: str, text: str, share: float = 0.5, down: float = 0.5) -> None:
        """Point at a share of a box, from its left and from its top."""
        rect = self.box(figure, text).find_element(By.CSS_SELECTOR, "rect")
        size = self.run(
            "const {width, height} = arguments[0].getBoundingClientRect(); return [width, height]", rect
        )
        offset = [round(size[0] * (share - 0.5)), round(size[1] * (down - 0.5))]
        ActionChains(self.driver).move_to_element_with_offset(rect, *offset).perform()

    def lit(self, figure: str, *levels: str) -> set[str]:
        """Keys of what is lit in a figure; a mark of a whole box has the key of its first element."""
        script = """const svg = document.querySelector(`svg[data-figure="${arguments[0]}"]`);
            return [...svg.querySelectorAll(".lit-layer > rect")]
                .map((mark) => [mark.dataset.of, mark.dataset.light])"""
        return {key for key, level in self.run(script, figure) if not levels or level in levels}

    def line(self) -> str:
        return self.one("#line").text

    def picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(SCREENSHOTS / f"explorer-{name}.png"))


def boxed(held: Any) -> set[str]:
    """Keys of the first of each two neighbours along k or n that one register holds."""
    return {
        f"{one.operand}/{one.row}/{one.column}"
        for one in held
        if (one.row if one.operand == "b" else one.column) % 2 == 0
    }


# --- pointing ----------------------------------------------------------------------------------------


def test_pointing_at_an_element_says_where_it_lies_and_what_feeds_it(browser, path):
    page = Reader(browser, path, DENSE)
    page.hover("d", "T14", 0.75)  # D[3,5], the second element of T14's first box
    form = warpsim.decode(DENSE)
    place = element_place(form, "d", 3, 5)
    assert page.line().startswith("D[3,5]")
    assert str(place) in page.line()
    assert page.lit("d", "here") == {"d/3/5"}
    found = feeds(form, 3, 5)
    assert page.lit("a", "from") == boxed(found.a)
    assert page.lit("b", "from") == boxed(found.b)
    assert page.lit("pad", "here") == {"lane/14", "register/d/1"}
    ActionChains(browser).move_to_element(page.one("#mnemonic")).perform()
    assert page.lit("d") == set()


def test_pointing_at_a_lane_or_a_register_lights_its_elements(browser, path):
    page = Reader(browser, path, DENSE)
    form = warpsim.decode(DENSE)
    page.hover("pad", "T6")
    for operand in "abd":
        assert page.lit(operand, "here") == boxed(lane_places(form, operand, 6)), operand
    assert page.line().split()[0] == "T6"
    page.hover("pad", "%a2")
    expected = {place for lane in range(32) for place in lane_places(form, "a", lane, 2)}
    assert page.lit("a", "here") == boxed(expected)
    page.hover("registers", "0,2:3")
    assert page.line().startswith("T1 %a0")
    assert page.lit("a", "here") == {"a/0/2"}


def test_clicking_pins_and_the_address_brings_it_back(browser, path):
    page = Reader(browser, path, DENSE)
    page.hover("a", "T9", 0.25)
    ActionChains(browser).click().perform()
    ActionChains(browser).move_to_element(page.one("#mnemonic")).perform()
    assert page.lit("a", "here") == {"a/2/2"}
    address = page.run("return location.hash")
    assert "at=a/2/2" in address
    again = Reader(browser, path, DENSE, "&at=a/2/2")
    assert again.lit("a", "here") == {"a/2/2"}
    page.one("#release").click()
    assert page.lit("a") == set()
    assert "at=" not in page.run("return location.hash")


def test_metadata_and_selectors(browser, path):
    page = Reader(browser, path, SPARSE, "&at=e/3/2")
    form = warpsim.decode(SPARSE)
    for selector in form.selectors:
        field = next(one for one in places(form, "e", selector) if (one.row, one.column) == (3, 2))
        assert str(field) in page.line()
        assert page.lit("a", "to") == {"a/3/4"}  # both stored elements of the chunk, one box
        assert f"lane/{field.lane}" in page.lit("pad", "here")
        page.press("s")
    page.press("l")
    labels = page.run(
        "return [...document.querySelectorAll('[data-figure=a] .across')].map(one => one.textContent)"
    )
    assert labels == [f"{first}..{first + 3}" for first in range(0, 32, 4)]
    page.picture("metadata")


def test_shared_memory_of_a_wgmma(browser, path):
    page = Reader(browser, path, GROUP, "&at=b/3/5")
    form = warpsim.decode(GROUP)
    for swizzle in ("none", "32B", "128B"):
        page.run(f"document.querySelector('[data-choice=swizzle] input[value=\"{swizzle}\"]').click()")
        tile = shared_tile(form, "b", swizzle)
        assert f"byte {tile.address(3, 5):#06x} " in page.line()
        assert page.one("#word-b").text == f"{tile.descriptor.encode():#018x}"
    page.press("p")
    rows = page.run(
        "return [...document.querySelectorAll('[data-figure=d] .down')].map(one => one.textContent)"
    )
    assert rows == [str(row) for row in range(16, 32)]
    page.press("n")
    assert "m64n72k16" in page.one("#mnemonic").text
    page.press("N")
    page.press("N")
    assert "m64n56k16" in page.one("#mnemonic").text
    refused = page.all("[data-choice=major_b] input:disabled")
    assert refused == []
    assert Reader(browser, path, GROUP.replace("k16.f32.f16.f16", "k8.f32.tf32.tf32")).all(
        "[data-choice=major_b] input:disabled"
    )


def test_scales_and_products(browser, path):
    page = Reader(browser, path, SCALED, "&at=d/3/5")
    form = warpsim.decode(SCALED)
    found = feeds(form, 3, 5)
    page.box("scale_b", "T0")
    page.box("scale_a", "T0")
    assert page.lit("scale_a", "from") == {f"scale_a/{one.row}/{one.column}" for one in found.scale_a}
    assert page.lit("scale_b", "from") == {f"scale_b/{one.row}/{one.column}" for one in found.scale_b}
    page = Reader(browser, path, QUADS, "&part=2&at=d/5/3")
    place = element_place(warpsim.decode(QUADS), "d", 5, 3, product=2)
    assert str(place) in page.line()


# --- keys --------------------------------------------------------------------------------------------


def test_searching_and_walking_by_keyboard(browser, path):
    page = Reader(browser, path, DENSE)
    page.press("/", "m64n32k16 bf16")
    assert page.one("#count").text == "1 of 1,494 forms"
    page.press(Keys.ENTER)
    assert (
        page.one("#mnemonic").text.replace("\n", "") == "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16"
    )
    page.one("#clear").click()
    page.press(*"sparse e2m1 mxf4", Keys.ARROW_DOWN)
    first = page.one("#mnemonic").text
    page.press(Keys.ARROW_DOWN)
    assert page.one("#mnemonic").text != first
    page.press("[")
    assert page.one("#mnemonic").text == first
    page.one("#clear").click()
    Select(page.one("#filter-target")).select_by_value("sm_75")
    expected = sum("sm_75" in form.targets for form in warpsim.instructions())
    assert page.one("#count").text.startswith(f"{expected} of ")
    Select(page.one("#filter-type")).select_by_value("b1")
    assert all("m8n8k128" in one.text for one in page.all("#forms [data-group]"))


def test_walking_in_a_figure_by_keyboard(browser, path):
    page = Reader(browser, path, DENSE)
    page.run("document.querySelector('[data-figure=a]').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert page.lit("a", "here") == {"a/0/0"}
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert page.lit("a", "here") == {"a/1/2"}
    page.press(Keys.ARROW_LEFT)
    assert page.line().startswith("A[1,1]")
    page.press(Keys.ENTER)
    page.run("document.activeElement.blur()")
    assert page.lit("a", "here") == {"a/1/1"}
    page.press(Keys.ESCAPE)
    assert page.lit("a") == set()
    page.press("c")
    assert page.one("[data-choice=colouring] input:checked").get_attribute("value") == "register"
    page.press("?")
    assert page.one("#help").is_displayed()
    page.press(Keys.ESCAPE)


# --- copying -------------------------------------------------------------------------------------------

CAPTURE = (
    "window.copied = []; document.execCommand = () => { window.copied.push("
    "document.activeElement.value); return true; }; "
    "navigator.clipboard.writeText = (text) => { window.copied.push(text); return Promise.resolve(); };"
)


def test_copying_a_form(browser, path):
    page = Reader(browser, path, DENSE)
    page.run(CAPTURE)
    page.one("#copy-ptx").click()
    page.press("2", "3")
    WebDriverWait(browser, 5).until(lambda _: len(page.run("return window.copied")) == 3)
    ptx, cute, code = page.run("return window.copied")
    assert ptx.splitlines()[4:6] == [DENSE, "    {%d0, %d1, %d2, %d3},"]
    assert "using BLayout = Layout<Shape<Shape<_4,_8>,Shape<_2,_2>>," in cute
    assert "int a_column(int lane, int i) { return 2 * (lane % 4) + i % 2 + 8 * (i / 4); }" in code
    assert page.one("#notice").text == "C code copied"


def test_exporting_a_figure(browser, path):
    page = Reader(browser, path, SPARSE)
    page.hover("b", "T0")
    page.one('[data-export="b"]').click()
    form = warpsim.decode(SPARSE)
    text = page.one("#export-text").get_attribute("value")
    assert text.splitlines() == layout_lines(form, "b")[2 : 2 + len(text.splitlines())]
    for name, start in (
        ("csv", "operand,product,row"),
        ("markdown", "**B of sparse"),
        ("latex", "% B of sparse"),
    ):
        page.run(f"document.querySelector('#export-format input[value={name}]').click()")
        assert page.one("#export-text").get_attribute("value").startswith(start)
    page.run(CAPTURE)
    page.one("#export-copy").click()
    WebDriverWait(browser, 5).until(lambda _: page.run("return window.copied.length"))
    assert page.run("return window.copied[0]").startswith("% B of sparse")
    titles = [one.text for one in page.all("#export-figure option")]
    assert any(one.startswith("Metadata of sparse") for one in titles)
    page.picture("export")
    page.press(Keys.ESCAPE)


# --- looks ---------------------------------------------------------------------------------------------

SHOWN = {"dense": DENSE, "sparse": SPARSE, "scaled": SCALED, "quads": QUADS, "bits": BITS, "group": GROUP}
OVERFLOW = """
const wide = document.documentElement.scrollWidth - innerWidth;
const cut = [...document.querySelectorAll("main > * *")]
  .filter((one) => !one.closest(".scroll, svg, .spoken"))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5)
  .map((one) => one.id || one.className);
return [wide, cut];
"""


@pytest.mark.parametrize("width", [800, 1200, 1600])
def test_nothing_overflows_in_any_theme(browser, path, width):
    browser.set_window_size(width, 1200)
    try:
        for name, form in SHOWN.items():
            page = Reader(browser, path, form, "&at=d/3/5")
            for theme in ("light", "dark"):
                page.run("document.documentElement.dataset.theme = arguments[0]", theme)
                wide, cut = page.run(OVERFLOW)
                assert wide <= 0, (name, wide)
                assert cut == [], (name, cut)
                page.picture(f"{name}-{width}-{theme}")
    finally:
        browser.set_window_size(1600, 1200)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_stand_out_from_boxes(browser, path, theme):
    """At least 4.5 : 1 between the text and the fill of every box, however they are coloured."""
    page = Reader(browser, path, DENSE)
    page.run("document.documentElement.dataset.theme = arguments[0]", theme)
    script = """
    const numbers = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const linear = (one) => (one /= 255) <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    return Math.min(...[...document.querySelectorAll("#composite .box")].map((box) => {
      const fillOf = (tag) => getComputedStyle(box.querySelector(tag)).fill;
      const fills = ["rect", "text"].map((tag) => light(numbers(fillOf(tag))));
      return (Math.max(...fills) + 0.05) / (Math.min(...fills) + 0.05);
    }));
    """
    for _ in range(3):
        assert page.run(script) > 4.5
        page.press("c")


def test_nothing_is_asked_of_a_network_or_complained_about(browser, path):
    browser.get_log("performance")
    browser.get_log("browser")
    page = Reader(browser, path, GROUP)
    page.press("c", "p", "+", "e")
    events = [one["message"] for one in browser.get_log("performance")]
    asked = [one for one in events if '"Network.requestWillBeSent"' in one]
    assert all('"url":"file://' in one or '"url":"about:blank"' in one for one in asked)
    assert browser.get_log("browser") == []


def test_it_shows_itself_in_a_notebook(browser, tmp_path):
    framed = tmp_path / "cell.html"
    framed.write_text(f"<!DOCTYPE html><body>{warpsim.explore(SPARSE)._repr_html_()}</body>")
    browser.get(framed.as_uri())
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    try:
        WebDriverWait(browser, 20).until(lambda one: one.execute_script(READY))
        assert browser.find_element(By.ID, "mnemonic").text.replace("\n", "") == SPARSE
        ActionChains(browser).send_keys("c").perform()
    finally:
        browser.switch_to.default_content()


def test_choosing_at_a_narrow_width(browser, path):
    browser.set_window_size(800, 1000)
    try:
        page = Reader(browser, path, DENSE)
        assert not page.one("#search").is_displayed()
        page.one("#drawer").click()
        WebDriverWait(browser, 5).until(lambda _: page.one("#search").is_displayed())
        page.press("/", "m16n8k64 u4 s4 satfinite", Keys.ENTER)
        page.picture("drawer")
        page.press(Keys.ENTER)
        WebDriverWait(browser, 5).until(lambda _: not page.one("#search").is_displayed())
        assert "m16n8k64" in page.one("#mnemonic").text
    finally:
        browser.set_window_size(1600, 1200)
