"""What ``warpsim exec`` does with a program, or with each of a folder: here or on a server that stays.

Knows runs and reports; the verb knows the options.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...base.files.escaping import note_names
from .output import EXPECTED, MISMATCH, complain

if TYPE_CHECKING:
    from ...programs.exec.serving.runs import Run
    from ...programs.exec.serving.suites import ProgramResult
    from ...programs.exec.settings import Settings
    from ...programs.exec.tally import Tally

_NOT_STARTED = 126  # as shells have it


class Runner(Protocol):
    """A server, here or elsewhere."""

    def run(
        self, run: Run, command: Sequence[str], *, quiet: bool = False, limit: float | None = None
    ) -> int:
        """Run a program to its end; return its exit code. Raises HostError."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked for: ``schedules`` in all, and the ``limit`` of a program in seconds."""

    settings: Settings
    schedules: int
    limit: float | None
    quiet: bool

    @property
    def others(self) -> list[str]:
        """Other schedules than that of the program."""
        from ...machine.run.schedules import other_schedules

        return other_schedules(self.schedules - 1, self.settings.schedule)


def runner(connects: bool, folder: Path | None) -> AbstractContextManager[Runner]:
    """Return a server of this process, or the connection to one. Raises HostError."""
    if connects:
        from ...programs.exec.serving.remote import Remote, usual_folder

        return Remote(folder or usual_folder())
    from ...programs.exec.serving.server import Server

    return Server(_said)


def serve(folder: Path | None) -> None:
    """Serve until the process is interrupted. Raises HostError."""
    from ...programs.exec.serving.remote import prepared, usual_folder
    from ...programs.exec.serving.server import Server
    from ...programs.exec.serving.visits import visit

    with (
        prepared(folder or usual_folder()) as place,
        Server(_said, visitor=visit, folder=place),
    ):
        option = "" if folder is None else f" --server {folder}"
        _said(f"serves in {place}: warpsim exec --connect{option} PROGRAM")
        signal.pause()


def run_one(to: Runner, command: Sequence[str], asked: Asked) -> tuple[int, Tally]:
    """Run a program, and again under other schedules; return its exit code, and what was seen."""
    from ...programs.exec.serving.runs import Run
    from ...programs.exec.settings import Unobserved
    from ...programs.exec.tally import Tally

    tally = Tally(program=Path(command[0]).name, notice=_said, progress=_said)
    code = to.run(Run(settings=asked.settings, tally=tally, trace=complain), command, limit=asked.limit)
    for schedule in asked.others:
        other = Tally(program=tally.program, notice=_unshown, progress=_said)
        settings = replace(asked.settings, schedule=schedule, looking=Unobserved())
        again = Run(settings=settings, tally=other, trace=_unshown)
        to.run(again, command, quiet=True, limit=asked.limit)
        tally.compare(other, schedule)
    return code, tally


def run_folder(
    to: Runner, programs: Iterable[Path], arguments: Sequence[str], asked: Asked
) -> Iterator[ProgramResult]:
    """Run programs, and yield what became of each."""
    from ...programs.exec.libraries import HostError
    from ...programs.exec.serving.suites import ProgramResult
    from ...programs.exec.tally import Tally
    from ..views.host_programs import summary_lines

    for path in programs:
        note_names([str(path)])
        start = time.monotonic()
        try:
            code, tally = run_one(to, [str(path.absolute()), *arguments], asked)
            error = ""
        except HostError as failed:
            code, tally, error = (
                _NOT_STARTED,
                Tally(program=path.name, notice=_said, progress=_said),
                str(failed),
            )
            _said(f"error: {failed}")
        seconds = time.monotonic() - start
        if not asked.quiet and not error:
            complain("\n".join(summary_lines(tally, asked.settings.chip)))
        yield ProgramResult(name=path.name, code=code, seconds=seconds, tally=tally, error=error)


def code_of(codes: Iterable[int], errors: int, wanted: int | None) -> int:
    """Return the exit code of a folder: whether a program failed, else ``wanted`` for errors."""
    if any(codes):
        return MISMATCH
    return wanted if wanted is not None and errors else EXPECTED


def write_report(path: Path, document: dict[str, Any]) -> None:
    """Write a report as JSON. Raises OSError."""
    from ...base.files.replacing import replacing

    with replacing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _said(text: str) -> None:
    complain(f"warpsim exec: {text}")


def _unshown(text: str) -> None:
    """Show nothing: the first run has said it."""
