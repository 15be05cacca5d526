"""Figures in files: SVG, PNG, PDF and TikZ of layouts and timelines, whole and nothing clipped."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import warpsim
from tests.observe.recording.test_timeline import timeline
from warpsim.show.cli import cli
from warpsim.show.views.drawings.figure_files import FIGURES, Drawing
from warpsim.show.views.drawings.tikz import tikz

FORM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SVG = "{http://www.w3.org/2000/svg}"


@cache
def drawings() -> dict[str, Drawing]:
    found = timeline("cooperative_f16", "latest")
    return {
        "layout": warpsim.draw_layout(FORM, "a"),
        "metadata": warpsim.draw_layout(
            FORM.replace("mma.", "mma.sp::ordered_metadata.").replace("k16", "k32"), "e"
        ),
        "timeline": warpsim.draw_timeline(found, "50 % of {a_b} & <c>"),
    }


@pytest.mark.parametrize("name", ["layout", "metadata"])
def test_nothing_is_clipped(name: str) -> None:
    """Every box lies inside the document, with room for its line."""
    root = ElementTree.fromstring(drawings()[name].svg)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for group in root.iter(f"{SVG}g"):
        moved = re.fullmatch(r"translate\(([\d.]+),([\d.]+)\)", group.get("transform", ""))
        for box in group.iter(f"{SVG}rect") if moved else ():
            right = float(moved[1]) + float(box.get("x", "0")) + float(box.get("width", "0"))
            bottom = float(moved[2]) + float(box.get("y", "0")) + float(box.get("height", "0"))
            assert right + 1 <= width
            assert bottom + 1 <= height


@pytest.mark.parametrize("name", ["layout", "metadata", "timeline"])
def test_tikz_has_every_element(name: str) -> None:
    svg = drawings()[name].svg
    text = tikz(svg)
    root = ElementTree.fromstring(svg)
    for defined in [parent for parent in root.iter() if parent.find(f"{SVG}defs") is not None]:
        defined.remove(defined.find(f"{SVG}defs"))
    counts = {tag: len(list(root.iter(f"{SVG}{tag}"))) for tag in ("rect", "line", "polygon", "path", "text")}
    assert text.count("\\node[") == counts.pop("text")
    assert text.count("\\path[") == sum(counts.values())
    assert text.count("rectangle") == counts["rect"]
    assert text.startswith("% \\usepackage{tikz}")
    assert text.endswith("\\end{tikzpicture}\n")
    assert text.isascii()
    if name == "timeline":
        assert "50 \\% of \\{a\\_b\\} \\& \\textless{}c\\textgreater{}" in text
        assert "\\sffamily" in text
    else:
        assert "\\ttfamily" in text


def test_tikz_refuses_what_it_does_not_know() -> None:
    for inside in ("<circle r='3'/>", "<g transform='rotate(3)'/>", "<rect fill='var(--x)'/>"):
        with pytest.raises(warpsim.OperandError, match="not written as TikZ"):
            tikz(f"<svg xmlns='http://www.w3.org/2000/svg'>{inside}</svg>")


def test_a_drawing_is_its_text() -> None:
    drawing = drawings()["layout"]
    assert isinstance(drawing, str)
    assert drawing == warpsim.draw_layout(FORM, "a")
    assert drawing.svg == warpsim.draw_layout(FORM, "a", format="svg")
    for other in (copy.copy(drawing), copy.deepcopy(drawing), pickle.loads(pickle.dumps(drawing))):
        assert (other, other.svg) == (drawing, drawing.svg)


def test_files_by_their_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = drawings()["timeline"]
    drawing.save(tmp_path / "x.SVG")
    assert (tmp_path / "x.SVG").read_text() == drawing.svg + "\n"
    drawing.save(str(tmp_path / "x.tex"))
    assert (tmp_path / "x.tex").read_text() == tikz(drawing.svg)
    with pytest.raises(warpsim.OperandError, match=r"x\.gif: .*\.svg, \.png, \.pdf, \.tex"):
        drawing.save(tmp_path / "x.gif")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for name in ("x.png", "x.pdf"):
        with pytest.raises(warpsim.OperandError, match=r"pip install 'warpsim\[figures\]'"):
            drawing.save(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="pip install '.[figures]'")
    begins = {".png": b"\x89PNG", ".pdf": b"%PDF"}
    for name, drawing in drawings().items():
        for suffix, head in begins.items():
            drawing.save(tmp_path / f"{name}{suffix}")
            assert (tmp_path / f"{name}{suffix}").read_bytes().startswith(head)


def test_the_command_line_writes_them(tmp_path: Path) -> None:
    def layout(name: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["layout", FORM, "--operand", "a", "-o", str(tmp_path / name)])
        return result.exit_code, result.output

    assert layout("x.tex") == (0, "")
    assert (tmp_path / "x.tex").read_text() == tikz(drawings()["layout"].svg)
    code, output = layout("x.gif")
    assert code == 2
    assert ", ".join((*FIGURES, ".html")) in output
