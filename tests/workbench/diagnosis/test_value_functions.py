"""Functions of values, in operands and in D, are named; noise, lines and garbage are not functions."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from tools.mistakes.case import F16
from tools.mistakes.engineers import cuda_beginner, held_back, numerics_person, triton_user
from tools.mistakes.judging import Case, answered
from warpsim.workbench.diagnosis import diagnose_product
from warpsim.workbench.diagnosis.search.remarks import is_function, named_function

FORM = warpsim.decode(F16[0], target=F16[1])
X = np.random.default_rng(1).standard_normal((32, 16)) * 5
PARTS = ("D is B A", "through int", "GELU", "squared", "subnormal", "stride_bk")
NAMED = [
    case
    for listed in (cuda_beginner, held_back, numerics_person, triton_user)
    for case in listed.LIST
    if any(
        part in case.name for part in ("D is B A", "through int", "GELU", "squared", "subnormal", "stride_bk")
    )
]


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.name)
def test_a_function_or_an_order_is_named(case: Case) -> None:
    assert len(NAMED) == 6
    found, _, text = answered(case)
    assert found == "named", text


def test_a_function_is_seen_whatever_it_is() -> None:
    assert is_function(X, np.sin(X / 4) * X)
    assert is_function(X * 2, np.trunc(X * 2))
    assert named_function(X, np.exp(np.maximum(X, 0)), None) == (
        "with negative values set to zero (ReLU), then through exp"
    )
    assert not named_function(X, np.sin(X / 4) * X, None)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.01, 1.0, 100.0])
def test_lines_noise_and_garbage_are_no_functions(noise: float) -> None:
    rng = np.random.default_rng(2)
    assert not is_function(X, 3 * X + 1 + noise * rng.standard_normal(X.shape))
    assert not is_function(X, rng.permutation(X.reshape(-1)).reshape(X.shape))
    assert not is_function(X, np.where(X.max() == X, np.nan, X))
    assert not is_function(X[:1], X[:1] ** 2)  # too few elements


def test_an_unknown_function_is_described_by_pairs() -> None:
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((32, 32)).astype(np.float16), rng.standard_normal((32, 16)).astype(np.float16)
    D = warpsim.gemm(FORM, A, B, np.zeros((32, 16), np.float32))
    found = diagnose_product(FORM, A, B, (np.sin(D) * D).astype(np.float32))
    assert any("is a function of each expected value" in str(each) for each in found.remarks), found.remarks
    assert "became" in str(found.remarks)
