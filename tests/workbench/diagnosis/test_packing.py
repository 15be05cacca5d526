"""Packing, piece by piece: how far off a tile is, how many steps a buffer has, and operands nobody traced.

Whole kernels are in test_origins.py. The tiles here have only what is asked of them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.workbench.diagnosis.loops.loop_memory import Memory
from warpsim.workbench.diagnosis.origins.packing_checks import _stage_text, tile_findings
from warpsim.workbench.diagnosis.origins.tile_patterns import permutation_text
from warpsim.workbench.diagnosis.origins.words.metadata_checks import _step_count
from warpsim.workbench.diagnosis.recordings.event_chains import diagnose_chain


def tiles_of_a_loop(*k: int) -> Any:
    """One warp's tiles, of these k in turn."""
    return SimpleNamespace(
        tiles=SimpleNamespace(operand=SimpleNamespace(later=np.ones(len(k) - 1, np.bool_))),
        logical=lambda: np.array(k),
        empty=np.zeros(len(k), np.bool_),
    )


@pytest.mark.parametrize(
    ("by", "text"),
    [
        (-32, "the stage before"),
        (32, "the stage ahead"),
        (-64, "2 stages before"),
        (96, "3 stages ahead"),
        (16, "another k step (+16)"),
        (-48, "another k step (-48)"),
    ],
)
def test_how_far_off_in_turns_of_the_loop(by: int, text: str) -> None:
    assert _stage_text(tiles_of_a_loop(0, 32, 64, 96), by) == text


def test_where_nothing_steps_along_k_no_stage_is_named() -> None:
    assert _stage_text(tiles_of_a_loop(0), -32) == "another k step (-32)"


@pytest.mark.parametrize(("inner_axis", "count"), [("columns", 16), ("rows", 4)])
def test_steps_in_a_buffer(inner_axis: str, count: int) -> None:
    """k runs along the axis that the tiles' inner one is: 256 columns, or 64 rows, 16 a step."""
    source = SimpleNamespace(shape=(64, 256), dtype=np.dtype(np.float16))
    tiles = SimpleNamespace(
        operand=SimpleNamespace(source=source, width=16), inner=np.zeros((1, 16, 16)), inner_axis=inner_axis
    )
    assert _step_count(SimpleNamespace(tiles=tiles)) == count  # type: ignore[arg-type]


def test_one_operand_is_looked_at_without_the_other() -> None:
    whole: Any = SimpleNamespace(
        tiles=None, outer=np.zeros(2, np.intp), inner=np.zeros(2, np.intp), clean=np.ones(2, np.bool_)
    )
    assert list(tile_findings(whole, None)) == list(tile_findings(None, whole)) == []


def test_products_along_k_are_those_of_warps() -> None:
    """What several warps have made by one mma is looked at otherwise."""
    events = [SimpleNamespace(instruction=SimpleNamespace(lanes=32), d=np.zeros((128, 4)))] * 2
    found: Any = SimpleNamespace(events=(0, 1), inputs=None)
    assert diagnose_chain(events, found, np.zeros((128, 4))) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mnemonic", "majors"),
    [
        ("m64n8k16.f32.f16.f16", {"K", "MN"}),
        ("m64n8k8.f32.tf32.tf32", {"K"}),
        ("m64n8k32.f32.e4m3.e4m3", {"K"}),
        ("m64n8k256.s32.b1.b1.and.popc", set()),
    ],
)
def test_tiles_in_shared_memory_lie_as_descriptors_have_them(mnemonic: str, majors: set[str]) -> None:
    form = warpsim.decode(f"wgmma.mma_async.sync.aligned.{mnemonic}", target="sm_90a")
    memory: Any = SimpleNamespace(loop=SimpleNamespace(form=form, registers={"b": np.zeros((2, 3, 8, 16))}))
    found = {major for major in ("K", "MN") if Memory._tile(memory, "b", major, "none") is not None}  # type: ignore[arg-type]
    assert found == majors


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ([*range(0, 16, 2), *range(1, 16, 2)], "places g and g + 8 hold 2g and 2g + 1"),
        ([row for g in range(8) for row in (g, g + 8)], "places 2g and 2g + 1 hold g and g + 8"),
        ([0, 2, 4, 6, 1, 3, 7, 5], "places hold 0, 2, 4, 6, 1, 3, 7, 5"),
    ],
)
def test_neighbours_in_place_of_halves_are_named(order: list[int], text: str) -> None:
    assert permutation_text(np.array(order)) == text
