"""Metadata of which a part is never read although A needs it, and the selector that would read it.

Each piece of compressed A has metadata of its own. Where a buffer has a byte for each that the elements of A
need, and fewer arrive, some serve elements that are not theirs, in whatever order both lie. Where it has
fewer, they are shared by design, and nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .....isa.fragments import metadata_map
from ..loaded_operands import Operand
from ..packing_checks import PackingFinding
from .word_places import Words, words_of

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
        return _different(words.byte[words.valid] for words in alike.values())

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
        return int(len(_different(operand.index for operand in alike)) * size // elements)

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


def _different(parts: Iterable[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
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
        assert operand.buffer is not None
        if read >= needed or operand.buffer.size < needed:
            continue
        size, name = operand.buffer.size, operand.buffer.name
        message = (
            f"{read} of {size} bytes of {name} are read ({read / size:.1%}), where the elements of A need "
            f"{needed} bytes of metadata: some are used again for elements that are not theirs"
        )
        yield PackingFinding(
            kind="metadata step",
            operand="e",
            message=message + group.selectors(),
            location=operand.given.location,
            places=operand.places,
        )
