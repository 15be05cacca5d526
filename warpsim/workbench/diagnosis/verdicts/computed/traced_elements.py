"""Which element of D each element of a computed operand follows: found by giving D other values.

In every run each element of D is low or high by a code of its own, as many high as low in each row, so that
sums and maxima of rows stay as they are. An element that is computed from another has its code. Knows values;
does not know what operands should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..matrix_hooks import MatrixStep
from ..repeated_launch import RepeatedLaunch
from .driven_launch import Place, Seen, driven

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Shape = tuple[int, int]
LEVEL = 4.0  # by which high is above low
_CHECKS = 3  # runs with a hash of the code: what follows several elements has no such code
_TIMES = 4  # executions of a warp that are distinguished
_FACTORS = tuple(np.uint64(value) for value in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))


@dataclass(frozen=True, kw_only=True)
class Source:
    """An element of D: the statement, its execution, row and column."""

    pc: int
    place: Place
    row: int
    column: int


@dataclass(frozen=True, kw_only=True)
class Traced:
    """An operand of one execution: ``sources (outer size, k)``, an index into ``of`` or -1, and ``slope``.

    Outer are rows of A or columns of B. ``slope`` is the natural logarithm of what the operand grows by when
    its source grows by 1.
    """

    sources: npt.NDArray[np.intp]
    of: Sequence[Source]
    slope: float


class Codes:
    """The code of each element of D of some statements, ``shapes`` by statement; different in a CTA."""

    def __init__(self, shapes: Mapping[int, Shape], warps: int) -> None:
        self.shapes = shapes
        rows, columns = (max(shape[axis] for shape in shapes.values()) for axis in (0, 1))
        self._numbers = {pc: number for number, pc in enumerate(sorted(shapes))}
        sizes = {"column": columns, "row": rows, "maker": len(shapes), "warp": warps, "time": _TIMES}
        self._bits = [(name, bit) for name, size in sizes.items() for bit in range((size - 1).bit_length())]
        self.high = cache(self._high)
        self.code = cache(self._code)

    @property
    def runs(self) -> int:
        """Runs in all."""
        return len(self._bits) + _CHECKS

    def _high(self, run: int, pc: int, place: Place) -> Mask:
        """Return ``(rows, columns)``: the elements that are high in a run, half of each row."""
        row, column = np.indices(self.shapes[pc], np.int64)
        if run >= len(self._bits):
            return _hashed(run, pc, place, self.shapes[pc])
        name, bit = self._bits[run]
        numbers: dict[str, Any] = {
            "row": row,
            "maker": self._numbers[pc],
            "warp": place[3],
            "time": place[4] % _TIMES,
        }
        if name == "column":
            return np.asarray((column >> bit & 1) == 1)
        return np.asarray(((numbers[name] >> bit ^ column) & 1) == 1)

    def _code(self, pc: int, place: Place) -> npt.NDArray[np.uint64]:
        return packed(np.stack([self.high(run, pc, place) for run in range(self.runs)]))


def _hashed(run: int, pc: int, place: Place, shape: Shape) -> Mask:
    seed = hash((run, pc, *place)) & 0xFFFFFFFFFFFF
    row, column = np.indices(shape, np.uint64)
    mixed = (row * _FACTORS[0] + column * _FACTORS[1] + np.uint64(seed)) * _FACTORS[2]
    mixed = (mixed ^ mixed >> np.uint64(31)) * _FACTORS[0]
    order = np.argsort(np.argsort(mixed ^ mixed >> np.uint64(29), axis=1), axis=1)
    return np.asarray(order < shape[1] // 2)


def packed(bits: Mask) -> npt.NDArray[np.uint64]:
    """Return ``(rows, columns)``: the bits of all runs ``(runs, rows, columns)`` as a number."""
    weights = np.left_shift(np.uint64(1), np.arange(len(bits), dtype=np.uint64))
    return np.asarray(np.tensordot(weights, bits.astype(np.uint64), axes=1), np.uint64)


def traced_elements(
    launch: RepeatedLaunch, codes: Codes, roles: Mapping[int, str], watched: Mapping[int, Sequence[Place]]
) -> dict[tuple[int, Place], Traced]:
    """Return what the watched operand of each statement follows, a or b by statement.

    Empty where a run with such values does not end.
    """
    wanted = {pc: set(places) for pc, places in watched.items()}
    runs = list[dict[tuple[int, Place], Seen]]()
    for run in range(codes.runs):

        def give(step: MatrixStep, run: int = run) -> Array:
            if step.pc not in codes.shapes:
                return np.ones((len(step.places), *step.shape))
            highs = [codes.high(run, step.pc, tuple(place)) for place in step.places.tolist()]
            return 1.0 + LEVEL * np.array(highs, np.float64)

        seen = driven(launch, give, lambda pc, place: place in wanted.get(pc, ()))
        if seen is None:
            return {}
        runs.append(seen)
    return {key: _traced(codes, roles[key[0]], [run[key] for run in runs], key[1]) for key in runs[0]}


def _traced(codes: Codes, role: str, runs: Sequence[Seen], place: Place) -> Traced:
    """Return what an operand follows: elements of its own warp, or of another of its CTA."""
    values = np.stack([_lines_first(run.operands[role], role) for run in runs])
    low, up = values.min(axis=0), values.max(axis=0)
    code = packed(values > (low + up) / 2)
    latest = [(*key, time) for key, time in runs[0].latest.items() if key[0] in codes.shapes]
    own = [key for key in latest if key[1:5] == place[:4]]
    sources, of = _matched(codes, code, own)
    if (sources < 0).any():
        of_cta = [key for key in latest if key[1:4] == place[:3]]
        sources, of = max(
            (sources, of), _matched(codes, code, of_cta), key=lambda found: (found[0] >= 0).sum()
        )
    sources = np.where(up > low, sources, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.log(up / low) / LEVEL
    known = slopes[(sources >= 0) & np.isfinite(slopes)]
    return Traced(sources=sources, of=of, slope=float(np.median(known)) if known.size else 0.0)


def _lines_first(values: Array, role: str) -> Array:
    """Return an operand as ``(rows of A or columns of B, k)``."""
    return values.T if role == "b" else values


def _matched(
    codes: Codes, code: npt.NDArray[np.uint64], latest: Sequence[tuple[int, ...]]
) -> tuple[npt.NDArray[np.intp], Sequence[Source]]:
    """Return the number of the element that has each code, -1 for none, and the elements."""
    sources, numbers = list[Source](), dict[int, int]()
    for own, source in _elements(codes, latest):
        numbers.setdefault(own, len(sources))
        sources.append(source)
    found = [numbers.get(value, -1) for value in code.reshape(-1).tolist()]
    return np.array(found, np.intp).reshape(code.shape), sources


def _elements(codes: Codes, latest: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, Source]]:
    for pc, *place in latest:
        own = codes.code(pc, tuple(place))
        for row, column in np.ndindex(own.shape):
            yield int(own[row, column]), Source(pc=pc, place=tuple(place), row=row, column=column)
