"""Tiles in the making: operands in which every output is a case of its own.

A row of A is shared by all outputs of a row, a column of B by all of a column, C by none. So a draft works
with *slots*: positions along k that mean the same in every row and column of a tile. Row i multiplies all
its slots by ``2**row_shift[i]``, column j by ``2**column_shift[j]``: in output (i, j) every product is
moved by the same ``row_shift[i] + column_shift[j]``, so that the differences between slots, which are what
alignment is about, hold in all ``m * n`` outputs. What a row may vary besides (gaps, fractions, signs, a
slot left out) it varies alone; C is then set for each output, from the exponents that its products have.

Sparse A is drafted as stored, with one pattern of metadata for all rows of a tile (another in each tile),
so that slots are the same rows of B for all; ``free`` drafts, which need no slots, have metadata row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....isa.formats import Format
from ....isa.rules import ScaledGroups
from ..sums.exact_numbers import Array, decode
from ..sums.limits import Limits, top_exponent
from .corner_codes import Rng, encode, fractions, signs, zeros


class Draft:
    """``count`` tiles of one instruction; zeros at first, scales of about 1.

    ``a (count, m, s)``, ``b (count, s or k, n)``, ``c (count, m, n)``, ``scale_a (count, m, chunks)`` and
    ``scale_b (count, chunks, n)`` are codes. A ``plain`` draft is placed with the first of everything.
    """

    plain = False

    def __init__(self, limits: Limits, count: int, rng: Rng, *, free: bool = False, shift: int = 2) -> None:
        form = limits.instruction
        self.limits, self.count, self.rng = limits, count, rng
        self.m, self.n, self.k = form.shape.m, form.shape.n, form.stored_k
        self.a = zeros(form.a, (count, self.m, self.k), rng)
        self.b = zeros(form.b, (count, form.shape.k if free else self.k, self.n), rng)
        self.c = zeros(form.c, (count, self.m, self.n), rng)
        self.row_shift = rng.integers(-shift, shift + 1, (count, self.m))
        self.column_shift = rng.integers(-shift, shift + 1, (count, self.n))
        still = rng.random(count) < 0.5  # so that slots at the end of a range stay there
        self.row_shift[still] = 0
        self.column_shift[still] = 0
        self.scale_a: Array | None = None
        self.scale_b: Array | None = None
        self.lift = np.zeros((count, max(form.scale_chunks, 1)), np.int64)
        if form.scale is not None:
            self.set_scales(rng.integers(-3, 4, self.lift.shape))

    # --- slots ---

    def tiles(self, *axes: int) -> tuple[int, ...]:
        """Return the shape of one value a tile, with more axes."""
        return (self.count, *axes)

    def signs(self) -> Array:
        """Return a sign for each tile."""
        return signs((self.count,), self.rng)

    def chosen(self, probability: float) -> Array:
        """Return some of the tiles."""
        return self.rng.random(self.count) < probability

    def slots(self, amount: int, *, anywhere: float = 0.2) -> list[Array]:
        """Return different positions for each tile, of one aligned sum unless ``anywhere``; the last
        repeat the first where a sum has too few."""
        groups, rng = self.limits.groups, self.rng
        if isinstance(self.limits.rule, ScaledGroups):
            groups = groups * 0
        found = np.empty((amount, self.count), np.int64)
        for tile in range(self.count):
            group = rng.integers(0, groups.max() + 1)
            inside = np.flatnonzero(groups == group)
            pool = rng.permutation(np.arange(self.k) if rng.random() < anywhere else inside)
            found[:, tile] = np.resize(pool, amount)
        return list(found)

    def place(
        self,
        slot: Array,
        exponent: Array,
        *,
        plain: bool = False,
        negative: Array | None = None,
        where: Any = True,
    ) -> Array:
        """Put products of ``2**exponent`` into a slot; the exponents that outputs have, ``(count, m, n)``.

        ``exponent`` is ``(count,)`` or ``(count, m)`` and counts no scales. ``plain`` products are powers of
        two, ``negative`` is their sign; rows and columns not in ``where`` ``(count,)`` or ``(count, m)`` keep
        what they have.
        """
        per_row = np.asarray(exponent).reshape(self.count, -1)
        base = per_row[:, 0]
        (low_a, high_a), (low_b, high_b) = (self._range(side, plain, base) for side in "ab")
        least = np.clip(base - high_b, low_a, high_a)
        first = self.rng.integers(least, np.clip(base - low_b, least, high_a), endpoint=True)
        rows = np.clip(first[:, None] + per_row - base[:, None] + self.row_shift, low_a[:, None], high_a)
        columns = np.clip((base - first)[:, None] + self.column_shift, low_b[:, None], high_b)
        sign = self.signs() if negative is None else negative
        own = signs((self.count,), self.rng)
        a = self._codes("a", rows, plain, (sign ^ own)[:, None])
        b = self._codes("b", columns, plain, own[:, None])
        self.write(slot, a, b, where)
        return rows[:, :, None] + columns[:, None, :]

    def write(self, slot: Array, a: Array, b: Array, where: Any = True) -> None:
        """Put codes ``a (count, m)`` and ``b (count, n)`` into a slot."""
        tile = np.arange(self.count)
        mask: Array = np.broadcast_to(
            np.asarray(where).reshape(-1, 1) if np.ndim(where) == 1 else where, a.shape
        )
        self.a[tile, :, slot] = np.where(mask, a, self.a[tile, :, slot])
        touched = mask.any(1)[:, None]
        self.b[tile, slot, :] = np.where(touched, b, self.b[tile, slot, :])

    def oppose(self, slot: Array, other: Array, where: Any = True, last_bit: Any = 0) -> None:
        """Make a slot the negative of another, in all outputs; ``last_bit`` (count, m) changes A by that."""
        tile, element = np.arange(self.count), self.limits.instruction.a
        last = np.asarray(last_bit, np.uint64) << np.uint64(element.ignored_bits)
        flipped = last.astype(element.code_dtype) ^ element.code_dtype.type(element.sign_bit)
        self.write(slot, self.a[tile, :, other] ^ flipped, self.b[tile, other, :], where)

    def _range(self, side: str, plain: bool, base: Array) -> tuple[Array, int]:
        """Return exponents of a factor; subnormal exponents too, where powers of two are needed."""
        element = self.limits.instruction.format(side)
        products = self.limits.instruction.a.minimum_exponent + self.limits.instruction.b.minimum_exponent
        deep = plain & (base < products)
        low = np.where(deep, element.minimum_exponent - element.fraction_bits, element.minimum_exponent)
        return low, top_exponent(element)

    def _codes(self, side: str, exponent: Array, plain: bool, negative: Array) -> Array:
        element = self.limits.instruction.format(side)
        fraction = 0 if plain else fractions(element, exponent.shape, self.rng)
        return encode(element, exponent, fraction, negative)

    # --- scales and C ---

    def set_scales(self, lift: Array, *, plain: bool = True) -> None:
        """Scales whose exponents add up to ``lift (count, chunks)``, as nearly as they can."""
        scale = self.limits.instruction.scale
        if scale is None:
            return
        low, high = scale.minimum_exponent, top_exponent(scale)
        lift = np.broadcast_to(np.clip(lift, 2 * low, 2 * high), self.lift.shape)
        least = np.clip(lift - high, low, high)
        first = self.rng.integers(least, np.clip(lift - low, least, high), endpoint=True)
        second = np.clip(lift - first, low, high)
        self.lift = first + second
        shape_a, shape_b = (self.count, self.m, lift.shape[1]), (self.count, lift.shape[1], self.n)
        fraction = [0 if plain else fractions(scale, shape, self.rng) for shape in (shape_a, shape_b)]
        self.scale_a = encode(scale, np.broadcast_to(first[:, None], shape_a), fraction[0])
        self.scale_b = encode(scale, np.broadcast_to(second[..., None], shape_b), fraction[1])

    def set_c(self, exponent: Any, fraction: Any = 0, negative: Any = False, where: Any = True) -> None:
        """C of given exponents ``(count, m, n)``, or as they broadcast."""
        code = encode(self.limits.instruction.c, exponent, fraction, negative)
        shape = self.c.shape
        mask = np.asarray(where)
        mask = mask.reshape(-1, 1, 1) if mask.ndim == 1 else mask
        self.c = np.where(np.broadcast_to(mask, shape), np.broadcast_to(code, shape), self.c)

    def random_c(self) -> Array:
        """Return a random fraction of C for each output."""
        return fractions(self.limits.instruction.c, self.c.shape, self.rng)

    # --- what it adds up to ---

    def values(self, side: str) -> Array:
        """Return A or B as float64."""
        return _values(getattr(self, side), self.limits.instruction.format(side))

    def sums(self) -> Array:
        """Return the sums of products in float64, ``(count, m, n)``, nearly as the rule makes them."""
        with np.errstate(over="ignore", invalid="ignore"):
            a, b = self.values("a"), self.values("b")
            scale = self.limits.instruction.scale
            if scale is None or self.scale_a is None or self.scale_b is None:
                return _products(a, b)
            width = self.k // self.lift.shape[1]
            a = a * np.repeat(_values(self.scale_a, scale), width, axis=-1)
            return _products(a, b * np.repeat(_values(self.scale_b, scale), width, axis=1))

    def cast_c(self, numbers: Array) -> Array:
        """Return codes of C of float64 numbers, rounded."""
        element = self.limits.instruction.c
        with np.errstate(over="ignore", invalid="ignore"):
            return numbers.astype(element.dtype).view(element.code_dtype)


def _products(a: Array, b: Array) -> Array:
    """Return ``a @ b`` of float64, added in the order of k on every CPU; that of a BLAS is its own."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]))
    for k in range(a.shape[-1]):
        total += a[..., :, k, None] * b[..., k, None, :]
    return total


def _values(codes: Array, element: Format) -> Array:
    number = decode(codes, element)
    value = np.ldexp(number.significand.astype(np.float64), number.scale.astype(np.int32))
    return np.where(number.special == 0, value, 0.0)


def reach(limits: Limits, exponent: Array) -> Array:
    """Return the exponent of scales that brings products of the middle to ``exponent``; 0 without scales."""
    if limits.instruction.scale is None:
        return np.zeros_like(exponent)
    plain = limits.plain_products
    return np.clip(exponent - (plain.low + plain.high) // 2, limits.scales.low, limits.scales.high)
