"""Kernels compute their references, by algebra; planted mistakes are other formulas."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.compiled_cases import CASES, heading
from tests.helpers.families import sample, usual
from tests.helpers.formula_kernels import FOLDER, FORMULAS
from tests.helpers.formulas import repeatable
from tests.helpers.kernel_cases import FOLDER as KERNELS
from tests.helpers.kernel_cases import NAMES, case
from tests.helpers.kernel_references import REFERENCES
from tools.generate_kernels import missing
from warpsim.isa.layouts.zero_columns import zero_columns
from warpsim.observe.algebra.builtin_references import BUILT_IN
from warpsim.observe.algebra.provenance import Provenance
from warpsim.programs.launch.reference_runs import Run, equivalence_of

_OTHER_SORTS = (" codes", " integers", "_bf16 normal")  # of operands, which make no other formulas
_LONG = ("benchmark", "of 40 CTAs", "stream_k", "sparse_product", "sparse_s4")
_CASES = [
    name for name in NAMES if not name.endswith(_OTHER_SORTS) and not any(long in name for long in _LONG)
]


def run_of(name: str, seed: int = 1, reference: Callable[..., Any] | None = None, **options: Any) -> Run:
    """Compare a launch of tests/helpers/kernel_cases.py with its reference."""
    found = case(name)
    kernel = warpsim.load(str(KERNELS / found.file))[found.entry]
    arguments = list(found.passed([np.copy(x) if isinstance(x, np.ndarray) else x for x in found.arguments]))
    sizes = {"grid": found.grid, "block": found.block, "shared_bytes": found.shared_bytes}
    launch = repeatable(kernel, arguments, {**sizes, "cluster": found.cluster})
    return equivalence_of(launch, reference or REFERENCES[found.entry], seed=seed, **options)


@pytest.mark.parametrize("name", sample((name for name in _CASES if name.split()[0] in REFERENCES), 3))
def test_kernels_compute_their_references(name: str) -> None:
    found = run_of(name).equivalence
    assert (found.answer, found.close, dict(found.uninterpreted)) == ("equal", True, {}), str(found)


def test_zero_columns_of_b_make_zero_columns_of_d() -> None:
    found, mask = case("tensor_stationary_f16"), 0x03_03_81_00000000
    text = (KERNELS / found.file).read_text()
    masked = rf"{{ .reg .b64 zeros; mov.b64 zeros, {mask}; \1, zeros; }}"
    kernel = warpsim.load(re.sub(r"(tcgen05\.mma\.ws[^;]*);", masked, text))[found.entry]
    arguments = list(found.passed([np.copy(x) if isinstance(x, np.ndarray) else x for x in found.arguments]))
    launch = repeatable(
        kernel, arguments, {"grid": found.grid, "block": found.block, "shared_bytes": found.shared_bytes}
    )
    zeros = np.tile(zero_columns(mask, 64, parts=4), 2)  # M is 32, and two instructions have N of 64
    assert 0 < zeros.sum() < zeros.size

    def reference(a: Any, b: Any, d: Any, *more: Any) -> Any:
        return np.where(zeros, 0.0, REFERENCES[found.entry](a, b, d, *more))

    assert equivalence_of(launch, reference).equivalence.answer == "equal"
    assert equivalence_of(launch, REFERENCES[found.entry]).equivalence.answer == "other"


@pytest.mark.parametrize(
    "name", ["dense_f16 normal", "warpgroup_f16 normal", "tensor_tf32", "cooperative_e4m3"]
)
def test_other_references_are_other_formulas(name: str) -> None:
    def wrong(a: Any, b: Any, d: Any, *more: Any) -> Any:
        right = REFERENCES[case(name).entry](a, b, d, *more)
        return right + a[0, 0] * b[0, 0]

    found = run_of(name, reference=wrong).equivalence
    assert found.answer == "other"
    assert found.outputs[0].other.all()


@pytest.mark.parametrize("seed", range(1, usual(2, 4)))
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_equal(name: str, seed: int) -> None:
    formula = FORMULAS[name]
    kernel = warpsim.load(str(FOLDER / "formulas.ptx"))[name]
    arguments = formula.arguments(np.random.default_rng(seed))
    found = equivalence_of(
        repeatable(kernel, arguments, formula.sizes), formula.reference, seed=seed
    ).equivalence
    assert (found.answer, found.close, dict(found.uninterpreted)) == ("equal", True, {}), str(found)
    assert found.seeds == (2 if name == "causal_rows" else 1)


@pytest.mark.parametrize(
    ("name", "mistake"), sample(((name, n) for name, each in FORMULAS.items() for n in each.mistakes), 3)
)
def test_planted_mistakes_are_other_formulas(name: str, mistake: int, tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    formula, text = FORMULAS[name], tmp_path / "wrong.ptx"
    command = ["nvcc", "-ptx", "-O3", "-arch=compute_80", f"-DMISTAKE={mistake}", str(FOLDER / "formulas.cu")]
    subprocess.run([*command, "-o", str(text)], check=True)
    arguments = formula.arguments(np.random.default_rng(mistake))
    launch = repeatable(warpsim.load(str(text))[name], arguments, formula.sizes)
    found = equivalence_of(launch, formula.reference).equivalence
    assert found.answer == "other", str(found)


TRITON: dict[str, Callable[..., Any]] = {
    "matmul": lambda a, b, c, *more: a @ b,
    "softmax": lambda x, y, *more: REFERENCES["softmax"](x, y),
    "queue": lambda values, total, lock, count, *more: {1: values.sum(0)},
    "clusters": lambda values, sums, width, *more: values.sum(1),
    "roles": lambda a, b, c, *more: a @ b.T,
}


@pytest.mark.parametrize("name", TRITON)
def test_kernels_of_triton_compute_their_references(name: str) -> None:
    found = CASES[name]()
    _, threads, shared = heading(found.text)
    kernel = warpsim.load(str(found.source.with_suffix(".ptx")))[found.entry]
    arguments = [*found.arguments, *[None] * (len(kernel.parameters) - len(found.arguments))]
    if found.scratch:
        arguments[len(found.arguments)] = np.zeros(2 * found.scratch * int(np.prod(found.grid)), np.uint8)
    sizes = {"grid": np.prod(found.grid) * found.ctas if found.ctas > 1 else found.grid, "block": threads}
    cluster = {"cluster": found.ctas} if found.ctas > 1 else {}
    launch = repeatable(kernel, arguments, {**sizes, **cluster, "shared_bytes": shared})
    answer = equivalence_of(launch, TRITON[name]).equivalence
    assert (answer.answer, answer.close, dict(answer.uninterpreted)) == ("equal", True, {}), str(answer)


def test_built_in_references() -> None:
    assert run_of("bias_gelu normal", reference=BUILT_IN["gemm_bias_gelu"]).equivalence.answer == "equal"
    assert run_of("bias_relu normal", reference=BUILT_IN["gemm_bias_relu"]).equivalence.answer == "equal"
    assert run_of("bias_relu normal", reference=BUILT_IN["gemm_bias"]).equivalence.answer == "other"
    assert run_of("softmax", reference=BUILT_IN["softmax"]).equivalence.answer == "equal"
    arguments = FORMULAS["causal_rows"].arguments(np.random.default_rng(1))
    kernel = warpsim.load(str(FOLDER / "formulas.ptx"))["causal_rows"]
    launch = repeatable(kernel, arguments, FORMULAS["causal_rows"].sizes)
    assert equivalence_of(launch, "causal_attention").equivalence.answer == "equal"
    assert equivalence_of(launch, "attention").equivalence.answer == "other"


def test_provenance_has_the_statement_of_every_output() -> None:
    run = run_of("dense_f16 normal", provenance=Provenance())
    provenance, output = run.algebra.provenance, run.equivalence.outputs[0]
    assert provenance is not None
    origin = provenance.origin(int(output.kernel[3, 5]))
    assert origin is not None
    assert run.algebra.code[origin.step.pc].statement.opcode == "mma"
    stored = {each.pc for each in provenance.stores}
    assert {run.algebra.code[pc].statement.opcode for pc in stored} == {"st"}
    assert set(np.unique(output.writers)) <= stored
    loads = {run.algebra.code[each.pc].statement.opcode for each in provenance.copies if each.kind == "read"}
    assert "ldmatrix" in loads


def test_gauge_sets_maxima_to_zero() -> None:
    run = run_of("softmax", gauge=True)
    assert run.equivalence.answer == "equal"
    maxima = [each.result.keys for each in run.trace.operations if each.name == "max"]
    assert maxima
    assert not np.concatenate([keys.reshape(-1) for keys in maxima]).any()
