"""Layouts of tensor memory: D, A, metadata and scale factors, each against formulas written out one by
one.
"""

from itertools import product

import numpy as np
import pytest

from warpsim.isa.layouts.tensor_memory import (
    LETTERS,
    accumulator,
    column_scales,
    metadata,
    multiplicand,
    row_scales,
)


def d_by_hand(letter, r, n, count):
    """(CTA, lane, column) of D[r, n] with N columns, as the manual's figures have it."""
    rows = {"A": 128, "B": 64, "C": 64}.get(letter, 1 << 20)  # of a CTA
    cta, r = divmod(r, rows)
    if letter in "AD":
        return cta, r, n
    if letter in "BE":
        return cta, r + 64 * (n >= count // 2), n % (count // 2)
    if letter in "CF":
        return cta, 32 * (r // 16) + r % 16, n
    return cta, r + 32 * (n // (count // 4)), n % (count // 4)


M = {"A": 256, "B": 128, "C": 128, "D": 128, "E": 64, "F": 64, "G": 32}


@pytest.mark.parametrize("letter", M)
@pytest.mark.parametrize("n", [64, 128, 256])
def test_every_element_of_d(letter, n):
    layout = accumulator(letter, n)
    assert layout.cells.shape == (M[letter], n, 4)
    for row, column in product(range(M[letter]), range(n)):
        assert tuple(layout.cells[row, column]) == (*d_by_hand(letter, row, column, n), 0)
    flat = layout.cells.reshape(-1, 4)
    assert len(np.unique(flat, axis=0)) == len(flat)
    assert layout.width == n // {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    assert layout.half is (letter in "CF")


@pytest.mark.parametrize("letter", M)
@pytest.mark.parametrize("n", [8, 24, 256])
def test_blocks_are_the_cells_of_d(letter, n):
    layout = accumulator(letter, n if letter in "ACDF" else 64)
    found = np.full((*layout.shape, 4), -1)
    for rows, columns, cta, lane, column in layout.blocks:
        for i, j in product(range(*rows.indices(layout.shape[0])), range(*columns.indices(layout.shape[1]))):
            assert (found[i, j] == -1).all()
            found[i, j] = cta, lane + i - rows.start, column + j - columns.start, 0
    np.testing.assert_array_equal(found, layout.cells)
    assert len(layout.blocks) == {"A": 2, "B": 4, "C": 8, "D": 1, "E": 2, "F": 4, "G": 4}[letter]


def test_elements_by_hand():
    assert tuple(accumulator("F", 64).cells[37, 5]) == (0, 69, 5, 0)
    assert tuple(accumulator("B", 64).cells[70, 40]) == (1, 70, 8, 0)
    assert tuple(accumulator("G", 64).cells[9, 37]) == (0, 73, 5, 0)


def test_the_letters_have_the_rows_of_their_forms():
    assert {letter: m for (_, _, m, _), letter in LETTERS.items()} == M


@pytest.mark.parametrize("letter", "ABCDF")
@pytest.mark.parametrize(("bits", "k"), [(32, 8), (16, 16), (8, 32), (4, 64)])
def test_a_lies_in_the_lanes_of_d(letter, bits, k):
    layout = multiplicand(letter, k, bits)
    assert layout.width == 8
    assert layout.copies == ((0, 64) if letter == "B" else (0,))
    for row, column in product(range(M[letter]), range(k)):
        cta, lane, _ = d_by_hand(letter, row, 0, 64)
        assert tuple(layout.cells[row, column]) == (
            cta,
            lane,
            column * bits // 32,
            column * bits % 32,
        )


def test_a_of_stationary_weights_is_not_known():
    assert multiplicand("E", 16, 16) is None
    assert multiplicand("G", 16, 16) is None


def metadata_by_hand(letter, bits, r, chunk):
    """(CTA, lane, column, bit) of a metadata field."""
    cta, r = divmod(r, {"A": 128, "C": 64}.get(letter, 1 << 20))
    spread = 2 if letter in "CF" else 1  # groups of 16 rows lie in every second half of a quarter
    if bits >= 16:
        lane = 16 * spread * (r // 16) + r % 8 + 8 * (chunk // 4)
        return cta, lane, 0, 16 * (r // 8 % 2) + 4 * (chunk % 4)
    return cta, 16 * spread * (r // 16) + r % 16, chunk // 8, 4 * (chunk % 8)


@pytest.mark.parametrize("letter", "ACDEFG")
@pytest.mark.parametrize(("bits", "chunks"), [(32, 8), (16, 8), (8, 16), (4, 16)])
def test_every_metadata_field(letter, bits, chunks):
    layout = metadata(letter, bits, chunks)
    assert layout.copies == {"E": (0, 64), "G": (0, 32, 64, 96)}.get(letter, (0,))
    for row, chunk in product(range(M[letter]), range(chunks)):
        assert tuple(layout.cells[row, chunk]) == metadata_by_hand(letter, bits, row, chunk)


def test_fields_by_hand():
    assert tuple(metadata("D", 16, 8).cells[27, 6]) == (0, 27, 0, 24)
    assert tuple(metadata("D", 16, 8).cells[3, 6]) == (0, 11, 0, 8)
    assert tuple(metadata("D", 16, 8).cells[3, 1]) == (0, 3, 0, 4)
    assert tuple(metadata("D", 8, 16).cells[90, 11]) == (0, 90, 1, 12)


@pytest.mark.parametrize("factors", [1, 2, 4])
def test_every_scale_factor(factors):
    for layout, rows, per_cta in (
        (row_scales(128, factors, 1), 128, 128),
        (row_scales(256, factors, 2), 256, 128),
        (row_scales(128, factors, 2), 128, 64),
        (column_scales(40, factors, "D"), 40, 256),
        (column_scales(256, factors, "A"), 256, 256),
    ):
        assert layout.copies == (0, 32, 64, 96)
        for row, factor in product(range(rows), range(factors)):
            cta, own = divmod(row, per_cta)
            assert tuple(layout.cells[row, factor]) == (cta, own % 32, own // 32, 8 * factor)
    assert tuple(row_scales(128, 4, 1).cells[77, 2]) == (0, 13, 2, 16)


@pytest.mark.parametrize(("factors", "first"), [(3, 0), (3, 1), (3, 2), (3, 3), (6, 0), (6, 2)])
def test_factors_of_a_k_of_96_go_on_behind_those_of_128_rows(factors, first):
    for layout, rows, step in (
        (row_scales(128, factors, 1, first), 128, 4),
        (row_scales(256, factors, 2, first), 256, 4),
        (column_scales(40, factors, "D", first), 40, 4),
        (column_scales(136, factors, "A", first), 136, 8),
    ):
        for row, factor in product(range(rows), range(factors)):
            cta, own = divmod(row, 128) if layout.ctas == 2 else (0, row)
            column, byte = divmod(first + factor, 4)
            expected = cta, own % 32, own // 32 + step * column, 8 * byte
            assert tuple(layout.cells[row, factor]) == expected
    assert (row_scales(128, factors, 2, first) is None) is (first + factors > 4)
    assert (column_scales(128, factors, "B", first) is None) is (first + factors > 4)


def test_scale_factors_of_a_pair_with_128_rows_follow_the_halves_of_d():
    layout = column_scales(128, 2, "B")
    assert layout.copies == (0, 32)
    for column, factor in product(range(128), range(2)):
        half, own = divmod(column, 64)
        assert tuple(layout.cells[column, factor]) == (0, own % 32 + 64 * half, own // 32, 8 * factor)
    assert column_scales(80, 2, "B") is None
