"""The warpgroup: memory statements, variables, synchronisation, wgmma and mma, and how each is refused."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpsim
from tests.helpers import ptxas
from tests.helpers.families import usual
from warpsim.base.errors import IllegalInstruction, NotModelled, OperandError, UndefinedBehavior, WarpsimError
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.observe.checks.wgmma.hazard import HazardError
from warpsim.programs.interactive.machines import Warp, Warpgroup
from warpsim.sums.execution.pipeline import execute_inputs

Words = npt.NDArray[Any]

LANES = np.arange(128, dtype=np.uint32)
DENSE = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
FENCE = "wgmma.fence.sync.aligned;"
CLOSE = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
A4, D4 = ("{" + ", ".join(f"%{role}{i}" for i in range(4)) + "}" for role in "ad")


def group(text: str = "", size: int = 1 << 14, **registers: npt.ArrayLike) -> Warpgroup:
    """A warpgroup with %registers assigned, after the text."""
    made = Warpgroup(shared_bytes=size)
    for name, value in registers.items():
        made[f"%{name}"] = value
    made.run(text)
    return made


def refusal(machine: Warpgroup, text: str, kind: type[WarpsimError]) -> str:
    """How the text is refused, after checking that this changed neither registers nor memory."""
    before, memory = machine.registers(), machine.shared.data.copy()
    with pytest.raises(kind) as caught:
        machine.run(text, "k.ptx")
    after = machine.registers()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert np.array_equal(memory, machine.shared.data)
    return str(caught.value)


# --- registers, constructor ------------------------------------------------------------------------


def test_registers_have_128_lanes() -> None:
    machine = Warpgroup()
    machine["%r<2>"] = np.arange(256).reshape(128, 2)
    assert machine["%r1"].tolist() == list(range(1, 256, 2))
    with pytest.raises(OperandError, match=r"%r takes a scalar or 128 values, each of a lane"):
        machine["%r"] = np.zeros(32, np.uint32)


def test_special_registers() -> None:
    machine = group("mov.u32 %t, %tid.x; mov.u32 %l, %laneid; mov.u32 %w, %warpid; mov.u32 %y, %tid.y;")
    assert machine["%t"].tolist() == LANES.tolist()
    assert machine["%l"].tolist() == (LANES % 32).tolist()
    assert machine["%w"].tolist() == (LANES // 32).tolist()
    assert not machine["%y"].any()


@pytest.mark.parametrize("size", [0, 227 * 1024 + 1])
def test_the_size_of_shared_memory(size: int) -> None:
    with pytest.raises(OperandError, match="a CTA has 1 to 232448"):
        Warpgroup(shared_bytes=size)
    assert len(Warpgroup().shared) == 227 * 1024


# --- variables -------------------------------------------------------------------------------------


def test_variables_follow_one_another_at_their_alignment() -> None:
    machine = group(
        """
        .shared .b8 a[3]; .shared .b32 b; .shared .align 1024 .b8 c[2048], d[16];
        .reg .b32 %r<4>; .reg .b64 %q; .reg .b16 %h;
        mov.u32 %r0, a; mov.b32 %r1, b; mov.s32 %r2, c; mov.u32 %r3, c+16; mov.u64 %q, d; mov.u16 %h, c+-8;
        """
    )
    values = [int(machine[name][5]) for name in ("%r0", "%r1", "%r2", "%r3", "%q", "%h")]
    assert values == [0, 4, 1024, 1040, 3072, 1016]
    assert machine.address("c+0x10") == 1040
    assert machine.address("0x20") == machine.address(32) == machine.address("32") == 32


def test_a_block_ends_its_variables_but_not_their_memory() -> None:
    machine = group(".shared .b32 a; { .shared .b32 b; } { .shared .b32 b; mov.u32 %r, b; } mov.u32 %s, a;")
    assert [int(machine[name][0]) for name in ("%r", "%s")] == [8, 0]
    assert "register b is read, but nothing has been written" in refusal(
        machine, "mov.u32 %r, b;", UndefinedBehavior
    )


def test_declaring_again_in_another_run_changes_nothing() -> None:
    machine = group(".shared .b32 a, b;")
    machine.run(".shared .b32 b; mov.u32 %r, b;")
    assert machine["%r"][0] == 4


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (".shared .b8 a[16385];", IllegalInstruction,
         "a would end at 0x4001, outside the 16384 bytes of shared memory"),
        (".shared .align 24 .b8 a[8];", IllegalInstruction, "a has alignment 24, which is not a "
            "power of two"),
        (".shared .b32 a = 5;", IllegalInstruction, "a is in shared memory, which has no initial values"),
        (".global .b32 a;", NotModelled, "variables in .global are not modelled; those in .shared are"),
        (".shared .b32 a, a;", IllegalInstruction, "a is declared twice in this scope"),
        (".reg .b32 a; .shared .b32 a;", IllegalInstruction, "a is declared twice in this scope"),
        (".extern .shared .b8 a[]; .shared .b32 b;", NotModelled,
         "b is declared after an array of unknown size, where that begins"),
        (".shared .b32 a; mov.f32 %f, a;", IllegalInstruction, ".f32 does not take the address of a"),
    ],
)  # fmt: skip
def test_variables_that_are_refused(text: str, kind: type[WarpsimError], message: str) -> None:
    assert f"error: {message}\n" in refusal(group(), text, kind)


@pytest.mark.parametrize("where", ["", "b", "a b", "a-4", "a+x", "08x"])
def test_places_that_are_refused(where: str) -> None:
    with pytest.raises(OperandError):
        group(".shared .b32 a;").address(where)


def test_what_python_writes_is_bytes() -> None:
    machine = group(".shared .align 16 .b8 a[8], b[64];")
    machine.write_shared("b+4", np.array([[1, 2], [3, 4]], np.uint16))
    assert machine.shared.data[20:28].tolist() == [1, 0, 2, 0, 3, 0, 4, 0]
    with pytest.raises(OperandError, match="4 bytes from 0x3ffe leave shared memory of 16384 bytes"):
        machine.write_shared(16382, np.uint32(1))


# --- ld, st ----------------------------------------------------------------------------------------

WIDTHS = {f"{letter}{bits}": bits for letter in "bus" for bits in (8, 16, 32, 64)} | {"f32": 32, "f64": 64}


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", WIDTHS)
def test_what_is_stored_is_loaded(kind: str, count: int) -> None:
    bits = WIDTHS[kind]
    if count * bits > 128:
        return
    random = np.random.default_rng(bits)
    values = random.integers(0, 1 << 63, (128, count), np.uint64).astype(f"u{bits // 8}")
    size = count * bits // 8
    machine = group(at=size * LANES[::-1] + 64)
    machine[f"%s<{count}>"] = values
    vector = f".v{count}" if count > 1 else ""
    source, target = ("{" + ", ".join(f"%{r}{i}" for i in range(count)) + "}" for r in "sd")
    machine.run(f"st.shared{vector}.{kind} [%at+-64], {source}; bar.sync 0;")
    assert np.array_equal(machine.shared.data[: 128 * size], values[::-1].copy().view(np.uint8).ravel())
    machine.run(f"ld.shared::cta{vector}.{kind} {target}, [%at+-64];")
    assert np.array_equal(machine[f"%d<{count}>"], values)


def test_wider_registers_are_extended_and_cut() -> None:
    machine = group(".shared .b8 t[16]; .reg .b32 %r; .reg .b64 %q, %p, %z; .reg .b16 %h;")
    machine.shared.data[:4] = [0x80, 0xFF, 0x7F, 0xFE]
    machine.run("ld.shared.s8 %r, [t]; ld.shared.s32 %q, [t]; ld.shared.u8 %h, [t]; ld.shared.f32 %z, [t];")
    assert [int(machine[n][0]) for n in ("%r", "%q", "%h", "%z")] == [
        0xFFFFFF80, 0xFFFFFFFFFE7FFF80, 0x80, 0xFE7FFF80,
    ]  # fmt: skip
    machine.run("st.shared.b8 [t+4], %q; st.shared.u16 [t+8], %r;")
    assert machine.shared.data[4:10].tolist() == [0x80, 0, 0, 0, 0x80, 0xFF]


def test_constants_can_be_stored() -> None:
    machine = group(".shared .b32 t[4]; st.shared.v2.b32 [t], {-1, 0f3F800000};")
    machine.run("st.shared.f32 [t+8], 1.5; st.shared.b8 [t+12], 300;")
    assert machine.shared.data[:16].view(np.uint32).tolist() == [
        0xFFFFFFFF,
        0x3F800000,
        0x3FC00000,
        300 & 255,
    ]


def test_only_the_lanes_of_the_guard_load_and_store() -> None:
    machine = group(p=LANES % 3 == 0, at=4 * LANES, r=LANES + 1)
    machine.run("@%p st.shared.b32 [%at], %r;")
    stored = machine.shared.data[:512].view(np.uint32)
    assert np.array_equal(stored, np.where(LANES % 3 == 0, LANES + 1, 0))
    machine.run("mov.b32 %d, 7; @!%p ld.shared.b32 %d, [%at];")
    assert np.array_equal(machine["%d"], np.where(LANES % 3 == 0, 7, 0))
    machine.run(
        "@%p mov.b32 %bad, 99999999; @%p mov.b32 %ok, 8; @!%p mov.b32 %ok, 4; ld.shared.b32 %d, [%ok];"
    )
    assert "has been written to it in lane 1" in refusal(
        machine, "ld.shared.b32 %d, [%bad];", UndefinedBehavior
    )


def test_a_guard_turns_accesses_off() -> None:
    machine = group(p=False, at=1, r=1, d=2)
    before = machine.registers()
    machine.run("@%p st.shared.b32 [%at], %r; @%p ld.shared.v2.b32 {%d, %e}, [%at]; @%p bar.sync 0;")
    machine.run("@%p ldmatrix.sync.aligned.m8n8.x1.b16 {%d}, [%at]; @%p wgmma.fence.sync.aligned;")
    machine.run("@%p stmatrix.sync.aligned.m8n8.x1.b16 [%at], {%d}; @%p fence.proxy.async;")
    after = machine.registers()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert not machine.shared.data.any()


def test_the_sink_is_loaded_into_nowhere() -> None:
    machine = group(".shared .b32 t[2]; ld.shared.v2.b32 {_, %d}, [t];")
    assert list(machine.registers()) == ["%d"]


ADDRESSES = (
    ".shared .align 16 .b8 t[64]; .reg .b32 %a<4>, %r<4>; .reg .b64 %q<4>; .reg .f32 %f; .reg .b16 %h;"
)


@pytest.mark.parametrize(
    ("text", "kind", "column", "message"),
    [
        ("ld.shared.b32 %r0, [%a0];", OperandError, 20,
         "lane 3 loads 4 bytes at address 0x3, no multiple of 4"),
        ("ld.shared.b32 %r0, [%a1+4];", OperandError, 20,
         "lane 0 loads 4 bytes at address 0x4000, outside the 16384 bytes of memory"),
        ("st.shared.v4.b32 [t+8], {%r1, %r1, %r1, %r1};", OperandError, 18,
         "lane 0 stores 16 bytes at address 0x8, no multiple of 16"),
        ("ld.shared.b32 %r0, [%q0];", OperandError, 20,
         "lane 0 loads 4 bytes at address 0x8000000000000000, outside the 16384 bytes of memory"),
        ("ld.shared.b32 %r0, [t+-4];", OperandError, 20,
         "lane 0 loads 4 bytes at address -0x4, outside the 16384 bytes of memory"),
        ("ld.shared.b32 %r0, [16];", IllegalInstruction, 20,
         "an address in shared memory is a register or a variable, not a number"),
        ("ld.shared.b32 %r0, [%f];", IllegalInstruction, 20,
         "%f is .f32: an address has 32 or 64 bits"),
        ("ld.shared.b32 %r0, [%laneid];", IllegalInstruction, 20,
         "%laneid is a special register, and no address: copy it with mov first"),
        ("ld.shared.b32 %r0, t;", IllegalInstruction, 20,
         "expected an address in brackets, as [%r1+16], not 't'"),
        ("ld.shared.b32 %r0, [s];", IllegalInstruction, 20, "register s is not declared"),
        ("ld.shared.b32 %r0;", IllegalInstruction, 1, "ld.shared.b32 takes 2 operands, but 1 is given"),
        ("ld.shared.b64 %r0, [t];", IllegalInstruction, 15, "ld.shared.b64 takes .b64 here, but %r0 is .b32"),
        ("ld.shared.u32 %f, [t];", IllegalInstruction, 15, "ld.shared.u32 takes .u32 here, but %f is .f32"),
        ("ld.shared.b32 5, [t];", IllegalInstruction, 15, "ld.shared.b32 writes a register, not '5'"),
        ("ld.shared.b32 %tid.x, [t];", IllegalInstruction, 15, "the special register %tid.x is read-only"),
        ("ld.shared.v2.b32 {%r0, %r0}, [t];", UndefinedBehavior, 24,
         "ld writes %r0 twice: PTX does not define which value stays"),
        ("ld.shared.v2.b32 %q0, [t];", IllegalInstruction, 18,
         "expected 2 elements, not '%q0'"),
        ("ld.shared.v4.b64 {%q0, %q1, %q2, %q3}, [t];", IllegalInstruction, 1,
         "ld has no form ld.shared.v4.b64: its modifiers do not go together"),
        ("ld.b32 %r0, [%q1];", OperandError, 13,
         "lane 0 loads 4 bytes at the generic address 0x10, which is not in shared memory: cvta.shared makes "
         "those that are"),
        ("ld.global.b32 %r0, [t];", NotModelled, 20,
         "ld.global.b32 is not modelled here: there is no .global memory outside a launched kernel, only "
         ".shared and .local"),
        ("ld.shared.v8.b32 %r0, [t];", IllegalInstruction, 1,
         "ld has no form ld.shared.v8.b32: its modifiers do not go together"),
        ("st.shared [t], %r1;", IllegalInstruction, 1, "st has no form st.shared: it lacks a type"),
        ("st.shared.b32.u32 [t], %r1;", IllegalInstruction, 1,
         "st has no form st.shared.b32.u32: its modifiers do not go together"),
        ("st.shared.b32 [t], %laneid;", IllegalInstruction, 20,
         "st does not take special registers: mov reads %laneid"),
        ("st.shared.b32 [t], %h;", IllegalInstruction, 20, "st.shared.b32 takes .b32 here, but %h is .b16"),
        ("st.shared.b32 [t], _;", IllegalInstruction, 20, "expected a register or a constant, not '_'"),
        ("st.shared.b32 [t], 1.5;", IllegalInstruction, 20,
         ".b32 does not take a float constant, as 0d3FF8000000000000"),
        ("st.shared.b32 [t], %r2;", UndefinedBehavior, 15,
         "lanes 0 and 1 store different values at address 0x0: PTX does not define which stays"),
    ],
)  # fmt: skip
def test_loads_and_stores_that_are_refused(
    text: str, kind: type[WarpsimError], column: int, message: str
) -> None:
    machine = group(ADDRESSES)
    machine["%a0"], machine["%a1"], machine["%r1"], machine["%r2"] = (LANES // 3) * 3, 16380, 1, LANES
    machine["%q0"], machine["%h"], machine["%f"] = np.uint64(1 << 63), np.uint16(0), np.float32(0)
    machine["%q1"] = 16
    assert refusal(machine, text, kind).startswith(f"k.ptx:1:{column}: error: {message}\n")


def test_with_fallback_the_last_lane_stays() -> None:
    machine = Warpgroup(undefined="fallback", hazards="off")
    machine["%r"] = LANES
    machine.run(".shared .b32 t; st.shared.b32 [t], %r;")
    assert machine.shared.data[0] == 127


REGISTER_TYPES = (
    "b8", "u8", "s8", "b16", "u16", "s16", "f16", "f16x2", "b32", "u32", "s32", "f32", "b64", "u64", "s64",
    "f64",
)  # fmt: skip


def accepted(declarations: str, text: str) -> bool:
    machine = group(declarations)
    for kind in REGISTER_TYPES:
        machine[f"%{kind}_0"] = 0
    try:
        machine.run(text)
    except IllegalInstruction:
        return False
    return True


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "")
@pytest.mark.parametrize("opcode", ["ld", "st", "ldmatrix", "stmatrix"])
def test_ptxas_takes_the_same_registers(opcode: str) -> None:
    declarations = ".shared .align 16 .b8 t[64];"
    declarations += "".join(f".reg .{kind} %{kind}_<2>;" for kind in REGISTER_TYPES)
    if opcode in ("ld", "st"):
        mnemonics = [f"{opcode}.shared.{kind}" for kind in WIDTHS]
    else:
        mnemonics = [f"{opcode}.sync.aligned.m8n8.x1.shared.b16"]
    texts = []
    for mnemonic, kind in product(mnemonics, REGISTER_TYPES):
        register = f"{{%{kind}_0}}" if "matrix" in opcode else f"%{kind}_0"
        load = opcode.startswith("ld")
        texts.append(f"{mnemonic} {register}, [t];" if load else f"{mnemonic} [t], {register};")
    verdicts = ptxas.verdicts(texts, target="sm_90a", declarations=declarations)
    for text, verdict in zip(texts, verdicts, strict=True):
        assert accepted(declarations, text) == (verdict is None), (text, verdict)


# --- ldmatrix, stmatrix ----------------------------------------------------------------------------


def rows_of(random: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Addresses of 8 * count distinct rows for each warp (other lanes: nonsense), and the rows."""
    order = random.permutation(4 * 8 * count)
    at = np.full(128, 12345, np.uint32)
    for warp in range(4):
        at[32 * warp : 32 * warp + 8 * count] = 16 * order[8 * count * warp :][: 8 * count] + 256
    return at, random.integers(0, 1 << 16, (4, count, 8, 8)).astype(np.uint16)


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrices_go_to_where_the_manual_says(count: int, trans: str) -> None:
    at, matrices = rows_of(np.random.default_rng(count), count)
    machine = group(at=at)
    for warp, matrix, row in product(range(4), range(count), range(8)):
        address = int(at[32 * warp + 8 * matrix + row])
        machine.shared.data[address : address + 16] = matrices[warp, matrix, row].view(np.uint8)
    registers = "{" + ", ".join(f"%d{i}" for i in range(count)) + "}"
    machine.run(f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {registers}, [%at];")
    for lane, register in product(range(128), range(count)):
        matrix = matrices[lane // 32, register]
        line, pair = lane % 32 // 4, 2 * (lane % 4)
        first, second = (matrix[pair + i, line] if trans else matrix[line, pair + i] for i in (0, 1))
        assert int(machine[f"%d{register}"][lane]) == int(first) | int(second) << 16
    image = machine.shared.data.copy()
    machine.shared.data[:] = 0
    machine.run(f"bar.sync 0; stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%at], {registers};")
    assert np.array_equal(machine.shared.data, image)


def test_a_warp_may_stay_away() -> None:
    machine = group(at=16 * (LANES % 8), p=LANES // 32 == 2, d=5)
    machine.shared.data[:128] = 0x77
    machine.run("@%p ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d}, [%at];")
    assert np.array_equal(machine["%d"], np.where(LANES // 32 == 2, 0x77777777, 5))


LDMATRIX = "ldmatrix.sync.aligned.m8n8"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (f"{LDMATRIX}.x1.shared.b16 %r, [t];", IllegalInstruction,
         "expected 1 register in braces, not '%r'"),
        (f"{LDMATRIX}.x2.shared.b16 {{%r}}, [t];", IllegalInstruction,
         "expected 2 elements, not '{%r}'"),
        (f"{LDMATRIX}.x2.shared.b16 {{%r, %r}}, [t];", UndefinedBehavior,
         "%r is written twice: PTX does not define which value stays"),
        (f"{LDMATRIX}.x1.shared.b16 {{%q}}, [t];", IllegalInstruction,
         "ldmatrix.sync.aligned.m8n8.x1.shared.b16 takes .b32 here, but %q is .b64"),
        (f"{LDMATRIX}.shared.b16 {{%r}}, [t];", IllegalInstruction,
         "ldmatrix has no form ldmatrix.sync.aligned.m8n8.shared.b16: it lacks .x1 or .x2 or .x4"),
        ("ldmatrix.aligned.m8n8.x1.shared.b16 {%r}, [t];", IllegalInstruction,
         "ldmatrix has no form ldmatrix.aligned.m8n8.x1.shared.b16: it lacks .sync"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r, %s}, [t];", IllegalInstruction,
         "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 is not on sm_90a: it needs sm_100f or higher"),
        (f"{LDMATRIX}.x1.shared.b16 {{%r}}, [%a];", OperandError,
         "lane 33 loads 16 bytes at address 0x8, no multiple of 16"),
        (f"@%p {LDMATRIX}.x1.shared.b16 {{%r}}, [t];", UndefinedBehavior,
         "guard %p differs between lanes of warp 1, but all lanes of a warp must execute ldmatrix together"),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [t], {5};", IllegalInstruction,
         "all constants, which leaves the type open: name one register"),
    ],
)  # fmt: skip
def test_matrix_accesses_that_are_refused(text: str, kind: type[WarpsimError], message: str) -> None:
    machine = group(".shared .align 16 .b8 t[512]; .reg .b32 %r, %s, %a; .reg .b64 %q; .reg .pred %p;")
    machine["%p"], machine["%a"] = LANES >= 40, np.where(LANES == 33, 8, 0)
    assert f"error: {message}\n" in refusal(machine, text, kind)


# --- synchronisation -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "wgmma.fence.sync.aligned;", "wgmma.fence.sync;", "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned 7;", "fence.proxy.async;", "fence.proxy.async.shared::cta;",
        "fence.proxy.async.shared::cluster;", "bar.sync 0;", "bar.sync 15, 128;", "barrier.sync 1;",
        "fence.proxy.alias;", "fence.sc.cta;", "membar.gl;", "bar.arrive 0, 256;",
        "bar.red.popc.u32 %c, 0, %q;",
        "@%h bar.sync 1, 64; @!%h bar.sync 2, 64;", "barrier.cta.sync.aligned 1, 128;", "bar.cta.sync 0;",
        "mov.b32 %b, 3; bar.sync %b;", "@%h fence.proxy.async;",
    ],
)  # fmt: skip
def test_statements_that_order_others(text: str) -> None:
    machine = group(h=LANES < 64, q=LANES % 2 == 0)
    machine.run(text)
    assert machine.hazards == ()
    assert "%c" not in machine or set(machine["%c"].tolist()) == {64}


@pytest.mark.parametrize(
    ("text", "kind", "column", "message"),
    [
        ("wgmma.fence;", IllegalInstruction, 1, "wgmma has no form wgmma.fence: it lacks .sync"),
        ("wgmma.wait_group.aligned 0;", IllegalInstruction, 1,
         "wgmma has no form wgmma.wait_group.aligned: it lacks .sync"),
        ("wgmma.commit_group.sync.cta;", IllegalInstruction, 24, "wgmma has no modifier .cta here"),
        ("wgmma.fence.sync.aligned 0;", IllegalInstruction, 26, "wgmma.fence takes no operands"),
        ("wgmma.wait_group.sync.aligned;", IllegalInstruction, 1,
         "wgmma.wait_group takes one operand, the number of groups left pending"),
        ("wgmma.wait_group.sync.aligned -1;", IllegalInstruction, 31,
         "wgmma.wait_group takes a constant that is not negative, not '-1'"),
        ("wgmma.wait_group.sync.aligned %r;", IllegalInstruction, 31,
         "wgmma.wait_group takes a constant that is not negative, not '%r'"),
        ("@%p wgmma.fence.sync.aligned;", UndefinedBehavior, 1,
         "guard %p differs between lanes, but all lanes must execute wgmma together"),
        ("@%p bar.sync 0;", UndefinedBehavior, 5,
         "bar.sync waits for barrier 0, to which not all threads come [warp 0, lane 0 and 63 more]"),
        ("fence.proxy.alias 5;", IllegalInstruction, 1, "fence.proxy.alias takes 0 operands, but 1 is given"),
        ("bar.sync.aligned 0;", IllegalInstruction, 9, "bar has no modifier .aligned here"),
        ("bar.sync;", IllegalInstruction, 1, "bar.sync takes 1 or 2 operands, but 0 are given"),
        ("bar.sync 16;", IllegalInstruction, 10, "barrier 16: there are 0 to 15"),
        ("bar.sync 0, 100;", IllegalInstruction, 13, "a barrier of 100 threads: expected a multiple of 32"),
        ("bar.sync 1.5;", IllegalInstruction, 10,
         ".u32 does not take a float constant, as 0d3FF8000000000000"),
        ("exit;", NotModelled, 1,
         "'exit' is not modelled in a warpgroup: statements are executed in order; a launched "
         "kernel may execute it"),
    ],
)  # fmt: skip
def test_synchronisation_that_is_refused(
    text: str, kind: type[WarpsimError], column: int, message: str
) -> None:
    machine = group(p=LANES < 64)
    assert refusal(machine, text, kind).startswith(f"k.ptx:1:{column}: error: {message}\n")


@pytest.mark.parametrize(
    ("target", "version", "text", "message"),
    [
        ("sm_100a", "8.7", "wgmma.fence.sync.aligned;",
         "wgmma.fence.sync.aligned is not on sm_100a: it needs sm_90a"),
        ("sm_80", "8.0", "fence.proxy.async;", "fence.proxy.async is not on sm_80: it needs sm_90 or higher"),
        ("sm_70", "8.0", f"{LDMATRIX}.x1.b16 {{%d}}, [%a];", "is not on sm_70: it needs sm_75 or higher"),
        ("sm_90a", "7.8", "wgmma.fence.sync.aligned;",
         "wgmma.fence.sync.aligned needs PTX 8.0, but the version is 7.8"),
        ("sm_100a", "8.7", f"{DENSE} {D4}, 0, 0, 1, 1, 1, 0, 0;", "is not on sm_100a; it is on sm_90a"),
    ],
)  # fmt: skip
def test_chips_and_versions_that_lack_a_statement(target: str, version: str, text: str, message: str) -> None:
    machine = Warpgroup(target)
    machine["%a"] = 0
    with pytest.raises(IllegalInstruction, match=message):
        machine.run(f".version {version}\n{text}")


# --- wgmma -----------------------------------------------------------------------------------------


class Case:
    """A random product of one form: operands by name, and D after it."""

    def __init__(self, mnemonic: str, *, shared_a: bool, scale_d: int = 1, seed: int = 0) -> None:
        self.form = form = warpsim.decode(mnemonic, target="sm_90a")
        random = np.random.default_rng(seed)
        a = random.standard_normal((64, form.shape.k)).astype(form.a.dtype)
        b = random.standard_normal((form.shape.k, 8)).astype(form.b.dtype)
        self.inputs: dict[str, Any] = {
            "c": warpsim.pack(form, "c", random.standard_normal((64, 8)).astype(np.float32)),
            "scale_d": scale_d,
        }
        if form.sparse:
            a, indices = warpsim.compress(warpsim.prune(a, form), form)
            self.inputs |= {"e": warpsim.pack_metadata(form, indices, 1), "selector": 1}
        self.memory = np.zeros(1 << 14, np.uint8)
        self.inputs["b_desc"] = self.placed(1024, b.T)
        if shared_a:
            self.inputs["a_desc"] = self.placed(8192, a)
        else:
            self.inputs["a"] = warpsim.pack(form, "a", a)
        self.d = warpsim.execute(form, shared=self.memory, **self.inputs)

    def placed(self, start: int, tile: Words) -> int:
        codes = np.ascontiguousarray(tile).view(f"u{tile.itemsize}")
        mn, k = codes.shape
        descriptor = canonical_descriptor(
            start, TileShape(mn=mn, k=k, element_bits=8 * tile.itemsize, major="K"), swizzle="none"
        )
        store_tile(self.memory, descriptor, codes, major="K")
        return descriptor.encode()

    def machine(self, **settings: Any) -> Warpgroup:
        machine = Warpgroup(shared_bytes=1 << 14, **settings)
        machine.write_shared(0, self.memory)
        machine["%d<4>"] = self.inputs["c"]
        if "a" in self.inputs:
            machine["%a<4>"] = self.inputs["a"]
        else:
            machine["%ad"] = np.uint64(self.inputs["a_desc"])
        if "e" in self.inputs:
            machine["%e"] = self.inputs["e"][:, 0]
        machine["%bd"] = np.uint64(self.inputs["b_desc"])
        return machine

    def text(self, scale_d: str | None = None) -> str:
        a = A4 if "a" in self.inputs else "%ad"
        sparse = "%e, 1, " if self.form.sparse else ""
        transposed = "0" if "a" in self.inputs else "0, 0"
        scale = self.inputs["scale_d"] if scale_d is None else scale_d
        return f"{self.form.mnemonic} {D4}, {a}, %bd, {sparse}{scale}, 1, 1, {transposed};"


@pytest.mark.parametrize("engine", ["kernel", "reference"])
@pytest.mark.parametrize("scale_d", [0, 1])
@pytest.mark.parametrize("shared_a", [False, True])
@pytest.mark.parametrize("mnemonic", [DENSE, SPARSE])
def test_wgmma_executes_as_execute_does(mnemonic: str, shared_a: bool, scale_d: int, engine: Any) -> None:
    case = Case(mnemonic, shared_a=shared_a, scale_d=scale_d)
    machine = case.machine(engine=engine)
    (event,) = machine.run(f"{FENCE} {case.text()} {CLOSE}")
    assert np.array_equal(machine["%d<4>"], case.d)
    assert np.array_equal(event.d, case.d)
    assert machine.origin("%d3") == (event, 3)
    machine.finish()
    assert machine.hazards == ()


def test_an_event_keeps_shared_memory_as_it_was_read() -> None:
    case = Case(SPARSE, shared_a=True)
    machine = case.machine(hazards="off")
    first, second = machine.run(f"{FENCE} {case.text()} {case.text()} {CLOSE}")
    machine.write_shared(0, np.zeros(1 << 14, np.uint8))
    machine["%d<4>"] = case.inputs["c"]
    (third,) = machine.run(f"{FENCE} {case.text()} {CLOSE}")
    assert first.inputs.shared is second.inputs.shared  # one copy serves both
    assert np.array_equal(first.inputs.shared, case.memory)
    assert not third.inputs.shared.any()
    for event in (first, second, third):
        ((lane, inputs, d),) = event.executions()
        assert (lane, event.warps) == (0, (0, 1, 2, 3))
        assert np.array_equal(execute_inputs(event.instruction, inputs), d)
    assert np.array_equal(first.d, case.d)
    assert np.array_equal(second.inputs.registers["c"], first.d)


def test_without_accumulation_d_need_not_be_written_before() -> None:
    case = Case(DENSE, shared_a=True, scale_d=0)
    machine = Warpgroup()
    machine.write_shared(0, case.memory)
    machine["%ad"], machine["%bd"] = np.uint64(case.inputs["a_desc"]), np.uint64(case.inputs["b_desc"])
    machine.run(f"{FENCE} {case.text()} {CLOSE}")
    assert np.array_equal(machine["%d<4>"], case.d)
    assert "register %d0 is read, but nothing has been written to it" in refusal(
        Warpgroup(), f"{FENCE} {DENSE} {D4}, 0, 0, 1, 1, 1, 0, 0;", UndefinedBehavior
    )


@pytest.mark.parametrize(
    ("predicate", "negated", "scale_d"), [(True, "", 1), (True, "!", 0), (False, "!", 1)]
)
def test_scale_d_may_be_a_predicate(predicate: bool, negated: str, scale_d: int) -> None:
    case = Case(DENSE, shared_a=False, scale_d=scale_d)
    machine = case.machine()
    machine["%p"] = predicate
    machine.run(f"{FENCE} {case.text(f'{negated}%p')} {CLOSE}")
    assert np.array_equal(machine["%d<4>"], case.d)


def test_a_guard_turns_a_wgmma_off() -> None:
    machine = Case(DENSE, shared_a=False).machine()
    machine["%p"] = False
    before = machine["%d<4>"]
    assert machine.run(f"@%p {Case(DENSE, shared_a=False).text()}") == []
    assert np.array_equal(machine["%d<4>"], before)
    machine.finish()


@pytest.mark.parametrize(
    ("change", "operand", "kind", "message"),
    [
        ({"%bd": LANES // 32 + np.uint64(7)}, "%bd", HazardError,
         "b-desc must be the same in the whole warpgroup, but is 0x7 in warp 0 and 0x8 in warp 1"),
        ({"%bd": LANES // 50 + np.uint64(7)}, "%bd", HazardError,
         "b-desc must be the same in the whole warpgroup, but is 0x7 in lane 0 and 0x8 in lane 50"),
        ({"%ad": LANES // 64 + np.uint64(7)}, "%ad", HazardError,
         "a-desc must be the same in the whole warpgroup, but is 0x7 in warp 0 and 0x8 in warp 2"),
        ({"%p": LANES < 96}, "%p", HazardError,
         "scale-d must be the same in the whole warpgroup, but is 0x1 in warp 0 and 0x0 in warp 3"),
        ({"%p": 5}, "%p", IllegalInstruction, "scale-d takes registers of 1 bits, but %p holds 32 bits"),
        ({"%bd": np.uint64(1 << 50)}, "%bd", OperandError,
         "base offset is 2 (bits 51:49); legal without swizzle: 0"),
        ({"%bd": np.uint64(0x3FF)}, "%bd", OperandError, "element (7, 7) of the tile lies at 0x406e"),
        ({"%bd": np.uint64(0xFFFF)}, "%bd", OperandError, "descriptor 0x000000000000ffff has reserved bits"),
        ({"%ad": np.uint64(0xFFFF)}, "%ad", OperandError, "descriptor 0x000000000000ffff has reserved bits"),
        ({"%bd": 5}, "%bd", IllegalInstruction, "b-desc takes registers of 64 bits, but %bd holds 32 bits"),
    ],
)  # fmt: skip
def test_operands_of_wgmma_that_are_refused(
    change: dict[str, Any], operand: str, kind: type[WarpsimError], message: str
) -> None:
    case = Case(DENSE, shared_a=True)
    machine = case.machine()
    for name, value in change.items():
        machine[name] = value
    machine.run(FENCE)
    text = case.text(operand if operand == "%p" else None)
    said = refusal(machine, text, kind)
    assert said.startswith(f"k.ptx:1:{1 + text.index(operand)}: error: {message}"), said


def test_a_guard_is_the_same_in_all_lanes() -> None:
    machine = Case(DENSE, shared_a=True).machine()
    machine["%p"] = LANES < 32
    assert refusal(machine, f"@%p {Case(DENSE, shared_a=True).text()}", UndefinedBehavior).startswith(
        "k.ptx:1:1: error: guard %p differs between lanes, but all lanes must execute wgmma together\n"
    )


def test_the_sink_cannot_accumulate() -> None:
    machine = Case(DENSE, shared_a=False).machine()
    text = f"{DENSE} {{%d0, _, %d2, %d3}}, {A4}, %bd, 1, 1, 1, 0;"
    assert "'_'" in refusal(machine, text, IllegalInstruction)


def test_undefined_metadata_points_at_the_metadata() -> None:
    case = Case(SPARSE, shared_a=False)
    machine = case.machine()
    machine["%e"] = 0
    machine.run(FENCE)
    said = refusal(machine, case.text(), UndefinedBehavior)
    assert "are equal, which PTX leaves undefined" in said
    assert said.startswith(f"k.ptx:1:{1 + case.text().index('%e')}: error: metadata field 0b0000 in lane 2, ")


def test_without_hazards_differing_descriptors_are_those_of_lane_0() -> None:
    case = Case(DENSE, shared_a=False)
    machine = case.machine(hazards="off")
    machine["%bd"] = np.where(LANES == 0, np.uint64(case.inputs["b_desc"]), np.uint64(0))
    machine.run(f"{case.text()}")
    assert np.array_equal(machine["%d<4>"], case.d)
    assert machine.hazards == ()


# --- hazards ---------------------------------------------------------------------------------------


def hazard(machine: Warpgroup, action: Any) -> HazardError:
    with pytest.raises(HazardError) as caught:
        action(machine)
    return caught.value


@pytest.mark.parametrize(
    ("action", "place", "message"),
    [
        (lambda m: m["%d<4>"], '["%d<4>"]', "%d0, %d1, %d2, %d3 are read while the wgmma that accumulates"),
        (lambda m: m.__setitem__("%a1", 0), '["%a1"] = …',
         "%a1 is written while the wgmma that reads it as A"),
        (lambda m: m.load("%d1", 0), 'load("%d1", …)', "%d1 is written while the wgmma that accumulates"),
        (lambda m: m.write_shared(1024, np.uint64(0)), "write_shared(1024, …)",
         "bytes 0x400..0x407 of shared memory are written while a wgmma that reads them is in flight"),
        (lambda m: m.finish(), "finish()", "the program ends with 1 wgmma in flight"),
    ],
)  # fmt: skip
def test_python_waits_too(action: Any, place: str, message: str) -> None:
    case = Case(DENSE, shared_a=False)
    machine = case.machine()
    machine.run(f"{FENCE} {case.text()}")
    error = hazard(machine, action)
    assert error.message.startswith(message)
    assert error.location is not None
    assert (error.location.file, error.location.text) == ("<python>", place)


@pytest.mark.parametrize(
    "text",
    [
        "mov.b32 %x, %d0;",
        "mov.b32 %d0, 0;",
        "mov.b64 %y, {%x, %d1};",
        "mov.b32 %a2, 0;",
        "mov.b32 %x, %a2;",
        "st.shared.b32 [%at], %d0;",
        "st.shared.b32 [%d0], %x;",
        "ld.shared.b32 %d0, [t];",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a3}, [t];",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%at], {%d0};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0,%d1,%d2,%d3}, {%x,%x,%x,%x}, {%x,%x}, "
        "{%x,%x,%x,%x};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%o0,%o1,%o2,%o3}, {%a0,%x,%x,%x}, {%x,%x}, "
        "{%x,%x,%x,%x};",
        "st.shared.b32 [t+1024], %x;",
        "{ { mov.b32 %d0, 1; } }",
    ],
)
def test_every_statement_is_checked(text: str) -> None:
    case = Case(DENSE, shared_a=False)
    machine = case.machine()
    machine["%x"], machine["%at"] = 0, 16 * LANES + 4096
    machine.run(f".shared .align 16 .b8 t[2048]; {FENCE} {case.text()}")
    before = machine.shared.data.copy()
    error = hazard(machine, lambda m: m.run(text, "k.ptx"))
    assert "in flight" in error.message
    assert np.array_equal(machine.shared.data, before)
    machine.run(CLOSE)
    if "[%d0]" not in text:
        machine.run(text)


def test_registers_of_different_blocks_are_different() -> None:
    case = Case(DENSE, shared_a=False)
    machine = case.machine()
    machine.run(f"{FENCE} {case.text()}")
    machine.run("{ .reg .b32 %d0; mov.b32 %d0, 1; { mov.b32 %d0, 2; } } { .reg .b32 %d0; mov.b32 %d0, 1; }")
    assert "%d0 is written" in str(hazard(machine, lambda m: m.run("{ .reg .b32 %z; mov.b32 %d0, 1; }")))


def test_registers_of_a_block_are_named_with_it() -> None:
    case = Case(DENSE, shared_a=False, scale_d=0)
    machine = case.machine()
    block = f"{{ .reg .f32 %d<4>; {FENCE} {case.text()} mov.f32 %d0, %d1; }}"
    assert "%d1 (of block 1) is read while" in str(hazard(machine, lambda m: m.run(block)))


def test_warnings_and_collected_errors() -> None:
    case = Case(SPARSE, shared_a=False)
    machine = case.machine()
    machine.run(f"{FENCE} {case.text()} mov.b32 %e, 0; {CLOSE}")
    assert [(one.severity, one.rule) for one in machine.hazards] == [("warning", "metadata-in-flight")]
    machine = case.machine(hazards="warn")
    machine.run(case.text())
    assert np.array_equal(machine["%d<4>"], case.d)
    machine.finish()
    assert [one.rule for one in machine.hazards] == ["first-fence", "accumulator-in-flight", "uncommitted"]
    machine = case.machine(hazards="off")
    machine.run(case.text())
    assert np.array_equal(machine["%d<4>"], case.d)
    machine.finish()
    assert machine.hazards == ()


# --- barriers --------------------------------------------------------------------------------------

STORE, LOAD = "st.shared.b32 [%own], %r;", "ld.shared.b32 %d, [%next];"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{STORE} bar.sync 0; {LOAD}", None),
        (f"{STORE} {LOAD}",
         "byte 0x80 of shared memory is read by warp 0, but was written by warp 1 with no "),
        (f"{LOAD} {STORE}",
         "byte 0x0 of shared memory is written by warp 0, but was read by warp 3 with no "),
        (f"{LOAD} bar.sync 0; {STORE}", None),
        (f"{STORE} st.shared.b32 [%next], %r;",
         "byte 0x80 of shared memory is written by warp 0, but was written by warp 1 with no bar.sync since"),
        (f"{STORE} ld.shared.b32 %d, [%own]; {STORE}", None),
        (f"{STORE} ld.shared.b32 %d, [%other];", None),
    ],
)  # fmt: skip
def test_warps_meet_at_a_barrier(text: str, message: str | None) -> None:
    machine = group(own=4 * LANES, next=4 * ((LANES + 32) % 128), other=4096 + 4 * LANES, r=LANES)
    if message is None:
        machine.run(text)
        assert machine.hazards == ()
    else:
        error = hazard(machine, lambda m: m.run(text, "k.ptx"))
        assert error.message.startswith(message)
        assert error.hazard.fix == "insert 'bar.sync 0;' before k.ptx:1"


def test_a_tile_is_refilled_behind_a_barrier() -> None:
    """A wait is for the warp's own wgmma: others may still read the tile."""
    case = Case(DENSE, shared_a=False)
    for barrier, found in (("bar.sync 0;", 0), ("", 1)):
        machine = case.machine()
        machine["%x"] = 0
        machine.run(
            f".shared .b8 t[4096]; {FENCE} {case.text()} {CLOSE} {barrier} st.shared.b32 [t+1024], %x;"
        )
        assert len(machine.hazards) == found
    (warning,) = machine.hazards
    assert (warning.severity, warning.rule) == ("warning", "barrier")
    assert warning.message == (
        "byte 0x400 of shared memory is written by warp 0, but was read by the wgmma of other warps with no "
        "bar.sync since"
    )


def test_a_tile_is_filled_before_a_barrier() -> None:
    case = Case(DENSE, shared_a=False)
    for barrier, found in (("bar.sync 0;", 0), ("", 1)):
        machine = case.machine()
        machine["%x"] = 0
        fill = f".shared .b8 t[4096]; st.shared.b32 [t+1024], %x; fence.proxy.async; {barrier} {FENCE}"
        machine.run(f"{fill} {case.text()} {CLOSE}")
        assert len(machine.hazards) == found
    (warning,) = machine.hazards
    assert warning.message == (
        "byte 0x400 of shared memory is read by the wgmma of other warps, but was written by warp 3 with no "
        "bar.sync since"
    )


# --- mma -------------------------------------------------------------------------------------------

MMA = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
MMA_TEXT = f"{MMA} {D4}, {A4}, {A4.replace('a', 'b')}, {D4.replace('d', 'c')}, %e0, 1;"


def warp_operands(seed: int) -> dict[str, Words]:
    form, random = warpsim.decode(MMA, target="sm_90a"), np.random.default_rng(seed)
    a = warpsim.prune(random.standard_normal((16, 32)).astype(np.float16), form)
    values, indices = warpsim.compress(a, form)
    return {
        "a": warpsim.pack(form, "a", values),
        "b": warpsim.pack(form, "b", random.standard_normal((32, 8)).astype(np.float16)),
        "c": warpsim.pack(form, "c", random.standard_normal((16, 8)).astype(np.float32)),
        "e": warpsim.pack_metadata(form, indices, 1),
    }


def mma_machine() -> tuple[Warpgroup, Words]:
    warps = [warp_operands(seed) for seed in range(4)]
    machine = Warpgroup()
    for name in warps[0]:
        words = np.concatenate([operands[name] for operands in warps])
        machine[f"%{name}<{words.shape[1]}>"] = words
    d = [warpsim.execute(MMA, target="sm_90a", **operands, selector=1) for operands in warps]
    return machine, np.concatenate(d)


def test_each_warp_executes_its_own_mma() -> None:
    machine, expected = mma_machine()
    (event,) = machine.run(MMA_TEXT)
    assert np.array_equal(machine["%d<4>"], expected)
    assert np.array_equal(event.d, expected)
    assert [lane for lane, _, _ in event.executions()] == [0, 32, 64, 96]
    for lane, inputs, d in event.executions():
        assert np.array_equal(inputs.registers["a"], event.inputs.registers["a"][lane : lane + 32])
        assert np.array_equal(execute_inputs(event.instruction, inputs), d)
    for warp in range(4):
        lone = Warp("sm_90a")
        for name, words in warp_operands(warp).items():
            lone[f"%{name}<{words.shape[1]}>"] = words
        lone.run(MMA_TEXT)
        assert np.array_equal(lone["%d<4>"], expected[32 * warp : 32 * warp + 32])


def test_some_warps_may_execute_an_mma() -> None:
    machine, expected = mma_machine()
    machine["%p"], machine["%d<4>"] = LANES // 32 % 2 == 1, 0
    (event,) = machine.run(f"@%p {MMA_TEXT}")
    assert event.warps == (1, 3)
    assert [lane for lane, _, _ in event.executions()] == [32, 96]
    assert np.array_equal(machine["%d<4>"], np.where((LANES // 32 % 2 == 1)[:, None], expected, 0))
    machine["%p"] = LANES < 40
    assert "guard %p differs between lanes of warp 1, but all lanes of a warp must execute mma" in refusal(
        machine, f"@%p {MMA_TEXT}", UndefinedBehavior
    )


def test_the_warp_whose_metadata_is_undefined_is_named() -> None:
    machine, _ = mma_machine()
    machine["%e0"] = np.where(LANES // 32 == 2, 0, machine["%e0"])
    assert "error: warp 2: metadata field 0b0000 in lane 2, " in refusal(machine, MMA_TEXT, UndefinedBehavior)


# --- fuzzing ---------------------------------------------------------------------------------------

PIECES = (
    "ld.shared.b32 ", "st.shared.v2.b32 ", "ldmatrix.sync.aligned.m8n8.x1.b16 ", "wgmma.fence.sync.aligned",
    "wgmma.wait_group.sync.aligned ", "fence.proxy.async", "bar.sync ", ".shared .b8 ", "t[16]", "[t]",
    "[%a+4]", "%a", "{%a, %b}", "{%a}", ", ", ";", "0", "-1", "1.5", "_", "\n", "{", "}", f"{DENSE} ",
    "mov.u32 ", "t", "@%p ", "%laneid",
)  # fmt: skip


@settings(deadline=None, max_examples=usual(150, 300))
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_whatever_is_wrong_is_an_error_of_ours(text: str) -> None:
    machine = group(a=4 * LANES, b=LANES, p=LANES < 9)
    with suppress(WarpsimError):
        machine.run(text)
