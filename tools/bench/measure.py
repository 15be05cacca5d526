"""What a case is and how it is timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Result:
    """One line of the table: the best time, and the figure that the goal is about."""

    name: str
    seconds: float
    figure: float
    unit: str
    goal: float | None

    def record(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return asdict(self)


def best(function: Callable[[], object], repeat: int, clock: Callable[[], float] = time.thread_time) -> float:
    """Return the shortest of several times, after one call that is not counted."""
    function()
    times = []
    for _ in range(repeat):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def matmul_seconds(size: int, repeat: int) -> float:
    """Time of NumPy's float32 product of two square matrices."""
    matrix = np.random.default_rng(1).random((size, size), np.float32)
    return best(lambda: matrix @ matrix, repeat)
