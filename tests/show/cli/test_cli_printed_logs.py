"""What a kernel prints goes into ``diff`` and ``lint`` as it is, in several styles."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the path")

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
KERNEL = """
#include <cstdint>
#include <cstdio>
__global__ void product(float* out, const uint32_t* ga, const uint32_t* gb, const uint32_t* ge) {
    int lane = threadIdx.x;
    uint32_t a[4], b[COUNT], e = ge[lane];
    float d[4] = {};
    for (int i = 0; i < 4; i++) a[i] = ga[lane * 4 + i];
    for (int i = 0; i < COUNT; i++) b[i] = gb[lane * COUNT + i];
    if (SWAPPED) { uint32_t t = a[1]; a[1] = a[SWAPPED]; a[SWAPPED] = t; }
    MMA
    PRINT
    for (int i = 0; i < 4; i++) out[lane * 4 + i] = d[i];
}
"""
D = '"+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])'
A = '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])'
MMA = {
    DENSE: f'asm volatile("{DENSE} {{%0,%1,%2,%3}}, {{%4,%5,%6,%7}}, {{%8,%9}}, {{%0,%1,%2,%3}};"'
    f' : {D} : {A}, "r"(b[0]), "r"(b[1]));',
    SPARSE: f'asm volatile("{SPARSE} {{%0,%1,%2,%3}}, {{%4,%5,%6,%7}}, {{%8,%9,%10,%11}}, '
    f'{{%0,%1,%2,%3}}, %12, 0;" : {D} : {A}, "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(e));',
}
BITS = "__float_as_uint(d[0]), __float_as_uint(d[1]), __float_as_uint(d[2]), __float_as_uint(d[3])"
OF_A, OF_B, OF_D = "a[0], a[1], a[2], a[3]", "b[0], b[1]", "d[0], d[1], d[2], d[3]"
STYLES = {
    "a line of bare names": f"""
        printf("lane %d: a %08x %08x %08x %08x b %08x %08x\\n", lane, {OF_A}, {OF_B});
        printf("lane %d: d %08x %08x %08x %08x\\n", lane, {BITS});""",
    "a name for each register": f"""
        printf("T%d a0=0x%x a1=0x%x a2=0x%x a3=0x%x b0=0x%x b1=0x%x\\n", lane, {OF_A}, {OF_B});
        printf("T%d d0=%.9g d1=%.9g d2=%.9g d3=%.9g\\n", lane, {OF_D});""",
    "a line for each register": """
        for (int i = 0; i < 4; i++) printf("lane %d a[%d] = 0x%08x\\n", lane, i, a[i]);
        for (int i = 0; i < 2; i++) printf("lane %d b[%d] = 0x%08x\\n", lane, i, b[i]);
        for (int i = 0; i < 4; i++) printf("lane %d d[%d] = %a\\n", lane, i, d[i]);""",
    "integers": f"""
        printf("[%2d] a: %u %u %u %u\\n", lane, {OF_A});
        printf("[%2d] b: %u %u\\n", lane, {OF_B});
        printf("[%2d] d: %u %u %u %u\\n", lane, {BITS});""",
    "braces and capitals": f"""
        printf("tid=%d a={{%08X,%08X,%08X,%08X}} b={{%08X,%08X}} d={{%08X,%08X,%08X,%08X}}\\n", lane,
               {OF_A}, {OF_B}, {BITS});""",
}


def run(*arguments: object) -> Any:
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)


def printed(form: Any, print_: str, swapped: int, a: Any, b: Any, e: Any) -> None:
    """Write the log of a launch to log.txt."""
    changes = {"MMA": MMA[form.mnemonic], "PRINT": print_, "SWAPPED": swapped, "COUNT": form.registers["b"]}
    text = KERNEL
    for name, new in changes.items():
        text = text.replace(name, str(new))
    Path("p.cu").write_text(text)
    for name, array in (("a", a), ("b", b), ("e", e)):
        np.save(f"{name}.npy", array)
    arguments = ["--arg", "zeros:f32:128", *(f"--arg={name}.npy" for name in "abe")]
    done = run("launch", "p.cu", "--entry", "product", "--block", 32, *arguments)
    assert done.exception is None, done.exception
    Path("log.txt").write_text(done.output)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("style", STYLES)
def test_logs_of_a_kernel_go_into_diff(style: str) -> None:
    form, random = warpsim.decode(DENSE, target="sm_80"), np.random.default_rng(0)
    A, B = (random.standard_normal(shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    np.savez("AB.npz", A=A, B=B)
    np.save("A.npy", A)
    np.save("B.npy", B)
    a, b, none = warpsim.pack(form, "a", A), warpsim.pack(form, "b", B), np.zeros(32, np.uint32)
    for swapped in (0, 2):
        printed(form, STYLES[style], swapped, a, b, none)
        found = run("diff", DENSE, "log.txt", "A=A.npy", "B=B.npy", "--target", "sm_80")
        if swapped:
            assert "A: registers 1 and 2 exchanged" in found.output
            assert "B: the dump holds the matrix" in found.output
        else:
            assert "A: the dump holds the matrix, all 128 words" in found.output
            assert "D is as expected" in found.output


def test_logs_of_a_sparse_kernel_go_into_lint() -> None:
    form, random = warpsim.decode(SPARSE, target="sm_80"), np.random.default_rng(0)
    A = warpsim.prune(random.standard_normal((16, 32)).astype(np.float16), form)
    values, indices = warpsim.compress(A, form)
    np.save("A.npy", A)
    a, e = warpsim.pack(form, "a", values), warpsim.pack_metadata(form, indices)
    b = np.zeros((32, 4), np.uint32)
    style = f'printf("lane %d: a %08x %08x %08x %08x e %08x\\n", lane, {OF_A}, e);'
    printed(form, style, 0, a, b, e[:, 0])
    assert "found" in run("lint", SPARSE, "log.txt", "A=A.npy", "--target", "sm_80").output
    printed(form, style, 3, a, b, e[:, 0])
    found = run("lint", SPARSE, "log.txt", "A=A.npy", "--target", "sm_80")
    assert "logical A comes out if A: registers 1 and 3 exchanged is undone" in found.output
