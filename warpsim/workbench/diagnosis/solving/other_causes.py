"""Causes that are no map of a single operand: descriptors, other arithmetic, and two operands at once.

Each is a mistake that the engine tries by itself. Does not know places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from ....isa.formats import Format
from ..descriptors.described_tiles import Misreading, codes_at, misread
from ..library.arithmetic_mistakes import Arithmetic, alternatives
from ..library.mistake import SPELLED, Change, Mistake
from ..library.setting import Setting
from . import screening
from .linear_operands import read, unposed, written
from .map_words import Speaker, value_words
from .naming import words
from .screening import EVERYWHERE, Candidates, costs
from .solving import Explanation, explained
from .value_functions import ValueFunction, index_functions, value_functions
from .views import index_bits

_BYTE = 8
_BOTH_COST = 1.5  # more than the function of a single operand


@lru_cache(maxsize=16)
def other_causes(setting: Setting) -> tuple[Mistake, ...]:
    """Return every such cause that a setting can have, in the order of reporting."""
    return (*_descriptors(setting), *_exchanged(setting), *_on_both(setting), *_arithmetic(setting))


def _descriptors(setting: Setting) -> Iterator[Mistake]:
    for operand in "ab":
        if setting.in_shared(operand):
            for reading, element in misread(setting, operand):
                first, *others = (f"{operand.upper()} descriptor: {phrase}" for phrase in reading.mistakes)
                yield Mistake(
                    name=first,
                    also=tuple(others),
                    advice=f"the result is that of reading {operand.upper()} by {reading.how}",
                    operands=(operand,),
                    records=(("descriptor", reading.fields),),
                    cost=reading.cost,
                    change=_read_again(operand, reading, element),
                )


def _read_again(operand: str, reading: Misreading, element: Format) -> Change:
    return lambda given: {operand: codes_at(reading.addresses, element, given["shared"])}


def _exchanged(setting: Setting) -> Iterator[Mistake]:
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
            change=_changed(setting, "ab", function),
            mend=_changed(setting, "ab", function) if function.kind == "tf32" else None,
        )


def _changed(setting: Setting, names: Sequence[str], function: ValueFunction) -> Change:
    """Return the change of operands by a function of their values."""
    return lambda given: {
        name: written(setting, name, function.change(read(setting, name, given)), given) for name in names
    }


def byte_places(setting: Setting, operand: str) -> Iterator[Mistake]:
    """Yield elements narrower than their bytes that lie higher or lower in them, and 1:2 fields as indices.

    Both can be undone, but not by the codes that the instruction reads.
    """
    form = setting.instruction
    if operand == "e" and index_bits(form) == 4:
        as_fields, as_indices = (
            next(each for each in index_functions(4) if each.kind == kind)
            for kind in ("fields as indices", "indices as fields")
        )
        yield _changed_back(setting, "e", as_indices, as_fields)
    if operand not in ("a", "b"):
        return
    storage, element = form.storage(operand), form.format(operand)
    if storage.bits != _BYTE or element.bits >= _BYTE:
        return
    own, room = ((1 << element.bits) - 1) << storage.shift, _BYTE - element.bits
    for by in (by for by in range(-storage.shift, room - storage.shift + 1) if by):
        facts = {"by": by}
        yield Mistake(
            name=f"{operand.upper()}: {value_words('misplaced', facts, Speaker(operand, storage.bits))}",
            advice=f"the bits of each element of {operand.upper()} belong elsewhere in its byte: shift them",
            operands=(operand,),
            records=(("misplaced", facts),),
            mend=_moved_in_bytes(operand, -by, own),
        )


def _moved_in_bytes(operand: str, by: int, own: int) -> Change:
    inside = np.uint32(own * 0x01010101)
    if by < 0:
        return lambda given: {operand: given[operand] >> np.uint32(-by) & inside}
    return lambda given: {operand: given[operand] << np.uint32(by) & inside}


def _changed_back(setting: Setting, operand: str, function: ValueFunction, back: ValueFunction) -> Mistake:
    text = value_words(function.kind, function.facts, Speaker(operand, 4))
    return Mistake(
        name=f"{SPELLED.get(operand, operand.upper())}: {text}",
        advice="1:2 metadata has four bits a field, 0b0100 for the first of two and 0b1110 for the second",
        operands=(operand,),
        records=((function.kind, function.facts),),
        change=_changed(setting, [operand], function),
        mend=_changed(setting, [operand], back),
    )


def _arithmetic(setting: Setting) -> Iterator[Mistake]:
    """Yield other arithmetics; none where the target is not chosen, which only lint allows."""
    if setting.instruction.target is None:
        return
    for name, advice, arithmetic in alternatives(Arithmetic(instruction=setting.instruction)):
        yield Mistake(
            name=name, advice=advice, operands=(), records=(("arithmetic", {}),), arithmetic=arithmetic
        )


def bare_mistake(explanation: Explanation) -> Mistake:
    """Return an explanation as what is applied and mended, without words until they are asked for."""
    back, operand = explanation.inverse, explanation.operand.name
    return Mistake(
        name="",
        advice="",
        operands=tuple(operand) if operand == "cd" else (operand,),
        cost=explanation.cost,
        change=explanation.applied if operand != "d" else None,
        mend=None if back is None or operand == "d" else back.applied,
        read=explanation.stored if explanation.moves_d else None,
        describe=partial(named_mistake, explanation),
    )


def named_mistake(explanation: Explanation) -> Mistake:
    """Return an explanation as what a report names."""
    named = words(explanation)
    return replace(
        bare_mistake(explanation),
        name=named.headline,
        advice=named.advice,
        also=named.also,
        records=named.records,
        describe=None,
    )


def simple_maps(setting: Setting, most: float) -> Iterator[Mistake]:
    """Yield single maps of operands that are multiplied, up to a cost, cheapest first; not named yet."""
    for name in setting.instruction.operands:
        if name in "cd":
            continue
        operand = unposed(setting, name)
        every = screening.alternatives(operand)
        cost = costs(operand, every)
        chosen = np.flatnonzero(cost <= most)
        maps = every.of(chosen[np.argsort(cost[chosen], kind="stable")])
        for number in range(len(chosen)):
            yield replace(bare_mistake(explained(operand, maps, number)), name=f"{name} {number}")


def permutations(setting: Setting, name: str, most: float) -> Iterator[Explanation]:
    """Yield the maps of an operand up to a cost that read every place once, the cheapest first."""
    operand = unposed(setting, name)
    chosen = np.flatnonzero((operand.atoms.cost > 0) & (operand.atoms.cost <= most))
    zeros = np.zeros(len(chosen), np.intp)
    maps = Candidates(zeros, chosen, zeros + EVERYWHERE)
    for number in range(len(chosen)):
        made = explained(operand, maps, number)
        if made.is_permutation:
            yield made
