"""Verify a vector set or a trace, in memory or in a file, and return the outcome of each instruction.

Knows which file is a set and which is a trace, and whether threads or a cluster execute the cases. Does not
know what a difference is (see verification), nor how outcomes are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ...base.environment import in_default_environment
from ...base.errors import OperandError, TraceError, WarpsimError
from ...sums.arithmetic.cores import thread_count
from ...sums.execution.pipeline import Engine, Undefined
from ..traces.reading import read_trace
from ..traces.running import run_trace
from .formats import format_of
from .formats.recording import is_recording, read_recording
from .recordings import Recording
from .sets import VectorSet
from .verification import SHOWN, Item, Scheduler, Tally, run_items, threads, verify_parts

if TYPE_CHECKING:
    from distributed import Client

Watch = Callable[[Tally], object]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a file or set: its items, or the error that ended the verification.

    ``items`` has an item for every instruction and target; ``item.tally`` counts the compared cases and words
    and the differences, and holds the first differences. ``provenance`` is what computed the expected results
    of a set; ``ended`` is the error that ended a recorded launch early; ``seconds`` is the duration.
    """

    path: str
    kind: str = "vectors"
    items: Sequence[Item] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    ended: str = ""
    seconds: float = 0.0
    error: WarpsimError | None = None

    def __repr__(self) -> str:
        tally = self.tally
        words = (
            f"{tally.different_words:,} of {tally.words:,} words differ" if self.items else "nothing compared"
        )
        result = "passed" if self.passed else "failed"
        return f"<verification of {self.path}: {result}, {words}>"

    @property
    def passed(self) -> bool:
        """Whether every bit is as expected."""
        return self.error is None and all(item.tally.passed for item in self.items)

    @property
    def tally(self) -> Tally:
        """The sum of the tallies of all items."""
        return sum((item.tally for item in self.items), Tally())


def verify(
    source: VectorSet | str | Path,
    *,
    target: str | None = None,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
    show: int = SHOWN,
    jobs: int | None = None,
    scheduler: str | Client | None = None,
) -> Outcome:
    """Execute a vector set or a trace again, compare every bit of D, and return the outcome.

    ``source`` is a set, or the file of a set, of the recording of a launch, or of a trace (``.ptx``); sets in
    .npz files are read in parts and may have any size. ``target`` is another chip than the set's own.
    ``show`` differences of each instruction are kept; ``jobs`` threads execute the cases (None: as many as
    cores), or the Dask cluster of ``scheduler``. A difference is not an error: see ``Outcome.passed``, and
    ``Outcome.tally`` for the number of compared words and the first differences. Raises TraceError with the
    place in a file, what executing raises (naming the case), IllegalInstruction where the target has no such
    form, OperandError, ClusterError, OSError.
    """
    if show < 0:
        raise OperandError(f"show={show}: at least 0 differences")
    options: dict[str, Any] = {"target": target, "engine": engine, "undefined": undefined, "kept": show}
    try:
        return outcome_of(source, jobs=jobs, scheduler=scheduler, **options)
    except TraceError as error:
        raise (error if isinstance(source, VectorSet) else error.named(source)) from None


@in_default_environment
def outcome_of(
    source: VectorSet | str | Path,
    *,
    kept: int = SHOWN,
    jobs: int | None = None,
    scheduler: str | Client | None = None,
    watch: Watch = lambda tally: None,
    **options: Any,
) -> Outcome:
    """Return the outcome as verify does; ``watch`` is called with the tally of every part when it is done."""
    start = perf_counter()
    if not isinstance(source, VectorSet) and Path(source).suffix.lower() == ".ptx":
        items = _trace_items(Path(source), options, watch)
        return Outcome(path=str(source), kind="trace", items=items, seconds=perf_counter() - start)
    if not isinstance(source, VectorSet) and is_recording(source):
        recording = read_recording(source)
        found = recording_items(recording, kept=kept, jobs=jobs, scheduler=scheduler, watch=watch, **options)
        return Outcome(
            path=str(source),
            kind="recording",
            items=found,
            provenance=dict(recording.provenance),
            ended=recording.error,
            seconds=perf_counter() - start,
        )
    name, parts = _parts_of(source)
    provenance: dict[str, Any] = {}
    with _schedule(jobs, scheduler) as schedule:
        noted = _noting(parts, provenance)
        item = verify_parts(noted, kept=kept, scheduler=schedule, watch=watch, **options)
    return Outcome(path=name, items=[item], provenance=provenance, seconds=perf_counter() - start)


def recording_items(
    recording: Recording,
    *,
    kept: int = SHOWN,
    jobs: int | None = None,
    scheduler: str | Client | None = None,
    watch: Watch = lambda tally: None,
    **options: Any,
) -> list[Item]:
    """Return the outcomes of executing every statement of a recording again, in the order of
    ``Recording.sets``.
    """
    items = []
    with _schedule(jobs, scheduler) as schedule:
        for item in recording.sets():
            modes = options | ({"undefined": "fallback"} if item.literal else {})
            parts = item.labelled().parts()
            items.append(verify_parts(parts, kept=kept, scheduler=schedule, watch=watch, **modes))
    return items


def _trace_items(path: Path, options: dict[str, Any], watch: Watch) -> list[Item]:
    items = run_items(run_trace(read_trace(path), **options))
    for item in items:
        watch(item.tally)
    return items


def _parts_of(source: VectorSet | str | Path) -> tuple[str, Iterator[VectorSet]]:
    """Return the name of a set, and its parts."""
    if isinstance(source, VectorSet):
        return source.title, source.parts()
    return str(source), format_of(Path(source)).in_parts(Path(source)).parts()


def _noting(parts: Iterator[VectorSet], provenance: dict[str, Any]) -> Iterator[VectorSet]:
    """Yield the parts, and record their provenance."""
    for part in parts:
        provenance.update(part.provenance)
        yield part


@contextmanager
def _schedule(jobs: int | None, scheduler: str | Client | None) -> Iterator[Scheduler]:
    """Yield what executes the cases: threads here, or a cluster."""
    if scheduler is None:
        yield threads(thread_count(jobs))
        return
    from ...base.cluster.connection import connected
    from ...base.cluster.distribution import spread

    with connected(scheduler) as client:
        yield spread(client)
