"""What notebooks show: HTML and figures of results, short reprs, and the notebook of traces/ executed."""

from __future__ import annotations

import json
import os
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.workbench.diagnosis.loops.loop_search import diagnose_product

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "traces" / "notebooks" / "first_kernel.ipynb"
FORM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LONGEST = 250  # characters of a repr


@cache
def results() -> dict[str, Any]:
    """Return what the cells of the notebook give, and other results, by name."""
    there = os.getcwd()
    os.chdir(ROOT)
    space: dict[str, Any] = {}
    try:
        cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
        shown = {}
        for cell in cells:
            *before, last = "".join(cell["source"]).rpartition("\n")
            exec("".join(before), space)
            value = eval(last, space)
            shown[type(value).__name__] = value
    finally:
        os.chdir(there)
    kernel, ins = space["kernel"], space["ins"]
    args = [space["left"], space["right"], np.zeros_like(space["product"]), 64, 128]
    report = kernel((2, 2), 64, args, record="cta=0,0 warp=0 step=0")
    words = {name: warpsim.pack(ins, name.lower(), space[name]) for name in "ABC"}
    d = warpsim.execute(ins, a=words["A"], b=words["B"], c=words["C"])
    operands = {name.lower(): value for name, value in words.items()}
    product = warpsim.matmul(ins, *(space[name] for name in "ABC"))
    others = (
        *(report.events[0], report.fidelity, space["report"].timeline),
        warpsim.diagnose(ins, d=d + np.uint32(1), **operands),
        diagnose_product(ins, space["A"], space["B"], product + 1),
        warpsim.explain(ins, 0, 0, **operands),
        warpsim.compare_targets(ins, 0, 0, ["sm_80", "sm_90a"], **operands),
        warpsim.find_origins(kernel, (2, 2), 64, args, (0, 1)),
        *(warpsim.verify(warpsim.generate_vectors(ins, count=2)), warpsim.find_sources(ins, 1, 2)),
        warpsim.view(ROOT / "traces" / "mma_sp_m16n8k32_f16.ptx"),
        *(warpsim.Device("sm_80"), warpsim.Warp("sm_80"), warpsim.Warpgroup("sm_90a")),
    )
    return shown | {type(value).__name__: value for value in others}


def text_of(result: Any) -> str:
    return unescape(result._repr_html_())


def test_figures_show_themselves() -> None:
    assert results()["Drawing"]._repr_svg_().startswith("<svg")
    html = results()["Instruction"]._repr_html_()
    assert html.startswith("<pre")
    assert html.count("<svg") == 1
    assert "T0:{a0,a1}" in html
    assert 'src="data:image/svg+xml;base64,' in results()["Timeline"]._repr_html_()


def test_texts_are_those_of_the_command_line() -> None:
    shown = results()
    assert str(shown["Explanation"]) in text_of(shown["Explanation"])
    assert str(shown["Verdict"]) in text_of(shown["Verdict"])
    assert "evidence: proven" in text_of(shown["Verdict"])
    assert "row stride is 64 elements as it is read" in text_of(shown["Verdict"])
    assert "statements executed: " in text_of(shown["LaunchReport"])
    assert "data:image/svg+xml" in shown["LaunchReport"]._repr_html_()
    assert "D differs" in text_of(shown["Diagnosis"])
    assert "dense_f16_param_0" in text_of(shown["Origins"])
    assert "bins" in text_of(shown["Coverage"])
    assert "sm_90a" in text_of(shown["TargetComparison"])
    assert "<" not in shown["Explanation"]._repr_html_().removeprefix("<pre").removesuffix("</pre>")


def test_reprs_are_short_and_name_their_subject() -> None:
    for name, value in results().items():
        assert len(repr(value)) <= LONGEST, name
        assert "\n" not in repr(value), name
    shown = results()
    assert repr(shown["Device"]) == "<device sm_80: 0 allocations, 0 bytes>"
    assert repr(shown["Warp"]) == "<warp of sm_80>"
    assert repr(shown["Outcome"]) == "<verification of corner: passed, 0 of 256 words differ>"
    assert repr(shown["Feeds"]).startswith(
        "<what feeds d[1,2] in lane 5, register 0: 16 of a, 16 of b, 0 of m"
    )
    assert repr(shown["Report"]).endswith("f16.ptx: .html is the page, .save(path) writes it>")
    assert repr(shown["Drawing"]).startswith("<drawing, ")
    assert repr(shown["LaunchEvent"]).startswith(f"<{FORM} on sm_80 at line 223, CTA (0, 0, 0), warp 0")
    assert repr(shown["LaunchReport"]).startswith("<launch of dense_f16: statements executed: exact ")
    assert repr(shown["LaunchReport"]).endswith("; findings: none>")


def test_the_notebook_runs() -> None:
    nbformat = pytest.importorskip("nbformat", reason="pip install '.[notebook]'")
    client = pytest.importorskip("nbclient", reason="pip install '.[notebook]'")
    pytest.importorskip("ipykernel", reason="pip install '.[notebook]'")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = [cell.outputs[-1].data for cell in notebook.cells if cell.cell_type == "code"]
    assert all("text/html" in data or "image/svg+xml" in data for data in shown)
    assert not any("error" in output.output_type for cell in notebook.cells if cell.cell_type == "code"
                   for output in cell.outputs)  # fmt: skip
