"""Compares the verdicts of warpsim and ptxas on many statements, and explains where they part.

Knows how to ask both; the statements come from mutations.py, the explanations from differences.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

import warpsim
from tests.helpers import ptxas
from tests.helpers.differences import lenience, strictness
from tests.helpers.mutations import (
    DECLARATIONS,
    guessed_operands,
    mutated_mnemonics,
    mutated_operands,
    spelled,
)
from warpsim import IllegalInstruction, Instruction, PtxError
from warpsim.isa.architectures import ARCHITECTURES


@dataclass(frozen=True)
class Disagreement:
    """A statement on which the verdicts differ, whose error is given, and what explains it."""

    target: str
    text: str
    accepted_by: str
    error: str
    explanation: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.target}: only {self.accepted_by} accepts {self.text} (otherwise: {self.error})"


@dataclass
class Report:
    """What a comparison found: how many statements there were, how many legal ones, disagreements."""

    cases: int = 0
    legal: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Take in what another comparison found."""
        self.cases += other.cases
        self.legal += other.legal
        self.disagreements += other.disagreements

    @property
    def unexplained(self) -> list[Disagreement]:
        """The disagreements that nothing in differences.py accounts for."""
        return [one for one in self.disagreements if not one.explanation]

    @property
    def explanations(self) -> Counter[str]:
        """How often each difference of the tables explains a disagreement, alone or with others."""
        return Counter(name for one in self.disagreements for name in one.explanation)


def rejection(
    text: str, target: str, declarations: str | None = DECLARATIONS, version: str | None = None
) -> str | None:
    """warpsim's error about a statement or a bare mnemonic, or None where it is legal."""
    try:
        warpsim.decode(text, target, declarations=declarations, version=version)
    except (PtxError, IllegalInstruction) as error:
        return error.message
    return None


def compare(texts: Iterable[str], target: str, *, guessed: bool = False, path: str | None = None) -> Report:
    """Both verdicts on statements; what only ptxas accepts is explained by undoing its leniences.

    ``guessed`` operands take no part in explanations: the mnemonic alone has to become legal. ``path`` is
    the assembler, and its newest PTX what both go by.
    """

    version = ptxas.newest(target, path)

    def accepts(text: str) -> bool:
        return rejection(text, target, version=version) is None

    listed = list(dict.fromkeys(texts))
    verdicts = ptxas.verdicts(listed, target=target, declarations=DECLARATIONS, version=version, path=path)
    report = Report(cases=len(listed), legal=verdicts.count(None))
    for text, theirs in zip(listed, verdicts, strict=True):
        ours = rejection(text, target, version=version)
        if theirs is None and ours is not None:
            why = lenience(text.partition(" ")[0] if guessed else text, accepts)
            report.disagreements.append(Disagreement(target, text, "ptxas", ours, why))
        elif theirs is not None and ours is None:
            why = strictness(text, theirs)
            report.disagreements.append(Disagreement(target, text, "warpsim", theirs, why))
    return report


# --- samples -----------------------------------------------------------------------------------------


def forms_of(target: str) -> list[Instruction]:
    """The forms of the target that ptxas is asked about: those that its newest PTX has."""
    known = warpsim.instructions(target, max(ptxas.last(), ARCHITECTURES[target].since))
    return [form for form in known if form.family.opcode == "mma"]


def sample_mnemonics(target: str, count: int, seed: object) -> Iterator[str]:
    """Statements of mutated mnemonics, ``count`` of every form, with operands that may suit them."""
    for form in forms_of(target):
        random = Random(f"mnemonics {seed} {target} {form}")
        for mnemonic in mutated_mnemonics(form, random, count):
            yield spelled(mnemonic, guessed_operands(mnemonic, form))


def sample_operands(target: str, count: int, seed: object) -> Iterator[str]:
    """Statements with mutated operands, ``count`` of every form."""
    for form in forms_of(target):
        yield from mutated_operands(form, Random(f"operands {seed} {target} {form}"), count)
