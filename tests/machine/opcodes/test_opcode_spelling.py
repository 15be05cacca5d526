"""Integers, bits and comparisons: the tables have what ptxas 13.0 takes, no more and no less.

Every form is assembled; names that differ from one in a modifier are, too, and none may pass unless a reason
is listed here. Version and target of each row are those at which ptxas begins to take it.
"""

from __future__ import annotations

import re

import pytest

from tests.helpers import ptxas
from tests.helpers.families import usual
from tests.helpers.opcode_statements import (
    FLOAT_TYPES,
    INTEGER_TYPES,
    accepted,
    every_statement,
    mutants,
    refused,
    reordered,
)
from tests.helpers.row_targets import first_chip, first_target
from warpsim.machine.opcodes.integer import bits, carries, compare
from warpsim.machine.opcodes.integer import integers as integer
from warpsim.machine.opcodes.integer import prmt as permutations
from warpsim.machine.opcodes.operation import Row

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

GROUPS: dict[str, tuple[tuple[Row, ...], tuple[str, ...]]] = {
    "integer": ((*integer.ROWS, *carries.ROWS), INTEGER_TYPES),
    "bits": ((*bits.ROWS, *permutations.ROWS), INTEGER_TYPES),
    "compare": (compare.ROWS, (*INTEGER_TYPES, *FLOAT_TYPES)),
}
SEED = 13
MUTATED = usual(6, 16)  # forms of each opcode

# What ptxas takes beside the forms of the tables: a pattern of names, an example, and why it is not a form.
LENIENCES = (
    (
        r".*\.pred\b.*\..*|.*\..*\.pred",
        "add.pred.u32 %r6, %r1, %r2;",
        "a .pred beside another type is passed over",
    ),
    (
        r"(addc|subc|madc\.(lo|hi))\.[us]16",
        "addc.u16 %h6, %h1, %h2;",
        "16 bits, which the manual does not have",
    ),
    (
        r"vabsdiff4\.(s32\..*|u32\.u32\.s32.*|u32\.s32\.u32.*|.*sat.*)",
        "vabsdiff4.s32.u32.u32 %r6, %r1, %r2, %r3;",
        "forms that nvcc 13.0 does not write; nobody has seen what they do",
    ),
    (r"testp\.f(32|64)", "testp.f32 %p6, %r1;", "no class; the manual demands one"),
)

# A target that has everything up to a PTX version.
TARGETS = (((7, 8), "sm_90"), ((7, 0), "sm_80"), ((6, 3), "sm_75"), ((6, 0), "sm_70"))
OLDEST = (6, 0)  # the first version of sm_70


def _explained(text: str) -> bool:
    return any(re.fullmatch(pattern, text.split()[0]) for pattern, _, _ in LENIENCES)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("group", GROUPS)
def test_every_form_assembles(group: str, target: str) -> None:
    assert refused(every_statement(GROUPS[group][0]), target) == []


@pytest.mark.parametrize("group", GROUPS)
def test_the_order_of_modifiers_does_not_matter(group: str) -> None:
    assert refused(reordered(GROUPS[group][0], SEED), "sm_100a") == []


@pytest.mark.parametrize(
    ("group", "opcode"),
    sorted({(group, row.opcode) for group, (rows, _) in GROUPS.items() for row in rows}),
)
def test_no_mutant_assembles(group: str, opcode: str) -> None:
    rows, types = GROUPS[group]
    found = accepted(mutants(rows, opcode, types, MUTATED, SEED), "sm_100a")
    assert [text for text in found if not _explained(text)] == []


@pytest.mark.parametrize(("pattern", "example", "reason"), LENIENCES)
def test_leniences(pattern: str, example: str, reason: str) -> None:
    assert re.fullmatch(pattern, example.split()[0])
    assert accepted([example], "sm_100a") == [example], reason


def _before(version: tuple[int, int]) -> str:
    """The version before one."""
    major, minor = version
    last = {7: 8, 6: 5}
    return f"{major}.{minor - 1}" if minor else f"{major - 1}.{last[major - 1]}"


ROWS = [row for rows, _ in GROUPS.values() for row in rows]
LATE = [row for row in ROWS if row.since > OLDEST]
NEW = [row for row in ROWS if first_chip(row) > 75]


def _target(version: tuple[int, int]) -> str:
    return next(target for since, target in TARGETS if version >= since)


def test_first_versions() -> None:
    for row in ROWS:
        since = max(row.since, OLDEST if first_chip(row) < 75 else (6, 3))
        assert refused(every_statement([row]), _target(since), ".".join(map(str, since))) == []
    assert len({row.since for row in LATE}) > 3
    for row in LATE:
        assert accepted(every_statement([row]), _target(OLDEST), _before(row.since)) == []


def test_first_targets() -> None:
    for row in NEW:
        assert refused(every_statement([row]), first_target(row).name) == []
        assert accepted(every_statement([row]), "sm_89") == []
