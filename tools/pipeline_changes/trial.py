"""What becomes of a change: launches under some schedules until one says something.

Knows launches and findings; does not know what was changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsim.errors import WarpsimError
from warpsim.machine.launching import load_text

from .kernels import Pipeline

SCHEDULES: tuple[str | int, ...] = ("program", "latest", 1, 2)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """``word``: reported (a finding that is an error), undefined (an error of the machine), deadlock, changed
    (other bits and no word), warned (a finding that is none) or missed; the first message of that sort."""

    word: str
    message: str = ""
    kind: str = ""
    schedule: str | int = ""


def became(pipeline: Pipeline, text: str, schedules: Sequence[str | int] = SCHEDULES) -> Outcome:
    """What became of a text: the first launch that ends it, or the gravest that all of them say."""
    try:
        module = load_text(text, f"{pipeline.entry}.ptx")
    except WarpsimError as error:
        return Outcome(word="refused", message=error.message)
    quiet = Outcome(word="missed")
    for schedule in schedules:
        found = _launched(pipeline, module, schedule)
        if found.word in ("reported", "undefined", "deadlock"):
            return found
        if found.word == "changed" or quiet.word == "missed":
            quiet = found
    return quiet


def _launched(pipeline: Pipeline, module: object, schedule: str | int) -> Outcome:
    """What one launch says."""
    try:
        report, same = pipeline.launch(module, schedule)
    except WarpsimError as error:
        found, word = error.earlier, "deadlock" if "deadlock" in error.message else "undefined"
        failed = Outcome(word=word, message=error.message, kind=word, schedule=schedule)
    else:
        found, failed = report.hazards, Outcome(word="changed" if not same else "missed", schedule=schedule)
    for severity, word in (("error", "reported"), ("warning", "warned")):
        first = next((one for one in found if one.severity == severity), None)
        if first is not None and (word == "reported" or failed.word == "missed"):
            return Outcome(word=word, message=str(first), kind=first.kind, schedule=schedule)
    return failed
