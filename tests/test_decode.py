"""PTX text to instructions: what is read, what is refused, with which words and pointing where."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from mutations import DECLARATIONS, legal_operands, mutated_mnemonics, mutated_operands, shuffled, spelled

import warpsim
from warpsim import IllegalInstruction, Instruction, PtxError, WarpsimError
from warpsim.architectures import ARCHITECTURES

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


def test_forms_of_later_versions_are_neither_listed_nor_advised() -> None:
    later = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0"
    assert warpsim.decode(later, "sm_120a", version="9.1").since == (9, 1)
    assert later not in {form.mnemonic for form in warpsim.instructions()}
    assert "needs PTX ISA 9.1; this is read as 9.0" in refusal(later, "sm_120a").message
    near = refusal(later.replace("k64", "k32"), "sm_120a")
    assert later.split(".kind")[1] not in near.message


# --- errors ------------------------------------------------------------------------------------------

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
B1 = "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32"
NVF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NARROW = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32"

MNEMONIC_ERRORS = (
    # text, target, message, what the caret marks
    (F16.replace("k16", "k12"), None,
     "mma has no such form: change shape from .m16n8k12 to .m8n8k4, .m16n8k8 or .m16n8k16", ".m16n8k12"),
    (F16.replace("f32.f16", "f16.f16"), "sm_80",
     "mma has no such form on sm_80: change dtype from .f16 to .f32; or change ctype from .f32 to .f16", ".f16"),
    (F16.replace("f16.f32", "f16.s32"), "sm_80",
     "mma has no such form on sm_80: change ctype from .s32 to .f32 or .f16", ".s32"),
    (F16.replace("col", "row"), "sm_80",
     "mma has no such form on sm_80: change blayout from .row to .col; "
     "or change shape from .m16n8k16 to .m8n8k4", ".row.f32"),
    (F16.replace(".col", ""), "sm_80", "mma has no such form on sm_80: add blayout .col", ""),
    (F16.removesuffix(".f32"), "sm_80", "mma has no such form on sm_80: add ctype .f32", ""),
    (F16.replace(".m16n8k16", ""), "sm_80",
     "mma has no such form on sm_80: add shape .m8n8k4, .m16n8k8 or .m16n8k16", ""),
    (F16.replace(".sync", ""), None, "mma needs the modifier '.sync'", ""),
    (F16.replace(".aligned", ""), None, "mma needs the modifier '.aligned'", ""),
    ("mma.sync.aligned", None,
     "mma has no such form: the nearest form is mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16", ""),
    (F16.replace("col", "col.satfinite"), None, "mma has no such form: leave out .satfinite", ".satfinite"),
    (F16.replace("col", "col.satfinit"), None,
     "mma has no modifier '.satfinit'; did you mean .satfinite?", ".satfinit"),
    (F16.replace("col", "col.relu"), None,
     "mma has no modifier '.relu'; it has .sync, .aligned, a shape, layouts, types and, in some forms, "
     ".sp, .satfinite, .kind, .block_scale, .scale_vec, a rounding or a bit operation", ".relu"),
    (F16.replace("mma", "mma.mma_async"), None, "mma has no modifier '.mma_async'; did you mean .sync?", ".mma_async"),
    (F16 + ".m16n8k8", None, "'.m16n8k8': the shape is already given as '.m16n8k16'", ".m16n8k8"),
    (F16 + ".row", None, "'.row': at most 2 layouts (of A, B) are expected", ".row"),
    (F16 + ".f32", None, "mma has no such form: leave out stype .f32", ".f32"),
    (F16 + ".f32.f32", None, "'.f32': at most 5 types (of D, A, B, C and the scales) are expected", ".f32"),
    (B1, "sm_80", "mma has no such form on sm_80: add .xor.popc or .and.popc", ""),
    (B1 + ".or.popc", "sm_80", "mma has no such form on sm_80: change .or.popc to .xor.popc or .and.popc", ".or"),
    (B1 + ".popc", None, "a bit operation is spelled '.and.popc' or '.xor.popc', in this order", ".popc"),
    (B1 + ".popc.xor", None, "a bit operation is spelled '.and.popc' or '.xor.popc', in this order", ".xor"),
    (B1 + ".and.popc", "sm_75",
     f"{B1}.and.popc is not on sm_75; it is on sm_80 and later. On sm_75: change .and.popc to .xor.popc", ".and"),
    (NVF4, "sm_120a",
     "mma has no such form on sm_120a: add .scale_vec::2X; or change .kind::mxf4nvf4 to .kind::mxf4",
     ""),
    (NVF4.replace("nvf4", "").replace(".block_scale", "").removesuffix(".ue8m0"), "sm_120a",
     "mma has no such form on sm_120a: add .block_scale.ue8m0; "
     "or change shape and .kind from .m16n8k64.kind::mxf4 to .m16n8k32.kind::f8f6f4; "
     "or change .kind::mxf4 to .kind::f8f6f4 and add .sp::ordered_metadata", ""),
    (NARROW.replace(".kind::f8f6f4", ""), "sm_90a",
     "mma has no such form on sm_90a: change atype and btype from .e2m1.e2m1 "
     "to .e4m3.e4m3, .e4m3.e5m2, .e5m2.e4m3 or .e5m2.e5m2; "
     "on sm_120a, sm_120f, sm_121a, sm_121f: add .kind::f8f6f4", ".e2m1"),
    (NARROW, "sm_100a",
     f"{NARROW} is not on sm_100a; it is on sm_120a, sm_120f, sm_121a, sm_121f. On sm_100a: "
     "change atype and btype from .e2m1.e2m1 to .e4m3.e4m3, .e4m3.e5m2, .e5m2.e4m3 or .e5m2.e5m2", ".e2m1"),
    (NARROW, "sm_80",
     f"{NARROW} is not on sm_80; it is on sm_120a, sm_120f, sm_121a, sm_121f. "
     "On sm_80: the nearest form is mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", ".m16n8k32"),
    ("mma.sp.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32", "sm_90",
     "mma has no such form on sm_90: change shape from .m16n8k16 to .m16n8k64; or leave out .sp", ".m16n8k16"),
    ("mma.sp.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "sm_120f",
     "mma has no such form on sm_120f: change shape from .m16n8k128 to .m16n8k64 and leave out .sp; "
     "on sm_120a, sm_121a: change .sp to .sp::ordered_metadata", ".sp"),
    ("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", "sm_80",
     "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 is not on sm_80; it is on sm_90 and later. "
     "On sm_80: change shape from .m16n8k8 to .m8n8k4", ".m16n8k8"),
    (F16, "sm_91", f"unknown target 'sm_91'; known are {', '.join(TARGETS)}", ""),
)  # fmt: skip


def marked(error: WarpsimError) -> str:
    """The piece of text that the caret and its tildes stand under."""
    _, text, carets = error.render().split("\n")
    start = carets.index("^")
    return text[start : start + len(carets.strip())]


@pytest.mark.parametrize(("text", "target", "message", "mark"), MNEMONIC_ERRORS)
def test_errors_of_mnemonics(text: str, target: str | None, message: str, mark: str) -> None:
    error = refusal(text, target)
    assert error.message == message
    assert marked(error) == mark.rpartition(".f32")[0] + mark[len(mark.rpartition(".f32")[0]) :] or text


def test_versions_in_errors() -> None:
    f8 = "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32"
    advice = "(set .version, or version=)"
    assert refusal(f8, "sm_89", version="8.4").message == f"{f8} needs PTX ISA 8.7; this is read as 8.4 {advice}"
    assert refusal(F16, "sm_120a", version="8.4").message == f"sm_120a needs PTX ISA 8.7; this is read as 8.4 {advice}"
    assert refusal("mma.sync.aligned", version="6.0").message == f"mma needs PTX ISA 6.4; this is read as 6.0 {advice}"
    assert refusal(F16, version="8").message == "PTX version '8': expected major.minor, such as '8.5'"
