"""Cases of mistakes, and how what warpsim says of them is judged and listed.

A case states what an answer must match before anything is run. What ``warpsim diff`` is given is written to
files, and the command is run as from a shell; other tools judge their own texts with ``outcome_of``, and
list them with ``listed``.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from warpsim.show.cli import cli
from warpsim.workbench.vectors.formats import write_vectors
from warpsim.workbench.vectors.sets import VectorSet

Answer = tuple[str, float, str]  # the outcome, seconds, and the text that was judged
Records = tuple[tuple[str, str, dict[str, Any]], ...]  # operand, kind and facts, all of one explanation
_CLAIMS = r"matches|seen in D: (?!behind)|is (read|stored|taken) |solved from D"  # a cause is claimed


@dataclass(frozen=True, kw_only=True)
class Brought:
    """The command line: ``arrays`` are saved as ``.npy``, ``texts`` as they are, ``words`` are added.

    ``vectors`` is a set that stands for the mnemonic of ``form``; a word ``NAME=TEXT`` names a text.
    """

    form: tuple[str, str]
    arrays: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    vectors: VectorSet | None = None


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What an answer must match: the first part to name the cause, all of it to locate or hint.

    ``names`` are words, or records: what the explanation says as data, in the document of ``--json``.
    ``right``: there is no mistake, and nothing may be claimed but what ``names`` matches. ``asked``: the text
    has two readings, or lacks something, and the right answer is a refusal that says so.
    """

    names: str | Records
    locates: str = ""
    hints: str = ""
    asked: bool = False
    right: bool = False


@dataclass(frozen=True, kw_only=True)
class Case(Expected):
    """A mistake, or a right kernel, as ``make`` brings it to ``warpsim diff``."""

    name: str
    make: Callable[[np.random.Generator], Brought]


def said(operand: str, kind: str, **facts: Any) -> Records:
    """Return the record of an operand, by letter, of which ``kind`` and some ``facts`` are expected."""
    return ((operand, kind, facts),)


def _has(match: Any, records: Records) -> bool:
    """Return whether one of the explanations of a match has all the records."""

    def in_cause(cause: Any, operand: str, kind: str, facts: dict[str, Any]) -> bool:
        wanted = {"kind": kind} | facts
        return any(
            wanted == {name: found.get(name) for name in wanted}
            for mistake in cause.get("mistakes", [cause])  # of a loop every cause is a single one
            if "".join(mistake["operands"]).lower() == operand
            for found in mistake["records"]
        )

    causes = match if isinstance(match, list) else [match]
    return any(all(in_cause(cause, *record) for record in records) for cause in causes)


def answered(case: Case, seed: int = 1) -> Answer:
    """Run diff on a case; the seconds are of the processor, the text is what was printed."""
    brought = case.make(np.random.default_rng(seed))
    with tempfile.TemporaryDirectory() as folder:
        words = command_line(brought, Path(folder)) + ["--json"] * isinstance(case.names, tuple)
        start = time.process_time()
        result = CliRunner().invoke(cli, words, standalone_mode=False)
        seconds = time.process_time() - start
    text = result.output + (f"\n{result.exception!r}" if result.exception else "")
    refused = hasattr(result.exception, "exit_code") or result.return_value not in (0, 1)
    if result.exception is not None and not hasattr(result.exception, "exit_code"):
        return "crashed", seconds, text
    if refused:
        return "asked" if case.asked and re.search(str(case.names), text) else "refused", seconds, text
    if isinstance(case.names, tuple):
        matches = [match for each in json.loads(text)["subjects"] for match in each["matches"]]
        named = matches and _has(matches[0], case.names)
        return "named" if named else "wrong" if matches else "none", seconds, text
    return outcome_of(case, text, first_part(text), bool(re.search(_CLAIMS, text))), seconds, text


def outcome_of(expected: Expected, text: str, first: str, claimed: bool) -> str:
    """Return named, located, hint, none, or wrong where a cause is claimed that is not there.

    Of a right case: ``right``, ``none`` where bits differ and nothing is claimed, or ``wrong``. ``first`` is
    the part of the text that has the first cause.
    """
    names = str(expected.names)
    if re.search(names, first):
        return "right" if expected.right else "named"
    patterns = {"located": expected.locates, "hint": f"{expected.hints}|{names}".strip("|")}
    for word, pattern in patterns.items():
        if not expected.right and pattern and re.search(pattern, text):
            return word
    return "wrong" if claimed else "none"


def command_line(brought: Brought, folder: Path) -> list[str]:
    """Write the files, and return the words after ``warpsim``."""
    words = ["diff", brought.form[0], "--target", brought.form[1]]
    if brought.vectors is not None:
        words = ["diff", str(folder / "set.npz")]
        write_vectors(words[1], brought.vectors)
    for name, array in brought.arrays.items():
        np.save(folder / f"{name}.npy", array)
        words.append(f"{name}={folder / name}.npy")
    for name, text in brought.texts.items():
        file = folder / (name if "." in name else f"{name}.txt")
        file.write_text(text)
        operand = name.partition(".")[0]
        if len(operand) == 1:
            words.append(f"{operand}={file}")
    for word in brought.words:
        name, equals, file = word.rpartition("=")
        words.append(f"{name}{equals}{folder / file}" if file in brought.texts else word)
    return words


def first_part(text: str) -> str:
    """Return diff's output up to the second explanation."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if re.search(r"^\s*(matches|[\d.]+% of D)", line)]
    return "\n".join(lines[: starts[1]] if len(starts) > 1 else lines)


def listed(description: str, groups: Mapping[str, Sequence[tuple[str, Callable[[], Answer]]]]) -> None:
    """Print outcome and seconds of each title's answer, the sums of each group, and of all."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", default="", help="cases with this in their name or group")
    parser.add_argument("--show", action="store_true", help="print the answers")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    times = []
    for group, titles in groups.items():
        for title, answer in titles:
            if options.only not in f"{group}: {title}":
                continue
            found, seconds, text = answer()
            counts.setdefault(group, Counter())[found] += 1
            times.append(seconds)
            print(f"{found:<8} {seconds:5.1f}  {group}: {title}", flush=True)
            if options.show:
                print(text)
    for group, sums in counts.items():
        print(f"{group}: {sums.total()} cases: {dict(sums)}")
    total = sum(counts.values(), Counter[str]())
    if times:
        speed = f"median {np.median(times):.2f} s, longest {max(times):.1f} s"
        print(f"{total.total()} in all: {dict(total)}; {speed}")
