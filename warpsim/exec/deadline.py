"""The time that a launch may take, and what is said while it runs.

Knows seconds; does not know kernels. A launch that is over its time ends with an error that names the
statement it was at, as a watchdog of a display ends it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from types import TracebackType

from ..errors import Deadlock

_PATIENCE = 5.0  # seconds without a word
Say = Callable[[str], object]


class LaunchTimeout(Deadlock):
    """A launch was stopped, since it took longer than it may."""

    def __init__(self) -> None:
        super().__init__("the launch takes longer than --limit allows; it was stopped at this statement")


class Deadline:
    """A block that ends with LaunchTimeout after some seconds; without ``seconds`` it has no end."""

    def __init__(self, seconds: float | None) -> None:
        self._thread = threading.get_ident()
        self._over = threading.Lock()
        self._ended = False
        self._timer = None if seconds is None else threading.Timer(seconds, self._stop)

    def __enter__(self) -> Deadline:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._over:
            self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    def _stop(self) -> None:
        """Raise LaunchTimeout in the thread of the launch."""
        with self._over:
            if not self._ended:
                thread, raised = ctypes.c_ulong(self._thread), ctypes.py_object(LaunchTimeout)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, raised)


def progress(kernel: str, say: Say) -> Callable[[int, int], None]:
    """Return what takes the CTAs done and their total, and says after a while how long it will take."""
    start = time.monotonic()
    due = start + _PATIENCE

    def watch(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due and done < total:
            due = now + _PATIENCE
            left = (now - start) / max(done, 1) * (total - done)
            say(f"{kernel}: {done} of {total} CTAs, about {left:.0f} s left")

    return watch
