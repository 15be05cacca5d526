"""What statements of whole warps have in common: their lanes together, registers by warp, results back.

Knows warps and registers; does not know what any statement computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....isa.warps import WARP
from ...run.convergence import EVERYONE, together
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes, Values
from ..statement_binder import Reader, Writer

Warps = npt.NDArray[np.intp]  # their numbers in the wave
Act = Callable[[Wave, DivergentPath, Lanes, Warps], None]


def whole_warps(act: Act) -> Step:
    """Return a step of a statement that all lanes of a warp execute together; ``act`` is called with whole
    warps.

    Lanes of a warp that is not complete wait for the others; that some have exited is undefined behaviour.
    """

    def done(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        act(wave, path, lanes, lanes.warps)

    return lambda wave, path, lanes: together(wave, path, lanes, EVERYONE, done, exited=False)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Sources of one dtype, side by side.

    ``numbers`` are those of the registers, empty where some source is none.
    """

    readers: Sequence[Reader]
    dtype: np.dtype[np.unsignedinteger]
    numbers: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.readers)

    def by_warp(self, wave: Wave, path: DivergentPath, warps: Warps) -> Values:
        """Return ``(warps, 32, n)``."""
        groups = self._read(wave, path).reshape(-1, WARP, len(self.readers))
        return groups if len(warps) == len(groups) else groups[warps]

    def _read(self, wave: Wave, path: DivergentPath) -> Values:
        """Return ``(lanes, n)``; of registers that all lanes have written without a call for each."""
        words = np.empty((wave.lanes, len(self.readers)), self.dtype)
        if self.numbers and not path.frame.partial:
            held = path.frame.values
            try:
                words.T[...] = [held[number] for number in self.numbers]
            except (TypeError, ValueError):  # a register has no value
                pass
            else:
                return words
        for place, read in enumerate(self.readers):
            words[:, place] = read(wave, path)
        return words


def unstack(
    wave: Wave,
    path: DivergentPath,
    lanes: Lanes,
    warps: Warps,
    writers: Iterable[tuple[int, Writer]],
    words: Values,
) -> None:
    """Write columns of ``words (warps, 32, n)`` to registers; ``writers`` are pairs of column and writer."""
    columns = _by_column(wave, warps, words)
    for place, write in writers:
        write(wave, path, lanes, columns[place])


def write_registers(
    wave: Wave,
    path: DivergentPath,
    lanes: Lanes,
    warps: Warps,
    targets: Sequence[int | None],
    words: Values,
) -> None:
    """Write ``words (warps, 32, n)`` to n registers by number; None is a sink."""
    frame, everyone = path.frame, lanes.count == wave.alive
    at_once = everyone and not frame.partial
    for number, column in zip(targets, _by_column(wave, warps, words), strict=True):
        if number is None:
            continue
        if at_once:
            frame.values[number] = column
        else:
            frame.write(number, column, lanes, everyone)


def _by_column(wave: Wave, warps: Warps, words: Values) -> Values:
    """Return ``(n, lanes of the wave)`` of ``words (warps, 32, n)``; other lanes have zeros."""
    if len(words) * WARP != wave.lanes:
        some, words = words, np.zeros((wave.lanes // WARP, *words.shape[1:]), words.dtype)
        words[warps] = some
    return words.reshape(wave.lanes, -1).T.copy()
