"""What an instruction reads, from the arguments of warpsim.execute: its keywords, gathered into records.

Checks values that no instruction takes; pipeline.py checks which instruction takes which input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.arrays import as_array, as_integer, as_words
from ...isa.families.tcgen05_operands import as_lane_words
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import NO_SCALE_SELECTORS, Inputs, ScaleSelectors, TensorSettings
from ...isa.registers import Words
from .pipeline import Undefined, execute_plain, is_literal

Given = Mapping[str, npt.ArrayLike | None]  # by operand; None where it is not given
OPERANDS = ("a", "b", "c", "e", "scale_a", "scale_b")  # that are registers


def _are_equal(given: tuple[Any, ...], usual: tuple[Any, ...]) -> bool:
    """Return whether given settings are the default; arrays, which are not settings, are not."""
    try:
        return given == usual
    except ValueError:
        return False


class WgmmaSettings(NamedTuple):
    """What wgmma takes besides registers: descriptors, the memory they point into, and its immediates."""

    a_desc: npt.ArrayLike | None = None
    b_desc: npt.ArrayLike | None = None
    shared: npt.ArrayLike | None = None
    scale_d: int = 1
    imm_scale_a: int = 1
    imm_scale_b: int = 1
    imm_trans_a: int = 0
    imm_trans_b: int = 0


_NO_SETTINGS = WgmmaSettings()
_NO_IMMEDIATES = _NO_SETTINGS[3:]


def inputs_from(
    given: Given,
    selector: int = 0,
    scale_selectors: tuple[Any, ...] = NO_SCALE_SELECTORS,
    settings: tuple[Any, ...] = _NO_SETTINGS,
    undefined: Undefined = "error",
) -> Inputs:
    """Return what an instruction reads, its integers as Python's; raises OperandError for values that none
    has.

    The fields of ``scale_selectors`` are those of ScaleSelectors, of ``settings`` those of WgmmaSettings.
    """
    registers = {name: as_array(value) for name, value in given.items() if value is not None}
    if type(selector) is not int or selector >> 8:  # each of these calls takes a tenth of a microsecond
        selector = as_integer(selector, "selector")
    literal = is_literal(undefined)
    if _are_equal(scale_selectors, NO_SCALE_SELECTORS) and _are_absent(settings):
        return Inputs.plain(registers, selector, literal)
    a_desc, b_desc, shared, scale_d, *immediates = settings
    imm_scale_a, imm_scale_b, imm_trans_a, imm_trans_b = immediates
    return Inputs(
        registers=registers,
        selector=selector,
        scale_selectors=_integers(ScaleSelectors(*scale_selectors)),
        literal=literal,
        shared=None if shared is None else as_array(shared),
        a_descriptor=None if a_desc is None else as_words(a_desc, "a_desc"),
        b_descriptor=None if b_desc is None else as_words(b_desc, "b_desc"),
        scale_d=_flag(scale_d, "scale_d"),
        negate=(_is_negated(imm_scale_a, "imm_scale_a"), _is_negated(imm_scale_b, "imm_scale_b")),
        transposed=(_flag(imm_trans_a, "imm_trans_a"), _flag(imm_trans_b, "imm_trans_b")),
    )


def _are_absent(settings: tuple[Any, ...]) -> bool:
    """Return whether all settings are absent or the default."""
    nowhere = settings[0] is settings[1] is settings[2] is None  # these may be arrays
    return nowhere and _are_equal(settings[3:], _NO_IMMEDIATES)


_PLAIN = (None, None, *NO_SCALE_SELECTORS, *_NO_SETTINGS, 1, 0, 0, None, None, None, None, "kernel")


def executed_if_plain(
    instruction: Any, registers: tuple[Any, ...], selector: Any, undefined: Undefined, others: tuple[Any, ...]
) -> Words | None:
    """Return D where an instruction is given as such, with registers and a selector at most: all other
    arguments of execute are the default. None for all other calls, and where no kernel takes the registers.
    """
    try:
        plain = type(instruction) is Instruction and type(selector) is int and others == _PLAIN
    except ValueError:  # arrays
        return None
    return execute_plain(instruction, registers, selector, undefined) if plain else None


def with_tensor_settings(inputs: Inputs, settings: tuple[Any, ...]) -> Inputs:
    """Return inputs with what only tcgen05.mma takes; raises OperandError for values that it never takes.

    The settings are enable_input_d, scale_input_d, zero_column_mask and disable_output_lane.
    """
    if settings[3] is None and settings == NO_TENSOR:
        return inputs
    enable_input_d, scale_input_d, zero_column_mask, disable_output_lane = settings
    power, mask = as_integer(scale_input_d, "scale_input_d"), as_integer(zero_column_mask, "zero_column_mask")
    if not 0 <= power <= 15:
        raise OperandError(f"scale_input_d is 0 to 15, not {power}")
    lanes = () if disable_output_lane is None else as_lane_words(disable_output_lane)
    enabled = inputs.scale_d and _flag(enable_input_d, "enable_input_d")
    return replace(inputs, scale_d=enabled, tensor=TensorSettings(power, lanes, mask))


TENSOR_DEFAULTS = {
    "enable_input_d": 1,
    "scale_input_d": 0,
    "zero_column_mask": 0,
    "disable_output_lane": None,
}
NO_TENSOR: tuple[Any, ...] = tuple(TENSOR_DEFAULTS.values())
_KEYWORDS = (
    *OPERANDS,
    "selector",
    *ScaleSelectors._fields,
    *WgmmaSettings._fields,
    *TENSOR_DEFAULTS,
    "undefined",
)


def inputs_by_name(operands: Mapping[str, Any]) -> Inputs:
    """inputs_from, of warpsim.execute's keywords; raises OperandError for a name that it does not take."""
    if unknown := sorted(set(operands) - set(_KEYWORDS)):
        raise OperandError(f"no operand is called {unknown[0]}; there are {', '.join(_KEYWORDS)}")
    given = {name: operands[name] for name in OPERANDS if name in operands}
    ids = {name: operands[name] for name in ScaleSelectors._fields if name in operands}
    settings = {name: operands[name] for name in WgmmaSettings._fields if name in operands}
    others = operands.get("selector", 0), ScaleSelectors(**ids), WgmmaSettings(**settings)
    inputs = inputs_from(given, *others, operands.get("undefined", "error"))
    return with_tensor_settings(
        inputs, tuple(operands.get(name, usual) for name, usual in TENSOR_DEFAULTS.items())
    )


def _integers(ids: ScaleSelectors) -> ScaleSelectors:
    return ScaleSelectors(*(as_integer(value, name) for name, value in ids._asdict().items()))


def _is_negated(value: int, name: str) -> bool:
    value = as_integer(value, name)
    if value not in (1, -1):
        raise OperandError(f"{name} is 1 or -1, not {value}")
    return value == -1


def _flag(value: int, name: str) -> bool:
    value = as_integer(value, name)
    if value not in (0, 1):
        raise OperandError(f"{name} is 0 or 1, not {value}")
    return bool(value)
