"""A case in a process of its own: whether what came of it is a result or an error as users are promised.

The process is a fork of one that has imported everything, and is killed after 20 seconds of computing. Its
peak memory counts from what the fork began with.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from .case import Case
from .peer import peers

SECONDS = 20  # of computing, so that a busy machine finds no more than an idle one
WAITING = 120.0  # seconds on the clock, for what waits and does not compute
BYTES = 1 << 30
PROMISED = range(5)  # exit codes; 5 and more are no answers
SHORT = "20000"  # statements of a launch that took too long, when it is tried again
_SHOWN = 1500  # characters of what was said that a verdict keeps


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is wrong with what came of a case, empty if nothing is; and what it said."""

    problem: str
    code: int
    seconds: float
    said: str


def try_case(case: Case, seconds: int | None = None) -> Verdict:
    """Run a case in a folder of its own; ``seconds`` is another limit, for what has to be compiled first."""
    limit = SECONDS if seconds is None else seconds
    verdict = _tried(case, limit)
    if verdict.code == -signal.SIGKILL and case.command[:1] == ("launch",) and "--limit" not in case.command:
        # A kernel may well go on for ever, or on two thousand million CTAs: so far it has to come in time.
        verdict = _tried(replace(case, command=(*case.command, "--limit", SHORT)), limit)
    return verdict


def _tried(case: Case, limit: int) -> Verdict:
    """Return what came of a case in so many seconds of computing."""
    with TemporaryDirectory() as name, peers(case) as case:
        folder, said = Path(name) / "work", Path(name) / "said"
        folder.mkdir()
        case.write(folder)
        (Path(name) / "stdin").write_bytes(case.stdin)
        silent = [
            os.open(folder / file, os.O_RDWR) for file, kind in case.places.items() if kind == "silent pipe"
        ]
        start = time.monotonic()
        before = _resident()
        code, peak = _waited(_forked(case, folder, said, limit), start + max(WAITING, limit))
        took = time.monotonic() - start
        for descriptor in silent:
            os.close(descriptor)
        text = said.read_bytes().decode("utf-8", "replace") if said.exists() else ""
        problem = _problem(case, folder, code, peak - before, text)
    return Verdict(problem=problem, code=code, seconds=took, said=text[-_SHOWN:])


def _forked(case: Case, folder: Path, said: Path, limit: int) -> int:
    """Return the number of the process that runs a case."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        output = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(folder.parent / "stdin", os.O_RDONLY), 0)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        os.chdir(folder)
        code = _run(case)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _run(case: Case) -> int:
    from warpsim.show.cli import main

    try:
        main([os.fsdecode(os.fsencode(word)) for word in case.command])
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 0 if left.code is None else 98
    except BaseException:
        import traceback

        traceback.print_exc()
        return 97
    return 0


def _resident() -> int:
    """Return bytes of memory that this process has now, with which its forks begin; 0 where the system
    hides it.
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _waited(child: int, stop: float) -> tuple[int, int]:
    """Exit code (negative: the signal) and peak memory in bytes."""
    pause = 0.001
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss << 10
        if time.monotonic() > stop:
            os.kill(child, signal.SIGKILL)
            os.wait4(child, 0)
            return -signal.SIGKILL, 0
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _problem(case: Case, folder: Path, code: int, grown: int, said: str) -> str:
    if code == -signal.SIGKILL:
        return f"takes more than {SECONDS} s of computing, or {WAITING:g} s"
    if code not in PROMISED:
        return f"exit code {code}"
    if "Traceback (most recent call last)" in said:
        return "traceback"
    if grown > BYTES:
        return f"takes {grown:,} bytes"
    if code in (2, 3) and not said.strip():
        return f"exit code {code}, and not a word"
    if left := [path.name for path in folder.iterdir() if path.name.endswith(".partial")]:
        return f"leaves {left[0]}"
    changed = [name for name, content in case.files.items() if (folder / name).read_bytes() != content]
    return f"changes its input {changed[0]}" if changed else ""
