"""The time that a launch may take: another thread stops it.

Knows threads; does not know launches.
"""

from __future__ import annotations

import ctypes
import threading
import time
from types import TracebackType

from ...base.errors import Stopped, WarpsimError

_PATIENCE = 5.0  # seconds without a word
_LONGEST = 60  # characters of a kernel's name


def shortened(name: str) -> str:
    """Return a kernel's name as lines of progress have it."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


class LaunchTimeout(Stopped):
    """A launch was stopped, since it took longer than it may."""

    def __init__(self) -> None:
        super().__init__("the launch takes longer than --limit allows; it was stopped at this statement")


class Deadline:
    """A block that ends with LaunchTimeout after some seconds, or when another thread stops it.

    ``label`` names the launch.
    """

    def __init__(self, seconds: float | None, label: str = "") -> None:
        self.label = label
        self._start = time.monotonic()
        self._due = _PATIENCE
        self._thread = threading.get_ident()
        self._over = threading.Lock()
        self._ended = False
        self._raised: type[Exception] | None = None
        self._timer = None if seconds is None else threading.Timer(seconds, self.stop, (LaunchTimeout,))

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
            if self._raised is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), None)
        if self._timer is not None:
            self._timer.cancel()
        if self._raised is not None and not (kind and issubclass(kind, (self._raised, WarpsimError))):
            raise self._raised() from None  # a compiler that was stopped raises an error of its own, or none

    @property
    def stopped(self) -> bool:
        """Whether another thread has stopped the block."""
        return self._raised is not None

    def progress(self) -> str | None:
        """Return how long the launch has run where that is due: after 5 s, 10 s, 20 s, and so on."""
        seconds = time.monotonic() - self._start
        if self._ended or seconds < self._due:
            return None
        self._due *= 2
        return f"{shortened(self.label)} has run for {seconds:.0f} s"

    def stop(self, error: type[Exception]) -> None:
        """Raise an error in the thread of the launch, once."""
        with self._over:
            if not self._ended:
                self._ended, self._raised = True, error
                thread, raised = ctypes.c_ulong(self._thread), ctypes.py_object(error)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, raised)
