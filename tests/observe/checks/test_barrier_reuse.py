"""Phases of named barriers: kernels in which each warp comes after the phase before, and others."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.base.errors import WarpsimError
from warpsim.observe.checks.clocks import Clocks
from warpsim.observe.checks.mbarrier_checks import PhaseWaits
from warpsim.programs.launch.launching import load_text

SCHEDULES = ("program", "earliest", "latest", 1, 2, 3)
HEAD = """.version 8.7
.target sm_90a
.address_size 64
.entry k(.param .u64 flags) {
.reg .b32 %r<9>, %warp, %round, %mine, %next; .reg .b64 %flags; .reg .pred %w<4>, %p, %first;
.shared .align 128 .b8 a[128]; .shared .align 8 .b64 full;
mov.u32 %r1, %tid.x; shr.u32 %warp, %r1, 5; mov.u32 %round, 0; ld.param.u64 %flags, [flags];
setp.eq.u32 %w0, %warp, 0; setp.eq.u32 %w1, %warp, 1; setp.eq.u32 %w2, %warp, 2;
setp.eq.u32 %first, %r1, 0; setp.lt.u32 %p, %warp, 2;
@%first mbarrier.init.shared.b64 [full], 32;
bar.sync 0;
"""
AROUND = "add.u32 %round, %round, 1; setp.lt.u32 %p, %round, 3; @%p bra AGAIN;"
TURN = "add.u32 %mine, %warp, 1; xor.b32 %next, %warp, 1; add.u32 %next, %next, 1;"
KEPT = {
    "a barrier of all": (2, f"AGAIN: bar.sync 1, 64; {AROUND}"),
    "producer and consumer": (
        2,
        f"""AGAIN: @%w0 bra CONSUMER;
bar.sync 2, 64; bar.arrive 1, 64; bra ON;
CONSUMER: bar.arrive 2, 64; bar.sync 1, 64;
ON: {AROUND}""",
    ),
    "two that take turns": (
        2,
        f"{TURN} @%w1 bar.arrive 1, 64;\nAGAIN: bar.sync %mine, 64; bar.arrive %next, 64; {AROUND}",
    ),
    "three that take turns, each tells both others": (
        3,
        f"""@%w1 bar.arrive 1, 96; @%w2 bar.arrive 1, 96; @%w2 bar.arrive 2, 96;
add.u32 %mine, %warp, 1; rem.u32 %next, %mine, 3; add.u32 %r2, %next, 1; rem.u32 %r3, %r2, 3;
add.u32 %next, %next, 1; add.u32 %r3, %r3, 1;
AGAIN: bar.sync %mine, 96; bar.arrive %next, 96; bar.arrive %r3, 96; {AROUND}""",
    ),
    "one barrier, whole warps each by itself": (3, f"AGAIN: bar.sync 1, 32; {AROUND}"),
    "barriers of their own": (2, f"add.u32 %mine, %warp, 3; AGAIN: bar.sync %mine, 32; {AROUND}"),
    "one barrier, two pairs, a barrier of all in between": (
        3,
        "@%w2 bra LAST; bar.sync 1, 64; LAST: bar.sync 0; @%w0 bra ON; bar.sync 1, 64; ON:",
    ),
    "one barrier, two pairs, an mbarrier in between": (
        3,
        """@%w2 bra LAST; bar.sync 1, 64; @%w0 mbarrier.arrive.shared.b64 _, [full];
@%w0 bra ON; bra PAIR;
LAST: mbarrier.try_wait.parity.shared.b64 %p, [full], 0; @!%p bra LAST;
PAIR: bar.sync 1, 64; ON:""",
    ),
    "one barrier, two pairs, a flag in between": (
        3,
        """@%w2 bra LAST; bar.sync 1, 64; st.relaxed.gpu.global.b32 [%flags], 1;
@%w0 bra ON; bra PAIR;
LAST: ld.relaxed.gpu.global.b32 %r2, [%flags]; setp.eq.u32 %p, %r2, 0; @%p bra LAST;
PAIR: bar.sync 1, 64; ON:""",
    ),
}
BROKEN = {  # the warps, a kernel, and the lines of which one may come to the phase of another
    "two groups share a barrier": (4, "@%p bar.sync 1, 64;\n@!%p bar.sync 1, 64;", range(12, 14)),
    "a producer does not wait": (
        2,
        """@%w0 bra CONSUMER;
bar.arrive 1, 64;
bar.arrive 1, 64; bra ON;
CONSUMER: bar.sync 1, 64;
bar.sync 1, 64; ON:""",
        range(13, 17),
    ),
    "the second pair does not wait for the first": (
        3,
        "@%w2 bra LAST;\nbar.sync 1, 64;\nLAST: @%w0 bra ON;\nbar.sync 1, 64; ON:",
        range(13, 16),
    ),
}


def found(warps: int, body: str, schedule: str | int) -> list[tuple[str, int, int, str]]:
    """Kind and lines of what is found, before an error, too, and the message."""
    module, flags = load_text(f"{HEAD}{body}\nret;\n}}\n", "k.ptx"), np.zeros(1, np.uint32)
    try:
        hazards = module["k"](1, 32 * warps, [flags], schedule=schedule, checks="warn").hazards
    except WarpsimError as error:
        hazards = error.earlier
    lines = ((one, one.location.line, one.other.line if one.other else 0) for one in hazards)
    return [(one.kind, line, other, str(one)) for one, line, other in lines if one.severity == "error"]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, schedule: str | int) -> None:
    assert found(*KEPT[name], schedule) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str, schedule: str | int) -> None:
    warps, body, lines = BROKEN[name]
    said = found(warps, body, schedule)
    assert {kind for kind, *_ in said} == {"barrier reuse"}
    assert {line for _, *both, _ in said for line in both} <= set(lines)


def test_words() -> None:
    warps, body, _ = BROKEN["two groups share a barrier"]
    ((*_, said),) = found(warps, body, "program")
    assert said.split("\n") == [
        "k.ptx:13:6: error: bar.sync comes to barrier 1 in the phase after that to which warp 0 comes by "
        "bar.sync of line 12, but nothing says that warp 0 has come: this warp may be counted there "
        "instead, and others go on without warp 0; give one of the two another barrier, or put a wait for "
        "something that warp 0 does behind line 12 before line 13 [CTA (0, 0, 0), warp 2, lane 0]",
        "    @!%p bar.sync 1, 64;",
        "         ^~~~~~~~",
        "k.ptx:12:5: note: the phase before",
        "    @%p bar.sync 1, 64;",
        "        ^~~~~~~~",
    ]


def test_a_warp_that_waits_for_the_phase_before_is_overrun() -> None:
    """Warp 0 has seen the end of phase 1 at its time 1; phase 2 ends with or without knowledge of that."""
    clocks, waits = Clocks(2, 2), PhaseWaits()
    waits.seen(clocks, 64, 1, np.array([0]), 7)
    ((warp, wait),) = waits.overrun(64, 2, np.array([0, 9], np.int32), clocks)
    assert (warp, wait.phase, wait.pc) == (0, 1, 7)
    assert not list(waits.overrun(64, 2, np.array([1, 0], np.int32), clocks))
    assert not list(waits.overrun(64, 3, np.array([0, 0], np.int32), clocks))
    assert not list(waits.overrun(72, 2, np.array([0, 0], np.int32), clocks))
