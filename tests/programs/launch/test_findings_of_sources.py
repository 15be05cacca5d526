"""Findings of a CUDA source name its lines."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import warpsim

RACE = """\
__device__ __forceinline__ int neighbour(const int* tile) {
    return tile[(threadIdx.x + 32) % 64];
}
extern "C" __global__ void shift(int* out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = neighbour(tile);
}
"""
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the path")


@needs_nvcc
def test_a_race_names_the_line_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shift.cu").write_text(RACE)
    report = warpsim.load("shift.cu")["shift"](1, 64, [np.zeros(64, np.int32)], checks="warn")
    hazard = report.hazards[0]
    assert str(hazard.source) == "shift.cu:2"
    assert str(hazard.source.inlined_at) == "shift.cu:7"
    assert str(hazard.location).startswith("shift.cu:2 (PTX of shift.cu:")
    assert "    return tile[(threadIdx.x + 32) % 64];\n    inlined at shift.cu:7\n" in str(hazard)
    assert "shift.cu:6" in str(hazard)  # the other access


@needs_nvcc
def test_the_message_of_a_race_names_the_other_line_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shift.cu").write_text(RACE)
    report = warpsim.load("shift.cu")["shift"](1, 64, [np.zeros(64, np.int32)], checks="warn")
    (hazard,) = report.hazards
    assert "which another warp has written at shift.cu:6 (line " in hazard.message


UNROLLED = """\
extern "C" __global__ void last(float* out, int first) {
    __shared__ float tile[64], other[64];
    float sum = 0;
    if (threadIdx.x == 0) {
        tile[first] = 1;
        other[first] = 2;
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 8; ++i)
        sum += tile[i];
    out[threadIdx.x] = sum + other[1];
}
"""


@needs_nvcc
def test_a_line_that_is_unrolled_is_one_finding(tmp_path: Path) -> None:
    source = tmp_path / "last.cu"
    source.write_text(UNROLLED)
    out = np.zeros(32, np.float32)
    unrolled, alone = warpsim.load(source)["last"](1, 32, [out, 0], checks="warn").hazards
    assert (unrolled.kind, unrolled.severity, unrolled.count) == ("uninitialised", "warning", 7)
    assert (unrolled.source.line, alone.source.line, alone.count) == (11, 12, 1)
    lines = [here.line for here, there in unrolled.others if there is None]
    assert len(lines) == 6
    listed = f"{', '.join(map(str, lines[:4]))} and 2 more"
    assert f"note: 7 statements do this, also lines {listed} of the PTX\n" in f"{unrolled}\n"
    assert "statements do this" not in str(alone)


@needs_nvcc
def test_what_nvcc_prints_is_cut_and_a_missing_header_has_a_remedy(tmp_path: Path) -> None:
    source = tmp_path / "broken.cu"
    source.write_text("#include <helper.h>\n")
    with pytest.raises(warpsim.PtxError, match=r"fix: name the folder of helper\.h: .*--nvcc -Ifolder$"):
        warpsim.load(source)
    source.write_text("\n".join(f"int x{i} = y{i};" for i in range(50)))
    with pytest.raises(warpsim.PtxError, match=r"\n\.\.\. and [1-9][0-9]* more lines$") as raised:
        warpsim.load(source)
    assert len(raised.value.message.splitlines()) == 26
    (tmp_path / "helper.h").write_text("")
    source.write_text("#include <helper.h>\n")
    assert warpsim.load(source, nvcc=[f"-I{tmp_path}"]).entries == ()


@needs_nvcc
def test_the_ptx_of_a_source_is_kept(tmp_path: Path) -> None:
    source, kept = tmp_path / "shift.cu", tmp_path / "shift.ptx"
    source.write_text(RACE)
    warpsim.load(source, keep=kept)
    report = warpsim.load(kept)["shift"](1, 64, [np.zeros(64, np.int32)], checks="warn")
    assert report.hazards[0].source.line == 2
    assert report.hazards[0].location.file == str(kept)


PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"


@pytest.mark.parametrize("text", [PTX.encode(), PTX.encode() + b"\0", PTX + "\0", bytearray(PTX.encode())])
def test_text_as_a_compiler_leaves_it(text: str | bytes) -> None:
    assert warpsim.load(text).entries == ("k",)


def test_a_source_that_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    text = PTX.replace(
        "\tret;", "\t.loc 1 1 0\n\t.reg .u64 %a;\n\tmov.u64 %a, 16;\n\tld.global.u64 %a, [%a];\n\tret;"
    )
    with pytest.raises(warpsim.Fault) as caught:
        warpsim.load(text + '\t.file 1 "/dev/zero"\n')["k"](1, 32)
    assert str(caught.value.location.source) == "/dev/zero:1"
    assert caught.value.location.source.text == ""


def test_a_source_that_has_changed_is_read_again(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    body = "\t.loc 1 1 0\n\t.reg .u64 %a;\n\tmov.u64 %a, 16;\n\tld.global.u64 %a, [%a];\n\tret;"
    text = PTX.replace("\tret;", body) + f'\t.file 1 "{source}"\n'
    for line in ("first;", "second line;"):
        source.write_text(line + "\n")
        with pytest.raises(warpsim.Fault) as caught:
            warpsim.load(text)["k"](1, 32)
        assert caught.value.location.source.text == line
