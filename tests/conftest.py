"""Tests are of compiled kernels, however little they compute; those of NumPy's way say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.compilation import done_by_kernels


@pytest.fixture(scope="session", autouse=True)
def kernels_at_once() -> Iterator[None]:
    """No instruction's first work is left to NumPy, in this process."""
    with done_by_kernels():
        yield
