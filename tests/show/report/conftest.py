"""A browser and a folder that the tests of a module share, and the explorer's scripts, which all share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from tests.helpers.browser import started  # late: it skips where there is no browser

    driver = started()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="session")
def scripts() -> Iterator[Any]:
    from tests.helpers.explorer import Scripts  # late: it makes the whole catalogue

    made = Scripts()
    yield made
    made.close()
