"""Checkpoints: executions that wait at earlier positions, so that going back need not begin at the beginning.

A machine cannot be copied while it runs, as threads, closures and observers belong to it. A checkpoint is
another execution of the same launch, which a thread takes to its position while the session stands, and which
waits there until the session goes back behind it. It is used up then. They are made where the way from the
beginning takes long, near to the session and farther away. Knows positions; does not know why it moves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from ...observe.stops.points import Moment
from .executions import Execution

SLOW = 0.5  # seconds from the beginning to a position, from which on checkpoints are made
_DISTANCES = ((128, 16), (16, 64), (4, 256))  # of checkpoints: a part of the way, and the fewest statements


class Checkpoints:
    """The checkpoints of a session; ``begin`` begins an execution, before its first statement."""

    def __init__(self, begin: Callable[[], Execution]) -> None:
        self._begin = begin
        self._waiting: list[Execution] = []
        self._wanted: list[int] = []  # positions, the next to be made first
        self._worker: threading.Thread | None = None
        self._still = threading.Event()  # the session stands
        self._still.set()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def is_working(self) -> bool:
        """Whether checkpoints are being made."""
        return self._worker is not None

    @property
    def positions(self) -> list[int]:
        """Where the checkpoints are that can be used now."""
        with self._lock:
            return sorted(execution.time for execution in self._waiting)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Make nothing while the session moves."""
        self._still.clear()
        try:
            yield
        finally:
            self._still.set()

    def take(self, time: int) -> Execution | None:
        """Return the execution that waits nearest before a position, which is a checkpoint no more."""
        with self._lock:
            fitting = [execution for execution in self._waiting if execution.time <= time]
            if not fitting:
                return None
            found = max(fitting, key=lambda execution: execution.time)
            self._waiting.remove(found)
            return found

    def want(self, time: int, seconds: float) -> None:
        """Make checkpoints behind a position to which it took so many seconds from the beginning."""
        if seconds < SLOW or self._closed:
            return
        with self._lock:
            known = [execution.time for execution in self._waiting]
            places = [time - max(time // part, fewest) for part, fewest in _DISTANCES]
            ends = [time, *places]
            self._wanted = [
                place
                for place, past in zip(places, ends, strict=False)
                if place > 0 and not any(place <= each < past for each in known)
            ]
            if self._wanted and self._worker is None:
                self._worker = threading.Thread(target=self._work, name="warpsim-checkpoints", daemon=True)
                self._worker.start()

    def close(self) -> None:
        """End all executions."""
        self._closed = True
        self._still.set()
        worker = self._worker
        if worker is not None:
            worker.join()
        for execution in self._waiting:
            execution.abandon()
        self._waiting.clear()

    # --- the thread that makes them ---

    def _work(self) -> None:
        while (place := self._next()) is not None:
            execution = self._begin()
            execution.resume(partial(self._arrived, place))
            if self._closed or execution.ended is not None:
                execution.abandon()
                continue
            with self._lock:
                self._waiting.append(execution)
                surplus = sorted(self._waiting, key=lambda each: each.time)[: -len(_DISTANCES)]
                self._waiting = [each for each in self._waiting if each not in surplus]
            for each in surplus:
                each.abandon()

    def _next(self) -> int | None:
        with self._lock:
            if self._wanted and not self._closed:
                return self._wanted.pop(0)
            self._worker = None
            return None

    def _arrived(self, place: int, _: Execution, moment: Moment) -> object:
        """Return whether a checkpoint is where it should be; wait while the session moves."""
        self._still.wait()
        return True if self._closed or moment.time >= place else None
