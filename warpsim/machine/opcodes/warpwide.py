"""What statements of whole warps have in common: their lanes together, registers by warp, results back.

Knows warps and registers; does not know what any statement computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..lanes import Front, Lanes, Values
from ..together import EVERYONE, together

if TYPE_CHECKING:
    from ..site import Reader, Writer
    from ..wave import Step, Wave

WARP = 32
Warps = npt.NDArray[np.intp]  # their numbers in the wave
Act = Callable[["Wave", Front, Lanes, Warps], None]


def whole_warps(act: Act) -> Step:
    """A step of a statement that all lanes of a warp execute together; ``act`` is called with whole warps.

    Lanes of a warp that is not complete wait for the others; that some have exited is undefined behaviour.
    """

    def done(wave: Wave, front: Front, lanes: Lanes) -> None:
        act(wave, front, lanes, np.flatnonzero(lanes.mask[::WARP]))

    return lambda wave, front, lanes: together(wave, front, lanes, EVERYONE, done, exited=False)


def by_warp(values: Values, warps: Warps) -> Values:
    """``(warps, 32, ...)`` of an array with a value, or a row, a lane of the wave."""
    groups = values.reshape(-1, WARP, *values.shape[1:])
    return groups if len(warps) == len(groups) else groups[warps]


def stacked(
    wave: Wave, front: Front, warps: Warps, readers: Sequence[Reader], dtype: np.dtype[np.unsignedinteger]
) -> Values:
    """``(warps, 32, readers)``: registers side by side."""
    words = np.empty((wave.lanes, len(readers)), dtype)
    for place, read in enumerate(readers):
        words[:, place] = read(wave, front)
    return by_warp(words, warps)


def unstack(
    wave: Wave, front: Front, lanes: Lanes, warps: Warps, writers: Iterable[tuple[int, Writer]], words: Values
) -> None:
    """Write columns of ``words (warps, 32, n)`` to registers; ``writers`` are pairs of column and writer."""
    for place, write in writers:
        column = words[..., place]
        if column.size == wave.lanes:
            full = np.ascontiguousarray(column).reshape(-1)
        else:
            full = np.zeros((wave.lanes // WARP, WARP), words.dtype)
            full[warps] = column
            full = full.reshape(-1)
        write(wave, front, lanes, full)
