"""Texts of unusual size: how much of them is read, and that places in them cost no more than elsewhere."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsim.base.errors import PtxError
from warpsim.ptx import parser, source
from warpsim.ptx.parser import parse
from warpsim.ptx.source import Source


def test_a_text_has_so_many_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes far more memory than the two characters of ``{}``: a text of 64 MiB took more than a machine
    has."""
    monkeypatch.setattr(parser, "_Room", partial(parser._Room, statements=6))
    assert len(parse("{}{}{}").statements) == 3
    assert len(parse(".func f() {" + "ret; /* ; ; ; */" * 4 + "}").statements) == 1
    function = ".func f() {" + "ret;" * 5 + "}"
    for text in ("{}{}{}{}", "{{}{}{}}", "ret;" * 7, ".shared .b8 a, b, c, d, e, f;", function):
        with pytest.raises(PtxError, match="one more than the 1048576 supported"):
            parse(text)


def test_places_in_a_text_of_one_line() -> None:
    """The whole line went with every place: the square of its length."""
    text = "ret;" * 100_000
    place = Source(text + "nonsense").location(len(text), len(text) + 8)
    assert (place.line, place.column, place.length, place.quoted()) == (1, len(text) + 1, 8, "nonsense")
    assert len(place.text) < 5000
    shown, caret = place.excerpt().splitlines()
    assert shown.strip().startswith("...ret;")
    assert shown.endswith("nonsense")
    assert len(caret) == len(shown)


@given(
    st.text("\nab\r", max_size=60),
    st.integers(0, 60),
    st.integers(0, 20),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_places_are_those_of_a_simple_count(
    text: str, start: int, length: int, stretch: int, around: int
) -> None:
    start = min(start, len(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_STRETCH", stretch)
        patch.setattr(source, "_AROUND", 1000)
        place = Source(text).location(start, start + length)
        patch.setattr(source, "_AROUND", around)
        near = Source(text).location(start, start + length)
    before = text[:start].split("\n")
    line = text.split("\n")[len(before) - 1].rstrip("\r")
    assert (place.line, place.column, place.text, place.cut) == (len(before), len(before[-1]) + 1, line, 0)
    assert place.length == max(min(length, len(line) - len(before[-1])), 1)
    assert (near.line, near.column, near.length) == (place.line, place.column, place.length)
    assert near.quoted().rstrip("\r") == place.quoted().rstrip("\r")


def test_each_function_has_so_many_registers() -> None:
    """A module of 20 MB declares more than a million in all."""
    function = ".func f{}() {{ .reg .b32 %r<{}>; }}"
    assert len(parse(function.format(1, 1 << 20) + function.format(2, 1 << 20)).statements) == 2
    with pytest.raises(PtxError, match="1048577 registers are more than the 1048576 supported"):
        parse(function.format(1, 5) + function.format(2, (1 << 20) + 1))
