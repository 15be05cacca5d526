"""A or B taken for another matrix as a whole: every mistake is made in memory, and must be named exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.workbench.diagnosis import diagnose_product

F16 = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
M, N, K = 32, 16, 128
RNG = np.random.default_rng(11)
A, B = RNG.standard_normal((M, K)).astype(np.float16), RNG.standard_normal((K, N)).astype(np.float16)
C = RNG.standard_normal((M, N)).astype(np.float32)
WEIGHTS = np.clip(np.round(3 * B), -8, 7).astype(np.float16)  # of four bits


def _without_low_bytes(matrix: Any) -> Any:
    """Each f32 without its two lower bytes."""
    content = np.frombuffer(matrix.astype("<f4").tobytes(), np.uint8).copy()
    content[0::4] = content[1::4] = 0
    return content.view("<f4").reshape(matrix.shape).astype(np.float16)


def _nibbles(matrix: Any) -> Any:
    """Words of eight columns, element i in the nibble where AWQ puts it, read from the lowest nibble up."""
    found = np.empty_like(matrix)
    for nibble, element in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
        found[:, nibble::8] = matrix[:, element::8]
    return found


def _unswizzled(matrix: Any) -> Any:
    """Rows of 128 bytes, written with the swizzle of 128 bytes and read by plain addresses."""
    stored = np.zeros(matrix.size, matrix.dtype)
    for row, column in np.ndindex(matrix.shape):
        tile, inside = divmod(column, 64)
        byte = row * 128 + 2 * inside
        byte ^= (byte >> 7 & 7) << 4
        stored[tile * len(matrix) * 64 + byte // 2] = matrix[row, column]
    return np.concatenate(list(stored.reshape(-1, len(matrix), 64)), axis=1)


def _transmuted(matrix: Any) -> Any:
    """The same memory with the axes exchanged."""
    return np.frombuffer(matrix.tobytes(), matrix.dtype).reshape(matrix.shape[::-1]).T


Made = Callable[[], tuple[Any, Any]]  # A and B as the kernel has them


@pytest.mark.parametrize(
    ("made", "operand", "facts"),
    [
        (lambda: (_without_low_bytes(A), _without_low_bytes(B)), "A and B", {"values": "cut", "to": "bf16"}),
        (lambda: (A, _without_low_bytes(B)), "B", {"values": "cut", "to": "bf16"}),
        (lambda: (A, _nibbles(B)), "B", {"values": "own"}),
        (lambda: (_unswizzled(A), B), "A", {"map": "swizzled", "width": 3}),
        (lambda: (_transmuted(A), B), "A", {"values": "own"}),
        (lambda: (A, _transmuted(B)), "B", {"values": "own"}),
    ],
)
def test_a_matrix_taken_for_another_is_named(made: Made, operand: str, facts: dict[str, Any]) -> None:
    d = warpsim.gemm(F16, *made(), C)
    (found,) = diagnose_product(F16, A, B, d, C).matches
    assert found.facts["operand"] == operand
    assert {name: found.facts[name] for name in facts} == facts


def test_an_offset_of_every_element_is_solved() -> None:
    d = warpsim.gemm(F16, A, (WEIGHTS.astype(np.float32) + 0x408).astype(np.float16), C)
    (found,) = diagnose_product(F16, A, WEIGHTS, d, C).matches
    assert found.facts == {"operand": "B", "values": "offset", "by": 1032}


def test_sparse_and_scaled_forms_have_none() -> None:
    sparse = warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_80")
    pruned = warpsim.prune(A, sparse)
    d = warpsim.gemm(sparse, pruned, B, C)
    d[0, 0] += 1
    assert diagnose_product(sparse, pruned, B, d, C).matches == ()
