"""Tests are of compiled kernels, however little they compute; those of NumPy's way say so.

Garbage is not looked for while tests are collected, and never among what was collected: tens of thousands of
tests and the tables of all modules stay until the end.

Processes that tests start keep the modules that they compile, also where PYTHONDONTWRITEBYTECODE is set: much
of their work would otherwise be to compile hundreds of modules again.

A mistake in a formula is proven on fewer elements than users have it proven on, but with WARPSIM_TEST_ALL=1.

BLAS has one thread: threads of small products wait for each other where all cores are busy.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

from tests.helpers.compilation import done_by_kernels, loops_at_once
from tests.helpers.families import usual


def pytest_configure(config: pytest.Config) -> None:
    """Keep bytecode, for this process and those that it starts, unless pytest is to keep no cache either."""
    if not config.pluginmanager.is_blocked("cacheprovider"):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Pause the collection of garbage; from here on it is of what tests make."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give each process a run of tests in their order: what a file shares is made in one process."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def kernels_at_once() -> Iterator[None]:
    """No instruction's first work is left to NumPy, in this process, and no check of an access."""
    with done_by_kernels(), loops_at_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def fewer_elements() -> Iterator[None]:
    """A mistake in a formula is proven on fewer elements than users have it proven on."""
    from warpsim.observe.algebra.locating import formula_search

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formula_search, "_MOST_EVALUATED", usual(10_000, formula_search._MOST_EVALUATED))
        yield
