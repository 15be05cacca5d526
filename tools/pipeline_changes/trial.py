"""What becomes of a change: launches under some schedules until one says something.

Knows launches and findings; does not know what was changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpsim.base.errors import WarpsimError
from warpsim.programs.launch.launching import LoadedModule, load_text

from .kernels import Pipeline

Schedule = str | int
SCHEDULES: tuple[Schedule, ...] = ("program", "latest", 1, 2)
_ENDS = frozenset({"reported", "undefined", "deadlock"})


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """``word``: reported (a finding that is an error), undefined (an error of the machine), deadlock, changed
    (other bits and no word), warned (a finding that is none), missed, or refused (not loaded); the kind of
    finding and the first message of that sort, as a user sees it, and the schedule.
    """

    word: str
    message: str = ""
    kind: str = ""
    schedule: Schedule = ""


def became(pipeline: Pipeline, text: str, schedules: Sequence[Schedule] = SCHEDULES) -> Outcome:
    """Return the outcome of a text: the first that ends the trial, or the gravest of all launches."""
    try:
        module = load_text(text, f"{pipeline.entry}.ptx")
    except WarpsimError as error:
        return Outcome(word="refused", message=error.render())
    quiet = Outcome(word="missed")
    for schedule in schedules:
        found = _launched(pipeline, module, schedule)
        if found.word in _ENDS:
            return found
        if found.word == "changed" or quiet.word == "missed":
            quiet = found
    return quiet


def alarms(pipeline: Pipeline, schedules: Sequence[Schedule]) -> Iterator[Outcome]:
    """Yield the outcomes of an intact pipeline that are alarms."""
    module = load_text(pipeline.text, f"{pipeline.entry}.ptx")
    for schedule in schedules:
        found = _launched(pipeline, module, schedule)
        if found.word != "missed":
            yield found


def _launched(pipeline: Pipeline, module: LoadedModule, schedule: Schedule) -> Outcome:
    """Return the outcome of a launch: its first error finding, else its failure, else its first warning."""
    try:
        report, same = pipeline.launch(module, schedule)
    except WarpsimError as error:
        found, word = error.earlier, "deadlock" if "deadlock" in error.message else "undefined"
        failed = Outcome(word=word, message=error.render(), schedule=schedule)
    else:
        found, failed = report.hazards, Outcome(word="missed" if same else "changed", schedule=schedule)
    for severity, word in (("error", "reported"), ("warning", "warned")):
        first = next((one for one in found if one.severity == severity), None)
        if first is not None and (word == "reported" or failed.word == "missed"):
            return Outcome(word=word, message=str(first), kind=first.kind, schedule=schedule)
    return failed
