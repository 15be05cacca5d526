"""The interactive report in a real browser: clicked, hovered over, typed at, and read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.browser import READY, ActionChains, By, Keys, Reader, WebDriverWait
from tests.helpers.reports import TRACES, example
from warpsim.base.errors import Location
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.fragments import metadata_map
from warpsim.isa.operand_places.places import feeds, lane_places
from warpsim.show.report import Report
from warpsim.workbench.explanation.digits import code_text
from warpsim.workbench.explanation.explain import explain_inputs
from warpsim.workbench.explanation.explanation_text import (
    operand_table,
    product_table,
    reading_notes,
    term_table,
)
from warpsim.workbench.traces.reading import Trace
from warpsim.workbench.traces.running import Run

SPARSE, LAST = "mma_sp_m16n8k32_f16", 7  # the last instruction of the trace: f32, ordered metadata


def opened(browser: Any, folder: Path, name: str, address: str = "") -> Reader:
    path = folder / f"{name}.html"
    if not path.exists():
        warpsim.view(example(name)).save(path)
    return Reader(browser, path, address)


def flipped(folder: Path) -> Path:
    """The report of the sparse example with one bit of the last D expected otherwise."""
    arrays = dict(np.load(TRACES / f"{SPARSE}.npz"))
    arrays["d3"][27, 0] ^= np.uint32(1 << 20)
    np.savez(folder / f"{SPARSE}.npz", **arrays)
    (folder / "failing.ptx").write_text((TRACES / f"{SPARSE}.ptx").read_text())
    warpsim.view(folder / "failing.ptx").save(folder / "failing.html")
    return folder / "failing.html"


def keys_of(held: Any) -> set[str]:
    return {f"{place.operand}/{place.row}/{place.column}" for place in held}


def matrices(keys: set[str]) -> set[str]:
    return {key for key in keys if key.split("/")[0] in {"a", "b", "c", "d", "e", "scale_a", "scale_b"}}


# --- pointing, clicking ----------------------------------------------------------------------------


def test_clicking_an_element_of_d_lights_what_feeds_it(browser, folder):
    page = opened(browser, folder, SPARSE, f"#instruction={LAST + 1}")
    event = example(SPARSE).events[LAST]
    form, selector = event.instruction, event.inputs.selector
    page.cell("d/5/3").click()
    explanation = explain_inputs(form, event.inputs, 5, 3)
    found = feeds(form, 5, 3, selector=selector)
    kept = [found.b[product.k] for product in explanation.products]
    assert matrices(page.lit("here")) == {"d/5/3"}
    assert matrices(page.lit("from")) == keys_of([found.c, *found.a, *kept, *found.metadata])
    assert {f"l/5/{product.k}" for product in explanation.products} <= page.lit("from")
    code = f"0x{explanation.code:08x}"
    assert page.line().split()[0] == "D[5,3]"
    assert code in page.line()
    page.picture("pinned")
    page.cell("d/5/3").click()  # again: released
    page.one("#mnemonic").click()
    page.run("document.activeElement.blur()")
    assert not page.one("#release").is_displayed()


def test_hovering_lights_and_leaving_darkens(browser, folder):
    page = opened(browser, folder, SPARSE, f"#instruction={LAST + 1}")
    event = example(SPARSE).events[LAST]
    held = [
        place
        for operand in "abcde"
        for place in lane_places(event.instruction, operand, 6, selector=event.inputs.selector)
    ]
    heading = page.cell("lane/6")
    ActionChains(browser).move_to_element(heading).perform()
    assert matrices(page.lit()) == keys_of(held)
    assert page.line().split()[0] == "T6"
    ActionChains(browser).move_to_element(page.one("h1")).perform()
    assert page.lit() == set()


def test_clicking_a_register_lights_its_elements_and_back(browser, folder):
    page = opened(browser, folder, SPARSE, f"#instruction={LAST + 1}")
    form = example(SPARSE).events[LAST].instruction
    page.cell("word/b/9/2").click()
    assert matrices(page.lit("here")) == keys_of(lane_places(form, "b", 9, 2))
    word = int(example(SPARSE).events[LAST].inputs.registers["b"][9, 2])
    assert f"0x{word:08x}" in page.line()
    page.cell("register/a/3").click()
    assert len(matrices(page.lit("here"))) == 64
    (place,) = [one for one in lane_places(form, "b", 9, 2) if one.low_bit == 16]
    page.cell(f"b/{place.row}/{place.column}").click()
    marked = page.run(
        "return [...document.querySelectorAll('[data-key=\"word/b/9/2\"] mark')].map(one => one.textContent)"
    )
    assert marked == [f"{word >> 16:04x}"]  # the upper four digits


def test_clicking_metadata_bits_lights_what_they_keep(browser, folder):
    page = opened(browser, folder, SPARSE, f"#instruction={LAST + 1}")
    event = example(SPARSE).events[LAST]
    lane, bit, _, row, chunk = metadata_map(event.instruction, event.inputs.selector)[21].tolist()
    cell = page.cell(f"e/{row}/{chunk}")
    field = int(event.inputs.registers["e"][lane, 0]) >> bit & 15
    kept = [4 * chunk + (field & 3), 4 * chunk + (field >> 2)]
    assert cell.text.split() == [f"{field:04b}", f"{kept[0]},{kept[1]}"]
    cell.click()
    assert {key for key in page.lit("to") if key.startswith("l/")} == {f"l/{row}/{k}" for k in kept}
    dropped = set(range(4 * chunk, 4 * chunk + 4)) - set(kept)
    assert {key for key in page.lit("with") if key.startswith("l/")} == {f"l/{row}/{k}" for k in dropped}
    assert all(page.cell(f"l/{row}/{k}").text == "" for k in dropped)
    assert f"T{lane} %e3_0[{bit + 3}..{bit}]" in page.line()


# --- explanations ----------------------------------------------------------------------------------


def rows_of(page: Reader, number: int) -> list[list[str]]:
    """The cells of the explanation's table of that number."""
    return page.run(
        "return [...document.querySelectorAll('#explanation table')][arguments[0]]"
        " && [...[...document.querySelectorAll('#explanation table')][arguments[0]].rows]"
        ".map(row => [...row.cells].map(cell => cell.textContent))",
        number,
    )


@pytest.mark.parametrize(("row", "column"), [(0, 0), (9, 7)])
def test_the_explanation_is_the_one_of_warpsim_explain(browser, folder, row, column):
    page = opened(browser, folder, SPARSE, f"#instruction={LAST + 1}")
    event = example(SPARSE).events[LAST]
    explanation = explain_inputs(event.instruction, event.inputs, row, column)
    cell = page.cell(f"d/{row}/{column}")
    cell.click()
    page.one("#explain").click()
    text = page.one("#explanation").text
    assert text.startswith(f"D[{row},{column}] = 0x{explanation.code:08x} = ")
    assert "✓ recomputed here in exact integers: the simulator's bits" in text
    own_names = re.compile(r"%([abce])(\d?)(?=\[)")
    names = {"a": "%a3t1_", "b": "%b3t1_", "c": "%d3_", "e": "%e3_"}

    def named(cell: str) -> str:
        return own_names.sub(lambda match: f"{names[match[1]]}{match[2] or 0}", cell)

    header, *expected = product_table(explanation)
    order = [*range(5), 8, 9, 10, *range(5, 8), *range(11, len(header))]  # metadata stands beside A
    found = rows_of(page, 0)[1:]
    assert found[:-1] == [[named(line[at]) for at in order] for line in expected[:-1]]
    assert found[-1][:5] == [named(text) for text in expected[-1][:5]]
    assert rows_of(page, 1) == term_table(explanation.steps[0])
    page.picture(f"explanation-{row}-{column}")


@pytest.mark.parametrize(
    "name",
    [
        "wgmma_m64n16k16_f16",
        "mma_m16n8k32_mxf8f6f4",
        "mma_m16n8k64_mxf4nvf4",
        "mma_m8n8k4_f16_volta",
        "mma_m16n8k256_b1",
        "mma_m16n8k8_f64",
        "mma_m16n8k8_tf32",
    ],
)
def test_every_family_is_shown_and_recomputed_in_the_page(browser, folder, name):
    page = opened(browser, folder, name, "#instruction=2&part=0&at=d/1/1&explain")
    event = list(example(name).events)[1]
    form = event.instruction
    assert page.one("#mnemonic").text == form.mnemonic
    assert "the simulator's bits" in page.one("#explanation").text
    explanation = explain_inputs(form, event.inputs, 1, 1)
    assert f"0x{explanation.code:0{form.d.bits // 4}x}" in page.one("#explanation h3").text
    assert all(note in page.one("#explanation").text for note in reading_notes(explanation))
    rows, expected = rows_of(page, 0), operand_table(explanation)
    assert [name for name in rows[0] if name not in ("scale A", "scale B")] == expected[0]
    assert [row[-1] for row in rows] == [row[-1] for row in expected]
    steps = [step for step in explanation.steps if step.exponent is not None]
    assert [rows_of(page, number + 1) for number in range(len(steps))] == [term_table(step) for step in steps]
    page.press(Keys.ESCAPE)
    page.picture(name)
    page.one("#prove").click()
    total = form.shape.m * form.shape.n * form.products
    WebDriverWait(browser, 20).until(
        lambda _: page.one("#proof").text == f"✓ {total} of {total} elements recomputed bit for bit"
    )
    assert browser.get_log("browser") == []


def test_wide_values_are_told_in_full(browser, folder):
    page = opened(browser, folder, "mma_m16n8k8_f64", "#instruction=2&part=0&at=d/1/1&explain")
    event = list(example("mma_m16n8k8_f64").events)[1]
    explanation = explain_inputs(event.instruction, event.inputs, 1, 1)
    texts = [code_text(product.b.number, product.b.format) for product in explanation.products]
    for row, text in zip(rows_of(page, 0)[1:], texts, strict=False):
        decimal, _, hexadecimal = row[7].partition(" = ")
        expected, _, digits = text.partition(" = ")
        assert (float(decimal), hexadecimal) == (float(expected), digits)


def test_a_wgmma_is_shown_warp_by_warp(browser, folder):
    page = opened(browser, folder, "wgmma_m64n16k16_f16")
    buttons = page.driver.find_elements(By.CSS_SELECTOR, "#parts button")
    assert [button.text for button in buttons][1:3] == ["warp 1: T32..T63", "warp 2: T64..T95"]
    buttons[2].click()
    rows = page.run("return [...document.querySelectorAll('#panel-d tbody th')].map(one => one.textContent)")
    assert rows == [str(row) for row in range(32, 48)]
    page.cell("lane/70").click()
    form = example("wgmma_m64n16k16_f16").events[0].instruction
    assert {key for key in page.lit() if key.startswith("d/")} == keys_of(lane_places(form, "d", 70))
    page.cell("b/3/4").click()
    assert "shared memory 0x" in page.line()


# --- differences -----------------------------------------------------------------------------------


def test_a_failed_check_is_where_the_page_opens(browser, folder):
    page = Reader(browser, flipped(folder))
    assert page.one("#position").text == "8 of 8"
    assert "✗ 1 of 4 checks failed: 1 word not as expected" in page.one(".verdict").text
    (cell,) = page.driver.find_elements(By.CSS_SELECTOR, "td.differs")
    assert cell.get_attribute("data-key") == "d/6/6"
    assert "differs from the expected 1.6373471" in cell.get_attribute("aria-label")
    mark = page.run("return getComputedStyle(arguments[0], '::before').content", cell)
    assert "≠" in mark  # not by colour alone
    page.press("n")
    assert page.run("return document.activeElement.dataset.key") == "d/6/6"
    assert "expected 1.6373471 0x3fd19497" in page.line()
    assert "differing bits 0x00100000" in page.line()
    page.picture("failing")


def several_flipped(folder: Path) -> Path:
    """The same with differences in two registers of several lanes."""
    arrays = dict(np.load(TRACES / f"{SPARSE}.npz"))
    for lane, register in ((27, 0), (3, 2), (3, 1), (30, 3)):
        arrays["d3"][lane, register] ^= np.uint32(1 << 20)
    np.savez(folder / f"{SPARSE}.npz", **arrays)
    (folder / "several.ptx").write_text((TRACES / f"{SPARSE}.ptx").read_text())
    warpsim.view(folder / "several.ptx").save(folder / "several.html")
    return folder / "several.html"


@pytest.mark.parametrize("width", [800, 1200, 1600])
def test_the_page_opens_at_the_difference_that_the_banner_names(browser, folder, width):
    browser.set_window_size(width, 1000)
    try:
        page = Reader(browser, several_flipped(folder))
        place = page.run("return new URLSearchParams(location.hash.slice(1)).get('at')")
        row, column = place.split("/")[1:]
        assert f"D[{row},{column}]" in page.one("#failures .failure").text
        inside = """const {top, bottom} = document.querySelector(`[data-key="${arguments[0]}"]`)
            .getBoundingClientRect(); return [top >= 0, bottom <= document.getElementById("dock")
            .getBoundingClientRect().top]"""
        assert page.run(inside, place) == [True, True]
        assert page.one("#next").is_displayed()  # which says that n goes on
        page.press("n")
        assert page.run("return document.activeElement.dataset.key") != place
        page.one("#failures .failure").click()
        assert page.run("return document.activeElement.dataset.key") == place
        page.press(Keys.ESCAPE)
        page.run("document.querySelector('#checks button:has(.failed)').click()")
        assert page.run("return document.activeElement.dataset.key") == place
        for scheme in ("light", "dark"):
            feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
            page.picture(f"opens-{width}-{scheme}")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        page.one("#explain").click()
        overflow = page.run(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0
        page.picture(f"explained-{width}")
    finally:
        browser.set_window_size(1440, 1100)


def wide(folder: Path) -> Path:
    """A wgmma of 256 columns, three times with other numbers."""
    rng = np.random.default_rng(0)
    group = warpsim.Warpgroup("sm_90a")
    registers = ", ".join(f"%d{index}" for index in range(128))
    events = []
    group["%a<4>"] = rng.standard_normal((128, 8)).astype(np.float16).view(np.uint32)
    tile = canonical_descriptor(0, TileShape(mn=256, k=16, element_bits=16, major="K"), swizzle="none")
    group["%b"] = np.uint64(tile.encode())
    for _ in range(3):
        group["%d<128>"] = rng.standard_normal((128, 128)).astype(np.float32).view(np.uint32)
        events += group.run(
            "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
            f"{{{registers}}}, {{%a0, %a1, %a2, %a3}}, %b, 1, 1, 1, 0;\n"
            "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
        )
    trace = Trace(
        path="wide.ptx", target="sm_90a", version=None, statements=(), loads={}, end=Location("wide", 1)
    )
    warpsim.view(Run(trace=trace, machine=group, events=events)).save(folder / "wide.html")
    return folder / "wide.html"


def test_steps_of_one_form_change_what_cells_show_and_build_nothing(browser, folder):
    page = Reader(browser, wide(folder), "#instruction=1&part=0&at=d/3/200")
    beside = """const cell = document.querySelector('[data-key="b/5/200"]').getBoundingClientRect();
        const box = document.querySelector("#panel-b .scroll").getBoundingClientRect();
        return cell.left >= box.left && cell.right <= box.right"""
    assert page.run(beside)  # the column of B that meets a pinned element of D
    page.run("document.querySelector('[data-key=\"d/3/200\"]').mine = true")
    milliseconds = page.run(
        "const start = performance.now(); document.getElementById('after').click();"
        "document.body.offsetHeight; return performance.now() - start"
    )
    assert page.run("return document.querySelector('[data-key=\"d/3/200\"]').mine")
    assert milliseconds < 1000  # a fifth of that on a machine of one's own
    fresh = Reader(browser, folder / "wide.html", "#instruction=2&part=0&at=d/3/200")
    shown = "return [...document.querySelectorAll('#board td[data-key]')].map(one => one.textContent).join()"
    expected = fresh.run(shown)
    page = Reader(browser, folder / "wide.html", "#instruction=1&part=0&at=d/3/200")
    page.one("#after").click()
    WebDriverWait(browser, 20).until(lambda _: page.run(shown) == expected)


# --- keys, order of tabs, names --------------------------------------------------------------------


def test_keys_move_pin_explain_step_and_release(browser, folder):
    page = opened(browser, folder, SPARSE)
    page.run("document.querySelector('#panel-d [tabindex=\"0\"]').focus()")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert page.run("return document.activeElement.dataset.key") == "d/2/1"
    assert matrices(page.lit("here")) == {"d/2/1"}  # focus lights, like the mouse
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.press(Keys.END, Keys.ENTER)
    assert page.one("#release").is_displayed()
    page.press(Keys.ENTER)
    assert page.one("#explanation h3").text.startswith("D[2,7] = 0x")
    before = page.one("#explanation h3").text
    page.press("]")
    assert page.one("#position").text == "2 of 8"
    assert page.one("#explanation h3").text.startswith("D[2,7] = 0x")  # pinned: it stays, with new bits
    assert page.one("#explanation h3").text != before
    page.press(Keys.ESCAPE)
    assert not page.one("#explanation").is_displayed()
    page.press("[")
    assert page.one("#position").text == "1 of 8"
    page.run("document.getElementById('steps').focus()")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert page.one("#steps [aria-selected=true] .number").text == "3"


def test_tab_reaches_every_grid_once(browser, folder):
    page = opened(browser, folder, SPARSE)
    reached = page.run(
        "return [...document.querySelectorAll('#board [role=grid] [tabindex=\"0\"]')]"
        ".map(one => one.closest('.panel').id)"
    )
    assert reached == [f"panel-{name}" for name in ("registers", "b", "a", "l", "d", "c", "e")]
    grids = page.driver.find_elements(By.CSS_SELECTOR, "[role=grid]")
    assert all(grid.get_attribute("aria-label") for grid in grids)
    label = page.cell("a/3/4").get_attribute("aria-label")
    assert re.fullmatch(r"A\[3,4\] \S+, 0x[0-9a-f]{4}, T\d+ %a0t0_\d\[\d+\.\.\d+\]", label)
    unnamed = page.run(
        "return [...document.querySelectorAll('button')]"
        ".filter(one => !one.textContent.trim() && !one.ariaLabel).length"
    )
    assert unnamed == 0


def test_cells_show_values_codes_and_lanes(browser, folder):
    page = opened(browser, folder, SPARSE, f"#instruction={LAST + 1}")
    code = int(
        warpsim.unpack(example(SPARSE).events[LAST].instruction, "d", example(SPARSE).events[LAST].d).view(
            "u4"
        )[4, 2]
    )
    page.press("v")
    assert page.cell("d/4/2").text == f"{code:08x}"
    page.press("v")
    (place,) = [
        one
        for one in lane_places(example(SPARSE).events[LAST].instruction, "d", 17)
        if (one.row, one.column) == (4, 2)
    ]
    assert page.cell("d/4/2").text == f"T17:d{place.index}"
    page.picture("lanes")
    page.press("?")
    assert page.one("#help").is_displayed()
    page.picture("help")


# --- light, dark, without colour, in a notebook ----------------------------------------------------


def background(page: Reader) -> str:
    return page.run("return getComputedStyle(document.documentElement).backgroundColor")


def test_light_and_dark_follow_the_system_until_someone_chooses(browser, folder):
    page = opened(browser, folder, SPARSE, f"#instruction={LAST + 1}&at=d/5/3")
    found = {}
    for scheme in ("light", "dark"):
        feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
        found[scheme] = background(page)
        page.picture(f"theme-{scheme}")
    assert found["light"] != found["dark"]
    page.press("t")  # the system says dark, the page is now light
    assert page.one("#theme").text == "Theme: light"
    assert background(page) == found["light"]
    page.press("t")
    assert background(page) == found["dark"]
    page.press("t")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_levels_of_light_differ_without_colour(browser, folder):
    """Filled, framed, dashed, underlined: each in its own way, in both themes."""
    page = opened(browser, folder, SPARSE, f"#instruction={LAST + 1}")
    styles = page.run(
        """return Object.fromEntries([...document.querySelectorAll(".legend [data-light]")].map(one => {
          const style = getComputedStyle(one);
          return [one.dataset.light, [style.boxShadow.replace(/(rgba?|oklab|color)\\(.*?\\)/g, ""),
            style.outlineStyle, style.fontWeight]];
        }))"""
    )
    assert set(styles) == {"here", "from", "to", "with"}
    assert len({str(style) for style in styles.values()}) == 4


def test_the_page_is_usable_in_a_small_window(browser, folder):
    page = opened(browser, folder, SPARSE)
    browser.set_window_size(700, 900)
    try:
        overflow = page.run(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0
        page.picture("small")
    finally:
        browser.set_window_size(1440, 1100)


def test_a_notebook_cell_shows_the_report(browser, folder):
    path = folder / "notebook.html"
    path.write_text(
        f"<!DOCTYPE html><title>notebook</title>{Report(run=example(SPARSE))._repr_html_()}", encoding="utf-8"
    )
    browser.get(path.as_uri())
    browser.switch_to.frame(0)
    try:
        WebDriverWait(browser, 20).until(lambda one: one.execute_script(READY))
        cell = browser.find_element(By.CSS_SELECTOR, '[data-key="d/0/0"]')
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", cell)
        cell.click()
        assert browser.find_element(By.ID, "line").text.startswith("D[0,0]")
    finally:
        browser.switch_to.default_content()


def test_nothing_is_complained_about(browser, folder):
    browser.get_log("browser")
    page = opened(browser, folder, SPARSE)
    page.cell("a/0/0").click()
    page.press("]", "v", "n", Keys.ESCAPE)
    assert browser.get_log("browser") == []
