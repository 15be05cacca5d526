"""Cells: numbers of a type from bytes with keys; memories that move them."""

from __future__ import annotations

import numpy as np

from warpsim.observe.algebra.keys import finite_fields as fields
from warpsim.observe.algebra.keys.key_bits import Leaf
from warpsim.observe.algebra.keys.key_cells import Cells, MemoryCells
from warpsim.observe.algebra.keys.key_reading import KeyReader

N = 40
KEYS, OTHERS = (fields.random_keys(1, name, np.arange(N)) for name in ("x", "y"))
ZERO = np.zeros(N, np.uint32)


def _leaf(reader: KeyReader, *, signed: bool, width: int = 8) -> Leaf:
    leaf = Leaf.of("q", 1, N, width, signed=signed)
    reader.bits.leaves.append(leaf)
    return leaf


def test_whole_numbers_and_constants() -> None:
    reader, halves = KeyReader(1), Cells.joined([Cells.of(KEYS, "f16", 2), Cells.of(OTHERS, "f16", 2)])
    assert (reader.read(halves, ZERO, "f16", 2) == KEYS).all()
    assert (reader.read(halves, ZERO, "f16", 2, 2) == OTHERS).all()
    some = halves.merged(np.arange(N) % 2 == 0, Cells.empty(4, N))
    one = np.full(N, 0x3C00, np.uint32)
    assert (reader.read(some, one, "f16", 2)[1::2] == fields.ONE).all()
    assert (reader.read(some, one, "f16", 2)[::2] == KEYS[::2]).all()


def test_halves_read_as_others_are_no_formula() -> None:
    reader, halves = KeyReader(1), Cells.joined([Cells.of(KEYS, "f16", 2), Cells.of(OTHERS, "f16", 2)])
    for kind, size, place in (("bf16", 2, 0), ("f16", 2, 1), ("f32", 4, 0), ("u", 4, 0)):
        found = reader.read(halves, ZERO, kind, size, place)
        assert not np.isin(found, [KEYS, OTHERS]).any()


def test_bf16_is_the_upper_half_of_f32() -> None:
    reader = KeyReader(1)
    wide = Cells.joined([Cells.empty(2, N), Cells.of(KEYS, "bf16", 2)])
    assert (reader.read(wide, ZERO, "f32", 4) == KEYS).all()
    assert not (reader.read(wide, ZERO + np.uint32(1), "f32", 4) == KEYS).any()
    assert (reader.read(Cells.of(KEYS, "f32", 4), ZERO, "bf16", 2, 2) == KEYS).all()


def test_integers_of_another_sign_and_width() -> None:
    reader = KeyReader(1)
    leaf, values = _leaf(reader, signed=True), np.arange(-20, 20).astype(np.int8)
    cells, bits = Cells.of(leaf.keys, "s", 1), values.view(np.uint8)
    rows = leaf.rows(np.arange(N))
    unsigned = reader.read(cells, bits, "u", 1)
    assert (unsigned == np.where(values < 0, fields.add(leaf.keys, fields.key_of(256)), leaf.keys)).all()
    assert (reader.read(Cells.of(unsigned, "u", 1), bits, "s", 1) == leaf.keys).all()
    assert (reader.bits.rows(unsigned)[0][:, :8] == rows[:, :8]).all()
    four = Cells.joined([cells] * 4)
    word = np.repeat(bits[:, None], 4, 1).copy().view(np.uint32)[:, 0]
    assert (reader.read(four, word, "s", 1, 3) == leaf.keys).all()
    low, known = reader.rows(four, word, 4)
    assert known.all()
    assert (reader.bits.number(low[:, 8:12]) == reader.bits.number(rows[:, :4])).all()


def test_integers_of_unknown_bits_fit_or_do_not() -> None:
    reader, values = KeyReader(1), np.array([5, -3, 200, 1000] * 10, np.int32)
    cells, bits = Cells.of(KEYS, "s", 4), values.view(np.uint32)
    byte = reader.read(cells, bits, "u", 1)
    assert (byte[0::4] == KEYS[0::4]).all()
    assert (byte[1::4] == fields.add(KEYS[1::4], fields.key_of(256))).all()
    assert (byte[2::4] == KEYS[2::4]).all()
    assert not np.isin(byte[3::4], KEYS).any()


def test_floats_made_of_bits() -> None:
    reader = KeyReader(1)
    leaf = _leaf(reader, signed=False, width=4)
    rows = np.zeros((N, 32), np.uint64)
    rows[:, :4] = leaf.rows(np.arange(N))[:, :4]
    rows[:, [10, 13, 14]] = fields.ONE
    cells, bits = Cells.of(reader.bits.number(rows), "u", 4), ZERO + np.uint32(0x6400)
    assert (reader.read(cells, bits, "f16", 2) == fields.add(leaf.keys, fields.key_of(1024))).all()


def test_integers_read_as_floats_are_casts() -> None:
    reader = KeyReader(1)
    leaf = _leaf(reader, signed=False, width=16)
    found = reader.read(Cells.of(leaf.keys, "u", 2), np.zeros(N, np.uint16), "bf16", 2)
    assert list(reader.casts) == ["as bf16"]
    assert (found == fields.hashed("as bf16", leaf.keys)).all()
    nibbles = reader.nibbles(Cells.of(leaf.keys, "u", 2), np.zeros(N, np.uint16), "e2m1", 0)
    assert not (nibbles[0] == nibbles[1]).any()


def test_pairs_of_four_bits() -> None:
    reader = KeyReader(1)
    cells = Cells.of(reader.paired(KEYS, OTHERS), "e2m1", 1)
    assert (reader.nibbles(cells, np.zeros(N, np.uint8), "e2m1", 0) == [KEYS, OTHERS]).all()


def test_memories_move_cells_and_know_writers() -> None:
    memory = MemoryCells(np.zeros(1024, np.uint8))
    offsets = np.arange(N) * 4
    cells = Cells.of(KEYS, "f32", 4)
    memory.store(offsets, 4, cells, 17)
    found = memory.load(offsets[::-1], 4)
    assert found is not None
    assert (found.kind, found.size) == ("f32", 4)
    assert (found.keys[0] == KEYS[::-1]).all()
    assert (memory.writers[offsets[:, None] + np.arange(4)] == 17).all()
    halves = memory.load(offsets + 2, 4)
    assert halves is not None
    assert not halves.kind
    memory.store(offsets[:1], 4, None, 18)
    assert memory.load(offsets[:1], 4) is None
    assert memory.writers[offsets[:2]].tolist() == [18, 17]
