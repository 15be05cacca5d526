"""Laws of keys: fields, the exponential, hashes; constants and bits against plain integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest

from warpsim.observe.algebra.keys import finite_fields as fields
from warpsim.observe.algebra.keys import key_bits
from warpsim.observe.algebra.keys.constant_keys import LOG2E, ConstantKeys, integer_keys
from warpsim.observe.algebra.keys.finite_fields import Keys, P, Q
from warpsim.observe.algebra.keys.key_index import KeyIndex

A, B, C = (fields.random_keys(1, name, np.arange(500)) for name in "abc")


def naive(function: Callable[..., int], *keys: Keys) -> list[int]:
    """A function of plain integers modulo Q and P."""
    rows = zip(*(each.tolist() for each in keys), strict=True)
    halves = [([x >> 32 for x in row], [x & 0xFFFFFFFF for x in row]) for row in rows]
    return [function(*high) % Q << 32 | function(*low) % P for high, low in halves]


def test_primes() -> None:
    assert all(pow(base, number - 1, number) == 1 for number in (P, Q) for base in (2, 3, 5, 7))
    assert (P - 1) % Q == 0
    assert pow(fields.W, Q, P) == 1 != fields.W


@pytest.mark.parametrize(
    ("operation", "plain"),
    [
        (fields.add, lambda a, b: a + b),
        (fields.sub, lambda a, b: a - b),
        (fields.mul, lambda a, b: a * b),
    ],
)
def test_operations_are_those_of_integers(
    operation: Callable[..., Keys], plain: Callable[[int, int], int]
) -> None:
    assert operation(A, B).tolist() == naive(plain, A, B)


def test_fields() -> None:
    zero, one = np.zeros(500, np.uint64), np.full(500, fields.ONE, np.uint64)
    assert (fields.add(A, fields.neg(A)) == zero).all()
    assert (fields.mul(A, fields.inv(A)) == one).all()
    assert (fields.inv(zero) == zero).all()
    left = fields.mul(fields.add(A, B), C)
    assert (left == fields.add(fields.mul(A, C), fields.mul(B, C))).all()
    assert (fields.power(A, 5) == fields.mul(fields.power(A, 2), fields.power(A, 3))).all()
    assert (fields.power(A, -2) == fields.inv(fields.mul(A, A))).all()


def test_sums_and_products_of_matrices() -> None:
    a, b = A[:480].reshape(2, 12, 20), B[:480].reshape(2, 20, 12)
    terms = [fields.mul(a[:, :, k, None], b[:, None, k]) for k in range(20)]
    assert (fields.matmul(a, b) == reduce(fields.add, terms)).all()
    assert (fields.total(a, -1) == reduce(fields.add, np.moveaxis(a, -1, 0))).all()
    largest = np.full((1, 4096), (Q - 1) << 32 | (P - 1), np.uint64)
    assert fields.matmul(largest, largest.T).item() == fields.key_of(4096)


@pytest.mark.parametrize("shape", [(3, 16, 16, 8), (2, 5, 33, 7), (2, 3, 0, 5), (1, 1, 600, 1)])
def test_compiled_products_are_those_of_numpy(
    shape: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    e, m, k, n = shape
    a, b = (fields.random_keys(1, name, np.arange(e * m * k * n)) for name in "ab")
    a[::3], b[::5] = fields.exp2(a[::3]), 0
    a, b = a[: e * m * k].reshape(e, m, k), b[: e * k * n].reshape(e, k, n)
    a[:1, :1] = (Q - 1) << 32 | (P - 1)
    found = list[Keys]()
    for many in (0, 1 << 60):
        monkeypatch.setattr(fields._BUDGET, "many", many)
        monkeypatch.setattr(fields._BUDGET, "small", {})
        found.append(fields.matmul(a, b))
    terms = [fields.mul(a[:, :, i, None], b[:, None, i]) for i in range(k)]
    assert (found[0] == found[1]).all()
    assert (found[0] == reduce(fields.add, terms, np.zeros((e, m, n), np.uint64))).all()
    monkeypatch.setattr(fields, "_LARGE", 0)
    assert (fields.matmul(a, b) == found[0]).all()


def test_exponential_is_a_homomorphism() -> None:
    together, apart = fields.exp2(fields.add(A, B)), fields.mul(fields.exp2(A), fields.exp2(B))
    assert fields.equal(together, apart).all()
    assert fields.is_exponential(together).all()
    assert fields.exp2(np.array([0], np.uint64)).item() == fields.ONE
    mixed = fields.add(fields.mul(fields.exp2(A), B), C)
    assert fields.equal(fields.sub(mixed, C), fields.mul(B, fields.exp2(A))).all()
    assert (fields.mul(fields.exp2(A), np.zeros_like(A)) == 0).all()
    assert fields.equal(
        fields.matmul(fields.exp2(A)[None], B[:, None]), fields.total(fields.mul(fields.exp2(A), B), 0)
    ).all()
    assert not fields.equal(fields.exp2(fields.exp2(A)), fields.exp2(A)).any()


def test_hashes_differ_by_name_and_arguments() -> None:
    assert (fields.hashed("f", A) == fields.hashed("f", A)).all()
    assert not (fields.hashed("f", A) == fields.hashed("g", A)).any()
    assert not (fields.hashed("f", A, B) == fields.hashed("f", B, A)).any()
    assert len(np.unique(fields.hashed("f", A))) == len(A)
    assert not (fields.random_keys(2, "a", np.arange(500)) == A).any()


@pytest.mark.parametrize("value", [0.0, 1.0, -3.25, 1e30, 2.0**-149, 1 / 3])
def test_constants_are_rationals(value: float) -> None:
    numerator, denominator = value.as_integer_ratio()
    key = ConstantKeys().keys(np.array([value]), "f64")
    assert (fields.mul(key, fields.key_of(denominator)) == fields.key_of(numerator)).all()


def test_roundings_of_constants_are_these_constants() -> None:
    constants = ConstantKeys()
    for value in (0.044715, np.sqrt(2 / np.pi), np.sqrt(80)):
        constants.note(value)
        exact = constants.keys(np.array(value), "f64")
        assert constants.keys(np.array(np.float32(value)), "f32") == exact
        assert constants.keys(np.array(np.float16(value), np.float64), "f16") == exact
        assert constants.keys(np.array(-np.float32(value)), "f32") == fields.neg(exact)
        assert constants.keys(np.array(np.float32(1 / value)), "f32") == fields.inv(exact)
        scaled = constants.keys(np.array(np.float32(value * np.log2(np.e))), "f32")
        assert scaled == fields.mul(exact, LOG2E)
        other = constants.keys(np.array(np.float32(value * (1 + 1e-5))), "f32")
        assert other not in (exact, fields.neg(exact))
    assert constants.keys(np.array(np.float32(np.log(2)))) == fields.inv(LOG2E)
    assert constants.keys(np.array(np.float32(0.125 * np.log2(np.e)))) == fields.mul(
        constants.keys(np.array(0.125)), LOG2E
    )


def test_infinities_and_nan_have_keys_of_their_own() -> None:
    keys = ConstantKeys().keys(np.array([np.inf, -np.inf, np.nan, 1.0]), "f32")
    assert len(set(keys.tolist())) == 4
    assert fields.add(keys[0], keys[1]) == 0


@pytest.mark.parametrize("signed", [True, False])
def test_integers_are_sums_of_their_bits(signed: bool) -> None:
    leaf = key_bits.Leaf.of("x", 1, 300, 8, signed=signed)
    rows = leaf.rows(np.arange(300))
    assert (key_bits.weighted(rows[:, :8], signed=signed) == leaf.keys).all()
    assert (key_bits.weighted(rows, signed=True) == leaf.keys).all()
    table = key_bits.BitTable()
    table.leaves.append(leaf)
    found, known = table.rows(leaf.keys[::-1])
    assert known.all()
    assert (found == rows[::-1]).all()
    assert not table.rows(A)[1].any()
    values = np.arange(-200, 200)
    constant = key_bits.constant_rows(values.astype(np.int64).view(np.uint64))
    assert (key_bits.weighted(constant, signed=True) == integer_keys(values)).all()


@pytest.mark.parametrize("table", [0xC0, 0xEA, 0x96, 0xE8, 0x1B, 0xFF])
def test_tables_of_three_bits_are_those_of_integers(table: int) -> None:
    a, b, c = (np.random.default_rng(n).integers(0, 256, 64) for n in range(3))
    rows = [key_bits.constant_rows(x.astype(np.uint64), 8) for x in (a, b, np.full(64, 0x3C))]
    c = np.full(64, 0x3C)
    expected = np.zeros(64, int)
    for place in range(8):
        if table >> place & 1:
            terms = [x if place >> shift & 1 else ~x for x, shift in ((a, 2), (b, 1), (c, 0))]
            expected |= terms[0] & terms[1] & terms[2]
    found = key_bits.chosen_by_table(table, rows)
    assert (found == key_bits.constant_rows((expected & 255).astype(np.uint64), 8)).all()


def test_logic_of_equal_and_opposite_bits() -> None:
    bits = A[:8, None]
    assert (key_bits.conjunction(bits, bits) == bits).all()
    assert (key_bits.conjunction(bits, key_bits.complement(bits)) == 0).all()
    assert not key_bits.chosen_by_table(key_bits.TABLES["xor"], [bits, bits]).any()
    assert (key_bits.chosen_by_table(key_bits.TABLES["or"], [bits, bits]) == bits).all()


def test_keys_are_found_in_the_first_array_that_has_them() -> None:
    arrays = [np.zeros((0, 2)), np.array([3, 5]), np.zeros(0), np.array([[7, 3], [9, 7]])]
    index = KeyIndex([array.astype(np.uint64) for array in arrays])
    assert [index.find(key) for key in (3, 5, 7, 9)] == [(1, (0,)), (1, (1,)), (3, (0, 0)), (3, (1, 0))]
    assert [index.find(key) for key in (0, 4, 10)] == [None, None, None]
    assert KeyIndex([]).find(3) is None
