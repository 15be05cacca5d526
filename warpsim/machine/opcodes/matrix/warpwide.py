"""What statements of whole warps have in common: their lanes together, registers by warp, results back.

Knows warps and registers; does not know what any statement computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ....isa.warps import WARP
from ...run.convergence import EVERYONE, together
from ...state.lanes import DivergentPath, Lanes, Values

if TYPE_CHECKING:
    from ...run.wave import Step, Wave
    from ..statement_binder import Reader, Writer

Warps = npt.NDArray[np.intp]  # their numbers in the wave
Act = Callable[["Wave", DivergentPath, Lanes, Warps], None]


def whole_warps(act: Act) -> Step:
    """Return a step of a statement that all lanes of a warp execute together; ``act`` is called with whole
    warps.

    Lanes of a warp that is not complete wait for the others; that some have exited is undefined behaviour.
    """

    def done(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        act(wave, path, lanes, lanes.mask[::WARP].nonzero()[0])

    return lambda wave, path, lanes: together(wave, path, lanes, EVERYONE, done, exited=False)


def by_warp(values: Values, warps: Warps) -> Values:
    """Return ``(warps, 32, ...)`` of an array with a value, or a row, a lane of the wave."""
    groups = values.reshape(-1, WARP, *values.shape[1:])
    return groups if len(warps) == len(groups) else groups[warps]


def stacked(
    wave: Wave,
    path: DivergentPath,
    warps: Warps,
    readers: Sequence[Reader],
    dtype: np.dtype[np.unsignedinteger],
) -> Values:
    """Return ``(warps, 32, readers)``: registers side by side."""
    values = [read(wave, path) for read in readers]
    words = np.empty((wave.lanes, len(readers)), dtype)
    if all(value.ndim for value in values):
        words.T[...] = values  # twice as fast as a loop
    else:
        for place, value in enumerate(values):
            words[:, place] = value
    return by_warp(words, warps)


def unstack(
    wave: Wave,
    path: DivergentPath,
    lanes: Lanes,
    warps: Warps,
    writers: Iterable[tuple[int, Writer]],
    words: Values,
) -> None:
    """Write columns of ``words (warps, 32, n)`` to registers; ``writers`` are pairs of column and writer."""
    if len(words) * WARP != wave.lanes:
        some, words = words, np.zeros((wave.lanes // WARP, *words.shape[1:]), words.dtype)
        words[warps] = some
    columns = words.reshape(wave.lanes, -1).T.copy()
    for place, write in writers:
        write(wave, path, lanes, columns[place])
