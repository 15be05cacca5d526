"""Who computes the little that instructions are first asked for: kernels, as in most tests, or NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warpsim.execution import first_work


@contextmanager
def done_by_kernels() -> Iterator[None]:
    """A block in which kernels compute everything, however little it is."""
    with _limit(0):
        yield


@contextmanager
def done_by_numpy(limit: int = 1 << 60) -> Iterator[None]:
    """A block in which NumPy computes up to so many products of a mnemonic, of which there have been none."""
    with _limit(limit):
        yield


@contextmanager
def _limit(products: int) -> Iterator[None]:
    before = first_work.LIMIT, first_work.done, first_work.beyond
    first_work.LIMIT, first_work.done, first_work.beyond = products, {}, set()
    try:
        yield
    finally:
        first_work.LIMIT, first_work.done, first_work.beyond = before
