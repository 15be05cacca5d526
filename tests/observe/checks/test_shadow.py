"""Shadow memory against a dictionary of bytes: cells are parted page by page, and nothing else changes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from warpsim.observe.checks.shadow import Shadow, Shadows, record, times

BYTES, PAGE = 3 * 4096 + 512, 4096


def cell_of(shadow: Shadow, byte: int) -> int:
    ((cell,),) = shadow.cells(np.array([byte]), 1).tolist()
    return int(cell)


@pytest.mark.parametrize("seed", range(6))
def test_every_byte_has_its_latest_record(seed: int) -> None:
    """Words and ranges of any size, in any order; each byte is looked up at the end."""
    random, shadow, latest = Random(seed), Shadow(BYTES), dict[int, int]()
    for time in range(1, 60):
        size = random.choice((1, 2, 4, 8, 16, 32))
        if random.random() < 0.3:
            first = random.randrange(0, BYTES - 64, random.choice((1, 4, 16)))
            ranges = np.array([[first, first + random.randint(1, 64)], [BYTES - 16, BYTES]])
            cells = shadow.within(ranges)
            shadow.wrote[cells] = record(time, 0, 0, 0)
            written = [byte for low, past in ranges.tolist() for byte in range(low, past)]
        else:
            words = np.array([random.randrange(0, BYTES // size) * size for _ in range(8)])
            cells = shadow.cells(words, size)
            shadow.wrote[cells] = record(time, 0, 0, 0)
            written = [byte for word in words.tolist() for byte in range(word, word + size)]
        latest |= dict.fromkeys(written, time)
    for byte in range(BYTES):
        cell = cell_of(shadow, byte)
        assert int(times(shadow.wrote[cell])) == latest.get(byte, 0)
        assert byte in shadow.all_bytes(np.array([cell])).tolist()


def test_a_small_store_parts_the_cells_of_its_page_alone() -> None:
    shadow = Shadow(BYTES)
    cells = shadow.cells(np.array([0, PAGE, 2 * PAGE]), 16)
    shadow.wrote[cells] = record(7, 0, 0, 0)
    assert shadow.wrote.size == 4 * PAGE // 16
    cells = shadow.cells(np.array([PAGE + 4]), 4)
    shadow.wrote[cells] = record(8, 0, 0, 0)
    assert shadow.widths.tolist() == [16, 4, 16, 16]
    assert shadow.wrote.size == 3 * PAGE // 16 + PAGE // 4
    found = shadow.wrote[shadow.cells(np.array([0, PAGE, 2 * PAGE]), 16)]
    assert times(found).tolist() == [[7] * 4, [7, 8, 7, 7], [7] * 4]
    assert shadow.bytes_of(shadow.cells(np.array([2 * PAGE + 32]), 16)[0, 0]) == 2 * PAGE + 32


def test_tiles_are_found_again_where_cells_were_parted() -> None:
    shadow, offsets = Shadow(BYTES), np.array([[0, 16, PAGE]])
    assert shadow.tiles("a", lambda: offsets)[0].tolist() == [[0, 1, PAGE // 16]]
    shadow.take_later("a", np.array([[2]]), np.array([[record(5, 0, 0, 0)]]))
    shadow.cells(np.array([4]), 4)
    assert shadow.tiles("a", lambda: offsets)[0].shape == (1, 12)  # four of each, as the smallest
    cells = shadow.cells(np.array([0, 20, 36, PAGE]), 4)[:, 0]
    assert times(shadow.taken_by(np.array([2]), cells)).tolist() == [5, 5, 0, 5]
    assert shadow.rows(shadow.takes, np.array([0])).tolist() == [2]


@pytest.mark.parametrize("order", [(7, 5), (5, 7)])
def test_of_tiles_in_a_page_the_latest_time_stays(order: tuple[int, int]) -> None:
    """Warpgroups of two CTAs have one row, and a page that holds parts of both memories."""
    shadow, offsets = Shadow(BYTES), np.array([[0, 16], [2048, PAGE]])
    shadow.tiles("a", lambda: offsets)
    for _ in range(2):
        shadow.take_later("a", np.array([[2], [2]]), record(np.array(order)[:, None], 0, 0, 0))
        assert shadow.takes[2].tolist() == [7, order[1], 0, 0]


def test_a_wave_begins_with_the_cells_of_the_wave_before() -> None:
    kept = dict[str, np.ndarray]()
    first = Shadows(kept, 1)
    first.at("shared", BYTES).cells(np.array([PAGE]), 4)
    first.keep()
    assert Shadows(kept, 1).at("shared", 2 * PAGE).widths.tolist() == [16, 4]
    assert Shadows(kept, 1).at("shared", 5 * PAGE).widths.tolist() == [16, 4, 16, 16, 16]


def test_a_memory_that_has_grown_counts_as_written() -> None:
    shadows = Shadows({}, 1)
    assert not shadows.at("local", PAGE, 4).filled.any()
    assert shadows.at("local", PAGE, 4) is shadows.at("local", PAGE, 4)
    assert shadows.at("local", 2 * PAGE, 4).filled.all()


def test_the_latest_time_of_a_page_stays() -> None:
    """Words of several CTAs in one page, in one access and in two."""
    shadow, words = Shadow(BYTES), Shadow(BYTES).cells(np.array([0, 16, 32]), 16)
    shadow.note_read(np.array([[1], [1], [0]]), words, record(np.array([[9], [4], [3]]), 0, 0, 0), 10)
    shadow.note_read(np.array([[1]]), words[:1], record(7, 0, 0, 0), 10)
    assert shadow.reads[:2, 0].tolist() == [3, 9]
    assert [int(times(shadow.read[1, cell])) for cell in (0, 1)] == [7, 4]


def test_rows_and_columns_are_cells_of_four_bytes() -> None:
    """128 rows of 512 columns, as tensor memory has: one cell each."""
    shadow = Shadows({}, 4).at("tensor", 4 * 128 * 512, 4)
    rows, columns = np.divmod(np.arange(128 * 512), 512)
    assert shadow.cells(4 * (rows * 512 + columns), 4).tolist() == [[cell] for cell in range(128 * 512)]


@pytest.mark.parametrize("seed", range(4))
def test_reads_are_in_the_table_when_it_is_asked_for(seed: int) -> None:
    """Noted reads of warps against a dictionary, whatever comes between: parted cells, reads that all warps
    know of, and more than are kept.
    """
    random, shadow, latest = Random(seed), Shadow(BYTES, most=2), dict[tuple[int, int], int]()
    for time in range(1, 200):
        size, warp = random.choice((4, 16, 16, 16)), random.randrange(5)
        words = np.array([random.randrange(0, BYTES // size) * size for _ in range(random.choice((1, 90)))])
        rows = np.full((len(words), 1), warp)
        shadow.note_read(
            rows, shadow.cells(words, size), np.full((len(words), 1), record(time, 0, 0, 0)), time
        )
        latest |= {(warp, byte): time for word in words.tolist() for byte in range(word, word + size)}
        if random.random() < 0.1:
            shadow.forget_reads(shadow.within(np.array([[16, 64]])))
            latest |= {(row, byte): 0 for row in range(5) for byte in range(16, 64)}
    cells = np.array([cell_of(shadow, byte) for byte in range(BYTES)])
    found = times(shadow.read[:, cells])
    assert all(int(found[warp, byte]) == time for (warp, byte), time in latest.items())
    assert np.count_nonzero(found) == np.count_nonzero([*latest.values()])


def test_reads_that_all_warps_know_of_need_no_table() -> None:
    shadow, cells = Shadow(BYTES), np.array([[3]])
    shadow.note_read(np.array([[1]]), cells, np.array([[record(5, 0, 0, 0)]]), 10)
    shadow.forget_noted()
    assert shadow.reads[1, 0] == 5
    assert shadow.read_by(np.array([1]), cells[0]).tolist() == [[0]]
    shadow.note_read(np.array([[1]]), cells, np.array([[record(6, 0, 0, 0)]]), 10)
    assert times(shadow.read_by(np.array([0, 1]), slice(3, 4))).tolist() == [[0], [6]]


def test_a_single_range_has_the_cells_that_it_has_among_others() -> None:
    rng, shadow = np.random.default_rng(3), Shadow(5 * PAGE)
    for _ in range(300):
        size = int(rng.choice([1, 2, 4, 8, 16], p=[0.01, 0.02, 0.1, 0.17, 0.7]))
        first, past = np.sort(rng.choice(5 * PAGE // size + 1, 2, replace=False)) * size
        alone = shadow.spans(np.array([[first, past]]))
        assert alone == shadow.spans(np.array([[first, past], [0, 16]]))[:1]
        assert alone == [
            (shadow.within(np.array([[first, past]]))[0], shadow.within(np.array([[first, past]]))[-1] + 1)
        ]
        assert int(shadow.bytes_of(alone[0][0])) == first
