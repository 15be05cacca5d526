"""How near an explanation comes to D where it does not give every bit: in ulps, and by rank.

Knows codes of one format; does not know mistakes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.codes import integers, values_of
from ...isa.formats import Format
from .dump_comparison import places_of

Codes = npt.NDArray[Any]
Numbers = npt.NDArray[np.float64]

_INTEGER_BITS = 16  # an integer that is off by so many bits says nothing


def closeness(x: Codes, y: Codes, element: Format) -> Numbers:
    """Return ``(...)``: 1 for equal codes, less with each bit of the distance in ulps, 0 if none is left."""
    apart = np.abs(places_of(x, element).astype(np.float64) - places_of(y, element))
    bits = element.fraction_bits if element.is_float else _INTEGER_BITS
    near: Numbers = np.clip(1 - np.log2(1 + apart) / bits, 0, 1)
    return near


def rank_correlation(x: Codes, y: Codes, element: Format) -> Numbers:
    """Return ``(...)``: Spearman's coefficient along the last axis; 0 where one side is constant."""
    first, second = (_ranks(np.nan_to_num(numbers(codes, element))) for codes in (x, y))
    first, second = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (first, second))
    size = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    product = (first * second).sum(axis=-1)
    found: Numbers = np.divide(product, size, out=np.zeros_like(product), where=size > 0)
    return found


def numbers(codes: Codes, element: Format) -> Numbers:
    """Return the values of codes as float64, of the same shape."""
    return values_of(codes, element) if element.is_float else integers(codes, element).astype(np.float64)


def _ranks(values: Numbers) -> Numbers:
    """Return places in the order of the values; equal values, such as zeros of a ReLU, share the lowest."""
    order = np.argsort(values, axis=-1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=-1)
    place = np.broadcast_to(np.arange(values.shape[-1], dtype=np.float64), values.shape).copy()
    same = np.zeros(values.shape, np.bool_)
    same[..., 1:] = ranked[..., 1:] == ranked[..., :-1]
    place = np.maximum.accumulate(np.where(same, 0, place), axis=-1)
    ranks = np.empty_like(place)
    np.put_along_axis(ranks, order, place, axis=-1)
    return ranks
