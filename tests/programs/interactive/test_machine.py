"""The warp: what statements do to named registers, what is refused with which words, and where it points."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpsim
from tests.helpers import ptxas
from warpsim.base.errors import (
    IllegalInstruction,
    NotModelled,
    OperandError,
    PtxError,
    UndefinedBehavior,
    WarpsimError,
)
from warpsim.isa.operand_places.placements import ScaleSelectors
from warpsim.machine.bind.constants import constant_bits
from warpsim.observe.recording.matrix_events import Event
from warpsim.programs.interactive.machines import Warp
from warpsim.ptx.constants import Immediate
from warpsim.ptx.parser import parse
from warpsim.ptx.statements import Binding
from warpsim.sums.execution.pipeline import execute_inputs

Words = npt.NDArray[Any]

LANES = np.arange(32, dtype=np.uint32)
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"


def warp(target: str = "sm_90a", text: str = "", **registers: npt.ArrayLike) -> Warp:
    """A warp with %registers assigned, after the text."""
    made = Warp(target)
    for name, value in registers.items():
        made[f"%{name}"] = value
    made.run(text)
    return made


def refusal(machine: Warp, text: str, kind: type[WarpsimError]) -> str:
    """How the text is refused, after checking that this changed no register."""
    before = machine.registers()
    with pytest.raises(kind) as caught:
        machine.run(text, "k.ptx")
    assert caught.type.__mro__[:2].count(kind) == 1
    after = machine.registers()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    return str(caught.value)


def sparse_operands(seed: int = 0) -> tuple[warpsim.Instruction, dict[str, Words], Words]:
    """SPARSE on sm_90a: registers for selector 1, and the D registers of the whole instruction."""
    form = warpsim.decode(SPARSE, target="sm_90a")
    random = np.random.default_rng(seed)
    matrix = warpsim.prune(random.standard_normal((16, 32)).astype(np.float16), form)
    values, indices = warpsim.compress(matrix, form)
    registers = {
        "a": warpsim.pack(form, "a", values),
        "b": warpsim.pack(form, "b", random.standard_normal((32, 8)).astype(np.float16)),
        "c": warpsim.pack(form, "c", random.standard_normal((16, 8)).astype(np.float32)),
        "e": warpsim.pack_metadata(form, indices, 1),
    }
    return form, registers, warpsim.execute(form, **registers, selector=1)


def assign(machine: Warp, registers: dict[str, Words]) -> None:
    for name, words in registers.items():
        machine[f"%{name}<{words.shape[-1]}>"] = words


A4, B4, C4, D4 = ("{" + ", ".join(f"%{role}{i}" for i in range(4)) + "}" for role in "abcd")


# --- registers from Python -------------------------------------------------------------------------


def test_registers_are_named_one_by_one_or_as_a_range() -> None:
    machine = Warp("sm_80")
    machine["%r<3>"] = np.arange(96).reshape(32, 3)
    machine["x"] = np.uint16(7)
    assert machine["%r1"].tolist() == list(range(1, 96, 3))
    assert machine["%r<3>"].shape == (32, 3)
    assert machine["%r<1>"].shape == (32, 1)
    assert machine["x"].dtype == np.uint16
    assert list(machine.registers()) == ["%r0", "%r1", "%r2", "x"]
    assert "x" in machine
    assert "y" not in machine


@pytest.mark.parametrize(
    ("value", "word", "dtype"),
    [
        (5, 5, "u4"),
        (-1, 0xFFFFFFFF, "u4"),
        (-(1 << 31), 0x80000000, "u4"),
        ((1 << 32) - 1, 0xFFFFFFFF, "u4"),
        (np.uint64(5), 5, "u8"),
        (np.int8(-1), 0xFF, "u1"),
        (np.float32(1), 0x3F800000, "u4"),
        (1.0, 0x3FF0000000000000, "u8"),
        (np.float16(-2), 0xC000, "u2"),
        (ml_dtypes.bfloat16(1), 0x3F80, "u2"),
        (ml_dtypes.float8_e4m3fn(1), 0x38, "u1"),
        (True, True, "?"),
        (np.arange(32) < 16, True, "?"),
        (np.full((32, 1), 9, np.uint32), 9, "u4"),
    ],
)
def test_an_undeclared_register_is_as_wide_as_what_is_assigned(value: Any, word: int, dtype: str) -> None:
    machine = warp(r=value)
    assert machine["%r"][0] == word
    assert machine["%r"].dtype == np.dtype(dtype)
    assert machine["%r"].shape == (32,)


def test_a_declared_register_keeps_its_width() -> None:
    machine = warp(text=".reg .b64 %w; .reg .pred %p; .reg .f32 %f;")
    machine["%w"], machine["%p"], machine["%f"] = 5, 1, np.float32(1)
    assert [machine[name].dtype for name in ("%w", "%p", "%f")] == [np.uint64, np.bool_, np.uint32]


def test_an_assigned_register_may_change_its_width() -> None:
    machine = warp(r=5)
    machine["%r"] = np.uint64(1 << 40)
    assert machine["%r"][0] == 1 << 40


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("%r", [1, 2], "%r takes a scalar or 32 values, each of a lane, not an array (2,)"),
        ("%a<4>", np.zeros(32, int), "%a<4> takes a scalar or an array (32, 4), not an array (32,)"),
        ("%r", 1 << 32, "%r holds 32 bits; 4294967296 does not fit"),
        ("%r", -(1 << 31) - 1, "%r holds 32 bits; -2147483649 does not fit"),
        ("%r", [-(1 << 40), *range(31)], "%r holds 32 bits; -1099511627776 does not fit"),
        ("%p", 2, "%p holds 1 bit; 2 does not fit"),
        ("%p", -1, "%p holds 1 bit; -1 does not fit"),
        ("%f", 1.5, "%f holds 32 bits, but the values are float64: convert them first"),
        ("%r", "x", "%r takes integers (bits), floats or bools, not <U1"),
        ("%r", 1 << 70, "%r takes integers (bits), floats or bools, not object"),
        ("%r", 1j, "%r takes integers (bits), floats or bools, not complex128"),
        ("%laneid", 1, "the special register %laneid is read-only"),
        ("%clock", 1, "the special register %clock is read-only"),
        ("%a<0>", 1, "'%a<0>': expected a register, as '%r1', or up to 4096, as '%r<4>'"),
        ("%a<999999999>", 1, "'%a<999999999>': expected a register, as '%r1', or up to 4096, as '%r<4>'"),
        ("a b", 1, "'a b': expected a register, as '%r1', or up to 4096, as '%r<4>'"),
        ("", 1, "'': expected a register, as '%r1', or up to 4096, as '%r<4>'"),
    ],
)
def test_what_cannot_be_assigned(name: str, value: Any, message: str) -> None:
    machine = warp(text=".reg .b32 %r; .reg .pred %p; .reg .f32 %f;")
    with pytest.raises(OperandError) as caught:
        machine[name] = value
    assert str(caught.value) == message


def test_a_range_is_assigned_whole_or_not_at_all() -> None:
    machine = warp(text=".reg .b32 %r0; .reg .b16 %r1;")
    with pytest.raises(OperandError, match="%r1 holds 16 bits; 70000 does not fit"):
        machine["%r<2>"] = 70000
    assert machine.registers() == {}


def test_what_is_returned_are_copies() -> None:
    machine = warp(r=1)
    machine["%r"][:] = 2
    machine.registers()["%r"][:] = 3
    assert machine["%r"][0] == 1


@pytest.mark.parametrize("name", ["%d0", "%d<2>"])
def test_a_register_never_written_cannot_be_read(name: str) -> None:
    message = "register %d0 is read, but nothing has been written to it"
    with pytest.raises(UndefinedBehavior, match=f"^{message}$"):
        Warp("sm_80")[name]


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"target": "sm_1"}, IllegalInstruction, "unknown target 'sm_1'; known are sm_70, "),
        (
            {"target": "sm_80", "engine": "fast"},
            OperandError,
            "engine 'fast': expected 'kernel' or 'reference', or a function",
        ),
        (
            {"target": "sm_80", "undefined": "no"},
            OperandError,
            "undefined='no': expected 'error' or 'fallback'",
        ),
    ],
)
def test_a_warp_has_a_known_target_engine_and_mode(
    settings: dict[str, Any], kind: type[WarpsimError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        Warp(**settings)
    assert str(caught.value).startswith(message)


# --- matrix instructions ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_a_sparse_instruction_executes_as_execute_does(engine: Any) -> None:
    _, registers, expected = sparse_operands()
    machine = Warp("sm_90a", engine=engine)
    assign(machine, registers)
    (event,) = machine.run(f"{SPARSE} {D4}, {A4}, {B4}, {C4}, %e0, 0x1;")
    assert np.array_equal(machine["%d<4>"], expected)
    assert np.array_equal(event.d, expected)
    assert event.instruction == warpsim.decode(SPARSE, target="sm_90a")
    assert machine.origin("%d2") == (event, 2)
    assert machine.origin("%a0") is None


@pytest.mark.parametrize("role", ["a", "b", "c"])
def test_d_may_alias_a_source(role: str) -> None:
    _, registers, expected = sparse_operands()
    machine = Warp("sm_90a")
    assign(machine, registers)
    machine.run(f"{SPARSE} {D4.replace('%d', f'%{role}')}, {A4}, {B4}, {C4}, %e0, 1;")
    assert np.array_equal(machine[f"%{role}<4>"], expected)


def test_d_may_even_replace_the_metadata() -> None:
    _, registers, expected = sparse_operands()
    machine = Warp("sm_90a")
    assign(machine, registers)
    machine.run(f"{SPARSE} {{%d0, %e0, %d2, %d3}}, {A4}, {B4}, {C4}, %e0, 1;")
    assert np.array_equal(machine["%e0"], expected[:, 1])


def test_the_sink_takes_what_is_not_wanted() -> None:
    _, registers, expected = sparse_operands()
    machine = Warp("sm_90a")
    assign(machine, registers)
    (event,) = machine.run(f"{SPARSE} {{_, %d1, _, %d3}}, {A4}, {B4}, {C4}, %e0, 1;")
    assert np.array_equal(machine["%d3"], expected[:, 3])
    assert "_" not in machine
    assert "%d0" not in machine
    assert np.array_equal(event.d, expected)


TEXT_FORMS = {
    "several a line": "{sp} {d},{a},{b},{c},%e0,1;mov.b32 %t,%d0;",
    "comments": "{sp} /* one */ {d}, // two\n {a}, {b}, {c}, %e0, 1; // three",
    "spread over lines": "{sp}\n\t{d},\r\n\t{a},\n\t{b},\n\t{c}, %e0,\n 1\n;",
    "in a block": "{{\n\t.reg .pred p;\n\tmov.pred p, 1;\n}}\n{{ {sp} {d}, {a}, {b}, {c}, %e0, 1; }}",
    "metadata in braces": "{sp} {d}, {a}, {b}, {c}, {{%e0}}, 1;",
    "binary selector": "{sp} {d}, {a}, {b}, {c}, %e0, 0b1;",
    "selector expression": "{sp} {d}, {a}, {b}, {c}, %e0, (3 - 1) / 2;",
    "modifiers in another order": "mma.m16n8k32.row.col.aligned.sp::ordered_metadata.f32.f16.f16.f32.sync "
    "{d}, {a}, {b}, {c}, %e0, 1;",
    "directives around": '.loc 1 2 3\n.pragma "nounroll";\nL1: {sp} {d}, {a}, {b}, {c}, %e0, 1;',
    "declared": ".reg .b32 %a<4>, %b<4>, %e0;\n.reg .f32 %c<4>, %d<4>;\n{sp} {d}, {a}, {b}, {c}, %e0, 1;",
    "true guard": "mov.pred %p, 0; @!%p {sp} {d}, {a}, {b}, {c}, %e0, 1;",
}


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_the_forms_of_text_that_compilers_write(form: str) -> None:
    _, registers, expected = sparse_operands()
    machine = Warp("sm_90a")
    assign(machine, registers)
    machine.run(TEXT_FORMS[form].format(sp=SPARSE, a=A4, b=B4, c=C4, d=D4))
    assert np.array_equal(machine["%d<4>"], expected)


def test_f64_lives_in_64_bit_registers() -> None:
    mnemonic = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
    machine = warp("sm_80", a0=1.0, b0=2.0, c0=0.5, c1=0.5)
    machine.run(f"{mnemonic} {{%d0, %d1}}, {{%a0}}, {{%b0}}, {{%c0, %c1}};")
    assert machine["%d<2>"].view(np.float64).tolist() == [[8.5, 8.5]] * 32


def test_constants_stand_for_registers() -> None:
    form = warpsim.decode(DENSE, target="sm_80")
    one = np.full((32, 4), 0x3C003C00, np.uint32)
    c = np.full((32, 4), np.float32(1.5)).view(np.uint32)
    expected = warpsim.execute(form, a=one, b=one[:, :2], c=c)
    machine = warp("sm_80", text=".reg .b32 %a<4>, %b<2>; .reg .f32 %d<4>, %c0;", c0=np.float32(1.5))
    machine["%a<4>"], machine["%b<2>"] = 0x3C003C00, 0x3C003C00
    machine.run(f"{DENSE} {D4}, {A4}, {{%b0, 1006648320}}, {{%c0, 0f3FC00000, %c0, %c0}};")
    assert np.array_equal(machine["%d<4>"], expected)


def scaled(machine: Warp, ids: str) -> list[Event]:
    for name, count in (("a", 4), ("b", 2)):
        machine[f"%{name}<{count}>"] = np.arange(32 * count).reshape(32, count)
    machine["%c<4>"] = 0
    machine["%s"], machine["%u"] = 0x01010100 * LANES + 0x7C7D7E7F, 0x7F808182
    return machine.run(f"{SCALED} {D4}, {A4}, {{%b0, %b1}}, {C4}, %s, {ids}, %u, {{1, 2}};")


def test_scale_ids_may_come_from_registers() -> None:
    literal, named = Warp("sm_120a"), Warp("sm_120a")
    named["%byte"], named["%thread"] = np.uint16(2), np.uint16(1)
    (first,), (second,) = scaled(literal, "{2, 1}"), scaled(named, "{%byte, %thread}")
    assert np.array_equal(first.d, second.d)
    (other,) = scaled(literal, "{3, 1}")
    assert not np.array_equal(first.d, other.d)


def test_scale_ids_agree_in_all_lanes() -> None:
    machine = warp("sm_120a", byte=np.arange(32, dtype=np.uint16) % 4)
    with pytest.raises(NotModelled) as caught:
        scaled(machine, "{%byte, 0}")
    assert caught.value.message == "%byte differs between lanes; scale ids are modelled where all lanes agree"
    assert caught.value.location is not None
    assert caught.value.location.text[caught.value.location.column - 1 :].startswith("{%byte, 0}")
    of_b = f"{SCALED} {D4}, {A4}, {{%b0, %b1}}, {C4}, %s, {{0, 1}}, %u, {{%byte, 2}};"
    with pytest.raises(NotModelled) as caught:
        machine.run(of_b)
    assert caught.value.location is not None
    assert caught.value.location.text[caught.value.location.column - 1 :].startswith("{%byte, 2}")


def test_undefined_metadata_can_be_read_literally() -> None:
    _, registers, _ = sparse_operands()
    registers["e"][:] = 0
    machine = Warp("sm_90a", undefined="fallback")
    assign(machine, registers)
    machine.run(f"{SPARSE} {D4}, {A4}, {B4}, {C4}, %e0, 1;")
    literal = warpsim.execute(SPARSE, target="sm_90a", **registers, selector=1, undefined="fallback")
    assert np.array_equal(machine["%d<4>"], literal)


def test_an_unset_register_is_named_and_pointed_at() -> None:
    text = f"{DENSE} {{%d0,%d1,%d2,%d3}}, {{%a0,%a1,%x,%a3}}, {{%b0,%b1}}, {{%c0,%c1,%c2,%c3}};"
    machine = warp(a0=1, a1=1)
    machine["%b<2>"] = machine["%c<4>"] = 0
    assert refusal(machine, text, UndefinedBehavior) == (
        "k.ptx:1:79: error: register %x is read, but nothing has been written to it\n"
        f"    {text}\n"
        f"    {'^~':>80}"
    )


@pytest.mark.parametrize(
    ("text", "kind", "message", "fault"),
    [
        (f"{{%d0,%d1,%d0,%d3}}, {A4}, {B4}, {C4}, %e0, 1", UndefinedBehavior,
         "%d0 is written twice: PTX does not define which value stays", "%d0,%d3}"),
        (f"{{%d0,%d1,%d2,%w}}, {A4}, {B4}, {C4}, %e0, 1", IllegalInstruction,
         "d takes registers of 32 bits, but %w holds 64 bits", "%w}"),
        (f"{{%d0,%d1,%d2,%laneid}}, {A4}, {B4}, {C4}, %e0, 1", IllegalInstruction,
         "the special register %laneid is read-only", "%laneid}"),
        (f"{D4}, {{%a0,%a1,%p,%a3}}, {B4}, {C4}, %e0, 1", IllegalInstruction,
         "a takes registers of 32 bits, but %p is a predicate", "%p,"),
        (f"{D4}, {A4}, {B4}, {C4}, %w, 1", IllegalInstruction,
         "e takes registers of 32 bits, but %w holds 64 bits", "%w, 1"),
        (f"{D4}, {A4}, {B4}, {C4}, %x, 1", UndefinedBehavior,
         "register %x is read, but nothing has been written to it", "%x, 1"),
        (f"{D4}, {A4}, {B4}, {C4}, %zero, 0", UndefinedBehavior,
         "metadata field 0b0000 in lane 0, bits 3..0 (row 0, chunk 0): indices 0, 0 are equal, which PTX "
         "leaves undefined", "%zero, 0"),
        (f"{D4}, {A4}, {B4}, {C4}, %e0, 2", IllegalInstruction,
         "sparsity selector 2: this form has 0 or 1", "2;"),
        (f"{D4}, {A4}, {B4}, {C4}", IllegalInstruction,
         f"{SPARSE} takes 6 operands (d, a, b, c, metadata, selector), but 4 are given", SPARSE),
    ],
)  # fmt: skip
def test_what_a_matrix_instruction_refuses(text: str, kind: Any, message: str, fault: str) -> None:
    _, registers, _ = sparse_operands()
    machine = Warp("sm_90a")
    assign(machine, registers)
    machine["%w"], machine["%p"], machine["%zero"] = np.uint64(1), True, 0
    statement = f"{SPARSE} {text};"
    column = statement.index(fault) + 1
    assert refusal(machine, statement, kind).splitlines()[0] == f"k.ptx:1:{column}: error: {message}"


def test_a_form_that_the_target_lacks_is_refused() -> None:
    message = refusal(Warp("sm_75"), f"  {DENSE} {D4}, {A4}, {{%b0, %b1}}, {C4};", IllegalInstruction)
    assert message.startswith("k.ptx:1:")
    assert f" error: {DENSE} is not on sm_75; it is on sm_80" in message


# --- mov -------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1))
def test_unpacking_and_packing_give_the_register_back(word: int) -> None:
    machine = warp(w=np.uint64(word))
    machine.run("mov.b64 {%lo, %hi}, %w; mov.b64 {%h0, %h1, %h2, %h3}, %w;")
    machine.run("mov.b32 {%c0, %c1, %c2, %c3}, %lo;")
    machine.run("mov.b16 {%e0, %e1}, %h3; mov.b16 %i, {%e0, %e1};")
    machine.run("mov.b64 %x, {%lo, %hi}; mov.b64 %y, {%h0, %h1, %h2, %h3}; mov.b32 %z, {%c0, %c1, %c2, %c3};")
    machine.run("mov.b32 %one, {%lo}; mov.b32 {%two}, %hi;")
    value = {name: int(lanes[31]) for name, lanes in machine.registers().items()}
    assert value["%lo"] == word & 0xFFFFFFFF
    assert value["%hi"] == word >> 32
    assert [value[f"%h{i}"] for i in range(4)] == [word >> 16 * i & 0xFFFF for i in range(4)]
    assert [value[f"%c{i}"] for i in range(4)] == [word >> 8 * i & 0xFF for i in range(4)]
    assert (value["%x"], value["%y"], value["%z"]) == (word, word, word & 0xFFFFFFFF)
    assert (value["%e0"], value["%e1"], value["%i"]) == (word >> 48 & 0xFF, word >> 56, word >> 48)
    assert (value["%one"], value["%two"]) == (word & 0xFFFFFFFF, word >> 32)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("mov.b32 %d, 0x12345678;", 0x12345678),
        ("mov.b32 %d, -1;", 0xFFFFFFFF),
        ("mov.u32 %d, 0x1FFFFFFFF;", 0xFFFFFFFF),
        ("mov.s32 %d, (1 << 31) | 1;", 0x80000001),
        ("mov.b32 %d, WARP_SZ;", 32),
        ("mov.b32 %d, 0f3F800000;", 0x3F800000),
        ("mov.f32 %d, 1.5;", 0x3FC00000),
        ("mov.f32 %d, 0d3FB999999999999A;", 0x3DCCCCCD),
        ("mov.f32 %d, 1e300;", 0x7F800000),
        ("mov.f64 %d, 0f3FC00000;", 0x3FF8000000000000),
        ("mov.f64 %d, 0.1;", 0x3FB999999999999A),
        ("mov.b64 %d, 1.5;", 0x3FF8000000000000),
        ("mov.b64 %d, -1;", 0xFFFFFFFFFFFFFFFF),
        ("mov.b16 %d, 70000;", 4464),
        ("mov.b32 %d, {1, 0xABCD};", 0xABCD0001),
        ("mov.b64 %d, {%laneid, 7};", 0x700000003),
        ("mov.b64 %d, {7, %laneid};", 0x300000007),
        ("mov.pred %d, 1;", True),
        ("mov.pred %p, 1; mov.pred %d, !%p;", False),
        ("mov.u32 %d, %laneid;", 3),
        ("mov.b32 %d, %tid.x;", 3),
        ("mov.u32 %d, %tid.y;", 0),
        ("mov.s32 %d, %tid.z;", 0),
        ("mov.b32 {%d}, 5;", 5),
    ],
)
def test_what_mov_writes_to_lane_3(text: str, word: int) -> None:
    machine = warp(text=text)
    assert machine["%d"][3] == word


@pytest.mark.parametrize(
    ("constant", "bits", "word"),
    [
        (Immediate(-2), 16, 0xFFFE),
        (Immediate(0x7F800001, "f32"), 32, 0x7F800001),
        (Immediate(0x7FF0000000000001, "f64"), 64, 0x7FF0000000000001),
        (Immediate(0x3FF0000000000000, "f64"), 32, 0x3F800000),
        (Immediate(0xC7EFFFFFE0000001, "f64"), 32, 0xFF7FFFFF),
        (Immediate(0x3F800000, "f32"), 64, 0x3FF0000000000000),
    ],
)
def test_the_bits_of_a_constant(constant: Immediate, bits: int, word: int) -> None:
    assert constant_bits(constant, bits) == word


def test_a_guard_chooses_the_lanes_of_a_mov() -> None:
    machine = warp(p=LANES % 2 == 0, r=LANES)
    machine.run("@%p mov.b32 %d, %r; @!%p mov.b32 %d, 99;")
    assert machine["%d"].tolist() == [lane if lane % 2 == 0 else 99 for lane in range(32)]


def test_a_guard_chooses_the_lanes_of_an_unpacking_mov() -> None:
    machine = warp(p=LANES < 8, r=0x00050004, lo=np.uint16(1), hi=np.uint16(2))
    machine.run("@%p mov.b32 {%lo, %hi}, %r;")
    assert machine["%lo"].tolist() == [4] * 8 + [1] * 24
    assert machine["%hi"].tolist() == [5] * 8 + [2] * 24


def test_only_the_lanes_that_execute_a_mov_need_its_source() -> None:
    machine = warp(p=LANES < 4, r=5)
    machine.run("@%p mov.b32 %s, %r; @%p mov.b32 %t, %s;")
    assert "%t" not in machine
    message = refusal(machine, "mov.b32 %u, %t;", UndefinedBehavior)
    assert message.splitlines()[0] == (
        "k.ptx:1:13: error: register %t is read, but nothing has been written to it in lane 4"
    )
    machine.run("@!%p mov.b32 %t, 7; mov.b32 %u, %t;")
    assert machine["%u"].tolist() == [5] * 4 + [7] * 28


def test_a_mov_that_no_lane_executes_writes_nothing() -> None:
    machine = warp(p=False, r=5)
    machine.run("@%p mov.b32 %r, 6; @%p mov.b32 %s, 6;")
    assert machine["%r"][0] == 5
    assert refusal(machine, "mov.b32 %r, %s;", UndefinedBehavior).startswith(
        "k.ptx:1:13: error: register %s is read, but nothing has been written to it\n"
    )


def test_a_copy_keeps_its_origin_and_a_partial_one_does_not() -> None:
    _, registers, _ = sparse_operands()
    machine = warp(p=LANES < 4)
    assign(machine, registers)
    (event,) = machine.run(f"{SPARSE} {D4}, {A4}, {B4}, {C4}, %e0, 1; mov.b32 %x, %d3; @%p mov.b32 %d0, 0;")
    assert machine.origin("%x") == (event, 3)
    assert machine.origin("%d0") is None
    machine.run("mov.b32 %d1, 0;")
    assert machine.origin("%d1") is None


DECLARED = (
    ".reg .pred %p, %q; .reg .b8 %e<4>; .reg .b16 %h<4>; .reg .f16 %g<2>; .reg .u16 %i; .reg .b32 %r<4>; "
    ".reg .f32 %f; .reg .u32 %u; .reg .f16x2 %x; .reg .b64 %w; .reg .f64 %m; .reg .s64 %l;"
)


def declared() -> Warp:
    """A warp with DECLARED registers of every width, all written."""
    machine = warp(text=DECLARED)
    for name in ("%p", "%q", "%e<4>", "%h<4>", "%g<2>", "%i", "%r<4>", "%f", "%u", "%x", "%w", "%m", "%l"):
        machine[name] = 1
    return machine


@pytest.mark.parametrize(
    ("text", "kind", "column", "message"),
    [
        ("mov.f16 %h0, %h1;", IllegalInstruction, 4, "mov has no modifier .f16 here"),
        ("mov.b128 %w, %w;", NotModelled, 4, "mov.b128 is not modelled here: registers have up to 64 bits"),
        ("mov %r0, %r1;", IllegalInstruction, 1, "mov has no form mov: it lacks a type"),
        ("mov.b32.b32 %r0, %r1;", IllegalInstruction, 1,
         "mov has no form mov.b32.b32: its modifiers do not go together"),
        ("mov.b32 %r0;", IllegalInstruction, 1, "mov.b32 takes 2 operands, but 1 is given"),
        ("mov.b32 %h0, %r1;", IllegalInstruction, 9, "mov.b32 takes .b32 here, but %h0 is .b16"),
        ("mov.b32 %r0, %w;", IllegalInstruction, 14, "mov.b32 takes .b32 here, but %w is .b64"),
        ("mov.f32 %f, %u;", IllegalInstruction, 13, "mov.f32 takes .f32 here, but %u is .u32"),
        ("mov.b32 %r0, {%h0, %r1};", IllegalInstruction, 20, "mov.b32 takes .b16 here, but %r1 is .b32"),
        ("mov.b64 {%r0, %h1}, %w;", IllegalInstruction, 15, "mov.b64 takes .b32 here, but %h1 is .b16"),
        ("mov.b32 %r0, {%h0, %h1, %h2};", IllegalInstruction, 14,
         "mov.b32 does not take a vector of 3 elements"),
        ("mov.u32 %r0, {%h0, %h1};", IllegalInstruction, 14, "mov.u32 does not take a vector of 2 elements"),
        ("mov.b16 {%e0, %e1, %e2, %e3}, %h0;", IllegalInstruction, 9,
         "mov.b16 does not take a vector of 4 elements"),
        ("mov.b32 {%h0, %h1}, {%h2, %h3};", IllegalInstruction, 21,
         "mov.b32 packs or unpacks, but both operands are vectors"),
        ("mov.b32 {_, _}, %r0;", IllegalInstruction, 9, "mov.b32 writes nothing: every element is '_'"),
        ("mov.b32 {%h0, %h0}, %r0;", UndefinedBehavior, 15,
         "mov writes %h0 twice: PTX does not define which value stays"),
        ("mov.b32 %r0, {%h0, _};", UndefinedBehavior, 20, "'_' is read here: PTX does not define its bits"),
        ("mov.b32 _, %r0;", IllegalInstruction, 9, "mov.b32 writes a register, not '_'"),
        ("mov.b32 [%w], %r0;", IllegalInstruction, 9, "mov.b32 writes a register, not '[%w]'"),
        ("mov.b32 %r0, [%w];", IllegalInstruction, 14, "expected a register or a constant, not '[%w]'"),
        ("mov.b32 %r0, !%p;", IllegalInstruction, 14, "'!%p' negates a predicate, but a .b32 goes here"),
        ("mov.b32 %r0, %r1+4;", IllegalInstruction, 14, "%r1 has no address"),
        ("mov.u32 %r0, 1.5;", IllegalInstruction, 14, "mov.u32 does not take a float constant"),
        ("mov.f32 %f, 1;", IllegalInstruction, 13, "mov.f32 does not take an integer constant"),
        ("mov.b64 %w, 0f3F800000;", IllegalInstruction, 13, "mov.b64 does not take an f32 constant"),
        ("mov.b32 %r9, %r0;", IllegalInstruction, 9, "register %r9 is not declared"),
        ("mov.b32 %r0, %r9;", IllegalInstruction, 14, "register %r9 is not declared"),
        ("mov.u32 %laneid, %r0;", IllegalInstruction, 9, "the special register %laneid is read-only"),
        ("mov.u32 %clock, %r0;", IllegalInstruction, 9, "the special register %clock is read-only"),
        ("mov.f32 %f, %laneid;", IllegalInstruction, 13, "%laneid is .u32, not .f32"),
        ("@%r0 mov.b32 %r0, %r1;", IllegalInstruction, 1, "guard %r0 is not a predicate"),
        ("@!%z mov.b32 %r0, %r1;", IllegalInstruction, 1, "register %z is not declared"),
    ],
)  # fmt: skip
def test_what_mov_refuses(text: str, kind: Any, column: int, message: str) -> None:
    assert refusal(declared(), text, kind).splitlines()[0] == f"k.ptx:1:{column}: error: {message}"


TYPES = ["b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32", "f16x2", "b64", "u64", "s64", "f64", "b8"]
CONSTANTS = ("1", "1.5", "0f3F800000", "0d3FF0000000000000")
VECTORS = (
    "mov.b32 %b32_0, {%b16_0, %f16_1};", "mov.b32 {%b16_0, _}, %f32_0;", "mov.b32 %b32_0, {%b16_0, 1};",
    "mov.b32 %b32_0, {%b8_0, %b8_1, %b8_2, %b8_3};", "mov.b32 %b32_0, {%b8_0, %b8_1};",
    "mov.b64 {%b16_0, %b16_1, _, %s16_0}, %b64_0;", "mov.b64 %f64_0, {%f32_0, %f32_1};",
    "mov.b16 {%b8_0, %b8_1}, %b16_0;", "mov.b16 %b16_0, {%b8_0, 1};", "mov.u16 %u16_0, {%b8_0, %b8_1};",
    "mov.b32 {%b32_1}, %b32_0;", "mov.u32 {%u32_1}, %u32_0;", "mov.b32 %b32_0, {%b16_0, %b8_1};",
    "mov.b32 {%b16_0, %b16_1}, 5;", "mov.b32 {%b16_0, %b16_1}, 1.5;", "mov.b64 {%b32_0, %b32_1}, 1.5;",
    "mov.b32 {%b16_0, %b16_1}, %laneid;", "mov.b64 %b64_0, {%laneid, %b32_0};", "mov.b32 {_, _}, %b32_0;",
    "mov.b64 %b64_0, {%b32_0, %b32_1, %b32_2};", "mov.b64 %b64_0, {1, 2, 3, 4};", "mov.u32 %b32_0, %tid.x;",
    "mov.b32 %b32_0, {1.5, 1.5};", "mov.pred {%pred_0}, %pred_1;", "mov.pred %pred_0, !%pred_1;",
    "mov.pred %pred_0, 1;", "mov.pred %pred_0, 1.5;", "mov.b32 _, %b32_0;", "mov.f32 %f32_0, %laneid;",
    "mov.b32 {%b16_0, %b16_1}, {%b16_2, %b16_3};", "mov.b64 %b64_0, %laneid;", "mov.b32 %laneid, %b32_0;",
)  # fmt: skip


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing())
def test_mov_takes_what_ptxas_takes() -> None:
    """Every type with registers of every type and every sort of constant, and vectors."""
    declarations = " ".join(f".reg .{name} %{name}_<4>;" for name in (*TYPES, "pred"))
    scalars = [f"mov.{kind} %{name}_0, %{name}_1;" for kind in TYPES for name in TYPES]
    constants = [f"mov.{kind} %{kind}_0, {constant};" for kind in TYPES for constant in CONSTANTS]
    lines = [*scalars, *constants, *VECTORS]
    verdicts = ptxas.verdicts(lines, target="sm_90", declarations=declarations)
    machine = warp(text=declarations)
    for name in (*TYPES, "pred"):
        machine[f"%{name}_<4>"] = 1
    for line, verdict in zip(lines, verdicts, strict=True):
        try:
            machine.run(line)
            accepted = True
        except IllegalInstruction:
            accepted = False
        assert accepted == (verdict is None), (line, verdict)


# --- declarations, scopes, guards, directives ------------------------------------------------------


def test_names_must_be_declared_as_soon_as_any_is() -> None:
    machine = warp(text="mov.b32 %x, 1;")
    machine.run(".reg .b32 %r;")
    message = refusal(machine, "mov.b32 %y, 1;", IllegalInstruction)
    assert message.splitlines()[0] == "k.ptx:1:9: error: register %y is not declared"
    machine.run("mov.b32 %r, %x;")
    assert machine["%r"][0] == 1


def test_a_register_assigned_from_python_counts_as_declared() -> None:
    machine = warp(text=".reg .b32 %r;", x=7)
    machine.run("mov.b32 %r, %x;")
    assert machine["%r"][0] == 7
    with pytest.raises(OperandError, match=r"^register %y is not declared$"):
        machine.load("%y", 1)


def test_a_type_comes_from_the_declaration_of_an_assigned_register() -> None:
    machine = warp(r=np.float32(1), text=".reg .f32 %r;")
    assert machine["%r"][0] == 0x3F800000
    message = refusal(machine, "mov.u32 %r, 1;", IllegalInstruction)
    assert message.splitlines()[0] == "k.ptx:1:9: error: mov.u32 takes .u32 here, but %r is .f32"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (".reg .b32 %x, %y, %x;", IllegalInstruction, "%x is declared twice in this scope"),
        (".reg .b32 %x<3>; .reg .b16 %x2;", IllegalInstruction, "%x2 is declared twice in this scope"),
        ("{ .reg .b32 %x; .reg .b32 %x; }", IllegalInstruction, "%x is declared twice in this scope"),
        (".reg .f32 %r;", IllegalInstruction, "%r is already declared .b32"),
        (".reg .b64 %v;", IllegalInstruction, "%v holds 32 bits, but is declared .b64"),
        (".reg .v2 .b32 %x;", NotModelled, ".v2 registers are not modelled"),
        (".reg .b128 %x;", NotModelled, "registers of type .b128 are not modelled"),
        (".global .b8 tile[16];", NotModelled,
         "variables in .global are not modelled; those in .shared are"),
        (".visible .entry k() { ret; }", NotModelled,
         "a kernel or function is not modelled; a warp executes the statements of a kernel's body"),
        ("bra L;", NotModelled,
         "'bra' is not modelled in a warp: statements are executed in order; a launched kernel "
         "may execute it"),
    ],
)  # fmt: skip
def test_which_statements_are_refused(text: str, kind: Any, message: str) -> None:
    machine = warp(v=1, text=".reg .b32 %r;")
    assert refusal(machine, text, kind).splitlines()[0].partition(" error: ")[2] == message


def test_the_same_declaration_may_be_run_again() -> None:
    machine = Warp("sm_90a")
    for _ in range(2):
        machine.run(".reg .b32 %r; mov.b32 %r, 1;")
    assert machine["%r"][0] == 1


def test_what_a_block_declares_ends_with_it() -> None:
    machine = warp(text=".reg .b32 %r, %s; mov.b32 %r, 1;")
    machine.run("{ .reg .b64 %r; mov.b64 %r, 2; { .reg .b16 %r; mov.b16 %r, 3; } mov.b64 {%s, _}, %r; }")
    assert machine["%r"][0] == 1
    assert machine["%r"].dtype == np.uint32
    assert machine["%s"][0] == 2


def test_a_register_that_a_block_declares_begins_unset() -> None:
    machine = warp(text=".reg .b32 %r, %s; mov.b32 %r, 1;")
    message = refusal(machine, "{ .reg .b32 %r; mov.b32 %s, %r; }", UndefinedBehavior)
    assert "register %r is read, but nothing has been written to it\n" in message


def test_a_block_writes_to_outer_registers() -> None:
    machine = warp(text=".reg .b32 %r; { mov.b32 %r, 5; }")
    assert machine["%r"][0] == 5


@pytest.mark.parametrize("depth", [1, 3])
def test_a_block_that_fails_leaves_no_declarations(depth: int) -> None:
    machine = warp(text=".reg .b32 %r; mov.b32 %r, 1;")
    text = "{ .reg .b64 %r, %t; mov.b64 %r, 2; " * depth + "mov.b32 %nowhere, 1;" + "}" * depth
    refusal(machine, text, IllegalInstruction)
    assert machine["%r"].tolist() == [1] * 32
    message = refusal(machine, "mov.b64 %t, 1;", IllegalInstruction)
    assert "register %t is not declared" in message


def test_a_block_left_in_the_middle_leaves_no_declarations() -> None:
    machine = warp(text=".reg .b32 %r;")
    steps = machine.steps(parse("{ .reg .b32 %t; //! here\n }").statements)
    assert isinstance(next(steps), Binding)
    steps.close()
    refusal(machine, "mov.b32 %t, 1;", IllegalInstruction)


def test_undeclared_names_in_a_block_are_known_after_it() -> None:
    machine = warp(text="{ mov.b32 %x, 4; }")
    assert machine["%x"][0] == 4


def test_declarations_in_a_block_bind_only_there() -> None:
    machine = warp(text="{ .reg .b32 %t; mov.b32 %t, 4; } mov.b32 %x, 5;")
    assert list(machine.registers()) == ["%x"]
    message = refusal(machine, "{ .reg .b32 %t; mov.b32 %y, 1; }", IllegalInstruction)
    assert "register %y is not declared" in message


def test_special_registers_are_those_of_a_launch_of_one_cta() -> None:
    machine = warp(
        text="mov.u32 %x, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %w, %nwarpid; mov.u64 %c, %clock64;"
    )
    assert [int(machine[name][3]) for name in ("%x", "%n", "%w")] == [0, 32, 1]
    assert machine["%ntid.x"].tolist() == [32] * 32
    assert machine["%c"].dtype == np.uint64


def test_a_special_register_may_be_shadowed_by_a_declaration() -> None:
    machine = warp(text=".reg .b32 %laneid; mov.b32 %laneid, 5;")
    assert machine["%laneid"][0] == 5
    assert Warp("sm_80")["%laneid"].tolist() == list(range(32))


@pytest.mark.parametrize(("value", "events"), [(True, 1), (False, 0)])
def test_a_guarded_matrix_instruction_runs_in_all_lanes_or_in_none(value: bool, events: int) -> None:
    _, registers, _ = sparse_operands()
    machine = warp(p=value)
    assign(machine, registers)
    assert len(machine.run(f"@%p {SPARSE} {D4}, {A4}, {B4}, {C4}, %e0, 1;")) == events
    assert ("%d0" in machine) == bool(events)


def test_a_matrix_instruction_that_is_not_executed_must_be_legal_all_the_same() -> None:
    machine = warp(p=False)
    message = refusal(machine, f"@%p {SPARSE} {D4}, {A4}, {B4}, {C4}, %e0, 7;", IllegalInstruction)
    assert "sparsity selector 7: this form has 0 or 1" in message


def test_a_guard_that_differs_between_lanes_is_an_error() -> None:
    _, registers, _ = sparse_operands()
    machine = warp(p=LANES < 16)
    assign(machine, registers)
    message = refusal(machine, f"@!%p {SPARSE} {D4}, {A4}, {B4}, {C4}, %e0, 1;", UndefinedBehavior)
    assert message.splitlines()[0] == (
        "k.ptx:1:1: error: guard %p differs between lanes, but all lanes must execute mma together"
    )
    assert message.splitlines()[2] == "    ^~~~"


def test_the_version_directive_rules_what_follows() -> None:
    _, registers, _ = sparse_operands()
    machine = Warp("sm_90a")
    assign(machine, registers)
    text = f"{SPARSE} {D4}, {A4}, {B4}, {C4}, %e0, 1;"
    machine.run(".version 8.5\n.target sm_90a\n.address_size 64\n" + text)
    message = refusal(machine, ".version 8.4\n" + text, IllegalInstruction)
    assert message.startswith("k.ptx:2:1: error: ")
    assert " needs PTX ISA 8.5; this is read as 8.4 " in message.splitlines()[0]


def test_statements_before_the_one_that_fails_stay_done() -> None:
    machine = warp()
    with pytest.raises(UndefinedBehavior):
        machine.run("mov.b32 %r, 5; mov.b32 %s, %t; mov.b32 %r, 6;")
    assert machine["%r"][0] == 5


def test_text_that_does_not_parse_changes_nothing() -> None:
    assert "expected ',' or ';'" in refusal(warp(r=1), "mov.b32 %r, 5; mov.b32 %s %t;", PtxError)


# --- what an event keeps -----------------------------------------------------------------------------


def test_an_event_keeps_what_the_instruction_read() -> None:
    _, registers, d = sparse_operands()
    machine = warp()
    assign(machine, registers)
    (event,) = machine.run(f"{SPARSE} {D4}, {A4}, {B4}, {C4}, %e0, 0x1;")
    assign(machine, {name: words * 0 for name, words in registers.items()})
    assert event.inputs.selector == 1
    assert all(np.array_equal(event.inputs.registers[name], words) for name, words in registers.items())
    ((lane, inputs, result),) = event.executions()
    assert (lane, event.warps) == (0, (0,))
    assert np.array_equal(execute_inputs(event.instruction, inputs), d)
    assert np.array_equal(result, d)


def test_an_event_keeps_scales_and_their_ids() -> None:
    machine = warp("sm_120a", **{f"{role}{i}": LANES * 7 for role in "abc" for i in range(4)}, s=LANES, t=5)
    (event,) = machine.run(f"{SCALED} {D4}, {A4}, {{%b0, %b1}}, {C4}, %s, {{2, 1}}, %t, {{0, 3}};")
    assert event.inputs.registers["scale_a"][:, 0].tolist() == LANES.tolist()
    assert event.inputs.scale_selectors == ScaleSelectors(2, 1, 0, 3)
    assert np.array_equal(execute_inputs(event.instruction, event.inputs), event.d)
