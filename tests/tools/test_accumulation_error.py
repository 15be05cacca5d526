"""The error of long sums: the notebook of traces/ executed, and the figure beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools import accumulation_error
from tools.accumulation_error import LENGTHS, SUMS, Chart, errors

FOLDER = Path(__file__).resolve().parents[2] / "traces" / "notebooks"
NATIVE, PROMOTED, WIDE = (way.name for way in SUMS[:3])


def shown() -> list[Any]:
    """Return what the cells of the notebook give."""
    space: dict[str, Any] = {}
    values = []
    for cell in json.loads((FOLDER / "accumulation.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            *before, last = "".join(cell["source"]).rpartition("\n")
            exec("".join(before), space)
            values.append(eval(last, space))
    return values


def test_the_notebook_runs() -> None:
    fp8, uniform, normal, at, whole = shown()
    assert fp8 == {"mma": (25, "f16"), "wgmma": (13, "")}
    for chart in (uniform, normal):
        assert isinstance(chart, Chart)
        assert chart._repr_svg_().count("<polyline") == len(SUMS)
    assert [f"{value:.2%}" for value in at.values()] == ["6.96%", "0.73%"]
    assert whole["sm_90a"][0] == whole["sm_89"][0] == whole["sm_100a"][1] == 16384


def test_promotion_bounds_the_error() -> None:
    """Without promotion the error of 13 fraction bits grows with K; with it, no sum is longer than 128."""
    curves, short = errors("uniform"), LENGTHS.index(128)
    assert curves[NATIVE][: short + 1] == curves[PROMOTED][: short + 1]
    assert curves[NATIVE] == sorted(curves[NATIVE])
    assert max(curves[PROMOTED]) == curves[PROMOTED][short]
    assert curves[WIDE][: short + 1] == [0.0] * (short + 1)
    assert max(curves[WIDE]) < 1e-6


def test_the_figure_is_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert accumulation_error.main(["-o", str(tmp_path / "figure.svg")]) == 0
    assert (tmp_path / "figure.svg").read_bytes() == (FOLDER / "accumulation.svg").read_bytes()
    assert capsys.readouterr().out.count("\n") == 2 * (len(SUMS) + 1)
