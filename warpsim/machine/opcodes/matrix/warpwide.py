"""What statements of whole warps have in common: their lanes together, registers by warp, results back.

Knows warps and registers; does not know what any statement computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....isa.warps import WARP
from ...run.convergence import EVERYONE, together
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Frame, Lanes, Values
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
        """Return ``(warps, 32, n)``, which lies in memory as ``(n, warps, 32)``."""
        held = self._source_values(path)
        every = len(warps) * WARP == wave.lanes
        if held is not None:
            words = np.concatenate(held, axis=None, dtype=self.dtype, casting="unsafe")
            groups = words.reshape(len(self.readers), -1, WARP)
            some = groups if every else np.ascontiguousarray(groups[:, _in_a_row(warps)])
            return some.transpose(1, 2, 0)
        words = np.empty((len(self.readers), wave.lanes), self.dtype)
        for place, read in enumerate(self.readers):
            words[place] = read(wave, path)
        groups = words.reshape(len(self.readers), -1, WARP)
        return (groups if every else groups[:, warps]).transpose(1, 2, 0)

    def _source_values(self, path: DivergentPath) -> list[Values] | None:
        """Return the values of all sources where they are registers that the lanes have written."""
        frame = path.frame
        if not self.numbers:
            return None
        if frame.partial:
            some = [frame.partial[number] for number in self.numbers if number in frame.partial]
            if not all(path.lanes.within(written) for written in {id(mask): mask for mask in some}.values()):
                return None
        held = [value for number in self.numbers if (value := frame.values[number]) is not None]
        return held if len(held) == len(self.numbers) else None


def _in_a_row(warps: Warps) -> Warps | slice:
    """Return warps as a slice where their numbers follow each other: that makes views."""
    first, last = int(warps[0]), int(warps[-1])
    return slice(first, last + 1) if last - first == len(warps) - 1 else warps


class Roles:
    """The sources of several operands, of one dtype, which are read together."""

    def __init__(self, columns: Mapping[str, Columns]) -> None:
        self._parts = dict[str, slice]()
        readers, numbers = list[Reader](), list[int]()
        for role, each in columns.items():
            self._parts[role] = slice(len(readers), len(readers) + len(each))
            readers += each.readers
            numbers += each.numbers
        (dtype,) = {each.dtype for each in columns.values()}
        self._columns = Columns(readers, dtype, tuple(numbers) if len(numbers) == len(readers) else ())
        self.dtype, self.numbers = dtype, self._columns.numbers

    def by_warp(self, wave: Wave, path: DivergentPath, warps: Warps) -> dict[str, Values]:
        """Return ``(warps, 32, n)`` of each operand, which lies in memory as ``(n, warps, 32)``."""
        return self.parts_of(self._columns.by_warp(wave, path, warps))

    def parts_of(self, words: Values) -> dict[str, Values]:
        """Return the part of each operand of ``(warps, 32, all registers)``."""
        return {role: words[:, :, part] for role, part in self._parts.items()}


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
    if not everyone and _write_some(frame, lanes, warps, targets, words):
        return
    at_once = everyone and not frame.partial
    for number, column in zip(targets, _by_column(wave, warps, words), strict=True):
        if number is None:
            continue
        if at_once:
            frame.values[number] = column
        else:
            frame.write(number, column, lanes, everyone)


def _write_some(
    frame: Frame, lanes: Lanes, warps: Warps, targets: Sequence[int | None], words: Values
) -> bool:
    """Write words to registers of whole warps, all registers at once; false where some hold nothing yet."""
    held = [None if number is None else frame.values[number] for number in targets]
    known = [value for value in held if value is not None]
    if len(known) < len(held) or lanes.count != len(warps) * WARP:
        return False
    columns = np.concatenate(known).reshape(len(known), -1, WARP)
    columns[:, _in_a_row(warps)] = words.transpose(2, 0, 1)
    frame.replace_several(targets, columns.reshape(len(known), -1), lanes)
    return True


def _by_column(wave: Wave, warps: Warps, words: Values) -> Values:
    """Return ``(n, lanes of the wave)`` of ``words (warps, 32, n)``; other lanes have zeros."""
    columns = words.transpose(2, 0, 1)
    if len(words) * WARP != wave.lanes:
        some, columns = columns, np.zeros((len(columns), wave.lanes // WARP, WARP), words.dtype)
        columns[:, warps] = some
    return np.ascontiguousarray(columns).reshape(len(columns), -1)
