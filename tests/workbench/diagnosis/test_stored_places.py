"""Elements of D that are stored elsewhere: named by where chosen values arrive, not by the product alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tools.launch_mistakes.kernels import KERNELS, compiled
from warpsim.programs.launch.launching import load_text

SOURCE = (Path(__file__).parents[3] / "traces" / "kernels" / "dense_tiles.ptx").read_text()
ROW = "or.b32  	%r128, %r125, %r127;"
COLUMN = "and.b32  	%r130, %r129, 6;"
TILE = "shl.b32 	%r131, %r4, 5;"
STORE = "st.global.f32 	[%rd59], %f144;"
IN_TILE = "D is not stored in the order of its own"
OF_TILES = "a tile is of other rows or columns"


def found(*edits: tuple[str, str]) -> Any:
    random = np.random.default_rng(0)
    A, B = (random.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    text = SOURCE
    for before, after in edits:
        text = text.replace(before, after, 1)
    args = [A, B, np.zeros((64, 64), np.float32), 64, 64]
    right = A.astype(np.float64) @ B.astype(np.float64)
    return warpsim.why(load_text(text, "k.ptx")["dense_f16"], (2, 2), 64, args, {2: right}, 1e-3)


@pytest.mark.parametrize(
    ("edit", "product", "what"),
    [
        ((ROW, f"{ROW} xor.b32 %r128, %r128, 3;"), "row r xor 3 of A and column c of B", IN_TILE),
        ((COLUMN, f"{COLUMN} xor.b32 %r130, %r130, 4;"), "row r of A and column c xor 4 of B", IN_TILE),
        ((TILE, f"{TILE} xor.b32 %r131, %r131, 32;"), "row r of A and column c xor 32 of B", OF_TILES),
        ((STORE, STORE.replace("%f144", "%f143")), "at [0, 0] row 0 of A and column 1 of B", IN_TILE),
    ],
)
def test_the_place_is_named_at_the_store(edit: tuple[str, str], product: str, what: str) -> None:
    verdict = found(edit)
    assert verdict.kind == "store"
    assert f"is the product of {product}" in verdict.cause.replace("another row and column: ", "")
    assert what in verdict.cause
    assert verdict.location is not None
    assert verdict.location.quoted().startswith("st.global.f32")
    assert verdict.operand == ""


def test_what_chosen_values_do_not_explain_is_not_claimed() -> None:
    verdict = found(
        (COLUMN, f"{COLUMN} xor.b32 %r130, %r130, 4;"), (STORE, STORE.replace("%f144", "0f3F800000"))
    )
    assert "store" not in [cause.kind for cause in verdict.causes]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_rows_of_a_in_an_order_that_d_has_not() -> None:
    """Any order of rows is right in itself: D shows that it is not stored so."""
    prepared = KERNELS["loop_f16"]()
    kernel = load_text(compiled("loop_f16", 9), "loop_f16.ptx")["loop_f16"]
    rest = prepared.arguments, prepared.expected, prepared.tolerance
    verdict = warpsim.why(kernel, prepared.grid, prepared.block, *rest)
    assert verdict.operand == "a"
    assert "are permuted within the tile: places g and g + 8 hold 2g and 2g + 1" in verdict.cause
    assert verdict.location is not None
    assert verdict.location.quoted().startswith("ldmatrix")
