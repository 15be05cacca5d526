"""Layouts in tensor memory as text, CuTe strings, formulas, figures and answers, against formulas by hand."""

from __future__ import annotations

import ast
import json
from itertools import product as choices
from typing import Any
from xml.etree import ElementTree

import pytest

import warpsim
from tests.helpers.families import sample
from tests.helpers.tensor_core import d_cell, metadata_field
from warpsim.base.errors import OperandError
from warpsim.isa.families.tcgen05 import form_of, letter_of
from warpsim.isa.operand_places.places import lane_places, places
from warpsim.show.cli import main
from warpsim.show.views.layouts.figures import figures
from warpsim.show.views.layouts.formulas import formula
from warpsim.show.views.layouts.layout import (
    cute_lines,
    layout_document,
    layout_lines,
    layout_page,
    layout_svg,
)
from warpsim.show.views.layouts.lookups import element_lines, feeds_lines, lane_lines

FORMS = {  # mnemonic, descriptor
    "A": ("tcgen05.mma.cta_group::2.kind::f16", 0x10080010),
    "B": ("tcgen05.mma.cta_group::2.kind::f16", 0x08080010),
    "C": ("tcgen05.mma.sp.cta_group::2.kind::f16", 0x08080015),
    "D": ("tcgen05.mma.sp.cta_group::1.kind::f8f6f4", 0x08080014),
    "E": ("tcgen05.mma.ws.cta_group::1.kind::f16", 0x04100010),
    "F": ("tcgen05.mma.sp.cta_group::1.kind::tf32", 0x04040914),
    "G": ("tcgen05.mma.ws.sp.cta_group::1.kind::f16", 0x02100014),
    "1X": ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale", 0x48900010),
    "4X": ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", 0x08100480),
    "2X": ("tcgen05.mma.sp.cta_group::2.kind::mxf4.block_scale", 0x508804A4),
}


def decoded(name: str) -> Any:
    mnemonic, word = FORMS[name]
    return warpsim.decode(mnemonic, idesc=word)


def by_hand(name: str, operand: str, row: int, column: int) -> tuple[int, int, int, int]:
    """(CTA, lane, column, lowest bit) of an element, a field or a factor."""
    form = decoded(name)
    mnemonic, word = FORMS[name]
    letter = letter_of(form_of(tuple(mnemonic.split(".")[1:])), form.shape.m)
    bits = form.storage("a").bits
    if operand in "cd":
        return (*d_cell(letter, row, column, form.shape.n), 0)
    if operand == "a":
        cta, lane, _ = d_cell(letter, row, 0, form.shape.n)
        container = 2 if form.a.name == "e2m1" and bits == 8 else 0
        return cta, lane, column * bits // 32, column * bits % 32 + container
    if operand == "e":
        cta, lane, at, bit = metadata_field(letter, bits, row, column)
        return cta, lane, at + (word & 3 if not form.scale else 0), bit
    ids = {"scale_a": word >> 29 & 3, "scale_b": word >> 4 & 3}
    line, chunk = (row, column) if operand == "scale_a" else (column, row)
    own = form.shape.m // (form.lanes // 128)
    cta, line = divmod(line, own) if operand == "scale_a" else (0, line)
    return cta, line % 32, line // 32, 8 * (ids[operand] + chunk)


CASES = [(name, operand) for name in FORMS for operand in decoded(name).registers]


@pytest.mark.parametrize(("name", "operand"), sample(CASES, 2))
def test_every_place(name: str, operand: str) -> None:
    form = decoded(name)
    found = places(form, operand)
    for place in found:
        cta, lane, column, bit = by_hand(name, operand, place.row, place.column)
        assert (place.lane, place.register, place.low_bit) == (128 * cta + lane, column, bit)
    assert len({(place.row, place.column) for place in found}) == len(found)


@pytest.mark.parametrize(("name", "operand"), CASES)
def test_formulas_and_cute_strings(name: str, operand: str) -> None:
    """Both are read back as text and evaluated at every point."""
    form = decoded(name)
    rule = dict(formula(form, operand).results)
    (line,) = cute_lines(form, operand)
    domain, layout = line.split("  ")[1].strip(), line.split("  ")[2].strip()
    unit = int(domain.split("address of ")[1].split()[0])
    first = int(layout.split(" + ")[1].split()[0]) if " + " in layout else 0
    shape, stride = (read(part) for part in layout.split(" + ")[0].split(":"))
    inner = "col" if operand in "acd" else "chunk"
    outer = "col" if operand == "scale_b" else "row"
    for place in places(form, operand)[::7]:
        line_, across = (place.column, place.row) if operand == "scale_b" else (place.row, place.column)
        cta, lane, column, bit = by_hand(name, operand, place.row, place.column)
        values = {outer: line_, inner: across}
        found = {key: arithmetic(text, values) for key, text in rule.items() if key != "lanes of copies"}
        assert found.get("CTA", 0) == cta
        assert (found["lane"], found["column"], found["lowest bit"]) == (lane, column, bit)
        steps = [stepped(shape[at], stride[at], index) for at, index in enumerate((line_, across))]
        assert sum(step[1] for step in steps) == cta
        container = 2 if form.a.name == "e2m1" and operand == "a" and unit == 8 else 0
        address = (lane << 21) + 32 * column + bit - container
        assert unit * (first + sum(step[0] for step in steps)) == address


def arithmetic(text: str, values: dict[str, int]) -> int:
    names = {name: value for name, value in values.items() if name}
    return int(eval(text.replace(" / ", " // "), {"__builtins__": {}}, names))


def read(text: str) -> Any:
    return ast.literal_eval(text.replace("CTA", "'CTA'"))


def stepped(shape: Any, stride: Any, index: int) -> tuple[int, int]:
    """Address and CTA that an index adds, digit by digit, the fastest first."""
    extents, strides = (part if isinstance(part, tuple) else (part,) for part in (shape, stride))
    address = cta = 0
    for extent, step in zip(extents, strides, strict=True):
        digit, index = index % extent, index // extent
        if step == "CTA":
            cta += digit
        else:
            address += digit * step
    return address, cta


@pytest.mark.parametrize("name", FORMS)
def test_figures_pages_and_data(name: str) -> None:
    form = decoded(name)
    lines = layout_lines(form)
    assert lines[0] == form.mnemonic
    operands = [operand for operand in form.registers if operand != "d"]
    document = json.loads(json.dumps(layout_document(form)))
    assert list(document["operands"]) == operands
    for operand in operands:
        covered = {
            (row, column)
            for figure in figures(form, operand)[:8]
            for cell in figure.cells
            for row, column in choices(cell.rows, cell.columns)
        }
        assert covered
        assert len(document["operands"][operand]["places"]) == len(places(form, operand))
    ElementTree.fromstring(layout_svg(form, "e" if form.sparse else "d"))
    page = layout_page(form, "d")
    assert "column 3 from the address on" in page


def test_answers_about_single_places() -> None:
    pair = decoded("B")
    assert element_lines(pair, "d", 70, 20) == ["D[70,20]: lane 70, column 4 of the odd CTA, bits 31..0"]
    scaled = decoded("1X")
    assert lane_lines(scaled, "scale_a", 45, 2) == ["L45 C2[23..16]  scale of row 77, chunk 0"]
    assert feeds_lines(scaled, 77, 5)[-2:] == [
        "scale_a [77][0]  L13 C2[23..16]",
        "scale_b [0][5]   L5 C0[15..8]",
    ]
    sparse = decoded("C")
    assert "selector 1" in layout_lines(sparse, "e")[2]
    assert {place.lane for place in lane_places(sparse, "e", 3)} == {3}
    assert lane_lines(sparse, "c", 20) == ["L20 %c: not read"]
    with pytest.raises(OperandError, match="not in tensor memory"):
        layout_lines(decoded("E"), "a")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        main(["layout", *arguments])
    streams = capsys.readouterr()
    return int(end.value.code or 0), streams.out + streams.err


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    name, word = FORMS["F"]
    code, text = run(capsys, name, "--idesc", hex(word), "--notation", "cute")
    assert code == 0
    assert "C  (M64,N16) -> address of 32 bits  ((16,4),16):((65536,2097152),1)" in text
    code, text = run(capsys, name, "--idesc", hex(word), "--operand", "d", "--element", "37,5")
    assert (code, text.splitlines()[0]) == (0, "D[37,5]: lane 69, column 5, bits 31..0")
    code, text = run(capsys, name, "--idesc", "many")
    assert code == 2
    assert "expected a word such as 0x08100010" in text
    code, text = run(capsys, name)
    assert code == 3
    assert "its instruction descriptor says shape and types" in text
