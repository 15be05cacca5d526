"""Rows of D that come of undefined metadata: a batch of statements against each field by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from warpsim.base.errors import Location
from warpsim.isa.families import forms
from warpsim.isa.fragments import fragment, legal_fields, metadata_map
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.machine.state.undefined_metadata import (
    MetadataOperand,
    UndefinedMetadata,
    _halves,
    _places,
    _values,
)

MANY = 1 << 16
LOCATION = Location("k.ptx", 1, 2)
SPARSE = [
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 1),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", 2),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32", 0),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", 0),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", 1),
]


class Wave:
    def name_of_execution(self, warp: int) -> str:
        return f"warp {warp}"


def form_of(mnemonic: str) -> Instruction:
    return warpsim.decode(mnemonic, target="sm_90a")


def slow_rows(form: Instruction, words: npt.NDArray[np.uint32], selector: int) -> npt.NDArray[np.bool_]:
    """Return ``(executions, m)``, field by field."""
    rows = np.zeros((len(words), form.shape.m), np.bool_)
    for execution, registers in enumerate(words):
        for lane, bit, _, row, _ in metadata_map(form, selector).tolist():
            rows[execution, row] |= not legal_fields(form)[int(registers[lane]) >> bit & 15]
    return rows


def slow_d(
    form: Instruction, rows: npt.NDArray[np.bool_], d: npt.NDArray[Any], changed: list[bool], drawn: int
) -> tuple[npt.NDArray[Any], int]:
    """Return D with other values, element by element, and how many have been drawn."""
    codes = np.array(d, order="C").view(form.d.code_dtype)
    row_of = fragment(form, "d")[..., 0].reshape(form.lanes, -1).tolist()
    values = _values(form.d)[:MANY].tolist()
    for execution in range(len(d)):
        if not changed[execution] or not rows[execution].any():
            continue
        for lane in range(form.lanes):
            for place, row in enumerate(row_of[lane]):
                if rows[execution, row]:
                    codes[execution, lane, place] = values[drawn % MANY]
                drawn += 1
    return codes.view(d.dtype), drawn


def metadata(form: Instruction, executions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Return words of fields that have a meaning, but for a few, of half of the executions."""
    random = np.random.default_rng(seed)
    legal = np.flatnonzero(legal_fields(form))
    fields = legal[random.integers(0, legal.size, (executions, form.lanes, 8))]
    wrong = random.random(fields.shape) < 0.02
    wrong[::2] = False
    fields[wrong] = random.integers(0, 16, int(wrong.sum()))
    return (fields.astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)


@pytest.mark.parametrize(("mnemonic", "selector"), SPARSE)
@pytest.mark.parametrize("changed", [(10, 11, 12), (11,), ()], ids=["all", "one", "none"])
def test_a_batch(mnemonic: str, selector: int, changed: tuple[int, ...]) -> None:
    form, warps = form_of(mnemonic), np.array([4, 0, 8])
    selector = min(selector, max(form.selectors))
    places = [10, 11, 12]
    known, drawn = UndefinedMetadata(frozenset(changed)), 0
    wanted = dict[int, str]()
    for seed in range(3):
        words = metadata(form, len(places) * len(warps), seed)
        d = np.random.default_rng(seed).integers(0, 1 << 32, (form.registers["d"], len(words), form.lanes))
        d = d.astype(np.uint32).transpose(1, 2, 0)  # as it lies in memory where kernels have made it
        d = np.ascontiguousarray(d) if seed else d
        before = d.copy()
        inputs = Inputs.plain({"e": words[:, :, None]}, selector, True)
        operands = [MetadataOperand(pc, lambda: LOCATION) for pc in places]
        found = known.follow_registers(Wave(), form, inputs, warps, operands, d)
        rows = slow_rows(form, words, selector)
        expected, drawn = slow_d(form, rows, d, [places[n // 3] in changed for n in range(len(words))], drawn)
        assert np.array_equal(found, expected)
        assert np.array_equal(d, before)
        for execution in np.flatnonzero(rows.any(axis=1)).tolist():
            wanted.setdefault(places[execution // 3], f"[warp {warps[execution % 3]}]")
    assert known.found.keys() == wanted.keys()
    assert all(known.found[pc].message.endswith(where) for pc, where in wanted.items())


def test_statements_of_a_batch_are_described_by_their_own_first_field() -> None:
    form = form_of(SPARSE[0][0])
    words = np.full((4, 32), 0x44444444, np.uint32)
    words[1, 5] = 0x44444404
    words[2, 9] = 0x04444444
    words[3, 1] = 0
    known = UndefinedMetadata()
    operands = [MetadataOperand(pc, lambda: LOCATION) for pc in (7, 8)]
    d = np.zeros((4, 32, 4), np.uint32)
    found = known.follow_registers(
        Wave(), form, Inputs.plain({"e": words[:, :, None]}, 1, True), [2, 3], operands, d
    )
    assert found is d
    assert known.found[7].message.startswith("metadata field 0b0000 in lane 5, bits 7..4 (row 1, chunk 1)")
    assert known.found[7].message.endswith("[warp 3]")
    assert known.found[8].message.startswith("metadata field 0b0000 in lane 9, bits 31..28 (row 10, chunk 3)")
    assert known.found[8].message.endswith("[warp 2]")


def test_values_are_used_in_turn_beyond_their_number() -> None:
    form = form_of(SPARSE[0][0])
    known, turn = UndefinedMetadata(), _values(form.d)[:MANY]
    zeros = np.zeros(MANY - 3, np.uint32)
    known.others(zeros, np.ones(zeros.shape, np.bool_), form.d)
    for size in (8, MANY, 2 * MANY + 5):
        start = known._drawn % MANY
        found = known.others(np.zeros(size, np.uint32), np.ones(size, np.bool_), form.d)
        assert np.array_equal(found, turn.take(np.arange(start, start + size), mode="wrap"))


def sparse_forms() -> Iterator[Instruction]:
    return (form for form in forms().values() if form.sparse)


def test_halves_have_all_fields_of_a_row() -> None:
    """What is looked at in 16 bits is four fields of one row, in each form and under each selector."""
    seen = set[tuple[Any, ...]]()
    for form in sparse_forms():
        for selector in form.selectors:
            if (key := (form.shape.m, form.shape.k, form.metadata, selector)) in seen:
                continue
            seen.add(key)
            lanes, bits = _places(form, selector)
            halves = _halves(form, selector)
            assert len(set(halves.reshape(-1).tolist())) == halves.size == lanes.size // 4
            for row in range(form.shape.m):
                fields = {(half // 2, half % 2 * 16 + bit) for half in halves[row] for bit in (0, 4, 8, 12)}
                assert fields == set(zip(lanes[row].tolist(), bits[row].tolist(), strict=True))
    assert len(seen) > 20
