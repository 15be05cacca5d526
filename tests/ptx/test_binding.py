"""Where operands stand, by role; and the table of their types: complete, and of registers that there are."""

from __future__ import annotations

import pytest

import warpsim
from tests.helpers.mutations import legal_operands, spelled
from warpsim import IllegalInstruction, Instruction
from warpsim.ptx.binding import bind, bind_warpgroup
from warpsim.ptx.decode import bind_statement
from warpsim.ptx.operand_types import (
    ADDRESS_TYPES,
    FLOAT,
    INTEGER,
    MATRIX_TYPES,
    REGISTER_BITS,
    VARIABLE_TYPES,
    accessed_types,
    moved_types,
    operand_types,
)
from warpsim.ptx.parser import parse_instruction

FORMS = list(warpsim.instructions())
DENSE, SPARSE = ["d", "a", "b", "c"], ["e", "selector"]
SCALES = ["scale_a", "ids_a", "scale_b", "ids_b"]


@pytest.mark.parametrize(
    ("part", "roles"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16", DENSE),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16", DENSE + SPARSE),
        ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.", DENSE + SCALES),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.", DENSE + SPARSE + SCALES),
    ],
)
def test_places_in_a_warp(part: str, roles: list[str]) -> None:
    form = next(form for form in FORMS if form.mnemonic.startswith(part))
    target = next(iter(sorted(form.targets)))
    statement = parse_instruction(spelled(form.mnemonic, legal_operands(form)))
    bound = bind_statement(statement, target, (9, 0), None, bind)
    assert list(bound.places) == roles
    assert list(bound.places.values()) == list(range(len(roles)))
    assert statement.operand_location(bound.places["d"]).column == len(form.mnemonic) + 2


SPARSE_F16 = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


@pytest.mark.parametrize(
    ("metadata", "selector", "message"),
    [
        ("%r8", "-1", "sparsity selector -1: this form has 0 or 1"),
        ("%r8", "2", "sparsity selector 2: this form has 0 or 1"),
        ("{%r8, %r9}", "0", "metadata is one register, not '{%r8, %r9}'"),
    ],
)
def test_metadata_is_one_register_and_selectors_are_the_forms(
    metadata: str, selector: str, message: str
) -> None:
    vector = "{%r0, %r1, %r2, %r3}"
    statement = parse_instruction(
        f"{SPARSE_F16} {vector}, {vector}, {vector}, {vector}, {metadata}, {selector};"
    )
    with pytest.raises(IllegalInstruction) as caught:
        bind_statement(statement, "sm_80", (9, 0), None, bind)
    assert caught.value.message == message


A, D = "{r0, r1, r2, r3}", "{f0, f1, f2, f3}"
SCALE_D = ["scale_d", "imm_scale_a", "imm_scale_b"]


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        (f"m64n8k16.f32.f16.f16 {D}, {A}, w1, p, 1, 1, 0;",
         ["d", "a", "b_descriptor", *SCALE_D, "imm_trans_b"]),
        (f"m64n8k16.f32.f16.f16 {D}, w0, w1, p, 1, 1, 0, 0;",
         ["d", "a_descriptor", "b_descriptor", *SCALE_D, "imm_trans_a", "imm_trans_b"]),
        (f"m64n8k32.f32.e4m3.e4m3 {D}, {A}, w1, p, 1, 1;", ["d", "a", "b_descriptor", *SCALE_D]),
        (f"m64n8k32.s32.s8.s8 {D}, {A}, w1, p;", ["d", "a", "b_descriptor", "scale_d"]),
        (f"m64n8k64.s32.s8.s8 {D}, {A}, w1, e, 0, p;",
         ["d", "a", "b_descriptor", *SPARSE, "scale_d"]),
    ],
)  # fmt: skip
def test_places_in_a_warpgroup(text: str, roles: list[str]) -> None:
    sparse = ".sp" if "selector" in roles else ""
    statement = parse_instruction(f"wgmma.mma_async{sparse}.sync.aligned.{text}")
    bound = bind_statement(statement, "sm_90a", (9, 0), None, bind_warpgroup)
    assert list(bound.places) == roles
    assert list(bound.places.values()) == list(range(len(statement.operands or ())))


def roles_of(form: Instruction) -> list[str]:
    roles = [*filter(form.has_registers, "abcd"), *["e"] * form.sparse]
    roles += ["scale_a", "scale_b", "ids_a", "ids_b"] if form.scale else []
    return roles + (["a_descriptor", "b_descriptor", "scale_d"] if form.lanes == 128 else [])


def test_every_operand_has_types_of_one_width() -> None:
    for form in FORMS:
        for role in roles_of(form):
            types = operand_types(form, role) - {INTEGER, FLOAT}
            assert len({REGISTER_BITS[name] for name in types}) == 1
            if role in form.family.places and form.has_registers(role):
                assert REGISTER_BITS[next(iter(types))] == form.register_bits


@pytest.mark.parametrize("kind", sorted(REGISTER_BITS))
def test_the_types_of_other_statements(kind: str) -> None:
    assert {REGISTER_BITS[name] for name in moved_types(kind)} == {REGISTER_BITS[kind]}
    assert kind in moved_types(kind)
    assert kind in accessed_types(kind)
    assert min(REGISTER_BITS[name] for name in accessed_types(kind)) == REGISTER_BITS[kind]
    assert set(REGISTER_BITS) >= ADDRESS_TYPES | MATRIX_TYPES | VARIABLE_TYPES


@pytest.mark.parametrize("kind", ["u32", "s32", "f32", "b32", "f16x2"])
@pytest.mark.parametrize(
    "types", ["k16.f32.f16.f16", "k16.f32.bf16.bf16", "k8.f32.tf32.tf32", "k32.f16.e4m3.e5m2"]
)
def test_a_of_wgmma_takes_few_types(types: str, kind: str) -> None:
    """Of floats A is bits or packed halves; of integers it is any register of 32 bits."""
    trans = ", 0" if "k16" in types else ""
    count = 4 if ".f32." in types else 2
    d = f"{{{', '.join(f'd{i}' for i in range(count))}}}"
    text = f"wgmma.mma_async.sync.aligned.m64n8{types} {d}, {A}, w1, p, 1, 1{trans};"
    declared = f".reg .b32 d<4>; .reg .{kind} r<4>; .reg .b64 w1; .reg .pred p;"
    if kind in ("b32", "f16x2"):
        warpsim.decode(text, "sm_90a", declarations=declared)
        return
    with pytest.raises(IllegalInstruction, match=rf"a takes \.b32 or \.f16x2 registers, but r0 is \.{kind}"):
        warpsim.decode(text, "sm_90a", declarations=declared)


@pytest.mark.parametrize("kind", ["u32", "s32", "f32", "b32", "f16x2"])
def test_a_of_integer_wgmma_takes_any_register(kind: str) -> None:
    text = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {d0, d1, d2, d3}, {r0, r1, r2, r3}, w1, p;"
    declared = f".reg .b32 d<4>; .reg .{kind} r<4>; .reg .b64 w1; .reg .pred p;"
    assert warpsim.decode(text, "sm_90a", declarations=declared).a.name == "s8"
