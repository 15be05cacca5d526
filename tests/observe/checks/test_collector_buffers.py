"""Products that take an operand from a collector buffer: which have one, by a fill that is still valid."""

# ruff: noqa: E501 - messages stand as they are shown

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.described_products import Product, mnemonic


def findings(*words: str, ws: bool = False, ctas: int = 1) -> list[Any]:
    """What is said of the same product again and again, with these words of buffers."""
    name = mnemonic("f16", ws=ws, ctas=ctas)
    run = Product(name, n=64, m=256 if ctas > 1 else 128).run()
    plain = run.statement
    run.statement = "\n".join(plain.replace(name, f"{name}{word and '.collector::'}{word}") for word in words)
    return [one for one in run.report(checks="warn").hazards if one.kind == "collector buffer"]


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("a::fill", "a::use", "a::use", "a::lastuse"), []),
        (("a::use", ""), [0]),
        (("a::fill", "a::fill", "a::lastuse", "a::use", "a::lastuse"), [3, 4]),
        (("a::fill", "", "a::use", "a::fill", "a::use"), [2]),
        (("a::fill", "a::discard", "a::lastuse"), [2]),
        (("a::fill", "", "a::discard", ""), []),
    ],
)
def test_a_fill_holds_until_it_may_be_gone(words: tuple[str, ...], wrong: list[int]) -> None:
    found = findings(*words)
    places = [place for one in found for place in (one.location, *(other for other, _ in one.others))]
    assert {one.severity for one in found} <= {"warning"}
    assert [place.line - places[0].line for place in places] == [place - wrong[0] for place in wrong]


def test_buffers_of_b_are_four_of_their_own() -> None:
    assert not findings(
        "b0::fill", "b1::fill", "b3::fill", "b0::use", "b1::lastuse", "b0::lastuse", "b3::use", ws=True
    )
    found = findings("b1::fill", "b2::use", "", "b1::use", "b0::fill", "", "b0::lastuse", ws=True)
    assert [one.message.split()[0].split(".collector")[1] for one in found] == ["::b2::use", "::b0::lastuse"]


def test_a_pair_has_the_buffer_of_the_cta_that_issues() -> None:
    assert not findings("a::fill", "a::use", "a::lastuse", ctas=2)
    assert len(findings("a::lastuse", ctas=2)) == 1


def test_what_is_said() -> None:
    never, gone = findings("a::use", "a::fill", "a::lastuse", "a::lastuse")
    name, line = "tcgen05.mma.cta_group::1.kind::f16.collector::a", never.location.line
    assert never.message == (
        f"{name}::use may read A from its buffer, but no tcgen05.mma of the CTA has filled the buffer with "
        ".collector::a::fill: PTX does not define what it reads then [CTA (0, 0, 0), warp 0, lane 0]"
    )
    assert never.fix == (
        "write .collector::a::fill at the tcgen05.mma before it that reads the same A, or leave .collector::a::use away"
    )
    assert gone.message == (
        f"{name}::lastuse may read A from its buffer, but the tcgen05.mma of line {line + 2} has let it go (lastuse): PTX "
        "does not define what it reads then [CTA (0, 0, 0), warp 0, lane 0]"
    )
    assert (gone.location.line, gone.other.line) == (line + 3, line + 2)
