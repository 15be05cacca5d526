"""Does this dump hold this matrix? An operand's registers against those that its matrix should be in.

Needs no D. Each element is located by its value, in this tile, in other tiles and steps, and in other
matrices. Words that the instruction does not read (of other selectors) are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import OperandError
from ....isa.codes import codes_of, matrix_of, values_of, zero_ranks
from ....isa.formats import FORMATS
from ....isa.fragments import metadata_map, registers_of, require_sparse, write_fields
from ....isa.instruction import Instruction
from ....isa.products import Codes
from ....isa.registers import Words
from ....isa.sparsity import compress, decompress
from .dump_places import Places, places_of
from .located import Location, View, locate
from .tile_sources import Source

_DISTINCT, _SAME_TYPE = 8, 0.9  # values, and share of values, by which another type is known
_OWN = {"a": "A", "b": "B", "c": "C", "d": "D", "e": "metadata"}
_ALONG_K = {"a": 1, "e": 1, "b": 0}  # the axis of the stored matrix


@dataclass(frozen=True, kw_only=True)
class Holding:
    """How many of ``total`` words of an operand are as its matrix says.

    ``location`` says where the elements are; ``step`` of ``steps`` is meant, ``tile`` is its first row and
    column in the matrix ``source``, and ``size`` its extent.
    ``later`` are locations of the wrong steps after it.
    """

    operand: str
    equal: int
    total: int
    location: Location | None = None
    step: int = 0
    steps: int = 1
    tile: tuple[int, int] = (0, 0)
    size: tuple[int, int] = (1, 1)
    source: str = ""
    later: tuple[tuple[int, Location], ...] = ()
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether every word is as it should be."""
        return self.equal == self.total


@in_default_environment
def held(
    form: Instruction, matrices: Mapping[str, Any], dumps: Mapping[str, Words], *, selector: int = 0
) -> list[Holding]:
    """Return, for each dump whose matrix is there, whether it holds it, the first wrong step first.

    ``matrices`` are A, B, C and D, of any size or ``(tiles, rows, columns)``; ``dumps`` are registers
    ``(lanes, registers)`` or ``(steps, lanes, registers)`` by operand. Raises OperandError where they do not
    fit together.
    """
    own = {"a": "A", "b": "B", "c": "C", "d": "D", "e": "A"}
    names = [name for name in dumps if own[name] in matrices and (name != "e" or form.sparse)]
    if not names:
        return []
    if any(np.ndim(matrix) > 2 for matrix in matrices.values()):
        return [_of_tiles(form, name, matrices[own[name]], dumps[name], selector) for name in names]
    operands = Operands(form, matrices, selector=selector)
    found = [operands.described(operands.holding(name, dumps[name])) for name in names]
    together = {"a", "e"} <= set(names) and all(dumps[name].ndim == 2 for name in "ae")
    if together and operands.holds_together(dumps["a"], dumps["e"]):
        found = [
            replace(each, equal=each.total, note=_TOGETHER)
            if each.operand in "ae" and not each.holds
            else each
            for each in found
        ]
    return sorted(found, key=lambda each: (each.holds, each.step))


_TOGETHER = (
    "a and e together hold A: a zero that is kept stands in another place of its chunk than where pack puts "
    "it, which changes no product"
)


def _of_tiles(form: Instruction, name: str, matrix: Any, dump: Words, selector: int) -> Holding:
    """Return whether each tile of a batch is held; of the first that is not, what it holds."""
    tiles = np.asarray(matrix)
    tiles = tiles.reshape(-1, *tiles.shape[-2:])
    each = dump.reshape(-1, *dump.shape[-2:])
    if len(each) != len(tiles):
        raise OperandError(f"{name} and its matrix are of different numbers of tiles")
    found: list[Holding] = []
    for tile, words in zip(tiles, each, strict=True):
        matrix_name = "A" if name == "e" else name.upper()
        operands = Operands(form, {matrix_name: tile}, selector=selector)
        found.append(operands.described(operands.holding(name, words)))
    wrong = next((at for at, item in enumerate(found) if not item.holds), None)
    total = sum(item.total for item in found)
    if wrong is None:
        return replace(found[0], equal=total, total=total)
    note = f"tile {wrong} is the first that is wrong" * (len(found) > 1)
    return replace(found[wrong], note=note)


def words_read(
    instruction: Instruction, operand: str, shape: tuple[int, ...], selector: int
) -> npt.NDArray[np.bool_]:
    """Return ``(lanes, registers)``: words that are read; of metadata those of the selector's lanes."""
    read = np.ones(shape, np.bool_)
    if operand == "e":
        read[:] = False
        read[..., metadata_map(instruction, selector)[:, 0], :] = True
    return read


# --- tiles and steps of whole matrices --------------------------------------------------------------------


class Operands:
    """Whole matrices of a product, and which tile of them an instruction reads in each step.

    ``matrices`` are A ``(M, K)``, B ``(K, N)``, C and D ``(M, N)`` of any size; ends of tiles beyond them are
    zero. Raises OperandError for more axes, and what compress raises.
    """

    def __init__(self, form: Instruction, matrices: Mapping[str, Any], *, selector: int = 0) -> None:
        self.form, self.selector = form, selector
        self.codes: dict[str, Codes] = {}
        for name, matrix in matrices.items():
            codes = codes_of(matrix, form.format(name.lower()), name)
            if codes.ndim != 2:
                raise OperandError(f"{name} has shape {codes.shape}, but a matrix has rows and columns")
            self.codes[name.lower()] = _padded(codes, *self._tile_of(name.lower()))
        if form.sparse and "a" in self.codes:
            self._compress()

    def _tile_of(self, operand: str) -> tuple[int, int]:
        shape = self.form.shape
        return {"a": (shape.m, shape.k), "b": (shape.k, shape.n)}.get(operand, (shape.m, shape.n))

    def _compress(self) -> None:
        form, pattern = self.form, require_sparse(self.form)
        self.logical = self.codes["a"]
        ranks = zero_ranks(matrix_of(self.logical, form.a), form.a)
        self.codes["a"], indices = compress(self.logical, ranks, pattern)
        units = indices.reshape(*indices.shape[:-1], -1, pattern.kept)
        self.codes["e"] = pattern.encode_table[tuple(np.moveaxis(units, -1, 0))]

    def steps(self, operand: str) -> int:
        """Return the number of tiles along k."""
        axis = _ALONG_K.get(operand)
        if axis is None:
            return 1
        places = self.places(operand)
        return int(self.codes[operand].shape[axis] // (places.rows, places.columns)[axis])

    def places(self, operand: str) -> Places:
        """Return the places of an operand's registers."""
        return places_of(self.form, operand, self.selector)

    def origin(self, operand: str, step: int, other: int = 0) -> tuple[int, int]:
        """Return the first row and column of a step's tile; ``other`` counts tiles along the other axis."""
        places, axis = self.places(operand), _ALONG_K.get(operand)
        if axis is None:
            across = max(1, self.codes[operand].shape[1] // places.columns)
            return other // across * places.rows, other % across * places.columns
        return (
            (other * places.rows, step * places.columns)
            if axis
            else (step * places.rows, other * places.columns)
        )

    def expected(self, operand: str, origin: tuple[int, int]) -> Words:
        """Return the registers of the tile at an element."""
        places, form = self.places(operand), self.form
        row, column = origin
        tile = self.codes[operand][row : row + places.rows, column : column + places.columns]
        if operand == "e":
            return write_fields(form, tile.astype(np.uint8), self.selector)
        return registers_of(tile, form, operand)

    def sources(self, operand: str) -> dict[str, Source]:
        """Return the matrices in which elements of an operand may be, its own first."""
        own = self.form.storage(operand).bits if operand != "e" else 4
        names = [operand, *(name for name in self.codes if name != operand)]
        found = {}
        for name in names:
            bits = self.form.storage(name).bits if name != "e" else 4
            if name == operand or ("e" not in (name, operand) and bits == own):
                element = None if name == "e" else self.form.format(name)
                kept = " (kept values)" if name == "a" and self.form.sparse else ""
                found[name] = Source(name=_OWN[name] + kept, codes=self.codes[name], element=element)
        return found

    def located(self, operand: str, dump: Words, origin: tuple[int, int]) -> Location:
        """Return where the elements of registers ``(lanes, registers)`` are."""
        return locate(self._views(operand, dump), origin)

    def _views(self, operand: str, dump: Words) -> Iterator[View]:
        """Yield the dump as the instruction reads it, then metadata where other selectors read them."""
        places, form, sources = self.places(operand), self.form, self.sources(operand)
        mask, bits = (15, 32) if operand == "e" else (form.format(operand).mask, form.register_bits)
        shift = 0 if operand == "e" else form.storage(operand).shift
        codes = places.codes(dump, mask, bits, shift)
        yield View(places=places, codes=codes, sources=tuple(sources.values()))
        if operand == "e":
            yield from self._of_selectors(dump, sources[operand])

    def _of_selectors(self, dump: Words, own: Source) -> Iterator[View]:
        """Yield metadata in the lanes that other selectors read."""
        for selector in self.form.selectors:
            places = places_of(self.form, "e", selector)
            lanes = ", ".join(map(str, np.unique(places.lane % 4).tolist()))
            name = f"{own.name}, in lanes {lanes} of each quad, which selector {selector} reads"
            if selector != self.selector:
                source = replace(own, name=f"{name}, and not selector {self.selector}")
                yield View(places=places, codes=places.codes(dump, 15, 32), sources=(source,))

    def _narrower(self, operand: str, dump: Words) -> str:
        """Return the type of half the width as whose elements a dump holds most values of the matrix."""
        own = self.form.format(operand) if operand != "e" else None
        if own is None or not own.is_float or self.form.register_bits != own.bits:
            return ""
        values = values_of(self.codes[operand], own)
        halves = np.ascontiguousarray(dump).view(np.uint16 if own.bits == 32 else np.uint32)
        halves = halves[halves != 0]
        for other in FORMATS.values():
            if other.is_float and 2 * other.bits == own.bits and not other.ignored_bits and len(halves):
                with np.errstate(all="ignore"):
                    made = values.astype(other.dtype).view(other.code_dtype)
                if len(np.unique(halves)) >= _DISTINCT and np.isin(halves, made).mean() > _SAME_TYPE:
                    return f"its {other.bits}-bit halves are elements of {_OWN[operand]} as {other}"
        return ""

    @in_default_environment
    def holding(self, operand: str, dump: Words) -> Holding:
        """Return whether registers ``(lanes, registers)``, or ``(steps, lanes, registers)``, hold the matrix.

        A single tile may be of any step. Raises OperandError for another number of steps.
        """
        each = dump if dump.ndim == 3 else dump[None]
        steps = self.steps(operand)
        if len(each) not in (1, steps):
            size = " x ".join(map(str, self.codes[operand].shape))
            raise OperandError(
                f"{operand} has {len(each)} steps, but {_OWN[operand]} of {size} has {steps} along k: "
                f"{'steps are missing' if len(each) < steps else 'there are too many'}"
            )
        other = self._tile(operand, each)
        if len(each) == 1 and steps > 1:
            return self._anywhere(operand, each[0])
        wrong = [at for at, words in enumerate(each) if not self._is_right(operand, words, at, other)]
        read = words_read(self.form, operand, each[0].shape, self.selector)
        total = int(read.sum()) * len(each)
        if not wrong:
            tile = self.origin(operand, 0, other)
            return Holding(operand=operand, equal=total, total=total, steps=len(each), tile=tile)
        later = [(at, self.located(operand, each[at], self.origin(operand, at, other))) for at in wrong[1:4]]
        first = self._wrong(operand, each[wrong[0]], self.origin(operand, wrong[0], other))
        return replace(first, step=wrong[0], steps=len(each), later=tuple(later))

    def described(self, found: Holding) -> Holding:
        """Return a result with the size of its tile and the name of its matrix."""
        places, operand = self.places(found.operand), found.operand
        source = self.sources(operand)[operand].name
        return replace(found, size=(places.rows, places.columns), source=source)

    def _is_right(self, operand: str, words: Words, step: int, other: int) -> bool:
        expected = self.expected(operand, self.origin(operand, step, other))
        read = words_read(self.form, operand, words.shape, self.selector)
        return bool(((expected == words) | ~read).all())

    def _tile(self, operand: str, each: Words) -> int:
        """Return the tile, along the axis that is not k, of which most words are right."""
        places, shape, axis = self.places(operand), self.codes[operand].shape, _ALONG_K.get(operand)
        tiles = (shape[0] // places.rows, shape[1] // places.columns)
        count = tiles[0] * tiles[1] if axis is None else tiles[1 - axis]
        if count == 1:
            return 0
        equal = [
            sum(
                int((self.expected(operand, self.origin(operand, at, other)) == words).sum())
                for at, words in enumerate(each[: self.steps(operand)])
            )
            for other in range(count)
        ]
        return int(np.argmax(equal))

    def _anywhere(self, operand: str, words: Words) -> Holding:
        """Return what a tile holds whose step is not known."""
        location = self.located(operand, words, (0, 0))
        read = int(words_read(self.form, operand, words.shape, self.selector).sum())
        if location.right == location.total:
            return Holding(operand=operand, equal=read, total=read, location=location)
        part = location.parts[0] if location.parts else None
        if (
            part
            and part.in_order
            and part.count == location.total
            and part.source == self.sources(operand)[operand].name
        ):
            return Holding(
                operand=operand, equal=read, total=read, location=location, tile=part.tile or (0, 0)
            )
        return self._wrong(operand, words, part.tile if part and part.tile else (0, 0), location)

    def _wrong(
        self, operand: str, words: Words, origin: tuple[int, int], location: Location | None = None
    ) -> Holding:
        read = words_read(self.form, operand, words.shape, self.selector)
        equal = int(((self.expected(operand, origin) == words) & read).sum())
        found = Holding(operand=operand, equal=equal, total=int(read.sum()), tile=origin)
        if found.holds:
            return found
        location = location or self.located(operand, words, origin)
        zero = not any(part.source for part in location.parts) and not location.value
        note = self._narrower(operand, words) if zero else ""
        return replace(found, location=None if note else location, note=note)

    def holds_together(self, a: Words, e: Words) -> bool:
        """Return whether values and metadata of one tile hold A, wherever the zeros of a chunk are."""
        form, pattern = self.form, require_sparse(self.form)
        kept = self.places("a").codes(a, form.a.mask, form.register_bits, form.storage("a").shift)
        fields = self.places("e").codes(e, 15, 32)
        tile, chunks = self.places("a"), self.places("e")
        values = np.zeros((tile.rows, tile.columns), kept.dtype)
        values[tile.row, tile.column] = kept
        found = np.zeros((chunks.rows, chunks.columns), np.intp)
        found[chunks.row, chunks.column] = fields
        if not pattern.distinct[found].all():
            return False
        indices = pattern.decode_table[found].reshape(chunks.rows, -1)
        made = decompress(values, indices, pattern)
        return bool(np.array_equal(made, self.logical[: made.shape[0], : made.shape[1]]))


def _padded(codes: Codes, rows: int, columns: int) -> Codes:
    return np.pad(codes, [(0, -codes.shape[0] % rows), (0, -codes.shape[1] % columns)])
