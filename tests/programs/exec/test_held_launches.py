"""Launches of several streams at the same time: bytes, texts, findings and report of one at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warpsim.programs.exec.clients import held_launches
from warpsim.programs.exec.clients.client import Process
from warpsim.programs.exec.clients.client_memory import ClientMemory
from warpsim.programs.exec.clients.held_launches import HeldLaunches, goes_together
from warpsim.programs.exec.graphs import GraphNode, NodeKind
from warpsim.programs.exec.serving.runs import Run
from warpsim.programs.exec.serving.server import Server
from warpsim.programs.exec.settings import Settings
from warpsim.programs.exec.tally import Tally
from warpsim.programs.launch import forks
from warpsim.programs.launch.launch_ahead import LaunchAhead

Ran = tuple[str, dict[str, Any], list[HeldLaunches]]


@pytest.fixture
def ran(
    programs: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """What a program prints, its report without seconds, and what was held of its processes."""
    made = list[HeldLaunches]()
    begin = HeldLaunches.__init__

    def noted(self: HeldLaunches, settings: Settings) -> None:
        begin(self, settings)
        made.append(self)

    monkeypatch.setattr(HeldLaunches, "__init__", noted)

    def run(mode: str, processors: int, worth: float = 1e-9) -> Ran:
        made.clear()
        monkeypatch.setattr(held_launches, "processors", lambda: processors)
        monkeypatch.setattr(held_launches, "WORTH", worth)
        tally = Tally(program="programs", notice=print, progress=print)
        settings = Settings(chip="sm_80", memory_bytes=1 << 24)
        with Server(print) as server:
            code = server.run(Run(settings=settings, tally=tally, trace=print), [str(programs), mode])
        assert code == 0
        report = tally.document()
        for kernel in report["kernels"]:
            del kernel["seconds"]
        return capfd.readouterr().out, report, list(made)

    return run


def test_the_same_as_one_at_a_time(ran: Callable[..., Ran]) -> None:
    """Also where the host waits without a call, which is not to wait for ever."""
    text, report, (held,) = ran("together", 1)
    assert text.splitlines()[:7] == [f"launch {value}" for value in (0, 1, 2, 3, 11, 12, 13)]
    assert text.splitlines()[-1] == "161718 47"
    assert held.most_together == 1
    for processors in (2, 3):
        again, other, (held,) = ran("together", processors)
        assert (again, other) == (text, report)
        assert (held.most_together, held.wasted) == (processors, 0)


def test_launches_that_read_what_others_write(ran: Callable[..., Ran]) -> None:
    """They are executed in their turn, the race is found as before, and then none is held any more."""
    text, report, _ = ran("chained", 1)
    assert [each["kind"] for each in report["findings"]] == ["stream race"]
    again, other, (held,) = ran("chained", 2)
    assert (again, other) == (text, report)
    assert (held.most_together, held.wasted) == (2, 2)


@pytest.mark.parametrize("mode", ["streams", "ordered", "graphs", "threads"])
def test_programs_of_several_streams(ran: Callable[..., Ran], mode: str) -> None:
    text, report, _ = ran(mode, 1)
    again, other, _ = ran(mode, 2)
    assert (again, other) == (text, report)


@pytest.mark.parametrize("name", ["forked", "shared_pages"])
def test_there_is_no_room_for_forks(
    ran: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    expected = ran("together", 1)[:2]

    def fails(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(forks, name, fails)
    assert ran("together", 2)[:2] == expected


def test_forks_that_die(ran: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ran("together", 1)[:2]
    monkeypatch.setattr("warpsim.programs.launch.launch_ahead.check_marked", lambda *_: os._exit(3))
    *found, (held,) = ran("together", 2)
    assert tuple(found) == expected
    assert held.wasted == 2


def test_short_launches_are_not_held(ran: Callable[..., Ran]) -> None:
    _, _, (held,) = ran("together", 2, worth=1.0)
    assert held.most_together == 1


@pytest.mark.parametrize(
    "settings",
    [
        *(Settings(schedule="latest"), Settings(limit=2.0), Settings(compares=True)),
        Settings(scheduler="a cluster"),
    ],
)
def test_settings_under_which_none_is_held(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_launches, "processors", lambda: 2)
    monkeypatch.setattr(held_launches, "WORTH", 0.0)
    work = GraphNode("work", kind=NodeKind.KERNEL, fields=_Launch())
    assert HeldLaunches(Settings()).takes(work)
    assert not HeldLaunches(settings).takes(work)


class _Launch:
    kernel, grid, cooperative = 1, (2, 1, 1), False


def test_what_may_come_between() -> None:
    assert goes_together("cudaLaunchKernel_ptsz")
    assert not goes_together("cudaMemcpy")


def test_errors_of_held_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes behind an error is forgotten, and the rest of an error that ends a call is kept."""
    process = Process(
        os.getpid(), 0, Settings(memory_bytes=1 << 20), Tally(program="p", notice=print, progress=print)
    )
    done = list[str]()

    def do(call: str, pending: Any, ahead: object) -> None:
        done.append(call)

    for call in "abc":
        process.together.add(call, object())  # type: ignore[arg-type]
    monkeypatch.setattr(held_launches, "processors", lambda: 1)
    process.together.do(lambda request: None, do, lambda: len(done) == 2)  # type: ignore[arg-type, return-value]
    assert done == ["a", "b"]
    assert not process.together
    process.close()


def test_forks_have_memory_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although its file is shared, and the other process writes to it before they have a copy."""
    fork = forks.forked

    def late() -> int:
        process = fork()
        if process == 0:
            time.sleep(0.2)
        return process

    monkeypatch.setattr(forks, "forked", late)
    memory = ClientMemory(1 << 16)
    memory.host_allocate(256, "bytes")
    memory.data[0] = 5
    ahead = LaunchAhead(memory, lambda observer: int(memory.data[0]))
    memory.data[0] = 6
    assert ahead.take() == 5
    assert memory.data[0] == 6
    memory.close()
