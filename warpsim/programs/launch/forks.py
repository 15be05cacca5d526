"""Forks of this process: each executes something on memory as it is now, and answers with what came of it.

Arrays come back in memory that both processes share, which has no name and goes with them; anything else
through a pipe. A fork that fails or dies answers nothing.

Knows processes, pipes and pages; does not know what is executed.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import pickle
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...machine.state.spaces import Bytes
from .touched_bytes import PAGE, WRITTEN

_BLOCK = 1 << 20  # bytes that are compared at a time: they stay in the cache
_NORESERVE = 0x4000  # of Linux; from Python 3.13 on in mmap
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG of Linux
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGHUP", None)]))
_LOOK = 0.5  # seconds between looks whether the answer is still waited for
_ROOM = 0.5  # of the memory that is available, for what forks write


class _OtherThreads(threading.local):
    """Whether a fork may lack the threads that this process has besides the own thread."""

    idle = False


_OTHERS = _OtherThreads()


@contextmanager
def idle_threads() -> Iterator[None]:
    """Say for a block of code that all other threads wait, and hold no lock that a fork needs."""
    before, _OTHERS.idle = _OTHERS.idle, True
    try:
        yield
    finally:
        _OTHERS.idle = before


def why_no_forks() -> str:
    """Return why this process cannot have forks; "" where it can."""
    if not hasattr(os, "fork") or sys.platform != "linux":
        return "only Linux has helpers"
    if threading.active_count() > 1 and not _OTHERS.idle:
        return "this process has other threads, which a helper would lack"
    return ""


def processors() -> int:
    """Return the processors that this process may use."""
    return len(os.sched_getaffinity(0))


def room_for(size: int, most: int) -> int:
    """Return how many processes have room for their copies of a memory of ``size`` bytes, at most some."""
    try:
        pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return most
    each = max(size, 1) * 3  # its copy, marks, and what comes back
    return int(min(most, 1 + pages * _ROOM // each))


@dataclass(frozen=True, kw_only=True)
class Fork:
    """A process that was begun; ``answer`` is a pipe, ``pages`` the memory that both share."""

    process: int
    answer: int
    pages: mmap.mmap

    def wait(self, seconds: float) -> Any:
        """Return what the fork has returned; None where it has failed, died, or takes longer."""
        end, parts = time.monotonic() + seconds, list[bytes]()
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.answer], [], [], min(left, _LOOK))[0]:
                continue
            part = os.read(self.answer, 1 << 16)
            if not part:
                content = b"".join(parts)
                return pickle.loads(content) if content.endswith(b".") else None
            parts.append(part)
        return None

    def end(self) -> None:
        """End the process and everything that it holds."""
        os.close(self.answer)
        try:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def begun(execute: Callable[[mmap.mmap], object], size: int) -> Fork | None:
    """Begin a fork that executes a function, which is given ``size`` bytes that both share.

    Returns None where the system has no room for it. What the function returns is to have a pickle.
    """
    try:
        pages = shared_pages(size)
    except (OSError, ValueError):
        return None
    answer, answering = os.pipe()
    try:
        process = forked()
    except OSError:
        os.close(answer)
        os.close(answering)
        return None
    if process == 0:
        _work(lambda: execute(pages), answering)
    os.close(answering)
    return Fork(process=process, answer=answer, pages=pages)


def forked() -> int:
    """Fork; native threads, which libraries stop and start by themselves, are not a reason for a warning.

    No signal interrupts the fork: SIGINT is ignored there, other signals end it at once.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process == 0:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
        return process
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def shared_pages(size: int) -> mmap.mmap:
    """Return room for so many bytes, which takes no memory before it is used."""
    return mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NORESERVE)


def _work(execute: Callable[[], object], answering: int) -> None:
    """Execute in a fork, answer, and leave; an error is found again where it counts."""
    try:
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
        gc.freeze()
        content = pickle.dumps(execute())
        while content:
            content = content[os.write(answering, content) :]
    except BaseException:  # whatever it was, this is executed again
        os._exit(1)
    os._exit(0)


class Cursor:
    """A place in shared bytes, where arrays are put behind each other."""

    def __init__(self, room: Bytes) -> None:
        self._room = room
        self._place = 0

    def put(self, array: npt.NDArray[Any]) -> None:
        """Copy an array there."""
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._room[self._place : self._place + content.size] = content
        self._place += content.size

    def take(self, dtype: Any, count: int) -> npt.NDArray[Any]:
        """Return the next array, a view."""
        size = count * np.dtype(dtype).itemsize
        self._place += size
        return self._room[self._place - size : self._place].view(dtype)

    def pages(self, dtype: Any, count: int, width: int = PAGE) -> npt.NDArray[Any]:
        """Return the next pages of ``width`` elements, by default an element for each byte."""
        return self.take(dtype, count * width).reshape(count, width)


def check_marked(now: Bytes, then: Bytes, marks: Bytes) -> None:
    """Check that all bytes that have changed are marked as written. Raises RuntimeError."""
    for first in range(0, now.size, _BLOCK):
        part = slice(first, first + _BLOCK)
        if ((now[part] != then[part]) & (marks[part] & WRITTEN == 0)).any():
            raise RuntimeError("bytes have changed that no event names")
