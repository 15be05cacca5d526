"""Tiles, asynchronous copies, barriers in memory: the tables have what ptxas 13.0 takes, no more, no less."""

from __future__ import annotations

import pytest

from tests.helpers import ptxas
from tests.helpers.effect_statements import accepted, mutants, refused, statements
from tests.helpers.families import usual
from tests.helpers.own_operands import of_memory as spell
from tests.helpers.row_targets import first_chip, first_target
from warpsim.machine.opcodes.asynchronous import cp_async as asynchronous
from warpsim.machine.opcodes.asynchronous import mbarriers
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.matrix import tiles

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

ROWS: tuple[Effect, ...] = (*tiles.ROWS, *asynchronous.ROWS, *mbarriers.ROWS)
Words = tuple[str, ...]


@pytest.mark.parametrize("target", ["sm_100a", "sm_120a"])
def test_every_form_assembles(target: str) -> None:
    assert refused(statements(ROWS, spell), target) == []


@pytest.mark.parametrize("opcode", sorted({row.opcode for row in ROWS}))
def test_no_mutant_assembles(opcode: str) -> None:
    assert accepted(mutants(ROWS, opcode, spell, usual(5, 12), 5), "sm_100a") == []


# The first target that a version of PTX has, and the last version before another.
_LAST = {7: 8, 6: 5}


def _before(version: tuple[int, int]) -> str:
    major, minor = version
    return f"{major}.{minor - 1}" if minor else f"{major - 1}.{_LAST[major - 1]}"


def _needs_more(row: Effect, text: str) -> bool:
    """Forms whose operands came later than the row: a count to arrive with, '_' for a state, a predicate."""
    return (
        ("arrive" in text and ", %r2" in text and "noComplete" not in text)
        or " _," in text
        or "%p1;" in text
        or "%p1, %d4" in text
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ".".join((row.opcode, *map("|".join, row.slots))))
def test_first_version_and_target(row: Effect) -> None:
    texts = [text for text in statements([row], spell) if not _needs_more(row, text)][:8]
    first, chip = first_target(row), first_chip(row)
    target = first.name
    since = ".".join(map(str, max(row.since, (7, 8) if chip == 90 else row.since)))
    assert refused(texts, target, since) == []
    assert accepted(texts, "sm_75" if chip == 80 else "sm_72" if chip == 75 else "sm_89") == []
    if row.since > (7, 0) and not (chip == 90 and row.since == (7, 8)) and not first.suffix:
        assert accepted(texts, target, _before(row.since)) == []
