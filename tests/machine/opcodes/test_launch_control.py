"""clusterlaunchcontrol: every cluster's work is done once, by itself or others; misuse; ptxas's verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import ptxas
from warpsim.base.errors import IllegalInstruction, UndefinedBehavior
from warpsim.programs.launch.launching import load_text

SCHEDULES = ("program", "earliest", "latest", 1, 2, 3)
HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"
DECLARATIONS = ".reg .pred %p<9>; .reg .b32 %r<29>; .reg .b64 %d<9>; .reg .b128 %q<9>;"
ASK = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
QUERY = "clusterlaunchcontrol.query_cancel"

# A CTA adds 1 to its word of done, writes down itself at its place, and goes on with the work it is given.
WORKER = f"""{HEAD}
.visible .entry work(.param .u64 done, .param .u64 worker) {{
{DECLARATIONS}
.shared .align 16 .b8 answer[16];
.shared .align 8 .b64 bar;
ld.param.u64 %d1, [done];
ld.param.u64 %d2, [worker];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ctaid.y;
mov.u32 %r3, %ctaid.z;
mov.u32 %r4, %nctaid.x;
mov.u32 %r5, %nctaid.y;
mad.lo.u32 %r6, %r3, %r5, %r2;
mad.lo.u32 %r7, %r6, %r4, %r1;
mov.u32 %r20, %r7;
mov.u32 %r9, 0;
mov.u32 %r10, %tid.x;
setp.ne.u32 %p1, %r10, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [bar], 1;
READY: bar.sync 0;
NEXT: mad.lo.u32 %r6, %r3, %r5, %r2;
mad.lo.u32 %r7, %r6, %r4, %r1;
mul.wide.u32 %d3, %r7, 4;
add.u64 %d4, %d1, %d3;
add.u64 %d5, %d2, %d3;
@!%p1 red.global.add.u32 [%d4], 1;
st.global.u32 [%d5], %r20;
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
{ASK}.b128 [answer], [bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], %r9;
@!%p2 bra WAIT;
xor.b32 %r9, %r9, 1;
ld.shared.b128 %q0, [answer];
{QUERY}.is_canceled.pred.b128 %p3, %q0;
@!%p3 bra END;
{QUERY}.get_first_ctaid.v4.b32.b128 {{%r1, %r2, _, _}}, %q0;
{QUERY}.get_first_ctaid::z.b32.b128 %r3, %q0;
fence.proxy.async.shared::cta;
bar.sync 0;
bra NEXT;
END: ret;
}}"""


def worked(grid: Any, schedule: Any) -> tuple[Any, Any]:
    count = int(np.prod(grid))
    done, worker = np.zeros(count, np.uint32), np.full(count, 99, np.uint32)
    report = load_text(WORKER)["work"](grid, 64, [done, worker], schedule=schedule)
    assert not report.hazards
    return done, worker


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_tile_is_done_once(schedule: Any) -> None:
    done, worker = worked((3, 2, 2), schedule)
    assert (done == 1).all()
    if schedule == "latest":  # nothing is granted
        assert worker.tolist() == list(range(12))
    else:
        assert len(set(worker.tolist())) < 12


def test_work_is_given_as_long_as_clusters_are_left() -> None:
    assert worked(1, "program")[1].tolist() == [0]
    _, worker = worked(8, "program")
    assert set(worker.tolist()) == {0, 1, 2, 3}


# Rank 1 asks for its cluster; both CTAs get the answer, and wait at barriers of their own.
PAIRS = f"""{HEAD}
.visible .entry pairs(.param .u64 done) .reqnctapercluster 2 {{
{DECLARATIONS}
.shared .align 16 .b8 answer[16];
.shared .align 8 .b64 bar;
ld.param.u64 %d1, [done];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %cluster_ctarank;
setp.ne.u32 %p1, %r2, 1;
mov.u32 %r9, 0;
mbarrier.init.shared::cta.b64 [bar], 1;
NEXT: barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mul.wide.u32 %d3, %r1, 4;
add.u64 %d4, %d1, %d3;
red.global.add.u32 [%d4], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@%p1 bra WAIT;
{ASK}.multicast::cluster::all.b128 [answer], [bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], %r9;
@!%p2 bra WAIT;
xor.b32 %r9, %r9, 1;
ld.shared.b128 %q0, [answer];
{QUERY}.is_canceled.pred.b128 %p3, %q0;
@!%p3 bra END;
{QUERY}.get_first_ctaid::x.b32.b128 %r1, %q0;
add.u32 %r1, %r1, %r2;
fence.proxy.async.shared::cta;
bra NEXT;
END: barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
}}"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_cta_of_a_cluster_gets_the_answer(schedule: Any) -> None:
    done = np.zeros(10, np.uint32)
    load_text(PAIRS)["pairs"](10, 1, [done], schedule=schedule)
    assert (done == 1).all()


# --- what is wrong -----------------------------------------------------------------------------------


def error_of(text: str, old: str, new: str, grid: int = 1) -> str:
    assert old in text
    entry = "work" if "work(" in text else "pairs"
    arrays = [np.zeros(grid, np.uint32) for _ in range(2 if entry == "work" else 1)]
    with pytest.raises(UndefinedBehavior) as found:
        load_text(text.replace(old, new))[entry](grid, 1, arrays, schedule="latest")
    return found.value.message


def test_uses_that_are_not_defined() -> None:
    assert "there is no CTA whose coordinates could be read" in error_of(WORKER, "@!%p3 bra END;", "")
    assert "not an answer that try_cancel has written" in error_of(
        WORKER, "[answer];\n", "[answer];\nmov.b128 %q0, 7;\n"
    )
    again = error_of(WORKER, "@!%p3 bra END;", "@!%p3 bra NEXT;")
    assert "the CTA has seen a request fail" in again
    assert "CTA (0, 0, 0)" in again
    meeting = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n@%p1 bra WAIT;"
    assert "that of rank 0 has ended" in error_of(PAIRS, meeting, "@%p1 exit;", grid=2)


def test_what_no_target_takes() -> None:
    (problem,) = load_text(
        f"{HEAD.replace('sm_100a', 'sm_100')}.visible .entry k() {{ {DECLARATIONS} .shared .b64 bar;\n"
        f"{ASK}.multicast::cluster::all.b128 [%r1], [bar];\n}}"
    ).problems
    assert isinstance(problem, IllegalInstruction)
    assert problem.message == (".multicast::cluster::all is not on sm_100: it needs sm_100f or higher")


FORMS = [
    f"{ASK}.b128 [%r1], [%r2];",
    f"{ASK}.multicast::cluster::all.b128 [%r1], [%r2];",
    f"{ASK.replace('.shared::cta', '')}.b128 [%d1], [%d2];",
    f"{ASK.replace('.shared::cta', '')}.multicast::cluster::all.b128 [%d1+16], [%d2];",
    f"{ASK.replace('shared::cta', 'shared::cluster')}.b128 [%r1], [%r2];",
    f"{ASK}.b64 [%r1], [%r2];",
    f"{ASK}.b128 [%r1];",
    f"{QUERY}.is_canceled.pred.b128 %p1, %q1;",
    f"{QUERY}.is_canceled.pred.b128 %r1, %q1;",
    f"{QUERY}.is_canceled.pred.b128 %p1, %d1;",
    f"{QUERY}.get_first_ctaid.v4.b32.b128 {{%r1, %r2, %r3, _}}, %q1;",
    f"{QUERY}.get_first_ctaid.v4.b32.b128 {{%r1, _, %r3, _}}, %q1;",
    f"{QUERY}.get_first_ctaid.v4.b32.b128 {{%r1, %r2, %r3, %r4}}, %q1;",
    f"{QUERY}.get_first_ctaid.v4.b32.b128 {{%r1, %r2, %r3}}, %q1;",
    f"{QUERY}.get_first_ctaid.b32.b128 %r1, %q1;",
    f"{QUERY}.get_first_ctaid.v2.b32.b128 {{%r1, %r2}}, %q1;",
    *(f"{QUERY}.get_first_ctaid::{axis}.b32.b128 %r1, %q1;" for axis in "xyzw"),
    f"{QUERY}.get_first_ctaid::x.b32.b128 %d1, %q1;",
    f"{QUERY}.get_first_ctaid::x.v4.b32.b128 {{%r1, %r2, %r3, _}}, %q1;",
]


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there is a ptxas")
@pytest.mark.parametrize("target", ["sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120f"])
def test_forms_are_those_of_ptxas(target: str) -> None:
    verdicts = ptxas.verdicts(FORMS, target=target, declarations=DECLARATIONS, version="9.0")
    for statement, verdict in zip(FORMS, verdicts, strict=True):
        text = f"{HEAD.replace('sm_100a', target)}.visible .entry k() {{ {DECLARATIONS}\n{statement}\n}}"
        problems = load_text(text).problems
        assert bool(problems) == (verdict is not None), (statement, verdict, problems)
