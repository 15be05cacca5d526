"""PTX text to instructions: what is read, what is refused, with which words and pointing where."""

from __future__ import annotations

import re
from functools import cache
from random import Random

import pytest

import warpsim
from tests.helpers.mutations import (
    DECLARATIONS,
    legal_operands,
    mutated_mnemonics,
    mutated_operands,
    shuffled,
    spelled,
)
from warpsim import IllegalInstruction, Instruction, PtxError, WarpsimError
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.ptx.decode import resolved

SEED = 13
TARGETS = tuple(ARCHITECTURES)


@cache
def mma_forms(target: str | None = None) -> tuple[Instruction, ...]:
    return tuple(form for form in warpsim.instructions(target) if form.family.opcode == "mma")


def refusal(text: str, target: str | None = None, **more: str) -> WarpsimError:
    with pytest.raises((PtxError, IllegalInstruction)) as caught:
        warpsim.decode(text, target, **more)
    return caught.value


# --- reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [None, *TARGETS])
def test_every_mnemonic_reads_back(target: str | None) -> None:
    forms = list(warpsim.instructions(target))
    assert len({form.mnemonic for form in forms}) == len(forms)
    assert [warpsim.decode(str(form), target) for form in forms] == forms


@pytest.mark.parametrize("target", TARGETS)
def test_operands_do_not_change_the_form(target: str) -> None:
    for form in mma_forms(target):
        text = spelled(form.mnemonic, legal_operands(form))
        assert warpsim.decode(text, target) == form
        assert warpsim.decode(f"@!p0 {text}", target, declarations=DECLARATIONS) == form


def test_order_of_modifiers_is_free() -> None:
    for form in mma_forms():
        random = Random(f"{SEED} {form}")
        for _ in range(5):
            assert warpsim.decode(shuffled(form, random)) == form


def test_order_of_types_is_not_free() -> None:
    mixed = "mma.sync.aligned.m16n8k32.row.col.s32.{}.{}.s32"
    assert warpsim.decode(mixed.format("s8", "u8")) == warpsim.decode(mixed.format("s8", "u8"), None)
    assert warpsim.decode(mixed.format("s8", "u8")) != warpsim.decode(mixed.format("u8", "s8"))
    refusal("mma.sync.aligned.m16n8k32.row.col.s8.s32.s8.s32")


def test_layouts_keep_their_order_around_other_modifiers() -> None:
    form = warpsim.decode("mma.col.sync.f32.f16.row.aligned.f16.f32.m8n8k4")
    assert (form.a_layout, form.b_layout) == ("col", "row")


@pytest.mark.parametrize("modifier", ["sync", "satfinite"])
def test_some_modifiers_may_be_repeated(modifier: str) -> None:
    once = warpsim.decode("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32")
    assert warpsim.decode(f"{once}.{modifier}.{modifier}") == once


def test_every_one_word_neighbour_that_is_legal_is_a_form() -> None:
    """Decoding never makes up a form: what it returns is in the table, on the target asked for."""
    for target in ("sm_75", "sm_90", "sm_120a"):
        known = set(mma_forms(target))
        for form in mma_forms(target):
            for mnemonic in mutated_mnemonics(form, Random(f"{SEED} {form}"), 3):
                try:
                    assert warpsim.decode(mnemonic, target) in known
                except IllegalInstruction:
                    continue


# --- versions ----------------------------------------------------------------------------------------


def test_a_form_begins_with_its_version() -> None:
    for target in TARGETS:
        for form in mma_forms(target)[::7]:
            first = max(form.since, ARCHITECTURES[target].since)
            assert warpsim.decode(str(form), target, version=f"{first[0]}.{first[1]}") == form
            before = (first[0], first[1] - 1) if first[1] else (first[0] - 1, 9)
            refusal(str(form), target, version=f"{before[0]}.{before[1]}")


# The first versions as PTX ISA 9.1 has them in the notes of sections 9.7.14.5.14, 9.7.14.6.3 and 9.7.15.5.2.
FIRST_VERSIONS = (
    ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_70", "6.4"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_75", "6.5"),
    ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "sm_75", "6.5"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_80", "7.0"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_80", "7.0"),
    ("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", "sm_90", "7.8"),
    ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "sm_80", "7.0"),
    ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", "sm_80", "7.1"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89", "8.4"),
    ("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16", "sm_89", "8.7"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32", "sm_89", "8.7"),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", "sm_120a", "8.7"),
    ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80", "7.1"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80", "8.5"),
    ("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.u8.s32", "sm_80", "7.1"),
    ("mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32", "sm_89", "8.4"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32", "sm_89", "8.5"),
    ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "sm_90a", "8.0"),
    ("wgmma.mma_async.sync.aligned.m64n24k32.s32.s8.s8.satfinite", "sm_90a", "8.0"),
    ("wgmma.mma_async.sync.aligned.m64n24k32.s32.s8.u8", "sm_90a", "8.4"),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", "sm_90a", "8.2"),
)


@pytest.mark.parametrize(("text", "target", "version"), FIRST_VERSIONS)
def test_the_first_version_is_the_manuals(text: str, target: str, version: str) -> None:
    assert ".".join(map(str, warpsim.decode(text, target).since)) == version


def test_a_form_moves_to_targets_that_have_it() -> None:
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "sm_90a")
    assert resolved(form, "sm_90a") == form
    with pytest.raises(IllegalInstruction) as caught:
        resolved(form, "sm_100a")
    assert caught.value.message == f"{form.mnemonic} is not on sm_100a; it is on sm_90a"
    dense = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80")
    assert resolved(dense, "sm_90a").target == "sm_90a"


def test_forms_of_later_versions_are_neither_listed_nor_advised() -> None:
    later = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0"
    )
    assert warpsim.decode(later, "sm_120a").since == (9, 1)
    assert later in {form.mnemonic for form in warpsim.instructions()}
    assert later not in {form.mnemonic for form in warpsim.instructions(version="9.0")}
    assert "needs PTX ISA 9.1; this is read as 9.0" in refusal(later, "sm_120a", version="9.0").message
    near = refusal(later.replace("k64", "k32"), "sm_120a", version="9.0")
    assert later.split(".kind")[1] not in near.message


# --- errors ------------------------------------------------------------------------------------------
#
# Carets in the texts enclose what the error is to point at; without any it is the whole mnemonic.

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
B1 = "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32"
NVF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NARROW = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32"
ON = "it is on sm_120a, sm_120f, sm_121a, sm_121f"
BIT_OPERATIONS = "a bit operation is spelled '.and.popc' or '.xor.popc', in this order"

MNEMONIC_ERRORS = (
    # text, target, message
    ("mma.sync.aligned^.m16n8k12^.row.col.f32.f16.f16.f32", None,
     "mma has no such form: change shape from .m16n8k12 to .m8n8k4, .m16n8k8 or .m16n8k16"),
    ("mma.sync.aligned.m16n8k16.row.col^.f16^.f16.f16.f32", "sm_80",
     "mma has no such form on sm_80: change dtype from .f16 to .f32; or change ctype from .f32 to .f16"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16^.s32^", "sm_80",
     "mma has no such form on sm_80: change ctype from .s32 to .f32"),
    ("mma.sync.aligned.m16n8k16.row^.row^.f32.f16.f16.f32", "sm_80",
     "mma has no such form on sm_80: change blayout from .row to .col; "
     "or change shape from .m16n8k16 to .m8n8k4"),
    ("mma.sync.aligned.m16n8k16.row.f32.f16.f16.f32", "sm_80",
     "mma has no such form on sm_80: add blayout .col"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16", "sm_80",
     "mma has no such form on sm_80: add ctype .f32"),
    ("mma.sync.aligned.row.col.f32.f16.f16.f32", "sm_80",
     "mma has no such form on sm_80: add shape .m8n8k4, .m16n8k8 or .m16n8k16"),
    ("mma.aligned.m16n8k16.row.col.f32.f16.f16.f32", None, "mma needs the modifier '.sync'"),
    ("mma.sync.m16n8k16.row.col.f32.f16.f16.f32", None, "mma needs the modifier '.aligned'"),
    ("mma.sync.aligned", None,
     "mma has no such form: the nearest form is mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16"),
    ("mma.sync.aligned.m16n8k16.row.col^.satfinite^.f32.f16.f16.f32", None,
     "mma has no such form: leave out .satfinite"),
    ("mma.sync.aligned.m16n8k16.row.col^.satfinit^.f32.f16.f16.f32", None,
     "mma has no modifier '.satfinit'; did you mean .satfinite?"),
    ("mma.sync.aligned.m16n8k16.row.col^.relu^.f32.f16.f16.f32", None,
     "mma has no modifier '.relu'; it has .sync, .aligned, a shape, layouts, types and, in some forms, "
     ".sp, .satfinite, .kind, .block_scale, .scale_vec, a rounding or a bit operation"),
    ("mma^.mma_async^.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", None,
     "mma has no modifier '.mma_async'; did you mean .sync?"),
    (F16 + "^.m16n8k8^", None, "'.m16n8k8': the shape is already given as '.m16n8k16'"),
    (F16 + "^.row^", None, "'.row': at most 2 layouts (of A, B) are expected"),
    (F16 + "^.f32^", None, "mma has no such form: leave out stype .f32"),
    (F16 + ".f32^.f32^", None, "'.f32': at most 5 types (of D, A, B, C and the scales) are expected"),
    (B1, "sm_80", "mma has no such form on sm_80: add .xor.popc or .and.popc"),
    (B1 + "^.or^.popc", "sm_80",
     "mma has no such form on sm_80: change .or.popc to .xor.popc or .and.popc"),
    (B1 + "^.popc^", None, BIT_OPERATIONS),
    (B1 + "^.and^", None, BIT_OPERATIONS),
    (B1 + ".popc^.xor^", None, BIT_OPERATIONS),
    (B1 + "^.and^.popc", "sm_75",
     f"{B1}.and.popc is not on sm_75; it is on sm_80 and later. On sm_75: change .and.popc to .xor.popc"),
    (NVF4, "sm_120a",
     "mma has no such form on sm_120a: add .scale_vec::2X or .scale_vec::4X; "
     "or change .kind::mxf4nvf4 to .kind::mxf4"),
    ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.f32.e2m1.e2m1.f32", "sm_120a",
     "mma has no such form on sm_120a: add .block_scale.ue8m0; "
     "or change shape and .kind from .m16n8k64.kind::mxf4 to .m16n8k32.kind::f8f6f4; "
     "or change .kind::mxf4 to .kind::f8f6f4 and add .sp::ordered_metadata"),
    ("mma.sync.aligned.m16n8k32.row.col.f32^.e2m1^.e2m1.f32", "sm_90a",
     "mma has no such form on sm_90a: change atype and btype from .e2m1.e2m1 "
     "to .e4m3.e4m3, .e4m3.e5m2, .e5m2.e4m3 or .e5m2.e5m2; "
     "on sm_120a, sm_120f, sm_121a, sm_121f: add .kind::f8f6f4"),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32^.e2m1^.e2m1.f32", "sm_100a",
     f"{NARROW} is not on sm_100a; {ON}. On sm_100a: change atype and btype from .e2m1.e2m1 "
     "to .e4m3.e4m3, .e4m3.e5m2, .e5m2.e4m3 or .e5m2.e5m2"),
    ("mma.sync.aligned^.m16n8k32^.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32", "sm_80",
     f"{NARROW} is not on sm_80; {ON}. "
     "On sm_80: the nearest form is mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"),
    ("mma.sp.sync.aligned^.m16n8k16^.row.col.f32.e4m3.e4m3.f32", "sm_90",
     "mma has no such form on sm_90: change shape from .m16n8k16 to .m16n8k64; or leave out .sp"),
    ("mma^.sp^.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "sm_120f",
     "mma has no such form on sm_120f: change shape from .m16n8k128 to .m16n8k64 and leave out .sp; "
     "on sm_120a, sm_121a: change .sp to .sp::ordered_metadata"),
    ("mma.sync.aligned^.m16n8k8^.row.col.f64.f64.f64.f64", "sm_80",
     "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 is not on sm_80; it is on sm_90 and later. "
     "On sm_80: change shape from .m16n8k8 to .m8n8k4"),
    (F16, "sm_91", f"unknown target 'sm_91'; known are {', '.join(TARGETS)}; is it sm_90?"),
    (F16, "hopper", f"unknown target 'hopper'; known are {', '.join(TARGETS)}"),
)  # fmt: skip


def check_error(marked: str, target: str | None, message: str, **more: str) -> None:
    text = marked.replace("^", "")
    error = refusal(text, target, **more)
    assert error.message == message
    start, end = marked.find("^"), marked.rfind("^") - 1
    if start < 0:
        start, end = 0, len(text.partition(" ")[0])
    place = error.location
    assert place is not None
    assert (place.line, place.column, place.length) == (1, start + 1, end - start)
    assert error.render() == f"<string>:1:{start + 1}: error: {message}\n{place.excerpt()}"


@pytest.mark.parametrize(("marked", "target", "message"), MNEMONIC_ERRORS)
def test_errors_of_mnemonics(marked: str, target: str | None, message: str) -> None:
    check_error(marked, target, message)


FP8 = "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32"

VERSION_ERRORS = (
    # text, target, version, what is too new for it
    (FP8, "sm_89", "8.4", f"{FP8} needs PTX ISA 8.7; this is read as 8.4"),
    (F16, "sm_120a", "8.4", "sm_120a needs PTX ISA 8.7; this is read as 8.4"),
    ("mma.sync.aligned", None, "6.0", "mma needs PTX ISA 6.4; this is read as 6.0"),
)


@pytest.mark.parametrize(("text", "target", "version", "message"), VERSION_ERRORS)
def test_errors_of_versions(text: str, target: str | None, version: str, message: str) -> None:
    check_error(text, target, f"{message} (set .version, or version=)", version=version)


@pytest.mark.parametrize("version", ["8", "8.x", "", "8.5.1", (8,), ("8", "5"), (8, 5, 0), 8.5, 9])
def test_a_version_is_two_numbers(version: object) -> None:
    with pytest.raises(IllegalInstruction) as caught:
        warpsim.decode(F16, version=version)  # type: ignore[arg-type]
    assert caught.value.message == f"PTX version {version!r}: expected major.minor, such as '8.5'"


def test_a_version_is_text_or_a_pair() -> None:
    later = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0"
    )
    assert warpsim.decode(later, "sm_120a", version=(9, 1)) == warpsim.decode(later, "sm_120a", version="9.1")
    assert set(warpsim.instructions(version=(9, 1))) == set(warpsim.instructions(version="9.1"))
    with pytest.raises(IllegalInstruction, match=r"needs PTX ISA 9\.1; this is read as 9\.0"):
        warpsim.decode(later, "sm_120a", version=(9, 0))


D, A, B, C = "{f0, f1, f2, f3}", "{r0, r1, r2, r3}", "{r4, r5}", "{f4, f5, f6, f7}"
BF16 = F16.replace("f16", "bf16")
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
MX = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"

OPERAND_ERRORS = (
    # statement, message
    (f"{F16} {D}, {A}, {B};", f"{F16} takes 4 operands (d, a, b, c), but 3 are given"),
    (f"{F16} {D};", f"{F16} takes 4 operands (d, a, b, c), but 1 is given"),
    (f"{SPARSE} {D}, {A}, {A}, {C}, r8;",
     f"{SPARSE} takes 6 operands (d, a, b, c, metadata, selector), but 5 are given"),
    (f"{MX} {D}, {A}, {B}, {C};",
     f"{MX} takes 8 operands (d, a, b, c, scale-a, {{byte-id-a, thread-id-a}}, scale-b, "
     "{byte-id-b, thread-id-b}), but 4 are given"),
    (f"{F16} {D}, ^{{r0, r1}}^, {B}, {C};", "a has 4 registers, but 2 are given"),
    (f"{F16} {D}, {A}, ^{{r4}}^, {C};", "b has 2 registers, but 1 is given"),
    (f"{F16} {D}, {A}, ^r4^, {C};", "b is a vector of 2 registers in braces, not 'r4'"),
    (f"{F16} ^_^, {A}, {B}, {C};", "d is a vector of 4 registers in braces, not '_'"),
    (f"{F16} ^{{_, _, _, _}}^, {A}, {B}, {C};",
     "d is all sinks '_', which leaves its type open: name one register"),
    (f"{F16} {{f0, ^1.0^, f2, f3}}, {A}, {B}, {C};", "d is written: it takes registers or '_', not 1.0"),
    (f"{F16} {D}, {{r0, ^_^, r2, r3}}, {B}, {C};", "a is read: '_' stands for results only"),
    (f"{F16} {D}, {A}, {{r4, ^zz^}}, {C};", "register zz is not declared"),
    (f"{F16} {D}, {A}, {{^f4^, f5}}, {C};", "b takes .b32 or .f16x2 registers, but f4 is .f32"),
    (f"{F16} {D}, {A}, {{u4, ^f5^}}, {C};", "u4 (.u32) and f5 (.f32) cannot stand in one vector"),
    (f"{F16} {D}, {A}, {{^g4^, g5}}, {C};", "b takes .b32 or .f16x2 registers, but g4 is .f64"),
    (f"{F16} {D}, {A}, {{p4, ^r5^}}, {C};", "p4 (.pred) and r5 (.b32) cannot stand in one vector"),
    (f"{BF16} {D}, {A}, {{^u4^, u5}}, {C};", "b takes .b32 registers, but u4 is .u32"),
    (f"{BF16} {D}, {A}, {{^0^, 1}}, {C};",
     "b takes .b32 registers; integer constants may stand among them, but not alone"),
    (f"{BF16} {D}, {A}, {{0, ^1.5^}}, {C};", "0 (an integer) and 1.5 (a float) cannot stand in one vector"),
    (f"{F16} {D}, {A}, {{r4, ^0x100000000^}}, {C};", "constant 0x100000000 does not fit in the 32 bits of b"),
    (f"^@r0^ {F16} {D}, {A}, {B}, {C};", "guard r0 is .b32, not a predicate"),
    (f"^@!zz^ {F16} {D}, {A}, {B}, {C};", "guard zz is not declared"),
    (f"{SPARSE} {D}, {A}, {A}, {C}, ^5^, 0;", "metadata is one register, not '5'"),
    (f"{SPARSE} {D}, {A}, {A}, {C}, ^f8^, 0;",
     "metadata takes .b32, .f16x2, .s32 or .u32 registers, but f8 is .f32"),
    (f"{SPARSE} {D}, {A}, {A}, {C}, r8, ^2^;", "sparsity selector 2: this form has 0 or 1"),
    (f"{SPARSE} {D}, {A}, {A}, {C}, r8, ^r9^;", "the sparsity selector is an integer constant, not 'r9'"),
    (f"{SPARSE} {D}, {A}, {A}, {C}, r8, ^0.0^;", "the sparsity selector is an integer constant, not '0.0'"),
    (f"{MX} {D}, {A}, {B}, {C}, ^5^, {{0, 0}}, r9, {{0, 0}};", "scale-a is one register, not '5'"),
    (f"{MX} {D}, {A}, {B}, {C}, r8, {{0, 0}}, r9, ^0^;", "expected {byte-id-b, thread-id-b}, not '0'"),
    (f"{MX} {D}, {A}, {B}, {C}, r8, {{^1^, 0}}, r9, {{0, 0}};", "byte-id-a 1: this form has 0 or 2"),
    (f"{MX} {D}, {A}, {B}, {C}, r8, {{0, ^2^}}, r9, {{0, 0}};", "thread-id-a 2: this form has 0 or 1"),
    (f"{MX} {D}, {A}, {B}, {C}, r8, {{0, 0}}, r9, {{0, ^4^}};", "thread-id-b 4: this form has 0, 1, 2 or 3"),
    (f"{MX} {D}, {A}, {B}, {C}, r8, {{0, ^r1^}}, r9, {{0, 0}};",
     "byte-id-a, thread-id-a takes .b16, .s16 or .u16 registers, but r1 is .b32"),
)  # fmt: skip


@pytest.mark.parametrize(("marked", "message"), OPERAND_ERRORS)
def test_errors_of_operands(marked: str, message: str) -> None:
    mnemonic = re.search(r"mma\S*", marked)
    assert mnemonic is not None
    if "^" not in marked:  # it points at the mnemonic
        marked = marked.replace(mnemonic[0], f"^{mnemonic[0]}^")
    check_error(marked, "sm_120a", message, declarations=DECLARATIONS)


def test_without_declarations_registers_have_the_right_types() -> None:
    anything = "{v0, %f1, r2, zz}"
    text = f"@zz {F16} {anything}, {anything}, {{zz, 5}}, {anything};"
    assert str(warpsim.decode(text)) == F16
    assert refusal(text, declarations=".reg .b32 r<4>;").message == "guard zz is not declared"


# --- what holds of every error -----------------------------------------------------------------------


def outcome(text: str, target: str) -> Instruction | WarpsimError:
    try:
        return warpsim.decode(text, target, declarations=DECLARATIONS)
    except (PtxError, IllegalInstruction) as error:
        return error


def mutants(target: str, count: int) -> list[str]:
    """Bare mnemonics and whole statements, most of them illegal."""
    texts: list[str] = []
    for form in mma_forms(target):
        random = Random(f"{SEED} {target} {form}")
        texts += mutated_mnemonics(form, random, count)
        texts += mutated_operands(form, random, count)
    return texts


@pytest.mark.parametrize("target", ["sm_75", "sm_89", "sm_120a"])
def test_every_error_points_into_the_text(target: str) -> None:
    for text in mutants(target, 2):
        error = outcome(text, target)
        if isinstance(error, WarpsimError):
            place = error.location
            assert error.message
            assert place is not None
            assert place.text == text
            assert 1 <= place.column <= place.column + place.length - 1 <= len(text)
            assert str(outcome(text, target)) == str(error)


_FIRST_ADVICE = re.compile(
    r": (?:change (?:\w+ from )?(?P<given>\.[\w:.]+) to (?P<value>\.[\w:]+(?:\.popc)?)"
    r"|add (?:\w+ )?(?P<added>\.[\w:.]+)|leave out (?:\w+ )?(?P<dropped>\.[\w:.]+))(?=$|[,;]| or )"
)


@pytest.mark.parametrize("target", ["sm_75", "sm_89", "sm_100a", "sm_120a"])
def test_following_the_first_advice_leads_to_a_form(target: str) -> None:
    followed = 0
    for form in mma_forms(target):
        for mnemonic in mutated_mnemonics(form, Random(f"{SEED} {target} {form}"), 6):
            error = outcome(mnemonic, target)
            repaired = repairs(mnemonic, error) if isinstance(error, WarpsimError) else []
            followed += bool(repaired)
            if repaired:
                assert any(isinstance(outcome(text, target), Instruction) for text in repaired), error
    assert followed > 10


def repairs(mnemonic: str, error: WarpsimError) -> list[str]:
    """The mnemonic as the first advice has it, if that is about one slot; an addition anywhere."""
    first = error.message.partition(";")[0]
    advice = _FIRST_ADVICE.search(first)
    if advice is None or error.location is None or " and " in first:
        return []
    start = error.location.column - 1
    end = start + error.location.length
    if advice["added"]:
        words = mnemonic.split(".")
        return [".".join((*words[:i], advice["added"][1:], *words[i:])) for i in range(1, len(words) + 1)]
    changed = mnemonic[:start] + (advice["value"] or "") + mnemonic[end:]
    return [changed, changed.replace(".popc", "", 1)]  # a bit operation is two modifiers


VECTORS = ".reg .v4 .b32 quad; .reg .v2 .b32 two; .reg .b32 r<9>;"


def test_vector_registers_are_taken_by_their_elements():
    form = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {r0,r1,r2,r3}, "
    legal = form + "{quad.x, quad.w, r2, r3}, {two.x, two.g}, {r1,r2,r3,r4};"
    assert warpsim.decode(legal, target="sm_80", declarations=VECTORS).mnemonic == form.split()[0]
    for operands, message in (
        ("{quad, r1, r2, r3}, {r1,r2}, {r1,r2,r3,r4};", r"quad \(\.v4\.b32\) and r1 \(\.b32\) cannot stand"),
        ("{quad, quad, quad, quad}, {r1,r2}, {r1,r2,r3,r4};", r"quad \(\.v4\.b32\) and quad"),
        ("{quad.x, r1, r2, r3}, {two.x, two.z}, {r1,r2,r3,r4};", "register two.z is not declared"),
    ):
        with pytest.raises(warpsim.IllegalInstruction, match=message):
            warpsim.decode(form + operands, target="sm_80", declarations=VECTORS)
