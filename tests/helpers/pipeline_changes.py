"""Kernels with a synchronising statement left out or changed, and what a launch says of each.

``deletions(text)`` are variants of a PTX text by name; ``outcome(...)`` says in words what became of one:
"reported" (a finding that is an error), "warned" (one that is not), "undefined" (an error of the machine),
"deadlock", "changed" (other bits), or "missed". Knows statements, not kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.base.errors import WarpsimError
from warpsim.programs.launch.launching import LaunchReport, load_text

Array = npt.NDArray[np.uint32]
Launch = Callable[[object, str | int], tuple[LaunchReport, Array]]  # a module, a schedule

_SYNCHRONISING = re.compile(
    r"^(?:@!?\S+\s+)?(?:mbarrier|fence|bar(?:rier)?\.|cp\.async\.bulk\.(?:commit|wait))"
)
_COPY = re.compile(r"^(?:@!?\S+\s+)?cp\.async\.bulk\.(?:shared|global)")


def _lines(text: str) -> list[str]:
    return text.split("\n")


def _without(lines: list[str], place: int) -> str:
    """The text without a line; a wait is left out with the branch back to it."""
    left = {place, place + 1} if "try_wait" in lines[place] or "test_wait" in lines[place] else {place}
    return "\n".join("" if number in left else line for number, line in enumerate(lines))


def deletions(text: str) -> Iterator[tuple[str, str]]:
    """Each synchronising statement left out, by line and mnemonic."""
    lines = _lines(text)
    for place, line in enumerate(lines):
        statement = line.strip()
        if _SYNCHRONISING.match(statement) or _COPY.match(statement):
            yield f"{place + 1} without {statement.split()[0]}", _without(lines, place)


def outcome(text: str, launch: Launch, expected: Array, schedules: Sequence[str | int]) -> tuple[str, str]:
    """What became of a text under some schedules, in a word, and the first message."""
    found: dict[str, str] = {}
    module = load_text(text)
    for schedule in schedules:
        try:
            report, bits = launch(module, schedule)
        except WarpsimError as error:
            _keep(found, error.earlier)
            found.setdefault("deadlock" if "deadlock" in error.message else "undefined", error.message)
            continue
        _keep(found, report.hazards)
        if not np.array_equal(bits, expected):
            found.setdefault("changed", "")
    return " ".join(sorted(found)) or "missed", next((one for one in found.values() if one), "")


def _keep(found: dict[str, str], findings: Sequence[Any]) -> None:
    for one in findings:
        found.setdefault("reported" if one.severity == "error" else "warned", f"{one.kind}: {one.message}")
