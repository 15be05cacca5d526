"""Loops that wait for what nobody will write end in an error; those that may end go on; chains are quick."""

from __future__ import annotations

import time
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.base.errors import Fault
from warpsim.machine.run.livelock import _state, waiting_loops
from warpsim.machine.run.schedules import Schedule
from warpsim.machine.state.lanes import Lanes
from warpsim.programs.launch.launching import load_text

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = ".reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<9>;"
# Each CTA waits for the one before it, and adds one to what that has written; the CTA `hole` writes nothing.
CHAIN = f"""{HEAD}.visible .entry k(.param .u64 flags, .param .u32 backward, .param .u32 hole) {{
{REGISTERS}
ld.param.u64 %d1, [flags];
ld.param.u32 %r9, [backward];
ld.param.u32 %r10, [hole];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %nctaid.x;
sub.u32 %r3, %r2, %r1;
sub.u32 %r3, %r3, 1;
setp.ne.u32 %p1, %r9, 0;
selp.u32 %r1, %r3, %r1, %p1;
mul.wide.u32 %d2, %r1, 4;
add.u64 %d3, %d1, %d2;
mov.u32 %r5, 1;
setp.eq.u32 %p2, %r1, 0;
@%p2 bra DONE;
WAIT:
ld.acquire.gpu.global.u32 %r4, [%d3+-4];
setp.eq.u32 %p3, %r4, 0;
@%p3 bra WAIT;
add.u32 %r5, %r4, 1;
DONE:
setp.eq.u32 %p4, %r1, %r10;
@%p4 ret;
mov.u32 %r6, %tid.x;
setp.ne.u32 %p5, %r6, 0;
@%p5 ret;
st.release.gpu.global.u32 [%d3], %r5;
ret; }}"""
NOBODY = np.uint32(1 << 31)


def kernel(body: str) -> str:
    """A kernel with one buffer, whose address is in %d1."""
    return (
        f"{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS}\nld.param.u64 %d1, [out];\n{body}\nret; }}"
    )


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize(("schedule", "ctas"), [("program", 40), (5, 6)])
def test_a_chain_of_ctas_is_quick(backward: int, schedule: str | int, ctas: int) -> None:
    flags = np.zeros(ctas, np.uint32)
    began = time.process_time()
    load_text(CHAIN)["k"](ctas, 256, [flags, np.uint32(backward), NOBODY], schedule=schedule)
    assert flags.tolist() == list(range(1, ctas + 1))
    assert (
        time.process_time() - began < 10
    )  # a tenth of a second; minutes where lanes wait for each other long


def test_who_waits_for_a_value_that_never_comes() -> None:
    flags = np.zeros(40, np.uint32)
    with pytest.raises(Fault) as raised:
        load_text(CHAIN)["k"](40, 256, [flags, np.uint32(0), np.uint32(30)])
    message = raised.value.message
    assert message.startswith(
        "deadlock: no lane can continue, and none is left to write what they wait for: "
        "CTA (31, 0, 0), warp 0, lane 0 and 255 more: ld.acquire.gpu.global.u32 at line 21 reads 0 at byte "
        "120 of the "
    )
    assert "CTA (34, 0, 0)" in message
    assert message.endswith("; and 5 more")
    assert raised.value.location is not None
    assert raised.value.location.line == 21


LOCK = "WAIT: atom.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT;"


def test_a_lock_that_is_never_given_back() -> None:
    """The first lane takes it; the others of its warp wait."""
    with pytest.raises(Fault, match=r"lane 1 and 62 more: atom.cas.b32 at line 6 reads 1 at byte 0 of the"):
        load_text(kernel(LOCK))["k"](1, 64, [np.zeros(1, np.uint32)])


def test_a_lock_that_is_given_back() -> None:
    text = kernel(
        f"{LOCK} ld.volatile.global.u32 %r2, [%d1+4]; add.u32 %r2, %r2, 1; "
        "st.volatile.global.u32 [%d1+4], %r2; membar.gl; st.volatile.global.u32 [%d1], 0;"
    )
    found = np.zeros(2, np.uint32)
    load_text(text)["k"](3, 64, [found])
    assert found.tolist() == [0, 192]


def test_a_loop_that_counts_may_end() -> None:
    body = """mov.u32 %r2, 0;
WAIT: ld.volatile.global.u32 %r1, [%d1];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p1, %r2, 2000;
setp.eq.and.u32 %p2, %r1, 0, %p1;
@%p2 bra WAIT;
st.global.u32 [%d1+4], %r2;"""
    found = np.zeros(2, np.uint32)
    load_text(kernel(body))["k"](1, 1, [found])
    assert found.tolist() == [0, 2000]


def test_a_loop_that_looks_at_a_clock_may_end() -> None:
    body = """mov.u32 %r3, %clock;
WAIT: ld.volatile.global.u32 %r1, [%d1];
mov.u32 %r2, %clock;
sub.u32 %r2, %r2, %r3;
setp.lt.u32 %p1, %r2, 8000;
@%p1 bra WAIT;
st.global.u32 [%d1+4], 1;"""
    found = np.zeros(2, np.uint32)
    load_text(kernel(body))["k"](2, 32, [found])
    assert found.tolist() == [0, 1]


def test_a_flag_in_shared_memory() -> None:
    body = """.shared .u32 flag;
mov.u32 %r4, %tid.x; setp.ge.u32 %p2, %r4, 32;
@!%p2 bra WAIT;
bar.sync 0;
ret;
WAIT: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT;"""
    with pytest.raises(
        Fault, match=r"\(32 more lanes wait at barriers\): .* reads 0 at 0x0 of shared memory"
    ):
        load_text(kernel(body))["k"](1, 64, [np.zeros(1, np.uint32)], checks="off")


@pytest.mark.parametrize("schedule", ["program", "latest", "random:1"])
def test_ctas_that_meet_in_the_loop_of_a_semaphore_wait(schedule: str) -> None:
    """CUTLASS's split-k: thread 0 reads the semaphore, and all vote with bar.red whether to go on."""
    body = """mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, 0; mov.u32 %r5, 0;
setp.eq.u32 %p1, %r2, 0;
WAIT: @%p1 ld.acquire.gpu.global.u32 %r3, [%d1];
setp.ne.u32 %p2, %r3, %r1;
bar.red.and.pred %p3, 0, %p2;
@%p3 bra WAIT;
@%p1 ld.global.u32 %r4, [%d1+4];
@%p1 add.u32 %r4, %r4, 1;
@%p1 st.global.u32 [%d1+4], %r4;
WORK: add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 50; @%p4 bra WORK;
bar.sync 0;
add.u32 %r1, %r1, 1;
@%p1 st.release.gpu.global.u32 [%d1], %r1;"""
    found = np.zeros(2, np.uint32)
    report = load_text(kernel(body))["k"](4, 64, [found], schedule=schedule)
    assert found.tolist() == [4, 4]
    assert report.fidelity.counts["exact"] < 1200  # 6,782 where lanes go round until their turn is over


def test_which_loops_wait() -> None:
    body = """mov.u32 %r2, 0;
SUM: ld.global.u32 %r1, [%d1]; add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, 5; @%p1 bra SUM;
SPIN: ld.relaxed.gpu.global.u32 %r1, [%d1]; setp.lt.u32 %p1, %r1, 5; @%p1 bra SPIN;
WORK: ld.relaxed.gpu.global.u32 %r1, [%d1]; st.global.u32 [%d1], %r1; setp.lt.u32 %p1, %r1, 5; @%p1 bra WORK;
SLEEP: nanosleep.u32 20; @%p1 bra SLEEP;
MEET: ld.acquire.gpu.global.u32 %r1, [%d1]; bar.sync 0; setp.lt.u32 %p1, %r1, 5; @%p1 bra MEET;
TELL: ld.acquire.gpu.global.u32 %r1, [%d1]; bar.arrive 0, 64; setp.lt.u32 %p1, %r1, 5; @%p1 bra TELL;"""
    code = warpsim.load(kernel(body)).module.entry("k").code
    lines = {code[pc].statement.location().line for pc in waiting_loops(code)}
    assert lines == {8, 10, 11}


@pytest.mark.parametrize("schedule", ["program", "earliest", "latest", "random:1"])
@pytest.mark.parametrize(("grid", "block"), [(1, 64), (64, 128)])
def test_a_livelock_is_found_under_every_schedule(grid: int, block: int, schedule: str) -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
 .reg .b64 %d; .reg .b32 %r; .reg .pred %p;
 ld.param.u64 %d, [p];
L: ld.acquire.gpu.global.u32 %r, [%d]; setp.ne.u32 %p, %r, 7; @%p bra L;
 ret; }"""
    with pytest.raises(Fault, match="none is left to write what they wait for"):
        load_text(text)["k"](grid, block, [np.zeros(4, np.uint32)], schedule=schedule)


# --- loops of which nothing is known ---------------------------------------------------------------

COUNTING = f"""{HEAD}.visible .entry k() {{
{REGISTERS}
L:
add.u32 %r1, %r1, 1;
bra L;
}}
"""


@pytest.mark.parametrize(
    ("grid", "schedule", "who"),
    [
        (1, "program", r"CTA \(0, 0, 0\), warp 0, lane 0 at line 7"),
        (2**31 - 1, "program", r"CTA \(\d+, 0, 0\), warp 0, lane 0 and 127 more at line 7"),
        (2**31 - 1, "random:3", r"CTA \(\d+, 0, 0\), warp 0, lane 0 and \d+ more at line 7"),
    ],
)
def test_a_kernel_that_does_not_end(grid: int, schedule: str, who: str) -> None:
    """Nothing of the size of the grid is made."""
    text = "not ended after 10,000 statements of the launch: " + who + "; line 7, add.u32, was executed"
    with pytest.raises(Fault, match=text) as caught:
        load_text(COUNTING)["k"](grid, 1, schedule=schedule, most_statements=10_000)
    assert str(caught.value.location).endswith(":7:1")


def test_each_wave_may_execute_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpsim.machine.run.execute.OF_A_WAVE", 5_000)
    with pytest.raises(Fault, match=r"after 5,000 statements of CTAs .* executed 2,\d{3} "):
        load_text(COUNTING)["k"](1, 32)
    module = load_text(COUNTING.replace("bra L", "setp.lt.u32 %p1, %r1, 1000;\n@%p1 bra L"))
    module["k"](500, 1024)
    with pytest.raises(Fault, match="after 20,000 statements of the launch"):
        module["k"](500, 1024, most_statements=20_000)


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "9"])
def test_an_allowance_is_a_positive_integer(most: object) -> None:
    with pytest.raises(
        warpsim.WarpsimError, match=f"most_statements={most!r}: expected a positive integer, or None"
    ):
        load_text(COUNTING)["k"](1, 1, most_statements=most)  # type: ignore[arg-type]


def test_seeds_shuffle_grids_of_any_size() -> None:
    few = list(range(1000))
    Random(3).shuffle(few)
    order = Schedule(3).ctas(1000)
    assert order[:] == few
    assert order[10:20] == few[10:20]
    assert sorted(Schedule(3).ctas((1 << 17) + 500)[1 << 17 :]) == [*range(1 << 17, (1 << 17) + 500)]


def test_states_are_places_calls_lanes_registers_and_memories() -> None:
    """Whatever decides how waves go on makes another state; nothing else does."""

    def state(**changed: Any) -> bytes:
        known: dict[str, Any] = {
            "pc": 3,
            "depth": 0,
            "lanes": [1, 1],
            "register": 5,
            "shared": 0,
            "global_": 0,
        }
        known |= changed
        value = np.full(2, known["register"], np.uint32)
        frame = SimpleNamespace(depth=known["depth"], values=[None, value], caller=None)
        path = SimpleNamespace(pc=known["pc"], frame=frame, lanes=Lanes(np.array(known["lanes"], np.bool_)))
        memories = SimpleNamespace(
            device=SimpleNamespace(data=np.full(4, known["global_"], np.uint8)),
            shared=np.full(4, known["shared"], np.uint8),
            local=np.zeros(4, np.uint8),
        )
        scheduler = SimpleNamespace(paths=[path], waiting=[])
        wave: Any = SimpleNamespace(memories=memories, scheduler=scheduler)
        return _state([wave])

    assert state() == state()
    others = {"pc": 4, "depth": 1, "lanes": [1, 0], "register": 6, "shared": 1, "global_": 1}
    assert len({state(), *(state(**{name: value}) for name, value in others.items())}) == 7
