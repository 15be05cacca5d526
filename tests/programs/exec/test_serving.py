"""What ``warpsim exec`` serves: folders of programs, a server that stays, programs that never end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from warpsim.programs.exec.clients.client_modules import ModulePool
from warpsim.programs.exec.deadlines import Deadline
from warpsim.programs.exec.error_codes import CudaError
from warpsim.programs.exec.libraries import HostError
from warpsim.programs.exec.messages import Gone
from warpsim.programs.exec.processes import ancestors, descendants, why_unfit
from warpsim.programs.exec.serving.remote import Remote, prepared
from warpsim.programs.exec.serving.server import Server
from warpsim.programs.exec.serving.suites import programs_of
from warpsim.programs.exec.settings import Settings, settings_of
from warpsim.programs.exec.tally import Finding, Tally
from warpsim.show.cli.exec import exec as verb

Run = Callable[..., Any]
ROOT = Path(__file__).parents[3]
MODULE = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n"
AARCH64 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(44)


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


# --- a folder of programs --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def suite(run: Run, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Programs that are right, crash, race, never end or cannot start, and files that are not programs."""
    folder = tmp_path_factory.mktemp("suite")
    for name, mode in {"right": "managed", "race": "race", "endless": "limit"}.items():
        script(folder / name, f'exec {programs} {mode} "$@"')
    script(folder / "crash", "kill -SEGV $$")
    (folder / "arm").write_bytes(AARCH64)
    (folder / "library.so.3").write_bytes(b"")
    for name in ("arm", "library.so.3"):
        (folder / name).chmod(0o755)
    (folder / "notes.txt").write_text("no program")
    (folder / "data").mkdir()
    return run(options=("--program-limit", "2", "--error-exitcode", "9"), command=(str(folder), "tensor"))


def test_every_program_of_a_folder_runs(suite: Any) -> None:
    found = {each["program"]: (each["exit_code"], len(each["kernels"])) for each in suite.report["programs"]}
    assert found == {"arm": (126, 0), "crash": (139, 0), "endless": (124, 0), "race": (0, 2), "right": (0, 2)}
    assert (suite.code, suite.report["exit_code"]) == (1, 1)
    assert sorted(suite.stdout.splitlines()) == ["7 38 -1 131 31", "products right", "products right"]


def test_findings_belong_to_their_program(suite: Any) -> None:
    kinds = {each["program"]: [one["kind"] for one in each["findings"]] for each in suite.report["programs"]}
    assert kinds == {"arm": [], "crash": [], "endless": [], "race": ["race"], "right": []}


def test_a_folder_has_one_summary(suite: Any) -> None:
    lines = suite.stderr.splitlines()
    first = lines.index("warpsim exec: 5 programs on sm_80, 3 failed")
    cells = [line.split() for line in lines[first + 1 :]]
    assert cells[0] == ["program", "exit", "code", "launches", "errors", "warnings", "seconds"]
    assert [row[:-1] for row in cells[1:]] == [
        ["arm", "not", "started", "0", "0", "0"],
        ["crash", "139", "(SIGSEGV)", "0", "0", "0"],
        ["endless", "124", "(took", "too", "long)", "0", "0", "0"],
        ["race", "0", "2", "1", "0"],
        ["right", "0", "3", "0", "0"],
    ]
    assert "arm: it is a program for aarch64, and this machine is x86-64" in suite.stderr


def test_what_a_program_that_has_left_launched_is_stopped(suite: Any) -> None:
    assert "endless(int volatile*) was stopped: its program has left" in suite.stderr


def test_findings_of_a_folder_give_the_exit_code(run: Run, programs: Path, tmp_path: Path) -> None:
    script(tmp_path / "order", f"exec {programs} order")
    done = run(options=("--error-exitcode", "9", "--schedules", "2"), command=(str(tmp_path),))
    assert done.code == 9
    (program,) = done.report["programs"]
    assert [finding["kind"] for finding in program["findings"]] == ["schedule"]


def test_which_files_are_programs(tmp_path: Path) -> None:
    for name in ("b", "a", "c.so", "d.so.1.2", "e.sow"):
        script(tmp_path / name, "")
    (tmp_path / "plain").write_text("")
    assert [path.name for path in programs_of(tmp_path)] == ["a", "b", "e.sow"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(HostError, match="has no executable files"):
        programs_of(tmp_path / "empty")


# --- a server that stays ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("s") / "server"
    command = [sys.executable, "-m", "warpsim", "exec", "--serve", "--server", str(folder)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert b"serves in" in process.stderr.readline()
    yield folder
    process.stderr.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143
    assert not list(folder.iterdir())


def comparable(report: dict[str, Any]) -> dict[str, Any]:
    kernels = [{**each, "seconds": 0} for each in report["kernels"]]
    return {**report, "kernels": sorted(kernels, key=str)}


def test_a_server_elsewhere_reports_the_same(run: Run, server: Path) -> None:
    """Also the second time, when the server has the modules of the first."""
    modes = ("managed", "race", "streams")
    here = run(*modes)
    connected = ("--connect", "--server", str(server))
    for _ in range(2):
        done = run(*modes, options=connected)
        assert comparable(done.report) == comparable(here.report)
        assert (done.code, done.stdout) == (here.code, here.stdout)


def test_settings_are_those_of_each_run(run: Run, server: Path) -> None:
    connected = ("--connect", "--server", str(server))
    done = run("device", options=(*connected, "--chip", "sm_90a", "--trace-calls"))
    assert done.stdout.startswith("1 warpsim sm_90a 9.0")
    assert "cudaGetDeviceCount(" in done.stderr
    done = run("limit", options=(*connected, "--limit", "0.3", "--error-exitcode", "7"))
    assert (done.code, done.stdout) == (7, "702\n")


def test_a_launch_whose_run_is_killed_stops(run: Run, server: Path, programs: Path) -> None:
    """The program itself goes on without a device; the server is free for others."""
    command = [sys.executable, "-m", "warpsim", "exec", "--connect", "--server", str(server), "--quiet"]
    endless = [str(programs), "limit"]
    process = subprocess.Popen(
        [*command, *endless], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )
    past = time.monotonic() + 30
    while not (started := descendants(process.pid)) and time.monotonic() < past:
        time.sleep(0.05)
    time.sleep(0.5)
    assert started
    process.kill()
    assert process.stdout is not None
    with process.stdout as printed:
        assert printed.read() in (b"999\n", b"100\n", b"line 163: cudaErrorUnknown: unknown error\n")
    assert process.wait() == -signal.SIGKILL
    assert run("device", options=("--connect", "--server", str(server))).code == 0


def enter(folder: Path) -> None:
    with prepared(folder):
        pass


def test_folders_of_servers(server: Path, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    with pytest.raises(HostError, match="has mode 755: the folder of a server is yours, and of mode 700"):
        enter(open_to_all)
    with pytest.raises(HostError, match="too long for a socket: at most 107 bytes"):
        enter(tmp_path / ("x" * 100))
    with pytest.raises(HostError, match="too long for a socket"), Remote(tmp_path / ("x" * 100)):
        pass
    with pytest.raises(HostError, match="has a server already"):
        enter(server)
    with prepared(tmp_path / "new") as new:
        assert new.stat().st_mode & 0o777 == 0o700
        with pytest.raises(HostError, match="has a server already"):  # of two that start together
            enter(new)
    enter(new)


def test_there_is_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpsim.programs.exec.serving.remote._PATIENCE", 0.1)
    with (
        pytest.raises(HostError, match=r"there is no server in .*: start it by warpsim exec --serve"),
        Remote(tmp_path),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "a program is missing, or a folder of programs"),
        (("--serve", "./program"), "--serve goes with --server alone"),
        (("--serve", "--chip", "sm_80"), "--serve goes with --server alone"),
        (("--server", "x", "./program"), "--server goes with --serve or --connect"),
        (("--connect", "--break", "x.cu:1", "./program"), "go with one program, without --connect"),
        (("--break", "x.cu:1", "."), "go with one program, without --connect"),
        (("--schedule", "often", "./program"), "expected 'program', 'earliest', 'latest'"),
        (("--program-limit", "0", "./program"), "0.0 is not in the range"),
    ],
)
def test_usage(options: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(verb, list(options))
    assert done.exit_code == 2
    assert message in done.output


def test_a_launch_that_takes_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 5, 10 and 20 s, and no more once it has ended."""
    now = [100.0]
    monkeypatch.setattr("warpsim.programs.exec.deadlines.time.monotonic", lambda: now[0])
    said = list[str | None]()
    with Deadline(None, f"gemm{'_' * 60}") as deadline:
        for now[0] in (104.9, 105, 105.5, 111, 112, 121):
            said.append(deadline.progress())
    now[0] = 200
    assert [*filter(None, said)] == [f"gemm{'_' * 53}... has run for {seconds} s" for seconds in (5, 11, 21)]
    assert deadline.progress() is None


@pytest.mark.parametrize("becomes", ["another error", "nothing"])
def test_a_stop_is_not_lost(becomes: str) -> None:
    """Code that is compiled meanwhile makes an error of its own of it, or passes over it."""

    def stopped(deadline: Deadline) -> None:
        try:
            deadline.stop(Gone)
            for _ in range(1000):
                pass
        except Gone:
            if becomes == "another error":
                raise ValueError from None

    with pytest.raises(Gone), Deadline(None) as deadline:
        stopped(deadline)
    assert deadline.stopped


# --- parts -----------------------------------------------------------------------------------------


def test_settings_pass_as_documents() -> None:
    settings = Settings(chip="sm_80", checks="off", limit=2.5, compares=True, memory_bytes=1 << 20)
    assert settings_of(json.loads(json.dumps(settings.document()))).document() == settings.document()
    for wrong in ({"chip": "sm_1"}, {"limit": "2"}, {"looking": 1}, {"memory_bytes": True}):
        with pytest.raises(ValueError, match=r"is not a (chip|setting)"):
            settings_of(wrong)


def test_a_tally_passes_as_a_document() -> None:
    said = list[str]()
    tally = Tally(program="p", notice=said.append, progress=said.append)
    for _ in range(3):
        tally.add(Finding(kind="race", severity="error", message="m", text="t", kernel="k", place="3"))
    tally.lacking("cudaNothing")
    tally.calls.update(["a", "a", "b"])
    tally.copies.add("cudaMemcpy", np.array([1, 255], np.uint8), 0)
    other = Tally(program="p", notice=said.append, progress=said.append)
    other.take(json.loads(json.dumps(tally.whole_document())))
    assert other.whole_document() == tally.whole_document()
    assert (other.times, other.copies.made, other.errors) == (tally.times, tally.copies.made, 1)


def test_modules_that_are_idle_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ModulePool()
    text = (MODULE, "PTX of p", "sm_80")
    first, second = pool.take(text), pool.take(text)
    assert first is not second, "each image has variables of its own"
    pool.give_back(first)
    assert pool.take((MODULE, "PTX of p", "sm_90")) is not first
    assert pool.take(text) is first
    monkeypatch.setattr("warpsim.programs.exec.clients.client_modules._MOST_LETTERS", len(MODULE))
    pool.give_back(first)
    pool.give_back(pool.take((MODULE, "PTX of q", "sm_80")))
    assert pool.take(text) is not first, "what has been idle for the longest time has gone"
    with pytest.raises(CudaError, match="InvalidPtx"):
        pool.take((MODULE.replace(".target", ".goal"), "", "sm_80"))


def test_programs_that_cannot_be_clients(tmp_path: Path) -> None:
    loader = b"/lib/ld-musl-x86_64.so.1\0"
    head = bytearray(AARCH64[:18] + b"\x3e\x00" + bytes(44))
    head[32], head[54], head[56] = 64, 56, 1
    segment = b"\x03\0\0\0\0\0\0\0" + (120).to_bytes(8, "little") + bytes(40)
    musl, arm = tmp_path / "musl", tmp_path / "arm"
    musl.write_bytes(bytes(head) + segment + loader)
    arm.write_bytes(AARCH64)
    for path in (musl, arm):
        path.chmod(0o755)
    assert "it is linked with musl" in str(why_unfit(str(musl)))
    assert "it is a program for aarch64" in str(why_unfit(str(arm)))
    musl.write_bytes(bytes(head)[:60])
    assert [why_unfit(each) for each in (str(musl), "sh", sys.executable, "absent")] == [None] * 4


def test_ancestors_and_descendants() -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 9 & wait"])
    try:
        past = time.monotonic() + 10
        while len(below := descendants(child.pid)) < 1 and time.monotonic() < past:
            time.sleep(0.01)
        (sleeper,) = below
        assert list(ancestors(sleeper))[:3] == [sleeper, child.pid, os.getpid()]
        assert below | {child.pid} <= descendants(os.getpid())
    finally:
        os.kill(sleeper, signal.SIGKILL)
        child.wait()
    assert list(ancestors(child.pid)) == [child.pid]


def test_a_server_that_ends_leaves_no_thread() -> None:
    """The thread that accepts visitors slept for ever: after 20,000 servers none could be started."""
    before = set(threading.enumerate())
    with Server(print):
        started = set(threading.enumerate()) - before
    assert started
    for thread in started:
        thread.join(10)
    assert not [thread for thread in started if thread.is_alive()]
