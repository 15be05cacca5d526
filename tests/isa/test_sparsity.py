"""Structured sparsity: compress, decompress and prune of whole matrices, and the fields of one chunk."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import warpsim
from tests.helpers import nasty
from warpsim import OperandError
from warpsim.isa.codes import matrix_of
from warpsim.isa.instruction import Instruction
from warpsim.isa.sparsity import FOUR_OF_EIGHT, ONE_OF_TWO, TWO_OF_FOUR, Pattern, stored_columns

PATTERNS = (ONE_OF_TWO, TWO_OF_FOUR, FOUR_OF_EIGHT)
FORMS = {
    name: warpsim.decode(f"mma.sp::ordered_metadata.sync.aligned.m16n8k{suffix}", target="sm_120a")
    for name, suffix in {
        "tf32": "16.row.col.f32.tf32.tf32.f32",
        "f16": "32.row.col.f32.f16.f16.f32",
        "bf16": "16.row.col.f32.bf16.bf16.f32",
        "s8": "64.row.col.s32.s8.u8.s32",
        "u8": "32.row.col.s32.u8.u8.s32",
        "e4m3": "64.row.col.f32.e4m3.e5m2.f32",
        "e2m1 in bytes": "64.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32",
        "e2m1": "128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
        "s4": "128.row.col.s32.s4.u4.s32",
        "u4": "64.row.col.s32.u4.s4.s32",
    }.items()
}
F16, S4 = FORMS["f16"], FORMS["s4"]

every_pattern = pytest.mark.parametrize("pattern", PATTERNS, ids=str)
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def pattern_of(form: Instruction) -> Pattern:
    assert form.pattern is not None
    return form.pattern


def sparse_matrix(form: Instruction, lead: tuple[int, ...], rng: nasty.Rng, most: int | None = None) -> Any:
    """A random matrix with any codes in at most ``most`` units of a chunk (what the pattern keeps, if None).

    Only those units hold anything but +0, so that compressing it loses nothing.
    """
    pattern = pattern_of(form)
    shape = (*lead, form.shape.m, form.shape.k // pattern.chunk)
    count = rng.integers(0, pattern.kept if most is None else most, (*shape, 1), endpoint=True)
    rank = rng.permuted(np.tile(np.arange(pattern.choices), (*shape, 1)), axis=-1)
    kept = np.repeat(rank < count, pattern.unit, axis=-1).reshape(*lead, form.shape.m, form.shape.k)
    codes = nasty.random_codes(form.a, kept.shape, rng)
    return matrix_of(np.where(kept, codes, codes.dtype.type(0)), form.a)


def same(x: Any, y: Any) -> bool:
    """Equal to the bit, shape and dtype."""
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


# --- the patterns ----------------------------------------------------------------------------------


def test_pattern_of_each_storage_width() -> None:
    assert {name: str(form.pattern) for name, form in FORMS.items()} == {
        "tf32": "1:2",
        "f16": "2:4",
        "bf16": "2:4",
        "s8": "2:4",
        "u8": "2:4",
        "e4m3": "2:4",
        "e2m1 in bytes": "2:4",
        "e2m1": "4:8",
        "s4": "4:8",
        "u4": "4:8",
    }


@pytest.mark.parametrize("pattern", [TWO_OF_FOUR, FOUR_OF_EIGHT], ids=str)
def test_a_field_holds_the_first_index_in_its_low_bits(pattern: Pattern) -> None:
    for first, second in product(range(4), repeat=2):
        field = pattern.encode_table[first, second]
        assert field == first + 4 * second
        assert pattern.decode_table[field].tolist() == [first, second]
        assert pattern.distinct[field] == (first != second)
        assert pattern.ascending[field] == (first < second)


def test_a_field_of_one_of_two_names_both_halves_of_its_element() -> None:
    assert ONE_OF_TWO.encode_table.tolist() == [0b0100, 0b1110]
    for field in range(16):
        assert ONE_OF_TWO.decode_table[field].tolist() == [field >> 1 & 1]
        assert ONE_OF_TWO.distinct[field] == ONE_OF_TWO.ascending[field] == (field in (0b0100, 0b1110))


@pytest.mark.parametrize(
    ("pattern", "indices", "columns"),
    [
        (ONE_OF_TWO, [1, 0, 1], [1, 2, 5]),
        (TWO_OF_FOUR, [0, 3, 1, 2], [0, 3, 5, 6]),
        (TWO_OF_FOUR, [3, 0, 2, 1], [3, 0, 6, 5]),
        (FOUR_OF_EIGHT, [0, 2, 1, 3], [0, 1, 4, 5, 10, 11, 14, 15]),
    ],
)
def test_stored_columns_worked_out_by_hand(pattern: Pattern, indices: list[int], columns: list[int]) -> None:
    assert stored_columns(np.array(indices, np.uint8), pattern).tolist() == columns


# --- compress and decompress -----------------------------------------------------------------------


@every_form
def test_decompress_undoes_compress_to_the_bit(form: Instruction) -> None:
    A = sparse_matrix(form, (40,), np.random.default_rng(1))
    values, indices = warpsim.compress(A, form)
    assert values.shape == (40, 16, form.stored_k)
    assert indices.shape == (40, 16, form.stored_k // pattern_of(form).unit)
    assert indices.dtype == np.uint8
    assert values.dtype == A.dtype
    assert same(warpsim.decompress(values, indices, form), A)


@every_form
def test_decompress_undoes_compress_of_codes(form: Instruction) -> None:
    rng = np.random.default_rng(2)
    A = sparse_matrix(form, (5,), rng).view(form.a.code_dtype) & form.a.code_dtype.type(form.a.mask)
    assert same(warpsim.decompress(*warpsim.compress(A, form), form), A)


@every_form
def test_compress_stores_the_columns_that_its_indices_name(form: Instruction) -> None:
    A = sparse_matrix(form, (7,), np.random.default_rng(3))
    values, indices = warpsim.compress(A, form)
    named = np.take_along_axis(A, nasty.columns(form, indices), axis=-1)
    assert same(values, named)


@every_form
def test_compressed_indices_ascend_within_a_chunk(form: Instruction) -> None:
    for most in range(pattern_of(form).kept + 1):
        A = sparse_matrix(form, (3,), np.random.default_rng(most), most)
        _, indices = warpsim.compress(A, form)
        chunks = indices.reshape(-1, pattern_of(form).kept).astype(int)
        assert (np.diff(chunks, axis=-1) > 0).all()
        assert chunks.max() < pattern_of(form).choices


def kept_units(units: tuple[float, ...], kept: int) -> list[int]:
    """What compress promises, by plain sorting: non-zeros, then -0, then +0, the lowest first."""

    def weakness(i: int) -> int:
        return 0 if units[i] else 1 if np.signbit(units[i]) else 2

    return sorted(sorted(range(len(units)), key=lambda i: (weakness(i), i))[:kept])


@pytest.mark.parametrize("form", [FORMS["tf32"], FORMS["f16"], FORMS["e2m1"]], ids=["1:2", "2:4", "4:8"])
def test_every_chunk_of_zeros_and_others_keeps_what_it_must(form: Instruction) -> None:
    pattern = pattern_of(form)
    for units in product((0.0, -0.0, 1.0, np.nan), repeat=pattern.choices):
        if np.isnan(units).any() and form.a.name == "e2m1":
            continue
        if sum(unit != 0 for unit in units) > pattern.kept:
            continue
        A = np.zeros((16, form.shape.k), form.a.dtype)
        A[3, pattern.chunk : 2 * pattern.chunk] = np.repeat(units, pattern.unit).astype(form.a.dtype)
        _, indices = warpsim.compress(A, form)
        assert indices.reshape(16, -1, pattern.kept)[3, 1].tolist() == kept_units(units, pattern.kept), units


def test_a_negative_zero_is_dropped_only_for_numbers() -> None:
    A = np.zeros((16, 32), np.float16)
    A[0, :4] = 1, -0.0, 0, 0
    A[1, :4] = 1, -0.0, 0, 2
    back = warpsim.decompress(*warpsim.compress(A, F16), F16)
    assert np.signbit(back[0]).tolist() == [False, True] + 30 * [False]
    assert not np.signbit(back[1]).any()
    assert np.array_equal(A, back)


def test_a_nan_is_not_a_zero() -> None:
    A = np.zeros((16, 32), np.float16)
    A[0, :4] = np.nan, 0, 1, 0
    A[1, :4] = np.nan, np.inf, 0, -0.0
    A[2, 3] = np.nan
    assert np.array_equal(warpsim.decompress(*warpsim.compress(A, F16), F16), A, equal_nan=True)


def test_either_element_of_a_pair_keeps_the_pair() -> None:
    A = np.zeros((16, 128), np.int8)
    A[0, 0], A[0, 5], A[1, 6] = 1, -8, 7
    values, indices = warpsim.compress(A, S4)
    assert values[0, :4].tolist() == [1, 0, 0, -8]
    assert indices[:2, :2].tolist() == [[0, 2], [0, 3]]


@pytest.mark.parametrize(
    ("name", "ones", "message"),
    [
        ("tf32", [4, 5], "A, row 7, columns 4..5 (chunk 2): 2 non-zero elements, "
         "but 1:2 sparsity keeps 1 of 2"),
        ("f16", [28, 30, 31], "A, row 7, columns 28..31 (chunk 7): 3 non-zero elements, "
         "but 2:4 sparsity keeps 2 of 4"),
        ("e4m3", [4, 5, 6, 7], "A, row 7, columns 4..7 (chunk 1): 4 non-zero elements, "
         "but 2:4 sparsity keeps 2 of 4"),
        ("s4", [0, 2, 7], "A, row 7, columns 0..7 (chunk 0): 3 non-zero pairs of elements, "
         "but 4:8 sparsity keeps 2 of 4"),
        ("e2m1", [8, 11, 12, 15], "A, row 7, columns 8..15 (chunk 1): 4 non-zero pairs of elements, "
         "but 4:8 sparsity keeps 2 of 4"),
    ],
)  # fmt: skip
def test_too_many_non_zeros_are_refused_by_row_and_chunk(name: str, ones: list[int], message: str) -> None:
    form = FORMS[name]
    A = np.zeros((16, form.shape.k), form.a.dtype)
    A[7, ones] = 1
    with pytest.raises(OperandError) as error:
        warpsim.compress(A, form)
    assert str(error.value) == message


@pytest.mark.parametrize("function", [warpsim.compress, warpsim.prune])
def test_matrices_have_some_tiles_of_columns(function: Any) -> None:
    """As many as one likes, and no part of one."""
    A = np.zeros((16, 96), np.float16)
    A[:, ::4] = np.arange(1, 25)
    whole, parts = function(A, F16), [function(A[:, k : k + 32], F16) for k in (0, 32, 64)]
    if function is warpsim.compress:
        whole, parts = whole[0], [one[0] for one in parts]
    assert np.array_equal(whole, np.concatenate(parts, axis=1))
    with pytest.raises(OperandError, match="its last axis is a multiple of k = 32"):
        function(A[:, :16], F16)


def test_a_zero_is_no_non_zero_whatever_its_sign() -> None:
    A = np.zeros((16, 32), np.float16)
    A[3, 4:8] = [1, -0.0, 2, 3]
    with pytest.raises(OperandError, match=r"row 3, columns 4\.\.7 \(chunk 1\): 3 non-zero elements"):
        warpsim.compress(A, F16)


def test_a_dense_chunk_of_a_batch_is_named() -> None:
    A = np.zeros((2, 3, 16, 32), np.float16)
    A[1, 2, 15, :4] = np.nan
    with pytest.raises(OperandError) as error:
        warpsim.compress(A, F16)
    assert str(error.value) == (
        "A of matrix (1, 2), row 15, columns 0..3 (chunk 0): 4 non-zero elements, "
        "but 2:4 sparsity keeps 2 of 4"
    )


# --- prune -----------------------------------------------------------------------------------------

FINITE16 = arrays.arrays(np.float16, (16, 32), elements=st.floats(-2, 2, width=16))
RAW16 = arrays.arrays(np.uint16, (16, 32)).map(lambda codes: codes.view(np.float16))
RAW4 = arrays.arrays(np.uint8, (16, 128), elements=st.integers(0, 15))


@given(RAW16)
@settings(max_examples=50, deadline=None)
def test_pruned_matrices_can_be_compressed_and_pruning_again_changes_nothing(A: Any) -> None:
    pruned = warpsim.prune(A, F16)
    values, indices = warpsim.compress(pruned, F16)
    assert np.array_equal(warpsim.decompress(values, indices, F16), pruned, equal_nan=True)
    assert same(warpsim.prune(pruned, F16), pruned)


@given(RAW16)
@settings(max_examples=50, deadline=None)
def test_pruning_keeps_elements_to_the_bit_or_makes_them_positive_zero(A: Any) -> None:
    codes, pruned = A.view(np.uint16), warpsim.prune(A, F16).view(np.uint16)
    assert ((pruned == codes) | (pruned == 0)).all()


@given(FINITE16)
@settings(max_examples=50, deadline=None)
def test_pruning_keeps_the_largest_magnitudes(A: Any) -> None:
    chunks = np.abs(A).reshape(16, 8, 4)
    kept = np.abs(warpsim.prune(A, F16)).reshape(16, 8, 4)
    assert np.array_equal(np.sort(kept, axis=-1)[..., 2:], np.sort(chunks, axis=-1)[..., 2:])
    assert (np.sort(kept, axis=-1)[..., :2] == 0).all()


@given(RAW4)
@settings(max_examples=50, deadline=None)
def test_pruning_pairs_keeps_the_largest_sums_of_magnitudes(codes: Any) -> None:
    value = ((codes ^ 8).astype(int) - 8).astype(np.int8)
    pruned = warpsim.prune(value, S4)
    sums, kept = (np.abs(x.astype(int)).reshape(16, 16, 4, 2).sum(axis=-1) for x in (value, pruned))
    assert np.array_equal(np.sort(kept, axis=-1)[..., 2:], np.sort(sums, axis=-1)[..., 2:])
    assert np.array_equal(warpsim.prune(codes, S4), pruned.view(np.uint8) & 15)
    warpsim.compress(pruned, S4)


@pytest.mark.parametrize(
    ("chunk", "kept"),
    [
        ([1, 1, 1, 1], [1, 1, 0, 0]),
        ([1, 2, -2, 1], [0, 2, -2, 0]),
        ([1, -3, 2, 3], [0, -3, 0, 3]),
        ([0, 0, 0, 5], [0, 0, 0, 5]),
        ([np.inf, 1, np.nan, 60000], [np.inf, 0, np.nan, 0]),
    ],
)
def test_the_lower_column_wins_a_tie(chunk: list[float], kept: list[float]) -> None:
    A = np.zeros((16, 32), np.float16)
    A[5, 8:12] = chunk
    assert np.array_equal(warpsim.prune(A, F16)[5, 8:12], np.array(kept, np.float16), equal_nan=True)


@every_form
def test_pruning_a_matrix_that_obeys_the_pattern_changes_nothing_but_zeros(form: Instruction) -> None:
    A = sparse_matrix(form, (3,), np.random.default_rng(4))
    before, after = A.view(form.a.code_dtype), warpsim.prune(A, form).view(form.a.code_dtype)
    zero = (before == 0) | (before == form.a.sign_bit) & form.a.is_float
    assert np.array_equal(after[~zero], before[~zero])
    assert not (after[zero] & form.a.code_dtype.type(form.a.mask >> 1)).any()


@pytest.mark.parametrize("name", ["s8", "s4"])
def test_negative_integers_given_as_codes_are_pruned_by_their_value(name: str) -> None:
    form = FORMS[name]
    A = np.zeros((16, form.shape.k), np.int8)
    A[0, : pattern_of(form).chunk] = np.repeat([-1, 5, 6, -7], pattern_of(form).unit)
    codes = A.view(np.uint8) & np.uint8(form.a.mask)
    assert np.array_equal(warpsim.prune(codes, form), warpsim.prune(A, form).view(np.uint8) & form.a.mask)
    assert warpsim.prune(A, form)[0, 0] == 0


# --- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [warpsim.compress, warpsim.prune])
def test_a_matrix_of_another_width_is_refused(function: Any) -> None:
    with pytest.raises(OperandError) as error:
        function(np.zeros((16, 20), np.float16), F16)
    assert str(error.value) == "A has shape (16, 20), but its last axis is a multiple of k = 32"


def test_dense_instructions_have_nothing_to_compress() -> None:
    dense = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    A = np.zeros((16, 16), np.float16)
    for call in (
        lambda: warpsim.compress(A, dense),
        lambda: warpsim.prune(A, dense),
        lambda: warpsim.decompress(A, A.astype(np.uint8), dense),
        lambda: warpsim.pack_metadata(dense, A.astype(np.uint8)),
        lambda: warpsim.unpack_metadata(dense, np.zeros((32, 1), np.uint32)),
        lambda: warpsim.metadata_map(dense),
    ):
        with pytest.raises(OperandError) as error:
            call()
        assert str(error.value) == f"{dense} is dense: it has no metadata"


@pytest.mark.parametrize(
    ("values", "indices", "message"),
    [
        (np.zeros((16, 15)), np.zeros((16, 16), int),
         "values has shape (16, 15), but this instruction takes (..., 16, 16)"),
        (np.zeros((16, 16)), np.zeros((16, 15), int),
         "indices has shape (16, 15), but this instruction takes (..., 16, 16)"),
        (np.zeros((16, 16)), np.zeros((16, 16)), "indices have dtype float64, but they are integers"),
        (np.zeros((16, 16)), np.full((16, 16), 4), "indices run from 0 to 3 in a 2:4 chunk"),
        (np.zeros((16, 16)), np.full((16, 16), -1), "indices run from 0 to 3 in a 2:4 chunk"),
    ],
)  # fmt: skip
def test_decompress_refuses_what_is_not_compressed(values: Any, indices: Any, message: str) -> None:
    with pytest.raises(OperandError) as error:
        warpsim.decompress(values, indices, F16)
    assert str(error.value) == message


def test_decompress_takes_indices_by_chunk_as_well() -> None:
    A = sparse_matrix(F16, (2,), np.random.default_rng(5))
    values, indices = warpsim.compress(A, F16)
    assert same(warpsim.decompress(values, indices.reshape(2, 16, 8, 2), F16), A)


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_fields_of_units_are_those_of_the_table(pattern: Pattern) -> None:
    units = np.random.default_rng(5).integers(0, pattern.choices, (3, 4 * pattern.kept)).astype(np.uint8)
    wanted = pattern.encode_table[tuple(np.moveaxis(units.reshape(3, 4, pattern.kept), -1, 0))]
    assert np.array_equal(pattern.fields(units), wanted)
