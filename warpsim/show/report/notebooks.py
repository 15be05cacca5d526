"""What notebooks show of results: a figure, or the text that the command line prints.

Knows classes of public results; adds no content of its own. Colours are those of the notebook's theme.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import singledispatch
from html import escape
from typing import Any

from ...isa.instruction import Instruction
from ...observe.recording.strips import Timeline
from ...programs.launch.fidelity import Fidelity
from ...programs.launch.launching import LaunchReport
from ...workbench.diagnosis import Diagnosis, LoopDiagnosis
from ...workbench.diagnosis.origins.element_origins import Origins
from ...workbench.generation.coverage.vector_coverage import Coverage
from ..views.coverage import coverage_lines
from ..views.findings import diagnosis_lines, product_lines
from ..views.launches import fidelity_lines, hazard_lines
from ..views.layouts.layout import layout_svg
from ..views.origins import origin_lines
from ..views.timelines.timeline_svg import draw_timeline


@singledispatch
def html_of(result: Any) -> str:
    """Return the HTML of a result: its text, as str() gives it."""
    return _text(str(result).splitlines())


def _text(lines: Iterable[str]) -> str:
    return f'<pre style="line-height: 1.25; overflow-x: auto">{escape(chr(10).join(lines))}</pre>'


def _figure(svg: str) -> str:
    """Return a figure whose labels are black, on white."""
    return f'<div style="overflow-x: auto; background: #fff; color: #000">{svg}</div>'


def _image(svg: str) -> str:
    """Return a figure that has rules of style, which would be those of the whole notebook."""
    data = b64encode(svg.encode()).decode()
    return f'<img alt="timeline" style="max-width: 100%" src="data:image/svg+xml;base64,{data}">'


@html_of.register
def _(result: Instruction) -> str:
    return _text([repr(result)[1:-1]]) + _figure(layout_svg(result))


@html_of.register
def _(result: LaunchReport) -> str:
    drawn = "" if result.timeline is None else html_of(result.timeline)
    return (
        _text([repr(result)[1:-1], *hazard_lines(result.hazards), *fidelity_lines(result.fidelity)]) + drawn
    )


@html_of.register
def _(result: Fidelity) -> str:
    return _text(fidelity_lines(result))


@html_of.register
def _(result: Timeline) -> str:
    return _image(draw_timeline(result)) if result.strips else _text([repr(result)[1:-1]])


@html_of.register
def _(result: Coverage) -> str:
    return _text(coverage_lines(result))


@html_of.register
def _(result: Diagnosis) -> str:
    return _text(diagnosis_lines(result))


@html_of.register
def _(result: LoopDiagnosis) -> str:
    return _text(product_lines(result))


@html_of.register
def _(result: Origins) -> str:
    return _text(origin_lines(result))
