"""Outputs as a whole: elements that were never stored, that stand elsewhere, or that were stored several
times.

Also the words for a map from indices that were found to indices that belong there. Knows keys and indices;
does not know how values are computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..equivalence import Output
from ..keys.finite_fields import equal, total
from ..keys.key_index import Index
from ..provenance import Stores

_MOST = 4096  # elements that are looked at
_ENOUGH = 8  # elements that are no coincidence, whatever their map


class Whole(NamedTuple):
    """What is wrong with an output as a whole, of how many elements, and the statement that stores them."""

    kind: str
    elements: int
    pc: int
    words: str
    first: Index


def whole_output(output: Output, stores: Sequence[Stores], places: npt.NDArray[np.int64]) -> Whole | None:
    """Return what explains all wrong elements of an output without its formula; None where nothing does."""
    other = np.argwhere(output.other)
    pcs = Counter(output.writers[output.writers >= 0].tolist())
    store = pcs.most_common(1)[0][0] if pcs else -1
    never = output.other & (output.writers < 0)
    if never.sum() == len(other):
        return Whole("never stored", len(other), store, "", output.first(never))
    return _moved(output, other) or _repeated(output, other, stores, places)


def _moved(output: Output, other: npt.NDArray[np.intp]) -> Whole | None:
    """Return that wrong elements are other elements of the result, where a map says which."""
    keys, first, often = np.unique(output.reference, return_index=True, return_counts=True)
    keys, first = keys[(often == 1) & (keys != 0)], first[(often == 1) & (keys != 0)]
    stored = [tuple(map(int, i)) for i in other if output.kernel[tuple(i)] and output.writers[tuple(i)] >= 0]
    own = np.array([output.kernel[index] for index in stored], np.uint64)
    place = np.minimum(np.searchsorted(keys, own), max(len(keys) - 1, 0))
    if not len(keys) or not len(own) or (keys[place] != own).any():
        return None
    found = np.stack(np.unravel_index(first[place], output.reference.shape), -1).tolist()
    pairs = [(tuple(there), here) for there, here in zip(found, stored, strict=True)]
    some = pairs[:: max(len(pairs) // _MOST, 1)]
    words = index_map(some) or _flat_map(some, output.reference.shape)
    if not words and len(pairs) < _ENOUGH:
        return None
    words = words or f"{list(pairs[0][1])} has what belongs to {list(pairs[0][0])}"
    return Whole("moved", len(pairs), int(output.writers[pairs[0][1]]), words, pairs[0][1])


def _flat_map(pairs: Sequence[tuple[Index, Index]], shape: tuple[int, ...]) -> str:
    """Return the distance in memory between indices that were found and those that belong there."""
    found, wanted = (
        np.ravel_multi_index(tuple(np.array(each).T), shape) for each in zip(*pairs, strict=True)
    )
    apart = np.unique(found - wanted)
    return f"in the order of memory: {apart[0]:+d}" if len(apart) == 1 else ""


def _repeated(
    output: Output, other: npt.NDArray[np.intp], stores: Sequence[Stores], places: npt.NDArray[np.int64]
) -> Whole | None:
    """Return that elements were stored several times, and that what was stored adds up to the result."""
    if not stores or output.kernel.shape != places.shape:
        return None
    offsets = np.concatenate([each.offsets for each in stores])
    keys = np.concatenate([each.keys[:, 0] for each in stores])
    pcs = np.repeat([each.pc for each in stores], [len(each.offsets) for each in stores])
    some = [tuple(map(int, index)) for index in other[:: max(len(other) // 64, 1)]]
    last = -1
    for index in some:
        here = np.flatnonzero(offsets == places[index])
        if len(here) < 2 or not equal(total(keys[here], 0), output.reference[index]):
            return None
        last = int(pcs[here[-1]])
    return Whole("stored twice", len(other), last, "", some[0])


# --- maps of indices ---------------------------------------------------------------------------------


def index_map(pairs: Sequence[tuple[Index, Index]]) -> str:
    """Return how indices found follow from those that belong there, in words; "" where no simple map fits."""
    found, wanted = (np.array(each, np.int64) for each in zip(*pairs, strict=True))
    if found.shape[1] == 2 and (found == wanted[:, ::-1]).all():
        return "transposed"
    words = [_along(axis, found[:, axis], wanted[:, axis]) for axis in range(found.shape[1])]
    if all(words):
        return ", ".join(each for each in words if each != "same")
    return ""


def _along(axis: int, found: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> str:
    """Return the map of an index, "same" for none, "" for no simple map."""
    if (found == wanted).all():
        return "same"
    apart = np.unique(found - wanted)
    if len(apart) == 1:
        return f"index {axis}: {apart[0]:+d}"
    flipped = np.unique(found ^ wanted)
    if len(flipped) == 1:
        return f"index {axis}: xor {flipped[0]}"
    if len(np.unique(found)) == 1:
        return f"index {axis}: always {found[0]}"
    for divisor in (2, 4, 8, 16, 32, 64):
        if (found == wanted // divisor).all():
            return f"index {axis}: divided by {divisor}"
        if (found == wanted // divisor * divisor).all():
            return f"index {axis}: rounded down to a multiple of {divisor}"
        if (found == wanted % divisor).all():
            return f"index {axis}: modulo {divisor}"
    if len(apart) == 2 and 0 in apart:
        (other,) = apart[apart != 0]
        return f"index {axis}: {other:+d} in part"
    if len(flipped) == 2 and 0 in flipped:
        (other,) = flipped[flipped != 0]
        return f"index {axis}: xor {other} in part"
    return ""
