"""Many small cases of one check as one test: thousands of tests cost more than what most of them check."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

WHOLE = bool(os.environ.get("WARPSIM_TEST_ALL"))  # every case of families of which samples are usual


def sample(cases: Iterable[Any], every: int, offset: int = 0) -> list[Any]:
    """Choose each ``every``-th case, or all with WARPSIM_TEST_ALL=1."""
    listed = list(cases)
    return listed if WHOLE else listed[offset % every :: every]


def usual(count: Any, whole: Any) -> Any:
    """Return ``count``, or ``whole`` with WARPSIM_TEST_ALL=1."""
    return whole if WHOLE else count


def each_of(
    cases: Iterable[Any], name: Callable[[Any], str] = str, *, parts: int = 1
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test of a check of many cases, or ``parts`` tests that share them out.

    A case that is a tuple gives several arguments. All cases are checked, and what fails is reported
    together, each with its name; a case that is skipped does not count as one.
    """
    listed = list(cases)
    assert len(listed) >= parts

    def test_of(check: Callable[..., None]) -> Callable[..., None]:
        def every(part: int = 0) -> None:
            chosen = listed[part::parts]
            errors = [error for case in chosen if (error := _error(check, case, name)) is not None]
            if errors:
                raise ExceptionGroup(f"{len(errors)} of {len(chosen)} cases", errors)

        def whole() -> None:
            every()

        def shared(part: int) -> None:
            every(part)

        test: Callable[..., None] = whole
        if parts > 1:
            test = pytest.mark.parametrize("part", range(parts))(shared)
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(test, attribute, getattr(check, attribute))
        return test

    return test_of


def _error(check: Callable[..., None], case: Any, name: Callable[[Any], str]) -> Exception | None:
    """What a check raises for a case, with the name of the case."""
    arguments = case if type(case) is tuple else (case,)
    try:
        check(*arguments)
    except pytest.skip.Exception:
        return None
    except Exception as error:
        error.add_note(f"of {name(case)}")
        return error
    return None
