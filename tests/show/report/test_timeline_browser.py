"""The timeline of a launch in the report, in a browser: pointed at, clicked, moved through by keys."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import warpsim
from tests.helpers.browser import ActionChains, Keys, Reader
from tests.helpers.kernel_cases import FOLDER, case
from tests.helpers.recorded import recorded_tiles
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.vectors.recordings import Recording

NARROW, WIDE = 800, 1600


@cache
def recorded(name: str, selection: str) -> Recording:
    """A launch that has all of its copies late."""
    one = case(name)
    kernel = load_text((FOLDER / one.file).read_text(), one.file)[one.entry]
    report = kernel(
        one.grid,
        one.block,
        one.passed(one.arguments),
        shared_bytes=one.shared_bytes,
        cluster=one.cluster,
        schedule="latest",
        checks="off",
        timeline=selection,
        record=selection,
    )
    return Recording(
        kernel=one.entry,
        file=one.file,
        target="sm_90a",
        grid=one.grid if isinstance(one.grid, tuple) else (one.grid, 1, 1),
        block=(384, 1, 1),
        events=report.events,
        timeline=report.timeline,
    )


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Path:
    path = folder / "cluster.html"
    warpsim.view(recorded("multicast_f16", "cta=0 cta=1")).save(path)
    return path


def opened(driver: Any, path: Path, width: int, scheme: str) -> Reader:
    size = {"width": width, "height": 1100, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme_of = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme_of)
    return Reader(driver, path)


def strips(page: Reader, kind: str) -> list[Any]:
    found: list[Any] = page.run(
        "return [...document.querySelectorAll(`.inner .${arguments[0]}-strip`)]", kind
    )
    return found


def told(page: Reader) -> str:
    return str(page.one("#told").text)


def focused(page: Reader) -> Any:
    return page.run("return document.activeElement")


# --- looks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_it_fits_and_has_the_colours_of_the_theme(browser, cluster, width, scheme):
    page = opened(browser, cluster, width, scheme)
    overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.run(overflow) <= 0
    page.run("document.getElementById('timeline').scrollIntoView()")
    page.run("document.getElementById('timeline-box').scrollTop = 200")
    surface, waits, word = page.run(
        "const colour = (selector, name) => getComputedStyle(document.querySelector(selector))[name];"
        "return [colour('#timeline-box', 'backgroundColor'), colour('.bar.wait', 'fill'),"
        " colour('#timeline .names text', 'fill')]"
    )
    expected = {
        "light": ["rgb(255, 255, 255)", "rgb(217, 201, 245)", "rgb(24, 28, 34)"],
        "dark": ["rgb(28, 32, 39)", "rgb(77, 58, 120)", "rgb(230, 233, 238)"],
    }
    assert [surface, waits, word] == expected[scheme]
    page.picture(f"timeline-{width}-{scheme}")


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_names_and_numbers_stay_at_the_edges(browser, cluster, width):
    page = opened(browser, cluster, width, "light")
    places = (
        "const box = document.getElementById('timeline-box'); box.scrollTo(300, 150);"
        "const [outer, names, numbers] = [box, ...box.querySelectorAll('.names, .numbers')]"
        "  .map(one => one.getBoundingClientRect());"
        "const by = box.querySelector('.names').getBoundingClientRect();"
        "const above = box.querySelector('.numbers').getBoundingClientRect();"
        "return [by.left - outer.left, above.top - outer.top, box.scrollLeft, box.scrollTop]"
    )
    left, top, moved, lower = page.run(places)
    assert (round(left), round(top), moved, lower) == (1, 1, 300, 150)


# --- pointing and clicking -------------------------------------------------------------------------


def test_pointing_tells_who_and_what(browser, cluster):
    page = opened(browser, cluster, WIDE, "light")
    assert told(page).startswith("Point at a strip")
    page.run("document.getElementById('timeline').scrollIntoView()")
    first = strips(page, "copy")[0]
    page.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", first)
    ActionChains(browser).move_to_element(first).perform()
    timeline = recorded("multicast_f16", "cta=0 cta=1").timeline
    copy = next(one for one in timeline.strips if one.kind == "copy" and one.cta == (0, 0, 0))
    lines = told(page).split("\n")
    assert lines[0].startswith(f"line {copy.lines[0]}: cp.async.bulk.tensor.2d.")
    assert lines[1] == f"CTA (0, 0, 0), warp 8, event {copy.first} to event {copy.last}"
    assert f"{copy.size:,} bytes" in lines
    ActionChains(browser).move_to_element(page.one("h1")).perform()
    assert told(page).startswith("Point at a strip")


def test_an_arrival_of_the_other_cta_is_lit_with_the_wait_that_it_ends(browser, cluster):
    page = opened(browser, cluster, WIDE, "dark")
    found = page.run(
        "return [...document.querySelectorAll('.arrow[data-from]')].map(one =>"
        " [one.dataset.from, one.dataset.to, one.querySelector('title').textContent])"
    )
    timeline = recorded("multicast_f16", "cta=0 cta=1").timeline
    ends = [(timeline.strips[int(one)], timeline.strips[int(two)], text) for one, two, text in found]
    across = [(one, two, text) for one, two, text in ends if one.cta != two.cta and one.kind == "arrival"]
    assert across
    source, target, text = across[0]
    assert text.endswith(f"at line {target.lines[0]} of CTA ({', '.join(map(str, target.cta))})")
    number = timeline.strips.index(source)
    page.run(f"document.querySelector('[data-strip=\"{number}\"]').focus()")
    lit = page.run(
        "return [...document.querySelectorAll('#timeline .with')].map(one => Number(one.dataset.strip))"
    )
    assert timeline.strips.index(target) in lit
    assert f"line {source.lines[0]}" in told(page)
    page.run("document.getElementById('timeline').scrollIntoView()")
    page.picture("timeline-remote")


def test_clicking_a_wgmma_shows_its_instructions_one_after_the_other(browser, cluster):
    page = opened(browser, cluster, WIDE, "light")
    strip = strips(page, "wgmma")[2]
    places = [int(one) for one in strip.get_attribute("data-instructions").split()]
    assert len(places) == 4
    page.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", strip)
    seen = []
    for _ in range(5):
        strip.click()
        seen.append(
            page.run("return Number(document.querySelector('#steps [aria-selected=true]').dataset.index)")
        )
    assert seen == [*places, places[0]]
    assert f"instructions {places[0] + 1} to {places[-1] + 1} of this report, shown: {places[0] + 1}" in told(
        page
    )
    assert "shown" in strip.get_attribute("class").split()
    executed = recorded("multicast_f16", "cta=0 cta=1").events[places[0]]
    assert executed.place in page.one("#facts").text
    waiting = strips(page, "wait")[0]
    page.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", waiting)
    waiting.click()
    assert seen[-1] == page.run(
        "return Number(document.querySelector('#steps [aria-selected=true]').dataset.index)"
    )


def test_instructions_of_warps_in_turn_are_listed_one_by_one(browser, folder):
    whole = recorded("dense_f16 normal", "cta=0")
    warpsim.view(whole).save(folder / "turns.html")
    page = opened(browser, folder / "turns.html", NARROW, "dark")
    strip = strips(page, "matrix")[0]
    page.run("arguments[0].focus()", strip)
    places = [at for at, one in enumerate(whole.events) if (one.warp, one.index) == (0, 0)]
    assert len(places) == 4
    assert f"instructions {', '.join(str(at + 1) for at in places)} of this report" in told(page)


def test_the_strip_of_what_is_shown_is_marked_and_in_view(browser, cluster):
    page = opened(browser, cluster, NARROW, "light")
    last = len(recorded("multicast_f16", "cta=0 cta=1").events) - 1
    page.run(f"document.querySelectorAll('#steps li')[{last}].click()")
    inside = page.run(
        "const box = document.getElementById('timeline-box').getBoundingClientRect();"
        "const [one, more] = document.querySelectorAll('#timeline .shown');"
        "const own = one.getBoundingClientRect();"
        "return [more === undefined, own.left > box.left + 180, own.right < box.right,"
        " own.top > box.top, own.bottom < box.bottom, one.dataset.instructions]"
    )
    assert inside[:5] == [True] * 5
    assert str(last) in inside[5].split()


# --- keys ------------------------------------------------------------------------------------------


REACHABLE = "return document.querySelectorAll('[data-strip][tabindex=\"0\"]').length"


def test_keys_move_along_rows_and_between_them(browser, cluster):
    page = opened(browser, cluster, WIDE, "light")
    reachable = page.run(REACHABLE)
    assert reachable == 1
    page.run("document.querySelector('[data-strip][tabindex=\"0\"]').focus()")
    first = focused(page)
    row = "return [...document.querySelectorAll('g.row')].indexOf(arguments[0].closest('g.row'))"
    left = "return arguments[0].getBoundingClientRect().left"
    page.press(Keys.ARROW_RIGHT)
    second = focused(page)
    assert page.run(row, second) == page.run(row, first)
    assert page.run(left, second) > page.run(left, first)
    page.press(Keys.END)
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    below = focused(page)
    assert page.run(row, below) > page.run(row, first)
    box = page.run("return document.getElementById('timeline-box').getBoundingClientRect().right")
    assert page.run("return arguments[0].getBoundingClientRect().right", below) <= box
    page.press(Keys.HOME, Keys.ARROW_UP, Keys.ARROW_UP)
    assert page.run(row, focused(page)) == page.run(row, first)
    assert page.run(REACHABLE) == 1


def test_enter_goes_to_the_instruction_and_keeps_the_place(browser, cluster):
    page = opened(browser, cluster, WIDE, "light")
    strip = strips(page, "wgmma")[3]
    places = [int(one) for one in strip.get_attribute("data-instructions").split()]
    page.run("arguments[0].focus()", strip)
    page.press(Keys.ENTER, Keys.ENTER)
    assert focused(page) == strip
    assert page.one("#position").text.startswith(f"{places[1] + 1} of ")
    page.press("]")
    assert page.one("#position").text.startswith(f"{places[2] + 1} of ")


def test_a_launch_without_matrix_instructions_has_its_timeline(browser, folder):
    found = recorded("cluster_sum", "cta=0 cta=1 cta=2")
    assert not found.events
    warpsim.view(found).save(folder / "sum.html")
    page = opened(browser, folder / "sum.html", WIDE, "light")
    page.run("arguments[0].focus()", strips(page, "barrier")[0])
    assert "CTA (0, 0, 0), warp 0" in told(page)
    assert "No matrix instruction is recorded." in page.one("main").text


def test_nothing_is_loaded_and_nothing_complains(browser, cluster):
    page = opened(browser, cluster, WIDE, "light")
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


# --- many CTAs ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(folder: Path) -> Path:
    path = folder / "many_ctas.html"
    warpsim.view(recorded_tiles(8)).save(path)
    return path


HEIGHT = "return document.querySelector('#timeline .events').getBoundingClientRect().height"


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (800, "light"), (1600, "light")])
def test_ctas_behind_the_first_are_folded(browser, many, width, scheme):
    page = opened(browser, many, width, scheme)
    assert page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.run(HEIGHT) < 64 * 30 + 200
    states = "return [...document.querySelectorAll('#timeline .names .head')].map(one => one.ariaExpanded)"
    assert page.run(states) == ["true", *["false"] * 63]
    names, events = (
        page.run(
            "return [...document.querySelectorAll(`#timeline .${arguments[0]} .of-cta.folded`)]"
            ".slice(0, 9).map(one => Math.round(one.getBoundingClientRect().top / 13))",
            name,
        )
        for name in ("names", "events")
    )
    assert len(names) == len(set(names)) == len(events)
    page.run("document.getElementById('timeline').scrollIntoView()")
    page.picture(f"timeline-64-ctas-{width}-{scheme}")


def test_a_cta_is_unfolded_by_its_name_and_all_by_a_button(browser, many):
    page = opened(browser, many, WIDE, "light")
    low = page.run(HEIGHT)
    head = page.run("return document.querySelectorAll('#timeline .names .head')[2]")
    page.run("arguments[0].focus()", head)
    page.press(Keys.ENTER)
    assert head.get_attribute("aria-expanded") == "true"
    assert page.run(HEIGHT) > low
    page.one("[data-fold=none]").click()
    assert page.run(HEIGHT) > 64 * 80
    page.one("[data-fold=all]").click()
    assert page.run("return document.querySelectorAll('#timeline .folded').length") == 128
    matrix = page.run(
        "return [...document.querySelectorAll('.summary .matrix-strip')].find(one => one.checkVisibility())"
    )
    ActionChains(browser).move_to_element(matrix).perform()
    assert "CTA (0, 0, 0), warp 0" in told(page)
    matrix.click()
    assert page.one("#position").text == "3 of 16"  # of those that it stands for, the one behind the first
    assert browser.get_log("browser") == []


def test_arrows_between_ctas_hide_with_their_ends(browser, cluster):
    page = opened(browser, cluster, WIDE, "light")
    arrows = (
        "return [...document.querySelectorAll('.across .arrow')].filter(one => one.checkVisibility()).length"
    )
    assert page.run(arrows) > 0
    page.run("document.querySelectorAll('#timeline .names .head')[1].dispatchEvent(new MouseEvent('click'))")
    assert page.run(arrows) == 0
