"""ld, st, ldu and hints to caches: the tables have what ptxas 13.0 takes, no more and no less.

The forms of ld and st are many: some are drawn from each row, all mutants of some of them are judged.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.helpers import ptxas
from tests.helpers.effect_statements import accepted, mutants, refused, written
from tests.helpers.own_operands import of_transfers as spell
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.memory import caches, transfers

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

Words = tuple[str, ...]
ROWS: tuple[Effect, ...] = (*transfers.ROWS, *caches.ROWS)
VOLATILE_LOCAL = (("volatile",), ("local",))  # since PTX 9.1, which ptxas 13.5 takes and 13.0 does not
DRAWN = 150  # forms of each row

# ptxas 13.0 crashes, or calls it unsupported, for lack of an instruction: no matter of the form.
CRASHES = ("v8.b16", "v8.u16", "v8.s16")


def _drawn(row: Effect) -> list[str]:
    """Statements of some forms."""
    random, found = Random(str(row.slots)), dict[str, None]()
    while len(found) < DRAWN * 4:
        choice = tuple(random.choice(slot) for slot in row.slots)
        words = tuple(filter(None, choice))
        if row.legal(*choice) and not ("param::func" in words and row.opcode == "ld"):
            found.update(dict.fromkeys(written(row.opcode, words, spell(row.opcode, words))))
        if random.random() < 1 / DRAWN / 2:
            break
    return [text for text in found if not any(crash in text for crash in CRASHES)]


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: ".".join((row.opcode, *(slot[-1] for slot in row.slots)))
)
def test_forms_assemble(row: Effect) -> None:
    if row.slots[:2] != VOLATILE_LOCAL:
        assert refused(_drawn(row), "sm_100a") == []
    elif ptxas.last() >= (9, 1):
        assert refused(_drawn(row), "sm_100a", "9.1") == []
        assert accepted(_drawn(row), "sm_100a", "9.0") == []
    else:
        assert accepted(_drawn(row), "sm_100a") == []


@pytest.mark.parametrize("opcode", sorted({row.opcode for row in caches.ROWS}))
def test_no_mutant_assembles(opcode: str) -> None:
    assert accepted(mutants(caches.ROWS, opcode, spell, 12, 5), "sm_100a") == []


def _some_mutants(opcode: str) -> list[str]:
    """Mutants of forms of ld and st, of the few types that stand for all."""
    random, found = Random(opcode), list[str]()
    rows = [row for row in transfers.ROWS if row.opcode == opcode]
    vocabulary = sorted({word for row in rows for slot in row.slots[:-1] for word in slot if word})
    while len(found) < 600:
        row = random.choice(rows)
        choice = tuple(random.choice(slot) for slot in row.slots)
        words = list(filter(None, choice))
        place = random.randrange(len(words))
        kind = random.randrange(3)
        words[place : place + (kind != 1)] = [] if kind == 0 else [random.choice(vocabulary)]
        text = tuple(words)
        known = any(one.match(text) is not None for one in rows)
        if words and not known and len(set(words)) == len(words) and "param::func" not in words:
            found += written(opcode, text, spell(opcode, text))
    return found


@pytest.mark.parametrize("opcode", ["ld", "st"])
def test_no_mutant_of_a_transfer_assembles(opcode: str) -> None:
    assert accepted(_some_mutants(opcode), "sm_100a") == []
