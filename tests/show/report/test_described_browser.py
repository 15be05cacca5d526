"""The explorer's views of descriptors and tensor memory in a real browser: edited, pasted into, read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import warpsim
from tests.helpers.browser import ActionChains, Keys, Reader
from tests.show.report.test_looks_browser import FAINT, OVERFLOW, sized
from warpsim.isa.descriptors.instruction_descriptor import InstructionDescriptor
from warpsim.isa.descriptors.matrix_descriptor import Descriptor
from warpsim.isa.descriptors.tensor_descriptor import TensorDescriptor
from warpsim.isa.descriptors.tile_addresses import tile_addresses
from warpsim.isa.descriptors.tile_shape import TileShape

MARKS = ".note, .name, .raw, .meaning, .failure, output, #tile-said, .finder, [data-view], .numbered"
BOXES = """return [...document.querySelectorAll(arguments[0] + ' .box text')].map(one => one.textContent)"""


@pytest.fixture(scope="module")
def path(folder: Path) -> Path:
    made = folder / "described.html"
    warpsim.explore().save(made)
    return made


def typed(page: Reader, selector: str, text: str) -> None:
    page.run("const one = arguments[0]; one.focus(); one.select()", page.one(selector))
    page.press(text)


def word_of(page: Reader) -> int:
    return int(str(page.one("#word").get_property("value")), 16)


def test_a_field_is_edited_and_word_and_tile_follow(browser: Any, path: Path) -> None:
    page = sized(browser, path, 1600, address="#view=words&kind=wgmma&rows=16&k=32")
    typed(page, "[data-field=stride_byte_offset] input", "512")
    page.run("const one = document.querySelector('[data-field=swizzle] select'); one.value = 2;"
             "one.dispatchEvent(new Event('input'))")  # fmt: skip
    descriptor = Descriptor(start_address=1024, leading_byte_offset=16, stride_byte_offset=512, swizzle="64B")
    assert word_of(page) == descriptor.encode()
    addresses = tile_addresses(descriptor, TileShape(mn=16, k=32, element_bits=16, major="K"))
    assert page.run(BOXES, "#word-tile") == [f"{one:#06x}" for one in addresses[:, ::8].ravel()]
    assert page.one("[data-field=swizzle] .meaning").text == descriptor.fields("K")[-1].meaning
    page.one("[data-bit='63']").click()
    assert "swizzle" in page.one("[data-bit='63']").get_attribute("title")
    assert word_of(page) == descriptor.encode() ^ 1 << 63
    typed(page, "[data-field=start_address] input", "1000")
    assert page.one("#word-trouble").text == "start address: expected 0 to 262128 in steps of 16"
    page.picture("words-1600")
    assert browser.get_log("browser") == []


def test_a_pasted_word_is_read_as_what_it_is(browser: Any, path: Path) -> None:
    page = sized(browser, path, 800, "dark", "#view=words&kind=wgmma")
    other = TensorDescriptor(start_address=2048, stride_byte_offset=1024, swizzle="128B")
    typed(page, "#word", f"desc[0]={other.encode():#x}")
    assert page.one("#view-words h2").text == "Shared-memory descriptor of tcgen05"
    assert page.one("[data-field=start_address] input").get_property("value") == "2048"
    typed(page, "#word", f"{other.encode() | 1 << 14:#x}")
    assert page.one("#word-trouble").text.endswith(
        "has reserved bits 14 set: was a field written in bytes, without >> 4?"
    )
    assert page.run(OVERFLOW) <= 0
    page.picture("words-800-dark")
    assert browser.get_log("browser") == []


def test_an_instruction_descriptor_leads_to_its_cells(browser: Any, path: Path) -> None:
    page = sized(browser, path, 1600, address="#view=words&kind=instruction&of=f16&word=0x08100010")
    assert page.one("#product").text == "m128n64k16, D f32, A f16, B f16"
    typed(page, "[data-field=n] input", "128")
    assert InstructionDescriptor.decode(word_of(page), "f16").n == 128
    page.one("#product-forms button:nth-child(2)").click()
    assert page.one("#view-cells h2").text == "tcgen05.mma.cta_group::2.kind::f16"
    texts = page.run(BOXES, "#view-cells .of-d")
    assert texts == [
        "rows 0..63", "columns 0..63", "rows 0..63", "columns 64..127",
        "rows 64..127", "columns 0..63", "rows 64..127", "columns 64..127",
    ]  # fmt: skip
    typed(page, "#view-cells .of-d input:first-of-type", "70")
    typed(page, "#view-cells .of-d input:last-of-type", "100")
    said = page.one("#view-cells .of-d output").text
    assert said == "CTA 1 of the pair, lane 70, column +36, bits 31..0"
    assert "view=cells" in page.run("return location.hash")
    page.picture("cells-1600")
    assert browser.get_log("browser") == []


def test_a_thread_of_ld_is_pointed_at(browser: Any, path: Path) -> None:
    page = sized(browser, path, 1600, address="#view=cells&shape=16x64b&count=2&warp=1&half=16")
    box = page.run("return [...document.querySelectorAll('#transfers .box')]"
                   ".find(one => one.textContent === 'T5 r1').querySelector('rect')")  # fmt: skip
    page.run("arguments[0].scrollIntoView({block: 'center'})", box)
    ActionChains(browser).move_to_element(box).perform()
    # T5: row 8 of its 16 (lowest bit), column 0 (next bit), row 1; register 1 two columns on
    assert page.line() == "lane 57, column +2: T5 of the warp, register 1; dashed: its others"
    assert len(page.run("return document.querySelectorAll('#transfers .lit-layer > rect')")) == 2


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (800, "light"), (1600, "dark")])
def test_the_views_fit_and_can_be_read(browser: Any, path: Path, width: int, scheme: str) -> None:
    for name, address in (
        ("words", "#view=words&kind=tcgen05&word=0x4000404000014040"),
        ("cells", "#view=cells&kind=mxf4nvf4&group=2&sparse=true&m=256"),
    ):
        page = sized(browser, path, width, scheme, address)
        assert page.run(OVERFLOW) <= 0
        assert page.run(FAINT, MARKS) == []
        page.picture(f"{name}-{width}-{scheme}")


def test_pasted_descriptors_are_told_and_opened(browser: Any, path: Path) -> None:
    page = sized(browser, path, 800)
    words = (0x4000404000010040, 0x4000004000010040, 0x4000004000014040)
    page.one("#paste-text").send_keys(" ".join(f"{word:#x}" for word in words))
    rows = page.run(
        "return [...document.querySelectorAll('#paste-matrix tbody tr')].map(row => row.innerText)"
    )
    assert page.one("#paste-note").text == "3 descriptors of 64 bits"
    assert "start 0x400, LBO 0x10, SBO 0x400, swizzle 128B" in rows[0]
    assert "tcgen05" in rows[0]
    assert "wgmma" in rows[1]
    assert "reserved bits 14 set" in rows[2]
    page.one("#paste-matrix tbody tr button").click()
    assert word_of(page) == words[0]
    page.run("document.querySelector('[data-view=forms]').click()")
    assert page.one("#mnemonic").is_displayed()
    page.press(Keys.ESCAPE)
    assert browser.get_log("browser") == []
