"""Matrix instructions of a launch as events, selections of them, and stops at lines and writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.recorded import ADD_LINE, MMA_LINE, SPARSE_LINE, launched, loop_kernel
from warpsim.base.errors import OperandError, UndefinedBehavior
from warpsim.machine.run.events import Observer
from warpsim.observe.recording.recorder import LaunchEvent, Recorder
from warpsim.observe.recording.selection import Selection, selection_of
from warpsim.observe.stops.debugger import STOPS, Debugger, WarpStop
from warpsim.programs.launch.launching import load_text

EVERY = launched(record=True).events


def _place(event: LaunchEvent) -> tuple[Any, ...]:
    return event.cta, event.warp, event.line, event.index


# --- events ----------------------------------------------------------------------------------------


def test_events_come_by_cta_then_time_then_warp() -> None:
    own = [(MMA_LINE, 0), (MMA_LINE, 1), (MMA_LINE, 2), (SPARSE_LINE, 0)]
    ctas = [(x, y, 0) for y in range(2) for x in range(2)]
    expected = [(cta, warp, line, index) for cta in ctas for line, index in own for warp in range(2)]
    assert [_place(event) for event in EVERY] == expected


def test_the_order_does_not_depend_on_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpsim.machine.grid.LANES", 64)  # a CTA a wave
    assert [_place(event) for event in launched(record=True).events] == [_place(event) for event in EVERY]


def test_an_event_has_what_the_instruction_read_and_computed() -> None:
    found = [one for one in EVERY if (one.cta, one.warp, one.line) == ((1, 0, 0), 1, MMA_LINE)]
    first, second, _ = found
    assert first.bound.d == ("%d0", "%d1", "%d2", "%d3")
    assert first.lane0 == 32
    assert (first.inputs.registers["a"] == np.array([0x40003C00, 0x3C003C00], np.uint32)).all()
    assert not first.inputs.registers["c"].any()
    np.testing.assert_array_equal(second.inputs.registers["c"], first.d)
    d = warpsim.execute(second.instruction, **second.inputs.registers)
    np.testing.assert_array_equal(second.d, d)


def test_sparse_events_have_their_selector_and_lanes_of_their_own_warp() -> None:
    event = EVERY[-1]
    assert (event.inputs.selector, event.line, event.warp) == (1, SPARSE_LINE, 1)
    assert (event.inputs.registers["e"] == 0x44444444).all()
    np.testing.assert_array_equal(event.inputs.registers["b"][:, 1], np.arange(32, 64))
    d = warpsim.execute(event.instruction, **event.inputs.registers, selector=1)
    np.testing.assert_array_equal(event.d, d)


def test_an_event_is_an_event_of_one_warp() -> None:
    event = EVERY[3]
    ((first, inputs, d),) = event.executions()
    assert (first, event.warps) == (0, (0,))
    np.testing.assert_array_equal(d, event.d)
    np.testing.assert_array_equal(inputs.registers["a"], event.inputs.registers["a"])
    assert str(event) == (
        f"line {MMA_LINE}, CTA (0, 0, 0), warp 1, step 1: mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
    )


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert launched().events == ()


# --- selections ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "cta=1", "cta=0,1 warp=1", "line=15", "step=1", "warp=0 step=0 line=20", "cta=1,1,0 step=2"]
)
def test_a_selection_while_recording_is_one_afterwards(text: str) -> None:
    selection = selection_of(text)
    expected = [_place(event) for event in EVERY if selection.takes(event)]
    assert [_place(event) for event in launched(record=selection).events] == expected
    assert selection_of(str(selection)) == selection


def test_a_text_selects_too() -> None:
    assert len(launched(record="cta=1,1 warp=0 line=15 step=2").events) == 1


def test_several_ctas_are_selected_together() -> None:
    selection = selection_of("cta=1 warp=0 cta=0,1 cta=1,0 line=15")
    assert str(selection) == "cta=1,0,0 cta=0,1,0 warp=0 line=15"
    found = [_place(event) for event in launched(record=selection).events]
    expected = [one for one in EVERY if one.cta in ((1, 0, 0), (0, 1, 0)) and (one.warp, one.line) == (0, 15)]
    assert found == [_place(one) for one in expected]
    assert len(found) == 6
    assert [_place(one) for one in EVERY if selection.takes(one)] == found


WRONG = {
    "cta=0 wrap=1": "selection:1:7: error: unknown field 'wrap'; known are cta, warp, line, step\n"
    "    cta=0 wrap=1\n          ^~~~",
    "line=0": "selection:1:6: error: line is a line of the text from 1, such as line=120\n"
    "    line=0\n         ^",
    "warp=1 warp=2": "selection:1:8: error: warp is given twice\n    warp=1 warp=2\n           ^~~~",
    "cta=1,2,3,4": "selection:1:5: error: cta is one to three numbers from 0, such as cta=0,1\n"
    "    cta=1,2,3,4\n        ^~~~~~~",
    "warp=-1": "selection:1:6: error: warp is a number from 0, such as warp=1\n    warp=-1\n         ^~",
    "step=": "selection:1:1: error: step is a number from 0: which execution of a statement by a warp, "
    "such as step=3\n    step=\n    ^~~~",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_selections_point_at_the_word(text: str) -> None:
    with pytest.raises(OperandError) as caught:
        selection_of(text)
    assert str(caught.value) == WRONG[text]


def test_what_is_no_selection() -> None:
    with pytest.raises(OperandError, match=r"^7 is not a selection: expected a text such as 'cta=0,0"):
        selection_of(7)  # type: ignore[arg-type]


# --- limits ----------------------------------------------------------------------------------------


def test_memory_is_bounded() -> None:
    recorder = Recorder(limit_bytes=20_000)
    with pytest.raises(OperandError) as caught:
        launched(observers=[recorder])
    assert str(caught.value).startswith(
        f"loop.ptx:{MMA_LINE}:5: error: the recording has more than 20,000 bytes after 8 matrix "
        "instructions: select fewer, by cta=, warp=, line= or step=\n"
    )


def test_a_selection_needs_less() -> None:
    recorder = Recorder(Selection(warp=1, step=0), limit_bytes=20_000)
    launched(observers=[recorder])
    assert len(recorder.events()) == 8
    kept = sum(
        event.d.nbytes + sum(x.nbytes for x in event.inputs.registers.values()) for event in recorder.events()
    )
    assert recorder.bytes == kept


# --- stops -----------------------------------------------------------------------------------------


def _stops(selection: str | None = None, **options: Any) -> tuple[list[WarpStop], Debugger]:
    found: list[WarpStop] = []
    chosen = None if selection is None else selection_of(selection)
    debugger = Debugger(show=found.append, selection=chosen, **options)
    launched(observers=[debugger])
    return found, debugger


def test_the_first_stop_of_a_line_shows_what_its_registers_were_and_are() -> None:
    (stop,), _ = _stops(breaks=[ADD_LINE])
    assert (stop.cta, stop.warp, stop.index, stop.line) == ((0, 0, 0), 0, 0, ADD_LINE)
    (register,) = stop.registers
    assert (register.name, register.type) == ("%i", "u32")
    assert not register.missing.any()
    np.testing.assert_array_equal(register.before, np.zeros(32, np.uint32))
    assert register.after is not None
    np.testing.assert_array_equal(register.after, np.ones(32, np.uint32))


def test_a_matrix_instruction_stops_with_its_event() -> None:
    (stop,), _ = _stops("cta=0,1 warp=1 step=2", breaks=[MMA_LINE])
    (event,) = (one for one in EVERY if _place(one) == ((0, 1, 0), 1, MMA_LINE, 2))
    assert stop.event is not None
    assert _place(stop.event) == _place(event)
    np.testing.assert_array_equal(stop.event.d, event.d)


def test_a_register_is_watched_where_it_is_written() -> None:
    found, _ = _stops("cta=0 warp=1", watches=["%i"])
    assert [(stop.line, stop.index) for stop in found] == [(13, 0), *((ADD_LINE, step) for step in range(3))]
    values = [stop.registers[0].after for stop in found]
    assert [int(one[0]) for one in values if one is not None] == [0, 1, 2, 3]
    assert found[0].registers[0].missing.all()


def test_results_of_matrix_instructions_are_watched() -> None:
    found, _ = _stops("cta=0 warp=0", watches=["%d3"])
    assert [stop.line for stop in found] == [12, MMA_LINE, MMA_LINE, MMA_LINE, SPARSE_LINE]


def test_many_stops_are_cut_and_counted() -> None:
    kernel = loop_kernel()
    found: list[WarpStop] = []
    debugger = Debugger(show=found.append, breaks=[ADD_LINE], selection=Selection())
    kernel((2, 9), 64, [np.zeros((64, 4), np.float32)], checks="off", observers=[debugger])
    assert (len(found), debugger.more) == (STOPS, 2 * 9 * 2 * 3 - STOPS)


def test_lines_and_registers_that_are_not_there() -> None:
    with pytest.raises(OperandError) as line:
        _stops(breaks=[14])
    assert str(line.value) == "no statement begins at line 14; the nearest are at 13 and 15"
    with pytest.raises(OperandError) as register:
        _stops(watches=["%nix"])
    assert str(register.value) == "no function has a register %nix"
    assert _stops("step=5", breaks=[SPARSE_LINE])[1].missed == [SPARSE_LINE]


DIVERGED = """.version 9.0
.target sm_80
.address_size 64
.visible .entry k() {
.reg .u32 %t, %x; .reg .pred %p;
mov.u32 %t, %tid.x;
setp.lt.u32 %p, %t, 3;
@%p mov.u32 %x, 7;
@%p add.u32 %x, %x, %t;
ret;
}
"""


def test_lanes_that_do_not_execute_are_marked() -> None:
    found: list[WarpStop] = []
    debugger = Debugger(show=found.append, breaks=[8, 9])
    load_text(DIVERGED, "d.ptx")["k"](1, 32, observers=[debugger])
    assert [np.flatnonzero(stop.lanes).tolist() for stop in found] == [[0, 1, 2]] * 2
    first, second = (stop.registers[1] for stop in found)
    assert (first.name, first.missing.all()) == ("%x", True)
    assert second.missing.tolist() == [False] * 3 + [True] * 29
    assert second.after is not None
    assert second.after[:3].tolist() == [7, 8, 9]


def test_a_matrix_instruction_that_fails_stops_with_its_registers() -> None:
    text = (
        """.version 9.0
.target sm_80
.address_size 64
.visible .entry k() {
.reg .b32 %r<9>; .reg .f32 %d<4>;
"""
        + "\n".join(f"mov.b32 %r{n}, 0;" for n in range(9))
        + "\n".join(f"mov.f32 %d{n}, 0f00000000;" for n in range(4))
        + """
mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%r0, %r1}, {%r2, %r3},
    {%d0, %d1, %d2, %d3}, %r4, 0x0;
ret;
}
"""
    )
    found: list[WarpStop] = []
    line = text[: text.index("mma.sp")].count("\n") + 1
    with pytest.raises(UndefinedBehavior):
        load_text(text)["k"](1, 32, observers=[Debugger(show=found.append, breaks=[line])])
    (stop,) = found
    assert stop.event is None
    assert [register.name for register in stop.registers][-1] == "%r4"


def test_without_a_debugger_records_are_those_of_the_module() -> None:
    """What is off costs nothing: the code of a wave is the code of the module."""
    kernel = loop_kernel()
    seen: list[bool] = []

    class Watcher(Observer):
        def exit(self, wave: Any, path: Any, lanes: Any) -> None:
            seen.append(wave.code is wave.entry.code)

    kernel(1, 32, [np.zeros((64, 4), np.float32)], checks="off", observers=[Watcher()])
    assert seen == [True]
