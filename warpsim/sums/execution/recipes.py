"""Recipes for kernels.batches: where every word of an instruction's operands lies, and its numbers.

An operand lies in registers or, for wgmma, in shared memory behind a matrix descriptor. Knows layouts,
metadata and descriptors; does not execute anything. ``None`` is the answer wherever the kernel does not
apply or something is in error, which the slow way then finds and reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import WarpsimError, present
from ...isa.architectures import rule_of
from ...isa.descriptors.matrix_descriptor import Descriptor
from ...isa.descriptors.tile_addresses import tile_addresses
from ...isa.fragments import known_fields, metadata_map
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ...isa.products import Product
from ...isa.rules import Rule
from ...isa.sparsity import Pattern
from ..arithmetic.kernels._jit import interpreted
from ..arithmetic.kernels.batches import COLUMNS, Header, Tables, register_kernel
from ..arithmetic.kernels.decode import Coding
from ..arithmetic.kernels.joined import STRIDE, joined_kernel
from ..arithmetic.kernels.llvm.workspace import RUN
from ..arithmetic.kernels.sharing import Layout
from ..arithmetic.kernels.variants import LIFT_A, LIFT_B, Variant
from ..arithmetic.plans import Plan, applies, are_narrow, coding_of, plan_of

Table = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe:
    """A compiled kernel and the table of numbers and places that it works by.

    ``names``: where a, b, c and metadata come from, operands or "shared"; ``shapes``: their last two axes,
    (lanes, registers), or (1, words) of shared memory; ``sizes``: words of a case in each, 0 where all
    cases have the same. ``header`` and ``tables`` are the numbers and places, of registers lane by lane.
    ``joining`` returns the recipe of kernels.joined, where that serves the instruction.
    """

    kernel: Callable[..., int]
    header: Header
    tables: Tables
    names: tuple[str, ...]
    sources: frozenset[str]  # names, each once
    shapes: list[tuple[int, int]]
    sizes: tuple[int, ...]
    joining: Callable[[], Recipe] | None = None

    @cached_property
    def joined(self) -> Recipe | None:
        """The recipe for executions that share factors."""
        return self.joining() if self.joining else None

    @property
    def products(self) -> int:
        """Products of an execution."""
        return self.header.rows * self.header.columns * len(self.tables.row_of_b)

    @cached_property
    def singles(self) -> list[int]:
        """Operands of one register, which may come without their last axis."""
        return [place for place, (_, count) in enumerate(self.shapes) if count == 1]

    @cached_property
    def plain(self) -> tuple[tuple[int, int], ...] | None:
        """The shapes of a, b, c and metadata where all of them are registers, otherwise None."""
        return tuple(self.shapes) if self.names == ("a", "b", "c", "e")[: len(self.names)] else None

    @cached_property
    def table(self) -> npt.NDArray[np.int32]:
        """The table for registers lane by lane, as arrays of ``shapes`` have them."""
        return _table(self.header, self.tables)

    @cached_property
    def steps(self) -> list[int]:
        """From a case to the next in each operand whose registers lie one behind the other: its lanes."""
        return [
            size if name == "shared" else lanes
            for name, size, (lanes, _) in zip(self.names, self.sizes, self.shapes, strict=True)
        ]


@lru_cache(maxsize=512)  # of 20 kB: a schedule has many numbers of cases for each tile of a ring
def table_by_register(recipe: Recipe, cases: int) -> npt.NDArray[np.int32] | None:
    """Return the table for operands ``(registers, cases, lanes)``, except of shared memory.

    None for so many cases that a place does not fit the table.
    """
    held = [prod(shape) for name, shape in zip(recipe.names, recipe.shapes, strict=True) if name != "shared"]
    if cases * max(held) >= 1 << 31:
        return None
    a, b, c, *e = recipe.steps
    header = recipe.header._replace(words_a=a, words_b=b, words_c=c, words_e=e[0] if e else 0)
    moved = dict[str, Table]()
    for field, place in (("words_a", 0), ("words_b", 1), ("words_c", 2), ("field_words", 3)):
        if place < len(recipe.names) and recipe.names[place] != "shared":
            lanes, count = recipe.shapes[place]
            words = getattr(recipe.tables, field)
            moved[field] = words % count * (cases * lanes) + words // count
    return _table(header, recipe.tables._replace(**moved))


@lru_cache(maxsize=512)
def layouts_of(recipe: Recipe, cases: int | None) -> tuple[Layout, Layout, Layout]:
    """Return where words of a case lie in A, B and metadata; register by register of so many ``cases``."""
    found = list[Layout]()
    for (lanes, count), size in zip(recipe.shapes, recipe.sizes, strict=True):
        found.append((1, size, 0, size) if cases is None else (count, lanes, cases * lanes, lanes))
    a, b, _, *e = found
    return a, b, e[0] if e else (0, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """The shared memory of a call: descriptors (A's None: in registers), words, common to all cases."""

    a: int | None
    b: int
    words: int
    common: bool


def applies_to_registers(product: Product, rule: Rule) -> bool:
    """Return whether there are recipes: a single product, no block scales, metadata for elements."""
    return (
        not interpreted()
        and applies(product, rule)
        and product.products == 1
        and product.scale is None
        and (product.pattern is None or product.pattern.unit == 1)
    )


@cache
def _compile_kernel(variant: Variant, bits: int, kept: int) -> Callable[..., int]:
    return (joined_kernel if variant.stride == STRIDE else register_kernel)(variant, bits, kept)


@lru_cache(maxsize=1024)
def recipe_of(instruction: Instruction, selector: int, literal: bool, tiles: Tiles | None) -> Recipe | None:
    """None where the kernel does not handle the instruction, or something is not legal."""
    product = instruction.product
    if instruction.target is None or selector not in (instruction.selectors or (0,)):
        return None
    if instruction.descriptor is not None:  # tensor memory has no recipes
        return None
    if any(product.negated + product.transposed):
        return None
    if not instruction.registers.keys() >= set(instruction.operands) - set("ab"):
        return None  # C, D or metadata lie in a memory
    rule = rule_of(instruction.target, instruction.family.rules, product)
    if not applies_to_registers(instruction.product, rule) or instruction.reads_tiles != (tiles is not None):
        return None
    plan = register_plan(instruction.product, rule, instruction.shape.n)
    try:
        a, b = (_words(instruction, operand, tiles, literal) for operand in "ab")
    except (WarpsimError, _NotInWords):
        return None
    tables = _tables(instruction, plan, selector, a, b)
    joining = None
    if tiles is None and plan.variant.stride == COLUMNS:
        joining = partial(_joined_recipe, instruction, rule, literal, (selector, a, b))
    return _recipe(instruction, plan, literal, tiles, tables, joining)


def _joined_recipe(form: Instruction, rule: Rule, literal: bool, places: tuple[int, Table, Table]) -> Recipe:
    plan = joined_plan(form.product, rule)
    return _recipe(form, plan, literal, None, _tables(form, plan, *places))


@cache
def joined_plan(product: Product, rule: Rule) -> Plan:
    """Return the plan of kernels.joined: exponents are bytes where they are those of f16 at most."""
    plan = plan_of(product, rule, STRIDE)
    return replace(plan, variant=replace(plan.variant, width=32, compact=are_narrow(product)))


@cache
def register_plan(product: Product, rule: Rule, n: int) -> Plan:
    """Return the plan of kernels.batches for registers: exponents may be bytes where n is above COLUMNS."""
    plan = narrow_plan(product, rule, n)
    compact = n > COLUMNS and are_narrow(product)
    return replace(plan, variant=replace(plan.variant, compact=compact))


@cache
def narrow_plan(product: Product, rule: Rule, n: int) -> Plan:
    """Return a plan for n columns, up to 256, whose planes have few widths: few kernels to compile."""
    stride = next(width for width in (COLUMNS, 256) if n <= width)
    plan = plan_of(product, rule, stride)
    return replace(plan, variant=replace(plan.variant, width=COLUMNS if n % 32 else 32))


def _recipe(
    form: Instruction,
    plan: Plan,
    literal: bool,
    tiles: Tiles | None,
    tables: Tables,
    joining: Callable[[], Recipe] | None = None,
) -> Recipe:
    pattern = form.pattern
    legal = _known_fields(form) if pattern and not literal else 0xFFFF
    names = _sources(form, tiles)
    shapes = [_shape(form, name, tiles) for name in names]
    fixed = {"shared"} if tiles and tiles.common else set()
    sizes = tuple(0 if name in fixed else prod(_shape(form, name, tiles)) for name in names)
    return Recipe(
        kernel=_compile_kernel(plan.variant, form.storage("a").bits, pattern.kept if pattern else 0),
        header=_header(plan, sizes, legal),
        tables=tables,
        names=names,
        sources=frozenset(names),
        shapes=shapes,
        sizes=sizes,
        joining=joining,
    )


def _sources(form: Instruction, tiles: Tiles | None) -> tuple[str, ...]:
    """Return where the kernel's a, b, c and metadata come from."""
    a = "shared" if tiles and tiles.a is not None else "a"
    b = "shared" if tiles else "b"
    return (a, b, "c", "e") if form.sparse else (a, b, "c")


def _shape(form: Instruction, name: str, tiles: Tiles | None) -> tuple[int, int]:
    if name == "shared":
        tiles = present(tiles, "tiles")
        return 1, tiles.words
    return form.held(name).shape


def _header(plan: Plan, sizes: tuple[int, ...], legal: int) -> Header:
    """Return the numbers of a recipe; ``sizes``: words of a case in A, B, C and metadata."""
    form = plan.product
    a, b, c, *e = sizes
    fraction_bits, exponent_floor, precision = plan.numbers
    return Header(
        rows=form.shape.m,
        passes=plan.passes(1),
        columns=form.shape.n,
        words_a=a,
        words_b=b,
        words_c=c,
        words_e=e[0] if e else 0,
        legal=legal,
        fraction_bits=fraction_bits,
        exponent_floor=exponent_floor,
        precision=precision,
        narrow=int(are_narrow(form)),
        adjacent=0,
        coding_a=_coding(plan, "a"),
        coding_b=_coding(plan, "b"),
        coding_c=_coding(plan, "c"),
    )


def _table(header: Header, tables: Tables) -> npt.NDArray[np.int32]:
    """Return all integers of a recipe, as the kernel reads them back."""
    held = header.columns // tables.words_c.shape[1]
    header = header._replace(adjacent=int(_are_adjacent(tables.words_c, held)))
    return np.concatenate([np.hstack(header), *map(np.ravel, tables)]).astype(np.int32)


def _are_adjacent(words: Table, held: int) -> bool:
    """Return whether words of C ``(rows, words)``, with ``held`` elements each, lie as gathered_rows takes
    them.
    """
    runs = COLUMNS // RUN // held
    blocks = words.reshape(len(words), -1, RUN, runs)
    return bool((blocks == blocks[:, :, :1] + np.arange(RUN)[:, None]).all())


class _NotInWords(Exception):
    """The elements of a word of a tile are not neighbours along k, as they are in registers."""


def _words(form: Instruction, operand: str, tiles: Tiles | None, literal: bool) -> Table:
    """Return places of the words of A, by row, or of B, by column: in registers or in shared memory."""
    each = 32 // form.storage(operand).bits
    descriptor = None if tiles is None else {"a": tiles.a, "b": tiles.b}[operand]
    if tiles is None or descriptor is None:
        return words_of(form.in_registers(operand).layout.inverse, each, "ba".index(operand))
    shape, word = form.in_shared_memory(operand).shape(), Descriptor.decode(descriptor)
    addresses = tile_addresses(word, shape, memory_bytes=4 * tiles.words, literal=literal)
    return _tile_words(addresses.reshape(shape.mn, -1, each), shape.size, operand)


def _tile_words(addresses: Table, size: int, operand: str) -> Table:
    first = addresses[..., 0]
    if (addresses != first[..., None] + size * np.arange(addresses.shape[2])).any() or (first % 4).any():
        raise _NotInWords
    return first // 4 if operand == "a" else first.T // 4


def _known_fields(instruction: Instruction) -> int:
    """Return a bit for each value of a metadata field that is legal and whose effect is known."""
    return int(np.sum(known_fields(instruction).astype(np.int64) << np.arange(16)))


def _coding(plan: Plan, operand: str) -> Coding:
    form = plan.product
    if operand == "c":
        return coding_of(form.c)
    shift, lift = form.storage(operand).shift, {"a": LIFT_A, "b": LIFT_B}[operand]
    return coding_of(form.format(operand), as_half=plan.variant.emulated, shift=shift, lift=lift)


def _tables(form: Instruction, plan: Plan, selector: int, a: Table, b: Table) -> Tables:
    """Return the tables of a recipe, of the places of the words of A and B."""
    depth = form.shape.k
    order = np.arange(plan.depth) if plan.variant.sparse else plan.order
    # Row r of the planes is row whole[r] of B.
    whole = (np.arange(0, depth, plan.depth)[:, None] + order).reshape(-1)
    c = words_of(form.in_registers("c").layout.inverse, 32 // form.storage("c").bits, 1)
    bases, words, bits = (
        _NO_METADATA if form.pattern is None else _metadata(form, plan, form.pattern, selector)
    )
    return Tables(a, b, c, np.argsort(whole), plan.order, bases, words, bits)


def words_of(places: Table, each: int, axis: int) -> Table:
    """Return places of words, of places of elements, ``each`` of which along the axis make up a word."""
    first = places[:, ::each] if axis == 1 else places[::each]
    last = places[:, each - 1 :: each] if axis == 1 else places[each - 1 :: each]
    if (first % each).any() or (last != first + each - 1).any():
        raise AssertionError("the elements of a word are not neighbours in the matrix")
    return first // each


_NO_METADATA = (np.zeros(0, np.int64),) * 3


def _metadata(form: Instruction, plan: Plan, pattern: Pattern, selector: int) -> tuple[Table, Table, Table]:
    """Return offsets of the chunks of a row, and place and lowest bit of every four fields (see
    kernels.batches).
    """
    lane, bit, _, _, _ = metadata_map(form, selector).T.reshape(5, -1, 4)  # by row of A, then chunk
    if (lane != lane[:, :1]).any() or (bit != bit[:, :1] + np.arange(0, 16, 4)).any():
        raise AssertionError("four fields are not neighbours in a register")
    stored = np.arange(form.stored_k)
    bases = stored // pattern.stored * pattern.chunk % plan.depth
    return bases * plan.variant.stride, lane[:, 0], bit[:, 0]


def tiles_of(instruction: Instruction, inputs: Inputs) -> Tiles | None:
    """Return what an instruction reads from shared memory, if the kernel can: K-major, alike in all cases."""
    memory, words = inputs.shared, (inputs.a_descriptor, inputs.b_descriptor)
    if not instruction.reads_tiles or inputs.b_descriptor is None:
        return None
    if memory is None or any(inputs.negate) or any(inputs.transposed):
        return None
    if memory.dtype != np.uint8 or memory.ndim < 1 or memory.shape[-1] % 4:
        return None
    if any(word is not None and (word.size == 0 or (word != word.flat[0]).any()) for word in words):
        return None
    a, b = (None if word is None else int(word.flat[0]) for word in words)
    b = present(b, "b")
    return Tiles(a=a, b=b, words=memory.shape[-1] // 4, common=memory.ndim == 1)
