"""Warps and warpgroups execute every opcode as launched kernels do; what has no meaning there is refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.row_targets import first_target
from warpsim.base.errors import IllegalInstruction, NotModelled, UndefinedBehavior, WarpsimError
from warpsim.machine.bind.value_types import dtype_of
from warpsim.machine.opcodes import rows
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.operation import Operation
from warpsim.observe.checks.wgmma.hazard import HazardError
from warpsim.programs.interactive.machines import Machine, Warp, Warpgroup
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace

Words = npt.NDArray[Any]
DECLARED = ".reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %w<4>; .reg .f32 %f<4>; .reg .pred %p<4>;"
INPUTS = "mov.u32 %r0, %tid.x; mul.lo.u32 %r1, %r0, 0x9E3779B1; mov.b32 %f1, %r1; mov.b64 %w1, {%r1, %r0};"

# Statements that compute %r7 of %r0, %r1, %w1 and %f1, and shared memory at 0.
TEXTS = {
    "addresses": "shl.b32 %r2, %r0, 4; and.b32 %r3, %r2, 0x70; xor.b32 %r4, %r2, %r3; mad.lo.u32 %r7, "
    "%r4, 3, %r1;",
    "logic": "lop3.b32 %r2, %r0, %r1, %r0, 0x96; prmt.b32 %r7, %r2, %r1, 0x5410;",
    "carry": "add.cc.u32 %r2, %r1, %r1; addc.u32 %r7, %r1, 0;",
    "predicates": "setp.lt.u32 %p0, %r0, 7; selp.b32 %r2, %r0, %r1, %p0; @!%p0 add.u32 %r2, %r2, 1; "
    "mov.b32 %r7, %r2;",
    "wide": "mul.wide.u32 %w2, %r1, %r1; shr.u64 %w2, %w2, 9; cvt.u32.u64 %r7, %w2;",
    "floats": "cvt.rn.f32.u32 %f2, %r1; fma.rn.f32 %f3, %f2, %f2, %f2; sqrt.rn.f32 %f3, %f3; mov.b32 %r7, "
    "%f3;",
    "halves": "cvt.rn.f16.u32 %h0, %r0; mov.b32 %r2, {%h0, %h0}; fma.rn.f16x2 %r7, %r2, %r2, %r2;",
    "shuffles": "shfl.sync.bfly.b32 %r2|%p1, %r1, 5, 0x1f, 0xffffffff; shfl.sync.up.b32 %r7, %r2, 3, 0, -1;",
    "votes": "setp.gt.s32 %p2, %r1, 0; vote.sync.ballot.b32 %r2, %p2, -1; popc.b32 %r7, %r2;",
    "reductions": "redux.sync.add.u32 %r7, %r1, 0xffffffff;",
    "guarded members": "setp.lt.u32 %p0, %r0, 64; mov.b32 %r7, 0; @%p0 match.any.sync.b32 %r7, %r3, "
    "0xffffffff;",
    "matrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r7, %r1;",
    "memory": "shl.b32 %r2, %r0, 2; st.shared.b32 [%r2], %r1; xor.b32 %r3, %r2, 4; bar.warp.sync -1; "
    "ld.shared.b32 %r7, [%r3];",
    "generic": "shl.b32 %r2, %r0, 2; cvt.u64.u32 %w2, %r2; cvta.shared.u64 %w2, %w2; st.b32 [%w2], %r1; "
    "ld.u32 %r7, [%w2];",
    "atomics": "atom.shared.add.u32 %r7, [%zero], 1; and.b32 %r7, %r7, 0; bar.sync 0; "
    "ld.shared.u32 %r7, [%zero];",
    "lanes": "mov.u32 %r2, %lanemask_lt; mov.u32 %r3, %laneid; mad.lo.u32 %r7, %r2, 3, %r3;",
    "vectors": "mov.v2.b32 {%r2, %r3}, {%r1, %r0}; sub.u32 %r7, %r2, %r3;",
}  # fmt: skip
TEXTS["guarded members"] = TEXTS["guarded members"].replace("%r3", "%r1")
LAUNCHED = """.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 tile[];
.entry k(.param .u64 out) {{
{declared} .reg .b64 %out; .reg .b32 %zero; mov.b32 %zero, 0;
{text}
ld.param.u64 %out, [out]; mul.wide.u32 %w3, %r0, 4; add.u64 %out, %out, %w3; st.global.b32 [%out], %r7;
}}
"""


def launched(text: str, threads: int) -> Words:
    d = np.zeros(threads, np.uint32)
    body = LAUNCHED.format(declared=DECLARED, text=f"{INPUTS} {text}")
    load_text(body)["k"](1, threads, [d], shared_bytes=1024, checks="off")
    return d


@pytest.mark.parametrize("machine", [Warp, Warpgroup])
@pytest.mark.parametrize("name", TEXTS)
def test_opcodes_do_what_they_do_in_a_launch(machine: type[Machine], name: str) -> None:
    made = machine("sm_90a", 1024)
    made.run(f"{DECLARED} .reg .b32 %zero; mov.b32 %zero, 0;")
    made.run(f"{INPUTS} {TEXTS[name]}")
    assert np.array_equal(made["%r7"], launched(TEXTS[name], made.lanes))


def test_registers_that_nothing_declares_are_as_wide_as_what_is_written() -> None:
    warp = Warp("sm_90a")
    warp.run("mov.u32 %l, %laneid; setp.eq.u32 %p|%q, %l, 3; cvt.u64.u32 %w, %l; cvt.u16.u32 %h, %l;")
    assert [str(warp[name].dtype) for name in ("%l", "%p", "%q", "%w", "%h")] == [
        *("uint32", "bool", "bool", "uint64", "uint16")
    ]
    assert warp["%p"].tolist() == [lane == 3 for lane in range(32)]


def test_what_is_not_done_creates_no_register() -> None:
    warp = Warp("sm_90a")
    warp["%p"] = False
    warp.run("@%p add.u32 %a, 1, 2;")
    with pytest.raises(UndefinedBehavior, match="%x is read"):
        warp.run("add.u32 %b, %x, 2;")
    with pytest.raises(IllegalInstruction):
        warp.run("add.u32 %c, %p, 2;")
    assert list(warp.registers()) == ["%p"]
    warp.run("mov.b64 %a, 1; mov.b16 %b, 2; mov.pred %c, 1;")
    assert warp["%a"].dtype == np.uint64


def test_the_same_text_again_on_another_machine() -> None:
    from warpsim.ptx.parser import parse

    program = parse(
        "{ .reg .b32 %t; mov.u32 %t, %laneid; add.u32 %r, %t, %r; } add.u32 %s, %r, 1;"
    ).statements
    for start in (5, 7):
        warp = Warp("sm_80")
        warp["%x<5>"], warp["%r"] = 1, start
        assert [*warp.steps(program), *warp.steps(program)] == []
        assert warp["%s"].tolist() == [start + 2 * lane + 1 for lane in range(32)]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("ld.global.b32 %r0, [%w0];", NotModelled,
         "ld.global.b32 is not modelled here: there is no .global memory outside a launched kernel, only "
         ".shared and .local"),
        ("ld.param.b32 %r0, [p];", NotModelled,
         "ld.param.b32 is not modelled here: there is no .param memory outside a launched kernel, only "
         ".shared and .local"),
        ("atom.global.add.u32 %r0, [%w0], 1;", NotModelled,
         "atom.global.add.u32 is not modelled here: there is no .global memory outside a launched kernel, "
         "only .shared and .local"),
        ("bra.uni L;", NotModelled,
         "'bra.uni' is not modelled in a warp: statements are executed in order; a launched "
         "kernel "
         "may execute it"),
        ("ret;", NotModelled,
         "'ret' is not modelled in a warp: statements are executed in order; a launched kernel "
         "may "
         "execute it"),
        ("frob.u32 %r0, 1;", IllegalInstruction, "PTX has no opcode 'frob'"),
        ("add.u32 %r0, %laneid, 1;", IllegalInstruction,
         "add does not take special registers: mov reads %laneid"),
        ("add.u32 %laneid, %r0, 1;", IllegalInstruction, "the special register %laneid is read-only"),
        ("setp.eq.u32 %p0|%p0, %r0, 1;", UndefinedBehavior,
         "setp writes %p0 twice: PTX does not define which value stays"),
        ("@%p1 shfl.sync.bfly.b32 %r1, %r0, 1, 0x1f, 0xffffffff;", UndefinedBehavior,
         "shfl.sync.bfly.b32 waits for lanes 4-31 of its warp, members of its mask 0xffffffff, which do "
         "not all "
         "come with it [lane 0 and 3 more]"),
        ("shfl.sync.bfly.b32 %r1, %r0, 1, 0x1f, %r2;", UndefinedBehavior,
         "shfl.sync.bfly.b32: the lane is not a member of its own mask 0x3 [lane 2]"),
        ("@%p1 shfl.sync.idx.b32 %r1, %r0, 9, 0x1f, 0xf;", UndefinedBehavior,
         "shfl.sync.idx.b32: lane 0 and 3 more reads a lane that does not take part, which PTX leaves "
         "undefined"),
        ("redux.sync.min.f32 %f0, %f0, -1;", IllegalInstruction,
         "redux.sync.min.f32 is not on sm_90a: it needs sm_100f or sm_103f"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, kind: type[WarpsimError], message: str) -> None:
    warp = Warp("sm_90a")
    warp.run(DECLARED)
    warp["%r0"], warp["%r2"], warp["%w0"], warp["%p1"], warp["%f0"] = (
        5,
        3,
        0,
        np.arange(32) < 4,
        np.float32(0),
    )
    before = warp.registers()
    with pytest.raises(kind) as caught:
        warp.run(text)
    assert caught.value.message == message
    assert caught.value.location is not None
    after = warp.registers()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_fallback_takes_what_is_left_open() -> None:
    warp = Warp("sm_90a", undefined="fallback")
    warp["%p"], warp["%r"], warp["%d"] = np.arange(32) < 4, 5, 1
    warp.run("@%p shfl.sync.idx.b32 %d, %r, 9, 0x1f, 0xf;")
    assert warp["%d"].tolist() == [0] * 4 + [1] * 28


def test_some_lanes_of_some_warps_wait_in_vain_and_nothing_is_written() -> None:
    group = Warpgroup()
    lanes = np.arange(128)
    group["%p"], group["%r"], group["%d"] = (lanes < 32) | (lanes == 40), lanes, 7
    with pytest.raises(UndefinedBehavior, match=r"waits for lanes 0-7, 9-31 of its warp"):
        group.run("@%p shfl.sync.bfly.b32 %d, %r, 1, 0x1f, -1;")
    assert group["%d"].tolist() == [7] * 128
    group["%p"] = lanes < 32
    group.run("@%p shfl.sync.bfly.b32 %d, %r, 1, 0x1f, -1;")
    assert group["%d"].tolist() == [*(lanes[:32] ^ 1), *[7] * 96]


def test_a_warp_is_a_cta_with_barriers() -> None:
    warp = Warp("sm_90a")
    warp["%p"] = np.arange(32) < 4
    warp.run("bar.sync 0; bar.arrive 1, 64; bar.sync 1, 64; barrier.sync 2;")
    with pytest.raises(UndefinedBehavior, match=r"^<string>:1:5: error: bar\.sync waits for barrier 3"):
        warp.run("@%p bar.sync 3;")
    warp.run("bar.sync 3;")


def test_an_mbarrier_in_shared_memory() -> None:
    warp = Warp("sm_90a")
    warp.run(
        """
        .reg .b32 %l, %at; .reg .pred %p, %d, %e; .reg .b64 %s;
        .shared .b64 m;
        mov.u32 %l, %laneid; setp.eq.u32 %p, %l, 0; mov.u32 %at, m;
        @%p mbarrier.init.shared.b64 [%at], 32; bar.warp.sync -1;
        mbarrier.test_wait.parity.shared.b64 %d, [%at], 0; mbarrier.arrive.shared.b64 %s, [%at];
        mbarrier.test_wait.parity.shared.b64 %e, [%at], 0;
        """
    )
    assert not warp["%d"].any()
    assert warp["%e"].all()


def test_hazards_see_every_opcode() -> None:
    group = Warpgroup()
    group["%d<32>"] = np.float32(0)
    group["%x"] = group["%y"] = np.uint64(0)
    text = ", ".join(f"%d{i}" for i in range(32))
    group.run(
        "wgmma.fence.sync.aligned;"
        f"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{text}}}, %x, %y, 1, 1, 1, 0, 0;"
    )
    with pytest.raises(HazardError, match="%d3"):
        group.run("add.f32 %t, %d3, %d3;")
    group = Warpgroup()
    group["%at"], group["%r"] = 4 * np.arange(128), 1
    group.run("st.shared.b32 [%at], %r; xor.b32 %at, %at, 256;")
    with pytest.raises(HazardError, match=r"insert 'bar.sync 0;'"):
        group.run("ld.shared.b32 %s, [%at];")


def test_a_trace_with_arithmetic_between_products(tmp_path: Path) -> None:
    zeros = ", ".join(["0f00000000"] * 4)
    text = f"""//! target sm_80
.reg .b32 %l, %t, %at, %a<4>, %b<2>, %r; .reg .f32 %d<4>; .reg .pred %p;
.shared .align 16 .b8 tile[512];
mov.u32 %l, %laneid;
shl.b32 %t, %l, 4;
mov.u32 %at, tile;
add.u32 %at, %at, %t;
cvt.rn.f16x2.f32 %r, 0f3F800000, 0f40000000;
st.shared.v4.b32 [%at], {{%r, %r, %r, %r}};
bar.warp.sync 0xffffffff;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%a0, %a1, %a2, %a3}}, [%at];
mov.b32 %b0, %a0;
mov.b32 %b1, %a1;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{{zeros}}};
setp.lt.f32 %p, %d0, 0f42200001;
selp.f32 %d1, %d0, %d1, %p;
//! expect %d<4> = 0x42200000
"""
    path = tmp_path / "t.ptx"
    path.write_text(text)
    assert run_trace(read_trace(path)).passed


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda machine: pickle.loads(pickle.dumps(machine))])
def test_a_copy_goes_on_by_itself(copied: Callable[[Warp], Warp]) -> None:
    registers = ", ".join(f"%d{i}" for i in range(4))
    warp = Warp("sm_90a")
    warp["%a"], warp["%d<4>"] = 0x3C003C00, np.float32(0)
    warp.run(".shared .b32 t; mov.u32 %r, 5; st.shared.b32 [t], %r;")
    warp.run(
        f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{registers}}}, {{%a, %a, %a, %a}}, {{%a, %a}}, "
        f"{{{registers}}};"
    )
    other = copied(warp)
    other.run("add.u32 %r, %r, 1; st.shared.b32 [t], %r; ld.shared.b32 %s, [t]; mov.b32 %e, %d1;")
    assert (int(warp["%r"][0]), int(warp.shared.data[0])) == (5, 5)
    assert (int(other["%s"][0]), int(other.shared.data[0])) == (6, 6)
    origin = other.origin("%e")
    assert origin is not None
    assert origin[1] == 1


SCALAR = [row for known in rows().values() for row in known if not isinstance(row, Effect)]


def test_scalar_opcodes_write_what_their_rows_compute() -> None:
    """A few forms of each row, on random bits, in some lanes."""
    random, ran = np.random.default_rng(5), 0
    for row in SCALAR:
        forms = list(row.forms())
        for place in random.permutation(len(forms))[:2].tolist():
            operation = row.build(*forms[place])
            if not (operation.constants or operation.vector or first_target(row).suffix):
                _check_form(row.opcode, forms[place], operation, random)
                ran += 1
    assert ran > 150


def _check_form(
    opcode: str, choice: tuple[str, ...], operation: Operation, random: np.random.Generator
) -> None:
    warp = Warp("sm_120a")
    mask = warp["%p"] = random.integers(0, 2, 32) > 0
    values = [
        random.integers(0, 1 << 63, 32, np.uint64).astype(dtype_of(kind)) & dtype_of(kind).type(True)
        if kind == "pred"
        else random.integers(0, 1 << 63, 32, np.uint64).astype(dtype_of(kind))
        for kind in operation.sources
    ]
    for index, value in enumerate(values):
        warp[f"%s{index}"] = value
    if operation.reads_carry:
        warp.run("add.cc.u32 %z, 0, 0;")
        values.append(np.zeros(32, np.bool_))
    targets = "|".join(f"%d{index}" for index in range(len(operation.results)))
    for index, kind in enumerate(operation.results):
        warp[f"%d{index}"] = np.zeros(32, dtype_of(kind))
    sources = ", ".join(f"%s{index}" for index in range(len(operation.sources)))
    warp.run(f"@%p {'.'.join([opcode, *filter(None, choice)])} {targets}, {sources};")
    results = operation.compute(*values)
    for index, kind in enumerate(operation.results):
        expected = np.where(mask, results[index], np.zeros((), dtype_of(kind)))
        assert np.array_equal(warp[f"%d{index}"], expected), (opcode, choice)
