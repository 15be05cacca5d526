"""Statements of the forms of rows that do more than compute, and mutated ones, for ptxas to judge.

Knows how modifiers are changed; the operands of each form are the caller's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

from tests.helpers import ptxas
from tests.helpers.opcode_statements import LATER, Words, spelling
from warpsim.machine.opcodes.operation import Row

Spell = Callable[[str, Words], Sequence[str]]  # opcode and modifiers -> the texts of its operands

DECLARATIONS = (
    ".param .align 32 .b8 pf[64]; .reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; "
    ".reg .b64 %d<40>; .reg .f32 %f<9>;"
)


def statements(rows: Iterable[Row], spell: Spell) -> Iterator[str]:
    """All forms of the rows, with all their operands."""
    for row in rows:
        for choice in row.forms():
            words = tuple(filter(None, choice))
            yield from written(row.opcode, words, spell(row.opcode, words))


def written(opcode: str, words: Words, operands: Iterable[str]) -> Iterator[str]:
    """The statement with each of the operands."""
    for one in operands:
        yield f"{'.'.join((opcode, *words))} {one};"


def _changed(words: Words, vocabulary: Sequence[str]) -> Iterator[Words]:
    """Modifiers with one left out, exchanged or added."""
    for place in range(len(words)):
        yield (*words[:place], *words[place + 1 :])
        yield from ((*words[:place], word, *words[place + 1 :]) for word in vocabulary if word not in words)
    for place in range(len(words) + 1):
        yield from ((*words[:place], word, *words[place:]) for word in vocabulary if word not in words)


def mutants(rows: Sequence[Row], opcode: str, spell: Spell, count: int, seed: int) -> list[str]:
    """Statements that differ in one modifier from forms of an opcode, and are no forms, with all operands."""
    forms = sorted({tuple(filter(None, one)) for row in rows if row.opcode == opcode for one in row.forms()})
    legal = {spelling(words, False) for words in forms}
    vocabulary = sorted({word for words in forms for word in words})
    operands = sorted({text for words in forms for text in spell(opcode, words)})
    found = dict.fromkeys(
        mutated
        for words in Random(f"{seed} {opcode}").sample(forms, min(count, len(forms)))
        for mutated in _changed(words, vocabulary)
        if spelling(mutated, False) not in legal
    )
    return [text for words in found for text in written(opcode, words, operands)]


def judged(texts: Iterable[str], target: str, version: str = "9.0") -> list[tuple[str, str | None]]:
    """Each statement with the errors of ptxas, or None."""
    lines = list(dict.fromkeys(texts))
    declarations = DECLARATIONS + (LATER if version.startswith("9.") else "")
    return list(
        zip(
            lines,
            ptxas.verdicts(lines, target=target, declarations=declarations, version=version),
            strict=True,
        )
    )


def refused(texts: Iterable[str], target: str, version: str = "9.0") -> list[tuple[str, str | None]]:
    """Those that ptxas does not assemble, and why."""
    return [pair for pair in judged(texts, target, version) if pair[1] is not None]


def accepted(texts: Iterable[str], target: str, version: str = "9.0") -> list[str]:
    """Those that ptxas assembles."""
    return [text for text, error in judged(texts, target, version) if error is None]
