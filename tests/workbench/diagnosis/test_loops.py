"""Loops along k: every mistake is computed by the test itself and must be named, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from warpsim import OperandError
from warpsim.workbench.diagnosis import diagnose_product
from warpsim.workbench.inputs.decimals import Printed

F16 = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
S8 = warpsim.decode("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", target="sm_80")
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((32, 64)).astype(np.float16), RNG.standard_normal((64, 16)).astype(np.float16)
C = RNG.standard_normal((32, 16)).astype(np.float32)


def names(found: Any) -> list[str]:
    return [name for one in found.matches for name in (one.name, *one.also)]


def test_a_product_as_expected() -> None:
    found = diagnose_product(F16, A, B, warpsim.gemm(F16, A, B, C), C)
    assert found.as_expected
    assert (found.steps, found.total, found.matches) == (4, 512, ())


def test_a_step_is_left_out_of_one_product_and_its_tiles_are_counted() -> None:
    keep = np.r_[0:32, 48:64]
    found = diagnose_product(F16, A, B, warpsim.gemm(F16, A[:, keep], B[keep], C), C)
    assert names(found)[0] == "step 2 left out (missing)"
    assert found.where == "4 of 4 tiles of 16 x 8"


def test_ragged_products_are_filled_up() -> None:
    short, thin = A[:30, :60], B[:60, :13]
    found = diagnose_product(
        F16, short, thin, warpsim.gemm(F16, A[:30, :48], B[:48, :13], C[:30, :13]), C[:30, :13]
    )
    assert "the tail left out: k from 48 on, step 3" in names(found)


def test_tiles_of_d_that_are_exchanged_are_named() -> None:
    d = warpsim.gemm(F16, A, B, C)
    d[:16] = d[16:]
    found = diagnose_product(F16, A, B, d, C)
    assert found.where.startswith(
        "2 of 4 tiles of 16 x 8; tile (0, 0) holds what belongs in tile (1, 0); "
        "tile (0, 1) holds what belongs in tile (1, 1)"
    )


def test_rows_of_a_from_another_tile_are_told_from_d_without_c() -> None:
    found = diagnose_product(F16, A, B, warpsim.gemm(F16, np.roll(A, 16, axis=0), B, C), C)
    assert names(found) == ["every tile reads A of the other (of every two) tile"]


def test_integers_and_c_left_out() -> None:
    a = RNG.integers(-9, 9, (16, 96), np.int8)
    b = RNG.integers(-9, 9, (96, 8), np.int8)
    found = diagnose_product(S8, a, b, warpsim.gemm(S8, a, np.roll(b, -32, axis=0)))
    assert "every step reads B of the next step, around the end" in names(found)


def test_order_of_sums() -> None:
    found = diagnose_product(F16, A, B, warpsim.gemm(F16, A, B, C, promote_every=1), C)
    assert names(found) == ["promote_every=1"]


def test_printed_digits_are_all_that_must_be_met() -> None:
    d = np.round(warpsim.gemm(F16, A[:, 16:], B[16:], C).astype(np.float64), 3).astype(np.float32)
    assert not diagnose_product(F16, A, B, d, C).matches
    found = diagnose_product(F16, A, B, d, C, printed=Printed(decimals=3, digits=6))
    assert names(found)[0] == "step 0 left out (missing)"


def test_refusals() -> None:
    with pytest.raises(OperandError, match=r"D has shape \(16, 8\), but A and B make \(32, 16\)"):
        diagnose_product(F16, A, B, np.zeros((16, 8), np.float32))
    quads = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
    with pytest.raises(OperandError, match=r"products are searched for forms whose D"):
        diagnose_product(quads, A, B, C, target="sm_70")


# --- f16 accumulators: roundings that no step shows alone ------------------------------------------------


def _halved_sums(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (16, 128), B (128, 8) and C of one sort of data."""
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal(shape) for shape in ((16, 128), (128, 8), (16, 8)))
    if kind == "positive":
        a, b, c = np.abs(a), np.abs(b), 0 * c
    elif kind == "fractions":
        a, b, c = np.round(32 * a) / 32, np.round(32 * b) / 32, 0 * c
    elif kind == "large integers":
        a, b, c = np.round(32 * a), np.round(32 * b), 0 * c
    elif kind == "large C":
        c = 300 * c
    elif kind == "cancelling":
        a, b, c = np.hstack([a[:, :64], -a[:, :64]]), np.vstack([b[:64], b[:64]]), c / 100
    return a.astype(np.float16), b.astype(np.float16), c.astype(np.float16)


@pytest.mark.parametrize(
    "kind", sample(["normal", "positive", "fractions", "large integers", "large C", "cancelling"], 2)
)
def test_f16_accumulators_in_every_step_are_named(kind: str) -> None:
    a, b, c = _halved_sums(kind)
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    half = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", target="sm_80")
    d = c
    for at in range(0, 128, 16):
        d = warpsim.gemm(half, a[:, at : at + 16], b[at : at + 16], d)
    found = diagnose_product(form, a, b, d.astype(np.float32), c.astype(np.float32))
    assert [cause.name for cause in found.matches] == [
        "in every step (all steps): accumulator type f16.f16 instead of f32.f32"
    ]
