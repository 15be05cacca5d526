"""Errors of a test without the frames of this package: pytest then shows the line of the test itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...base.errors import WarpsimError

T = TypeVar("T")


class KernelFailure(AssertionError):
    """A test of a kernel failed: findings, outputs that depend on the schedule, or elements that differ."""


def without_frames(call: Callable[[], T]) -> T:
    """Return what a call returns; an error of warpsim is raised from here, with no frames below."""
    __tracebackhide__ = True
    try:
        return call()
    except WarpsimError as error:
        raised = error.with_traceback(None)
    raise raised from None
