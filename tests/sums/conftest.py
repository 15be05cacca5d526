"""Tests of sums are of compiled kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.compilation import done_by_kernels


@pytest.fixture(scope="package", autouse=True)
def kernels_at_once() -> Iterator[None]:
    """No instruction's first work is left to NumPy."""
    with done_by_kernels():
        yield
