"""The forms of all targets, and whatever differs from one of the target's in one choice.

Both multiplicands together count as one choice too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import warpsim
from tests.helpers.mutations import WORDS, guessed_operands, kind_of, legal_operands, spelled
from warpsim import Instruction

# Words of no form that ptxas knows all the same.
_OTHER_WORDS = (
    "kind::i8",
    "kind::f16",
    "kind::tf32",
    "or",
    "sat",
    "relu",
    "s64",
    "u32",
    "b16",
    "b32",
    "f16x2",
)
_OPTIONAL = ("variant", "kind", "scale", "rounding", "clamp", "bit operation")


def statements(target: str) -> list[str]:
    """Return the mnemonics, each in one of the orders of its words, with operands that may suit them."""
    found: dict[tuple[object, ...], str] = {}
    for form in _forms():
        found[_meaning(form.mnemonic)] = spelled(form.mnemonic, legal_operands(form))
    for form in _forms():
        for mnemonic in _neighbours(form) if target in form.targets else ():
            statement = spelled(mnemonic, guessed_operands(mnemonic, form))
            found.setdefault(_meaning(mnemonic), statement)
    return list(found.values())


def _meaning(mnemonic: str) -> tuple[object, ...]:
    """Return what the order and repetition of words do not change."""
    words = mnemonic.split(".")
    in_order = [word for word in words if kind_of(word) in ("type", "layout")]
    return (*in_order, frozenset(words))


@cache
def _forms() -> tuple[Instruction, ...]:
    return tuple(form for form in warpsim.instructions() if form.family.opcode == "mma")


@cache
def _known(kind: str) -> tuple[str, ...]:
    """Return the words of a kind that ptxas may take."""
    used = {word for form in _forms() for word in form.mnemonic.split(".")}
    return tuple(word for word in WORDS[kind] if word in used or word in _OTHER_WORDS)


def _neighbours(form: Instruction) -> Iterator[str]:
    opcode, *words = form.mnemonic.split(".")
    for changed in (*_substitutions(words), *_removals(words), *_additions(words)):
        yield ".".join((opcode, *changed))


def _substitutions(words: list[str]) -> Iterator[list[str]]:
    """Another word of the same kind; also the same other type for A and for B."""
    for place, word in enumerate(words):
        if kind_of(word) in WORDS and kind_of(word) != "convergence":
            yield from ([*words[:place], other, *words[place + 1 :]] for other in _known(kind_of(word)))
    types = [place for place, word in enumerate(words) if kind_of(word) == "type"]
    for other in _known("type"):
        changed = list(words)
        changed[types[1]] = changed[types[2]] = other
        yield changed


def _removals(words: list[str]) -> Iterator[list[str]]:
    for place, word in enumerate(words):
        if kind_of(word) in _OPTIONAL:
            yield words[:place] + words[place + 1 :]


def _additions(words: list[str]) -> Iterator[list[str]]:
    """One more optional word, or a whole bit operation, behind the others."""
    for kind in _OPTIONAL:
        yield from ([*words, other] for other in _known(kind))
    yield from ([*words, operation, "popc"] for operation in ("and", "xor", "or"))
