"""Where keys stand in arrays: the first place of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .finite_fields import Keys

Index = tuple[int, ...]


class KeyIndex:
    """The keys of arrays, sorted."""

    def __init__(self, arrays: Sequence[Keys]) -> None:
        self._shapes = [np.shape(each) for each in arrays]
        flat = [np.zeros(0, np.uint64), *(np.ravel(each) for each in arrays)]
        self._starts = np.cumsum([len(each) for each in flat])
        self._keys, self._first = np.unique(np.concatenate(flat), return_index=True)

    def find(self, key: int) -> tuple[int, Index] | None:
        """Return the number of the first array that has a key, and the index in it; None for none."""
        place = int(np.searchsorted(self._keys, np.uint64(key)))
        if place == len(self._keys) or int(self._keys[place]) != key:
            return None
        at = int(self._first[place])
        number = int(np.searchsorted(self._starts, at, side="right")) - 1
        index = np.unravel_index(at - int(self._starts[number]), self._shapes[number])
        return number, tuple(map(int, index))
