"""Bytes of metadata and scales that serve two places although the buffer has a byte for each place.

A byte of metadata is of one row and some k of A, a byte of scales of one row or column and some k. Where a
buffer has fewer bytes than there are places, they are shared by design, and nothing is found. Scales may be
coarser than the instruction's, padding beside them: they are judged only where a buffer has no padding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .....isa.fragments import metadata_map
from ..anchors import Anchored, agreed_k
from ..byte_keys import Indices
from ..loaded_operands import Operand
from ..packing_checks import PackingFinding, warps_text
from .word_places import NAMES, Words, words_of

_LISTED = 8
_FAR = 1 << 40  # more than a matrix has along k


@dataclass(frozen=True, kw_only=True)
class Served:
    """Words and the tiles that they serve: ``outer`` the rows or columns, ``k`` the first of each."""

    words: Words
    outer: Anchored
    k: Indices

    @property
    def operand(self) -> Operand:
        """The operand."""
        return self.words.operand

    def is_like(self, other: Served) -> bool:
        """Return whether all bytes serve the same places as those of other words."""
        mine, others = (
            (group.words.byte, group.words.valid, group.outer.outer, group.outer.usable, group.k)
            for group in (self, other)
        )
        uses = (self.words.uses, other.words.uses)
        same = uses[0] is uses[1] and mine[0] is others[0]
        return same and all(map(np.array_equal, mine[1:], others[1:]))

    def places(self) -> tuple[Indices, Indices, Indices, npt.NDArray[np.intp]]:
        """Return byte, line, k and execution of every byte that is read where all are known."""
        uses = self.words.uses
        line = self.outer.outer[:, None, None] + uses.line
        k = self.k[:, None, None] + uses.k
        known = self.words.valid & (self.outer.usable & (self.k >= 0))[:, None, None]
        event = np.broadcast_to(np.arange(len(known))[:, None, None], known.shape)
        return self.words.byte[known], line[known], k[known], event[known]


def served(operand: Operand, a: Anchored | None, b: Anchored | None) -> Iterator[Served]:
    """Yield the words of an operand with the tiles that they serve; nothing where these are not known."""
    side, words = b if operand.role == "scale_b" else a, words_of(operand)
    if words is None or side is None:
        return
    k = agreed_k(a, b) if a is not None else side.inner
    yield Served(words=words, outer=side, k=k)


def shared_words(groups: Sequence[Served], found: Sequence[PackingFinding]) -> Iterator[PackingFinding]:
    """Yield bytes that serve two places; executions of which something is ``found`` already do not count."""
    by_buffer: dict[tuple[str, str], list[Served]] = {}
    for group in groups:
        by_buffer.setdefault((group.operand.role, group.operand.source.name), []).append(group)
    for alike in by_buffer.values():
        yield from _clashes(alike, found)


def _clashes(groups: Sequence[Served], found: Sequence[PackingFinding]) -> Iterator[PackingFinding]:
    if not found and not _any_clash(_different(groups)):
        return
    parts = [group.places() for group in groups]
    byte, line, k, event = (np.concatenate(column) for column in zip(*parts, strict=True))
    which = np.repeat(np.arange(len(groups)), [len(part[0]) for part in parts])
    if not byte.size or not _one_each(groups[0].operand, np.unique(line * _FAR + k).size):
        return
    judged = ~np.concatenate(
        [_explained(group, part[3], found) for group, part in zip(groups, parts, strict=True)]
    )
    byte, line, k, event, which = (column[judged] for column in (byte, line, k, event, which))
    _, first, number = np.unique(byte, return_index=True, return_inverse=True)
    first = first[number.reshape(-1)]
    clash = (line != line[first]) | (k != k[first])
    if not clash.any():
        return
    at = int(np.flatnonzero(clash)[0])
    other = int(first[at])
    same = (
        clash
        & ((line != line[first]) == (line[at] != line[other]))
        & ((k != k[first]) == (k[at] != k[other]))
    )
    shared = np.isin(byte, byte[same])
    table = _Shared(groups=groups, line=line, k=k, event=event, which=which)
    message = table.message(other, at, shared & (byte == byte[at]))
    kind = "metadata rows" if line[at] != line[other] else "metadata step"
    for group in np.unique(which[same]).tolist():
        operand = groups[group].operand
        events = np.unique(event[shared & (which == group)])
        yield PackingFinding.of(operand, kind, message, events)


def _different(groups: Sequence[Served]) -> list[Served]:
    """Return groups without those whose words serve the same places as another's do."""
    kept = list[Served]()
    for group in groups:
        if not any(group.is_like(other) for other in kept):
            kept.append(group)
    return kept


def _any_clash(groups: Sequence[Served]) -> bool:
    parts = [group.places()[:3] for group in groups]
    byte, line, k = (np.concatenate(column) for column in zip(*parts, strict=True))
    place, size = line * _FAR + k, int(byte.max(initial=-1)) + 1
    served = np.zeros(size, np.int64)
    served[byte] = place  # the last of the places of each
    return bool((served[byte] != place).any())


def _one_each(operand: Operand, places: int) -> bool:
    """Return whether a buffer has a byte for each place that is served."""
    if operand.role == "e":
        return operand.source.size >= places
    unused = 2 if operand.instruction.scale_chunks == 2 else 1  # the upper half of a word may be
    return operand.source.size in (places, unused * places)


def _explained(
    group: Served, event: npt.NDArray[np.intp], found: Sequence[PackingFinding]
) -> npt.NDArray[np.bool_]:
    """Return which bytes are of an execution of which something is found.

    A finding on A or B may have executions whose scales are of another buffer.
    """
    operand, wrong = group.operand, np.zeros(len(group.operand.places), np.bool_)
    number = {place: n for n, place in enumerate(map(tuple, operand.places.tolist()))}
    for finding in found:
        if finding.location == operand.given.location and finding.operand in (operand.role, "a", "b"):
            places = map(tuple, finding.places.tolist())
            wrong[[number[place] for place in places if place in number]] = True
    return wrong[event]


@dataclass(frozen=True, kw_only=True)
class _Shared:
    """Bytes with their places, and which group and execution each is of."""

    groups: Sequence[Served]
    line: Indices
    k: Indices
    event: npt.NDArray[np.intp]
    which: npt.NDArray[np.intp]

    def message(self, first: int, second: int, users: npt.NDArray[np.bool_]) -> str:
        """Describe two places of one byte, and all ``users`` of it."""
        operand = self._operand(second)
        name, scaled = NAMES[operand.role], operand.role != "e"
        alike = self.event[first] == self.event[second] and self.which[first] == self.which[second]
        verb = "are" if scaled else "is"
        if self.line[first] == self.line[second]:
            if alike:
                return self._in_one_tile(first, second)
            depth = operand.instruction.shape.k
            steps = ", ".join(map(str, np.unique(self.k[users] // depth).tolist()[:_LISTED]))
            those = "those" if scaled else "that"
            do = "do" if scaled else "does"
            start = int(self.k[first]) // depth
            return f"{name} {do} not advance with k: {those} of k step {start} {verb} used in k steps {steps}"
        rows, side = self._lines(first), "columns of B" if operand.role == "scale_b" else "rows of A"
        what, of = side.split(" of ")
        warps = warps_text(np.stack([self._place(first), self._place(second)]))
        return f"the same {name} {verb} used for {what} {rows} and {self._lines(second)} of {of} ({warps})"

    def _in_one_tile(self, first: int, second: int) -> str:
        operand = self._operand(second)
        x, y = (int(self.k[at] - self.groups[self.which[at]].k[self.event[at]]) for at in (first, second))
        lanes = np.flatnonzero(self.groups[self.which[second]].words.uses.used.any(axis=1))
        quads = ", ".join(map(str, np.unique(lanes % 4).tolist()))
        selector = f"selector {operand.given.selector} reads lanes {quads} of each quad"
        name, verb = NAMES[operand.role], "is" if operand.role == "e" else "are"
        return f"the same {name} {verb} used from k {x} and from k {y} of one tile on: {selector}"

    def _operand(self, at: int) -> Operand:
        group: Served = self.groups[int(self.which[at])]
        return group.operand

    def _place(self, at: int) -> Indices:
        place: Indices = self._operand(at).places[self.event[at]]
        return place

    def _lines(self, at: int) -> str:
        tiles = self.groups[self.which[at]].outer
        start = int(tiles.outer[self.event[at]])
        return f"{start}..{start + tiles.tiles.outer.shape[1] - 1}"


_QUAD = 4


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """One buffer of metadata in all statements: ``words``, and operand A of each statement."""

    words: tuple[Words, ...]
    a: tuple[Operand, ...]

    @property
    def operand(self) -> Operand:
        """The metadata of the first statement."""
        return self.words[0].operand

    @cached_property
    def read(self) -> npt.NDArray[np.int64]:
        """The bytes of the buffer that are read."""
        alike = {id(words.kept): words for words in self.words}
        return _distinct(words.byte[words.valid] for words in alike.values())

    @cached_property
    def needed(self) -> int:
        """How many bytes the different elements of A need; 0 if A is not of one buffer alone."""
        names = {None if operand.buffer is None else operand.buffer.name for operand in self.a}
        shares = {
            (int(words.uses.used.sum()), operand.bits[0].size)
            for words, operand in zip(self.words, self.a, strict=True)
        }
        alike = {id(operand.kept): operand for operand in self.a}.values()
        if len(names) > 1 or len(shares) > 1 or not all(operand.moved.all() for operand in alike):
            return 0
        size, elements = shares.pop()
        return int(len(_distinct(operand.index for operand in alike)) * size // elements)

    def selectors(self) -> str:
        """Return which other selectors would read whole tiles of metadata that are never read although A
        needs them; empty where enough is read: what lies in other lanes is padding then.
        """
        form, read = self.operand.instruction, self.read
        if read.size >= self.needed:
            return ""
        used = {words.operand.given.selector for words in self.words}
        texts = []
        for selector in form.selectors:
            lanes = np.unique(metadata_map(form, selector)[:, 0])
            if selector in used or not all(_are_whole(words, lanes, read) for words in self.words):
                continue
            quad = np.unique(lanes % _QUAD).tolist()
            which = f"lane{'s'[: len(quad) != 1]} {', '.join(map(str, quad))}"
            texts.append(f"selector {selector} reads that of {which} of each quad")
        return f"; metadata is loaded that is never read: {', '.join(texts)}" if texts else ""


def _distinct(parts: Iterable[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the different numbers, none of them negative, in ascending order."""
    found = np.zeros(0, np.bool_)
    for part in parts:
        found = np.pad(found, (0, max(int(part.max(initial=-1)) + 1 - found.size, 0)))
        found[part] = True
    return np.flatnonzero(found)


def _are_whole(words: Words, lanes: npt.NDArray[np.intp], read: npt.NDArray[np.int64]) -> bool:
    """Return whether lanes hold a tile of different bytes in each execution, some of them never read."""
    held = words.operand.index[:, lanes].reshape(len(words.byte), -1)
    different = bool((np.diff(np.sort(held, axis=1), axis=1) > 0).all())
    return different and bool((held >= 0).all()) and not np.isin(held, read).all()


def metadata_of(pairs: Iterable[tuple[Operand, Operand]]) -> list[Metadata]:
    """Return the buffers of metadata of statements, each given by A and its metadata."""
    found: dict[str, list[tuple[Words, Operand]]] = {}
    for a, operand in pairs:
        words = words_of(operand)
        if words is not None and operand.buffer is not None:
            found.setdefault(operand.buffer.name, []).append((words, a))
    return [
        Metadata(words=tuple(words for words, _ in group), a=tuple(a for _, a in group))
        for group in found.values()
    ]


def with_selectors(found: Sequence[PackingFinding], groups: Sequence[Metadata]) -> list[PackingFinding]:
    """Return findings, those on the k step of metadata with the selectors that would read the right words."""
    texts = {
        words.operand.given.location: text
        for group in groups
        if (text := group.selectors())
        for words in group.words
    }
    return [
        replace(finding, message=finding.message + texts[finding.location])
        if (finding.operand, finding.kind) == ("e", "metadata step") and finding.location in texts
        else finding
        for finding in found
    ]


def unread_metadata(groups: Sequence[Metadata], found: Sequence[PackingFinding]) -> Iterator[PackingFinding]:
    """Yield buffers of which fewer bytes are read than A needs, where nothing is ``found`` of either."""
    if any(finding.operand in ("a", "e") for finding in found):
        return
    for group in groups:
        operand, needed, read = group.operand, group.needed, group.read.size
        if read >= needed or operand.source.size < needed:
            continue
        size, name = operand.source.size, operand.source.name
        message = (
            f"{read} of {size} bytes of {name} are read ({read / size:.1%}), where the elements of A need "
            f"{needed} bytes of metadata: some are used again for elements that are not theirs"
        )
        yield PackingFinding.of(operand, "metadata step", message + group.selectors())
