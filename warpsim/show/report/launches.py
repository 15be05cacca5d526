"""The launch that a recording is of as plain data for the page: its marks, and the sources with what ran.

A mark is an instruction of the page: its row is its warp, its column its place in the order of time, its hue
the line of the kernel. The sources have lines and their statements, with the numbers of instructions that are
those of the page, and all statements stand in a listing of their own too. Knows places only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ...base.errors import inline_stack
from ...observe.recording.listing import ListedLine
from ...ptx.symbols import shown
from ...workbench.vectors.recordings import Recording

Document = dict[str, Any]

_TURN = 137  # degrees from the hue of one line to that of the next: neighbours look unlike


def launch_document(recording: Recording) -> Document:
    """Kernel, grid, block, the lines and warps that there are, and a mark for each event in its order."""
    times = {time: place for place, time in enumerate(sorted({part.time for part in recording.events}))}
    warps = list(
        dict.fromkeys(
            (element.cta, element.warp) for element in sorted(recording.events, key=_by_warp(recording))
        )
    )
    rows = {warp: place for place, warp in enumerate(warps)}
    lines = sorted({item.line for item in recording.events})
    hues = {line: place * _TURN % 360 for place, line in enumerate(lines)}
    return {
        "kernel": shown(recording.kernel),
        "grid": list(recording.grid),
        "block": list(recording.block),
        "moments": len(times),
        "warps": [{"cta": ", ".join(map(str, cta)), "warp": warp} for cta, warp in warps],
        "lines": [{"line": line, "hue": hues[line]} for line in lines],
        "marks": [
            {
                "row": rows[entry.cta, entry.warp],
                "column": times[entry.time],
                "hue": hues[entry.line],
                "text": str(entry),
            }
            for entry in recording.events
        ],
    }


def _by_warp(recording: Recording) -> Any:
    def key(event: Any) -> tuple[int, int]:
        cta, _, warp = recording.order(event)
        return cta, warp

    return key


# --- sources ------------------------------------------------------------------------------------------


def source_documents(recording: Recording) -> list[Document]:
    """Return the listed lines of each file; ``gap`` says that lines before are left out."""
    executed, reached = dict[int, list[int]](), dict[tuple[str, int], list[int]]()
    for number, event in enumerate(recording.events):
        executed.setdefault(event.line, []).append(number)
        for place in dict.fromkeys((each.file, each.line) for each in inline_stack(event.source)):
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


def ptx_documents(sources: Sequence[Document]) -> list[Document]:
    """Return the statements of all lines in the order of the PTX, and give each its number in this list.

    ``gap`` says that lines before are left out.
    """
    each = [statement for file in sources for line in file["lines"] for statement in line["statements"]]
    ordered = sorted(each, key=lambda statement: statement["line"])
    last = 0
    for number, statement in enumerate(ordered):
        statement |= {"number": number, "gap": statement["line"] > last + 1}
        last = statement["line"]
    return ordered
