"""Bulk copies: the table has what ptxas 13.0 takes, no more, no less."""

from __future__ import annotations

import pytest

from tests.helpers import ptxas
from tests.helpers.effect_statements import DECLARATIONS, accepted, mutants, refused, statements
from tests.helpers.families import usual
from tests.helpers.own_operands import of_bulk as spell
from tests.helpers.row_targets import first_chip, first_target
from warpsim.base.errors import WarpsimError
from warpsim.machine.opcodes.asynchronous import bulk
from warpsim.machine.opcodes.effect import Effect
from warpsim.programs.launch.launching import load_text

needs_ptxas = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
Words = tuple[str, ...]


def _name(row: Effect) -> str:
    return ".".join((row.opcode, *("|".join(slot) for slot in row.slots)))


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_100a", "sm_120a"])
def test_every_form_assembles(target: str) -> None:
    assert refused(statements(bulk.ROWS, spell), target) == []


@needs_ptxas
def test_no_mutant_assembles() -> None:
    """But for what ptxas takes and PTX does not have: floats added, a register in an mbarrier's place."""
    texts = mutants(bulk.ROWS, "cp", spell, usual(2, 5), 5)
    known = [one for one in texts if not ("bytes.add.f" in one and one.endswith(", %d4;"))]
    assert accepted(known, "sm_100a") == []


@needs_ptxas
def test_types_of_reductions() -> None:
    """Every operation with every type: those that are not forms do not assemble."""
    reductions = [row for row in bulk.ROWS if "reduce" in row.slots[0]]
    names = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch")
    types = ("u32", "s32", "u64", "s64", "b32", "b64", "f16", "bf16", "f16x2", "f32", "f64", "b16", "s16")
    wrong = list[str]()
    for places in dict.fromkeys(row.slots[:6] for row in reductions):
        start = [slot[-1] for slot in places]
        for name, flush, kind in ((n, f, t) for n in names for f in ((), ("noftz",)) for t in types):
            words = (*start, name, *flush, kind)
            if not any(row.match(words) for row in reductions):
                wrong += [f"cp.{'.'.join(words)} {one};" for one in spell("cp", words)[:1]]
    assert len(wrong) > 300
    assert accepted(wrong, "sm_100a") == []


@needs_ptxas
@pytest.mark.parametrize("row", bulk.ROWS, ids=_name)
def test_first_version_and_target(row: Effect) -> None:
    texts = list(statements([row], spell))[:8]
    since = ".".join(map(str, row.since))
    assert refused(texts, first_target(row).name, since) == []
    assert accepted(texts, "sm_89" if first_chip(row) == 90 else "sm_90a") == []
    if row.since > (8, 0):
        assert accepted(texts, first_target(row).name, f"8.{row.since[1] - 1}") == []


LOADED = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
STORED = "cp.async.bulk.global.shared::cta.bulk_group"
# Statements and whether they are legal, on sm_100a.
TRICKY = (
    (f"{LOADED} [%r1], [%d1], 8, [%r3];", False),
    (f"{LOADED} [%r1], [%d1], 0, [%r3];", True),
    (f"{LOADED} [%r1], [%d1], %f1, [%r3];", False),
    (f"{LOADED} [%r1], [%d1], %r2, %r3;", False),
    (f"{LOADED} [%r1], [%d1], %r2;", False),
    (f"{STORED} [%d1], [%r1], -16;", False),
    (f"{STORED} [%d1], [%r1], 0x100000000;", True),
    (f"{STORED} [%d1], [%r1], 1048560;", True),
    (f"{STORED} [%d1], [%r1], 1048576;", False),
    (f"{STORED} [%d1], [%r1], %d2;", False),
    (f"{STORED}.L2::cache_hint [%d1], [%r1], %r2;", False),
    (f"{STORED}.L2::cache_hint [%d1], [%r1], %r2, 5;", True),
    (f"{STORED}.cp_mask [%d1], [%r1], %r2, 0x12345;", True),
    (f"{STORED}.cp_mask [%d1], [%r1], %r2, %r5;", False),
    ("cp.async.bulk.bulk_group.global.shared::cta [%d1], [%r1], %r2;", True),
    ("cp.async.bulk.shared::cta.global.bulk_group [%r1], [%d1], %r2;", False),
    ("cp.bulk.async.global.shared::cta.bulk_group [%d1], [%r1], %r2;", False),
    (
        "cp.async.bulk.shared::cta.shared::cluster.mbarrier::complete_tx::bytes [%r1], [%r2], 16, [%r3];",
        False,
    ),
    ("cp.async.bulk.read.wait_group 0;", False),
    ("cp.async.bulk.wait_group %r1;", False),
    ("cp.async.bulk.wait_group -1;", True),
    ("cp.async.bulk.prefetch.L2.global [%d1], 8;", False),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d1], [%r1], 24;", False),
    ("cp.reduce.async.bulk.shared::cta.global.bulk_group.add.f32 [%r1], [%d1], 32;", False),
    ("cp.async.reduce.bulk.global.shared::cta.bulk_group.add.f32 [%d1], [%r1], 32;", False),
)


@pytest.mark.parametrize(("text", "legal"), TRICKY)
def test_operands_and_order(text: str, legal: bool) -> None:
    module = load_text(
        f".version 9.0\n.target sm_100a\n.address_size 64\n.entry k() {{ {DECLARATIONS}\n{text}\n}}\n"
    )
    assert not module.problems if legal else all(isinstance(one, WarpsimError) for one in module.problems)
    assert bool(module.problems) is not legal


@pytest.mark.skipif(bool(ptxas.missing_first()), reason=ptxas.missing_first() or "ptxas is there")
def test_ptxas_says_the_same_of_operands_and_order() -> None:
    legal, wrong = ([text for text, verdict in TRICKY if verdict is wanted] for wanted in (True, False))
    assert refused(legal, "sm_100a") == []
    assert accepted(wrong, "sm_100a") == []
