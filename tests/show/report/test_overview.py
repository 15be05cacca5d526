"""The overview of a launch of thousands of matrix instructions: marks, what a page has, rows and commands."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from py_mini_racer import MiniRacer

from tests.helpers.recorded import MMA_LINE, SPARSE_LINE, recording, repeated_recording
from warpsim.base.errors import OperandError
from warpsim.show.report import overview
from warpsim.show.report.document import gather
from warpsim.show.report.overview import MOST_SHOWN, overview_of
from warpsim.show.report.page import bundle
from warpsim.workbench.vectors.recordings import PackingNote

WHOLE = recording()
SPECIAL, ZERO, REPEATED = 2, 4, 8


def changed(number: int, **words: Any) -> Any:
    events = list(WHOLE.events)
    event = events[number]
    registers = {**event.inputs.registers, **{name: word for name, word in words.items() if name != "d"}}
    inputs = replace(event.inputs, registers=registers)
    events[number] = replace(event, inputs=inputs, d=words.get("d", event.d))
    return replace(WHOLE, events=tuple(events))


def test_a_step_with_the_operands_of_the_step_before_is_marked() -> None:
    marks = overview_of(WHOLE).marks
    expected = [REPEATED if event.line == MMA_LINE and event.index else 0 for event in WHOLE.events]
    assert list(marks) == expected
    event = WHOLE.events[1]
    other = changed(1, b=event.inputs.registers["b"] ^ np.uint32(1))
    own = [
        at
        for at, each in enumerate(WHOLE.events)
        if (each.cta, each.warp, each.pc) == (event.cta, event.warp, event.pc)
    ]
    assert [overview_of(other).marks[at] for at in own] == [0, 0, REPEATED]


@pytest.mark.parametrize("pattern", [0x7F80_0000, 0xFF80_0000, 0x7FC0_0001])
def test_nan_and_infinity_in_d_are_marked(pattern: int) -> None:
    d = WHOLE.events[3].d.copy()
    d[17, 2] = pattern
    assert overview_of(changed(3, d=d)).marks[3] & SPECIAL
    d[17, 2] = 0x7F7F_FFFF
    assert not overview_of(changed(3, d=d)).marks[3] & SPECIAL


def test_zero_operands_are_marked() -> None:
    words = np.zeros_like(WHOLE.events[0].inputs.registers["a"])
    assert overview_of(changed(0, a=words)).marks[0] == ZERO
    words[31, 1] = 1
    assert overview_of(changed(0, a=words)).marks[0] == 0


def test_what_does_not_come_from_where_it_belongs_is_marked() -> None:
    event = WHOLE.events[5]
    note = PackingNote(line=event.line, operand="A", kind="row", message="wrong", where=event.place)
    assert [value & 1 for value in overview_of(replace(WHOLE, packing=(note,))).marks] == [
        int(at == 5) for at in range(32)
    ]


def test_a_page_has_a_bounded_number_of_matrices_the_marked_first() -> None:
    many = repeated_recording(40)
    events = list(many.events)
    d = events[777].d.copy()
    d[0, 0] = 0x7FC0_0000
    events[777] = replace(events[777], d=d)
    found = overview_of(replace(many, events=tuple(events)))
    assert len(found.shown) == MOST_SHOWN == len(found.detailed().events)
    assert sorted(set(found.shown)) == list(found.shown)
    kinds = Counter((event.line, event.cta, event.warp) for event in found.detailed().events)
    assert len(kinds) == 16  # every line of every warp


def test_ends_and_marked_instructions_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_SHOWN", 128)
    monkeypatch.setattr(overview, "_same_operands", lambda *_: False)
    many = repeated_recording(20)
    events = list(many.events)
    middle = next(at for at, event in enumerate(events) if event.line == MMA_LINE and event.index == 31)
    d = events[middle].d.copy()
    d[0, 0] = 0x7FC0_0000
    events[middle] = replace(events[middle], d=d)
    found = overview_of(replace(many, events=tuple(events)))
    assert middle in found.shown
    ends = [at for at, event in enumerate(events) if event.index in (0, 59 if event.line == MMA_LINE else 19)]
    assert len(ends) == 32
    assert set(ends) < set(found.shown)
    assert len(found.shown) == 128


def test_large_instructions_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    size = overview._size(WHOLE.events[0])
    monkeypatch.setattr(overview, "SHOWN_BYTES", 5 * max(map(overview._size, WHOLE.events)) + size // 2)
    assert len(overview_of(WHOLE).shown) == 5


def test_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_EVENTS", 31)
    with pytest.raises(OperandError, match=r"has 32 matrix instructions, but a page shows 31: select fewer"):
        overview_of(WHOLE)


def test_few_without_marks_have_no_overview() -> None:
    events = tuple(event for event in WHOLE.events if event.line == SPARSE_LINE)
    assert gather(replace(WHOLE, events=events)).document["overview"] is None
    assert gather(replace(WHOLE, events=())).document["overview"] is None


def test_the_scripts_know_every_cell() -> None:
    report = gather(replace(repeated_recording(20), path="many.npz"))
    document = report.document["overview"]
    engine = MiniRacer()
    try:
        engine.eval(bundle("overview_cells.js"))
        engine.eval(
            f"const data = {json.dumps(document)};"
            f"const buffer = new Uint8Array({json.dumps(list(report.pool.content))}).buffer;"
            "const kinds = {1: Uint8Array, 2: Uint16Array, 4: Uint32Array};"
            "const {cellsOf, overviewText, commandOf} = modules['overview_cells.js'];"
            "const cells = cellsOf(data, ({at, count, bytes}) => new kinds[bytes](buffer, at, count));"
        )
        cells = json.loads(str(engine.eval("JSON.stringify(cells)")))
        told = json.loads(
            str(engine.eval("JSON.stringify(cells.map(c => [overviewText(data, c), commandOf(data, c)]))"))
        )
    finally:
        getattr(engine, "close", lambda: None)()
    many = repeated_recording(20).events
    assert len(cells) == len(many) == 640
    assert sum(cell["place"] > 0 for cell in cells) == len(report.document["instructions"]) == MOST_SHOWN
    for cell, event, (text, command) in zip(cells, many, told, strict=True):
        where = f"line {event.line} · CTA ({', '.join(map(str, event.cta))}) · warp {event.warp}"
        assert text.startswith(f"{where}, step {event.index}: {event.instruction.mnemonic}")
        assert text.endswith("A and B are those of the step before") == bool(cell["marked"] & REPEATED)
        cta = ",".join(map(str, event.cta))
        selection = f"cta={cta} warp={event.warp} line={event.line} step={event.index}"
        assert command == f'warpsim view many.npz --select "{selection}"'
        if cell["place"]:
            shown = report.document["instructions"][cell["place"] - 1]
            assert (shown["line"], shown["executed"]) == (event.line, event.place)
