"""The records of a walk along k: the accumulators of an element, and the actual D."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.environment import in_default_environment
from ...isa.displayed import Displayed
from ...isa.instruction import Instruction
from .changes import Search
from .records import Explanation, TargetComparison, lines_of


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The actual D: the element's code after every instruction (a single code: at the end only), and its
    source.

    ``codes`` are those of the actual D. ``parting`` is the first instruction at which they differ from a
    target, None where they never do; it is known only where there is a code for every instruction. ``tile``
    counts elements of the tile of D that a target reproduces, of ``size``; padding of a ragged tile does not
    count. ``search`` has changes of one instruction that reproduce the element, on target ``on``; None where
    a target reproduces it.
    """

    codes: tuple[int, ...]
    parting: dict[str, int | None]
    makes: tuple[str, ...]
    tile: dict[str, int]
    size: int
    on: str
    search: Search | None

    @property
    def every(self) -> bool:
        """Whether the intermediate accumulators are known, or there are none."""
        return bool(self.parting)


@dataclass(frozen=True, kw_only=True)
class Walk(Displayed):
    """``codes`` of the accumulator after every instruction, by target; ``parting`` is the first at which they
    differ, None where they never do; ``shown`` explains instruction ``at``, ``element`` being its place in D.
    ``outcome`` is about the actual D, if it is given.
    """

    instruction: Instruction
    element: tuple[int, int]
    codes: dict[str, tuple[int, ...]]
    parting: int | None
    at: int
    shown: Explanation | TargetComparison
    outcome: Outcome | None = None

    @in_default_environment
    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def __repr__(self) -> str:
        row, column = self.element
        steps = len(next(iter(self.codes.values())))
        codes = ", ".join(f"{target} {codes[-1]:#x}" for target, codes in self.codes.items())
        return f"<element [{row}, {column}] after {steps} of {self.instruction.mnemonic}: {codes}>"
