"""From what an instruction reads, and the D that came out, to the case that the search works on.

Checks the arguments and gives every operand one axis of tiles. Does not search.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import OperandError
from ...execution.pipeline import checked_inputs, rule_for
from ...isa.fragments import check_selector, checked_registers, gather, matrix_codes, registers_of
from ...isa.instruction import Inputs, Instruction
from ...isa.registers import Words
from ..library.grids import Registers, Setting, SharedTiles
from ..library.tile_mistakes import read_tile
from .mistake_search import Case


def case_of(instruction: Instruction, inputs: Inputs, d: npt.ArrayLike) -> Case:
    """Return the case with one axis of tiles everywhere; C left out is zero.

    ``d`` is registers or matrices ``(..., m, n)``. Raises what executing raises, but reads undefined
    metadata and unaligned tiles as they stand, and OperandError for descriptors that differ between tiles.
    """
    rule_for(instruction)
    if instruction.sparse:
        check_selector(instruction, inputs.selector)
    given = replace(inputs, literal=True, registers=_with_c(instruction, inputs.registers))
    checked = checked_inputs(instruction, given)
    gather(instruction, checked)
    setting = setting_of(instruction, checked)
    tiles = _broadcast(checked.registers | {"d": _written(instruction, np.asarray(d))}, checked.shared)
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


def _with_c(instruction: Instruction, registers: Registers) -> Registers:
    shape = instruction.lanes, instruction.registers["c"]
    zeros = np.zeros(shape, f"u{instruction.register_bits // 8}")
    return {"c": zeros} | registers


def _written(instruction: Instruction, d: npt.NDArray[Any]) -> Words:
    """D's registers, from registers or from matrices."""
    if d.shape[-2:] == instruction.matrix_shape("d"):
        return registers_of(matrix_codes(d, instruction, "d"), instruction, "d")
    return checked_registers(d, instruction, "d")


def _broadcast(registers: Registers, shared: npt.NDArray[np.uint8] | None) -> Registers:
    """One axis of tiles before the axes of each operand; raises OperandError where they do not fit."""
    inner = {name: (words, words.shape[-2:]) for name, words in registers.items()}
    if shared is not None:
        inner["shared"] = shared, shared.shape[-1:]
    try:
        lead = np.broadcast_shapes(*(array.shape[: -len(axes)] for array, axes in inner.values()))
    except ValueError:
        raise OperandError("the leading axes (tiles) of the operands do not broadcast together") from None
    return {
        name: np.broadcast_to(array, (*lead, *axes)).reshape(-1, *axes)
        for name, (array, axes) in inner.items()
    }
