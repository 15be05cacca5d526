"""Random registers of a setting, on which explanations with the same effect give the same D."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.formats import Format
from ...isa.fragments import registers_of, require_sparse, write_fields
from ...isa.instruction import Instruction
from ..library.grids import Registers, Setting
from .cases import with_tiles

_SPREAD = 4  # exponents of random floats lie within 2**-4 and 2**4: sums are inexact, never infinite
_NEAR = 1 << 12  # what the products of one sum come to, about


def probe(setting: Setting, tiles: int, seed: int) -> Registers:
    """Return registers ``(tiles, lanes, registers)`` of every input, with legal metadata in all lanes."""
    instruction, rng = setting.instruction, np.random.default_rng(seed)
    present = [name for name in "abc" if not setting.in_shared(name)]
    registers = {name: _fragment(instruction, name, tiles, rng) for name in present}
    if instruction.sparse:
        registers["e"] = _metadata(instruction, tiles, rng)
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


def _metadata(instruction: Instruction, tiles: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Ascending fields under every selector, so that lanes a selector ignores hold other metadata."""
    pattern = require_sparse(instruction)
    shape = (tiles, instruction.shape.m, instruction.shape.k // pattern.chunk)
    words = [
        write_fields(instruction, rng.choice(np.flatnonzero(pattern.ascending), shape), selector)
        for selector in instruction.selectors
    ]
    e: npt.NDArray[Any] = np.bitwise_or.reduce(words, axis=0)
    return e
