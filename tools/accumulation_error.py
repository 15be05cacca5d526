"""The error of long sums: largest error over K for f16, bf16 and e4m3, by fraction bits and promotion.

    python -m tools.accumulation_error [-o FIGURE.svg]

An error is that of an element of A x B, 16 by 16 elements, against the exact product of the same codes,
relative to the root mean square of the exact elements. Operands are uniform in [0, 1), where truncation has
always the same sign, or normal, where errors of both signs cancel in part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cache
from math import log10
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
import numpy.typing as npt

import warpsim

SIDE = 16  # rows of A, columns of B
LENGTHS = tuple(1 << power for power in range(5, 13))  # 32 to 4096 products
_TENSOR = "tcgen05.mma.cta_group::1.kind::f8f6f4"


class Sum(NamedTuple):
    """A way to sum products: what it is called, the instruction, and how often sums are promoted to f32."""

    name: str
    form: warpsim.Instruction
    promote_every: int | None = None


def _sums() -> Iterator[Sum]:
    native = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", target="sm_90a")
    yield Sum("e4m3, 13 fraction bits: wgmma, sm_90a", native)
    yield Sum("the same, promoted every 4 steps", native, 4)
    wide = warpsim.decode(_TENSOR, target="sm_100a", idesc=0x08200010)
    yield Sum("e4m3, 25 fraction bits: tcgen05, sm_100a", wide)
    emulated = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    yield Sum("e4m3, 25 fraction bits: mma.sync, sm_90a", warpsim.decode(emulated, target="sm_90a"))
    for element in ("f16", "bf16"):
        form = f"mma.sync.aligned.m16n8k16.row.col.f32.{element}.{element}.f32"
        yield Sum(f"{element}, 25 fraction bits: mma.sync, sm_90a", warpsim.decode(form, target="sm_90a"))


SUMS = tuple(_sums())
DRAWN: dict[str, Callable[[np.random.Generator, tuple[int, int]], npt.NDArray[np.float64]]] = {
    "uniform": lambda random, shape: random.random(shape),
    "normal": lambda random, shape: random.standard_normal(shape),
}


def error(way: Sum, distribution: str, length: int) -> float:
    """Return the largest error of a product of two random matrices with K of this length."""
    random = np.random.default_rng(0)
    draw, dtype = DRAWN[distribution], way.form.a.dtype
    a, b = (draw(random, (SIDE, LENGTHS[-1])).astype(dtype)[:, :length] for _ in range(2))
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    d: npt.NDArray[Any] = warpsim.gemm(way.form, a, b.T, promote_every=way.promote_every)
    return float(np.abs(d - exact).max() / np.sqrt((exact**2).mean()))


@cache
def errors(distribution: str) -> dict[str, list[float]]:
    """Return the errors of every way to sum, for every length."""
    return {way.name: [error(way, distribution, length) for length in LENGTHS] for way in SUMS}


class Chart:
    """Errors over K as curves on logarithmic axes, which a notebook shows."""

    def __init__(self, title: str, curves: dict[str, list[float]]) -> None:
        self.title, self.curves = title, curves

    def _repr_svg_(self) -> str:
        return tostring(charts([self]), encoding="unicode")


_COLOURS = ("#d62728", "#ff7f0e", "#1f77b4", "#17becf", "#2ca02c", "#9467bd")
_LEFT, _TOP, _WIDE, _HIGH, _LEGEND = 60, 30, 380, 240, 18
_LARGEST, _LEAST = 0, -9  # powers of ten


def charts(drawn: list[Chart]) -> Element:
    """Return charts side by side, with the legend of the first below."""
    names = list(drawn[0].curves)
    width, height = len(drawn) * (_LEFT + _WIDE + 20), _TOP + _HIGH + 40 + _LEGEND * len(names)
    size = {"width": str(width), "height": str(height), "viewBox": f"0 0 {width} {height}"}
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": "sans-serif"} | size)
    SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "#fff"})
    for place, chart in enumerate(drawn):
        _draw(root, chart, _LEFT + place * (_LEFT + _WIDE + 20))
    for place, (name, colour) in enumerate(zip(names, _COLOURS, strict=True)):
        _text(root, _LEFT, _TOP + _HIGH + 46 + _LEGEND * place, name, fill=colour)
    return root


def _text(root: Element, x: float, y: float, text: str, **more: str) -> None:
    SubElement(root, "text", {"x": f"{x:g}", "y": f"{y:g}", "font-size": "12"} | more).text = text


def _draw(root: Element, chart: Chart, left: float) -> None:
    _text(root, left, _TOP - 10, chart.title)
    for power in range(_LEAST, _LARGEST + 1):
        y = _y(10.0**power)
        SubElement(root, "path", {"d": f"M{left:g} {y:g}h{_WIDE}", "stroke": "#ddd"})
        _text(root, left - 6, y + 4, f"1e{power}", **{"text-anchor": "end"})
    for place, length in enumerate(LENGTHS):
        _text(root, _x(left, place), _TOP + _HIGH + 16, f"{length}", **{"text-anchor": "middle"})
    for values, colour in zip(chart.curves.values(), _COLOURS, strict=True):
        points = " ".join(f"{_x(left, place):.1f},{_y(value):.1f}" for place, value in enumerate(values))
        SubElement(
            root, "polyline", {"points": points, "fill": "none", "stroke": colour, "stroke-width": "2"}
        )


def _x(left: float, place: int) -> float:
    return left + _WIDE * place / (len(LENGTHS) - 1)


def _y(value: float) -> float:
    """Return the height of a value; 0 is drawn as the least."""
    power = log10(value) if value > 0 else _LEAST
    return _TOP + _HIGH * (_LARGEST - max(power, _LEAST)) / (_LARGEST - _LEAST)


def table(distribution: str, curves: dict[str, list[float]]) -> Iterator[str]:
    """Yield the errors as lines of text."""
    width = max(map(len, curves))
    yield f"{distribution:{width}}" + "".join(f"{length:>9}" for length in LENGTHS)
    for name, values in curves.items():
        yield f"{name:{width}}" + "".join(f"{value:>9.1e}" for value in values)


def main(arguments: list[str] | None = None) -> int:
    """Print the tables, and write the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", dest="out", type=Path, help="write the charts to this file, as SVG")
    options = parser.parse_args(arguments)
    drawn = [Chart(f"largest error over K, {name} operands", errors(name)) for name in DRAWN]
    for name, chart in zip(DRAWN, drawn, strict=True):
        print("\n".join(table(name, chart.curves)))
    if options.out:
        options.out.write_text(tostring(charts(drawn), encoding="unicode") + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
