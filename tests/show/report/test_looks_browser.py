"""How pages look in a browser: what fits at which width, and the contrast of small marks in both themes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import warpsim
from tests.helpers.browser import Keys, Reader
from tests.helpers.recorded import repeated_recording
from tests.helpers.reports import example
from tests.show.report.test_timeline_browser import recorded

SPARSE, QUADS, DENSE = "mma_sp_m16n8k32_f16", "mma_m8n8k4_f16_volta", "mma_m16n8k16_f16"
F32 = "#instruction=8"  # of the sparse example: 17 columns of registers
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = """return [...document.querySelectorAll(arguments[0])].filter(one => one.scrollWidth > one.clientWidth)
    .map(one => one.closest("[id]").id)"""
FAINT = """
const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
const paint = canvas.getContext("2d", {willReadFrequently: true});
function layered(colours) {
  paint.clearRect(0, 0, 1, 1);
  for (const colour of colours) { paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1); }
  return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
function luminance(colour) {
  const [red, green, blue] = colour.map(one => one / 255)
    .map(one => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
function ratio(element) {
  const grounds = [];
  for (let one = element; one; one = one.parentElement) {
    if (Number(getComputedStyle(one).opacity) < 0.99) return 0; // not measured: refused
    grounds.unshift(getComputedStyle(one).backgroundColor);
  }
  const ground = layered(["#fff", ...grounds]);
  const written = layered([`rgb(${ground})`, getComputedStyle(element).color]);
  const [low, high] = [ground, written].map(luminance).sort((one, two) => one - two);
  return (high + 0.05) / (low + 0.05);
}
return [...document.querySelectorAll(arguments[0])].filter(one => one.getClientRects().length)
  .map(one => [one.className || one.tagName, one.textContent.slice(0, 30), ratio(one)])
  .filter(([, , found]) => found < 4.5);
"""
MARKS = (
    ".chip, .badge, .state, .verdict, .evidence, .note, .hint, .apart, .unread, #steps small, .panel .name, "
    ".differs, [data-light], .tag, #targets li, #line span, .mark-line, .types i, .legend-text, #told"
)


def sized(driver: Any, path: Path, width: int, scheme: str = "light", address: str = "") -> Reader:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme_of = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme_of)
    return Reader(driver, path, address)


@pytest.fixture(scope="module")
def paths(folder: Path) -> dict[str, Path]:
    made = {name: folder / f"{name}.html" for name in (SPARSE, QUADS, DENSE, "launch", "many", "explorer")}
    warpsim.view(example(SPARSE)).save(made[SPARSE])
    warpsim.view(example(QUADS)).save(made[QUADS])
    warpsim.view(example(DENSE)).save(made[DENSE])
    warpsim.view(recorded("multicast_f16", "cta=0 step=0")).save(made["launch"])
    warpsim.view(repeated_recording(80)).save(made["many"])
    warpsim.explore().save(made["explorer"])
    return made


def test_registers_a_and_d_are_whole_at_1600_pixels(browser, paths):
    page = sized(browser, paths[SPARSE], 1600, address=F32)
    assert page.run(CUT, ", ".join(f"#panel-{name} .scroll" for name in ("registers", "a", "b", "d"))) == []
    rights = page.run(
        "const right = (one) => one.getBoundingClientRect().right;"
        "return ['#board', '[data-key=\"word/e/5/0\"]'].map(name => right(document.querySelector(name)))"
    )
    assert rights[0] >= rights[1]
    page.one("#before").click()
    assert page.run(CUT, "#panel-registers .scroll, #panel-a .scroll, #panel-d .scroll") == []
    page.picture("fits-1600")


@pytest.mark.parametrize("width", [1000, 1280])
def test_a_has_a_line_of_its_own_where_it_does_not_fit_beside_d(browser, paths, width):
    page = sized(browser, paths[SPARSE], width, address=F32)
    assert page.run(CUT, "#panel-a .scroll, #panel-d .scroll") == []
    top, bottom = (f"return document.querySelector('#panel-{name}').getBoundingClientRect()" for name in "da")
    assert page.run(f"{top}.top") > page.run(f"{bottom}.bottom")
    assert page.run(OVERFLOW) <= 0


def test_a_launch_has_no_empty_band_and_whole_places(browser, paths):
    page = sized(browser, paths["launch"], 1600)
    band = page.run(
        "return document.getElementById('shown').getBoundingClientRect().top"
        " - document.getElementById('timeline-box').getBoundingClientRect().bottom"
    )
    assert band < 60
    assert page.run(CUT, "#steps small") == page.run(CUT, "#steps") == []
    assert "CTA (0, 0, 0), warps 0 to 3, step 0" in page.one("#steps li").text


@pytest.mark.parametrize("width", [400, 800])
def test_lists_leave_the_first_screen_to_the_instruction(browser, paths, width):
    for name in (SPARSE, QUADS, "launch"):
        page = sized(browser, paths[name], width)
        assert page.run(OVERFLOW) <= 0
        assert page.run("return document.querySelector('.rail').offsetHeight") < 900 // 4
        if name != "launch":
            top = page.run("return document.getElementById('mnemonic').getBoundingClientRect().top")
            assert top < 900 // 2
    page.picture(f"first-screen-{width}")


def test_forms_of_one_name_are_told_apart(browser, paths):
    page = sized(browser, paths[QUADS], 1600)
    pairs = page.run(
        "return [...document.querySelectorAll('#steps li')].map(one => [one.dataset.index,"
        " one.querySelector('.what').textContent.replace(/ · line.*/s, '').replace(/\\s+/g, ' ')])"
    )
    mnemonics = [event.instruction.mnemonic for event in example(QUADS).events]
    assert len({text for _, text in pairs}) == len(set(mnemonics)) > 4
    assert {"row.row", "row.col.f16"} < {
        str(one.text) for one in page.driver.find_elements("css selector", ".apart")
    }


def test_the_legend_tells_elements_from_registers(browser, paths):
    page = sized(browser, paths[SPARSE], 1600, address=F32)
    text = page.one("#naming").text
    assert "%a3t1_0 holds a0,1, %b3t1_0 holds b0,1, %d3_0 holds c0, %d3_0 holds d0" in text
    page = sized(browser, paths["explorer"], 1600)
    assert "%a0 holds a0,1, %b0 holds b0,1, %c0 holds c0, %d0 holds d0" in page.one("#naming").text


AT = """const canvas = document.querySelector('#overview canvas');
canvas.parentElement.scrollTo(0, 0);
canvas.scrollIntoView({block: 'center'});
const {names, top, height, width} = canvas.dataset, box = canvas.getBoundingClientRect();
const at = (start, size, number) => Number(start) + Number(size) * (number + 0.5);
const where = {clientX: box.left + at(names, width, arguments[1])};
where.clientY = box.top + at(top, height, arguments[0]);
canvas.dispatchEvent(new PointerEvent(arguments[2], {bubbles: true, ...where}));"""


def test_thousands_of_instructions_are_seen_at_once_and_chosen(browser, paths):
    assert paths["many"].stat().st_size < 4_000_000
    page = sized(browser, paths["many"], 1600)
    assert (
        "2,560 by line, warp and step; matrices in this page: 512, the tall cells"
        in page.one("#overview").text
    )
    told = "#overview-told"
    page.run(AT, 3, 0, "click")  # line 15, CTA (1, 0, 0), warp 1: the first step
    assert page.one(told).text.startswith(
        "line 15 · CTA (1, 0, 0) · warp 1, step 0: mma.sync.aligned.m16n8k8"
    )
    assert "CTA (1, 0, 0), warp 1, step 0" in page.one("#facts").text
    number = page.one("#position").text.split()[0]
    assert f"→ instruction {number} of this page" in page.one(told).text
    page.run(AT, 3, 1, "pointermove")
    assert "A and B are those of the step before" in page.one(told).text
    page.run("document.querySelector('#overview canvas').focus()")
    page.press(Keys.ARROW_DOWN)
    assert page.one(told).text.startswith("line 15 · CTA (0, 1, 0) · warp 0, step 0")
    page.press(Keys.ENTER)
    assert "CTA (0, 1, 0), warp 0, step 0" in page.one("#facts").text
    wanted = page.one("#overview-marks [data-bit='3']")
    assert wanted.text == "2,544: A and B are those of the step before"
    wanted.click()
    assert wanted.get_attribute("aria-pressed") == "true"
    assert page.run(OVERFLOW) <= 0
    page.picture("overview-1600")
    page = sized(browser, paths["many"], 400, "dark")
    assert page.run(OVERFLOW) <= 0
    page.picture("overview-400-dark")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_small_marks_can_be_read(browser, paths, scheme):
    for name, address in (
        (SPARSE, f"{F32}&at=d/5/3"),
        ("launch", ""),
        ("many", ""),
        ("explorer", "#at=d/5/3"),
    ):
        page = sized(browser, paths[name], 1600, scheme, address)
        assert page.run(FAINT, MARKS) == []


def test_pasted_words_show_at_once_what_they_hold(browser, paths):
    page = sized(browser, paths["explorer"], 800)
    page.one("#paste-text").send_keys("T0: 0xc0003c00 16384\nT31: 3c003c00")
    assert (
        page.one("#paste-note").text
        == "3 of 128 words (32 lanes of 4 registers): cells of the others are empty"
    )
    cells = "return [...document.querySelectorAll('#paste-matrix tbody tr')].map(row => row.textContent)"
    shown = page.run(cells)
    assert (len(shown), shown[0], shown[8], shown[7]) == (16, "01-2", "820", "711")
    page.run(
        "const chosen = document.querySelector('#paste-operand');"
        "chosen.value = 'd'; chosen.dispatchEvent(new Event('change'))"
    )
    assert page.run(cells)[0].startswith("0-2.00")
    assert page.run(OVERFLOW) <= 0
    page.run("document.querySelector('#paste').scrollIntoView()")
    page.picture("pasted-800")
    assert browser.get_log("browser") == []


def test_what_is_pasted_anywhere_goes_to_the_box(browser, paths):
    page = sized(browser, paths["explorer"], 1600, address="#view=cells")
    paste = """const data = new DataTransfer();
        data.setData('text/plain', arguments[0]);
        const event = new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true});
        document.body.dispatchEvent(event);"""
    page.run(paste, "\n".join(["3c003c00 4000c000"] * 32))  # 64 words: B of the form that is shown
    assert page.run("return document.querySelector('#paste-operand').value") == "b"
    assert page.one("#paste-note").text == "64 words: 32 lanes of 2 registers"
    assert page.run("return document.activeElement.id") == "paste-text"
    top = page.run("return document.querySelector('#paste').getBoundingClientRect().top")
    assert 0 <= top < 450
    page.press(Keys.TAB)
    page.run(
        "document.activeElement.blur(); scrollTo(0, 0); document.querySelector('#paste-text').value = ''"
    )
    page.press("v")
    assert page.run("return document.activeElement.id") == "paste-text"


def test_every_form_of_the_list_reads_differently(browser, paths):
    page = sized(browser, paths["explorer"], 1600)
    groups = page.run("""let family = '';
        return [...document.querySelectorAll('#forms li')].map(one => {
            if (one.classList.contains('family')) family = one.textContent;
            return [family, one.textContent].join(' ');
        })""")
    assert len(groups) == len(set(groups)) > 200
    assert "mma m8n8k4f32 ← f16 · f16 + f32row.col" not in groups  # C is named where it is not of D's type
    assert "mma m8n8k4f32 ← f16 · f16 + f16row.col" in groups


SMALL = """return [...document.querySelectorAll('button, summary, select, #steps li, .choice label')]
    .map(one => [one.textContent.trim(), one.getBoundingClientRect().height])
    .filter(([, height]) => height > 0 && height < 24)"""


def test_what_is_pressed_is_24_pixels_high(browser, paths):  # WCAG 2.2, 2.5.8
    for name in (SPARSE, "launch"):
        assert sized(browser, paths[name], 400).run(SMALL) == []


def test_no_line_strikes_a_label_through(browser, paths):
    page = sized(browser, paths["explorer"], 400)  # boxes of two rows with a single line of text
    lines = page.run("return document.querySelector('.part.of-b .separators').getAttribute('d')")
    assert lines.count("h3") == lines.count("h") > 32
    page = sized(browser, paths["explorer"], 1600)
    assert "h3M" not in page.run("return document.querySelector('.part.of-b .separators').getAttribute('d')")


PAPER = """return [...document.querySelectorAll('.panel .scroll, .part .scroll')]
    .map(one => [one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight,
        one.getBoundingClientRect().right - 1.3 * innerWidth])
    .filter(one => one.some(beyond => beyond > 1))"""  # Chromium shrinks a page that is wider than paper


@pytest.mark.parametrize("name", [SPARSE, "explorer"])
def test_nothing_is_cut_off_or_dark_on_paper(browser, paths, name):
    page = sized(browser, paths[name], 1047, "dark")  # an A4 page on its side, less its margins
    page.run("document.documentElement.dataset.theme = 'dark'; dispatchEvent(new Event('beforeprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.run(PAPER) == []
        assert page.run("return document.querySelectorAll('.waiting').length") == 0
        assert page.run("return getComputedStyle(document.documentElement).colorScheme") == "light"
        hidden = (
            "return [...document.querySelectorAll('.rail, .tools, #dock')].every(one => !one.offsetHeight)"
        )
        assert page.run(hidden)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_registers_of_f32_stand_beside_b_at_1600_pixels(browser, paths):
    page = sized(browser, paths[DENSE], 1600, address="#instruction=4")
    top, bottom = page.run("""const box = name => document.getElementById(name).getBoundingClientRect();
        return [box('panel-b').top, box('panel-registers').bottom]""")
    assert top < bottom
