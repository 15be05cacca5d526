"""Short spellings and SASS names: read where a single form fits, and answered with candidates elsewhere."""

from __future__ import annotations

from collections import defaultdict

import pytest

import warpsim
from warpsim.isa.sass_names import name_of

MMA, SPARSE = "mma.sync.aligned", "mma.sp::ordered_metadata.sync.aligned"
READ = {
    "m16n8k16.f16": f"{MMA}.m16n8k16.row.col.f16.f16.f16.f16",
    "m16n8k16.bf16": f"{MMA}.m16n8k16.row.col.f32.bf16.bf16.f32",
    "16816.f32.f16": f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32",
    "16x8x8.tf32": f"{MMA}.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sp.16832.f32.f16": "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    "mma.m16n8k32.f32.e4m3.e5m2": f"{MMA}.m16n8k32.row.col.f32.e4m3.e5m2.f32",
    "m16n8k32.s8.satfinite": f"{MMA}.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
    "m16n8k64.mxf4.e2m1": f"{MMA}.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
    "m8n8k4.row.col.f32.f16": f"{MMA}.m8n8k4.row.col.f32.f16.f16.f32",
    "wgmma.m64n64k16.f32.bf16": "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
    "HMMA.16816.F32": f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32",
    "@!P0 HMMA.16816.F32 R4, R8, R12, R4 ;": f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32",
    "HMMA.SP.16832.F32 R4, R4, R8, R12, R0, 0x1": f"{SPARSE}.m16n8k32.row.col.f32.f16.f16.f32",
    "imma.16832.s8.u8": f"{MMA}.m16n8k32.row.col.s32.s8.u8.s32",
    "DMMA.884": f"{MMA}.m8n8k4.row.col.f64.f64.f64.f64",
    "QGMMA.64x64x32.F32.E4M3.E4M3": "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3",
}


@pytest.mark.parametrize("name", READ)
def test_a_name_that_fits_one_form(name: str) -> None:
    assert warpsim.decode(name).mnemonic == READ[name]


CANDIDATES = {
    "m16n8k32.e4m3": ("fits 2 instructions", ".f32.e4m3.e4m3.f32", ".f16.e4m3.e4m3.f16"),
    "HMMA.16816": ("fits 3 instructions", ".f16.f16.f16.f16", ".f32.f16.f16.f32", ".f32.bf16.bf16.f32"),
    "m16n8k64.e2m1": ("fits 4 instructions", "kind::mxf4.", "kind::mxf4nvf4."),
    "m16n8k64.f32.e4m3": ("fits no matrix", "nearest: mma.sp.sync.aligned.m16n8k64"),  # never sparse unasked
    "m16n8k16.f32.f61": ("fits no matrix", f"nearest: {MMA}.m16n8k16.row.col.f32.f16.f16.f32"),
    "HMMA.16816.F23": ("fits no matrix", "nearest: HMMA.16816.F32"),
    "QGMMA": ("fits 256 instructions", "and 250 more"),
}


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_name_that_fits_none_or_several(name: str) -> None:
    with pytest.raises(warpsim.IllegalInstruction) as error:
        warpsim.decode(name)
    assert all(part in str(error.value) for part in CANDIDATES[name])


def test_the_target_decides_between_forms_and_is_kept() -> None:
    with pytest.raises(warpsim.IllegalInstruction, match="fits 2 instructions"):
        warpsim.decode("m8n8k128.b1")
    assert warpsim.decode("m8n8k128.b1", target="sm_75").bit_operation == "xor"
    assert warpsim.decode("HMMA.16816.F32", target="sm_90a").target == "sm_90a"
    with pytest.raises(warpsim.IllegalInstruction, match="is not on sm_75; it is on"):
        warpsim.decode("HMMA.16816.F32", target="sm_75")


@pytest.mark.parametrize(
    "whole", ["mma.aligned.m16n8k16.f32.f16", "mma.sync.m16n8k16.f16", "m16n8k16.f16 %a, %b;"]
)
def test_what_looks_whole_is_taken_by_the_letter(whole: str) -> None:
    with pytest.raises(warpsim.IllegalInstruction, match=r"needs the modifier|is not a matrix instruction"):
        warpsim.decode(whole)


EXAMPLES = {
    "m16n8k16 f16": f"{MMA}.m16n8k16.row.col.f16.f16.f16.f16",
    "bf16 64x64x16 gemm": "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
    "mma.sp m16n8k32 bf16": "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
    "m16n8k16 tf32": "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",  # dense ones have k 4 and 8
    "mma.sync m16n8k8": f"{MMA}.m16n8k8.row.col.f16.f16.f16.f16",
}


@pytest.mark.parametrize("words", EXAMPLES)
def test_words_that_are_no_instruction_are_answered_with_an_example(words: str) -> None:
    with pytest.raises(warpsim.WarpsimError) as error:
        warpsim.decode(words)
    first = str(error.value).split("\n")[0]
    assert first.endswith(f"; the nearest complete instruction is {EXAMPLES[words]}")
    assert warpsim.decode(EXAMPLES[words]).mnemonic == EXAMPLES[words]


@pytest.mark.parametrize("text", ["hello world", "add.f32", "ldmatrix x4", f"{MMA}.m16n8k16", "f16 {%r0};"])
def test_no_example_where_no_word_asks_for_one(text: str) -> None:
    with pytest.raises(warpsim.WarpsimError) as error:
        warpsim.decode(text)
    assert "the nearest complete instruction" not in str(error.value)


def test_an_example_is_of_the_target() -> None:
    with pytest.raises(warpsim.WarpsimError) as error:
        warpsim.decode("f32 m16n8k16 bf16", target="sm_75")
    example = str(error.value).split("\n")[0].rpartition(" ")[2]
    assert "sm_75" in warpsim.decode(example).targets


def test_every_sass_name_is_read_as_a_form_of_that_name() -> None:
    named = defaultdict(set)
    for form in warpsim.instructions():
        if form.products == 1 and form.shape.n in (8, 64):
            named[name_of(form)].add(form.mnemonic)
    assert len(named) > 150
    assert all(warpsim.decode(name).mnemonic in found for name, found in named.items())


def test_functions_take_them_too() -> None:
    assert warpsim.fragment("HMMA.16816.F32", "a").shape == (32, 4, 2, 2)
