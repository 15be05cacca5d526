"""What computes the first, small calls of a product, and looks at accesses: what is compiled, or NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from warpsim.observe.checks.fast_path import LOOPS
from warpsim.sums.execution.compilation_budget import PROCESS


@contextmanager
def done_by_kernels() -> Iterator[None]:
    """A block in which kernels compute everything, however little it is."""
    with _limit(0):
        yield


@contextmanager
def done_by_numpy(limit: int = 1 << 60) -> Iterator[None]:
    """A block in which NumPy computes up to so many multiplications of a product, none of them spent."""
    with _limit(limit):
        yield


@contextmanager
def _limit(multiplications: int) -> Iterator[None]:
    before = dict(vars(PROCESS))
    vars(PROCESS).update(limit=multiplications, spent={}, compiled=set())
    try:
        yield
    finally:
        vars(PROCESS).update(before)


@contextmanager
def loops_at_once() -> Iterator[None]:
    """A block in which compiled loops look at accesses, however few they are."""
    with _looking(words=1 << 60):
        yield


@contextmanager
def no_loops() -> Iterator[None]:
    """A block in which NumPy alone looks at accesses."""
    with _looking(found=None, refused=True):
        yield


@contextmanager
def _looking(**changed: Any) -> Iterator[None]:
    before = dict(vars(LOOPS))
    vars(LOOPS).update(changed)
    try:
        yield
    finally:
        vars(LOOPS).update(before)
