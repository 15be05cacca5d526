"""Formulas of expected values: what is found by value, and that it is a reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsim.observe.algebra.leaves import Argument
from warpsim.workbench.diagnosis.formulas import formula_terms as functions
from warpsim.workbench.diagnosis.formulas.found_formulas import FoundFormula, found_formula

RANDOM = np.random.default_rng(5)


def numbers(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


A, B, BT = numbers(24, 32), numbers(32, 16), numbers(16, 32)
C, ROW, COLUMN = numbers(24, 16, dtype=np.float32), numbers(24), numbers(16)
Q, K, V = numbers(24, 8), numbers(40, 8), numbers(40, 16)
S8, T8 = (RANDOM.integers(-128, 128, shape).astype(np.int8) for shape in ((24, 32), (32, 16)))
CODES = RANDOM.integers(0, 96, (24, 32)).astype(np.uint8)
BF16 = numbers(24, 32, dtype=ml_dtypes.bfloat16)
PACKED = RANDOM.integers(0, 256, (16, 16)).astype(np.uint8)
SCALE, ZERO = numbers(16, 4, dtype=np.float16), RANDOM.integers(0, 16, (16, 4)).astype(np.uint8)
POWERS = RANDOM.integers(120, 130, (24, 2)).astype(np.uint8)


def f64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def formula(expected: np.ndarray, *args: Any, tolerance: float = 0.0) -> FoundFormula | None:
    given = [*args, np.zeros_like(expected)]
    arguments = [Argument(index, f"x{index}", np.asarray(each)) for index, each in enumerate(given)]
    return found_formula(arguments, len(args), expected, tolerance)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(1, keepdims=True))
    found: np.ndarray = powers / powers.sum(1, keepdims=True)
    return found


def nibbles(x: np.ndarray) -> np.ndarray:
    return f64(np.stack([x & 15, x >> 4], -1).reshape(len(x), -1))


def float32(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


PRODUCT = f64(A) @ f64(B)
FOUND: list[tuple[np.ndarray, tuple[Any, ...], str]] = [
    (float32(PRODUCT), (A, B), "x0 @ x1"),
    (float32(PRODUCT), (B, A), "x1 @ x0"),
    (float32(f64(A) @ f64(BT).T), (A, BT), "x0 @ x1.T"),
    (float32(PRODUCT.T), (A, B), "(x0 @ x1).T"),
    (float32(2.5 * PRODUCT), (A, B, 2.5), "product = x0 @ x1; x2 * product"),
    (float32(0.375 * PRODUCT), (A, B), "product = x0 @ x1; 0.375 * product"),
    (float32(2.5 * PRODUCT - 0.5 * C), (A, B, C, 2.5, -0.5), "product = x0 @ x1; x3 * product + x4 * x2"),
    (float32(PRODUCT + f64(COLUMN)), (A, B, COLUMN), "product = x0 @ x1; product + x2"),
    (float32(PRODUCT + f64(ROW)[:, None]), (A, B, ROW), "product = x0 @ x1; product + x2[:, None]"),
    (
        float32(np.maximum(PRODUCT + f64(COLUMN), 0)),
        (A, B, COLUMN),
        "product = x0 @ x1; x = product + x2; relu(x)",
    ),
    (float32(functions.gelu(PRODUCT)), (A, B), "x = x0 @ x1; gelu(x)"),
    (float32(functions.silu(0.5 * PRODUCT)), (A, B, 0.5), "product = x0 @ x1; x = x2 * product; silu(x)"),
    (float32(np.tanh(0.125 * PRODUCT)), (A, B), "product = x0 @ x1; x = 0.125 * product; np.tanh(x)"),
    (PRODUCT.astype(np.float16), (A, B), "x0 @ x1"),
    (S8.astype(np.int32) @ T8.astype(np.int32), (S8, T8), "x0 @ x1"),
    (
        float32(f64(S8) @ f64(T8) * f64(ROW)[:, None] * f64(COLUMN)),
        (S8, T8, ROW, COLUMN),
        "(x0 @ x1) * x2[:, None] * x3",
    ),
    (
        float32(f64(CODES.view(ml_dtypes.float8_e4m3fn)) @ f64(B)),
        (CODES, B),
        "x0 @ x1 (x0 as e4m3)",
    ),
    (float32(f64(BF16) @ f64(B)), (BF16.view(np.uint16), B), "x0 @ x1 (x0 as bf16)"),
    (
        float32((f64(A) * np.repeat(2.0 ** (f64(POWERS) - 127), 16, 1)) @ f64(B)),
        (A, B, POWERS),
        "(x0 * blocks(x2, 1, 16)) @ x1 (x2 as ue8m0)",
    ),
    (
        float32(f64(A) @ ((nibbles(PACKED) - np.repeat(f64(ZERO), 8, 1)) * np.repeat(f64(SCALE), 8, 1)).T),
        (A, PACKED, SCALE, ZERO),
        "x0 @ ((nibbles(x1, 2, -1, False) - blocks(x3, 1, 8)) * blocks(x2, 1, 8)).T",
    ),
    (
        float32(f64(A) @ ((nibbles(PACKED) - 8) * np.repeat(f64(SCALE), 8, 1)).T),
        (A, PACKED, SCALE),
        "x0 @ ((nibbles(x1, 2, -1, False) - 8) * blocks(x2, 1, 8)).T",
    ),
    (
        float32(softmax(f64(Q) @ f64(K).T / np.sqrt(8)) @ f64(V)),
        (Q, K, V),
        "scores = x0 @ x1.T; scaled = scores * 0.353553391; weights = softmax(scaled); weights @ x2",
    ),
    (float32(3 * f64(C)), (C,), "3 * x0"),
    (float32(f64(C) * f64(COLUMN)), (C, COLUMN), "x0 * x1"),
    (float32(softmax(f64(C))), (C,), "softmax(x0)"),
]


@pytest.mark.parametrize(("expected", "args", "text"), FOUND, ids=[each[2] for each in FOUND])
def test_a_formula_is_found(expected: np.ndarray, args: tuple[Any, ...], text: str) -> None:
    found = formula(expected, *args)
    assert found is not None
    assert str(found) == text
    near = np.allclose(found.values([*args, None]), expected, 2e-3, 2e-3 * np.abs(f64(expected)).max())
    assert near, text


def noise(expected: np.ndarray) -> np.ndarray:
    changed = expected.copy()
    changed[3, 5] += 1
    return changed


@pytest.mark.parametrize(
    "change", [noise, lambda x: x[::-1].copy(), lambda x: RANDOM.permutation(x), lambda x: np.zeros_like(x)]
)
def test_what_is_no_formula_is_none(change: Callable[[np.ndarray], np.ndarray]) -> None:
    assert formula(change(float32(PRODUCT)), A, B) is None


def test_a_tolerance_is_for_expected_values_of_less_precision() -> None:
    rough = PRODUCT.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert formula(rough, A, B) is None
    assert str(formula(rough, A, B, tolerance=1e-2)) == "x0 @ x1"


def test_the_nearest_of_two_is_taken() -> None:
    """Within a tolerance of 1e-2 gelu is silu of 1.7 x for most x."""
    found = formula(float32(functions.silu(PRODUCT)), A, B, tolerance=0.2)
    assert str(found) == "x = x0 @ x1; silu(x)"
