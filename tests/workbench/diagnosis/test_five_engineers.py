"""Mistakes of five engineers: a sample is named, nothing wrong is claimed of right kernels, bits decide.

All of them, with the seconds that they take: ``python -m tools.mistakes --only engineers``.
"""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tools.mistakes.case import F16, MXF8
from tools.mistakes.engineers import (
    attention_author,
    held_back,
    kernel_author,
    quantizer,
    register_reader,
    right_kernels,
)
from tools.mistakes.judging import Case, answered
from warpsim.isa.operand_places.placements import ScaleSelectors
from warpsim.show.views.findings import product_lines
from warpsim.workbench.diagnosis import diagnose_product, held_scales
from warpsim.workbench.diagnosis.loops import loop_search

FORM = warpsim.decode(F16[0], target=F16[1])
NAMED = (
    *kernel_author.LIST.cases[:5],
    *kernel_author.LIST.cases[9:12:2],
    *kernel_author.LIST.cases[14:21:2],
    quantizer.LIST.cases[3],
    quantizer.LIST.cases[5],
    *attention_author.LIST.cases[1:5:3],
    *attention_author.LIST.cases[7:12:4],
    register_reader.LIST.cases[0],
    *register_reader.LIST.cases[6:12:3],
    *held_back.LIST.cases[3:16:12],
)
RIGHT = (*right_kernels.LIST.cases[:5:2], *right_kernels.LIST.cases[7:21:2])


@pytest.mark.parametrize("case", sample(NAMED, 3), ids=lambda case: case.name)
def test_a_sample_is_named(case: Case) -> None:
    found, _, text = answered(case)
    assert found == "named", text


@pytest.mark.parametrize("case", sample(RIGHT, 4), ids=lambda case: case.name)
def test_nothing_is_claimed_of_right_kernels(case: Case) -> None:
    found, _, text = answered(case)
    assert found == "right", text


@pytest.mark.parametrize("pad", [24, 72])
def test_rows_that_are_stored_with_a_pad_are_named(pad: int) -> None:
    """Rows of 96 elements are more than those of which every stride is tried."""
    rng = np.random.default_rng(pad)
    A, B = rng.standard_normal((48, 96)).astype(np.float16), rng.standard_normal((96, 16)).astype(np.float16)
    memory = np.zeros((48, 96 + pad), np.float16)
    memory[:, :96] = A
    read = memory.reshape(-1)[: A.size].reshape(A.shape)
    C = np.zeros((48, 16), np.float32)
    first = diagnose_product(FORM, A, B, warpsim.gemm(FORM, read, B, C), C).matches[0]
    assert first.facts["map"] == "written with stride", first
    assert (first.facts["operand"], first.facts["stride"], first.facts["own"]) == ("A", 96 + pad, 96)


def test_a_search_that_was_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where few elements are finite, much comes near: what is not computed is counted."""
    monkeypatch.setattr(loop_search, "_VERIFIED", (4, 4))
    rng = np.random.default_rng(5)
    A, B = rng.standard_normal((32, 32)).astype(np.float16), rng.standard_normal((32, 16)).astype(np.float16)
    D = np.where(np.arange(512).reshape(32, 16) % 7 < 6, np.inf, warpsim.gemm(FORM, A, B)).astype(np.float32)
    found = diagnose_product(FORM, A, B, D)
    assert not found.matches
    assert 0 < found.uncomputed < found.tried
    assert any("search stopped early" in line for line in product_lines(found))


def test_scales_are_compared_with_their_matrix() -> None:
    form = warpsim.decode(MXF8[0], target=MXF8[1])
    scales = np.arange(100, 164, dtype=np.uint8).reshape(32, 2)
    lane = np.arange(32)
    row = lane // 4 + 8 * (lane % 2)
    words = np.where(lane % 4 < 2, scales[16 + row, 1], 0).astype(np.uint32)[:, None]
    found = held_scales(form, "scale_a", scales, words, ScaleSelectors())
    assert (found.holds, found.tile, found.total) == (True, (16, 1), 16)
    later = held_scales(form, "scale_a", scales[::-1], words, ScaleSelectors())
    assert later.location is not None
    (part,) = later.location.parts
    assert (part.kind, part.tile, part.count) == ("xor", (0, 1), 16)
    with pytest.raises(warpsim.WarpsimError, match=r"scale_a has shape \(2, 1\)"):
        held_scales(form, "scale_a", scales, words[:2], ScaleSelectors())


def test_progress_counts_what_is_tried() -> None:
    rng = np.random.default_rng(7)
    A, B = rng.standard_normal((16, 32)).astype(np.float16), rng.standard_normal((32, 8)).astype(np.float16)
    seen: list[tuple[int, int]] = []
    D = rng.standard_normal((16, 8)).astype(np.float32)
    found = diagnose_product(FORM, A, B, D, watch=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert 100 < seen[-1][0] <= found.tried
    assert {total for _, total in seen} == {0}
