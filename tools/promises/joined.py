"""The page of promises with what tests each: the package's promises, joined with the record of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from warpsim.show.views.promises.promise import Promise
from warpsim.show.views.promises.promises import block, label_lines

from .evidence import EVIDENCE

Record = Mapping[str, Any]  # date, tests by file, figures by name


def count_of(path: str, record: Record) -> int:
    """Return the tests of a file or folder, as collected for the record."""
    tests: Mapping[str, int] = record["tests"]
    return sum(number for file, number in tests.items() if file == path or file.startswith(f"{path}/"))


def joined_lines(found: Iterable[Promise], record: Record) -> Iterator[str]:
    """Yield what labels mean, then every promise with its tests, its tools and their figures."""
    yield from label_lines()
    for section, kept in groupby(found, key=lambda one: one.section):
        yield from ("", section)
        for (name, _), alike in groupby(kept, key=lambda one: (one.name, one.label)):
            for one in alike:
                yield from block(one.label, one.what, "  ")
            yield from _evidence(name, record)
    total = f"{sum(record['tests'].values()):,} tests in {len(record['tests'])} files"
    yield from ("", f"Figures of {record['date']}: {total}; python -m tools.promises makes them again.")


def _evidence(name: str, record: Record) -> Iterator[str]:
    known = EVIDENCE[name]
    tests = ", ".join(f"{path} ({count_of(path, record):,})" for path in known.tests)
    yield from block("", f"tests: {tests}", "    ")
    if known.tools:
        yield from block("", f"tools: {', '.join(known.tools)}", "    ")
    for figure in figures_of(name, record).values():
        yield from block("", f"last run: {figure['text']} [{figure['source']}]", "    ")


def figures_of(name: str, record: Record) -> dict[str, dict[str, str]]:
    """Return what the tools of a promise printed, without those that have not run."""
    figures = record["figures"]
    return {figure: figures[figure] for figure in EVIDENCE[name].figures if figure in figures}
