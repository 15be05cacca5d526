"""What compilers write and hand-written PTX seldom has: addresses as initial values, calls by address, …"""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.base.errors import Fault, IllegalInstruction, UndefinedBehavior
from warpsim.programs.launch.launching import load_text

THREAD = "mov.u32 %t, %tid.x; mul.wide.u32 %d0, %t, 4; ld.param.u64 %o, [out]; add.u64 %o, %o, %d0;"
FUNCTION = """.func (.param .b32 r) {name}(.param .b32 a) {{
    .reg .b32 %x; ld.param.b32 %x, [a]; {body} st.param.b32 [r], %x; ret; }}"""


def launched(body, before="", threads=32, target="sm_80", **options):
    text = (
        f".version 8.0\n.target {target}\n.address_size 64\n{before}\n.visible .entry k(.param .u64 out) {{\n"
        f".reg .b32 %t, %r<8>; .reg .b64 %d<8>, %o; .reg .b16 %h<4>; .reg .pred %p<4>;\n"
        f"{THREAD}\n{body}\nret; }}"
    )
    out = np.zeros(threads, np.uint32)
    load_text(text)["k"](1, threads, [out], **options)
    return out


def test_an_initial_value_is_an_address_with_an_offset():
    before = """.global .align 4 .b32 v[3] = {5, 6, 7}; .global .align 8 .u64 p[2] = {generic(v)+8, v};"""
    body = "ld.global.u64 %d1, [p]; ld.u32 %r0, [%d1]; ld.global.u64 %d1, [p+8]; ld.u32 %r1, [%d1+4];"
    assert (launched(body + "mad.lo.u32 %r0, %r0, 10, %r1; st.global.u32 [%o], %r0;", before) == 76).all()


def test_an_initial_value_is_a_byte_of_an_address():
    parts = ", ".join(f"0x{255 << 8 * place:X}(generic(v)+4)" for place in range(8))
    before = f".global .align 4 .b32 v[2] = {{5, 6}}; .global .align 8 .u8 p[9] = {{{parts}, 1}};"
    assert (
        launched("ld.global.u64 %d1, [p]; ld.u32 %r0, [%d1]; st.global.u32 [%o], %r0;", before) == 6
    ).all()


def test_the_address_of_nothing_is_refused():
    with pytest.raises(
        IllegalInstruction, match="p starts with the address of q, which is neither a function"
    ):
        launched("mov.u64 %d1, p;", ".global .align 8 .u64 p = q;")


def test_lanes_call_different_functions_by_address():
    functions = [FUNCTION.format(name=f"f{n}", body=f"add.u32 %x, %x, {n}00;") for n in range(3)]
    before = "\n".join(functions) + "\n.global .align 8 .u64 table[3] = {f0, f1, f2};"
    body = """rem.u32 %r0, %t, 3; mul.wide.u32 %d1, %r0, 8; mov.u64 %d2, table; add.u64 %d2, %d2, %d1;
        ld.global.u64 %d3, [%d2];
        { .param .b32 a; .param .b32 r; st.param.b32 [a], %t;
        proto: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (r), %d3, (a), proto; ld.param.b32 %r1, [r]; } st.global.u32 [%o], %r1;"""
    lanes = np.arange(32, dtype=np.uint32)
    for schedule in ("program", 0, 1):
        np.testing.assert_array_equal(launched(body, before, schedule=schedule), lanes + lanes % 3 * 100)


@pytest.mark.parametrize("schedule", ["program", *range(4)])
def test_lanes_that_call_at_different_times_meet_in_the_function(schedule):
    before = FUNCTION.format(name="f", body="shfl.sync.bfly.b32 %x, %x, 1, 31, -1;")
    body = """and.b32 %r0, %t, 3; setp.eq.u32 %p0, %r0, 1; @%p0 bra A; add.u32 %r2, %t, 5; bra B;
        A: add.u32 %r2, %t, 7; B:
        { .param .b32 a; .param .b32 r; st.param.b32 [a], %r2; call (r), f, (a); ld.param.b32 %r1, [r]; }
        st.global.u32 [%o], %r1;"""
    lanes = np.arange(32, dtype=np.uint32)
    given = lanes + np.where(lanes % 4 == 1, 7, 5).astype(np.uint32)
    np.testing.assert_array_equal(launched(body, before, schedule=schedule), given[lanes ^ 1])


def test_an_address_of_32_bits_wraps_with_its_offset():
    body = """.shared .align 4 .b32 s[32]; mov.u32 %r1, s; shl.b32 %r0, %t, 2; add.u32 %r2, %r1, %r0;
        st.shared.u32 [%r2], %t; bar.warp.sync -1; sub.u32 %r3, %r1, %r0; ld.shared.u32 %r4, [%r3+124];
        st.global.u32 [%o], %r4;"""
    np.testing.assert_array_equal(launched(body), np.arange(31, -1, -1, dtype=np.uint32))


def test_a_conversion_keeps_the_order_of_its_types():
    body = """mov.f64 %d1, 0d3FF8000000000000; cvt.rn.bf16.f64 %h0, %d1; cvt.u32.u16 %r0, %h0;
        st.global.u32 [%o], %r0;"""
    assert (launched(body, target="sm_90") == 0x3FC0).all()


@pytest.mark.parametrize(
    ("form", "expected"),
    [("u32.u32.u32", 0x01FF0105), ("u32.u32.u32.add", 0x106 + 9), ("u32.s32.s32", 0x01010105)],
)
def test_differences_of_bytes(form, expected):
    body = f"""mov.u32 %r0, 0x01FF0207; mov.u32 %r1, 0x00000102; vabsdiff4.{form} %r2, %r0, %r1, 9;
        st.global.u32 [%o], %r2;"""
    assert (launched(body) == expected).all()


@pytest.mark.parametrize("wait", ["test_wait", "fence"])
def test_a_phase_or_a_fence_with_a_flag_orders_the_warps(wait):
    waited = {
        "test_wait": """mbarrier.arrive.shared.b64 %d1, [b];
            W: mbarrier.test_wait.shared.b64 %p0, [b], %d1; @!%p0 bra W;""",
        "fence": """fence.acq_rel.cta; atom.shared.add.u32 %r7, [n], 1;
            W: ld.volatile.shared.u32 %r6, [n]; setp.ne.u32 %p0, %r6, 64; @%p0 bra W; fence.acq_rel.cta;""",
    }
    body = f""".shared .align 4 .b32 s[64]; .shared .align 8 .b64 b; .shared .align 4 .b32 n;
        setp.ne.u32 %p1, %t, 0; @!%p1 mbarrier.init.shared.b64 [b], 64;
        @!%p1 st.volatile.shared.u32 [n], 0; bar.sync 0;
        shl.b32 %r0, %t, 2; mov.u32 %r1, s; add.u32 %r2, %r1, %r0; st.shared.u32 [%r2], %t; {waited[wait]}
        xor.b32 %r0, %r0, 128; add.u32 %r2, %r1, %r0; ld.shared.u32 %r4, [%r2]; st.global.u32 [%o], %r4;"""
    np.testing.assert_array_equal(launched(body, threads=64), np.arange(64, dtype=np.uint32) ^ 32)


def test_an_arrival_alone_orders_nothing():
    body = """.shared .align 4 .b32 s[64]; .shared .align 8 .b64 b;
        setp.ne.u32 %p1, %t, 0; @!%p1 mbarrier.init.shared.b64 [b], 64; bar.sync 0;
        shl.b32 %r0, %t, 2; mov.u32 %r1, s; add.u32 %r2, %r1, %r0; st.shared.u32 [%r2], %t;
        mbarrier.arrive.shared.b64 %d1, [b];
        xor.b32 %r0, %r0, 128; add.u32 %r2, %r1, %r0; ld.shared.u32 %r4, [%r2];"""
    with pytest.raises(UndefinedBehavior, match="race"):
        launched(body, threads=64)


def test_an_assertion_is_a_fault_where_lanes_come_to_it():
    before = ".extern .func __assertfail(.param .b64 a);"
    body = """setp.gt.u32 %p0, %t, {}; @!%p0 bra E;
        {{ .param .b64 a; st.param.b64 [a], %o; call __assertfail, (a); }} E:"""
    launched(body.format(40), before)
    with pytest.raises(
        Fault, match=r"assertion '.' failed at .:0, in . \[CTA \(0, 0, 0\), warp 0, lane 31\]"
    ):
        launched(body.format(30), before)
