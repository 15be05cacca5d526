"""SIGINT, SIGTERM and SIGHUP, whenever they come: each ends a command with its exit code, as shells have it.

An exception that a handler raises may get lost: where code that is compiled or imported calls back, Python
prints it and goes on, or raises another. Until the command has ended, it is therefore raised again and again,
and however the command ends, its exit code is that of the signal.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED = 130  # as shells have it: 128 and the number of the signal
_SIGNALLED = 128
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_AGAIN = 1.0  # seconds after which an interrupt that got lost is raised again: more than tidying up takes


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGINT and SystemExit for SIGTERM and SIGHUP, until they leave the block.

    However the block ends after a signal, it raises what the signal raises: the exception may have got lost,
    or have become another. SIGHUP that is ignored, as under nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = _Interrupts()
    before = {number: signal.signal(number, handle) for number, handle in interrupts.handlers.items()}
    unraisable, sys.unraisablehook = sys.unraisablehook, interrupts.unraisable
    try:
        yield
    except BaseException:
        if interrupts.came:
            raise interrupts.error() from None
        raise
    finally:
        interrupts.end()
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler)
    if interrupts.came:
        raise interrupts.error()


class _Interrupts:
    """The handlers of a block; ``came`` is the number of the latest signal, 0 where there was none."""

    def __init__(self) -> None:
        self.came = 0
        ignored = {each for each in _ENDING[2:] if signal.getsignal(each) is signal.SIG_IGN}
        self.handlers: dict[int, Any] = {each: self._interrupt for each in _ENDING if each not in ignored}
        self._repeats = hasattr(signal, "setitimer")
        if self._repeats:
            self.handlers[signal.SIGALRM] = self._interrupt
        self._shown = sys.unraisablehook

    def _interrupt(self, number: int, frame: object) -> NoReturn:
        if number in _ENDING:
            self.came = number
        if self._repeats:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        raise self.error()

    def error(self) -> BaseException:
        """Return what the latest signal raises."""
        if self.came in (0, signal.SIGINT):
            return KeyboardInterrupt()
        return SystemExit(_SIGNALLED + self.came)

    def unraisable(self, problem: Any) -> None:
        """Pass over an interrupt where nothing can be raised: it comes again."""
        if not (self.came and issubclass(problem.exc_type, (KeyboardInterrupt, SystemExit))):
            self._shown(problem)

    def end(self) -> None:
        """Raise no interrupt again."""
        if self._repeats and self.came:
            signal.setitimer(signal.ITIMER_REAL, 0)
