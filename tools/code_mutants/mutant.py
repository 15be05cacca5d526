"""A mutant: one line of warpsim changed, and the tests that should notice; the committed list of them.

The list is ``mutants.jsonl``, an object a line. Knows nothing of how mutants are tried (trial.py) or made
(proposing.py). A line is told by its text without indentation, so that the list outlives changes elsewhere
in the file; where a file has the text more than once, ``occurrence`` counts from 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.jsonl")
CLASSES = (
    "layout",
    "metadata",
    "descriptor",
    "encoding",
    "rule",
    "parser",
    "binding",
    "execution",
    "opcode",
    "memory",
    "hazard",
    "diagnosis",
    "file",
)


class Stale(Exception):
    """The line that a mutant changes is not there any more."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One changed line of ``file``, a path from the root.

    ``kind`` is one of CLASSES; ``what`` says in a few words what was changed. ``tests`` are files, or
    functions as ``file::function``, the likeliest first. ``equivalent`` says why no test can notice,
    ``survives`` why none does.
    """

    file: str
    old: str
    new: str
    kind: str
    what: str
    occurrence: int = 1
    tests: tuple[str, ...] = ()
    equivalent: str = ""
    survives: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.old!r} -> {self.new!r}"

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells mutants apart."""
        return self.file, self.old, self.new, self.occurrence

    @property
    def explanation(self) -> str:
        """Why nothing notices it, if the list says so."""
        return self.equivalent or self.survives

    def line(self, source: str) -> int:
        """Return the index of the line that is changed; raises Stale."""
        found = [number for number, text in enumerate(source.splitlines()) if text.strip() == self.old]
        if not 1 <= self.occurrence <= len(found):
            raise Stale(f"{self.file}: {self.old!r} occurs {len(found)} times, not {self.occurrence}")
        return found[self.occurrence - 1]

    def applied(self, source: str) -> str:
        """Return the text of the file with the line changed; raises Stale."""
        lines, at = source.splitlines(keepends=True), self.line(source)
        lines[at] = lines[at].replace(self.old, self.new)
        return "".join(lines)


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Mutant)}


def read_list(path: Path = LIST) -> list[Mutant]:
    """Return the mutants of a list, in its order."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Mutant(**row | {"tests": tuple(row.get("tests", ()))}) for row in rows]


def write_list(mutants: Iterable[Mutant], path: Path = LIST) -> None:
    """Write a list: by class, file and text, so that changes to it are easy to read."""
    ordered = sorted(mutants, key=lambda one: (CLASSES.index(one.kind), *one.key))
    path.write_text("".join(row_of(item) for item in ordered), encoding="utf-8")


def row_of(mutant: Mutant) -> str:
    """Return the line of a list that is a mutant."""
    row = {name: value for name, value in asdict(mutant).items() if value != _DEFAULTS[name]}
    return json.dumps(row, ensure_ascii=False) + "\n"
