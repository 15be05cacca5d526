"""setmaxnreg: who waits for registers of others, what is misuse, where it is ignored."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import ptxas
from tests.helpers.cluster_kernels import launched, run, text_of
from warpsim.base.errors import Fault, UndefinedBehavior
from warpsim.machine.load.program import load_module

GIVES = """setp.lt.u32 %p1, %own, 128; @%p1 bra GIVE; setmaxnreg.inc.sync.aligned.u32 232;
mov.u32 %d0, 1; bra END; GIVE: setmaxnreg.dec.sync.aligned.u32 40; mov.u32 %d0, 2; END:"""
TUNING = ".maxntid 384 .minnctapersm 1"


@pytest.mark.parametrize(
    ("directives", "asks", "count"),
    [  # what ptxas 13.0 prints as used; asks: .dec and .inc
        (".maxntid 128 .minnctapersm 1", (24, 0), 255), (".maxntid 128 .minnctapersm 2", (24, 0), 255),
        (".maxntid 128 .minnctapersm 1", (256, 0), 255), (".maxntid 256 .minnctapersm 1", (40, 232), 232),
        (".maxntid 256 .minnctapersm 1", (24, 256), 255), (".maxntid 256 .minnctapersm 2", (24, 240), 128),
        (".maxntid 384 .minnctapersm 1", (24, 240), 168), (".maxntid 384 .minnctapersm 1", (56, 160), 160),
        (".maxntid 384 .minnctapersm 5", (24, 240), 32), (".maxntid 160 .minnctapersm 3", (24, 240), 128),
        (".maxntid 288 .minnctapersm 1", (24, 240), 168), (".maxntid 416 .minnctapersm 1", (24, 240), 128),
        (".reqntid 160 .minnctapersm 1", (24, 0), 255), (".maxntid 512 .minnctapersm 1", (24, 0), 128),
        (".reqntid 96, 4 .minnctapersm 1", (24, 240), 168), (".maxnreg 90", (24, 96), 90),
        (".maxnreg 90", (24, 88), 88), (".maxnreg 16", (24, 0), 24), (".maxnreg 256", (96, 104), 104),
        (".maxntid 384 .maxnreg 100 .minnctapersm 1", (24, 240), 100),
        (".maxntid 384 .minnctapersm 6", (24, 240), None), (".maxntid 384", (24, 240), None),
        (".minnctapersm 1", (24, 240), None), ("", (24, 240), None),
    ],
)  # fmt: skip
def test_registers_at_entry(directives: str, asks: tuple[int, int], count: int | None) -> None:
    assert load_module(asking(directives, asks)).entry("k").lane_registers == count


def asking(directives: str, asks: tuple[int, int]) -> str:
    """Return a kernel that asks for registers."""
    body = (
        f"setmaxnreg.{act}.sync.aligned.u32 {many};"
        for act, many in zip(("dec", "inc"), asks, strict=True)
        if many
    )
    return text_of(" ".join(body), tuning=directives)


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there is a ptxas")
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_120a"])
def test_registers_at_entry_as_ptxas_counts_them(target: str, tmp_path: Path) -> None:
    """Threads, CTAs and counts at random: the same number, or both refuse to know one."""
    random = np.random.default_rng(int(target[3:-1]))
    for case in range(32):
        threads, ctas = 32 * int(random.integers(1, 33)), int(random.integers(1, 9))
        bound = f" .maxnreg {random.integers(24, 260)}" if case % 3 == 0 else ""
        asks = 24, 8 * int(random.integers(4, 33))
        text = asking(f".maxntid {threads} .minnctapersm {ctas}{bound}", asks)
        (tmp_path / "k.ptx").write_text(text.replace("sm_90a", target))
        command = [str(ptxas.program()), "-v", "-arch", target, "k.ptx", "-o", "k.cubin"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        used = re.search(r"Used (\d+) registers", run.stderr + run.stdout)
        ignored = "unable to determine register count" in run.stderr + run.stdout
        found = load_module(text, target=target).entry("k").lane_registers
        assert used is not None
        assert found == (None if ignored else int(used[1])), text


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
