"""Compiled sums have no instruction that LLVM selects wrongly, and the search for it sees one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tools.kernel_folds import chosen_bits, searched
from warpsim.machine.native import objects
from warpsim.machine.native.objects import available

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM of version 20 or newer here")

_CHOICE = """
define <16 x i32> @chosen(<16 x i32> %x, ptr %p, <16 x i1> %c) {
  %y = load <16 x i32>, ptr %p, align 4
  %a = and <16 x i32> %x, splat (i32 2147483647)
  %b = and <16 x i32> %y, splat (i32 -2147483648)
  %both = or <16 x i32> %a, %b
  %found = select <16 x i1> %c, <16 x i32> %both, <16 x i32> %x
  ret <16 x i32> %found
}"""
_CHANGES = {
    "a choice": ("", "", True),
    "between others": ("<16 x i32> %x\n", "<16 x i32> %c0\n", False),
    "between y": ("<16 x i32> %x\n", "<16 x i32> %y\n", True),
    "of a union": ("%b = and <16 x i32> %y, splat", "%b = shl <16 x i32> %y, splat", False),
    "of masks that are no constants": ("%y, splat (i32 -2147483648)", "%y, %x", False),
    "of a sum": ("%both = or", "%both = add", False),
    "of signs": (
        "= or <16 x i32> %a, %b",
        "= call <16 x float> @llvm.copysign.v16f32(<16 x float> %x, <16 x float> %y)",
        True,
    ),
    "of signs of a constant": (
        "= or <16 x i32> %a, %b",
        "= call <16 x float> @llvm.copysign.v16f32(<16 x float> splat (float 1.0), <16 x float> %x)",
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "seen"), _CHANGES.values(), ids=_CHANGES)
def test_choices_of_bits(before: str, after: str, seen: bool) -> None:
    text = _CHOICE.replace(before, after) if before else _CHOICE
    assert (text == _CHOICE) == (not before)
    assert bool([*chosen_bits(text)]) == seen


def test_search_sees_a_wrong_kernel(tmp_path: Path) -> None:
    compiler = objects._compiler()
    assert compiler is not None
    if compiler.narrow is None:
        pytest.skip("the fold is one of AVX-512")
    code = compiler.llvm.parse_assembly(_CHOICE).as_bitcode()
    for name, machine in (("wide", compiler.machine), ("narrow", compiler.narrow)):
        parts = compiler._emit_object(_CHOICE, machine), code
        (tmp_path / f"{name}.nbc").write_bytes(pickle.dumps((("library", "object", parts),)))
    counts, found = searched(tmp_path)
    assert counts["kernels"] == counts["choices of lanes"] == 2
    kinds = [(line.partition(":")[0], " = select " in line) for line in found]
    assert kinds == [("narrow.nbc", True), ("wide.nbc", False), ("wide.nbc", True)]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_sum_has_none(tmp_path: Path) -> None:
    """All of them: python -m tools.kernel_folds."""
    code = (
        "import warpsim; from warpsim.sums.products.warming import PROCESS, _jobs; "
        "PROCESS.compiled.update(form.product for form in warpsim.instructions('sm_80')); "
        "next(job for _, job in _jobs('sm_80') if job.func.__name__ == '_panel')()"
    )
    root = Path(__file__).parents[2]
    given = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(root)}
    subprocess.run([sys.executable, "-c", code], env=given, check=True)
    counts, found = searched(tmp_path)
    assert not found
    assert min(counts["kernels"], counts["choices of lanes"]) > 0
