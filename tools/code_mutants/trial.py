"""Trying a mutant: do its tests fail?

pytest and the libraries are imported once; every trial is a fork of that process with a time limit, so that
its import of warpsim is fresh and cheap. A mutant is killed when a test fails, when nothing can be imported
and when the time is up. One that lives is tried with wider tests.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .mutant import ROOT, Mutant
from .tree import changed

LIMIT = 120.0  # seconds for the tests of a mutant
WIDER_LIMIT = 600.0
_PATIENCE = 3600.0  # for the tests of all mutants on the unchanged copy
_MEMORY = 8 << 30  # bytes that a trial may address
_LIBRARIES = (
    "numpy",
    "ml_dtypes",
    "numba",
    "hypothesis",
    "click",
    "rich.console",
    "_pytest.assertion.rewrite",
)
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
_NOT_FOUND, _NO_TESTS = 4, 5  # pytest's exit codes


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a mutant: the test that killed it (or ``time``, ``a crash``), or nothing; seconds taken.

    ``wider``: it was tried with wider tests, too.
    """

    mutant: Mutant
    killer: str
    seconds: float
    wider: bool = False

    @property
    def killed(self) -> bool:
        """Whether anything noticed."""
        return bool(self.killer)


class _Watcher:
    """A pytest plugin that keeps the first failure."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = f"import of {report.nodeid}"


def warm() -> None:
    """Import what every trial needs and no mutant changes."""
    for name in _LIBRARIES:
        importlib.import_module(name)


def try_mutant(mutant: Mutant, folder: Path, *, wider: bool = True) -> Verdict:
    """Run the mutant's tests in the copy of the checkout, and wider ones if they pass."""
    start = time.perf_counter()
    with changed(folder, mutant):
        killer = run_tests(folder, mutant.tests, LIMIT) if mutant.tests else ""
        widely = not killer and wider
        if widely:
            killer = run_tests(folder, wider_tests(mutant), WIDER_LIMIT)
    return Verdict(mutant=mutant, killer=killer, seconds=time.perf_counter() - start, wider=widely)


def failing(folder: Path, mutants: Iterable[Mutant]) -> list[str]:
    """Return tests of mutants that fail in the copy as it is: nothing can be killed by them."""
    tests = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    wrong = run_tests(folder, tests, _PATIENCE) if tests else ""
    return [wrong] if wrong else []


def wider_tests(mutant: Mutant) -> tuple[str, ...]:
    """Return the files of the mutant's tests, and the folder of tests of its room."""
    files = dict.fromkeys(test.partition("::")[0] for test in mutant.tests)
    room = Path("tests", *Path(mutant.file).parent.parts[1:])
    while not (ROOT / room).is_dir():
        room = room.parent
    return (*files, *((str(room),) if room != Path("tests") else ()))


def run_tests(folder: Path, tests: Iterable[str], limit: float) -> str:
    """Return the first test that fails in the copy, ``time`` if none has by the limit, or nothing.

    Where parameters of a function are no longer called so, all of them are tried.
    """
    try:
        return _run_once(folder, tests, limit)
    except LookupError:
        return _run_once(folder, dict.fromkeys(test.partition("[")[0] for test in tests), limit)


def _run_once(folder: Path, tests: Iterable[str], limit: float) -> str:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        _run(folder, tuple(tests), report)
    ended = _ended(child, limit)
    if ended is None:
        return "time"
    return _outcome(folder, report, ended)


def _outcome(folder: Path, report: Path, status: int) -> str:
    """Return what a trial that has ended says; LookupError for no such tests, ValueError where it was no
    trial.
    """
    if os.WIFSIGNALED(status):
        return "a crash"
    code, failed = json.loads(report.read_text()) if report.exists() else (None, "")
    if code in (_NO_TESTS, _NOT_FOUND) and not failed:
        raise LookupError(f"pytest ends with {code}: {(folder / 'output').read_text()}")
    if code is None or (code and not failed):
        raise ValueError(f"pytest ends with {code}: {(folder / 'output').read_text()}")
    return str(failed)


def _ended(child: int, limit: float) -> int | None:
    """Return the status of a trial that has ended, None at the limit; what it has started is ended too."""
    stop, found, status = time.monotonic() + limit, 0, 0
    while not found and time.monotonic() < stop:
        time.sleep(0.02)
        found, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):  # which is as it should be
        os.killpg(child, signal.SIGKILL)
    if not found:
        os.waitpid(child, 0)
    return status if found else None


def _run(folder: Path, tests: tuple[str, ...], report: Path) -> None:
    """In the fork: run tests, write what failed, and end."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        os.chdir(folder)
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        _stand_in(folder)
        watcher = _Watcher()
        code = int(pytest.main([*_OPTIONS, "--rootdir", str(folder), *tests], plugins=[watcher]))
        report.write_text(json.dumps([code, watcher.failed]))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _stand_in(folder: Path) -> None:
    """Modules come from the copy and nothing of the checkout, in this process and those that it starts."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tools", "warpsim", "tests")]:
        del sys.modules[name]
    sys.path[:] = [str(folder), *(item for item in sys.path if item and Path(item).resolve() != ROOT)]
    os.environ["PYTHONPATH"] = str(folder)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
