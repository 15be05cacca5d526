"""What the machine and ptxas say about statements, and where they part.

Knows how to ask both, many statements at a time; the statements come from opcode_space.py, the reasons from
opcode_differences.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.helpers import ptxas
from tests.helpers.opcode_differences import explained
from tests.helpers.opcode_space import declarations
from warpsim.base.errors import NotModelled, WarpsimError
from warpsim.programs.launch.launching import load_text

NOT_MODELLED = "not modelled"
_CRASHES = ("ptxas crashes", "Internal compiler error")  # which are not verdicts
_SINGLE, _PAIR = "cta_group::1", "cta_group::2"
_TOGETHER = 500  # statements that are loaded at a time: one that cannot be read hides the others


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A statement that only one of the two takes, and the error of the other."""

    target: str
    text: str
    by_ptxas: bool
    error: str

    @property
    def explained(self) -> bool:
        """Whether a table says why."""
        return explained(self.text, by_ptxas=self.by_ptxas)

    def __str__(self) -> str:
        who = "ptxas" if self.by_ptxas else "the machine"
        return f"{self.target}: only {who} takes {self.text} (otherwise: {self.error})"


def by_machine(texts: Sequence[str], target: str, version: str) -> list[str | None]:
    """The machine's error about each statement, NOT_MODELLED for what it does not model, None for none."""
    head = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ {declarations(version)}\n"
    found: list[str | None] = []
    for start in range(0, len(texts), _TOGETHER):
        found += _loaded(head, texts[start : start + _TOGETHER])
    return found


def _loaded(head: str, texts: Sequence[str]) -> list[str | None]:
    try:
        problems = load_text(head + "".join(f"{text}\n" for text in texts) + "}\n").problems
    except WarpsimError as error:  # a statement that cannot be read
        middle = len(texts) // 2
        if not middle:
            return [error.message]
        return [*_loaded(head, texts[:middle]), *_loaded(head, texts[middle:])]
    found: list[str | None] = [None] * len(texts)
    for problem in problems:
        assert problem.location is not None
        line = problem.location.line - 1 - head.count("\n")
        found[line] = NOT_MODELLED if isinstance(problem, NotModelled) else problem.message
    return found


def differing(texts: Sequence[str], target: str, version: str) -> list[Difference]:
    """Where the two part, but for what is legal and not modelled, and where ptxas crashes.

    Statements of single CTAs and of pairs are judged apart: no function has both.
    """
    pairs = [text for text in texts if _PAIR in text and _SINGLE not in text]
    single = [text for text in texts if _PAIR not in text]
    return [*_differing(single, target, version), *_differing(pairs, target, version)]


def _differing(texts: Sequence[str], target: str, version: str) -> list[Difference]:
    if not texts:
        return []
    ours = by_machine(texts, target, version)
    theirs = ptxas.verdicts(texts, target=target, declarations=declarations(version), version=version)
    return [
        Difference(target=target, text=text, by_ptxas=his is None, error=mine or his or "")
        for text, mine, his in zip(texts, ours, theirs, strict=True)
        if (mine is None) != (his is None)
        and mine != NOT_MODELLED
        and not any(one in (his or "") for one in _CRASHES)
    ]
