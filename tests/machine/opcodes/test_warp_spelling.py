"""Exchange, atomics, barriers and fences: the machine takes what ptxas 13.0 takes, operands included.

Forms of each row and names that differ from one in a modifier are judged by both, with all the operands that
might suit; where they differ, a reason is listed here. So are versions and targets around those at which
ptxas begins to take a row.
"""

from __future__ import annotations

import re

import pytest

from tests.helpers import ptxas
from tests.helpers.warp_statements import (
    NOT_MODELLED,
    OPERANDS,
    by_machine,
    by_ptxas,
    mutated,
    names,
    statements,
)
from warpsim.machine.opcodes import atomics, barriers, exchange, fences
from warpsim.machine.opcodes.effect import Effect

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

ROWS: tuple[Effect, ...] = (*exchange.ROWS, *atomics.ROWS, *barriers.ROWS, *fences.ROWS)
SEED = 17

# Statements about which the two differ, and why.
DIFFERENCES: tuple[tuple[str, str], ...] = (
    (r".*\[%r1\].*", "32-bit addresses of a module with 64 bits: not checked here"),
    (r"atom\..*\.(and|or|xor|exch)\.b\d+ .*, .*, .*, .*", "an operand too many, which ptxas passes over"),
    (r"fence\.(?!proxy\.async::).*proxy.*sync_restrict.*", "a restriction that ptxas passes over"),
    (r"match\..*any.* %r6\|_, .*", "match.any has no predicate, and ptxas passes over its place"),
)


def rows_of(opcode: str) -> list[Effect]:
    return [row for row in ROWS if row.opcode == opcode]


def differing(texts: list[str], target: str, version: str) -> list[tuple[str, str | None, str | None]]:
    """Statements that one takes and the other does not, with their errors."""
    verdicts = zip(texts, by_machine(texts, target, version), by_ptxas(texts, target, version), strict=True)
    return [
        (text, ours, theirs)
        for text, ours, theirs in verdicts
        if (ours is None) != (theirs is None)
        and ours != NOT_MODELLED
        and not (theirs or "").startswith("ptxas crashes")
        and not any(re.fullmatch(pattern, text) for pattern, _ in DIFFERENCES)
    ]


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
@pytest.mark.parametrize("opcode", sorted(OPERANDS))
def test_forms(opcode: str, target: str) -> None:
    spelled = [words for place, row in enumerate(rows_of(opcode)) for words in names(row, 8, SEED + place)]
    assert differing(statements(opcode, spelled), target, "9.0") == []


@pytest.mark.parametrize("opcode", sorted(OPERANDS))
def test_mutants(opcode: str) -> None:
    assert differing(statements(opcode, mutated(rows_of(opcode), 30, SEED)), "sm_100a", "9.0") == []


VERSIONS = [
    ("6.0", "sm_70"), ("6.2", "sm_70"), ("6.3", "sm_75"), ("6.4", "sm_75"), ("7.4", "sm_80"),
    ("7.8", "sm_90"), ("8.0", "sm_90"), ("8.1", "sm_90"), ("8.6", "sm_100a"), ("9.0", "sm_75"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "target"), VERSIONS)
def test_versions(version: str, target: str) -> None:
    texts = [
        text
        for opcode in sorted(OPERANDS)
        for place, row in enumerate(rows_of(opcode))
        for text in statements(opcode, names(row, 2, SEED + place))
    ]
    assert differing(texts, target, version) == []
