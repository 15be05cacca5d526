"""The page of promises with what tests each: the package's promises, joined with the record of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from warpsim.show.views.promises.promise import Promise
from warpsim.show.views.promises.promises import block, label_lines

from .evidence import EVIDENCE

Record = Mapping[str, Any]  # date, figures by name


def joined_lines(found: Iterable[Promise], record: Record) -> Iterator[str]:
    """Yield what labels mean, then every promise with its tests, its tools and their figures."""
    yield from label_lines()
    for section, kept in groupby(found, key=lambda one: one.section):
        yield from ("", section)
        for (name, _), alike in groupby(kept, key=lambda one: (one.name, one.label)):
            for one in alike:
                yield from block(one.label, one.what, "  ")
            yield from _evidence(name, record)
    yield from ("", f"Figures of {record['date']}; python -m tools.promises makes them again.")


def _evidence(name: str, record: Record) -> Iterator[str]:
    known = EVIDENCE[name]
    yield from block("", f"tests: {', '.join(known.tests)}", "    ")
    if known.tools:
        yield from block("", f"tools: {', '.join(known.tools)}", "    ")
    for figure in figures_of(name, record).values():
        yield from block("", f"last run: {figure['text']} [{figure['source']}]", "    ")


def figures_of(name: str, record: Record) -> dict[str, dict[str, str]]:
    """Return what the tools of a promise printed, without those that have not run."""
    figures = record["figures"]
    return {figure: figures[figure] for figure in EVIDENCE[name].figures if figure in figures}
