"""CTAs over processes of this machine: bytes, findings, counts and errors are those of one process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import OperandError, WarpsimError
from warpsim.machine.independence import dependence
from warpsim.machine.run.pending import Stretches
from warpsim.machine.state.device import Device
from warpsim.programs.launch import forks
from warpsim.programs.launch import helper_processes as processes
from warpsim.programs.launch.helper_processes import Helpers
from warpsim.programs.launch.launching import load_text
from warpsim.programs.launch.touched_bytes import READ, WRITTEN, Touched

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>; .reg .f32 %f<3>; .shared .b32 tile[4];
ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r2, 128, %r3;
mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;
"""
SCALED = "ld.global.u32 %r4, [%d4];\nmul.lo.u32 %r4, %r4, 3;\nst.global.u32 [%d5], %r4;\nret; }"
CHAINED = """ld.global.u32 %r4, [%d4];
setp.ge.u32 %p1, %r1, 6400;
@%p1 ld.global.u32 %r5, [%d5+-25600];
add.u32 %r4, %r4, %r5;
st.global.u32 [%d5], %r4;
ret; }"""
TWICE = "st.global.u32 [%d5], %r1;\nst.global.u32 [%d2], %r2;\nret; }"
HALVES = """setp.lt.u32 %p1, %r2, 90;
@%p1 bra DONE;
st.global.u16 [%d5], %r1;
DONE: ret; }"""
BYTES_LATE = """setp.lt.u32 %p1, %r2, 70;
@%p1 st.global.u32 [%d5], %r1;
@!%p1 st.global.u8 [%d5], %r1;
ret; }"""
CTAS, THREADS = 100, 128  # four waves


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The waves that helpers have executed for launches, whatever threads the test runner has."""
    found: list[int] = []
    take = Helpers.taken

    def noted(self: Helpers, number: int) -> int:
        count = take(self, number)
        found.extend([count] * bool(count))
        return count

    def forked() -> int:
        begun.append(fork())
        return begun[-1]

    begun, fork = list[int](), forks.forked
    monkeypatch.setattr(forks, "forked", forked)
    monkeypatch.setattr(Helpers, "taken", noted)
    monkeypatch.setattr(forks.threading, "active_count", lambda: 1)
    yield found
    for process in begun:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)  # all have ended, and nothing of them is left


def launched(body: str, count: int, given: Any = None, **options: Any) -> tuple[Any, ...]:
    """What a launch leaves and says."""
    given = np.arange(CTAS * THREADS, dtype=np.uint32) if given is None else given
    out = np.full(CTAS * THREADS, 7, np.float32 if body is HALVES else np.uint32)
    said = None
    try:
        report = load_text(HEAD + body)["k"](CTAS, THREADS, [given, out], processes=count, **options)
        said = report.hazards, report.fidelity
    except WarpsimError as error:
        said = type(error), str(error), error.render()
    return out.tobytes(), said


@pytest.mark.parametrize("checks", ["error", "off"])
@pytest.mark.parametrize("schedule", ["program", 3])
def test_the_same_as_one_process(taken: list[int], schedule: Any, checks: str) -> None:
    one, two, three = (launched(SCALED, count, schedule=schedule, checks=checks) for count in (1, 2, 3))
    assert one == two == three
    assert np.frombuffer(one[0], np.uint32).tolist() == [3 * item for item in range(CTAS * THREADS)]
    assert taken == [2, 1, 1]


@pytest.mark.parametrize("body", [CHAINED, TWICE])
def test_ranges_that_meet_are_executed_here(taken: list[int], body: str) -> None:
    """CTAs that read what others have written, or write to one place, and what checks say of them."""
    assert launched(body, 1, checks="warn") == launched(body, 2, checks="warn")
    assert taken == []


def test_stores_of_other_sizes_in_helpers(taken: list[int]) -> None:
    """Owners of bytes come back for units that are smaller than those here."""
    one, two = (launched(BYTES_LATE, count, checks="warn") for count in (1, 2))
    assert one == two
    assert taken == [2]


def test_without_checks_the_last_cta_stays(taken: list[int]) -> None:
    one, two = (launched(TWICE, count, checks="off") for count in (1, 4))
    assert one == two
    assert taken == [1, 1, 1]


def test_what_only_helpers_see(taken: list[int]) -> None:
    """Statements that only late CTAs execute, and arrays that are partly written."""
    one, two = launched(HALVES, 1), launched(HALVES, 2)
    assert one == two
    assert [finding.kind for finding in one[1][0]] == ["element type", "unwritten"]
    assert taken == [2]


def test_a_helper_without_machine_code_says_why(taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    failed = "machine code of statements is not used"
    monkeypatch.setattr(processes, "failed_self_test", lambda: failed * (os.getpid() != here))
    arrays = [np.zeros(CTAS * THREADS, np.uint32) for _ in range(2)]
    report = load_text(HEAD + SCALED)["k"](CTAS, THREADS, arrays, processes=3)
    assert report.notes == (failed,)
    assert len(taken) == 2


def test_findings_of_helpers(taken: list[int]) -> None:
    device = Device("sm_80")
    reports = []
    for count in (1, 2):
        given, out = (device.empty(CTAS * THREADS, np.uint32) for _ in range(2))
        given.set(np.arange(CTAS * THREADS, dtype=np.uint32))
        half = "setp.lt.u32 %p1, %r2, 70;\n@%p1 bra L;\nld.global.u32 %r5, [%d5];\nL: " + SCALED
        report = load_text(HEAD + half)["k"](CTAS, THREADS, [given, out], processes=count)
        reports.append([(item.kind, item.message.partition(" of the ")[0]) for item in report.hazards])
        assert out.get()[-1] == 3 * (CTAS * THREADS - 1)
        assert report.processes == count
    assert reports[0] == reports[1]
    assert reports[0][0][0] == "uninitialised"
    assert taken == [2]


def test_faults_are_those_of_one_process(taken: list[int]) -> None:
    short = np.zeros(90 * THREADS, np.uint32)
    one, two = (launched(SCALED, count, short) for count in (1, 2))
    assert one == two
    assert "past the end of" in one[1][1]
    assert taken == []


def _dies(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _no_room(*_: object) -> None:
    raise OSError


@pytest.mark.parametrize(
    ("room", "name", "fails"),
    [(processes, "check_marked", _dies), (forks, "forked", _no_room), (forks, "shared_pages", _no_room)],
)
def test_helpers_that_die_or_have_no_room(
    monkeypatch: pytest.MonkeyPatch, taken: list[int], room: object, name: str, fails: Callable[..., None]
) -> None:
    monkeypatch.setattr(room, name, fails)
    assert launched(SCALED, 2) == launched(SCALED, 1)
    assert taken == []


def test_a_helper_that_never_answers(monkeypatch: pytest.MonkeyPatch, taken: list[int]) -> None:
    monkeypatch.setattr(processes, "_PATIENCE", 0.01)
    monkeypatch.setattr(processes, "_RATIO", 0.01)
    monkeypatch.setattr(processes, "check_marked", lambda *_: signal.pause())
    assert launched(SCALED, 2) == launched(SCALED, 1)
    assert taken == []


def test_an_interrupt_ends_helpers() -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launched(SCALED, 2, progress=interrupt)


def test_long_launches_get_helpers_by_themselves(monkeypatch: pytest.MonkeyPatch, taken: list[int]) -> None:
    monkeypatch.setattr(processes, "processors", lambda: 2)
    assert launched(SCALED, 1) == launched(SCALED, None)  # type: ignore[arg-type]
    assert taken == []
    monkeypatch.setattr(processes, "WORTH", 0.0)
    assert launched(SCALED, 1) == launched(SCALED, None)  # type: ignore[arg-type]
    assert taken == [2]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("atom.shared.add.u32 %r5, [tile], 1;", ""),
        ("membar.gl;", ""),
        ("atom.global.add.u32 %r5, [%d2], 1;", "atom.global.add.u32 reaches memory by which CTAs may wait"),
        ("ld.volatile.global.u32 %r5, [%d2];", "ld.volatile.global.u32 reaches memory by which CTAs may"),
        ("atom.shared.add.f32 %f1, [tile], %f1;", "atom.shared.add.f32 adds floats in an order"),
    ],
)
def test_what_makes_ctas_depend_on_each_other(statement: str, reason: str) -> None:
    found = dependence(load_text(f"{HEAD}{statement}\nret; }}")["k"].entry)
    assert found.startswith(reason)
    assert bool(found) is bool(reason)


@pytest.mark.parametrize("given", [0, True, 1.5, 257])
def test_numbers_of_processes(given: Any) -> None:
    message = rf"processes={given!r}: expected an integer from 1 to 256, or None"
    with pytest.raises(OperandError, match=message):
        load_text(HEAD + SCALED)["k"](1, 1, [None, None], processes=given)


def test_bytes_that_operations_touch_are_marked_each_time_that_memory_is_another() -> None:
    """The same ranges come again and again; of a memory that has grown nothing is marked yet."""
    touched = Touched()
    ranges = np.array([[8, 12], [16, 24]])
    for size in (32, 64):
        memories = SimpleNamespace(device=SimpleNamespace(data=np.zeros(size, np.uint8)))
        wave: Any = SimpleNamespace(memories=memories)
        read = Stretches(space="global", ranges=lambda: ranges, some=8)
        nothing = Stretches(space="global", ranges=np.zeros((0, 2), np.int64))
        for _ in range(2):
            touched._mark_ranges(wave, (read, nothing), READ)
            touched._mark_ranges(wave, (Stretches(space="shared", ranges=ranges),), WRITTEN)
        touched._mark_ranges(wave, (Stretches(space="global", ranges=ranges[1:]),), WRITTEN)
        expected = np.zeros(size, np.uint8)
        expected[8:12], expected[16:24] = READ, READ | WRITTEN
        assert touched.marks.tolist() == expected.tolist()


@pytest.mark.parametrize("place", [0, (1 << 20) - 1, 1 << 20, (5 << 18) + 6])
def test_a_byte_that_changes_unnamed_is_found_wherever_it_is(place: int) -> None:
    then, marks = np.zeros((5 << 18) + 7, np.uint8), np.full((5 << 18) + 7, READ, np.uint8)
    now = then.copy()
    now[place] = 1
    with pytest.raises(RuntimeError, match="no event names"):
        forks.check_marked(now, then, marks)
    marks[place] |= WRITTEN
    forks.check_marked(now, then, marks)
