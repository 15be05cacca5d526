"""The library of a chip: every form in a header, and a check that computes what the kernels do."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import warpsim
from tests.workbench.models.test_golden_models import STRICT, made, needs_cc
from warpsim.isa.families import tcgen05
from warpsim.show.cli import main
from warpsim.workbench.models.c_library import Library, library_of
from warpsim.workbench.models.model_files import write_model

CHOSEN = {  # a form of each kind of word, place, pattern and number of a call
    "sm_90a": [
        "mma_sp_m16n8k32_f32_f16_f16_f32",
        "mma_m16n8k4_f64_f64_f64_f64",
        "mma_m16n8k256_s32_b1_b1_s32_and_popc",
        "wgmma_sp_m64n16k64_f16_e4m3_e5m2",
    ],
    "sm_120a": [
        "mma_sp_m16n8k128_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32_ue4m3_ordered",
        "mma_m16n8k32_kind_mxf8f6f4_block_scale_f32_e3m2_e2m1_f32_ue8m0",
    ],
    "sm_100a": [
        "tcgen05_mma_sp_cta_group_2_kind_f8f6f4_m256n128k64_f16_e2m3_e2m3_f16",
        "tcgen05_mma_cta_group_1_kind_mxf4nvf4_block_scale_scale_vec_4X_m128n128k64_f32_e2m1_e2m1_f32_ue4m3",
        "tcgen05_mma_cta_group_1_kind_mxf4nvf4_block_scale_scale_vec_4X_m128n128k64_f32_e2m1_e2m1_f32_ue4m3"
        "_groups_of_4",
    ],
}


@cache
def library(target: str) -> Library:
    return library_of(target, "lib")


def part_of(target: str) -> Library:
    """The chosen forms of a chip as a library, with the dot products that they call."""
    every = library(target)
    models = tuple(each for each in every.models if each.name.removeprefix("lib_") in CHOSEN[target])
    assert len(models) == len(CHOSEN[target])
    dots = tuple(each for each in every.dots if any(model.dot is each for model in models))
    return replace(every, models=models, dots=dots)


@needs_cc
@pytest.mark.parametrize("target", CHOSEN)
def test_a_library_checks_its_forms(target: str, tmp_path: Path) -> None:
    write_model(tmp_path, part_of(target).files(), force=False)
    ended = made(tmp_path, f"CFLAGS={' '.join(STRICT)} -O1")
    count = len(CHOSEN[target])
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"lib: {count} forms, {2 * count} cases, 0 wrong\n"


@needs_cc
def test_a_wrong_model_of_a_library_is_named(tmp_path: Path) -> None:
    (sparse,) = (each for each in part_of("sm_90a").models if "_sp_m16n8k32" in each.name)
    few = replace(part_of("sm_90a"), models=(sparse,), dots=(sparse.dot,))
    write_model(tmp_path, few.files(), force=False)
    source = tmp_path / "lib_mma_sp_m16n8k32_f32_f16_f16_f32.c"
    text = source.read_text()
    source.write_text(re.sub(r"index = field >> 2", "index = field >> 1", text))
    assert source.read_text() != text
    ended = made(tmp_path)
    assert ended.returncode != 0
    assert "lib_mma_sp_m16n8k32_f32_f16_f16_f32, case 1: D has digest" in ended.stdout
    assert "1 forms, 2 cases, 2 wrong" in ended.stdout


def test_a_library_has_every_form() -> None:
    """Of tcgen05.mma those of a common shape; few dot products serve all."""
    every = library("sm_100a")
    described = [form for form in tcgen05.typical() if "sm_100a" in form.targets]
    assert len(every.models) == len(list(warpsim.instructions("sm_100a"))) + len(described)
    assert len(every.dots) < len(every.models) // 4


@pytest.mark.parametrize(
    ("name", "says"),
    [("round", "round_f"), ("stdint", "stdint"), ("a_code", "a_code")],
)
def test_a_name_inside_a_library(
    name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["model", "--all", "--target", "sm_75", "--name", name, "-o", str(tmp_path / "new")])
    said = "".join(capsys.readouterr())
    assert ended.value.code == 3, said
    assert f"--name {name}: {says}" in said
    assert "is a name inside the library" in said
    assert not (tmp_path / "new").exists()
