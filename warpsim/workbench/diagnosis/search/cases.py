"""Cases of the search, from an instruction's inputs and D, and random registers of a setting.

Checks the arguments and gives every operand one axis of tiles. Explanations with the same effect give the
same D on random registers. Does not search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError
from ....isa.formats import Format
from ....isa.fragments import (
    check_selector,
    checked_registers,
    codes_from,
    gather,
    matrix_codes,
    registers_of,
    require_sparse,
    write_fields,
)
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.products import Storage
from ....isa.registers import Words, unpacked
from ....sums.execution.pipeline import checked_inputs, rule_for
from ...inputs.decimals import Printed
from ..descriptors.described_tiles import read_tile
from ..library.arithmetic_mistakes import WHOLE, Arithmetic, Part
from ..library.mistake import Mistake
from ..library.setting import Registers, Setting, SharedTiles


def case_of(instruction: Instruction, inputs: Inputs, d: npt.ArrayLike) -> Case:
    """Return the case with one axis of tiles everywhere; C left out is zero.

    ``d`` is registers or matrices ``(..., m, n)``. Raises what executing raises, but reads undefined
    metadata and unaligned tiles as they stand, and OperandError for descriptors that differ between tiles.
    """
    rule_for(instruction)
    if instruction.sparse:
        check_selector(instruction, inputs.selector)
    zeros = np.zeros(instruction.held("c").shape, f"u{instruction.register_bits // 8}")
    given = replace(inputs, literal=True, registers={"c": zeros} | inputs.registers)
    checked = checked_inputs(instruction, given)
    gather(instruction, checked)
    setting = setting_of(instruction, checked)
    # each operand one axis of tiles in front
    inner = {
        name: (words, words.shape[-2:])
        for name, words in (checked.registers | {"d": _written(instruction, np.asarray(d))}).items()
    }
    if checked.shared is not None:
        inner["shared"] = checked.shared, checked.shared.shape[-1:]
    try:
        lead = np.broadcast_shapes(*(array.shape[: -len(axes)] for array, axes in inner.values()))
    except ValueError:
        raise OperandError("the leading axes (tiles) of the operands do not broadcast together") from None
    tiles = {
        name: np.broadcast_to(array, (*lead, *axes)).reshape(-1, *axes)
        for name, (array, axes) in inner.items()
    }
    return Case(setting=setting, actual=tiles.pop("d"), registers=with_tiles(setting, tiles))


def setting_of(instruction: Instruction, inputs: Inputs) -> Setting:
    """Return the instruction with its immediates and descriptors."""
    tiles = None
    if inputs.shared is not None and inputs.b_descriptor is not None:
        tiles = SharedTiles(
            a=None if inputs.a_descriptor is None else _single(inputs.a_descriptor, "a_desc"),
            b=_single(inputs.b_descriptor, "b_desc"),
            memory_bytes=inputs.shared.shape[-1],
            scale_d=inputs.scale_d,
            negate=inputs.negate,
            transposed=inputs.transposed,
        )
    return Setting(
        instruction=instruction,
        selector=inputs.selector,
        scale_selectors=inputs.scale_selectors,
        tiles=tiles,
    )


def with_tiles(setting: Setting, registers: Registers) -> Registers:
    """Return registers with what is read from ``shared`` memory; C is zero where scale-d is false."""
    if setting.tiles is None:
        return registers
    read = {name: read_tile(setting, name, registers["shared"]) for name in "ab" if setting.in_shared(name)}
    if setting.tiles.scale_d:
        return registers | read
    return registers | read | {"before": registers["c"], "c": np.zeros_like(registers["c"])}


def _single(descriptors: npt.NDArray[np.uint64], name: str) -> int:
    values = np.unique(descriptors)
    if values.size != 1:
        raise OperandError(f"{name}: diagnosis takes one descriptor for all tiles, not {values.size}")
    return int(values[0])


def _written(instruction: Instruction, d: npt.NDArray[Any]) -> Words:
    if d.shape[-2:] == instruction.matrix_shape("d"):
        return registers_of(matrix_codes(d, instruction, "d"), instruction, "d")
    return checked_registers(d, instruction, "d")


# --- random registers ----------------------------------------------------------------------------------


_SPREAD = 4  # exponents of random floats lie within 2**-4 and 2**4: sums are inexact, never infinite
_NEAR = 1 << 12  # what the products of one sum come to, about


def probe(setting: Setting, tiles: int, seed: int) -> Registers:
    """Return registers ``(tiles, lanes, registers)`` of every input, with legal metadata in all lanes."""
    instruction, rng = setting.instruction, np.random.default_rng(seed)
    present = [name for name in "abc" if not setting.in_shared(name)]
    registers = {name: _fragment(instruction, name, tiles, rng) for name in present}
    if instruction.sparse:
        # ascending fields under every selector, so that lanes a selector ignores hold other metadata
        pattern = require_sparse(instruction)
        shape = (tiles, instruction.shape.m, instruction.shape.k // pattern.chunk)
        words = [
            write_fields(instruction, rng.choice(np.flatnonzero(pattern.ascending), shape), selector)
            for selector in instruction.selectors
        ]
        e: npt.NDArray[Any] = np.bitwise_or.reduce(words, axis=0)
        registers["e"] = e
    if instruction.scale:
        for name in ("scale_a", "scale_b"):
            codes = random_codes(instruction.scale, (tiles, instruction.lanes, 4), rng)
            registers[name] = np.ascontiguousarray(codes, np.uint8).view("<u4")
    if setting.tiles is not None:
        registers["shared"] = _memory(instruction, (tiles, setting.tiles.memory_bytes), rng)
    return with_tiles(setting, registers)


def _memory(
    instruction: Instruction, shape: tuple[int, int], rng: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """Return memories full of elements of A, which are as wide as those of B."""
    size = instruction.a.code_dtype.itemsize
    tiles, count = shape
    codes = random_codes(instruction.a, (tiles, -(-count // size)), rng)
    if instruction.a.bits == 1:
        codes = rng.integers(0, 256, codes.shape, np.uint8)
    memory: npt.NDArray[np.uint8] = np.ascontiguousarray(codes).view(np.uint8)[:, :count]
    return memory


def random_codes(element: Format, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return codes of moderate finite floats, or of integers; ignored low bits are random too.

    Half of the accumulators of integers are so near to an end that a sum may saturate or wrap.
    """
    if not element.is_float:
        wide = rng.integers(0, 1 << min(element.bits, 32), shape, np.uint64)
        if element.bits == 32:
            near = np.uint64(1 << 31) + rng.integers(-_NEAR, _NEAR, shape).astype(np.uint64)
            wide = np.where(rng.integers(0, 2, shape, bool), wide, near & np.uint64(element.mask))
        return wide.astype(element.code_dtype)
    low, high = max(0, element.bias - _SPREAD), min((1 << element.exponent_bits) - 2, element.bias + _SPREAD)
    exponent = rng.integers(low, max(high, 2), shape, np.uint64, endpoint=True)
    step = np.uint64(element.fraction_bits + element.ignored_bits)
    fraction = rng.integers(0, 1 << int(step), shape, np.uint64)
    sign = rng.integers(0, 2, shape, np.uint64) * np.uint64(element.sign_bit)
    codes: npt.NDArray[Any] = (sign | exponent << step | fraction).astype(element.code_dtype)
    return codes


def _fragment(
    instruction: Instruction, operand: str, tiles: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    lead = (tiles, instruction.products) if instruction.products > 1 else (tiles,)
    shape = (*lead, *instruction.matrix_shape(operand))
    return registers_of(random_codes(instruction.format(operand), shape, rng), instruction, operand)


Elements = npt.NDArray[Any]  # (..., tiles, elements of D)


_SCREENED = 256  # elements of D; of larger results only some rows and columns are compared while searching
_PART_ROWS, _PART_COLUMNS = 16, 8


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is to be explained: registers ``(tiles, lanes, registers)`` by operand, and D as it came out."""

    setting: Setting
    registers: Registers
    actual: Words
    part: Part = WHOLE  # of D, which alone is compared while searching
    printed: Printed | None = None  # D's numbers, where their digits do not distinguish all codes

    def settled(self, d: Elements, wanted: Elements) -> Elements:
        """Return codes of D, replaced by the wanted codes where they print the same."""
        return d if self.printed is None else self.printed.settled(d, wanted, self.setting.instruction.d)

    def made(self, explanation: Sequence[Mistake]) -> Elements:
        """Return ``(tiles, elements)`` of D with mistakes made, replaced by D's where they print the same."""
        d = outcome(self.setting, self.registers, explanation)
        return self.settled(elements_of(d, self.setting.instruction), self.elements)

    @cached_property
    def elements(self) -> Elements:
        """``(tiles, elements)``: those of D as it came out."""
        return elements_of(self.actual, self.setting.instruction)

    @cached_property
    def expected(self) -> Words:
        """D as it should be."""
        return outcome(self.setting, self.registers, ())

    @cached_property
    def equal(self) -> npt.NDArray[np.bool_]:
        """``(tiles, [products,] m, n)``: elements of D that are as expected."""
        x, y = (codes_from(words, self.setting.instruction, "d") for words in (self.expected, self.actual))
        return np.asarray(self.settled(x, y) == y)

    @property
    def worst(self) -> int:
        """The tile with most wrong elements."""
        return int(self.equal.reshape(len(self.equal), -1).sum(axis=-1).argmin())

    @property
    def screened(self) -> Case:
        """The case of the worst tile, a part of large tiles."""
        at, wrong = slice(self.worst, self.worst + 1), ~self.equal[self.worst]
        part = WHOLE
        if wrong.ndim <= 2 and wrong.size > _SCREENED:
            part = spread_part(wrong, _PART_ROWS, _PART_COLUMNS)
        registers = {name: words[at] for name, words in self.registers.items()}
        return replace(self, registers=registers, actual=self.actual[at], part=part)


def elements_of(words: Words, instruction: Instruction) -> Elements:
    """Return ``(..., elements)``: the codes of D in the order of the registers."""
    storage = Storage(bits=instruction.d.bits)
    flat = words.reshape(*words.shape[:-2], -1)
    return unpacked(flat, storage, instruction.register_bits, instruction.d.mask)


def spread_part(wrong: npt.NDArray[np.bool_], rows: int, columns: int) -> Part:
    """Return a part of a matrix, at most this size, wrong lines first."""
    if wrong.shape[0] <= rows and wrong.shape[1] <= columns:
        return WHOLE
    down, across = np.asarray(wrong.any(axis=1)), np.asarray(wrong.any(axis=0))
    return Part(rows=_spread(down, rows), columns=_spread(across, columns))


def _spread(flags: npt.NDArray[np.bool_], count: int) -> npt.NDArray[np.intp]:
    """Return indices of ``count`` flags, set flags first, evenly spread among them."""
    marked, others = np.flatnonzero(flags), np.flatnonzero(~flags)
    if len(marked) >= count:
        return marked[np.linspace(0, len(marked) - 1, count).astype(np.intp)]
    more = others[np.linspace(0, len(others) - 1, min(count - len(marked), len(others))).astype(np.intp)]
    return np.sort(np.concatenate([marked, more]))


# --- one explanation -----------------------------------------------------------------------------------


def outcome(setting: Setting, registers: Registers, explanation: Sequence[Mistake]) -> Words:
    """Return D ``(tiles, lanes, registers)`` as it is read with these mistakes made, in order."""
    registers, arithmetic = dict(registers), Arithmetic(instruction=setting.instruction)
    for mistake in explanation:
        arithmetic = mistake.arithmetic or arithmetic
        registers |= mistake.change(registers) if mistake.change else {}
    d = registers_of(arithmetic.simulate(setting, registers), setting.instruction, "d")
    for mistake in explanation:
        d = mistake.read(d) if mistake.read else d
    return d


def reproduces(case: Case, mistake: Mistake) -> bool:
    """Return whether a single mistake gives every bit of D, or of the part of it that is compared."""
    form = case.setting.instruction
    registers = case.registers | (mistake.change(case.registers) if mistake.change else {})
    wanted = case.part.of_result(codes_from(case.actual, form, "d"))
    arithmetic = mistake.arithmetic or Arithmetic(instruction=form)
    return bool(
        (case.settled(arithmetic.simulate(case.setting, registers, case.part), wanted) == wanted).all()
    )
