"""Dumps of metadata and scales located by value: the formula, stale steps, orders of rows, selectors, ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from warpsim.isa.fragments import metadata_map
from warpsim.isa.operand_places.placements import ScaleSelectors
from warpsim.show.views.held_operands import holding_document, holding_lines
from warpsim.workbench.diagnosis import held, held_scales

SPARSE = warpsim.decode(
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_80"
)
ONE = warpsim.decode(
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
    target="sm_120a",
)
FOUR = warpsim.decode(
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    target="sm_120a",
)
RNG = np.random.default_rng(1)
A = warpsim.prune(RNG.standard_normal((16, 128)).astype(np.float16), SPARSE)
SCALES = RNG.permutation(np.arange(100, 164)).astype(np.uint8).reshape(16, 4)
Words = npt.NDArray[Any]
Order = Callable[[int, int], tuple[int, int]]


def metadata(step: int = 0, selector: int = 0, order: Order = lambda row, chunk: (row, chunk)) -> Words:
    """Words whose field of a row and chunk is that of ``order`` (row, chunk), field by field."""
    _, indices = warpsim.compress(A[:, 32 * step : 32 * step + 32], SPARSE)
    fields = indices.reshape(16, 8, 2) @ [1, 4]
    words = np.zeros((32, 1), np.uint32)
    for lane, bit, _, row, chunk in metadata_map(SPARSE, selector).tolist():
        words[lane, 0] |= np.uint32(fields[order(row, chunk)] << bit)
    return words


def lines_of(dump: Words, matrix: Any = None, selector: int = 0) -> str:
    given = {"A": A[:, :32] if matrix is None else matrix}
    return "\n".join(holding_lines(held(SPARSE, given, {"e": dump}, selector=selector)[0]))


def scales_a(order: Order, byte: int = 0, chunks: int = 1, thread: int = 0) -> Words:
    """Words of scales of A: row g in lane 4 * g + 2 * thread, row g + 8 in the lane after it."""
    words = np.zeros((32, 1), np.uint32)
    for row in range(16):
        for chunk in range(chunks):
            code = np.uint32(SCALES[order(row, chunk)])
            words[row % 8 * 4 + row // 8 + 2 * thread, 0] |= code << np.uint32(8 * (byte + chunk))
    return words


def scale_lines(dump: Words, form: Any = ONE, **ids: int) -> str:
    return "\n".join(holding_lines(held_scales(form, "scale_a", SCALES, dump, ScaleSelectors(**ids))))


def test_metadata_are_counted_in_rows_and_chunks() -> None:
    text = lines_of(metadata(order=lambda row, chunk: (row % 8 * 2 + row // 8, chunk)))
    assert "rows interleaved in blocks of 8" in text
    assert "metadata: row = 2*g + h2, chunk = 4*t + h0 + 2*h1" in text
    assert "right would be: row = g + 8*h2, chunk = 4*t + h0 + 2*h1" in text
    assert "g = lane / 4, t = lane % 4, h = field, bits 4*h to 4*h + 3 of the word" in text


def test_blocks_of_metadata_have_no_ldmatrix() -> None:
    text = lines_of(metadata(order=lambda row, chunk: (chunk + row // 8 * 8, row % 8)))
    assert "blocks of 8 x 8 of row and chunk transposed" in text
    assert "ldmatrix" not in text


@pytest.mark.parametrize(("given", "read", "lanes"), [(1, 0, "2, 3"), (0, 1, "0, 1")])
def test_metadata_in_the_lanes_of_another_selector(given: int, read: int, lanes: str) -> None:
    text = lines_of(metadata(selector=given), selector=read)
    where = f"in lanes {lanes} of each quad, which selector {given} reads, and not selector {read}"
    assert f"128 of 128 elements: they are of metadata, {where}: in the order of the layout" in text


def test_lanes_of_a_selector_are_not_taken_for_their_quad() -> None:
    """Selector 1 reads t = 2 and 3: the formula has bit 0 of t, not t."""
    text = lines_of(metadata(selector=1, order=lambda row, chunk: (row ^ 3, chunk)), selector=1)
    assert "right would be: row = g + 8*h2, chunk = 4*t0 + h0 + 2*h1" in text


@pytest.mark.parametrize(
    ("steps", "first", "far"),
    [
        ((0, 0, 1, 2), 1, ["(stale: 1 step behind)"] * 3),
        ((0, 0, 0, 0), 1, ["(stale: 1 step behind)", "(stale: 2 steps behind)", "(stale: 3 steps behind)"]),
        ((1, 2, 3, 0), 0, ["(1 step ahead)"] * 3 + ["(stale: 3 steps behind)"]),
    ],
)
def test_stale_steps(steps: tuple[int, ...], first: int, far: list[str]) -> None:
    e = np.stack([metadata(step) for step in steps])
    scales = np.stack([scales_a(lambda row, _, step=step: (row, step)) for step in steps])  # type: ignore[misc]
    for text, name in ((lines_of(e, A), "metadata (e) is"), (scale_lines(scales), "scales of A are")):
        head, *later = [line for line in text.splitlines() if "step " in line]
        assert head.startswith(f"step {first} is the first of 4 at which {name} wrong")
        for line, said in zip((head, *later), far, strict=True):
            assert said in line


def test_steps_of_scales_that_hold_or_are_missing() -> None:
    words = np.stack([scales_a(lambda row, _, step=step: (row, step)) for step in range(4)])  # type: ignore[misc]
    assert "in every step, all 4 steps of 16 bytes" in scale_lines(words)
    with pytest.raises(warpsim.WarpsimError, match="scale_a has 3 steps, but its matrix has 4 along k"):
        scale_lines(words[:3])


@pytest.mark.parametrize(
    ("byte", "thread", "said"),
    [(2, 0, "byte id 2 and thread id 0"), (0, 1, "byte id 0 and thread id 1")],
)
def test_scales_that_other_ids_read(byte: int, thread: int, said: str) -> None:
    text = scale_lines(scales_a(lambda row, chunk: (row, chunk), byte, thread=thread))
    assert f"in what {said} read, and not 0 and 0: in the order of the layout" in text


def test_orders_of_scales() -> None:
    rows = scale_lines(scales_a(lambda row, chunk: (row % 8 * 2 + row // 8, chunk)))
    assert "scales: row = 2*g + t, chunk = 0" in rows
    assert "right would be: row = g + 8*t, chunk = 0" in rows
    turned = scale_lines(scales_a(lambda row, chunk: (row, 3 - chunk), chunks=4), FOUR)
    assert "bytes of each register reversed" in turned


def test_the_first_byte_of_scales_that_leaves_the_map() -> None:
    words = scales_a(lambda row, chunk: (row, chunk) if row != 5 else (3, 1))
    text = scale_lines(words)
    assert "15 of 16 bytes are right" in text
    value, right = int(SCALES[3, 1]), int(SCALES[5, 0])
    assert f"the first: lane 20, scale_a, byte 0: 0x{value:02x}" in text
    assert f"where scales[5, 0] = 0x{right:02x} belongs; it is scales[3, 1]" in text
    assert "in another order" not in text


def test_equal_scales_are_located_nowhere() -> None:
    same = np.full((16, 4), 127, np.uint8)
    found = held_scales(ONE, "scale_a", same, np.full((32, 1), 120, np.uint32), ScaleSelectors())
    assert (found.location, found.equal) == (None, 0)
    assert holding_document(found)["location"] is None
