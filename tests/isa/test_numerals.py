"""Numbers in text: nothing that Python alone would refuse with an error without a place."""

import pytest

from warpsim.isa.numerals import integer_in, whole_number

LONG = "1" * 5000


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("010", 10), ("18446744073709551615", (1 << 64) - 1), ("0" * 9000 + "7", 7),
        ("18446744073709551616", None), (LONG, None), ("", None), ("-1", None), (" 1", None), ("1_0", None),
        ("٣", None), ("²", None),
    ],
)  # fmt: skip
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_a_largest_number() -> None:
    assert [whole_number(text, 31) for text in ("31", "32")] == [31, None]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("-1", -1), ("+0x1F", 31), ("0b101", 5), ("0o17", 15), (" 12\n", 12), ("00", 0),
        ("0xffffffffffffffff", (1 << 64) - 1), ("-9223372036854775808", -(1 << 63)),
        ("010", None), (LONG, None), ("0x" + LONG, None), ("-9223372036854775809", None), ("", None),
        ("1_0", None), ("٣", None), ("1.0", None),
    ],
)  # fmt: skip
def test_integers(text: str, number: int | None) -> None:
    assert integer_in(text) == number
