"""Registers of every type in every operand of every family: warpsim takes what ptxas 13.0 takes.

One form of each set of types, shapes and kinds, on one of its targets: what else a form spells does not
touch its operands. What ptxas alone takes is explained in differences.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import pytest

import warpsim
from tests.helpers import ptxas
from tests.helpers.agreement import compare
from tests.helpers.families import sample
from tests.helpers.mutations import REGISTER_TYPES, Operand, Operands, legal_operands, spelled, vector
from warpsim import Instruction
from warpsim.ptx.operand_types import REGISTER_BITS

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_120a")  # each form on the first that has it
WIDE = ("r", "u", "s", "f", "x")  # prefixes of the types of 32 bits
PAIRS = tuple(pair[:: 1 - 2 * (i % 2)] for i, pair in enumerate(combinations(WIDE, 2)))


def representatives() -> dict[str, list[Instruction]]:
    """By target, one form of each opcode, shape, kind, operation and types.

    Of different A and B of a kind one pair stands for all; of the columns of wgmma, 8.
    """
    chosen: dict[tuple[object, ...], Instruction] = {}
    for form in warpsim.instructions():
        multiplicands = str(form.a) if form.a == form.b else "different"
        key = (form.family.name, form.kind, form.operation, multiplicands, str(form.c), str(form.d))
        shape = str(form.shape) if form.lanes == 32 else ""
        chosen.setdefault((*key, shape, bool(form.scale)), form)
    found: dict[str, list[Instruction]] = {target: [] for target in TARGETS}
    for form in chosen.values():
        found[next(target for target in TARGETS if target in form.targets)].append(form)
    return found


FORMS = representatives()
EMULATED = {"sm_90": ("f8f6f4",), "sm_100a": ("integer", "b1")}  # operations that become calls of ptxas there


def operands_of(form: Instruction) -> Iterator[Operands]:
    """Legal operands: one set for a warp; for a warpgroup two, with A in registers and in shared memory."""
    if form.lanes == 32:
        yield legal_operands(form)
        return
    counts, result = form.registers, "f" if form.d.name == "f32" else "r"
    for a in (vector("r", 8, counts["a"]), "d0"):
        operands: list[Operand] = [vector(result, 0, counts["d"]), a, "d1"]
        operands += ["r33", "0"] if form.sparse else []
        operands += ["p0", *["1", "1"] * form.a.is_float]
        operands += ["0"] * ((form.a.bits == 16) * (1 if isinstance(a, tuple) else 2))
        yield tuple(operands)


def retyped(form: Instruction) -> Iterator[str]:
    """The form with one operand of other registers: all of one type, or the last of another type."""
    for operands in operands_of(form):
        yield spelled(form.mnemonic, operands)
        for place, operand in enumerate(operands):
            for other in others(operand):
                yield spelled(form.mnemonic, (*operands[:place], other, *operands[place + 1 :]))


def others(operand: Operand) -> Iterator[Operand]:
    """Registers of every type in place of an operand; in a vector also those of two types of 32 bits."""
    for prefix in REGISTER_TYPES:
        yield f"{prefix}5" if isinstance(operand, str) else vector(prefix, 4, len(operand))
    if isinstance(operand, tuple) and len(operand) > 1:
        for first, last in PAIRS:
            yield (*vector(first, 4, len(operand) - 1), f"{last}20")


@pytest.mark.parametrize("target", TARGETS)
def test_registers_of_every_type(target: str) -> None:
    report = compare(sample((text for form in FORMS[target] for text in retyped(form)), 2), target)
    listed = "\n".join(map(str, report.unexplained[:20]))
    assert not report.unexplained, f"{len(report.unexplained)} of {report.cases} statements:\n{listed}"
    assert len(FORMS[target]) / 2 < report.legal < report.cases


@pytest.mark.parametrize("target", EMULATED)
def test_registers_where_ptxas_emulates(target: str) -> None:
    forms = [
        form
        for form in (one for forms in FORMS.values() for one in forms)
        if form.operation in EMULATED[target] and target in form.targets
    ]
    report = compare((text for form in forms for text in retyped(form)), target)
    assert [str(one) for one in report.unexplained[:20]] == []
    assert len(forms) < report.legal < report.cases


def test_every_family_is_asked_about() -> None:
    families = {form.family.name for forms in FORMS.values() for form in forms}
    assert families == {"mma", "mma.sp", "wgmma", "wgmma.sp"}
    kinds = {form.kind for form in warpsim.instructions()}
    assert {form.kind for forms in FORMS.values() for form in forms} == kinds


def test_the_types_are_those_of_ptxas() -> None:
    """``.reg`` takes exactly the types that the table has."""
    names = {*REGISTER_BITS, *("".join(pair) for pair in product("bsuf", ("1", "2", "4", "8", "16", "32")))}
    names |= {"bf16", "bf16x2", "tf32", "f64x2", "b24", "u128", "f8"}
    for name in sorted(names):
        (verdict,) = ptxas.verdicts(
            ["mov.b32 r, r;"], target="sm_90a", declarations=f".reg .b32 r; .reg .{name} x;"
        )
        assert (verdict is None) == (name in REGISTER_BITS), name
