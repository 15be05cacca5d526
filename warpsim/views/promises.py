"""The page of promises: what is guaranteed, inferred and refused, what tests it, and what tools last said.

Promises are those that are stated (promises_stated.py) and those that tables make (promises_derived.py).
Numbers come from the record that ``python -m tools.promises`` writes beside this file. Does not read files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from textwrap import wrap
from typing import Any

from ..isa.instruction import Instruction
from .information import Document
from .promise import LABELS, Promise
from .promises_derived import refused_promises, result_promises, statement_promises
from .promises_stated import BITS, ERRORS, FORMS, LIMITS, RESULTS, STATED, STATEMENTS

SECTIONS = (BITS, RESULTS, STATEMENTS, FORMS, ERRORS, LIMITS)
_WIDTH = 110
_INDENT = max(map(len, LABELS)) + 2

Record = Mapping[str, Any]  # date, tests by file, figures by name, statements


def promises(forms: Iterable[Instruction], record: Record) -> list[Promise]:
    """All of them, by section and label; of matrix instructions those of the forms."""
    found = (*STATED, *result_promises(forms), *statement_promises(record["statements"]), *refused_promises())
    order = list(LABELS)
    return sorted(found, key=lambda one: (SECTIONS.index(one.section), order.index(one.label), one.tests))


def count_of(path: str, record: Record) -> int:
    """The tests of a file or folder, as collected for the record."""
    tests: Mapping[str, int] = record["tests"]
    return sum(number for file, number in tests.items() if file == path or file.startswith(f"{path}/"))


# --- text ------------------------------------------------------------------------------------------


def promises_lines(forms: Iterable[Instruction], record: Record) -> Iterator[str]:
    """The page: what labels mean, then every promise with its tests, its tools and their figures."""
    for label, meaning in LABELS.items():
        yield from _block(label, meaning, "")
    found = promises(forms, record)
    for section, kept in groupby(found, key=lambda one: one.section):
        yield from ("", section)
        for _, alike in groupby(kept, key=lambda one: (one.label, one.tests, one.tools, one.figures)):
            yield from _together(list(alike), record)
    total = f"{sum(record['tests'].values()):,} tests in {len(record['tests'])} files"
    yield from ("", f"Figures of {record['date']}: {total}; python -m tools.promises makes them again.")


def _together(alike: list[Promise], record: Record) -> Iterator[str]:
    """Promises of one label, one below the other, then what tests all of them."""
    first = alike[0]
    for one in alike:
        yield from _block(one.label, one.what, "  ")
    tests = ", ".join(f"{path} ({count_of(path, record):,})" for path in first.tests)
    yield from _block("", f"tests: {tests}", "    ")
    if first.tools:
        yield from _block("", f"tools: {', '.join(first.tools)}", "    ")
    for figure in _figures(first, record).values():
        yield from _block("", f"last run: {figure['text']} [{figure['source']}]", "    ")


def _figures(one: Promise, record: Record) -> dict[str, dict[str, str]]:
    """What its tools said; without those that have not run."""
    return {name: record["figures"][name] for name in one.figures if name in record["figures"]}


def _block(label: str, text: str, margin: str) -> list[str]:
    """Text beside a label, in lines of a page's width."""
    first, rest = f"{margin}{label:{_INDENT}}", margin + " " * _INDENT
    return wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


# --- data ------------------------------------------------------------------------------------------


def promises_document(forms: Iterable[Instruction], record: Record) -> Document:
    """The page as JSON-ready data."""
    return {
        "date": record["date"],
        "tests": sum(record["tests"].values()),
        "labels": LABELS,
        "promises": [_document(one, record) for one in promises(forms, record)],
    }


def _document(one: Promise, record: Record) -> Document:
    return {
        "section": one.section,
        "label": one.label,
        "what": one.what,
        "tests": {path: count_of(path, record) for path in one.tests},
        "tools": list(one.tools),
        "figures": _figures(one, record),
        "modules": list(one.modules),
    }
