"""Whether sums of floats in memory, and old values that atom returns, depend on an order PTX leaves open.

Of every addition of a float by atom, red or a reducing copy it is kept where, by which thread, and its value.
Additions to one word are ordered where one thread makes them, or a barrier of the whole CTA is between them.
Where two are not, the sum has the same bits in every order if all partial sums are exact: they are multiples
of the lowest bit of all values, and of p digits if the sum of the magnitudes is less than 2**p such bits.
A word that something else writes in between begins anew. Of other updates, as those of integers, it is kept
whether they change the word: old values depend on the order where threads that nothing orders update a word,
and some of them change it. So does what is left there, where the updates do not commute (exch, cas, inc, dec)
and have other operands. Does not know statements, only where they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...ptx.statements import InstructionStatement
from ..state.lanes import Values
from ..state.side_tables import SideTable
from ..state.spaces import Bytes, Offsets, words_at
from .barriers.cta_barriers import Barriers
from .wave import Wave

Place = tuple[int, int]  # line and column of a statement


def place_of(statement: InstructionStatement) -> Place:
    """Return where a statement stands."""
    location = statement.location()
    return location.line, location.column


NOT_COMMUTING = frozenset({"exch", "cas", "inc", "dec"})
_SPACE_BITS = 44  # of a key below the number of the memory: 0 for global, another for each wave's shared
_MOST = 1 << 18  # rows that are kept before they are folded
_BITS = 62  # statements with a bit each
_NO_BIT = 5000  # the lowest bit of zero: higher than any
_ROW = np.dtype(
    [
        *(("key", "i8"), ("thread", "i8"), ("cta", "i8"), ("barriers", "i8"), ("waits", "i8")),
        *(("old", "f8"), ("now", "f8"), ("lowest", "i8"), ("total", "f8")),
        *(("several", "?"), ("statements", "i8"), ("call", "i8"), ("changed", "?")),
    ]
)
Rows = npt.NDArray[Any]  # of _ROW


class Precision(NamedTuple):
    """Digits of a significand, the exponent of the smallest normal value, and the largest value."""

    digits: int
    smallest: int
    largest: float


PRECISIONS: Mapping[str, Precision] = {
    "f16": Precision(11, -24, 65504.0),  # halves keep subnormals (.noftz), whose digits are all multiples
    "bf16": Precision(8, -133, (2.0 - 2.0**-7) * 2.0**127),
    "f32": Precision(24, -126, (2.0 - 2.0**-23) * 2.0**127),  # global memory flushes subnormals
    "f64": Precision(53, -1074, float(np.finfo(np.float64).max)),
}


@dataclass(frozen=True, kw_only=True)
class OpenAddition:
    """Updates of a statement in an order that is open, on which old values depend: ``words`` whose sum of
    floats depends on it, and whether the operands are ``differing``."""

    words: int
    differing: bool


class Adder(NamedTuple):
    """A lane whose copy adds when it is complete, and how often it had waited for its copies before."""

    statement: InstructionStatement
    pc: int
    lane: int
    waits: int


class Additions(NamedTuple):
    """Words of a memory that lanes of a wave have added to: ``old`` and ``values`` are (lanes, elements).

    ``waits`` is that of an Adder, -1 for what is complete with its statement.
    """

    memory: Bytes
    offsets: Offsets
    old: Values
    values: Values
    lanes: npt.NDArray[np.intp]
    waits: int = -1


class AdditionOrders:
    """The additions of floats of one launch, and its other updates, by the bits of a word (b32, b64 …)."""

    def __init__(self) -> None:
        self._formats: dict[str, _Format] = {}
        self._statements: dict[Place, int] = {}
        self._operands: dict[Place, Any] = {}  # the first of each statement, None where others differ from it
        self.elsewhere: dict[Place, OpenAddition] = {}  # of the same launch, on other machines
        self._memories = 0
        self._calls = 0

    def note(self, wave: Wave, place: Place, name: str, additions: Additions) -> None:
        """Keep additions of a format (f16, bf16, f32 or f64), or updates of words, that have been made."""
        known = self._formats.setdefault(name, _Format(PRECISIONS.get(name)))
        bit = 1 << min(self._statements.setdefault(place, len(self._statements)), _BITS)
        self._calls += 1
        if name not in PRECISIONS and len(additions.values):
            first = self._operands.setdefault(place, additions.values[0].copy())
            if first is not None and (additions.values != first).any():
                self._operands[place] = None
        memory = 0 if additions.memory is wave.memories.device.data else _SHARED.of(wave)
        known.take(_rows(wave, name, additions, (memory, bit, self._calls)))

    def memory(self) -> int:
        """Return the number of another memory."""
        self._memories += 1
        return self._memories

    def found(self) -> dict[Place, OpenAddition]:
        """Return the statements whose updates of one word have an order that is open."""
        return self.elsewhere | self._open_additions([*self._formats.values()])

    def sums(self) -> dict[Place, OpenAddition]:
        """Return the statements whose additions of floats to one word have an order that is open."""
        return self._open_additions(
            [known for known in self._formats.values() if known.precision is not None]
        )

    def _open_additions(self, formats: Sequence[_Format]) -> dict[Place, OpenAddition]:
        for known in formats:
            known.fold()
        found = dict[Place, OpenAddition]()
        for place, number in self._statements.items():
            bit = 1 << min(number, _BITS)
            if any(known.several & bit for known in formats):
                words = sum(known.words_of(bit) for known in formats)
                found[place] = OpenAddition(words=words, differing=self._operands.get(place, 0) is None)
        return found

    def open_words(self) -> dict[str, Offsets]:
        """Return offsets in global memory of the words whose sums depend on the order, by format."""
        for known in self._formats.values():
            known.fold()
        return {name: words for name, known in self._formats.items() if (words := known.in_global()).size}


ADDITIONS = SideTable(lambda wave: AdditionOrders())  # all waves of a launch have the same
WAITED = SideTable(
    lambda wave: np.zeros(wave.lanes, np.int64)
)  # how often each lane has waited for its copies
_SHARED = SideTable(lambda wave: ADDITIONS.of(wave).memory())


def adder(wave: Wave, pc: int, lane: int) -> Adder:
    """Return what adds when a copy of a lane is complete that is issued now."""
    return Adder(wave.code[pc].statement, pc, lane, int(WAITED.of(wave)[lane]))


def note_copy(wave: Wave, name: str, by: Adder, words: tuple[Bytes, Offsets, Values, Values]) -> None:
    """Keep what a copy has added: memory, offsets, old words and values of it. Nothing for a name of ""."""
    if not name:
        return
    memory, offsets, old, values = words
    added = Additions(memory, offsets, old, values, np.full(len(offsets), by.lane), by.waits)
    ADDITIONS.of(wave).note(wave, place_of(by.statement), name, added)


class _Format:
    """The words that floats of one format were added to, or that have other updates (no ``precision``): a row
    each, and rows that are not folded yet.
    """

    def __init__(self, precision: Precision | None) -> None:
        self.precision = precision
        self.several = 0  # bits of statements that add to a word of several threads
        self._known: Rows = np.zeros(0, _ROW)
        self._fresh: list[Rows] = []
        self._count = 0
        self._open = np.zeros((0, 2), np.int64)  # keys of words that depend on the order, statements

    def take(self, rows: Rows) -> None:
        """Keep rows, in the order in which they were made."""
        self._fresh.append(rows)
        self._count += len(rows)
        if self._count > _MOST:
            self.fold()

    def words_of(self, bit: int) -> int:
        """Return how many words that a statement adds to depend on the order."""
        return np.unique(self._open[(self._open[:, 1] & bit) != 0, 0]).size

    def in_global(self) -> Offsets:
        """Return offsets of the words in global memory that depend on the order."""
        keys = np.unique(self._open[:, 0])
        return np.asarray(keys[keys < 1 << _SPACE_BITS])

    def fold(self) -> None:
        """Leave one row a word, and keep which words depend on the order."""
        if not self._fresh:
            return
        rows = np.concatenate([self._known, *self._fresh])
        self._fresh, self._count = [], 0
        rows = rows[np.argsort(rows["key"], kind="stable")]
        follows = _follows(rows)
        starts = np.flatnonzero(~follows)
        open_pairs = follows & ~_sort_lanes(rows)
        if self.precision is None:
            several = _differing(rows, open_pairs, starts)
        else:
            _count_first(rows, starts)
            several = np.logical_or.reduceat(rows["several"] | open_pairs, starts)
        found = rows[np.r_[starts[1:], len(rows)] - 1].copy()  # the last row of each
        found["several"], found["call"] = several, -1
        found["changed"] = np.logical_or.reduceat(rows["changed"], starts)
        with np.errstate(over="ignore", invalid="ignore"):  # of infinities and NaNs the total is none
            for name, reduce in (("lowest", np.minimum), ("total", np.add), ("statements", np.bitwise_or)):
                found[name] = reduce.reduceat(rows[name], starts)
        self.several |= int(np.bitwise_or.reduce(found["statements"][several]))
        inexact = several & ~self._exact(found)
        fresh = np.stack([found["key"][inexact], found["statements"][inexact]], axis=1)
        self._open = np.unique(np.concatenate([self._open, fresh]), axis=0)
        self._known = found[np.r_[found["key"][1:] != found["key"][:-1], True]]

    def _exact(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return whether all partial sums are exact, whatever the order."""
        if self.precision is None:
            return np.ones(len(rows), np.bool_)
        digits, smallest, largest = self.precision
        with np.errstate(over="ignore"):
            limit = np.ldexp(2.0**digits, rows["lowest"].astype(np.int32))
        total = rows["total"]
        return np.asarray((total < limit) & (total <= largest) & (rows["lowest"] >= smallest))


def _rows(wave: Wave, name: str, additions: Additions, numbers: tuple[int, int, int]) -> Rows:
    """Return a row for each element of each lane; ``numbers``: of memory, bit of statement, call."""
    memory, bit, call = numbers
    old, geometry = additions.old, wave.geometry
    now = words_at(additions.memory, additions.offsets, old.dtype.itemsize, old.shape[1])
    wide, *others = (_widen(words, name) for words in (old, additions.values, now))
    size = additions.old.nbytes // additions.old.shape[0] // wide.shape[1] if len(old) else 1
    rows = np.zeros(wide.shape, _ROW)
    rows["key"] = (memory << _SPACE_BITS) + additions.offsets[:, None] + np.arange(wide.shape[1]) * size
    lanes = additions.lanes
    cta = _CTAS.of(wave)[geometry.cta[lanes]]
    rows["thread"] = (cta * _THREADS + geometry.thread[lanes])[:, None]
    rows["cta"] = cta[:, None] if additions.waits < 0 else -call  # no barrier waits for a copy
    rows["barriers"] = Barriers.of(wave).passed[geometry.cta[lanes]][:, None]
    rows["old"], rows["now"], rows["waits"] = wide, others[1], additions.waits
    if name in PRECISIONS:
        rows["total"], rows["lowest"] = np.abs(others[0]), _lowest_bits(others[0])
    rows["changed"] = wide.view(np.int64) != others[1].view(np.int64)
    rows["statements"], rows["call"] = bit, call
    return rows.reshape(-1)


_THREADS = 1 << 11  # at least as many as a CTA has


def _numbers_of_ctas(wave: Wave) -> npt.NDArray[np.int64]:
    x, y, _ = wave.geometry.grid
    return np.asarray(wave.geometry.ctas @ np.array([1, x, x * y], np.int64))


_CTAS = SideTable(_numbers_of_ctas)
_REALS: Mapping[str, type[np.floating[Any]]] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def _widen(words: Values, name: str) -> npt.NDArray[np.float64]:
    """Return float64 of all values of words (lanes, elements), those of pairs beside each other; of words
    that are not floats 64 bits, the same for the same word.
    """
    words = np.ascontiguousarray(words)
    if name not in PRECISIONS:
        return words.astype(np.uint64).view(np.float64)
    with np.errstate(invalid="ignore"):
        if name == "bf16":
            halves = words.view(np.uint16).astype(np.uint32) << np.uint32(16)
            return halves.view(np.float32).astype(np.float64)
        return words.view(_REALS[name]).astype(np.float64)


def _lowest_bits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the exponent of the lowest bit that is set of each value."""
    bits = values.view(np.int64)
    exponent, fraction = bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    significand = fraction | np.where(exponent > 0, 1 << 52, 0)
    place = np.frexp((significand & -significand).astype(np.float64))[1] - 1
    return np.where(significand == 0, _NO_BIT, place + np.maximum(exponent, 1) - 1075)


def _follows(rows: Rows) -> npt.NDArray[np.bool_]:
    """Return whether a row's word has what the row before it left there."""
    found = np.zeros(len(rows), np.bool_)
    left, right = rows[:-1], rows[1:]
    kept = right["old"].copy().view(np.int64) == left["now"].copy().view(np.int64)
    found[1:] = (right["key"] == left["key"]) & (kept | (right["call"] == left["call"]))
    return found


def _sort_lanes(rows: Rows) -> npt.NDArray[np.bool_]:
    """Return whether a row is ordered after that before it, if both are of one word."""
    found = np.zeros(len(rows), np.bool_)
    left, right = rows[:-1], rows[1:]
    alone = (left["thread"] == right["thread"]) & ((right["waits"] < 0) | (right["waits"] != left["waits"]))
    found[1:] = alone | _met(left, right)
    return found


def _met(left: Rows, right: Rows) -> npt.NDArray[np.bool_]:
    """Return whether a barrier of a CTA is between rows."""
    return np.asarray((left["cta"] == right["cta"]) & (left["barriers"] != right["barriers"]))


def _differing(
    rows: Rows, open_pairs: npt.NDArray[np.bool_], starts: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    """Return for each word whether old values depend on the order of its rows: where a row is not ordered
    after that before it (``open_pairs``), and one changes the word that no barrier puts before both.
    """
    many, index = np.iinfo(np.intp).max, np.arange(len(rows))
    begins = np.zeros(len(rows), np.bool_)
    begins[starts] = True
    one_cta = np.minimum.reduceat(rows["cta"], starts) == np.maximum.reduceat(rows["cta"], starts)
    sizes = np.diff(np.r_[starts, len(rows)])
    begins[1:] |= _met(rows[:-1], rows[1:]) & np.repeat(one_cta, sizes)[1:]
    phase = np.maximum.accumulate(np.where(begins, index, 0))
    before = np.r_[0, phase[:-1]]
    first = np.minimum.reduceat(np.where(open_pairs, before, many), starts)
    changed = rows["changed"] & (index >= np.repeat(first, sizes))
    return np.asarray(np.logical_or.reduceat(changed | rows["several"], starts))


def _count_first(rows: Rows, starts: Sequence[int] | npt.NDArray[np.intp]) -> None:
    """Count what was in a word at first among its values, but in rows that were folded."""
    first = np.asarray(starts)[rows["call"][starts] >= 0]
    old = rows["old"][first]
    with np.errstate(over="ignore", invalid="ignore"):
        rows["total"][first] += np.abs(old)
    rows["lowest"][first] = np.minimum(rows["lowest"][first], _lowest_bits(np.ascontiguousarray(old)))
