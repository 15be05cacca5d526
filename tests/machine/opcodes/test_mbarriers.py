"""mbarrier objects: phases, arrivals, bytes, and lanes that wait for each other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.kernel_texts import run
from warpsim.base.errors import Fault, UndefinedBehavior
from warpsim.machine.run.barriers.mbarrier import MOST, Object, arrive, expect

Array = npt.NDArray[Any]
CTAS, THREADS = 3, 64
MORE = {
    "shared": 1024,
    "extra": ".reg .b32 %n, %to; .reg .b64 %s<4>, %from; .reg .pred %p, %q; .shared .align 8 .b64 bar;",
}
FIRST = "setp.eq.u32 %q, %own, 0;\n"


def _run(body: str, count: int = 1, ctas: int = CTAS, **options: Any) -> Array:
    inputs = {"src": np.arange(1, ctas * THREADS + 1, dtype=np.uint32)[:, None]}
    outputs = {"d": (count, np.uint32)}
    return run("sm_90a", ctas, THREADS, inputs, outputs, FIRST + body, **MORE | options)["d"]


def _init(count: int) -> str:
    return f"@%q mbarrier.init.shared.b64 [bar], {count};\nbar.sync 0;\n"


def test_the_object_holds_what_it_says() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        expected, pending = random.integers(0, MOST + 1, 2).tolist()
        tx, valid, parity = int(random.integers(-MOST, MOST + 1)), *random.integers(0, 2, 2).tolist()
        one = Object(expected, pending, tx, bool(valid), parity)
        assert Object.of(one.word) == one
        assert 0 <= one.word < 1 << 63


def test_phases() -> None:
    one = Object(2, 2)
    assert arrive(one, 1).settled() == Object(2, 1)
    assert arrive(one, 2).settled() == Object(2, 2, parity=1)
    assert arrive(expect(one, 8), 2).settled() == Object(2, 0, 8)
    assert expect(arrive(expect(one, 8), 2), -8).settled() == Object(2, 2, parity=1)
    assert arrive(one, 1, drop=True).settled() == Object(1, 1)


def test_everyone_waits_for_everyone() -> None:
    """What a lane stores before it arrives, its neighbour in another warp reads after the phase."""
    body = (
        _init(THREADS)
        + "shl.b32 %to, %own, 2; st.shared.b32 [%to], %src0;\n"
        + "mbarrier.arrive.shared.b64 %s0, [bar];\n"
        + "again: mbarrier.try_wait.shared.b64 %p, [bar], %s0;\n@!%p bra again;\n"
        + "xor.b32 %to, %to, 128; ld.shared.b32 %d0, [%to];\n"
    )
    number = np.arange(CTAS * THREADS)
    np.testing.assert_array_equal(_run(body)[:, 0], (number ^ 32) + 1)


PRODUCER = """
    setp.ge.u32 %p, %own, 32;
    @%p bra consume;
    mov.u32 %n, 0;
produce:
    shl.b32 %to, %own, 2;
    add.u32 %d0, %src0, %n;
    st.shared.b32 [%to], %d0;
    mbarrier.arrive.shared::cta.b64 _, [bar];
    mbarrier.try_wait.parity.shared::cta.b64 %q, [memory+512], 0;
    add.u32 %n, %n, 1;
    bra done;
consume:
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %q, [bar], 0;
    @!%q bra consume;
    add.u32 %to, %own, -32;
    shl.b32 %to, %to, 2;
    ld.shared.b32 %d0, [%to];
    mbarrier.arrive.release.cta.shared::cta.b64 _, [memory+512];
done:
"""


def test_warps_that_produce_and_consume() -> None:
    body = "@%q mbarrier.init.shared.b64 [memory+512], 32;\n" + _init(32) + PRODUCER
    found = _run(body).reshape(CTAS, 2, 32)
    expected = np.arange(1, CTAS * THREADS + 1).reshape(CTAS, 2, 32)[:, 0]
    np.testing.assert_array_equal(found[:, 0], expected)
    np.testing.assert_array_equal(found[:, 1], expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mbarrier.arrive.noComplete.shared.b64 %s0, [bar], 2;", (0, 1)),
        ("mbarrier.arrive.shared.b64 %s0, [bar], 3;", (1, 0)),
        (
            "mbarrier.arrive.expect_tx.shared.b64 %s0, [bar], 8; mbarrier.arrive.shared.b64 %s1, [bar], 2;",
            (0, 1),
        ),
        (
            "mbarrier.arrive.expect_tx.shared.b64 %s0, [bar], 8; mbarrier.arrive.shared.b64 %s1, [bar], 2;"
            "mbarrier.complete_tx.shared.b64 [bar], 8;",
            (1, 0),
        ),
        ("mbarrier.arrive_drop.shared.b64 %s0, [bar], 3;", (1, 0)),
        ("mbarrier.arrive_drop.shared.b64 %s0, [bar]; mbarrier.arrive.shared.b64 %s1, [bar], 2;", (1, 0)),
    ],
)
def test_one_thread(body: str, expected: tuple[int, int]) -> None:
    """Whether the phase of the state is over, by state and by parity 1 (of the phase before)."""
    tests = (
        "mbarrier.test_wait.shared.b64 %p, [bar], %s0; selp.u32 %d0, 1, 0, %p;\n"
        "mbarrier.test_wait.parity.shared.b64 %p, [bar], 1; selp.u32 %d1, 1, 0, %p;\n"
        "mbarrier.pending_count.b64 %d2, %s0;\n"
    )
    found = _run(f"{_init(3)}@!%q bra end;\n{body}\n{tests}end:\n", 3)
    assert found[0].tolist() == [*expected, 3]


def test_copies_arrive() -> None:
    """Without noinc, the arrival at the end of the copies is one more than was expected."""
    address = "ld.param.u64 %from, [p0]; mul.wide.u32 %row, %lane, 4; add.u64 %from, %from, %row;\n"
    copy = "shl.b32 %to, %own, 2; cp.async.ca.shared.global [%to], [%from], 4;\n"
    wait = "again: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;\n@!%p bra again;\n"
    read = "xor.b32 %to, %to, 128; ld.shared.b32 %d0, [%to];\n"
    ways = (
        "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n",
        "cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];\n",
    )
    for way in ways:
        found = _run(_init(THREADS) + address + copy + way + wait + read)
        np.testing.assert_array_equal(found[:, 0], (np.arange(CTAS * THREADS) ^ 32) + 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mbarrier.arrive.shared.b64 _, [bar];", "arrive.shared.b64: no mbarrier has been initialised there"),
        (_init(1) + "mbarrier.arrive.shared.b64 _, [bar], 2;", "2 arrivals, but 1 are pending"),
        (
            _init(2) + "@%q mbarrier.arrive.noComplete.shared.b64 _, [bar], 2;",
            "the arrival completes the phase, which .noComplete rules out",
        ),
        ("mov.u32 %n, 0; mbarrier.init.shared.b64 [bar], %n;", "a count of 0: expected 1 to 1048575"),
        (_init(1) + "mbarrier.inval.shared.b64 [bar]; mbarrier.inval.shared.b64 [bar];", "initialised"),
        (_init(1) + "mbarrier.expect_tx.shared.b64 [bar], 1048576;", "the tx-count becomes 1048576"),
    ],
)
def test_undefined(body: str, message: str) -> None:
    with pytest.raises(UndefinedBehavior, match=message):
        _run(body, checks="off")  # warps that do it at once are in a race besides


def test_a_phase_that_never_ends() -> None:
    body = _init(THREADS + 1) + "mbarrier.arrive.shared.b64 %s0, [bar];\n"
    text = (
        "for phase 1 of the mbarrier bar, which lacks 1 of 65 arrivals (warp 0 has arrived, at line 22, "
        "warp 1 has arrived, at line 22)"
    )
    with pytest.raises(Fault, match=re.escape(text)):
        _run(body + "again: mbarrier.try_wait.shared.b64 %p, [bar], %s0;\n@!%p bra again;\n")
