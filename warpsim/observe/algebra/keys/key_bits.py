"""Integers as bits: a key for each bit of an element of an integer array, which shifts and masks move.

Bits of a value are a row of 33 keys, of two's complement, extended: so int32 and uint32 both have a sign. An
array of integers is a leaf: the bits of its elements are made of its name and the index whenever they are
asked for; the rows of values that statements make are kept. Does not know registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .finite_fields import ONE, ZERO, Keys, add, inv, key_of, mul, neg, random_keys, sub, total

WIDTH = 33
LEAF = 32  # bits of an element of an array that have keys
_U = np.uint64
_ONE = _U(ONE)
Mask = npt.NDArray[np.bool_]
WEIGHTS = np.array([key_of(1 << bit) for bit in range(WIDTH + 1)], _U)


def weighted(rows: Keys, *, signed: bool = False) -> Keys:
    """Return ``(n,)``: the integers of bits ``(n, width)``, the lowest first."""
    width = rows.shape[1]
    used = np.flatnonzero(rows.any(axis=0)) if len(rows) else np.arange(0)
    weights = WEIGHTS[:width].copy()
    if signed:
        weights[-1] = neg(weights[-1])
    if not used.size:
        return np.zeros(len(rows), _U)
    return total(mul(rows[:, used], weights[used]), 1)


def extended(rows: Keys, *, signed: bool) -> Keys:
    """Return ``(n, 33)``: bits of a narrower integer, extended by its sign or by zeros."""
    missing = WIDTH - rows.shape[1]
    if not missing:
        return rows
    more = np.repeat(rows[:, -1:], missing, 1) if signed else np.zeros((len(rows), missing), _U)
    return np.concatenate([rows, more], axis=1)


def constant_rows(values: npt.NDArray[Any], width: int = WIDTH) -> Keys:
    """Return ``(n, width)``: the bits of unsigned integers."""
    bits = values.astype(_U)[:, None] >> np.arange(width, dtype=_U) & _U(1)
    return bits * _ONE


@dataclass(frozen=True, eq=False)
class Leaf:
    """An array of integers: ``keys (n,)`` of its elements. All bits but the highest have random keys,
    and that of the highest follows.
    """

    name: str
    seed: int
    width: int
    signed: bool
    keys: Keys
    order: npt.NDArray[np.intp]

    @classmethod
    def of(cls, name: str, seed: int, count: int, width: int, *, signed: bool) -> Leaf:
        """Return the leaf of so many elements of so many bits."""
        keys = random_keys(seed, name, np.arange(count))
        return cls(name, seed, min(width, LEAF), signed, keys, np.argsort(keys))

    def rows(self, index: npt.NDArray[np.intp]) -> Keys:
        """Return ``(n, 33)``: the bits of some elements."""
        top = self.width - 1
        low = random_keys(self.seed, f"{self.name} bits", index[:, None] * 64 + np.arange(top))
        weight = neg(WEIGHTS[top]) if self.signed else WEIGHTS[top]
        highest = mul(sub(self.keys[index], weighted(low)), inv(weight))
        return extended(np.concatenate([low, highest[:, None]], axis=1), signed=self.signed)

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.intp], Mask]:
        """Return the index of elements by key, and whether they are elements."""
        place = np.minimum(np.searchsorted(self.keys, keys, sorter=self.order), len(self.order) - 1)
        index = self.order[place]
        return index, self.keys[index] == keys


class HasBits(Protocol):
    """Keys whose bits are made when they are asked for."""

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.intp], Mask]:
        """Return numbers of keys, and whether they are among these."""

    def rows(self, index: npt.NDArray[np.intp]) -> Keys:
        """Return ``(n, 33)``: the bits of some, by number."""


class BitTable:
    """The bits of values, by key."""

    def __init__(self) -> None:
        self.leaves = list[HasBits]()
        self._places = dict[int, int]()
        self._rows = np.zeros((1024, WIDTH), _U)
        self._count = 0

    def rows(self, keys: Keys) -> tuple[Keys, Mask]:
        """Return ``(n, 33)`` bits, and for which of the keys ``(n,)`` they are known."""
        unique, inverse = np.unique(keys, return_inverse=True)
        get = self._places.get
        places = np.array([get(key, -1) for key in unique.tolist()], np.intp)
        missing = np.flatnonzero(places < 0)
        if missing.size:
            places[missing] = self._look_up(unique[missing])
        known = places >= 0
        return self._rows[np.maximum(places, 0)][inverse], known[inverse]

    def of_leaf(self, keys: Keys) -> Mask:
        """Return which keys are elements of arrays."""
        found = np.zeros(keys.shape, np.bool_)
        for leaf in self.leaves:
            found |= leaf.find(keys)[1]
        return found

    def _look_up(self, keys: Keys) -> npt.NDArray[np.intp]:
        """Return the places of elements of leaves, now kept; -2 for others, which is kept, too."""
        places = np.full(len(keys), -2, np.intp)
        for leaf in self.leaves:
            index, found = leaf.find(keys)
            if found.any():
                places[found] = self._add(leaf.rows(index[found]))
        self._places.update(zip(keys.tolist(), places.tolist(), strict=True))
        return places

    def _add(self, rows: Keys) -> npt.NDArray[np.intp]:
        first, past = self._count, self._count + len(rows)
        if past > len(self._rows):
            grown = np.zeros((max(2 * len(self._rows), past), WIDTH), _U)
            grown[:first] = self._rows[:first]
            self._rows = grown
        self._rows[first:past] = rows
        self._count = past
        return np.arange(first, past)

    def number(self, rows: Keys, *, signed: bool = False) -> Keys:
        """Return the integers of bits ``(n, at most 32)``, whose bits are known from now on."""
        if len(rows) > 1 and (rows == rows[0]).all():
            return np.broadcast_to(self._number(rows[:1], signed), (len(rows),))
        return self._number(rows, signed)

    def _number(self, rows: Keys, signed: bool) -> Keys:
        keys = weighted(rows, signed=signed)
        self.keep(keys, rows, signed=signed)
        return keys

    def keep(self, keys: Keys, rows: Keys, *, signed: bool) -> None:
        """Know the bits ``(n, at most 33)`` of integers by key."""
        unique, first = np.unique(keys, return_index=True)
        fresh = [place for place, key in enumerate(unique.tolist()) if self._places.get(key, -1) < 0]
        if fresh:
            places = self._add(extended(rows[first[fresh]], signed=signed))
            self._places.update(zip(unique[fresh].tolist(), places.tolist(), strict=True))


# --- logic ---------------------------------------------------------------------------------------------


def conjunction(a: Keys, b: Keys) -> Keys:
    """Return a and b: the product of independent bits."""
    simple = np.where(a == b, a, np.where(a == _ONE, b, np.where(b == _ONE, a, _U(ZERO))))
    open_ = (a != b) & (a != _ONE) & (b != _ONE) & (a != ZERO) & (b != ZERO)
    if open_.any():
        first, second = a[open_], b[open_]
        simple[open_] = np.where(first == complement(second), _U(ZERO), mul(first, second))
    return simple


def complement(a: Keys) -> Keys:
    """Return not a."""
    return sub(_ONE, a)


TABLES = {"and": 0xC0, "or": 0xFC, "xor": 0x3C, "not": 0x0F}  # as lop3 counts, of the first operands


def shifted(rows: Keys, amounts: npt.NDArray[Any], *, left: bool, signed: bool) -> Keys:
    """Return bits ``(n, width)`` moved by an amount each: to the right, those above are the sign or zeros."""
    found, width = np.zeros_like(rows), rows.shape[1]
    for amount in np.unique(amounts).tolist():
        some, kept = amounts == amount, max(width - amount, 0)
        if left:
            found[some, width - kept :] = rows[some, :kept]
        else:
            found[some, :kept] = rows[some, width - kept :]
            found[some, kept:] = rows[some, -1:] if signed else _U(ZERO)
    return found


def chosen_by_table(table: int, operands: Sequence[Keys]) -> Keys:
    """Return the bits ``(n, width)`` that a table of eight bits gives for those of up to three values, as
    lop3 has it.
    """
    found: Keys = np.zeros(operands[0].shape, _U)
    operands = [*operands, *[np.zeros_like(found[:1])] * (3 - len(operands))]
    fixed = [(rows == rows[:1]).all(0) & ((rows[0] == ZERO) | (rows[0] == _ONE)) for rows in operands]
    for column in range(len(fixed[0])):
        free = [place for place in range(3) if not fixed[place][column]]
        if len(free) < 2:
            found[:, column] = _of_one(table, operands, column, free)
        else:
            found[:, column] = _minterms(table, [rows[:, column] for rows in operands])
    return found


def _of_one(table: int, operands: Sequence[Keys], column: int, free: list[int]) -> Keys:
    """Return a column of bits that depends on at most one operand: 0, 1, its bits, or their complement."""
    at = sum(
        (4 >> place) * int(rows[0, column] == _ONE)
        for place, rows in enumerate(operands)
        if place not in free
    )
    low, high = table >> at & 1, table >> (at + sum(4 >> place for place in free)) & 1
    if low == high:
        return np.full(len(operands[0]), low * ONE, _U)
    bits = operands[free[0]][:, column]
    return bits if high else complement(bits)


def _minterms(table: int, bits: Sequence[Keys]) -> Keys:
    a, b, c = bits
    found = np.zeros(a.shape, _U)
    for place in range(8):
        if table >> place & 1:
            terms = [x if place >> shift & 1 else complement(x) for x, shift in ((a, 2), (b, 1), (c, 0))]
            found = add(found, conjunction(conjunction(terms[0], terms[1]), terms[2]))
    return found
