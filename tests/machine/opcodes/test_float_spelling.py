"""The floating-point forms are those that ptxas takes: all, and none that differs in one modifier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import ptxas
from tests.helpers.row_targets import first_chip
from warpsim.machine.opcodes.floating import approximate, halves, minmax, rounded
from warpsim.machine.opcodes.floating import singles as floating
from warpsim.machine.opcodes.operation import Row

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing())

GROUPS = {
    "floating": floating.ROWS,
    "halves": halves.ROWS,
    "minmax": minmax.ROWS,
    "approximate": approximate.ROWS,
    "rounded": rounded.ROWS,
}
ROWS = tuple(row for rows in GROUPS.values() for row in rows)
REGISTERS = {
    "f16": "%h",
    "bf16": "%h",
    "f16x2": "%r",
    "bf16x2": "%r",
    "f32": "%f",
    "f64": "%d",
    "f32x2": "%l",
}
DECLARATIONS = ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b64 %l<9>;"
LATEST = "sm_100a"
SOURCES = {
    "add": (2,), "sub": (2,), "mul": (2,), "div": (2,), "fma": (3,), "mad": (3,), "min": (2, 3), "max": (2, 3)
}  # fmt: skip
ORDER = (
    "rn",
    "rz",
    "rm",
    "rp",
    "approx",
    "full",
    "ftz",
    "oob",
    "relu",
    "sat",
    "NaN",
    "xorsign",
    "abs",
    *REGISTERS,
)
Form = tuple[str, tuple[str, ...], int]  # opcode, modifiers, number of sources

# What ptxas takes and the tables do not have.
EXTRA = {
    "fma.{rz,rm,rp}.bf16": "not in the manual; ptxas generates the code of f16 sums",
}


def forms(rows: tuple[Row, ...]) -> Iterator[tuple[Row, Form]]:
    for row in rows:
        for modifiers, choice in row.by_modifiers.items():
            yield row, (row.opcode, modifiers, len(row.build(*choice).sources))


def statement(form: Form) -> str:
    """One instruction; a second type is that of all sources but the last."""
    opcode, modifiers, count = form
    types = [modifier for modifier in modifiers if modifier in REGISTERS] or ["f32"]
    operands = [types[0], *[types[-1]] * (count - 1), types[0] if len(types) > 1 else types[-1]]
    registers = ", ".join(f"{REGISTERS[name]}{index}" for index, name in enumerate(operands))
    return f"{'.'.join((opcode, *modifiers))} {registers};"


def judged(found: list[Form], target: str, version: str = "9.0") -> dict[Form, bool]:
    verdicts = ptxas.verdicts(
        map(statement, found), target=target, declarations=DECLARATIONS, version=version
    )
    return {form: verdict is None for form, verdict in zip(found, verdicts, strict=True)}


@pytest.mark.parametrize("group", GROUPS)
def test_ptxas_takes_every_form(group: str) -> None:
    targets: dict[int, list[Form]] = {}
    for row, form in forms(GROUPS[group]):
        targets.setdefault(max(first_chip(row), 75), []).append(form)
    for chip, found in targets.items():
        accepted = judged(found, f"sm_{chip}{'a' if chip == 90 else ''}")
        assert [statement(form) for form in found if not accepted[form]] == []


def mutations(form: Form, vocabulary: list[str]) -> Iterator[Form]:
    """Forms with one modifier dropped, exchanged, or added where the manual's order has it."""
    opcode, modifiers, count = form
    for index, modifier in enumerate(modifiers):
        yield opcode, modifiers[:index] + modifiers[index + 1 :], count
        for other in vocabulary:
            if other not in modifiers:
                changed = (*modifiers[:index], other, *modifiers[index + 1 :])
                both_types = modifier in REGISTERS and other in REGISTERS
                yield opcode, changed if both_types else in_order(changed), count
    for other in vocabulary:
        if other not in modifiers:
            yield opcode, in_order((*modifiers, other)), count


def in_order(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """Modifiers in the manual's order, which types of one instruction keep as they are."""
    return tuple(
        sorted(modifiers, key=lambda name: ORDER.index(name) if name not in REGISTERS else len(ORDER))
    )


def is_known_extra(form: Form) -> bool:
    opcode, modifiers, _ = form
    return opcode == "fma" and modifiers[0] in ("rz", "rm", "rp") and modifiers[-1] in ("bf16", "bf16x2")


@pytest.mark.parametrize("opcode", sorted({row.opcode for row in ROWS}))
def test_ptxas_takes_no_mutation_that_the_tables_do_not_have(opcode: str) -> None:
    rows = tuple(row for row in ROWS if row.opcode == opcode)
    table = {form for _, form in forms(rows)}
    vocabulary = sorted(
        {modifier for _, modifiers, _ in table for modifier in modifiers} | {"ftz", "sat", "relu"}
    )
    mutants = {mutant for form in table for mutant in mutations(form, vocabulary)}
    mutants |= {
        (opcode, modifiers, count) for _, modifiers, _ in table for count in SOURCES.get(opcode, (1,))
    }
    accepted = judged(sorted(mutants | table), LATEST)
    wrong = {form for form, taken in accepted.items() if taken != (form in table)}
    assert sorted(statement(form) for form in wrong if not is_known_extra(form)) == []


def test_exceptions_are_still_exceptions() -> None:
    """See EXTRA."""
    found: list[Form] = [
        ("fma", (mode, kind), 3) for mode in ("rz", "rm", "rp") for kind in ("bf16", "bf16x2")
    ]
    assert all(judged(found, LATEST).values())


# The target or version before the first that has a form, and one that has it.
@pytest.mark.parametrize("group", GROUPS)
def test_first_target(group: str) -> None:
    before = {80: "sm_75", 86: "sm_80", 90: "sm_89", 100: "sm_90a"}
    targets: dict[str, list[Form]] = {}
    for row, form in forms(GROUPS[group]):
        if first_chip(row) in before:
            targets.setdefault(before[first_chip(row)], []).append(form)
    for target, found in targets.items():
        accepted = judged(found, target)
        assert [statement(form) for form in found if accepted[form]] == []


@pytest.mark.parametrize("group", GROUPS)
def test_first_version(group: str) -> None:
    """The version before is judged where ptxas knows a target of that age that has the form."""
    before = {
        (7, 0): ("6.5", "sm_75"),
        (8, 1): ("8.0", "sm_90"),
        (8, 8): ("8.7", "sm_100"),
        (7, 8): ("7.7", "sm_90"),
    }
    wrong = []
    for row, form in forms(GROUPS[group]):
        if row.since in before:
            version, target = before[row.since]
            wrong += [statement(form) for taken in judged([form], target, version).values() if taken]
    assert wrong == []
