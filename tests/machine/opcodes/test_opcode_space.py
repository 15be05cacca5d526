"""Statements around the forms of every opcode: the machine takes what ptxas 13.0 takes, or a table says why.

A sample with a seed; ``python -m tools.legality.opcodes`` judges as many as one likes.
"""

from __future__ import annotations

import pytest

from tests.helpers import ptxas
from tests.helpers.families import usual
from tests.helpers.opcode_agreement import differing
from tests.helpers.opcode_differences import ONLY_MACHINE, ONLY_PTXAS
from tests.helpers.opcode_space import Space, opcodes

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

SEED = 20
PLACES = (("9.0", "sm_100a", usual(2, 5)), ("6.3", "sm_75", usual(1, 2)))


@pytest.mark.parametrize(("version", "target", "count"), PLACES)
def test_a_sample_of_every_opcode(version: str, target: str, count: int) -> None:
    texts = [text for opcode in opcodes() for text in Space(opcode).sample(count, SEED)]
    found = differing(texts, target, version)
    assert [str(one) for one in found if not one.explained] == []
    assert len(texts) > 250


@pytest.mark.skipif(bool(ptxas.missing_first()), reason=ptxas.missing_first() or "ptxas is there")
@pytest.mark.parametrize(
    "example",
    [
        *("add.sat.sat.f16 %h6, %h1, %h2;", "and.b32 %r6, %r1, k;", "vote.sync.uni.uni.pred %p6, 1, -1;"),
        *("neg.bf16 {%h1, %h2}, %h1;", "match.any.sync.b32 %r6|_, %r1, -1;", "testp.f32 %p1, %r1;"),
        *(
            "prefetch.tensormap [%r9];",
            "fma.rp.bf16 %h6, %h1, %h2, %h3;",
            "set.eq.u32.bf16x2 %r6, %r1, !%p1;",
        ),
        *("addc.u16 %h6, %h1, %h2;", "mov.v4.b16 {%h1, %h2, %h3, %h4}, %h1;"),
    ],
)
def test_only_ptxas_takes(example: str) -> None:
    (one,) = differing([example], "sm_100a", "9.0")
    assert one.by_ptxas
    assert one.explained


@pytest.mark.parametrize("example", ["div.u64 %d6, sm+4, %d2;", "cvta.param.u64 %d1, pf;"])
def test_only_the_machine_takes(example: str) -> None:
    (one,) = differing([example], "sm_100a", "9.0")
    assert not one.by_ptxas
    assert one.explained


def test_every_difference_has_a_reason() -> None:
    assert all(reason for _, reason in (*ONLY_PTXAS, *ONLY_MACHINE))
