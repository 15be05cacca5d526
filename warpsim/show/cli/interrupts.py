"""Ctrl-C and SIGTERM, whenever they come: what ends a command, and with which exit code.

An exception that a handler raises may get lost: where code that is compiled or imported calls back, Python
prints it and goes on. Until the command has ended, it is therefore raised again and again.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED = 130  # as shells have it: 128 and the number of the signal
TERMINATED = 143
_AGAIN = 1.0  # seconds after which an interrupt that got lost is raised again: more than tidying up takes


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGINT and SystemExit for SIGTERM in the block, until they leave it.

    A block that ends otherwise although an interrupt came, which got lost, raises KeyboardInterrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = _Interrupts()
    before = {number: signal.signal(number, handle) for number, handle in interrupts.handlers.items()}
    unraisable, sys.unraisablehook = sys.unraisablehook, interrupts.unraisable
    try:
        yield
    except BaseException as error:
        if interrupts.came and not isinstance(error, SystemExit):
            raise KeyboardInterrupt from None  # class statements make a RuntimeError of it
        raise
    finally:
        interrupts.end()
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler)
    if interrupts.came:
        raise KeyboardInterrupt


class _Interrupts:
    """The handlers of a block; ``came`` says that there was an interrupt."""

    def __init__(self) -> None:
        self.came = False
        self.handlers: dict[signal.Signals, Any] = {
            signal.SIGINT: self._interrupt,
            signal.SIGTERM: _terminate,
        }
        self._repeats = hasattr(signal, "setitimer")
        if self._repeats:
            self.handlers[signal.SIGALRM] = self._interrupt
        self._shown = sys.unraisablehook

    def _interrupt(self, number: int, frame: object) -> NoReturn:
        self.came = True
        if self._repeats:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        raise KeyboardInterrupt

    def unraisable(self, problem: Any) -> None:
        """Pass over an interrupt where nothing can be raised: it comes again."""
        if not issubclass(problem.exc_type, KeyboardInterrupt):
            self._shown(problem)

    def end(self) -> None:
        """Raise no interrupt again."""
        if self._repeats and self.came:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _terminate(number: int, frame: object) -> NoReturn:
    raise SystemExit(TERMINATED)
