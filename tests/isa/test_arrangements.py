"""Metadata arrangements: against constructions one element at a time, as bijections, and told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim import OperandError
from warpsim.isa.metadata.arrangements import arrangements, convert, named, sparse_forms
from warpsim.isa.metadata.detection import detect, named_columns
from warpsim.isa.metadata.orders import Arrangement, lane_words

ELEMENTS = ("tf32", "f16", "bf16", "s8", "u8", "e4m3", "e5m2", "s4", "u4")
NARROW = warpsim.decode(
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
)
EVERY = [(element, arrangement) for element in ELEMENTS for arrangement in arrangements(element)]

every_element = pytest.mark.parametrize("element", ELEMENTS)
every_arrangement = pytest.mark.parametrize(
    ("element", "arrangement"), EVERY, ids=[f"{element}-{arrangement}" for element, arrangement in EVERY]
)


def random_fields(element: str, rows: int, chunks: int, seed: int = 0, *, ordered: bool = True) -> Any:
    pattern = arrangements(element)[0].pattern
    legal = np.flatnonzero(pattern.ascending if ordered else pattern.distinct)
    return np.random.default_rng(seed).choice(legal, (rows, chunks)).astype(np.uint8)


# --- against other constructions -----------------------------------------------------------------------


def reordered_by_hand(fields: Any, per_word: int) -> list[int]:
    """CUTLASS's E: words made, moved one by one to their row and column, and stored interleaved."""
    rows, chunks = fields.shape
    columns = chunks // per_word
    group, step = {4: (32, 4), 8: (16, 2)}[per_word]
    blob = [-1] * (rows * columns)
    for row in range(rows):
        for column in range(columns):
            nibbles = fields[row, column * per_word : (column + 1) * per_word]
            word = sum(int(nibble) << 4 * i for i, nibble in enumerate(nibbles))
            to_row, to_column = row // group * group + row % 8 * step + row % group // 8, column
            if to_row % 2 == 0 and to_column % 2 == 1:
                to_row, to_column = to_row + 1, to_column - 1
            elif to_row % 2 == 1 and to_column % 2 == 0:
                to_row, to_column = to_row - 1, to_column + 1
            blob[to_column // 2 * rows * 2 + to_row * 2 + to_column % 2] = word
    return blob


@every_element
@pytest.mark.parametrize(("rows", "tiles"), [(32, 1), (64, 3), (96, 2)])
def test_cutlass_is_reorder_meta(element: str, rows: int, tiles: int) -> None:
    cutlass = named("cutlass", element)
    per_word = cutlass.slots
    fields = random_fields(element, rows, tiles * 2 * per_word)
    assert cutlass.dtype.itemsize * 2 == per_word == (4 if element in ("tf32", "f16", "bf16") else 8)
    assert cutlass.encode(fields).tolist() == reordered_by_hand(fields, per_word)


@every_element
def test_torch_is_cutlass_as_a_signed_matrix(element: str) -> None:
    fields = random_fields(element, 64, 32)
    reordered, meta = named("cutlass", element).encode(fields), named("torch", element).encode(fields)
    assert meta.dtype == (np.int16 if element in ("tf32", "f16", "bf16") else np.int32)
    assert meta.shape == (64, 32 // named("torch", element).slots)
    assert meta.tobytes() == reordered.tobytes()


def _atoms_by_hand(fields, element):
    """Fields in the order that nested loops visit them, as the steps of CUTLASS 3.x's layouts number them."""
    per_atom = {"tf32": 64}.get(element, 32)
    wide = element in ("tf32", "f16", "bf16")
    found = []
    for first_chunk in range(0, fields.shape[1], per_atom):
        for first_row in range(0, fields.shape[0], 64):
            atom = fields[first_row : first_row + 64, first_chunk : first_chunk + per_atom]
            if wide:  # (warp, second 8 rows, row of 8), (instruction, half, 4 chunks) -> by order of steps
                atom = atom.reshape(4, 2, 8, per_atom // 8, 2, 4).transpose(0, 4, 2, 3, 1, 5)
            found.extend(atom.reshape(-1).tolist())
    return [low | high << 4 for low, high in zip(found[::2], found[1::2], strict=True)]


@pytest.mark.parametrize("element", ["tf32", "f16", "bf16", "s8", "u8", "e4m3", "e5m2"])
def test_cutlass3_is_the_order_of_nested_loops(element: str) -> None:
    fields = random_fields(element, 192, 128)
    assert named("cutlass3", element).encode(fields).tolist() == _atoms_by_hand(fields, element)


def test_cutlass3_in_numbers() -> None:
    """Places that CUTLASS's own SparseConfig::fill_layoutE gives for f16, 128 x 256."""
    places = named("cutlass3", "f16").places(128, 256)
    rows, chunks = [0, 0, 0, 0, 1, 8, 16, 64, 0, 127], [0, 1, 4, 8, 0, 0, 0, 0, 32, 63]
    assert places[rows, chunks].tolist() == [0, 1, 256, 8, 32, 4, 512, 2048, 4096, 8191]


@pytest.mark.parametrize("form", [*(f for e in ELEMENTS for f in sparse_forms(e)), NARROW], ids=str)
def test_lanes_are_packed_metadata(form: warpsim.Instruction) -> None:
    pattern = form.pattern
    assert pattern is not None
    chunks = form.shape.k // pattern.chunk
    rng = np.random.default_rng(1)
    fields = rng.choice(np.flatnonzero(pattern.ascending), (2 * form.shape.m, 3 * chunks)).astype(np.uint8)
    for selector in form.selectors:
        words = lane_words(form, selector).encode(fields)
        for row in range(2):
            for column in range(3):
                tile = fields[16 * row : 16 * row + 16, chunks * column : chunks * (column + 1)]
                indices = pattern.decode_table[tile].reshape(16, -1)
                assert np.array_equal(
                    words[row, column], warpsim.pack_metadata(form, indices, selector=selector)
                )


@every_element
def test_cutlass_words_are_what_lanes_load(element: str) -> None:
    """A column pair of CUTLASS's words is, 32 bits at a time, the registers of the lanes in order.

    With 16-bit words a group of 32 rows feeds selector 0 with its first 16 rows and selector 1 with the
    others; with 32-bit words 16 rows feed all four lanes of each quad.
    """
    form = sparse_forms(element)[-1]
    assert form.pattern is not None
    chunks = form.shape.k // form.pattern.chunk
    fields = random_fields(element, 64, 2 * chunks)
    loaded = named("cutlass", element).encode(fields).view("<u4").reshape(2, -1, 32)
    lanes = sum(
        (lane_words(form, s).encode(fields)[s :: len(form.selectors)] for s in form.selectors),
        np.uint32(0),
    )
    assert np.array_equal(loaded, lanes[..., 0].swapaxes(0, 1))


@every_element
def test_indices_are_those_of_compress(element: str) -> None:
    form = sparse_forms(element)[-1]
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, (form.shape.m, form.shape.k)).astype(form.a.code_dtype)
    _, indices = warpsim.compress(warpsim.prune(codes, form), form)
    e = warpsim.pack_metadata(form, indices)
    shape = form.shape
    assert np.array_equal(
        convert(indices, shape.m, shape.k, element, source="indices", target=f"lanes {shape} selector 0"),
        e[None, None],
    )


# --- bijections ----------------------------------------------------------------------------------------


@every_arrangement
@pytest.mark.parametrize("ordered", [True, False])
def test_round_trip(element: str, arrangement: Arrangement, ordered: bool) -> None:
    fields = random_fields(element, 64, 64, ordered=ordered)
    blob = arrangement.encode(fields)
    assert np.array_equal(arrangement.decode(blob, 64, 64 * arrangement.pattern.chunk), fields)


@every_element
def test_every_pair_converts(element: str) -> None:
    fields = random_fields(element, 64, 64)
    k = 64 * arrangements(element)[0].pattern.chunk
    for source in arrangements(element):
        blob = source.encode(fields)
        for target in arrangements(element):
            converted = convert(blob, 64, k, element, source=source.name, target=target.name)
            assert np.array_equal(converted, target.encode(fields)), f"{source} to {target}"


@every_arrangement
def test_other_sizes_are_refused(element: str, arrangement: Arrangement) -> None:
    k = arrangement.chunk_multiple * arrangement.pattern.chunk
    for rows, columns in [(arrangement.row_multiple, k + 1), (0, k), (arrangement.row_multiple, 0)]:
        with pytest.raises(OperandError, match="does not fit"):
            arrangement.places(rows, columns)


@pytest.mark.parametrize(("element", "rows", "chunks"), [("f16", 16, 8), ("f16", 32, 4), ("s8", 8, 16)])
def test_without_the_constraints_it_is_no_bijection(element: str, rows: int, chunks: int) -> None:
    cutlass = named("cutlass", element)
    k = chunks * cutlass.pattern.chunk
    with pytest.raises(OperandError, match="or fields would share a place"):
        cutlass.places(rows, k)
    with pytest.raises((AssertionError, ValueError)):
        replace(cutlass, row_multiple=1, chunk_multiple=cutlass.slots).places(rows, k)


def test_wrong_size_and_unknown_name() -> None:
    with pytest.raises(
        OperandError, match=r"cutlass: the blob is 60 bytes of uint16, but 32 rows of 8 chunks"
    ):
        named("cutlass", "f16").decode(np.zeros(30, np.uint16), 32, 32)
    with pytest.raises(
        OperandError, match="expected fields, indices, words, cutlass, torch, cutlass3, lanes m16"
    ):
        named("cusparselt", "f16")
    with pytest.raises(OperandError, match="give an instruction"):
        arrangements("e2m1")
    with pytest.raises(OperandError, match="index 7 in a 2:4 chunk"):
        named("indices", "f16").decode(np.full((16, 8), 7, np.uint8), 16, 16)


# --- detection -----------------------------------------------------------------------------------------


@every_arrangement
def test_detected_with_the_matrix(element: str, arrangement: Arrangement) -> None:
    fields = random_fields(element, 64, 64)
    matrix = named_columns(fields, arrangement.pattern)
    found = detect(arrangement.encode(fields), 64, 64 * arrangement.pattern.chunk, element, matrix)
    assert arrangement.name in found.legal
    assert arrangement.name in found.ascending
    same = {"cutlass", "torch"}
    assert set(found.candidates) == (same if arrangement.name in same else {arrangement.name})


def test_detection_is_worded() -> None:
    fields = random_fields("f16", 64, 64)
    blob, k = named("cutlass", "f16").encode(fields), 256
    matrix = named_columns(fields, named("fields", "f16").pattern)
    assert str(detect(blob, 64, k, "f16")) == "decodes as any of words, cutlass3, cutlass (= torch)"
    assert str(detect(blob, 64, k, "f16", matrix)) == "decodes as cutlass (= torch) only"
    assert str(detect(fields, 64, k, "f16")) == "decodes as fields only"
    assert str(detect(np.zeros_like(blob), 64, k, "f16")) == "decodes as none of the known arrangements"


def test_descending_fields_are_legal_only_unordered() -> None:
    fields = np.full((64, 64), 0b0001, np.uint8)
    found = detect(fields, 64, 256, "f16")
    assert found.legal == ("fields",)
    assert found.ascending == ()
