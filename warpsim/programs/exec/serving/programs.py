"""A program of the user as a client: its environment, its start, and its end.

Knows processes; does not know what their calls do.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..client_python import TORCH_ON_CPU
from ..libraries import FOR_PYTHON, JIT_LINKERS, RUNTIMES, TRITON_PTXAS, HostError, libraries
from ..processes import alive, descendants, runs_python, why_unfit

SOCKET = "WARPSIM_EXEC_SOCKET"
OVERDUE = 124  # the exit code of a program that took too long, as timeout(1) has it
_GRACE, _PAUSE = 2.0, 0.02  # seconds that programs have to leave after a signal, and between looks


def run_program(
    command: Sequence[str],
    socket: Path,
    *,
    quiet: bool = False,
    limit: float | None = None,
    torch_on_cpu: bool = False,
) -> int:
    """Run a program to its end; return its exit code, 128 and the number of a signal that ended it.

    What a ``quiet`` program prints is not shown. After ``limit`` seconds it is ended with all that it has
    started, and the code is OVERDUE. ``torch_on_cpu`` has the CPU compute PyTorch's operators.

    Raises HostError where there is no such program, or it cannot be a client.
    """
    unfit = why_unfit(command[0])
    if unfit is not None:
        raise HostError(f"{command[0]}: {unfit}")
    try:
        out = subprocess.DEVNULL if quiet else None
        environment = _environment(command, socket, torch_on_cpu)
        child = subprocess.Popen(list(command), env=environment, stdout=out, stderr=out)
    except OSError as error:
        raise HostError(f"{command[0]}: {error.strerror or error}") from None
    try:
        code = child.wait(limit)
    except subprocess.TimeoutExpired:
        _end(child)
        return OVERDUE
    except BaseException:
        _end(child)
        raise
    return code if code >= 0 else 128 - code


def _environment(command: Sequence[str], socket: Path, torch_on_cpu: bool) -> dict[str, str]:
    """Return the environment of a client."""
    folder = libraries()
    switches = {TORCH_ON_CPU: "1"} if torch_on_cpu else {}
    own = {SOCKET: str(socket), "LD_LIBRARY_PATH": _join_paths([str(folder)], "LD_LIBRARY_PATH")}
    own["PYTHONPATH"] = _join_paths([str(folder / FOR_PYTHON)], "PYTHONPATH")
    if runs_python(command[0]):
        own["LD_PRELOAD"] = _join_paths(
            [str(folder / name) for name in (*RUNTIMES, *JIT_LINKERS)], "LD_PRELOAD"
        )
    return {**_for_triton(folder), **os.environ, **own, **switches}


def _join_paths(paths: Sequence[str], name: str) -> str:
    """Return paths, and behind them what a variable has."""
    return os.pathsep.join([*paths, *filter(None, [os.environ.get(name)])])


def _for_triton(folder: Path) -> dict[str, str]:
    """Return what lets Triton keep PTX, in a cache of its own."""
    ptxas = str(folder / TRITON_PTXAS)
    return {
        "TRITON_PTXAS_PATH": ptxas,
        "TRITON_PTXAS_BLACKWELL_PATH": ptxas,
        "TRITON_LIBCUDA_PATH": str(folder),
        "TRITON_CACHE_DIR": str(folder.parent / "triton"),
    }


@contextmanager
def ignore_signals() -> Iterator[None]:
    """Ignore signals that end this process, in a block of code that ends others."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ending}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@ignore_signals()
def _end(child: subprocess.Popen[bytes]) -> None:
    """End a program that still runs, and what it has started, as Ctrl-C does; by force in the end."""
    started = {child.pid, *descendants(child.pid)}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        for process in _running_processes(child, started):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        past = time.monotonic() + _GRACE
        while any(_running_processes(child, started)):
            if time.monotonic() > past:
                break
            time.sleep(_PAUSE)
        else:
            return


def _running_processes(child: subprocess.Popen[bytes], started: set[int]) -> Iterator[int]:
    """Yield the processes that have not ended."""
    child.poll()
    started.update(descendants(child.pid))
    yield from (process for process in sorted(started) if alive(process))
