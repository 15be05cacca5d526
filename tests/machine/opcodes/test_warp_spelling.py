"""Exchange, atomics, barriers and fences: the machine takes what ptxas 13.0 takes, operands included.

Forms of each row and names that differ from one in a modifier are judged by both, with all the operands that
might suit; where they differ, a reason is listed here. Version and target of each row are those at which
ptxas begins to take it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

import pytest

from tests.helpers import ptxas
from tests.helpers.families import usual
from tests.helpers.warp_statements import (
    NOT_MODELLED,
    OPERANDS,
    by_machine,
    by_ptxas,
    mutated,
    names,
    statements,
)
from warpsim.machine.opcodes.control import barriers, exchange, fences
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.memory import atomics

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

ROWS: tuple[Effect, ...] = (*exchange.ROWS, *atomics.ROWS, *barriers.ROWS, *fences.ROWS)
SEED = 17

# Statements about which the two differ, and why.
DIFFERENCES: tuple[tuple[str, str], ...] = (
    (r".*\[%r1\].*", "32-bit addresses of a module with 64 bits: not checked here"),
    (r"atom\..*\.(and|or|xor|exch)\.b\d+ .*, .*, .*, .*", "an operand too many, which ptxas passes over"),
    (r"fence\.(?!proxy\.async::).*proxy.*sync_restrict.*", "a restriction that ptxas passes over"),
    (r"fence\.(acquire|release)\.\w+;", "before PTX 8.6 or sm_90, which 13.0 takes and 13.5 does not"),
    (r"match\..*any.* %r6\|_, .*", "match.any has no predicate, and ptxas passes over its place"),
)


def rows_of(opcode: str) -> list[Effect]:
    return [row for row in ROWS if row.opcode == opcode]


Verdict = tuple[str, str | None, str | None]  # a statement, the machine's error and that of ptxas


@lru_cache(8)
def judged(texts: tuple[str, ...], target: str, version: str) -> list[Verdict]:
    ours, theirs = by_machine(texts, target, version), by_ptxas(texts, target, version)
    return list(zip(texts, ours, theirs, strict=True))


def differing(texts: list[str], target: str, version: str) -> list[Verdict]:
    """Statements that one takes and the other does not, with their errors."""
    return [
        (text, ours, theirs)
        for text, ours, theirs in judged(tuple(texts), target, version)
        if (ours is None) != (theirs is None)
        and ours != NOT_MODELLED
        and not (theirs or "").startswith("ptxas crashes")
        and not any(re.fullmatch(pattern, text) for pattern, _ in DIFFERENCES)
    ]


def taken_at(texts: list[str], places: Iterable[tuple[str, str]]) -> list[str]:
    """Statements that the machine or ptxas takes at a version and target, or that wait to be modelled."""
    verdicts = [one for version, target in places for one in judged(tuple(texts), target, version)]
    kept = (text for text, ours, theirs in verdicts if theirs is None or ours in (None, NOT_MODELLED))
    return list(dict.fromkeys(kept))


@pytest.mark.parametrize("opcode", sorted(OPERANDS))
def test_forms(opcode: str) -> None:
    """With all operands on one target; on the others with those that the machine or ptxas takes there."""
    spelled = [words for place, row in enumerate(rows_of(opcode)) for words in names(row, 8, SEED + place)]
    texts = statements(opcode, spelled)
    assert differing(texts, "sm_100a", "9.0") == []
    some = taken_at(texts, (("9.0", "sm_100a"),))
    assert some
    for target in ("sm_80", "sm_90a", "sm_120a"):
        assert differing(some, target, "9.0") == []


@pytest.mark.parametrize("opcode", sorted(OPERANDS))
def test_mutants(opcode: str) -> None:
    assert (
        differing(statements(opcode, mutated(rows_of(opcode), usual(12, 30), SEED)), "sm_100a", "9.0") == []
    )


VERSIONS = [
    ("6.2", "sm_70"), ("6.3", "sm_75"), ("6.4", "sm_75"), ("7.0", "sm_80"), ("7.4", "sm_80"),
    ("7.8", "sm_90"), ("8.0", "sm_90"), ("8.1", "sm_90"), ("8.3", "sm_90"), ("8.6", "sm_100a"),
    ("9.0", "sm_75"),
]  # fmt: skip
ENDS = (("6.0", "sm_70"), ("9.0", "sm_100a"))  # what the oldest has may have gone since


@cache
def spelled_out() -> list[str]:
    """Three forms of each row, with all operands."""
    return [
        text
        for opcode in sorted(OPERANDS)
        for place, row in enumerate(rows_of(opcode))
        for text in statements(opcode, names(row, 3, SEED + place))
    ]


@cache
def taken() -> list[str]:
    return taken_at(spelled_out(), ENDS)


@pytest.mark.parametrize(("version", "target"), ENDS)
def test_all_operands_of_the_oldest_and_the_newest(version: str, target: str) -> None:
    assert differing(spelled_out(), target, version) == []


@pytest.mark.parametrize(("version", "target"), VERSIONS)
def test_versions(version: str, target: str) -> None:
    """Of the statements that are taken at neither end none is asked about again."""
    assert len(taken()) > 250
    assert differing(taken(), target, version) == []
