"""Cases that are checked by one test."""

from __future__ import annotations

import pytest

from tests.helpers.families import each_of


def test_all_that_fail_are_named() -> None:
    seen: list[int] = []

    @each_of(range(6), lambda number: f"case {number}")
    def odd(number: int) -> None:
        """A number is odd."""
        seen.append(number)
        if number == 5:
            pytest.skip("five")
        assert number % 2, f"{number} is even"

    with pytest.raises(ExceptionGroup, match="3 of 6 cases") as found:
        odd()
    assert seen == [0, 1, 2, 3, 4, 5]
    assert [error.__notes__ for error in found.value.exceptions] == [
        ["of case 0"],
        ["of case 2"],
        ["of case 4"],
    ]
    assert (odd.__name__, odd.__doc__) == ("odd", "A number is odd.")


def test_parts_share_the_cases_out() -> None:
    seen: list[tuple[str, int]] = []

    @each_of([("a", 1), ("b", 2), ("c", 3)], parts=2)
    def check(letter: str, number: int) -> None:
        seen.append((letter, number))

    (mark,) = check.pytestmark  # type: ignore[attr-defined]
    assert mark.args == ("part", range(2))
    check(1)
    assert seen == [("b", 2)]
    check(0)
    assert seen == [("b", 2), ("a", 1), ("c", 3)]
