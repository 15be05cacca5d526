"""The sources of a recording as plain data for the page: lines, their statements, and what was executed.

Numbers of instructions are those of the page, which are those of the recorded events.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ..recording.listing import ListedLine, chain
from ..vectors.recordings import Recording

Document = dict[str, Any]


def source_documents(recording: Recording) -> list[Document]:
    """Return the listed lines of each file; ``gap`` says that lines before are left out."""
    executed, reached = dict[int, list[int]](), dict[tuple[str, int], list[int]]()
    for number, event in enumerate(recording.events):
        executed.setdefault(event.line, []).append(number)
        for place in dict.fromkeys((each.file, each.line) for each in chain(event.source)):
            reached.setdefault(place, []).append(number)
    return [
        {"file": file, "lines": _lines(list(lines), executed, reached)}
        for file, lines in groupby(recording.listing, key=lambda each: each.file)
    ]


def _lines(
    lines: Sequence[ListedLine], executed: dict[int, list[int]], reached: dict[tuple[str, int], list[int]]
) -> list[Document]:
    before = [0, *(each.line for each in lines)]
    return [
        {
            "line": each.line,
            "gap": each.line > last + 1,
            "text": each.text.expandtabs(4).rstrip(),
            "instructions": reached.get((each.file, each.line), []),
            "statements": [
                {"line": line, "text": text, "instructions": executed.get(line, [])}
                for line, text in each.statements
            ],
            "more": each.more,
        }
        for each, last in zip(lines, before, strict=False)
    ]
