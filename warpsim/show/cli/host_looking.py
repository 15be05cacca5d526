"""Observe launches of host programs: ``--trace-mma``, ``--break``, ``--origins``, ``--reference``.

Knows the options and the files; which launches there are, the program decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from ...ptx.symbols import matching
from .host_origins import HostOrigins
from .observed import ObservedLaunch, observing, recorder_of, write_recorded
from .options import FOLDER, Breaks, Select, SomeOrNone
from .origins import Fragment
from .output import EXPECTED, MISMATCH, UNREADABLE, complain
from .verbs import Option

if TYPE_CHECKING:
    from ...machine.run.events import Observer
    from ...observe.recording.recorder import Recorder
    from ...observe.stops.debugger import Debugger, WarpStop
    from ...observe.stops.stop_places import Break
    from ...programs.exec.host_launch import HostLaunch
    from ...programs.exec.references.decisions import References
    from ...programs.launch.launching import LaunchableKernel, LoadedModule

_LONGEST = 40  # characters of a kernel's name in the name of a file


@dataclass(kw_only=True)
class _Observed:
    """Which launches are observed, and how."""

    trace_mma: Annotated[
        Path | None,
        FOLDER,
        "Record the matrix instructions of each launch in a file of its own, for explain, diff, lint "
        "and view.",
    ]
    breaks: Annotated[
        Breaks,
        Option(metavar="FILE:LINE or LINE"),
        "Show the registers on stderr where a line of a source is first executed, as in gemm.cu:153; a "
        "line of the PTX with --kernel.",
    ]
    selection: Annotated[
        Select,
        "Record or show these only: executions by a CTA, by a warp of it, of a line, the so many-th of each "
        "warp, in each launch.",
    ]
    kernel: Annotated[
        str | None, Option(metavar="NAME"), "Observe launches of this kernel only, by its C++ name."
    ]
    launch: Annotated[SomeOrNone, "Observe this launch only: the N-th of the run, or of --kernel."]


@dataclass(kw_only=True)
class Observation(_Observed):
    """The options of exec that say what is observed."""

    references: Annotated[
        tuple[str, ...],
        "--reference",
        Option(metavar="[KERNEL=]FILE.py:FUNCTION|NAME"),
        "Decide of each launch whether it computes this NumPy function of the kernel's arguments, as "
        "launch --reference does: of KERNEL, by its C++ name, or of every kernel that takes as many "
        "arguments. Pointers are arrays of one axis, to the end of their allocation.",
    ]
    origins: Annotated[
        str | None,
        Option(metavar="all|NUMBER,..."),
        "Show which bytes of which allocations the matrix instructions are given, what has filled them, "
        "and what of it does not fit together: in the first launch of each kernel, or in that of --launch. "
        "Allocations that the parameters name, or these by number; A=1 gives the first the name A.",
    ]
    fragment: Annotated[
        Fragment,
        "With --origins: show every element of an operand, by the line of the PTX, as in 62:a, in its "
        "N-th execution.",
    ]

    def begun(self) -> HostLooking:
        """Return the observer of a run. Raises UsageError, OperandError."""
        references = None
        if self.references:
            from ...programs.exec.references.decisions import References

            references = References.named(self.references)
        origins = HostOrigins.given(self.origins, self.fragment, once=not self.launch)
        given = {each.name: getattr(self, each.name) for each in fields(_Observed)}
        looking = HostLooking(**given, origins=origins, references=references)
        looking.check()
        return looking


@dataclass(kw_only=True)
class HostLooking(_Observed):
    """The observations of a run, and what has come of them."""

    origins: HostOrigins | None = None
    references: References | None = None
    launches: int = 0  # so far, of the kernel
    recordings: list[dict[str, Any]] = field(default_factory=list)
    unwritten: list[dict[str, Any]] = field(default_factory=list)  # a full disk has no room for them
    stops: list[Any] = field(default_factory=list)
    _stopped: set[Break] = field(default_factory=set)

    @property
    def observes(self) -> bool:
        """Whether any launch is to be observed."""
        return self.trace_mma is not None or bool(self.breaks) or self.asks

    @property
    def asks(self) -> bool:
        """Whether launches are executed again, for origins or a reference."""
        return self.origins is not None or self.references is not None

    def check(self) -> None:
        """Raise UsageError for options that need others, and for a folder that cannot be made."""
        looks = self.trace_mma is not None or self.breaks
        if self.selection is not None and not looks:
            raise click.UsageError("--select goes with --trace-mma or --break")
        for name, value in {"--kernel": self.kernel, "--launch": self.launch}.items():
            if value is not None and not looks and not self.asks:
                raise click.UsageError(f"{name} goes with --trace-mma, --break, --origins or --reference")
        if self.kernel is None and any(isinstance(place, int) for place in self.breaks):
            raise click.UsageError("--break LINE is a line of the PTX of a kernel: it goes with --kernel")
        if self.trace_mma is not None:
            try:
                self.trace_mma.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise click.UsageError(f"--trace-mma {self.trace_mma}: {error.strerror}") from None

    @contextmanager
    def at(self, launch: HostLaunch) -> Iterator[Sequence[Observer]]:
        """Yield the observers of the next launch; its recording is written at the end, also where it fails,
        but not where it is interrupted.
        """
        chosen = self._chosen(launch.kernel)
        origins = None if self.origins is None else self.origins.watch(launch, chosen and self.launches)
        if chosen and self.references is not None:
            self.references.decide(launch, self.launches)
        if not chosen:
            with observing((origins,), lambda failed: None) as observers:
                yield observers
            return
        recorder, debugger = recorder_of(self.trace_mma, self.selection), self._debugger(launch.module)

        def finish(failed: Exception | None) -> None:
            if recorder is not None:
                self._write(recorder, launch, failed)
            if debugger is not None:
                self._stopped |= {place for place in debugger.breaks if place not in debugger.missed}

        with observing((recorder, debugger, origins), finish) as observers:
            yield observers

    def _chosen(self, kernel: LaunchableKernel) -> bool:
        """Return whether to observe the next launch."""
        if not self.observes:
            return False
        if self.kernel is not None and not matching(self.kernel, [kernel.name]):
            return False
        self.launches += 1
        return self.launch in (None, self.launches)

    def _debugger(self, module: LoadedModule) -> Debugger | None:
        """Return what stops at the lines that the bound kernels of a module have."""
        from ...observe.stops.debugger import Debugger
        from ...observe.stops.stop_places import is_there

        code = module.module.code
        left = [place for place in self.breaks if self.selection is not None or place not in self._stopped]
        found = [place for place in left if is_there(code, place)]
        return Debugger(show=self._show, breaks=found, selection=self.selection) if found else None

    def _show(self, stop: WarpStop) -> None:
        from ..views.stops import stop_document, stop_lines

        self.stops.append({"launch": self.launches, **stop_document(stop)})
        complain("\n".join(stop_lines(stop)))

    def _write(self, recorder: Recorder, launch: HostLaunch, failed: Exception | None) -> None:
        """Write what was recorded, if it is anything."""
        if not recorder.events() or self.trace_mma is None:
            return
        kernel = launch.kernel
        path = self.trace_mma / f"{self.launches:04}-{_readable(kernel.signature)}.npz"
        observed = ObservedLaunch(
            module=launch.module,
            kernel=kernel.name,
            grid=launch.grid,
            block=launch.block,
            selection=self.selection,
        )
        try:
            count = write_recorded(path, recorder, observed, failed)
        except OSError as error:  # the program goes on
            reason = error.strerror or str(error)
            complain(f"warpsim exec: error: {path}: {reason}")
            self.unwritten.append({"file": str(path), "kernel": kernel.signature, "error": reason})
            return
        self.recordings.append(
            {"file": str(path), "kernel": kernel.signature, "launch": self.launches, "events": count}
        )

    def lines(self) -> Iterator[str]:
        """Yield what came of the options."""
        for each in self.recordings:
            plural = "s"[: each["events"] != 1]
            yield f"{each['events']:,} matrix instruction{plural} recorded in {each['file']}"
        if self.unwritten:
            lost, why = len(self.unwritten), self.unwritten[0]["error"]
            yield f"error: {lost} recording{'s'[: lost != 1]} could not be written to {self.trace_mma}: {why}"
        elif self.trace_mma is not None and not self.recordings:
            why = "no launch that was observed executes mma, wgmma or tcgen05.mma (wmma is not recorded)"
            yield f"nothing is recorded in {self.trace_mma}: {why}"
        yield from (f"{place} was not executed" for place in self.breaks if place not in self._stopped)
        if self.origins is not None:
            yield from self.origins.lines()
        if self.references is not None:
            yield from self.references.lines()

    def document(self) -> dict[str, Any]:
        """Return recordings and stops as JSON-ready data, where options ask for them."""
        found: dict[str, Any] = {}
        if self.trace_mma is not None:
            found = {"recordings": self.recordings, "unwritten": self.unwritten}
        found |= {"stops": self.stops} if self.breaks else {}
        found |= {} if self.references is None else {"references": self.references.documents()}
        return found | ({"origins": self.origins.documents} if self.origins is not None else {})

    @property
    def code(self) -> int:
        """The exit code of what was asked, where that of the program is 0."""
        worst = "equal" if self.references is None else self.references.worst
        found = {"equal": EXPECTED, "not compared": UNREADABLE}.get(worst, MISMATCH)
        return UNREADABLE if self.unwritten else found


def _readable(signature: str) -> str:
    """Return the name of a kernel for the name of a file."""
    plain = re.split(r"[(<]", signature.removeprefix("void "), maxsplit=1)[0]
    return re.sub(r"\W+", "_", plain)[-_LONGEST:].strip("_") or "kernel"
