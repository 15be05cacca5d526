"""Lists of mistakes, and how what ``diff`` says of them is judged."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from tools.user_mistakes.__main__ import command_line, first_part
from tools.user_mistakes.case import Brought
from warpsim.cli import cli

Make = Callable[[np.random.Generator], Brought]
_CLAIMS = r"matches|seen in D: (?!behind)|is (read|stored|taken) |solved from D"  # a cause is claimed


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mistake: what the first answer must match if it ``names`` the cause, ``locates`` or ``hints`` at it.

    ``right``: there is no mistake, and nothing may be claimed but what ``names`` matches. ``asked``: the text
    has two readings, or lacks something, and the right answer is a refusal that says so.
    """

    name: str
    make: Make
    names: str
    locates: str = ""
    hints: str = ""
    asked: bool = False
    right: bool = False


class Listing:
    """Mistakes in the order in which they were written."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def mistake(self, name: str, names: str, **more: Any) -> Callable[[Make], Make]:
        """Register the function that makes what an engineer brings."""

        def register(make: Make) -> Make:
            self.cases.append(Case(name=name, make=make, names=names, **more))
            return make

        return register

    def right(self, name: str, names: str = r"as expected") -> Callable[[Make], Make]:
        """Register a kernel, or a print, in which nothing is wrong."""
        return self.mistake(name, names, right=True)


def judged(case: Case, seed: int = 1) -> tuple[str, float, str]:
    """Run diff; return the outcome, the seconds of processor time, and what was printed."""
    brought = case.make(np.random.default_rng(seed))
    with tempfile.TemporaryDirectory() as folder:
        words = command_line(brought, Path(folder))
        start = time.process_time()
        result = CliRunner().invoke(cli, words, standalone_mode=False)
        seconds = time.process_time() - start
    text = result.output + (f"\n{result.exception!r}" if result.exception else "")
    return outcome(case, result, text), seconds, text


def outcome(case: Case, result: Any, text: str) -> str:
    """Return named, located, hinted, asked, refused, crashed, none, or wrong for a cause that is not there.

    Of a right case: ``right``, ``none`` where bits differ and nothing is claimed, or ``wrong``.
    """
    refused = hasattr(result.exception, "exit_code") or result.return_value in (2, 3)
    if result.exception is not None and not refused:
        return "crashed"
    if refused:
        return "asked" if case.asked and re.search(case.names, text) else "refused"
    if re.search(case.names, first_part(text)):
        return "right" if case.right else "named"
    for word, pattern in (("located", case.locates), ("hinted", f"{case.hints}|{case.names}")):
        if not case.right and pattern.strip("|") and re.search(pattern.strip("|"), text):
            return word
    return "wrong" if re.search(_CLAIMS, text) else "none"
