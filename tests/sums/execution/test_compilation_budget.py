"""The first, small calls of a product: NumPy computes them, and bits are equal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import nasty
from tests.helpers.compilation import done_by_kernels, done_by_numpy
from warpsim.isa.instruction import Instruction
from warpsim.sums.arithmetic import numerics
from warpsim.sums.execution import pipeline
from warpsim.sums.execution.compilation_budget import CALL, COMPILED, LOADED, PROCESS, limit_here
from warpsim.sums.execution.pipeline import rule_for

ROOT = Path(__file__).parents[3]
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
MNEMONICS = (
    (SPARSE, "sm_90a"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_80"),
    ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_70"),
    ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_80"),
    ("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", "sm_90"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_90"),
    ("mma.sync.aligned.m16n8k64.row.col.satfinite.s32.s4.u4.s32", "sm_80"),
    ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "sm_80"),
)
FORMS = [warpsim.decode(mnemonic, target=target) for mnemonic, target in MNEMONICS]
Registers = dict[str, Any]


def registers(form: Instruction, *lead: int) -> Registers:
    """Random bits in every register, and legal metadata."""
    rng = np.random.default_rng(23)
    lanes, bits = form.lanes, form.register_bits
    words: Registers = {
        name: rng.integers(0, 1 << bits, (*lead, lanes, count), f"u{bits // 8}")
        for name, count in form.registers.items()
        if name in "abc"
    }
    if form.sparse:
        words["e"] = np.full((*lead, lanes, 1), 0x44444444, np.uint32)
    return words


@pytest.mark.parametrize("lead", [(), (3,), (2, 0), (2, 300)], ids=str)
@pytest.mark.parametrize("form", FORMS, ids=nasty.name)
def test_numpy_and_kernels_give_the_same_registers(form: Instruction, lead: tuple[int, ...]) -> None:
    """Among them batches that are computed in several parts, and empty ones."""
    words = registers(form, *lead)
    with done_by_kernels():
        expected = warpsim.execute(form, **words)
    with done_by_numpy():
        found = warpsim.execute(form, **words)
        assert bool(PROCESS.spent) == (not numerics.needs_compiler(rule_for(form)))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_wgmma_and_matmul_too() -> None:
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", target="sm_90a")
    rng = np.random.default_rng(29)
    A, B, C = (
        rng.integers(0, 1 << 16, form.matrix_shape(x)).astype(form.format(x).code_dtype) for x in "abc"
    )
    with done_by_kernels():
        expected = warpsim.matmul(form, A, B, C)
    with done_by_numpy():
        np.testing.assert_array_equal(warpsim.matmul(form, A, B, C).view("u4"), expected.view("u4"))
        assert list(PROCESS.spent) == [form.product]


@pytest.mark.parametrize("wrong", ["metadata", "selector", "register", "batch", "threads"])
def test_errors_are_those_of_kernels(wrong: str) -> None:
    form = FORMS[0]
    words: Registers = registers(form, 2)
    changes: dict[str, Callable[[], Registers]] = {
        "metadata": lambda: {"e": words["e"] & 0xFFFFFF0F},
        "selector": lambda: {"selector": 2},
        "register": lambda: {"a": words["a"][..., :3]},
        "batch": lambda: {"b": np.zeros((3, 32, 4), np.uint32)},
        "threads": lambda: {"threads": 0},
    }
    messages = []
    for way in (done_by_kernels, done_by_numpy):
        with way(), pytest.raises(warpsim.WarpsimError) as caught:
            warpsim.execute(form, **words | changes[wrong]())
        messages.append((type(caught.value), str(caught.value)))
    assert messages[0] == messages[1]


@pytest.fixture
def kernels_called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Mnemonics of what kernels are asked for, from registers."""
    called: list[str] = []
    shortcut = pipeline._shortcut()

    def noted(form: Instruction, *rest: Any) -> Any:
        called.append(form.mnemonic)
        return shortcut.fused_call(form, *rest)

    def noted_plain(form: Instruction, *rest: Any) -> Any:
        d = shortcut.straight(form, *rest)
        called.extend([form.mnemonic] * (d is not None))
        return d

    noting = SimpleNamespace(fused_call=noted, straight=noted_plain, run=shortcut.run)
    monkeypatch.setattr(pipeline, "_shortcut", lambda: noting)
    return called


def test_kernels_take_over_after_the_first_work(kernels_called: list[str]) -> None:
    """A call counts for more than its products, mnemonics count apart, and there is no way back."""
    dense, sparse = FORMS[1], FORMS[0]
    words = registers(dense)
    products = dense.product.multiplications
    with done_by_numpy(3 * (products + CALL)):
        for _ in range(3):
            warpsim.execute(dense, **words)
        assert not kernels_called
        for _ in range(2):
            warpsim.execute(dense, **words)
        warpsim.execute(sparse, **registers(sparse))
        assert kernels_called == [dense.mnemonic] * 2
        assert PROCESS.compiled == {dense.product}


def test_a_large_batch_is_for_kernels_from_the_start(kernels_called: list[str]) -> None:
    form = FORMS[0]
    with done_by_numpy(4 * form.product.multiplications):
        warpsim.execute(form, **registers(form, 4))
    assert kernels_called == [form.mnemonic]


SMALL = """
import sys
import numpy as np
import warpsim
form = warpsim.decode("{mnemonic}", target="sm_90a")
words = {{x: np.full((32, n), 0x44444444, np.uint32) for x, n in form.registers.items() if x != "d"}}
for _ in range(5):
    warpsim.execute(form, **words)
warpsim.gemm(form, np.zeros(({size}, {size}), np.float16), np.zeros(({size}, {size}), np.float16))
sys.exit("numba" in sys.modules)
"""


@pytest.mark.parametrize(("size", "before"), [(64, True), (384, False)])
def test_a_process_that_executes_little_does_not_load_numba(tmp_path: Path, size: int, before: bool) -> None:
    """What is little depends on whether kernels were compiled before."""
    (tmp_path / "kernels_1").mkdir()
    (tmp_path / "kernels_1" / ("batches.checked.nbi" if before else "unfinished.tmp")).write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", SMALL.format(mnemonic=SPARSE, size=size)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr.decode()


def test_more_is_computed_without_kernels_where_they_have_to_be_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert limit_here() == COMPILED
    (tmp_path / "kernels_1").mkdir()
    (tmp_path / "kernels_1" / "batches.checked.nbi").write_bytes(b"")
    assert limit_here() == LOADED
