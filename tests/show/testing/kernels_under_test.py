"""A file of tests as users write it, and the kernels that it tests; test_plugin.py runs it."""

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

REVERSED = """
.visible .entry reversed(.param .u64 x)
{
    .reg .b32 %r<4>; .reg .b64 %rd<2>;
    .shared .b32 tile[64];
    ld.param.u64 %rd0, [x];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd0, %rd0, %rd1;
    ld.global.u32 %r1, [%rd0];
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r0, 4, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    xor.b32 %r3, %r0, 63;
    mad.lo.u32 %r3, %r3, 4, %r2;
    ld.shared.u32 %r1, [%r3];
    st.global.u32 [%rd0], %r1;
    ret;
}
"""
RIGHT = HEAD + REVERSED
RACE = RIGHT.replace("    bar.sync 0;\n", "")
UNWRITTEN = RIGHT.replace("    st.shared.u32 [%r3], %r1;\n", "")

ORDERED = (
    HEAD
    + """
.visible .entry last(.param .u64 x)
{
    .reg .b32 %r<2>; .reg .b64 %rd<1>; .reg .pred %p<1>;
    ld.param.u64 %rd0, [x];
    mov.u32 %r1, %ctaid.x;
    atom.global.exch.b32 %r0, [%rd0], %r1;
    ret;
}
"""
)

TESTS = """
import numpy as np
import pytest


def reverse(simulator, file):
    x = np.arange(64, dtype=np.uint32)
    simulator.launch(simulator.load(file)["reversed"], 1, 64, [x])
    return x


@pytest.mark.chips("sm_80", "sm_90a")
def test_right(simulator):
    assert simulator.load("right.ptx").target == simulator.chip
    simulator.assert_equal(reverse(simulator, "right.ptx"), np.arange(64, dtype=np.uint32)[::-1])


def test_race(simulator):
    reverse(simulator, "race.ptx")


def test_unwritten(simulator):
    reverse(simulator, "unwritten.ptx")


@pytest.mark.findings("error")
def test_unwritten_is_allowed(simulator):
    reverse(simulator, "unwritten.ptx")


def test_wrong(simulator):
    expected = np.arange(63, -1, -1, dtype=np.uint32)
    expected[8:16] += 1
    simulator.assert_equal(reverse(simulator, "right.ptx"), expected)


@pytest.mark.schedules(1)
def test_order(simulator):
    x = np.zeros(1, np.uint32)
    simulator.launch(simulator.load("ordered.ptx")["last"], 4, 32, [x])


def test_order_of_one_launch(simulator):
    x = np.zeros(1, np.uint32)
    simulator.launch(simulator.load("ordered.ptx")["last"], 4, 32, [x], schedules=0)


def test_arguments(simulator):
    simulator.launch(simulator.load("right.ptx")["reversed"], 1, 64, [])


def test_file(simulator):
    simulator.load("nowhere.ptx")


def test_without_kernels():
    pass
"""
