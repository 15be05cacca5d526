"""Does this dump hold these block scales? The bytes that are read, beside the matrix of scales.

Knows which lanes and bytes an instruction reads; a tile and a step of larger scales are looked for. Bytes
that are wrong are located by value: in the matrix, and in the lanes and bytes that other ids read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import OperandError, present
from ....isa.codes import scale_codes_of
from ....isa.formats import Format
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleRegisters, ScaleSelectors
from ....isa.products import Codes
from ....isa.registers import Words
from .dump_contents import Holding
from .dump_places import SCALE_BITS, Places, scale_places
from .located import IN_ORDER, Location, Name, Part, View, locate
from .tile_sources import Source

Tiles = dict[tuple[int, int], Codes]  # by their first line and chunk
_DISTINCT = 3  # values of a tile that is known by its values
_SOURCE = "scales"
_LATER = 3  # wrong steps after the first that are described


@in_default_environment
def held_scales(
    form: Instruction, operand: str, scales: npt.ArrayLike, dump: Words, selectors: ScaleSelectors
) -> Holding:
    """Return whether the words ``(lanes, 1)`` of scale_a or scale_b hold ``scales``, of any size; words
    ``(steps, lanes, 1)`` hold those of one k step after another.

    ``scales`` are ``(m, chunks)`` of A, ``(chunks, n)`` of B. Raises OperandError for a form without scales,
    for words of another shape and for another number of steps.
    """
    side = operand.removeprefix("scale_")
    place, element = form.scales(side), present(form.scale, "scale")
    words = np.asarray(dump)
    if words.ndim not in (2, 3) or words.shape[-2:] != (form.lanes, 1):
        raise OperandError(f"{operand} has shape {words.shape}, but a dump of scales is ({form.lanes}, 1)")
    ids = tuple(getattr(selectors, f"{name}_{side}") for name in ("byte_id", "thread_id"))
    place.codes(words, *ids)  # raises for ids that the form does not have
    codes = scale_codes_of(scales, element, operand.upper())
    if codes.ndim != 2:
        raise OperandError(f"{operand.upper()} has shape {codes.shape}, but scales have rows and columns")
    lines = codes if side == "a" else codes.T
    beside = _Scales(place=place, element=element, lines=lines.astype(np.uint8), ids=(ids[0], ids[1]))
    return beside.of_steps(words) if words.ndim == 3 else beside.of_any(words)


@dataclass(frozen=True, kw_only=True)
class _Scales:
    """Scales ``lines (lines, chunks)`` beside which words are read as ``ids`` say: byte id and thread id."""

    place: ScaleRegisters
    element: Format
    lines: Codes
    ids: tuple[int, int]

    @cached_property
    def tiles(self) -> Tiles:
        """The tiles of one instruction; ends beyond the matrix are zero."""
        return _tiles(self.lines, (self.place.lines, self.place.chunks))

    def of_any(self, words: Words) -> Holding:
        """Return what one word of each lane holds, of any tile and step."""
        got = self._read(words)
        equal = {at: int((tile == got).sum()) for at, tile in self.tiles.items()}
        return self._holding(words, max(equal, key=lambda at: equal[at]))

    def of_steps(self, words: Words) -> Holding:
        """Return the first wrong step, and what it and those after it hold. Raises OperandError."""
        chunks = self.place.chunks
        steps = -(-self.lines.shape[1] // chunks)
        if len(words) != steps:
            raise OperandError(
                f"{self.place.operand} has {len(words)} steps, but its matrix has {steps} along k: "
                f"{'steps are missing' if len(words) < steps else 'there are too many'}"
            )
        each = [self._read(step) for step in words]
        lines = sorted({line for line, _ in self.tiles})
        right = {
            line: [bool((self.tiles[line, at * chunks] == got).all()) for at, got in enumerate(each)]
            for line in lines
        }
        line = max(lines, key=lambda at: sum(right[at]))
        wrong = [at for at, is_right in enumerate(right[line]) if not is_right]
        total = each[0].size * steps
        first = wrong[0] if wrong else 0
        found = replace(self._holding(words[first], (line, first * chunks)), step=first, steps=steps)
        if not wrong:
            return replace(found, equal=total, total=total)
        later = [(at, self._located(words[at], (line, at * chunks))) for at in wrong[1 : 1 + _LATER]]
        return replace(found, later=tuple(later))

    def _read(self, words: Words) -> Codes:
        """Return the bytes ``(lines, chunks)`` that are read."""
        codes = self.place.codes(words, *self.ids)
        return np.ascontiguousarray(codes if self.place.side == "a" else codes.T)

    def _holding(self, words: Words, tile: tuple[int, int]) -> Holding:
        got = self._read(words)
        equal = int((self.tiles[tile] == got).sum())
        found = Holding(
            operand=self.place.operand,
            equal=equal,
            total=got.size,
            tile=self._turned(tile),
            size=self._turned((self.place.lines, self.place.chunks)),
            source=_SOURCE,
        )
        if equal == got.size:
            return found
        location = self._located(words, tile)
        return replace(found, location=location if location.parts or location.value else None)

    def _turned(self, pair: tuple[int, int]) -> tuple[int, int]:
        return pair if self.place.side == "a" else (pair[1], pair[0])

    def _located(self, words: Words, tile: tuple[int, int]) -> Location:
        location = locate(self._views(words), self._turned(tile))
        whole = self._whole(self._read(words))
        return location if whole is None else replace(location, parts=(whole,), first="")

    def _whole(self, got: Codes) -> Part | None:
        """Return bytes that are those of a single tile: few values need no more evidence."""
        alike = [at for at, tile in self.tiles.items() if (tile == got).all()]
        if len(alike) != 1 or len(np.unique(got)) < _DISTINCT:
            return None
        return Part(
            source=_SOURCE,
            count=got.size,
            where="",
            kind="tile",
            formula="",
            tile=self._turned(alike[0]),
            name=Name(IN_ORDER, ""),
        )

    def _views(self, words: Words) -> Iterator[View]:
        """Yield the bytes that are read, then those that other ids read."""
        place = self.place
        matrix = self.lines if place.side == "a" else np.ascontiguousarray(self.lines.T)
        own = Source(name=_SOURCE, codes=matrix, element=self.element)
        yield self._view(words, scale_places(place, *self.ids), own)
        for byte_id in place.byte_ids:
            for thread_id in place.thread_ids:
                if (byte_id, thread_id) != self.ids:
                    name = f"{_SOURCE}, in what byte id {byte_id} and thread id {thread_id} read"
                    name += f", and not {self.ids[0]} and {self.ids[1]}"
                    places = scale_places(place, byte_id, thread_id)
                    yield self._view(words, places, replace(own, name=name))

    @staticmethod
    def _view(words: Words, places: Places, source: Source) -> View:
        codes = places.codes(words, (1 << SCALE_BITS) - 1, 32).astype(np.uint8)
        return View(places=places, codes=codes, sources=(source,))


def _tiles(lines: Codes, size: tuple[int, ...]) -> Tiles:
    """Return the tiles of scales by their first line and chunk; ends beyond them are zero."""
    height, width = size
    padded = np.pad(lines, [(0, -lines.shape[0] % height), (0, -lines.shape[1] % width)])
    return {
        (row, column): padded[row : row + height, column : column + width]
        for row in range(0, padded.shape[0], height)
        for column in range(0, padded.shape[1], width)
    }
