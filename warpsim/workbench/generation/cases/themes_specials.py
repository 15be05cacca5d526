"""Themes of infinities and NaNs: operands in which exactly one special value decides the result.

Each theme drafts tiles (see drafts.py) for the arithmetic of an instruction on its target.
"""

from __future__ import annotations

import numpy as np

from ....base.errors import present
from ....isa.formats import Format
from ..sums.exact_numbers import Array
from ..sums.limits import Limits
from .corner_codes import Rng, pick, signs, special_catalogue
from .drafts import Draft
from .themes_operands import spread

_KINDS = (0.3, 0.25, 0.15, 0.3)  # how often a factor stays as it is, is zero, is NaN, is Inf


def sole_causes(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return ordinary tiles with an Inf, a NaN or a zero in one slot or in two; a quarter of C is special
    too.

    Rows and columns have other kinds, so that most outputs have one cause: Inf * 0, NaN * 0, an Inf of
    either sign, alone, against another, or against C.
    """
    d = Draft(limits, count, rng)
    spread(d, 1)
    first, second = _two_places(d)
    _make_special(d, first, d.chosen(1.0))
    _make_special(d, second, d.chosen(0.5))
    _make_c_special(d, 0.3)
    return d


def lone_places(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return one Inf or NaN in each row, in another place in every row; some columns of B are zero.

    Turned about where B is likelier to have an Inf: an Inf in each column of B, some rows of A zero.
    """
    d = Draft(limits, count, rng)
    spread(d, 1)
    form = limits.instruction
    turned = (form.b.has_infinity, form.b.has_nan) > (form.a.has_infinity, form.a.has_nan)
    turned |= form.a.has_infinity and form.b.has_infinity and bool(rng.integers(0, 2))
    side, other = (d.b.swapaxes(1, 2), d.a) if turned else (d.a, d.b.swapaxes(1, 2))
    element, partner = (form.b, form.a) if turned else (form.a, form.b)
    places = np.stack([_ends_first(side.shape[1], d.k, rng) for _ in range(count)])
    tile, line = np.arange(count)[:, None], np.arange(side.shape[1])
    side[tile, line, places] = _specials(element, places.shape, 0.5, rng)
    if partner.fraction_bits:
        other[:] = np.where(signs((*other.shape[:2], 1), rng) & (rng.random((*other.shape[:2], 1)) < 0.4),
                            partner.code_dtype.type(0), other)  # fmt: skip
    return d


def _ends_first(lines: int, places: int, rng: Rng) -> Array:
    """Return a place for each line, the first and the last among them."""
    found = np.resize(rng.permutation(places), lines)
    found[rng.permutation(lines)[:2]] = (0, places - 1)
    return found


def special_scales(limits: Limits, count: int, rng: Rng) -> Draft:
    """Return NaN scales in some rows, or in some columns; in half of the tiles some rows of A are zero."""
    d = Draft(limits, count, rng)
    spread(d, 1)
    form = limits.instruction
    scale = present(form.scale, "scale")
    nan = special_catalogue(scale)
    for side, which in (("scale_a", 0), ("scale_b", 1)):
        codes = present(getattr(d, side), side)
        wanted = (rng.integers(0, 2, count) == which)[:, None, None] & (rng.random(codes.shape) < 0.15)
        setattr(d, side, np.where(wanted, pick(rng, nan, codes.shape), codes))
    empty = d.chosen(0.5)[:, None, None] & (rng.random((count, d.m, 1)) < 0.4)
    d.a = np.where(empty, form.a.code_dtype.type(0), d.a)
    return d


def _two_places(d: Draft) -> tuple[Array, Array]:
    """Return two different slots of each tile, anywhere."""
    chosen = np.stack([np.resize(d.rng.permutation(d.k), 2) for _ in range(d.count)])
    return chosen[:, 0], chosen[:, 1]


def _make_special(d: Draft, slot: Array, where: Array) -> None:
    """Fill a slot with other kinds of factors in every row and column."""
    form, tile = d.limits.instruction, np.arange(d.count)
    a = _kinds(d.a[tile, :, slot], form.a, d.rng)
    b = _kinds(d.b[tile, slot, :], form.b, d.rng)
    d.write(slot, a, b, where)


def _kinds(codes: Array, element: Format, rng: Rng) -> Array:
    """Return codes as they are, zeros of either sign, NaNs and infinities."""
    kind = rng.choice(4, codes.shape, p=_KINDS)
    sign = signs(codes.shape, rng) * element.code_dtype.type(element.sign_bit)
    codes = np.where((kind == 1) & (element.fraction_bits > 0), sign, codes)
    if element.has_nan:
        codes = np.where(kind == 2, _nans(element, codes.shape, rng), codes)
    if element.has_infinity:
        codes = np.where(kind == 3, sign | element.code_dtype.type(element.infinity), codes)
    return codes.astype(element.code_dtype)


def _nans(element: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Return NaNs, of every kind that a format has."""
    every = special_catalogue(element)
    if element.has_infinity:
        magnitude = every & element.code_dtype.type(element.mask & ~element.sign_bit)
        every = every[magnitude >> element.ignored_bits > element.infinity >> element.ignored_bits]
    return pick(rng, every, shape)


def _specials(element: Format, shape: tuple[int, ...], infinite: float, rng: Rng) -> Array:
    """Return infinities of either sign and NaNs, so many infinities where a format has them."""
    sign = signs(shape, rng) * element.code_dtype.type(element.sign_bit)
    nans = _nans(element, shape, rng)
    if not element.has_infinity:
        return nans
    return np.where(rng.random(shape) < infinite, sign | element.code_dtype.type(element.infinity), nans)


def _make_c_special(d: Draft, likely: float) -> None:
    """Make some of C an Inf or a NaN, mostly an Inf."""
    codes: Array = _specials(d.limits.instruction.c, d.c.shape, 0.7, d.rng)
    d.c = np.where(d.rng.random(d.c.shape) < likely, codes, d.c)
