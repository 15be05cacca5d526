"""Checkpoints: going back from them shows what going back from the beginning shows."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic, sleep

import numpy as np
import pytest

import warpsim
from tests.show.debugger.small_kernel import TEXT
from warpsim.show.debugger import Session
from warpsim.workbench.debugger import checkpoints

ROUNDS = 60  # of a loop of four statements
PATIENCE = 60.0  # seconds


def loop_session() -> Session:
    """The small kernel with a long loop, 64 threads."""
    kernel = warpsim.load(TEXT)["k"]
    return Session(kernel, 1, 64, [np.zeros(64, np.float32), np.uint32(ROUNDS)])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session that makes checkpoints on every way."""
    monkeypatch.setattr(checkpoints, "SLOW", 0.0)
    with loop_session() as found:
        yield found


@pytest.fixture
def plain() -> Iterator[Session]:
    """A session that makes none."""
    with loop_session() as found:
        found.checkpoints.close()
        yield found


def settled(session: Session) -> list[int]:
    """The checkpoints, when all are made."""
    end = monotonic() + PATIENCE
    while session.checkpoints.is_working and monotonic() < end:
        sleep(0.01)
    assert not session.checkpoints.is_working
    return session.checkpoints.positions


def test_states_are_those_of_an_execution_from_the_beginning(quick: Session, plain: Session) -> None:
    for each in (quick, plain):
        each.do("run")
    used = 0
    for command in (
        "reverse-stepi",
        "reverse-stepi",
        "reverse-step 4",
        "goto 200",
        "goto 150",
        "reverse-next",
    ):
        before = settled(quick)
        assert quick.do(command) == plain.do(command)
        assert quick.do("info locals") == plain.do("info locals")
        assert quick.do("info warps") == plain.do("info warps")
        used += any(place <= quick.time for place in before)
    assert used >= 4
    assert not plain.checkpoints.positions
    assert quick.do("run") == plain.do("run")


def test_only_the_rest_of_the_way_is_executed(quick: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    quick.do("run")
    quick.do("goto 240")
    places = settled(quick)
    assert places == [176, 224]
    assert "  checkpoints at 176, 224" in quick.do("info time")
    monkeypatch.setattr(quick, "begin", lambda: pytest.fail("the launch was begun again"))
    quick.do("goto 230")
    assert quick.time == 230
    assert 224 not in quick.checkpoints.positions  # it has become the execution
    settled(quick)
    quick.do("reverse-stepi 3")
    assert quick.time < 230


def test_the_last_write_is_found_behind_a_checkpoint_and_before_all(quick: Session, plain: Session) -> None:
    for each in (quick, plain):
        each.do("goto 120")
        each.do("watch %r3 if %r3 > 100")
        each.do("watch %p2")
    settled(quick)
    for _ in range(3):
        assert quick.do("reverse-continue") == plain.do("reverse-continue")
        settled(quick)
    assert quick.do("reverse-continue 100") == plain.do("reverse-continue 100")


def test_sessions_end_while_checkpoints_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SLOW", 0.0)
    with loop_session() as session:
        session.do("run")
        session.do("reverse-stepi")
    assert session.checkpoints.positions == []
    assert not session.checkpoints.is_working


def test_buffers_have_one_execution_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SLOW", 0.0)
    device = warpsim.Device("sm_80")
    given = device.array(np.zeros(64, np.float32))
    with Session(warpsim.load(TEXT)["k"], 1, 64, [given, np.uint32(ROUNDS)]) as session:
        session.do("run")
        session.do("reverse-stepi")
        assert settled(session) == []
    assert not given.get().any()


def test_a_temporary_breakpoint_stops_backwards_once(plain: Session) -> None:
    plain.do("run")
    plain.do("tbreak mnemonic bar.sync")
    assert plain.do("reverse-continue").startswith("temporary breakpoint 1")
    assert plain.breakpoints == []
