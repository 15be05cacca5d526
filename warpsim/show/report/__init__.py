"""The interactive report of a run or of a launch's recording: one HTML file that needs nothing but itself.

``view`` makes a Report of a trace, of what run_trace returned, or of a recording.
Knows no numbers and no layouts of its
own: document.py gathers what the views know into plain data, page.py puts it into a page, and the
modules in static/ show it and compute explanations in exact integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...base.errors import OperandError
from ...base.files.archives import write_lines
from ...sums.execution.pipeline import Engine, Undefined
from ...workbench.traces.reading import read_trace
from ...workbench.traces.running import Run, run_trace
from ...workbench.vectors.formats import format_of
from ...workbench.vectors.formats.recording import is_recording, read_recording
from ...workbench.vectors.recordings import Recording
from ...workbench.vectors.sets import VectorSet
from .document import ReportData, gather
from .page import frame, page
from .set_cases import Cases, cases_of

__all__ = ["Report", "view"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of one run or recording; in a notebook it shows itself.

    ``html`` is the page, ``document`` the data in it without the registers' words.
    """

    run: Run | Recording | Cases

    def __repr__(self) -> str:
        path = self.run.trace.path if isinstance(self.run, Run) else self.run.path
        return f"<report of {path or 'a recording'}: .html is the page, .save(path) writes it>"

    @cached_property
    def data(self) -> ReportData:
        """What the page is made of."""
        return gather(self.run)

    @property
    def document(self) -> dict[str, Any]:
        """Instructions, layouts, checks and hazards as JSON-ready data; arrays are references."""
        return self.data.document

    @cached_property
    def html(self) -> str:
        """The page."""
        return page(self.data)

    def save(self, path: str | Path) -> None:
        """Write the page, whole or not at all; raises OSError."""
        write_lines(Path(path), self.html.removesuffix("\n").split("\n"))

    def _repr_html_(self) -> str:
        return frame(self.html, self.document["title"])


def view(
    trace: Run | Recording | VectorSet | Cases | str | Path,
    *,
    target: str | None = None,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
) -> Report:
    """Return the report of a run, recording or vector set, or of a file of them; a trace is run first.

    D of a vector set is computed, and compared with that of the set. The keyword arguments are those of
    run_trace; ``target`` is for the file of a trace only. Raises what read_trace, run_trace, read_recording
    and read_vectors do, and OperandError for a recording of more events than a page shows.
    """
    if isinstance(trace, Run | Recording):
        return Report(run=trace)
    if isinstance(trace, VectorSet | Cases):
        return Report(run=trace if isinstance(trace, Cases) else cases_of(trace, "", engine, undefined))
    if is_recording(trace):
        return Report(run=read_recording(trace))
    if is_set(trace):
        return Report(
            run=cases_of(format_of(Path(trace)).in_parts(Path(trace)), str(trace), engine, undefined)
        )
    read = read_trace(trace, target)
    return Report(run=run_trace(read, target=target, engine=engine, undefined=undefined, hazards="warn"))


def is_set(path: str | Path) -> bool:
    """Return whether a file is a vector set, by its suffix."""
    try:
        format_of(Path(path))
    except OperandError:
        return False
    return True
