"""The factor of the product and what is added to it: measured, compared with what is expected, and named."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tools.launch_mistakes.kernels import KERNELS, compiled
from warpsim.programs.launch.launching import load_text

SOURCE = (Path(__file__).parents[3] / "traces" / "kernels" / "dense_tiles.ptx").read_text()
HALF = "0f3F000000"


@cache
def matrices() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    left, right = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    return left, right


def product() -> np.ndarray:
    A, B = matrices()
    return A.astype(np.float64) @ B.astype(np.float64)


def found(expected: np.ndarray, *, halved: bool = False, sizes: tuple[Any, ...] = (64, 64)) -> Any:
    text = SOURCE
    if halved:
        text = re.sub(
            r"(st\.global\.f32[^,;]*, (%f\d+);)",
            rf"mul.f32 \2, \2, {HALF}; \1",
            text[: text.index("dense_bf16")],
        )
        text = text[: text.rindex("}") + 1]
    A, B = matrices()
    args = [A, B, np.zeros((64, 64), np.float32), *sizes]
    return warpsim.why(load_text(text, "k.ptx")["dense_f16"], (2, 2), 64, args, {2: expected}, 1e-3)


def test_a_factor_that_is_too_much() -> None:
    verdict = found(product(), halved=True)
    assert verdict.kind == "factor"
    assert verdict.cause == "dense_f16_param_2: the product is multiplied with 0.5, not with 1"
    assert verdict.location.quoted().startswith("st.global.f32")


def test_a_scalar_argument_that_is_left_out_and_its_equals() -> None:
    """Both sizes are 64: which of them the factor is cannot be known."""
    verdict = found(64 * product())
    assert verdict.cause.endswith(
        "the product is multiplied with 1, not with 64 (dense_f16_param_3 or dense_f16_param_4): "
        "the factor dense_f16_param_3 or dense_f16_param_4 is left out"
    )


def test_an_array_that_is_not_added_and_a_factor_with_it() -> None:
    verdict = found(product() + 3.0 * matrices()[1].astype(np.float64), halved=True)
    assert [cause.kind for cause in verdict.causes] == ["factor", "addend"]
    assert (
        verdict.causes[1].message
        == "dense_f16_param_2: 3 times dense_f16_param_1 is not added to the product"
    )


def test_what_factor_and_addend_do_not_explain_is_not_claimed() -> None:
    expected = product() + matrices()[1]
    expected[5, 7] += 1
    assert {cause.kind for cause in found(expected).causes}.isdisjoint({"factor", "addend"})


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_elements_added_at_other_places_are_located_by_value() -> None:
    prepared = KERNELS["staged"]()
    kernel = load_text(compiled("staged", 15), "staged.ptx")["staged"]
    rest = prepared.arguments, prepared.expected, prepared.tolerance
    verdict = warpsim.why(kernel, prepared.grid, prepared.block, *rest)
    assert verdict.cause == (
        "staged_param_3: what is added to the product is not staged_param_2 (columns c with c mod 2 in {1}): "
        "the addend[r, c] holds what belongs to [r, c - 1]"
    )
