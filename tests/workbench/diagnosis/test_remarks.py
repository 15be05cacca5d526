"""Remarks on D: which permutation it is, what was done with it, what wrong rows and columns share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.workbench.diagnosis.dumps.wrong_elements import shared_causes
from warpsim.workbench.diagnosis.library.setting import Setting, SharedTiles
from warpsim.workbench.diagnosis.search.remarks import ResultComparison, permutations, remarks

RNG = np.random.default_rng(0)
X = RNG.standard_normal((16, 8))


def only(y: Any, x: Any = X) -> str:
    (found,) = permutations(x, y)
    return str(found)


def test_rows_columns_and_both() -> None:
    rows, columns = [5, 0, 1, 2, 3, 4, *range(6, 16)], [1, 0, 2, 3, 4, 5, 7, 6]
    of_rows = (
        "D's rows are permuted: row r holds what belongs in row "
        "(5, 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)[r]; 6 of 16 are elsewhere"
    )
    of_columns = (
        "D's columns are permuted: column j holds what belongs in column (1, 0, 2, 3, 4, 5, 7, 6)[j]; "
        "4 of 8 are elsewhere"
    )
    assert only(X[rows]) == of_rows
    assert only(X[:, columns]) == of_columns
    assert list(map(str, permutations(X, X[rows][:, columns]))) == [of_rows, of_columns]


def test_rows_that_share_values() -> None:
    x = X.copy()
    x[3, 2], x[9, 5] = x[0, 0], x[0, 0]
    assert "what belongs in row (15, 14, 13," in only(x[::-1], x)


def test_some_elements() -> None:
    y = X.copy()
    y[3, 4], y[5, 6] = X[5, 6], X[3, 4]
    assert only(y).startswith(
        "D is a permutation of the expected values, 2 of 128 of them elsewhere: D[3, 4] holds [5, 6]"
    )


def test_nothing_is_a_permutation_that_is_not() -> None:
    assert not list(permutations(X, X))
    assert not list(permutations(X, X + 0.5))
    assert not list(permutations(np.zeros((4, 4)), np.zeros((4, 4))))


def found_in_d(function: Any) -> tuple[str, ...]:
    return tuple(
        map(str, remarks(ResultComparison(expected=X, actual=function(X), c=RNG.standard_normal(X.shape))))
    )


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x / (1 + np.exp(-x)), "D is the expected result through SiLU (x times sigmoid)"),
        (np.tanh, "D is the expected result through tanh"),
        (np.abs, "D is the expected result with its absolute values"),
        (
            lambda x: x * np.arange(1, 17)[:, None],
            "D is off by a factor of its own in each row: a scale per row",
        ),
        (lambda x: x * np.arange(1, 9), "D is off by a factor of its own in each column: a scale per column"),
        (lambda x: x * (1 + 2.0**-22), "D is right but for roundings: 128 of 128 elements are off"),
    ],
)
def test_what_was_done_with_d(function: Any, text: str) -> None:
    assert found_in_d(function)[0].startswith(text)


# --- what is shared -------------------------------------------------------------------------------------


def shared(mnemonic: str, target: str, rows: Any = slice(None), columns: Any = slice(None)) -> list[str]:
    form = warpsim.decode(mnemonic, target=target)
    wrong = np.zeros((form.shape.m, form.shape.n), bool)
    part = np.zeros_like(wrong)
    wrong[rows], part[:, columns] = True, True
    tiles = SharedTiles(a=0, b=0, memory_bytes=0) if form.lanes > 32 else None
    return list(map(str, shared_causes(Setting(instruction=form, tiles=tiles), wrong & part)))


F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_90a"
SPARSE_S8 = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", "sm_90a"
WGMMA = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16", "sm_90a"
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "sm_120a"


def test_rows_share_registers_and_metadata() -> None:
    assert shared(*F16, rows=[5]) == ["behind the wrong row 5: a0, a2 of lanes 20-23"]
    assert shared(*F16, rows=[3, 11]) == ["behind the wrong rows 3, 11: A in lanes 12-15"]
    assert shared(*SPARSE, rows=[3, 11]) == [
        "behind the wrong rows 3, 11: A in lanes 12-15; metadata words of lanes 12-13"
    ]
    (text,) = shared(*SPARSE, rows=[3])
    assert text.endswith("a0, a2 of lanes 12-15; bits 0-15 of the metadata words of lanes 12-13")
    (text,) = shared(*SPARSE_S8, rows=[3])
    assert "metadata words of lanes 12, 14" in text


def test_columns_tiles_and_scales() -> None:
    assert shared(*F16, columns=[6]) == ["behind the wrong column 6: B in lanes 24-27"]
    assert shared(*WGMMA, rows=slice(8, 16)) == [
        "behind the wrong rows 8-15: rows 8-15 of the tile of A in shared memory"
    ]
    assert shared(*MXF4, rows=[9]) == ["behind the wrong row 9: a1, a3 of lanes 4-7; scales of A in lane 5"]
    assert shared(*F16) == []
