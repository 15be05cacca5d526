"""Whole kernels: PTX written by hand, launched on arrays, compared bit by bit; and what errors say."""

from __future__ import annotations

import ctypes
import pickle
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import warpsim
from warpsim.machine import grid as grid_module

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = """
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<16>; .reg .f64 %d<4>;
"""
INDEX = """
mov.u32 %r20, %tid.x; mov.u32 %r21, %ctaid.x; mov.u32 %r22, %ntid.x; mad.lo.u32 %r0, %r21, %r22, %r20;
ld.param.u64 %rd0, [out]; cvta.to.global.u64 %rd0, %rd0; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
"""


def text(body, parameters=".param .u64 out", before="", tuning=""):
    """A kernel ``k``; %r0 is the number of the thread in the grid, %rd0 the array and %rd1 its own word."""
    index = INDEX if "out" in parameters else ""
    return (
        f"{HEADER}{before}\n.visible .entry k({parameters}) {tuning}\n{{{REGISTERS}{index}{body}\nret;\n}}\n"
    )


def launch(body, grid=1, block=32, args=None, size=None, *, before="", tuning="", **options):
    """The words that a kernel leaves in its first array."""
    out = np.zeros(np.prod(grid) * np.prod(block) if size is None else size, np.uint32)
    arguments = [out, *(args or [])]
    extra = "".join(f", .param .u64 p{number}" for number in range(1, len(arguments)))
    kernel = warpsim.load(text(body, f".param .u64 out{extra}", before, tuning))["k"]
    kernel(grid, block, arguments, **options)
    return out


def words(*values):
    return np.array(values, np.uint32)


# --- control flow ----------------------------------------------------------------------------------


def test_a_loop_of_another_length_in_every_lane():
    body = """
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    L: setp.ge.u32 %p1, %r2, %r0; @%p1 bra DONE;
    add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; bra L;
    DONE: st.global.u32 [%rd1], %r1;
    """
    n = np.arange(128, dtype=np.uint32)
    assert np.array_equal(launch(body, 2, 64), n * (n - 1) // 2)


def test_lanes_that_part_and_meet():
    body = """
    and.b32 %r1, %r0, 3; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 1;
    @%p1 bra A; @%p2 bra B; mov.u32 %r2, 7; bra C;
    A: mov.u32 %r2, 5; bra C;
    B: mov.u32 %r2, 6;
    C: mul.lo.u32 %r2, %r2, 10; st.global.u32 [%rd1], %r2;
    """
    assert np.array_equal(launch(body, 1, 8), words(50, 60, 70, 70, 50, 60, 70, 70))


FACTORIAL = """
.func (.param .b32 result) factorial(.param .b32 n)
{
    .reg .pred %p; .reg .b32 %a, %b, %c;
    ld.param.u32 %a, [n];
    setp.gt.u32 %p, %a, 1; @%p bra MORE;
    st.param.b32 [result], 1; ret;
    MORE: sub.u32 %b, %a, 1;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %b; call (y), factorial, (x); ld.param.b32 %c, [y]; }
    mul.lo.u32 %c, %c, %a;
    st.param.b32 [result], %c;
}
"""
CALL = """
{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r0; call (y), NAME, (x); ld.param.b32 %r1, [y]; }
st.global.u32 [%rd1], %r1;
"""


def test_a_recursive_function_of_another_depth_in_every_lane():
    found = launch(CALL.replace("NAME", "factorial"), 1, 13, before=FACTORIAL)
    assert np.array_equal(found, np.cumprod([1, *range(1, 13)], dtype=np.uint64).astype(np.uint32))


def test_a_function_that_comes_after_its_kernel_and_has_registers_of_its_own():
    body = "mov.u32 %r5, 77;" + CALL.replace("NAME", "twice").replace("st.global.u32 [%rd1], %r1;", "")
    body += "add.u32 %r1, %r1, %r5; st.global.u32 [%rd1], %r1;"
    declared = ".func (.param .b32 y) twice(.param .b32 x);"
    after = """
    .func (.param .b32 y) twice(.param .b32 x) {
    .reg .b32 %r<9>; ld.param.b32 %r5, [x]; add.u32 %r5, %r5, %r5; st.param.b32 [y], %r5; ret; }
    """
    out = np.zeros(4, np.uint32)
    warpsim.load(text(body, before=declared) + after)["k"](1, 4, [out])
    assert np.array_equal(out, words(77, 79, 81, 83))


def test_a_call_through_an_address():
    body = """
    mov.u64 %rd5, factorial;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %r0; call (y), %rd5, (x), proto;
    ld.param.b32 %r1, [y]; }
    st.global.u32 [%rd1], %r1;
    """
    body = "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n" + body
    assert np.array_equal(launch(body, 1, 5, before=FACTORIAL), words(1, 1, 2, 6, 24))


def test_brx_idx():
    body = """
    rem.u32 %r1, %r0, 3;
    table: .branchtargets ZERO, ONE, TWO;
    brx.idx %r1, table;
    ZERO: mov.u32 %r2, 100; bra END;
    ONE: mov.u32 %r2, 200; bra END;
    TWO: mov.u32 %r2, 300;
    END: st.global.u32 [%rd1], %r2;
    """
    assert np.array_equal(launch(body, 1, 5), words(100, 200, 300, 100, 200))
    with pytest.raises(warpsim.Fault, match=r"brx.idx with index 3, but the table has 3 targets"):
        launch(body.replace("rem.u32 %r1, %r0, 3", "mov.u32 %r1, %r0"), 1, 5)
    with pytest.raises(
        warpsim.IllegalInstruction, match="the table table names NONE, which is not a label here"
    ):
        launch(body.replace("ONE, TWO", "NONE, TWO"), 1, 5)


def test_an_early_exit_does_not_hold_a_barrier():
    body = """
    .shared .b32 cell[4];
    setp.ge.u32 %p1, %r0, 40; @%p1 exit;
    setp.ne.u32 %p2, %r20, 0; @%p2 bra W; st.shared.u32 [cell], 9;
    W: bar.sync 0; ld.shared.u32 %r1, [cell]; st.global.u32 [%rd1], %r1;
    """
    assert np.array_equal(launch(body, 1, 64), np.where(np.arange(64) < 40, 9, 0).astype(np.uint32))


# --- grids and blocks ------------------------------------------------------------------------------

PLACES = """
mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;
mov.u32 %r7, %ntid.x; mov.u32 %r8, %ntid.y; mov.u32 %r9, %ntid.z;
mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y;
mad.lo.u32 %r12, %r3, %r8, %r2; mad.lo.u32 %r12, %r12, %r7, %r1;
mad.lo.u32 %r13, %r6, %r11, %r5; mad.lo.u32 %r13, %r13, %r10, %r4;
mul.lo.u32 %r14, %r7, %r8; mul.lo.u32 %r14, %r14, %r9; mad.lo.u32 %r15, %r13, %r14, %r12;
mul.wide.u32 %rd1, %r15, 4; add.u64 %rd1, %rd0, %rd1;
mad.lo.u32 %r16, %r13, 10000, %r12; st.global.u32 [%rd1], %r16;
"""


@pytest.mark.parametrize("schedule", ["program", 0, "random:7"])
@pytest.mark.parametrize(
    ("grid", "block"),
    [(1, 1), (3, 33), ((2, 3), (5, 7)), ((2, 3, 4), (3, 2, 5)), ((1, 1, 2), 1000), (70, 32)],
)
def test_grids_and_ragged_blocks(grid, block, schedule):
    ctas, threads = np.prod(grid), np.prod(block)
    expected = (np.arange(ctas)[:, None] * 10000 + np.arange(threads)).ravel()
    assert np.array_equal(launch(PLACES, grid, block, schedule=schedule), expected.astype(np.uint32))


@pytest.mark.parametrize(
    ("grid", "block", "options", "message"),
    [
        (0, 1, {}, "grid (0, 1, 1): x is 1 to 2147483647"),
        ((1, 70000), 1, {}, "grid (1, 70000, 1): y is 1 to 65535"),
        ((1, 1, 1, 1), 1, {}, "grid (1, 1, 1, 1): expected one to three integers"),
        ("4", 1, {}, "grid '4': expected one to three integers"),
        (1, 1.5, {}, "block 1.5: expected one to three integers"),
        (1, (32, 64), {}, "block (32, 64, 1) has 2048 threads: at most 1024 on sm_80"),
        (1, 65, {}, "block (65, 1, 1) has 65 threads: the kernel says .maxntid 64"),
        (1, 1, {"shared_bytes": -1}, "shared_bytes=-1: expected an integer, at least 0"),
        (
            1,
            1,
            {"shared_bytes": 1 << 20},
            "1048576 bytes of shared memory (0 static, 1048576 dynamic): a CTA on sm_80 has at most 166912",
        ),
        (2, 1, {"cluster": 2}, "a cluster of 2 x 1 x 1 CTAs: clusters need sm_90 or higher, not sm_80"),
        (
            1,
            1,
            {"schedule": "fast"},
            "schedule='fast': expected 'program', 'earliest', 'latest', an integer or 'random:SEED'",
        ),
        (1, 1, {"checks": "some"}, "checks='some': expected 'error', 'warn' or 'off'"),
        (1, 1, {"device": 0}, "device=0: expected a warpsim.Device"),
    ],
)
def test_what_a_launch_refuses(grid, block, options, message):
    with pytest.raises(warpsim.WarpsimError) as caught:
        launch("", grid, block, size=1, tuning=".maxntid 64, 1, 1", **options)
    assert str(caught.value) == message


def test_the_block_that_a_kernel_requires():
    kernel = warpsim.load(text("", "", tuning=".reqntid 64"))["k"]
    kernel(1, 64)
    kernel(1, 64, cluster=1)
    with pytest.raises(
        warpsim.OperandError, match=r"block \(32, 1, 1\): the kernel says .reqntid \(64, 1, 1\)"
    ):
        kernel(1, 32)


# --- memories --------------------------------------------------------------------------------------


def test_local_arrays_are_one_a_lane():
    body = """
    .local .align 4 .b32 own[8];
    mov.u64 %rd3, own; and.b32 %r1, %r0, 7; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd3, %rd4;
    st.local.u32 [%rd4], %r0; ld.local.u32 %r2, [%rd4];
    cvta.local.u64 %rd5, %rd4; ld.u32 %r3, [%rd5]; add.u32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2;
    """
    assert np.array_equal(launch(body, 2, 40), 2 * np.arange(80, dtype=np.uint32))


def test_constants_and_variables_with_initial_values():
    before = """
    .const .align 4 .b32 table[4] = {10, 0x20, -1};
    .global .align 8 .f64 half = 0d3FE0000000000000;
    .global .align 4 .u32 counter = 5;
    .global .align 2 .b8 bytes[4] = {1, 2, 3, 255};
    """
    body = """
    mov.u64 %rd3, table; add.u64 %rd3, %rd3, 4; ld.const.u32 %r1, [%rd3]; ld.const.u32 %r2, [table+8];
    ld.global.f64 %d1, [half]; cvt.rzi.u32.f64 %r3, %d1; ld.global.u32 %r4, [counter];
    ld.global.u8 %r5, [bytes+3]; ld.const.u32 %r6, [table+12];
    add.u32 %r7, %r4, 1; st.global.u32 [counter], %r7;
    st.global.u32 [%rd0], %r1; st.global.u32 [%rd0+4], %r2; st.global.u32 [%rd0+8], %r3;
    st.global.u32 [%rd0+12], %r4; st.global.u32 [%rd0+16], %r5; st.global.u32 [%rd0+20], %r6;
    """
    expected = words(0x20, 0xFFFFFFFF, 0, 5, 255, 0)
    assert np.array_equal(launch(body, 1, 1, size=6, before=before), expected)
    device, out = warpsim.Device(), np.zeros(6, np.uint32)
    kernel = warpsim.load(text(body, before=before))["k"]
    for count in (5, 6):
        kernel(1, 1, [out], device=device)
        assert out[3] == count, "variables live as long as the device"


def test_static_and_dynamic_shared_memory():
    before = ".extern .shared .align 16 .b8 dynamic[];"
    body = """
    .shared .align 4 .b8 fixed[20];
    mov.u32 %r1, fixed; mov.u32 %r2, dynamic; sub.u32 %r3, %r2, %r1;
    mul.lo.u32 %r4, %r0, 4; add.u32 %r4, %r4, %r2; st.shared.u32 [%r4], %r0; bar.warp.sync -1;
    xor.b32 %r5, %r0, 1; mul.lo.u32 %r5, %r5, 4; add.u32 %r5, %r5, %r2; ld.shared.u32 %r6, [%r5];
    mad.lo.u32 %r6, %r3, 1000, %r6; st.global.u32 [%rd1], %r6;
    """
    expected = 32000 + (np.arange(32, dtype=np.uint32) ^ 1)
    assert np.array_equal(launch(body, before=before, shared_bytes=128), expected)
    with pytest.raises(warpsim.Fault) as caught:
        launch(body, before=before, shared_bytes=124)
    assert caught.value.message == (
        "st.shared.u32: address 0x9c leaves shared memory of 156 bytes [CTA (0, 0, 0), warp 0, lane 31]"
    )


def test_atomics_free_spin_between_ctas():
    """CTA 0 waits for what the last CTA writes, which runs in another wave."""
    body = """
    setp.ne.u32 %p1, %r20, 0; @%p1 exit;
    setp.eq.u32 %p2, %r21, 0; @%p2 bra WAIT;
    mov.u32 %r1, 1; st.release.gpu.global.u32 [%rd1], %r1; ret;
    WAIT: ld.acquire.gpu.global.u32 %r2, [%rd0+64512]; setp.eq.u32 %p3, %r2, 0; @%p3 bra WAIT;
    mov.u32 %r3, 42; st.global.u32 [%rd0], %r3;
    """
    out = launch(body, 64, 256)
    assert out[0] == 42
    assert np.array_equal(out[256::256], np.ones(63, np.uint32))


def test_few_ctas_are_in_flight(monkeypatch):
    """Waves that wait for each other take turns, so many CTAs at a time and not all of the grid."""
    alive, most = [], []

    class Watched(grid_module.Allowance):
        def run(self, wave, turn):
            alive.append(wave)
            most.append(len({id(each) for each in alive if each.scheduler.paths}))
            return super().run(wave, turn)

    monkeypatch.setattr(grid_module, "Allowance", Watched)
    monkeypatch.setattr(grid_module, "IN_FLIGHT", 16)
    monkeypatch.setattr(grid_module, "LANES", 1024)
    monkeypatch.setattr(grid_module, "TURN", 64)
    body = """
    ld.volatile.global.u32 %r4, [%rd1]; mov.u32 %r2, 0;
    L: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 2000; @%p1 bra L; st.global.u32 [%rd1], %r2;
    """
    done = []
    out = launch(body, 64, 256, progress=lambda *news: done.append(news))
    assert np.array_equal(out, np.full(64 * 256, 2000, np.uint32))
    assert max(most) == 4, "four waves of four CTAs"
    assert done[-1] == (64, 64)
    assert done == sorted(done)


# --- faults ----------------------------------------------------------------------------------------


def fault_of(body, *arguments, kind=warpsim.Fault, **options):
    with pytest.raises(kind) as caught:
        launch(body, *arguments, **options)
    return caught.value


def test_out_of_bounds():
    found = fault_of("st.global.u32 [%rd1+4], %r0;", 2, 32)
    assert found.message == (
        "st.global.u32: address 0x200000000100 is in no allocation: 0 bytes past the end of out of 256 bytes "
        "at 0x200000000000 [CTA (1, 0, 0), warp 0, lane 31]"
    )
    found = fault_of("ld.global.u32 %r1, [%rd0+-4];", 1, 1)
    assert "4 bytes before out of 4 bytes at 0x200000000000" in found.message
    found = fault_of("mov.u64 %rd9, 0; ld.u32 %r1, [%rd9];", 1, 1)
    assert found.message.startswith("ld.u32: address 0x0 is in no allocation")


def test_a_variable_is_declared_once():
    with pytest.raises(warpsim.IllegalInstruction, match="cells is declared twice in this scope"):
        launch(".shared .b32 cells[4]; .shared .b64 cells;", 1, 32)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (".const .b8 big[65537];", "big has 65537 bytes, but .const has at most 65536"),
        (".const .align 3 .b8 odd[4];", "odd has alignment 3: expected a power of two, 65536 at most"),
    ],
)
def test_variables_fit_their_spaces(declaration: str, message: str):
    text = f".version 8.0\n.target sm_90\n.address_size 64\n{declaration}\n.visible .entry k() {{ ret; }}"
    (problem,) = warpsim.load(text).module.problems
    assert problem.message == message


def test_buffers_do_not_touch():
    """One past the end of a buffer is nobody's, however many bytes it has."""
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 first, .param .u64 second) {
.reg .b64 %d; ld.param.u64 %d, [first]; st.global.u32 [%d+256], 7; ret; }"""
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    with pytest.raises(
        warpsim.Fault, match="is in no allocation: 0 bytes past the end of first of 256 bytes"
    ):
        warpsim.load(text)["k"](1, 1, arrays)


def test_misaligned():
    found = fault_of("ld.global.u32 %r1, [%rd1+2];", 1, 2)
    assert found.message == (
        "ld.global.u32: address 0x200000000002 is not a multiple of 4 [CTA (0, 0, 0), warp 0, lane 0]"
    )
    assert str(found).splitlines()[1:] == ["    ld.global.u32 %r1, [%rd1+2];", "    ^~~~~~~~~~~~~"]


def test_deadlock():
    body = "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 1; bra B;\nA: bar.sync 2;\nB:"
    found = fault_of(body, 1, 64)
    assert found.message == (
        "deadlock: no lane can continue (barrier 1 has 32 of 64 threads, barrier 2 has 32 of 64 threads); "
        "waiting: "
        f"CTA (0, 0, 0), warp 1, lane 0 and 31 more at <string>:{found.location.line}:39 for barrier 1; "
        f"CTA (0, 0, 0), warp 0, lane 0 and 31 more at <string>:{found.location.line + 1}:4 for barrier 2"
    )


def test_trap():
    found = fault_of("setp.eq.u32 %p1, %r0, 5; @%p1 trap;", 1, 64)
    assert found.message == "trap [CTA (0, 0, 0), warp 0, lane 5]"


SHARED_EXCHANGE = """
.shared .align 4 .b32 cells[64];
mul.lo.u32 %r1, %r20, 4; mov.u32 %r2, cells; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;
BARRIER
xor.b32 %r3, %r20, 32; mul.lo.u32 %r3, %r3, 4; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];
st.global.u32 [%rd1], %r4;
"""


def test_a_barrier_that_is_missing():
    expected = np.arange(64, dtype=np.uint32) ^ 32
    assert np.array_equal(launch(SHARED_EXCHANGE.replace("BARRIER", "bar.sync 0;"), 1, 64), expected)
    body = SHARED_EXCHANGE.replace("BARRIER", "")
    found = fault_of(body, 1, 64, kind=warpsim.UndefinedBehavior)
    assert found.message.startswith(
        "race: ld.shared.u32 reads byte 0x80 of shared memory (cells[32]), which another warp has"
    )
    assert found.message.endswith("without a barrier in between [CTA (0, 0, 0), warp 0, lane 0]")
    out = np.zeros(64, np.uint32)
    report = warpsim.load(text(body))["k"](1, 64, [out], checks="warn")
    assert [one.kind for one in report.hazards] == ["race"]
    assert np.array_equal(out, expected), "in step, nobody overtakes"
    assert warpsim.load(text(body))["k"](1, 64, [out], checks="off").hazards == ()


def test_a_warp_does_not_race_with_itself():
    """Lane 0 writes again what it has written, lane 1 what another warp has: that one is told."""
    body = """
    .shared .align 4 .b32 cells[64];
    mul.lo.u32 %r1, %r20, 4; mov.u32 %r2, cells; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %r0;
    setp.lt.u32 %p1, %r20, LANES; mul.lo.u32 %r3, %r20, 128; add.u32 %r3, %r3, %r2;
    @%p1 st.shared.u32 [%r3], 99;
    """
    found = fault_of(body.replace("LANES", "2"), 1, 64, kind=warpsim.UndefinedBehavior)
    assert found.message.startswith(
        "race: st.shared.u32 writes byte 0x80 of shared memory (cells[32]), which another warp"
    )
    assert found.message.endswith("[CTA (0, 0, 0), warp 0, lane 1]")
    launch(body.replace("LANES", "1"), 1, 64)


def test_a_race_shows_in_another_schedule():
    """Warps that are not kept in step read what nobody has written yet, in some order or other."""
    body, expected = SHARED_EXCHANGE.replace("BARRIER", ""), np.arange(64, dtype=np.uint32) ^ 32
    found = [launch(body, 1, 64, checks="off", schedule=seed) for seed in range(4)]
    assert all((one != expected).any() for one in found)
    again = launch(body, 1, 64, checks="off", schedule="random:3")
    assert np.array_equal(again, found[3]), "a seed is an order"
    kept = SHARED_EXCHANGE.replace("BARRIER", "bar.sync 0;")
    assert all(np.array_equal(launch(kept, 1, 64, schedule=seed), expected) for seed in range(4))


def test_shared_memory_that_nobody_wrote():
    body = ".shared .b32 cell[2]; ld.shared.u32 %r1, [cell+4]; st.global.u32 [%rd1], %r1;"
    out = np.ones(1, np.uint32)
    report = warpsim.load(text(body))["k"](1, 1, [out])
    assert [one.message for one in report.hazards] == [
        "ld.shared.u32 reads 4 bytes at 0x4 of shared memory (cell[1]) that were never written "
        "[CTA (0, 0, 0), warp 0, lane 0]; with other bytes there "
        "out of 4 bytes at 0x200000000000 holds other values in 4 bytes, from byte 0 on"
    ]
    assert out[0] == 0


def test_nothing_is_written_back_after_an_error():
    body = "mov.u32 %r1, 7; st.global.u32 [%rd1], %r1; setp.eq.u32 %p1, %r0, 0; @%p1 trap;"
    out = np.zeros(32, np.uint32)
    with pytest.raises(warpsim.Fault):
        warpsim.load(text(body))["k"](1, 32, [out])
    assert not out.any()


# --- arguments -------------------------------------------------------------------------------------

DOUBLE = text(
    """
    ld.param.u64 %rd5, [in]; mul.wide.u32 %rd6, %r0, SIZE; add.u64 %rd5, %rd5, %rd6;
    add.u64 %rd7, %rd0, %rd6; ld.global.bBITS %REG1, [%rd5]; st.global.bBITS [%rd7], %REG1;
    """,
    ".param .u64 out, .param .u64 in",
)
REGISTER = {1: "h", 2: "h", 4: "r", 8: "rd2"}


def copied(target, source, count):
    """Copy so many elements on the device."""
    size = np.asarray(source).dtype.itemsize if not hasattr(source, "bits") else source.bits
    moved = DOUBLE.replace("SIZE", str(size)).replace("BITS", str(8 * size)).replace("REG", REGISTER[size])
    return warpsim.load(moved)["k"](1, count, [target, source])


@pytest.mark.parametrize(
    "dtype",
    [
        *(np.float16, np.float32, np.float64, np.int8, np.bool_, np.uint64, ml_dtypes.bfloat16),
        *(ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.float6_e2m3fn),
    ],
)
def test_arrays_of_every_dtype_keep_their_bits(dtype):
    size = np.dtype(dtype).itemsize
    codes = np.arange(256, dtype=np.uint64) * 0x0101_0101_0101_0101
    codes = codes & 1 if dtype is np.bool_ else codes
    source = codes.astype(f"u{size}").view(dtype)
    target = np.zeros(256, dtype)
    copied(target, source, 256)
    assert target.tobytes() == source.tobytes()


def test_strided_arrays_are_read_and_written_in_place():
    base = np.arange(64, dtype=np.uint32).reshape(8, 8)
    frame = np.full((8, 8), 9, np.uint32)
    copied(frame[1:5, ::2], base.T[:4, :4], 16)
    assert np.array_equal(frame[1:5, ::2], base.T[:4, :4])
    frame[1:5, ::2] = 9
    assert (frame == 9).all()
    reverse = np.zeros(4, np.uint32)
    copied(reverse[::-1], base[0, :4], 4)
    assert np.array_equal(reverse, words(3, 2, 1, 0))


def test_arrays_that_cannot_be_written_are_left_alone():
    target = np.zeros(4, np.uint32)
    target.flags.writeable = False
    copied(target, np.arange(4, dtype=np.uint32), 4)
    assert not target.any()


def test_one_array_twice_is_one_buffer():
    array = np.arange(4, dtype=np.uint32)
    body = (
        "ld.param.u64 %rd5, [p1]; sub.u64 %rd6, %rd5, %rd0; cvt.u32.u64 %r1, %rd6;\n"
        "st.global.u32 [%rd1], %r1;"
    )
    kernel = warpsim.load(text(body, ".param .u64 out, .param .u64 p1"))["k"]
    kernel(1, 4, [array, array[:]])
    assert np.array_equal(array, words(0, 0, 0, 0))
    other = np.zeros(1, np.uint32)
    kernel(1, 1, [other, np.zeros(1, np.uint32)])
    assert other[0] != 0


def test_buffers_and_places_in_them():
    device = warpsim.Device("sm_80")
    source = device.array(np.arange(8, dtype=np.uint32))
    target = device.empty(4, np.uint32)
    kernel = warpsim.load(DOUBLE.replace("SIZE", "4").replace("BITS", "32").replace("REG", "r"))["k"]
    kernel(1, 4, [target, source.at(16)])
    assert np.array_equal(target.get(), words(4, 5, 6, 7))
    assert source.at(16).address == source.address + 16
    before = len(device.memory.allocations)
    out = np.zeros(4, np.uint32)
    kernel(1, 4, [out, source], device=device)
    assert np.array_equal(out, words(0, 1, 2, 3))
    assert len(device.memory.allocations) == before, "what a launch allocates goes with it"
    with pytest.raises(warpsim.OperandError, match="offset 33: the buffer has 32 bytes"):
        source.at(33)
    with pytest.raises(
        warpsim.OperandError, match=r"parameter 1, in \(.u64, 8 bytes\): the buffer belongs to"
    ):
        kernel(1, 4, [target, warpsim.Device("sm_80").array(out)])
    with pytest.raises(warpsim.OperandError, match="the device is sm_90, but the module is loaded for sm_80"):
        kernel(1, 4, [out, out], device=warpsim.Device("sm_90"))


def test_a_buffer_of_no_dimension():
    buffer = warpsim.Device().array(np.float32(1.5))
    assert buffer.shape == ()
    assert buffer.get() == np.float32(1.5)


class Tensor:
    """What a CPU tensor of PyTorch looks like to those who never import it."""

    def __init__(self, array, name):
        self.array, self.device = array, SimpleNamespace(type="cpu")
        self.dtype = type("dtype", (), {"itemsize": array.itemsize, "__str__": lambda _: f"torch.{name}"})()
        self.bits = array.itemsize

    def detach(self):
        return self

    def view(self, dtype):
        return Tensor(self.array.view(dtype), "int")

    def numpy(self):
        return self.array


Tensor.__module__ = "torch"


def test_tensors_are_written_in_place(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", SimpleNamespace(int16=np.int16))
    codes = np.arange(8, dtype=np.uint16) * 0x1234
    source, target = Tensor(codes, "bfloat16"), Tensor(np.zeros(8, np.uint16), "bfloat16")
    copied(target, source, 8)
    assert np.array_equal(target.array, codes)


PARAMETERS = """
.param .u64 out, .param .f32 f, .param .s32 s, .param .b32 b, .param .f64 d, .param .align 8 .b8 st[12],
.param .u64 p, .param .u8 c
"""
STORE = """
ld.param.b32 %r1, [f]; st.global.b32 [%rd0], %r1; ld.param.b32 %r1, [s]; st.global.b32 [%rd0+4], %r1;
ld.param.b32 %r1, [b]; st.global.b32 [%rd0+8], %r1; ld.param.b64 %rd5, [d]; st.global.b64 [%rd0+16], %rd5;
ld.param.b32 %r1, [st+8]; st.global.b32 [%rd0+12], %r1; ld.param.b64 %rd5, [p]; st.global.b64 [%rd0+24], %rd5;
ld.param.u8 %r1, [c]; st.global.b32 [%rd0+32], %r1;
"""
GOOD = {"f": 1.5, "s": -2, "b": 3, "d": 2.5, "st": bytes(range(12)), "p": None, "c": 255}


def passed(**changed):
    out = np.zeros(10, np.uint32)
    warpsim.load(text(STORE, PARAMETERS))["k"](1, 1, [out, *{**GOOD, **changed}.values()])
    return out


def test_values():
    expected = words(0x3FC00000, 0xFFFFFFFE, 3, 0x0B0A0908, 0, 0x40040000, 0, 0, 255, 0)
    assert np.array_equal(passed(), expected)
    record = np.array((0x03020100, 0x07060504, 0x0B0A0908), [("a", "u4"), ("b", "u4"), ("c", "u4")])[()]
    structure = type("S", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_uint8 * 12)]})
    alike = {
        "f": [np.float32(1.5), np.float64(1.5), np.float16(1.5), np.array(1.5), ml_dtypes.bfloat16(1.5)],
        "s": [np.int64(-2), np.uint32(0xFFFFFFFE), 0xFFFFFFFE, np.array(-2)],
        "b": [np.uint8(3), np.array(3, np.uint32).view(np.float32)],
        "d": [np.float32(2.5), np.float64(2.5)],
        "st": [bytearray(range(12)), memoryview(bytes(range(12))), record, structure(tuple(range(12)))],
        "p": [0, np.uint64(0), bytes(8)],
        "c": [-1, np.int8(-1), np.uint8(255)],
    }
    for name, values in alike.items():
        for value in values:
            assert np.array_equal(passed(**{name: value}), expected), (name, value)
    assert passed(f=3)[0] == 0x40400000
    assert passed(b=0.5)[2] == 0x3F000000
    assert passed(b=True)[2] == 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("f", None, "1, f (.f32, 4 bytes): given None, a null pointer, but expected a number for .f32"),
        ("f", "1", "1, f (.f32, 4 bytes): expected an array, a number, bytes or None, given str"),
        ("f", bytes(2), "1, f (.f32, 4 bytes): expected 4 bytes, given 2"),
        ("f", 1j, "1, f (.f32, 4 bytes): given a complex128, but expected a number for .f32"),
        ("s", 1.5, "2, s (.s32, 4 bytes): given 1.5 of float64, but expected an integer of 32 bits"),
        ("s", 1 << 32, "2, s (.s32, 4 bytes): 4294967296 does not fit in 32 bits: "
         "-2147483648 to 4294967295 does"),
        ("b", np.float16(1), "3, b (.b32, 4 bytes): given a float16 of 2 bytes: it does not fit"),
        ("b", np.zeros(2), "3, b (.b32, 4 bytes): given an array, which is passed by its address, but "
         "expected an integer of 32 bits"),
        ("st", bytes(4), "5, st (.b8, 12 bytes): expected 12 bytes, given 4"),
        ("st", 5, "5, st (.b8, 12 bytes): given the integer 5, but expected 12 bytes by value"),
        ("st", np.zeros(3), "5, st (.b8, 12 bytes): given an array, which is passed by its address, but "
         "expected 12 bytes by value"),
        ("p", [1, 2], "6, p (.u64, 8 bytes): a list is not an array: results could not come back; "
         "give a NumPy array"),
        ("p", np.zeros(2, ">f4"), "6, p (.u64, 8 bytes): the array has dtype >f4, whose byte order is not "
         "the device's"),
        ("p", np.array([None]), "6, p (.u64, 8 bytes): expected an array, a number, bytes or None, "
         "given ndarray"),
        ("c", 256, "7, c (.u8, 1 byte): 256 does not fit in 8 bits: -128 to 255 does"),
    ],
)  # fmt: skip
def test_what_does_not_suit_a_parameter(name, value, message):
    with pytest.raises(warpsim.OperandError) as caught:
        passed(**{name: value})
    assert str(caught.value) == f"parameter {message}"


def test_too_few_arguments():
    kernel = warpsim.load(text("", ".param .u64 out, .param .f32 f"))["k"]
    for given in ([], [None] * 3):
        with pytest.raises(warpsim.OperandError) as caught:
            kernel(1, 1, given)
        said = f"{len(given)} arguments, but the kernel has 2 parameters: out (.u64), f (.f32)"
        assert str(caught.value) == said
    with pytest.raises(warpsim.OperandError, match="the arguments are a list or tuple, not ndarray"):
        kernel(1, 1, np.zeros(2))


# --- modules ---------------------------------------------------------------------------------------

BROKEN = f"""{HEADER}
.func helper() {{ .reg .b32 %r<4>; mul.wied.u32 %r1, %r2, %r3; ret; }}
.visible .entry good(.param .u64 p) {{ ret; }}
.visible .entry bad(.param .u64 p)
{{
    .reg .b32 %r<4>;
    frobnicate.u32 %r1, %r2;
    add.u32 %r1, %r2, %undeclared;
    call helper;
    ret;
}}
.visible .entry unmodelled() {{ .reg .b32 %r<4>; griddepcontrol.wait; ret; }}
"""


def test_problems_are_those_of_the_kernel_and_what_it_calls():
    module = warpsim.load(BROKEN)
    assert module.entries == ("good", "bad", "unmodelled")
    assert module["good"](1, 1, [None]).hazards == ()
    with pytest.raises(warpsim.IllegalInstruction) as caught:
        module["bad"]
    assert str(caught.value) == (
        "<string>:5:38: error: mul has no modifier .wied here\n"
        "    .func helper() { .reg .b32 %r<4>; mul.wied.u32 %r1, %r2, %r3; ret; }\n"
        "                                         ^~~~~\n"
        "<string>:10:5: error: PTX has no opcode 'frobnicate'\n"
        "        frobnicate.u32 %r1, %r2;\n"
        "        ^~~~~~~~~~~~~~\n"
        "<string>:11:23: error: %undeclared is not declared\n"
        "        add.u32 %r1, %r2, %undeclared;\n"
        "                          ^~~~~~~~~~~"
    )
    assert caught.value.message == "mul has no modifier .wied here (and 2 more problems)"
    assert len(module.problems) >= 3


def test_no_such_kernel():
    module = warpsim.load(HEADER + ".entry a() { ret; }\n.entry b() { ret; }")
    with pytest.raises(KeyError) as caught:
        module["c"]
    assert isinstance(caught.value, warpsim.OperandError)
    assert str(caught.value) == "no kernel 'c'; the kernels are a, b"


def test_parameters_of_a_kernel():
    kernel = warpsim.load(text("", PARAMETERS))["k"]
    assert kernel.name == "k"
    found = [(one.index, one.name, one.kind, one.bytes, one.alignment) for one in kernel.parameters]
    assert found == [
        (0, "out", "u64", 8, 8), (1, "f", "f32", 4, 4), (2, "s", "s32", 4, 4), (3, "b", "b32", 4, 4),
        (4, "d", "f64", 8, 8), (5, "st", "b8", 12, 8), (6, "p", "u64", 8, 8), (7, "c", "u8", 1, 1),
    ]  # fmt: skip
    assert repr(warpsim.load(text("", ".param .u64 p"))["k"]) == "<kernel k(.u64 p) for sm_80>"


def test_where_modules_come_from(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(text(""))
    assert warpsim.load(path).entries == warpsim.load(str(path)).entries == ("k",)
    assert warpsim.load(path, target="sm_90").target == "sm_90"
    with pytest.raises(warpsim.OperandError, match=r"missing\.ptx: No such file or directory"):
        warpsim.load(tmp_path / "missing.ptx")
    with pytest.raises(warpsim.OperandError, match=r"missing\.cu: No such file or directory"):
        warpsim.load(tmp_path / "missing.cu")
    with pytest.raises(warpsim.IllegalInstruction, match="unknown target 'sm_1'"):
        warpsim.load(path, target="sm_1")
    with pytest.raises(
        warpsim.PtxError, match=r"a module begins with .version and .target: .target is missing"
    ):
        warpsim.load("ret;\n")


def test_a_target_that_the_version_does_not_have():
    module = warpsim.load(text("", "").replace("8.0", "7.0").replace("sm_80", "sm_90"))
    with pytest.raises(warpsim.IllegalInstruction, match=r"sm_90 needs PTX ISA 7\.8; this is read as 7\.0"):
        module["k"]


def test_cuda_sources_need_nvcc(tmp_path, monkeypatch):
    path = tmp_path / "k.cu"
    path.write_text("__global__ void k() {}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(warpsim.OperandError, match=r"a CUDA source needs nvcc, which is not on the path"):
        warpsim.load(path)
    nvcc = tmp_path / "nvcc"
    nvcc.write_text('#!/bin/sh\necho "k.cu(1): error: no such luck: $*" >&2\nexit 2\n')
    nvcc.chmod(0o755)
    with pytest.raises(warpsim.PtxError) as caught:
        warpsim.load(path, target="sm_90a", nvcc=["-DX=1"])
    assert "nvcc failed:\nk.cu(1): error: no such luck: -ptx -lineinfo -arch=sm_90a -DX=1 -o " in str(
        caught.value
    )


# --- fidelity --------------------------------------------------------------------------------------


def reached(body):
    out = np.zeros(32, np.uint32)
    report = warpsim.load(text(body))["k"](1, 32, [out], checks="off")
    return report.fidelity, {one.role for one in report.fidelity.reached}


def test_exact_and_approximate_statements():
    fidelity, roles = reached("mov.f32 %f1, 0f3F800000; ex2.approx.f32 %f1, %f1; st.global.f32 [%rd1], %f1;")
    assert roles == set()
    assert [(one.mnemonic, one.statements) for one in fidelity["approximate"]] == [("ex2.approx.f32", 1)]
    assert fidelity["approximate"][0].note
    assert fidelity.counts["approximate"] == 1
    assert fidelity.counts["exact"] == sum(one.executions for one in fidelity["exact"])
    fidelity, _ = reached("bra OVER; ex2.approx.f32 %f1, %f1; OVER: mov.u32 %r1, 1;")
    assert fidelity.counts["approximate"] == 0, "what is not executed does not count"


APPROXIMATE = "cvt.rn.f32.u32 %f1, %r0; ex2.approx.f32 %f1, %f1; cvt.rzi.u32.f32 %r1, %f1; "


@pytest.mark.parametrize(
    ("body", "roles"),
    [
        ("setp.gt.u32 %p1, %r1, 3; @%p1 bra END; END:", {"the branch"}),
        ("setp.gt.u32 %p1, %r1, 3; @%p1 mov.u32 %r2, 1;", {"the guard"}),
        ("and.b32 %r2, %r1, 0; cvt.u64.u32 %rd5, %r2; add.u64 %rd5, %rd1, %rd5; ld.global.u32 %r3, [%rd5];",
         {"an address"}),
        ("st.global.u32 [%rd1], %r1; ld.global.u32 %r2, [%rd1]; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; E:",
         {"the branch"}),
        (".shared .b32 c[32]; st.shared.u32 [c], %r1; ld.global.u32 %r2, [%rd1]; setp.eq.u32 %p1, %r2, 0;"
         "@%p1 bra E; E:", set()),
        ("mov.u32 %r1, 5; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; E:", {"the branch"}),  # whatever the order
        ("mov.u32 %r9, %clock; and.b32 %r9, %r9, 0; setp.eq.u32 %p1, %r9, 1; @%p1 bra E; E:", {"the branch"}),
    ],
)  # fmt: skip
def test_where_approximations_may_have_got_to(body, roles):
    assert reached(APPROXIMATE + body)[1] == roles


STAGED = """
.shared .align 16 .b8 c[512]; .reg .b32 %s<4>; .reg .b64 %g;
ld.param.u64 %g, [in];
mov.u32 %s0, c; mad.lo.u32 %s1, %r0, 16, %s0; mad.wide.u32 %g, %r0, 16, %g;
cp.async.cg.shared.global [%s1], [%g], 16; cp.async.wait_all; bar.sync 0;
mov.u32 %r7, 0;
LOOP: ld.shared.b32 %r1, [%s1]; mov.f32 %f1, 0f3F800000;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, {%r1,%r1,%r1,%r1}, {%r1,%r1},
  {%f1,%f1,%f1,%f1};
bar.sync 0;
INSIDE
add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 2; @%p1 bra LOOP;
rcp.approx.f32 %f6, %f2; st.shared.f32 [%s1], %f6; bar.sync 0; ld.shared.f32 %f7, [%s1];
st.global.f32 [%rd1], %f7;
"""


def reached_of(body, given=None, grid=1):
    """The mnemonics of matrix instructions that an approximation may have reached."""
    whole = text(body).replace("k(.param .u64 out)", "k(.param .u64 out, .param .u64 in)")
    assert "in)" in whole
    out = np.zeros(128 * grid, np.uint32)
    report = warpsim.load(whole)["k"](grid, 32, [out, out if given is None else given], checks="off")
    assert report.fidelity["approximate"]
    return {one.mnemonic.partition(".")[0] for one in report.fidelity.reached if "tensor" in one.role}


def test_an_epilogue_reaches_no_operand():
    """Through staging in shared memory and an array of its own; in an array that is read, it may."""
    once = STAGED.replace("INSIDE", "")
    assert reached_of(once, np.zeros(128, np.uint32)) == set()
    assert reached_of(once) == {"mma"}  # A and D are one array: another CTA may read what one has stored


@pytest.mark.parametrize(
    ("inside", "roles"),
    [
        ("rcp.approx.f32 %f6, %f2; st.shared.f32 [%s1], %f6; bar.sync 0;", {"mma"}),  # the next turn reads it
        ("rcp.approx.f32 %f6, %f2; st.global.f32 [%rd1], %f6; bar.sync 0;", set()),
    ],
)
def test_a_loop_reaches_its_next_turn(inside, roles):
    assert reached_of(STAGED.replace("INSIDE", inside), np.zeros(128, np.uint32)) == roles


def test_a_pointer_that_is_loaded_may_point_anywhere():
    """A table of pointers in memory: the analysis does not know which array is meant."""
    body = STAGED.replace("INSIDE", "").replace(
        "ld.param.u64 %g, [in];", ".reg .b64 %t; ld.param.u64 %t, [in]; ld.global.u64 %g, [%t];"
    )
    device = warpsim.Device("sm_80")
    out, data = device.array(np.zeros(128, np.uint32)), device.array(np.zeros(128, np.uint32))
    table = device.array(np.array([data.address], np.uint64))
    whole = text(body).replace("k(.param .u64 out)", "k(.param .u64 out, .param .u64 in)")
    report = warpsim.load(whole)["k"](1, 32, [out, table], device=device, checks="off")
    assert {one.role for one in report.fidelity.reached} == {"a tensor-core operand"}


def test_a_function_hands_approximations_on():
    before = """
    .func (.param .b32 y) f(.param .b32 x) {
    .reg .b32 %r<9>; ld.param.b32 %r1, [x]; ex2.approx.f32 %r2, %r1; st.param.b32 [y], %r2; ret; }
    """
    body = CALL.replace("NAME", "f") + "setp.eq.u32 %p1, %r1, 0; @%p1 bra E; E:"
    module = warpsim.load(text(body, before=before))
    found = module["k"](1, 32, [np.zeros(32, np.uint32)]).fidelity.reached
    assert [one.role for one in found] == ["the branch"]
    line = found[0].location.line
    assert str(found[0]).startswith(f"<string>:{line}:")
    assert str(found[0]).endswith("a result of ex2.approx.f32 at line 6 may have reached the branch of bra")


def test_fidelity_is_found_when_it_is_asked_for_and_is_pickled_whole():
    module = warpsim.load(text("ex2.approx.f32 %r2, %r1; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; E:"))
    fidelity = module["k"](1, 32, [np.zeros(32, np.uint32)]).fidelity
    assert "reached" not in vars(fidelity)
    again = pickle.loads(pickle.dumps(fidelity))
    assert again == fidelity
    assert [one.role for one in again.reached] == ["the branch"]
    assert again.reached == fidelity.reached


# --- matrix instructions ---------------------------------------------------------------------------

MMA = """
mov.b32 %r1, 0x3c003c00; mov.f32 %f1, 0f3F800000;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f1,%f1,%f1,%f1};
st.global.f32 [%rd1], %f2;
"""  # noqa: E501


def test_matrix_instructions_are_recorded_and_have_their_evidence():
    out = np.zeros(128, np.float32)
    kernel = warpsim.load(text(MMA))["k"]
    assert kernel(2, 64, [out]).events == ()
    report = kernel(2, 64, [out], record=True)
    assert np.array_equal(out, np.full(128, 17, np.float32))
    places = [(event.cta, event.warp) for event in report.events]
    assert places == [((0, 0, 0), 0), ((0, 0, 0), 1), ((1, 0, 0), 0), ((1, 0, 0), 1)]
    event = report.events[0]
    assert event.d.shape == (32, 4)
    assert (event.d.view(np.float32) == 17).all()
    assert event.line == text(MMA).splitlines().index(MMA.splitlines()[2]) + 1
    (known,) = [one for one in report.fidelity.classes if one.mnemonic.startswith("mma")]
    evidence = warpsim.evidence(event.instruction)
    assert known.note == str(evidence)
    assert known.fidelity == {"validated": "exact", "documented": "exact"}.get(evidence.label, "inferred")


WMMA = """
.reg .b64 %g; .reg .f32 %c<8>; .reg .b32 %a<8>; .shared .align 32 .b8 tile[1024];
ld.param.u64 %g, [in]; BEFORE
wmma.load.a.sync.aligned.row.m16n16k16.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, [%g];
wmma.load.c.sync.aligned.row.m16n16k16.f32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, [%g];
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7},
  {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7};
rcp.approx.f32 %c0, %c0;
wmma.store.d.sync.aligned.row.m16n16k16TILE, {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7};
"""


@pytest.mark.parametrize("tile", [".f32 [%rd0]", ".shared.f32 [tile]"])
def test_an_accumulator_that_is_stored_is_no_operand(tile):
    """An epilogue changes it, and wmma.store writes it; wmma.load of what was approximated leads to one."""
    after = WMMA.replace("TILE", tile)
    assert reached_of(after.replace("BEFORE", ""), np.zeros(256, np.uint32), grid=2) == set()
    before = "mov.f32 %f1, 0f3F800000; ex2.approx.f32 %f1, %f1; st.f32 [%g], %f1;"
    assert reached_of(after.replace("BEFORE", before), np.zeros(256, np.uint32), grid=2) == {"wmma"}


def test_an_approximation_that_reaches_a_tensor_core():
    body = APPROXIMATE + MMA.replace("mov.b32 %r1, 0x3c003c00;", "")
    assert reached(body)[1] == {"a tensor-core operand"}
