"""What ``launch`` and ``exec`` have in common where they observe a launch: its recorder, its end, its file.

Knows recordings; which launches are observed, and what else watches them, their modules decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...machine.run.events import Observer
    from ...observe.recording.recorder import Recorder
    from ...observe.recording.selection import Selection
    from ...observe.recording.strips import Timeline
    from ...programs.launch.launching import LoadedModule
    from ...workbench.vectors.recordings import PackingNote


@dataclass(frozen=True, kw_only=True)
class ObservedLaunch:
    """A launch of a kernel, by its name in the PTX; ``grid`` and ``block`` have one to three sizes.

    ``selection`` is what is recorded of it.
    """

    module: LoadedModule
    kernel: str
    grid: Sequence[int]
    block: Sequence[int]
    selection: Selection | None = None

    @property
    def file(self) -> str:
        """The PTX."""
        return self.module.module.program.source.file


@contextmanager
def observing(
    observers: Sequence[Observer | None], finish: Callable[[Exception | None], object]
) -> Iterator[Sequence[Observer]]:
    """Yield the observers of a launch; call ``finish`` at its end, also where it fails, with what failed,
    but not where it is interrupted.
    """
    failed: Exception | None = None
    try:
        yield [each for each in observers if each is not None]
    except Exception as error:
        if _is_interrupt(error):
            raise
        failed = error
    finish(failed)
    if failed is not None:
        raise failed


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error is what a compiled function makes of an interrupt that came while it ran."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            return True
        error = error.__cause__ or error.__context__
    return False


def recorder_of(path: Path | None, selection: Selection | None) -> Recorder | None:
    """Return what records the matrix instructions of a selection, None where there is no place for them."""
    from ...observe.recording.recorder import Recorder
    from ...observe.recording.selection import EVERYTHING

    return None if path is None else Recorder(selection or EVERYTHING)


def write_recorded(
    path: Path,
    recorder: Recorder,
    launch: ObservedLaunch,
    failed: Exception | None,
    packing: tuple[PackingNote, ...] | None = None,
    timeline: Timeline | None = None,
) -> int:
    """Write what was recorded of a launch, which an error may have ended; return how many matrix
    instructions. Raises OSError.
    """
    from ...observe.recording.listing import listing_of
    from ...workbench.vectors.formats.recording import write_recording
    from ...workbench.vectors.recordings import Recording, ending

    events = recorder.events()
    recording = Recording(
        kernel=launch.kernel,
        file=launch.file,
        target=launch.module.target,
        grid=three(launch.grid),
        block=three(launch.block),
        events=events,
        selection=str(launch.selection or ""),
        error=ending(failed),
        packing=packing,
        timeline=timeline,
        listing=listing_of(launch.module.module.code, events),
    )
    write_recording(path, recording)
    return len(events)


def three(given: Sequence[int]) -> tuple[int, int, int]:
    """Return sizes along x, y and z."""
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z
