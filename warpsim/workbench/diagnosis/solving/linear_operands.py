"""Each operand of an instruction as a linear problem: places, values that may stand in them, and what D says.

Line ``l`` of an operand meets E elements of D: ``T[l, e] = sum_j V[table[where[l, j]]] * W[l, j, e]`` within
``near[l, e]``; of metadata, ``look[l, j, e, code]`` stands for the product. The problem only screens: the
engine decides. Knows registers, metadata and scales by the layouts of the instruction; knows no maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ....base.errors import present
from ....isa.fragments import codes_from, columns_of, gathered_columns, registers_of, require_sparse
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.products import Codes
from ....isa.registers import Words
from ....sums.execution.pipeline import rule_for
from ..dumps.dump_comparison import numbers
from ..library.setting import Registers, Setting
from .atoms import Atoms, Predicates, atoms, predicates
from .fitting import Block
from .value_functions import index_functions, scale_functions, value_functions
from .views import Index, Numbers, View, index_bits, views_of

_EXACT = 0.25  # of integers
_SCREENED = 2.0**-18
_NARROW = 2.0**-9  # results of 16 bits
_UNMET = 1.5  # cost of reading what the instruction does not read


@dataclass(frozen=True, eq=False)
class Source(Block):
    """A block of values that may stand in an operand's places: ``codes(given)`` makes it, ``(..., N)``."""

    codes: Callable[[Registers], Codes]


@dataclass(frozen=True, eq=False, kw_only=True)
class Operand:
    """One operand of one tile: its views, sources, and the linear problem that D poses for it.

    "cd" is C and D together: C was loaded by the inverse of the map by which D was stored.

    ``values`` are those of all sources, blocks of N, and a zero at the end; the first block belongs there.
    """

    name: str
    setting: Setting
    views: tuple[View, ...]
    sources: tuple[Any, ...]
    codes: Codes
    values: Numbers
    where: Index
    T: Numbers
    near: Numbers
    W: Numbers | None = None
    look: Numbers | None = None
    wraps: bool = False

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.views[0].coordinates)

    @cached_property
    def atoms(self) -> Atoms:
        """The maps of the places."""
        return atoms(self.views)

    @cached_property
    def predicates(self) -> Predicates:
        """The sets of places."""
        return predicates(self.views)

    @cached_property
    def cost(self) -> Numbers:
        """``(M,)``: the cost of each map; more where it reads places that no line meets, and that are zero.

        Such maps only say that places hold zero.
        """
        met = np.zeros(self.size, np.bool_)
        met[self.where] = True
        if met.all() or self.values[: self.size][~met].any():
            return self.atoms.cost
        tables = self.atoms.at(np.unique(self.where))
        empty = ((tables >= 0) & ~met[tables]).any(axis=1)
        return np.asarray(self.atoms.cost + _UNMET * empty)

    def parts(self, sources: Index, line: int, element: int) -> Numbers:
        """Return ``(..., J)``: what the places of a line add to an element of D with these sources."""
        values = self.values[sources]
        if self.look is None:
            return np.asarray(values * present(self.W, "W")[line, :, element])
        codes = np.where(sources < 0, 0, values).astype(np.intp)
        return np.asarray(self.look[line, np.arange(sources.shape[-1]), element, codes])

    def sums(self, table: Index) -> Numbers:
        """Return ``(L, E)``: T as a table of all places gives it."""
        values = self.values[table[self.where]]
        if self.look is None:
            return np.asarray(np.einsum("lj,lje->le", values, present(self.W, "W")))
        line, unit = np.indices(self.where.shape)
        return np.asarray(self.look[line, unit, :, values.astype(np.intp)].sum(axis=1))

    def agrees(self, made: Any, wanted: Any, near: Any) -> Any:
        """Return whether sums are D's within the rounding; D that is no number agrees with everything."""
        apart = np.asarray(made - wanted)
        np.abs(apart, out=apart)
        if self.wraps and np.max(apart, initial=0.0) > 2.0**30:
            apart = np.abs(apart - 2.0**32 * np.rint(apart * 2.0**-32))
        return ~(apart > near)

    def changed(self, table: Index, given: Registers) -> Words:
        """Return the operand's registers, or tile, or D, as a table makes them of what is given.

        Of C and D together it is D.
        """
        blocks = np.unique(table[table >= 0] // self.size).tolist()
        picked: Codes | None = None
        for block in blocks:
            codes = self.sources[block].codes(given)
            taken = codes[..., np.where(table >= 0, table % self.size, 0)]
            here = table // self.size == block
            picked = np.where(here, taken, 0 if picked is None else picked).astype(codes.dtype)
        if picked is None:
            picked = np.zeros_like(self.sources[0].codes(given))
        return written(self.setting, "d" if self.name == "cd" else self.name, picked, given)


# --- reading and writing codes by place ------------------------------------------------------------------


def read(setting: Setting, name: str, given: Registers) -> Codes:
    """Return codes ``(..., N)`` by place of operand a, b, c, d, e, scale_a or scale_b."""
    instruction, words = setting.instruction, given[name]
    if name == "e":
        return _unpacked(words, index_bits(instruction))
    if name.startswith("scale"):
        return _unpacked(words, 8)
    if setting.in_shared(name):
        tile = np.swapaxes(words, -1, -2) if name == "b" else words
        return tile.reshape(*tile.shape[:-2], -1)
    codes = codes_from(words, instruction, name)
    return codes.reshape(*words.shape[:-2], -1)


def written(setting: Setting, name: str, codes: Codes, given: Registers) -> Words:
    """Return the registers, or the tile in shared memory, of codes by place: the inverse of read."""
    instruction = setting.instruction
    if name == "e":
        return _packed(codes, index_bits(instruction), instruction.lanes)
    if name.startswith("scale"):
        return _packed(codes, 8, instruction.lanes)
    rows, columns = instruction.matrix_shape(name)
    if setting.in_shared(name):
        tile = codes.reshape(*codes.shape[:-1], rows, columns)
        return np.ascontiguousarray(np.swapaxes(tile, -1, -2)) if name == "b" else tile
    products = (instruction.products,) if instruction.products > 1 else ()
    return registers_of(codes.reshape(*codes.shape[:-1], *products, rows, columns), instruction, name)


def _unpacked(words: Words, bits: int) -> Codes:
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    parts = words[..., 0, None] >> shifts & np.uint32((1 << bits) - 1)
    return parts.reshape(*words.shape[:-2], -1).astype(np.uint8)


def _packed(codes: Codes, bits: int, lanes: int) -> Words:
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    parts = codes.reshape(*codes.shape[:-1], lanes, -1).astype(np.uint32) << shifts
    words: Words = np.bitwise_or.reduce(parts, axis=-1)[..., None]
    return words


# --- sources ---------------------------------------------------------------------------------------------


def sources(setting: Setting, name: str, tiles: int) -> tuple[Source, ...]:
    """Return what may stand in an operand's places, what belongs there first."""
    own = partial(read, setting, "d" if name == "cd" else name)
    found = [Source(0, "own", {}, own)]
    if name == "cd":
        return tuple(found)
    for each in _functions(setting.instruction, name):
        changed = lambda given, change=each.change: change(own(given))  # noqa: E731
        found.append(Source(each.cost, each.kind, each.facts, changed))
    other = {"a": "b", "b": "a", "scale_a": "scale_b", "scale_b": "scale_a"}.get(name)
    if other is not None and other in setting.instruction.operands and name != "b":
        found += _of_other(setting, name, other)
    if name == "c" and setting.tiles is not None and not setting.tiles.scale_d:
        found.append(Source(2, "kept", {}, lambda given: own({"c": given["before"]})))
    for step in (1, -1, 0) if tiles > 1 and name != "d" else ():
        found.append(Source(3, "tile", {"by": step}, partial(_of_tile, step, own)))
    return tuple(found)


def _of_tile(step: int, own: Callable[[Registers], Codes], given: Registers) -> Codes:
    """Return the codes of the next or the previous tile, or (0) of the first."""
    codes = own(given)
    return np.roll(codes, -step, axis=-2) if step else np.broadcast_to(codes[..., :1, :], codes.shape)


def _functions(instruction: Instruction, name: str) -> Any:
    if name == "e":
        return index_functions(index_bits(instruction))
    if name.startswith("scale"):
        return scale_functions(present(instruction.scale, "scale"))
    shift = instruction.storage(name).shift if name in "ab" else 0
    return value_functions(instruction.format(name), shift)


def _of_other(setting: Setting, name: str, other: str) -> Iterator[Source]:
    """Yield the other operand's words, lane by lane and register by register."""
    instruction = setting.instruction
    if setting.in_shared(name) or setting.in_shared(other):
        return
    if name in "ab" and instruction.format(name).bits != instruction.format(other).bits:
        return
    count = instruction.held(name).words

    def codes(given: Registers) -> Codes:
        words = given[other][..., np.arange(count) % given[other].shape[-1]]
        return read(setting, name, {name: words})

    yield Source(2, "other operand", {"operand": other}, codes)


# --- the numbers of a tile -------------------------------------------------------------------------------


class Tile:
    """The numbers of one tile: matrices of values by product, with scales and signs, and D as it came out."""

    def __init__(
        self, setting: Setting, registers: Registers, results: tuple[Words, Words], number: int
    ) -> None:
        self.setting, self.given, self.number = setting, registers, number
        self.instruction = form = setting.instruction
        self.actual, self.expected = (
            codes_from(words[number], form, "d").reshape(form.products, *form.matrix_shape("d"))
            for words in results
        )

    def matrix(self, name: str) -> Numbers:
        """Return values ``(products, rows, columns)`` of operand a, b or c."""
        form = self.instruction
        codes = read(self.setting, name, self.given)[self.number]
        values = numbers(codes, form.format(name))
        if form.format(name).bits == 1:
            values = np.abs(values)
        if self.setting.tiles is not None and name in "ab":
            values = values * (-1.0 if self.setting.tiles.negate["ab".index(name)] else 1.0)
        return np.asarray(values.reshape(form.products, *form.matrix_shape(name)))

    @cached_property
    def columns(self) -> Index:
        """``(m, stored k)``: the logical column of every stored element of A."""
        form = self.instruction
        if not form.sparse:
            return np.broadcast_to(np.arange(form.shape.k), form.matrix_shape("a"))
        registers = {name: self.given[name][self.number] for name in form.registers if name in self.given}
        inputs = Inputs(registers=registers, selector=self.setting.selector, literal=True)
        return present(gathered_columns(form, inputs), "columns")

    @cached_property
    def result(self) -> Numbers:
        """D as it came out, ``(products, m, n)``; what saturated is no number."""
        element = self.instruction.d
        values = numbers(self.actual, element)
        if not element.is_float and self.instruction.satfinite:
            limit = float(element.sign_bit)
            values = np.where((values >= limit - 1) | (values <= -limit), np.nan, values)
        return np.where(np.isfinite(values), values, np.nan)

    def scales(self, side: str) -> Numbers:
        """Return the scale of every element, ``(m, k)`` of A or ``(k, n)`` of B; 1 without scales."""
        form, shape = self.instruction, self.instruction.shape
        if form.scale is None:
            return np.ones((shape.m, shape.k) if side == "a" else (shape.k, shape.n))
        values = numbers(self.scale_codes(side), form.scale)
        each = shape.k // form.scale_chunks
        return np.repeat(values, each, axis=1) if side == "a" else np.repeat(values.T, each, axis=0)

    def scale_places(self, side: str) -> Index:
        """Return ``(lines, chunks)``: the places of the scales that the ids read."""
        ids, place = self.setting.scale_selectors, self.instruction.scales(side)
        byte, thread = getattr(ids, f"byte_id_{side}"), getattr(ids, f"thread_id_{side}")
        return np.asarray(place.lanes_of(thread)[:, None] * 4 + byte + np.arange(place.chunks))

    def scale_codes(self, side: str) -> Codes:
        """Return ``(lines, chunks)``."""
        codes = read(self.setting, f"scale_{side}", self.given)[self.number]
        return np.asarray(codes[self.scale_places(side)])

    @cached_property
    def left(self) -> Numbers:
        """A by logical columns without scales, ``(products, m, k)``."""
        a = self.matrix("a")
        full = np.zeros((*a.shape[:2], self.instruction.shape.k))
        for product in range(len(a)):
            np.add.at(full[product], (np.arange(a.shape[1])[:, None], self.columns), a[product])
        return full

    @cached_property
    def offset(self) -> Numbers:
        """What D has besides the products: C."""
        return self.matrix("c")

    @cached_property
    def products(self) -> Numbers:
        """A times B as it should be, without C and before anything saturates, ``(products, m, n)``."""
        made = (self.left * self.scales("a")) @ (self.matrix("b") * self.scales("b"))
        if self.is_xor:
            made = self.left.sum(axis=2)[..., None] + self.matrix("b").sum(axis=1)[:, None] - 2 * made
        return np.asarray(made)

    @property
    def magnitude(self) -> Numbers:
        """Sums of the absolute values of the products, ``(products, m, n)``."""
        left, right = self.left * self.scales("a"), self.matrix("b") * self.scales("b")
        return np.asarray(np.abs(left) @ np.abs(right))

    @property
    def is_xor(self) -> bool:
        """Whether bits are combined by exclusive or."""
        return self.instruction.bit_operation == "xor"


def operands(tile: Tile, spread: Numbers | None = None) -> Iterator[Operand]:
    """Yield the operands of a tile, D first; ``spread`` is how far each element of D is known."""
    with np.errstate(all="ignore"):
        for problem in _problems(tile):
            yield _made(tile, *problem, spread=spread)


def selecting_operands(tile: Tile) -> Iterator[Operand]:
    """Yield metadata and scales of a tile."""
    with np.errstate(all="ignore"):
        for problem in _selected(tile):
            yield _made(tile, *problem, spread=None)


def unposed(setting: Setting, name: str) -> Operand:
    """Return an operand without a D: for maps that are tried, or made, by themselves."""
    views, every = (
        views_of(setting.instruction, name[-1] if name == "cd" else name),
        sources(setting, name, 1),
    )
    count = len(views[0].coordinates)
    return Operand(
        name=name,
        setting=setting,
        views=views,
        sources=every,
        codes=np.zeros(len(every) * count, np.uint8),
        values=np.ones(len(every) * count + 1),
        where=np.arange(count)[:, None],
        T=np.zeros((count, 1)),
        near=np.zeros((count, 1)),
        W=np.ones((count, 1, 1)),
    )


Problem = tuple[str, Index, Numbers, Numbers | None, Numbers | None]  # name, where, T, W, look


def _problems(tile: Tile) -> Iterator[Problem]:
    """Yield name, ``where``, ``T``, ``W`` and ``look`` of every operand."""
    d, c = tile.result, tile.offset
    places = np.arange(d.size)[:, None]
    yield "d", places, d.reshape(-1, 1), np.ones((d.size, 1, 1)), None
    yield "c", places, (d - tile.products).reshape(-1, 1), np.ones((d.size, 1, 1)), None
    yield "cd", places, (d - c).reshape(-1, 1), np.ones((d.size, 1, 1)), None
    rest = d - c
    form = tile.instruction
    count, (m, s), (k, n) = form.products, form.matrix_shape("a"), form.matrix_shape("b")
    b, scale_a, scale_b = tile.matrix("b"), tile.scales("a"), tile.scales("b")
    right, left = b * scale_b, tile.left * scale_a
    sign = -2.0 if tile.is_xor else 1.0
    w = right[:, tile.columns] * np.take_along_axis(scale_a, tile.columns, 1)[..., None]
    w = sign * w + (1 if tile.is_xor else 0)
    rest_a = rest - (b.sum(axis=1)[:, None] if tile.is_xor else 0)
    yield "a", np.arange(count * m * s).reshape(-1, s), rest_a.reshape(-1, n), w.reshape(-1, s, n), None
    where = np.arange(count * k * n).reshape(count, k, n).transpose(0, 2, 1).reshape(-1, k)
    w = left.transpose(0, 2, 1)[:, None] * scale_b.T[None, :, :, None]
    w = sign * w + (1 if tile.is_xor else 0)
    rest_b = rest - (tile.left.sum(axis=2)[..., None] if tile.is_xor else 0)
    yield "b", where, rest_b.transpose(0, 2, 1).reshape(-1, m), w.reshape(-1, k, m), None
    yield from _selected(tile)


def _selected(tile: Tile) -> Iterator[Problem]:
    rest = (tile.result - tile.offset)[0]
    if tile.instruction.sparse:
        # the problem of metadata: what every code of an index lets the stored elements meet
        form, pattern = tile.instruction, require_sparse(tile.instruction)
        bits, (m, s) = index_bits(form), form.matrix_shape("a")
        index = form.metadata.fields(tile.setting.selector).index
        each = np.arange(4 // bits)
        where = (index[..., 0] * (32 // bits) + index[..., 1] // bits)[..., None] + each
        a, right = tile.matrix("a")[0], (tile.matrix("b") * tile.scales("b"))[0]
        scale = tile.scales("a")
        looks = []
        for code in range(1 << bits):
            fields = np.full((m, s // pattern.stored), code if bits == 4 else code * 5, np.uint8)
            columns = columns_of(form, fields, None, literal=True)
            parts = (a * np.take_along_axis(scale, columns, 1))[..., None] * right[columns]
            looks.append(parts.reshape(m, -1, pattern.unit, parts.shape[-1]).sum(axis=2))
        yield ("e", where.reshape(m, -1), rest, None, np.stack(looks, axis=-1))
    if tile.instruction.scale:
        yield from _scales(tile, rest)


def _scales(tile: Tile, rest: Numbers) -> Iterator[Problem]:
    form = tile.instruction
    chunks, k = form.scale_chunks, form.shape.k
    a, b = tile.left[0].reshape(-1, chunks, k // chunks), tile.matrix("b")[0].reshape(chunks, k // chunks, -1)
    scale_a, scale_b = tile.scales("a")[:, :: k // chunks], tile.scales("b")[:: k // chunks]
    parts = np.einsum("mck,ckn->mcn", a, b)
    yield "scale_a", tile.scale_places("a"), rest, parts * scale_b[None], None
    of_b = (parts * scale_a[..., None]).transpose(2, 1, 0)
    yield "scale_b", tile.scale_places("b"), rest.T, of_b, None


def _made(tile: Tile, *problem: Any, spread: Numbers | None) -> Operand:
    """Return an operand from its problem: its sources, and how near a sum has to come."""
    name, where, target, w, look = problem
    setting, given = tile.setting, tile.given
    if name in ("d", "cd"):
        given = {"d": written(setting, "d", tile.expected.reshape(1, -1), given)}
    every = sources(setting, name, 1 if "d" in given else len(given["c"]))
    codes = np.concatenate([source.codes(given)[0 if "d" in given else tile.number] for source in every])
    values = _values(tile.instruction, name, codes)
    if name == "cd":
        values = tile.products.reshape(-1)
    return Operand(
        name=name,
        setting=setting,
        views=views_of(tile.instruction, name[-1] if name == "cd" else name),
        sources=every,
        codes=codes,
        values=np.append(values, 0.0),
        where=where,
        T=target,
        near=_near(tile, name, target, w if look is None else look, values[: len(codes) // len(every)])
        + _known(tile, name, target, spread),
        W=w,
        look=look,
        wraps=not tile.instruction.d.is_float,
    )


def _values(form: Instruction, name: str, codes: Codes) -> Numbers:
    name = "d" if name == "cd" else name
    if name == "e":
        return codes.astype(np.float64)
    if name.startswith("scale"):
        return np.asarray(numbers(codes, present(form.scale, "scale")))
    values = numbers(codes, form.format(name))
    return np.asarray(np.abs(values) if form.format(name).bits == 1 else values)


def _near(tile: Tile, name: str, target: Numbers, weights: Numbers, own: Numbers) -> Numbers:
    """Return the bound of rounding of every sum: it follows the products, C, and D as it came out."""
    form = tile.instruction
    if not form.d.is_float:
        return np.full_like(target, _EXACT)
    if name == "c":  # what is added changes, the products do not
        largest = np.nan_to_num(np.abs(own), posinf=0.0).max()
        return np.asarray(_share(form) * (np.nan_to_num(tile.magnitude).reshape(-1, 1) + largest) + 1e-300)
    size = np.abs(weights).max(axis=-1) if name == "e" else np.abs(weights)
    most = 1.0 if name == "e" else float(np.nan_to_num(np.abs(own), posinf=0.0).max(initial=0.0))
    largest = sum(float(np.nan_to_num(np.abs(each), posinf=0.0).max()) for each in (tile.result, tile.offset))
    near = _share(form) * (np.nan_to_num(size).sum(axis=1) * most + 4 * largest) + 1e-300
    return np.asarray(np.broadcast_to(near, target.shape))


def _known(tile: Tile, name: str, target: Numbers, spread: Numbers | None) -> Any:
    """Return how far each element of D may be from its digits, as the operand's lines meet them."""
    if spread is None:
        return 0.0
    form = tile.instruction
    each = spread.reshape(form.products, *form.matrix_shape("d"))
    return (each.transpose(0, 2, 1) if name in ("b", "scale_b") else each).reshape(target.shape)


def _share(form: Instruction) -> float:
    """Return the share of the terms that rounding may take."""
    if form.d.bits == 64:
        return 2.0**-44
    if form.d.bits == 16:
        return _NARROW
    aligned = rule_for(form).aligned if form.target is not None else None
    kept = getattr(aligned, "fraction_bits", 23)
    return max(_SCREENED, 8 * 2.0**-kept)
