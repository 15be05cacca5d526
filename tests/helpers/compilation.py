"""What computes the first, small calls of a product: kernels, as in most tests, or NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warpsim.execution.compilation_budget import PROCESS


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
