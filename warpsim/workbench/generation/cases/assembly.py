"""Concatenation of sets of cases.

Knows arrays with the cases in front; does not know what they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...vectors.sets import VectorSet
from ..sums.exact_numbers import Array


def joined_arguments(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    """Return arguments of make_vectors, those of all parts in turn."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def joined_sets(parts: Sequence[VectorSet]) -> VectorSet:
    """Return one set of all cases; all parts have one instruction and immediates that vary alike."""
    first = parts[0]
    if len(parts) == 1:
        return first
    immediates = {
        name: np.concatenate(
            [np.broadcast_to(np.asarray(x.immediates[name], np.int8), len(x)) for x in parts]
        )
        for name in first.immediates
    }
    return replace(
        first,
        registers=joined_arguments([dict(part.registers) for part in parts]),
        d=np.concatenate([part.d for part in parts]),
        immediates=immediates,
        descriptors=joined_arguments([dict(part.descriptors) for part in parts]),
        shared=None if first.shared is None else np.concatenate([part.shared for part in parts]),
        labels=tuple(label for part in parts for label in part.labels),
    )
