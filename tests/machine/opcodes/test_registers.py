"""setmaxnreg: who waits for registers of others, what is misuse, where it is ignored."""

from __future__ import annotations

import pytest

from tests.helpers.cluster_kernels import launched, run
from warpsim.base.errors import Fault, UndefinedBehavior
from warpsim.machine.bind.tuning import Tuning
from warpsim.machine.opcodes.control.setmaxnreg import registers_at_entry

GIVES = """setp.lt.u32 %p1, %own, 128; @%p1 bra GIVE; setmaxnreg.inc.sync.aligned.u32 232;
mov.u32 %d0, 1; bra END; GIVE: setmaxnreg.dec.sync.aligned.u32 40; mov.u32 %d0, 2; END:"""
TUNING = ".maxntid 384 .minnctapersm 1"


@pytest.mark.parametrize(
    ("tuning", "count"),
    [  # what ptxas 13.0 says of them: 255 is the most that a lane can use of 256
        (Tuning(most_registers=168), 168), (Tuning(most_threads=384, least_ctas=1), 168),
        (Tuning(most_threads=256, least_ctas=1), 256), (Tuning(most_threads=512, least_ctas=1), 128),
        (Tuning(block=(160, 1, 1), least_ctas=1), 256), (Tuning(most_registers=100), 104),
        (Tuning(most_registers=168, block=(384, 1, 1), least_ctas=2), 80), (Tuning(most_threads=384), None),
        (Tuning(block=(384, 1, 1)), None), (Tuning(least_ctas=1), None), (Tuning(), None),
    ],
)  # fmt: skip
def test_registers_at_entry(tuning: Tuning, count: int | None) -> None:
    assert registers_at_entry(tuning) == count


@pytest.mark.parametrize("schedule", ["program", "earliest", "latest", 1, 2, 3])
@pytest.mark.parametrize("tuning", [TUNING, ".maxnreg 168"])
def test_warpgroups_that_give_and_take(schedule: str | int, tuning: str) -> None:
    found, report = launched(GIVES, 2, 384, None, tuning=tuning, schedule=schedule)
    assert found[:, ::128, 0].tolist() == [[2, 1, 1]] * 2
    assert report.hazards == ()


def test_registers_that_nobody_gives() -> None:
    message = (
        r"deadlock: no lane can continue; waiting: "
        r".* for 240 registers a lane: the warp has 168, and the CTA's "
        r"warps have given back 8 more for one warp"
    )
    with pytest.raises(Fault, match=message):
        run(GIVES.replace("232", "240"), 1, 384, None, tuning=TUNING)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (GIVES.replace("dec", "inc"), "the warp has 168 registers a lane: .inc lowers them"),
        (GIVES.replace("inc.sync.aligned.u32 232", "dec.sync.aligned.u32 176"),
         "168 registers a lane: .dec raises them"),
        (GIVES.replace("128;", "64;"), "warp 0 of its warpgroup has executed that of line 15 instead"),
        ("setp.lt.u32 %p1, %own, 32; @%p1 setmaxnreg.dec.sync.aligned.u32 40;",
         "warp 0 has executed it, but warp 1 of its warpgroup has not"),
        ("setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.dec.sync.aligned.u32 32;",
         "follows that of line 14 with no barrier between, at which the warps of the warpgroup meet: put "
         "bar.sync before line 15"),
    ],
)  # fmt: skip
def test_misuse(body: str, message: str) -> None:
    with pytest.raises(UndefinedBehavior) as caught:
        run(body, 1, 384, None, tuning=TUNING)
    assert message in caught.value.message


def test_a_barrier_between_two_is_enough() -> None:
    body = "setmaxnreg.dec.sync.aligned.u32 40; bar.sync 0; setmaxnreg.inc.sync.aligned.u32 64;"
    assert launched(body, 1, 384, None, tuning=TUNING)[1].hazards == ()


def test_it_has_no_effect_where_nobody_knows_the_registers() -> None:
    _, report = launched(GIVES, 1, 384, None, tuning=".maxntid 384")
    assert {one.kind for one in report.hazards} == {"registers"}
    assert "may have no effect: it needs .maxnreg, or .minnctapersm with" in report.hazards[0].message


@pytest.mark.parametrize("schedule", ["program", "latest", 1, 2, 3])
def test_a_second_one_that_moves_no_registers_is_a_warning(schedule: str | int) -> None:
    again = "setmaxnreg.dec.sync.aligned.u32 40;\n"
    found, report = launched(again * 2 + "mov.u32 %d0, 1;", 1, 384, None, tuning=TUNING, schedule=schedule)
    assert (found[..., 0] == 1).all()
    (told,) = report.hazards
    assert told.severity == "warning"
    assert "follows that of line 14 with no barrier between" in told.message
    assert "no registers move, as the warp has so many" in told.message


def test_warps_that_give_back_different_numbers_are_a_warning() -> None:
    body = GIVES.replace("128;", "64;").replace("inc.sync.aligned.u32 232", "dec.sync.aligned.u32 48")
    _, report = launched(body, 1, 384, None, tuning=TUNING)
    assert {one.severity for one in report.hazards} == {"warning"}
    assert "which keeps other registers: all warps of a warpgroup" in report.hazards[0].message


@pytest.mark.parametrize("schedule", ["program", "latest", 1, 2, 3])
def test_warps_that_ask_for_the_same_elsewhere_are_a_warning(schedule: str | int) -> None:
    body = GIVES.replace("128;", "64;").replace("inc.sync.aligned.u32 232", "dec.sync.aligned.u32 40")
    _, report = launched(body, 1, 384, None, tuning=TUNING, schedule=schedule)
    assert {one.severity for one in report.hazards} == {"warning"}
    assert (
        "which asks for the same: all warps of a warpgroup execute one statement" in report.hazards[0].message
    )
