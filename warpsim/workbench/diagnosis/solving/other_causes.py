"""Causes that are no map of a single operand: descriptors, other arithmetic, and two operands at once.

Each is a mistake that the engine tries by itself. Does not know places.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ....isa.formats import Format
from ..library.arithmetic_mistakes import Arithmetic, alternatives
from ..library.descriptor_mistakes import Misreading
from ..library.grids import Registers, Setting
from ..library.mistake import Change, Mistake
from ..library.tile_mistakes import codes_at, misread
from .linear_operands import read, written
from .map_words import value_words
from .place_words import Speaker
from .value_functions import ValueFunction, value_functions

_DESCRIPTOR_COST = 2.0
_BOTH_COST = 1.5  # more than the function of a single operand


@lru_cache(maxsize=16)
def other_causes(setting: Setting) -> tuple[Mistake, ...]:
    """Return every such cause that a setting can have, in the order of reporting."""
    return (*_descriptors(setting), *_exchanged(setting), *_on_both(setting), *_arithmetic(setting))


def _descriptors(setting: Setting) -> Iterator[Mistake]:
    """Yield tiles in shared memory read through a descriptor that is wrong."""
    for operand in "ab":
        if setting.in_shared(operand):
            for reading, element in misread(setting, operand):
                first, *others = (f"{operand.upper()} descriptor: {phrase}" for phrase in reading.mistakes)
                yield Mistake(
                    name=first,
                    also=tuple(others),
                    advice=f"the result is that of reading {operand.upper()} by {reading.how}",
                    operands=(operand,),
                    records=(("descriptor", {}),),
                    cost=_DESCRIPTOR_COST,
                    change=_read_again(operand, reading, element),
                )


def _read_again(operand: str, reading: Misreading, element: Format) -> Change:
    return lambda given: {operand: codes_at(reading.addresses, element, given["shared"])}


def _exchanged(setting: Setting) -> Iterator[Mistake]:
    """Yield the registers of two operands exchanged."""
    registers = setting.instruction.registers
    alike = registers["a"] == registers.get("b") and not any(map(setting.in_shared, "ab"))
    both = [("a", "b", "A and B registers")] * alike
    both += [("scale_a", "scale_b", "scales of A and B")] * (setting.instruction.scale is not None)
    for first, second, text in both:
        exchange = _exchange(first, second)
        yield Mistake(
            name=f"{text} exchanged",
            advice=f"exchange the registers of {text.replace(' registers', '')}",
            operands=(first, second),
            records=(("exchanged", {}),),
            change=exchange,
            mend=exchange,
        )


def _exchange(first: str, second: str) -> Change:
    return lambda given: {first: given[second], second: given[first]}


def _on_both(setting: Setting) -> Iterator[Mistake]:
    """Yield one value function on A and B alike, where they have the same type."""
    form = setting.instruction
    if form.a != form.b or form.storage("a") != form.storage("b"):
        return
    for function in value_functions(form.a, form.storage("a").shift):
        yield Mistake(
            name=f"A and B: {value_words(function.kind, function.facts, Speaker('ab', form.a.bits))}",
            advice="the values of A and B change on the way: convert them as the instruction takes them",
            operands=("a", "b"),
            records=((function.kind, function.facts),),
            cost=function.cost + _BOTH_COST,
            change=_both_changed(setting, function),
            mend=_both_changed(setting, function) if function.kind == "tf32" else None,
        )


def _both_changed(setting: Setting, function: ValueFunction) -> Change:
    def change(given: Registers) -> Registers:
        return {
            name: written(setting, name, function.change(read(setting, name, given)), given) for name in "ab"
        }

    return change


def _arithmetic(setting: Setting) -> Iterator[Mistake]:
    """Yield other arithmetics; none where the target is not chosen, which only lint allows."""
    if setting.instruction.target is None:
        return
    for name, advice, arithmetic in alternatives(Arithmetic(instruction=setting.instruction)):
        yield Mistake(
            name=name, advice=advice, operands=(), records=(("arithmetic", {}),), arithmetic=arithmetic
        )
