"""Calls that are looked at, copies in flight, the lane of a fault, and names that are checked early."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import warpsim
from tests.show.debugger.small_kernel import line, session
from warpsim import OperandError
from warpsim.show.debugger import Session

COPIES = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)
{
    .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .pred %p<2>;
    .shared .align 16 .b32 tile[96];
    ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    cp.async.ca.shared.global [%r3], [%rd4], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r3+128], [%rd4+128], 4;
    cp.async.commit_group;
    cp.async.wait_group 1;
    ld.shared.u32 %r4, [%r3];
    setp.eq.u32 %p1, %r1, 37;
    add.u64 %rd5, %rd2, %rd3;
    @%p1 add.u64 %rd5, %rd5, 4096;
    st.global.u32 [%rd5], %r4;
    ret;
}
"""


@pytest.fixture
def debugged() -> Iterator[Session]:
    with session() as found:
        yield found


@pytest.fixture
def copying() -> Iterator[Session]:
    """A session of two groups of copies, in which lane 37 stores outside."""
    kernel = warpsim.load(COPIES)["k"]
    given = np.arange(128, dtype=np.uint32) + 100
    with Session(kernel, 1, 64, [given, np.zeros(64, np.uint32)], checks="off") as found:
        yield found


def test_calls_are_looked_at(debugged: Session) -> None:
    debugged.do("break twice")
    debugged.do("run")
    assert "%r3" not in debugged.do("info locals")
    assert debugged.do("up").startswith("#1 k at ")
    assert debugged.value("%r3") == 0
    assert "%r3" in debugged.do("info locals")
    assert debugged.do("backtrace").splitlines()[1].startswith("#1* k at ")
    assert f"=> {line('call (b), twice, (a);'):>5}" in debugged.do("list")
    with pytest.raises(OperandError, match="no call above this"):
        debugged.do("up")
    assert debugged.do("down").startswith("#0 twice at ")
    debugged.do("frame 1")
    debugged.do("stepi")
    assert debugged.level() == 0
    with pytest.raises(OperandError, match="frame 2: expected a number of backtrace, from 0 to 1"):
        debugged.do("frame 2")


def test_copies_in_flight_are_listed_and_named_as_writers(copying: Session) -> None:
    copying.do("break mnemonic ld.shared")
    copying.do("run")
    flying = copying.do("info async")
    assert flying.startswith("cp.async of CTA (0, 0, 0), warp 0, lane 0 and 63 more, issued at ")
    assert flying.endswith(":13, group 1 of cp.async, 4 bytes a lane, to shared 0x80 to 0x17f")
    copying.do("watch u32 tile+8")
    stop = copying.do("reverse-continue")
    assert "after:  102" in stop
    assert "warp 0, lane 2: a cp.async issued at " in stop
    assert ":11, which completes here" in stop


def test_the_lane_of_a_fault_is_looked_at(copying: Session) -> None:
    stop = copying.do("run")
    assert "warp 1, lane 5]" in stop
    assert (copying.focus.warp, copying.focus.lane) == (1, 5)
    assert copying.value("%r1") == 37
    copying.do("reverse-stepi")
    assert copying.focus.lane == 5


def test_elements_of_arrays_and_names_of_cuda(debugged: Session) -> None:
    debugged.do("break mnemonic st.global if threadIdx.x == 7")
    debugged.do("run")
    assert debugged.value("threadIdx.x") == 7
    assert debugged.value("blockDim.x") == 64
    assert debugged.value("arg0[7]") == 0
    debugged.do("stepi")
    assert debugged.value("arg0[threadIdx.x]") == debugged.value("%f1")
    assert debugged.value("arg0[64]") is None


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("break k if lan == 5", "nothing is named lan there; near to it are lane"),
        ("break k if %r77 == 5", "nothing is named %r77 there"),
        ("break k if arg5 == 5", "nothing is named arg5 there"),
        ("info b", "info b may be breakpoints, barriers"),
        ("print cells[3]", r"a word of memory is read by space and address in bytes, as in shared.f32\["),
        ("print arg0[1,2]", r"arg0 has the shape \(64,\): expected 1 numbers in brackets"),
        ("print arg0[1", "']' is missing"),
        ("print arg1[0]", "arg1 is not an array; arrays are arg0"),
        ("print tile cells as f16 99999x99999", "bytes, at most 1048576 are printed"),
        ("backtrace full", "backtrace takes nothing: full"),
    ],
)
def test_what_is_wrong_is_said_at_once(debugged: Session, command: str, message: str) -> None:
    debugged.do("start")
    with pytest.raises(OperandError, match=message):
        debugged.do(command)
    assert not debugged.breakpoints


def test_a_condition_is_known_in_one_of_its_places(debugged: Session) -> None:
    """%t1 is a register of the function only, where a call of it stops too."""
    debugged.do("break mnemonic st.param if %t1 > 3")
    with pytest.raises(OperandError, match="nothing is named %t1 here"):
        debugged.do("run")
