"""Observe a launch: ``--trace-mma``, ``--timeline``, ``--break``, ``--watch``, ``--lane``, ``--select``.

Knows the options and the output files; the observers collect events, and the views format them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from ...ptx.symbols import shown
from .observed import ObservedLaunch, observing, recorder_of, three, write_recorded
from .options import Breaks, Json, Select
from .output import complain, say
from .verbs import Option

if TYPE_CHECKING:
    from ...observe.recording.recorder import Recorder
    from ...observe.recording.strips import Timeline
    from ...observe.recording.timeline import TimelineRecorder
    from ...observe.stops.debugger import Debugger, WarpStop
    from ...programs.launch.launching import LoadedModule
    from ...workbench.vectors.recordings import PackingNote


@dataclass(kw_only=True)
class Looking:
    """The observations of a launch: its options, and what came of them. ``documents`` are stops for JSON."""

    trace_mma: Annotated[
        Path | None,
        Option(metavar="FILE.npz"),
        "Record the matrix instructions, for run, verify, explain, diff, lint and view, which shows the "
        "timeline, too.",
    ]
    timeline: Annotated[
        Path | None,
        Option(metavar="FILE.svg"),
        "Draw what warps wait for, copy and multiply, in the order of events; .png, .pdf or .tex, too.",
    ]
    breaks: Annotated[
        Breaks,
        Option(metavar="LINE or FILE:LINE"),
        "Print the registers at a line of the PTX, or of its source, as in gemm.cu:153: of a matrix "
        "instruction as matrices, elsewhere where the line begins.",
    ]
    watches: Annotated[
        tuple[str, ...], "--watch", Option(metavar="REGISTER"), "Print a register where it is written."
    ]
    lane: Annotated[int | None, Option(type=click.IntRange(0, 31), metavar="N"), "Print this lane only."]
    selection: Annotated[
        Select,
        "Record, draw or print these only: executions by a CTA (cta=0 cta=1: by two, such as those of a "
        "cluster), by a warp of it, of a line, the so many-th of each warp. Without it, the first at each "
        "line and of each register is printed.",
    ]
    as_json: Json
    documents: list[Any] = field(default_factory=list, init=False)
    recorded: int = field(default=0, init=False)
    packing: tuple[PackingNote, ...] | None = field(default=None, init=False)  # findings for the recording
    drawn: int = field(default=0, init=False)
    kept: Timeline | None = field(default=None, init=False)
    cut: bool = field(default=False, init=False)  # there were more events than a timeline has

    def check(self) -> None:
        """Raise UsageError for options that need others that are not given."""
        if self.lane is not None and not (self.breaks or self.watches):
            raise click.UsageError("--lane goes with --break or --watch")
        if self.selection is not None and not any((self.breaks, self.watches, self.trace_mma, self.timeline)):
            raise click.UsageError("--select goes with --trace-mma, --timeline, --break or --watch")
        if self.timeline is not None:
            _check_picture(self.timeline)

    @contextmanager
    def at(
        self, module: LoadedModule, kernel: str, grid: Any, block: Any, schedule: str
    ) -> Iterator[Sequence[Any]]:
        """Yield the observers of a launch; the recording and the timeline are written at its end, also where
        it fails, but not where it is interrupted.

        Raises UsageError for a line or register that is not there, OSError.
        """
        recorder, debugger, times = (
            recorder_of(self.trace_mma, self.selection),
            self._debugger(module),
            self._times(),
        )
        launch = ObservedLaunch(
            module=module, kernel=kernel, grid=grid, block=block, selection=self.selection
        )

        def finish(failed: Exception | None) -> None:
            if times is not None:
                found = replace(times.timeline(), schedule=schedule)
                self.kept, self.cut = None if times.is_full else found, times.is_full
                self._draw(found, launch)
            if recorder is not None:
                self._write(recorder, launch, failed)
            if debugger is not None:
                self._missed(debugger)

        with observing((recorder, debugger, times), finish) as observers:
            yield observers

    def _times(self) -> TimelineRecorder | None:
        """Return the observer of the timeline; a recording has the timeline of whole CTAs, if it is not too
        long.
        """
        from ...observe.recording.selection import EVERYTHING, Selection
        from ...observe.recording.timeline import TimelineRecorder

        selection = self.selection or EVERYTHING
        if self.timeline is not None:
            return TimelineRecorder(selection, insisted=False)
        if self.trace_mma is None:
            return None
        return TimelineRecorder(Selection(ctas=selection.ctas), insisted=False)

    def _debugger(self, module: LoadedModule) -> Debugger | None:
        from ...base.errors import OperandError
        from ...observe.stops.debugger import Debugger

        if not self.breaks and not self.watches:
            return None
        debugger = Debugger(
            show=self._show, breaks=self.breaks, watches=self.watches, selection=self.selection
        )
        try:
            module.module.bind()
            debugger.instrument(module.module.code)
        except OperandError as error:
            raise click.UsageError(error.message) from None
        return debugger

    def _show(self, stop: WarpStop) -> None:
        from ..views.stops import stop_document, stop_lines

        if self.as_json:
            self.documents.append(stop_document(stop))
        else:
            say("\n".join(stop_lines(stop, self.lane)))

    def _write(self, recorder: Recorder, launch: ObservedLaunch, failed: Exception | None) -> None:
        assert self.trace_mma is not None
        timeline = self.kept if self.kept is not None and self.kept.strips else None
        self.recorded = write_recorded(self.trace_mma, recorder, launch, failed, self.packing, timeline)

    def _draw(self, found: Timeline, launch: ObservedLaunch) -> None:
        from ..views.timelines.timeline_svg import draw_timeline

        if self.timeline is None or not found.strips:  # nothing ran or is selected
            return
        self.drawn = len(found.strips)
        which = f", {self.selection} only" if self.selection is not None else ""
        size = " x ".join(map(str, three(launch.grid)))
        notes = [f"{launch.module.target}, grid {size}, schedule {found.schedule}{which}"]
        if self.cut:
            notes.append(f"only the first {self.drawn:,} events: what was under way then has no end here")
        draw_timeline(found, f"{shown(launch.kernel)} of {launch.file}", notes).save(self.timeline)

    def _missed(self, debugger: Debugger) -> None:
        which = f" by {self.selection}" if self.selection is not None else ""
        for item in debugger.missed:
            place = f"line {item}" if isinstance(item, int) else str(item)
            happened = "written" if isinstance(item, str) else "executed"
            complain(f"warpsim: note: {place} was not {happened}{which}")
        if debugger.more:
            complain(f"warpsim: note: {debugger.more:,} more stops are not shown: --select fewer")

    def lines(self) -> Iterator[str]:
        """Yield the summary of the recording."""
        from ...observe.recording.strip_keeper import MOST_STRIPS

        if self.trace_mma is not None:
            plural = "s"[: self.recorded != 1]
            yield f"{self.recorded:,} matrix instruction{plural} recorded in {self.trace_mma}"
            if self.kept is None:
                yield f"without a timeline, which has more than {MOST_STRIPS:,} events: --select some CTAs"
        if self.packing is not None:
            yield from (f"{item.line_name}: {item}" for item in self.packing)
            count = len(self.packing)
            found = f"{count or 'no'} finding{'s'[: count != 1]}"
            yield f"where operands come from: {found}, kept in the recording"
        if self.timeline is not None and not self.drawn:
            yield f"nothing is drawn in {self.timeline}: no event is selected"
        elif self.timeline is not None:
            yield f"{self.drawn:,} event{'s'[: self.drawn != 1]} drawn in {self.timeline}"
            if self.cut:
                yield "there are more events than a timeline has: --select fewer for those after them"

    def document(self) -> dict[str, Any]:
        """Return the stops, the recording and the timeline as JSON-ready data, where options ask for them."""
        found: dict[str, Any] = {"stops": self.documents} if self.breaks or self.watches else {}
        if self.trace_mma is not None:
            strips = None if self.kept is None else len(self.kept.strips)
            found["recording"] = {"file": str(self.trace_mma), "events": self.recorded, "timeline": strips}
        if self.packing is not None:
            found["packing"] = [asdict(item) for item in self.packing]
        if self.timeline is not None:
            found["timeline"] = {"file": str(self.timeline), "events": self.drawn, "whole": not self.cut}
        return found


def _check_picture(path: Path) -> None:
    """Raise UsageError for a timeline that could not be written after the launch."""
    from ...base.errors import OperandError
    from ..views.drawings.figure_files import check_figure

    try:
        check_figure(path)
    except OperandError as error:
        raise click.UsageError(f"--timeline {error.message}") from None
    if not path.parent.is_dir():
        raise click.UsageError(f"--timeline {path}: there is no folder {path.parent}")
