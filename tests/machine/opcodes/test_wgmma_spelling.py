"""wgmma: the machine takes what ptxas 13.0 takes, operands included.

Forms and what mutations make of them are judged by both, each with operands that might suit; on sm_90a, and
where there is no wgmma.
"""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

import pytest

import warpsim
from tests.helpers import ptxas
from tests.helpers.warp_statements import by_machine
from warpsim.isa.instruction import Instruction

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

SEED = 23
ORDERS = (
    *("fence.sync.aligned", "commit_group.sync.aligned", "fence.aligned.sync", "fence.sync", "fence"),
    *("commit_group.sync", "commit_group.aligned", "fence.sync.aligned.cta", "fence.sync.sync.aligned"),
    *("wait_group.sync.aligned", "wait_group.sync", "wait_group", "wait_group.aligned.sync"),
    *("sync.aligned", "wait.sync.aligned", "mma_async.sync.aligned"),
)
ORDER_OPERANDS = ("", " 0", " 7", " 8", " %a1", " -1", " 1, 2", " 0f00000000")
DECLARATIONS = (
    ".reg .b32 %a<300>; .reg .f32 %f<9>; .reg .b64 %d<9>; .reg .u64 %u<9>; .reg .b16 %h<9>; .reg .pred %p<9>;"
)
# Statements about which the two differ, and why.
DIFFERENCES: tuple[tuple[str, str], ...] = (
    (r"wgmma\.(fence|commit_group|wait_group)\..*sync.*sync.*", "a modifier that ptxas takes twice"),
)


def vector(count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%a{first + place}" for place in range(count)) + "}"


def operand_lists(form: Instruction) -> list[str]:
    """Operands, right ones and others with one thing wrong."""
    n = form.registers
    d, a = vector(n["d"]), vector(n["a"], 200)
    e = ["%a290", "0"] if form.sparse else []
    scales = ["1", "1"] if form.a.is_float else []
    two = ["0", "0"] if form.a.bits == 16 else []
    right = [d, "%d1", "%d2", *e, "1", *scales, *two]
    in_registers = [d, a, "%d2", *e, "1", *scales, *two[1:]]
    scale_d = 3 + len(e)
    made = [right, in_registers]

    def other(place: int, text: str, base: list[str] | None = None) -> None:
        one = list(base or right)
        if place < len(one):
            one[place] = text
            made.append(one)

    for text in ("%p1", "!%p1", "0", "2", "-1", "%a1", "_"):
        other(scale_d, text)
    for text in ("%a1", "%u1", "12345", "%h1", "[%d1]", "_"):
        other(1, text)
        other(2, text)
    for text in (vector(n["d"] - 1), vector(n["d"] + 1), "{_" + d[4:], "%a1", f"{{1{d[4:]}"):
        other(0, text)
    for text in (
        vector(n["a"] - 1, 200),
        "{1" + a[6:],
        "{0f3F800000" + a[6:],
        "{%f1" + a[6:],
        "{%h1" + a[6:],
    ):
        other(1, text, in_registers)
    for place in range(scale_d + 1, len(right)):
        for text in ("-1", "0", "1", "2", "%a1"):
            other(place, text)
    if form.sparse:
        for text in ("%d1", "%h1", "5", "%f1"):
            other(3, text)
        for text in ("1", "2", "4", "%a1"):
            other(4, text)
    made += [right[:-1], [*right, "0"], [*in_registers, "0"], right[: scale_d + 1]]
    return [", ".join(one) for one in made]


@lru_cache(4)
def forms() -> tuple[Instruction, ...]:
    known = [one for one in warpsim.instructions("sm_90a") if one.family.opcode == "wgmma"]
    kinds: dict[tuple[object, ...], Instruction] = {}
    for one in Random(SEED).sample(known, len(known)):
        if one.shape.n <= 64:
            kinds.setdefault((one.a.name, one.b.name, one.d.name, one.sparse), one)
    return tuple(kinds.values())


def differing(texts: list[str], target: str, version: str = "9.0") -> list[tuple[str, object, object]]:
    """Statements that one takes and the other does not, with their errors."""
    ours = by_machine(texts, target, version, DECLARATIONS)
    theirs = ptxas.verdicts(texts, target=target, declarations=DECLARATIONS, version=version)
    return [
        (text, one, two)
        for text, one, two in zip(texts, ours, theirs, strict=True)
        if (one is None) != (two is None) and not any(re.fullmatch(known, text) for known, _ in DIFFERENCES)
    ]


@pytest.mark.parametrize(("target", "version"), [("sm_90a", "9.0"), ("sm_90a", "8.0"), ("sm_90", "9.0")])
def test_fences_groups_and_waits(target: str, version: str) -> None:
    texts = [f"wgmma.{name}{operands};" for name in ORDERS for operands in ORDER_OPERANDS]
    assert differing(texts, target, version) == []


@pytest.mark.parametrize("number", range(4))
def test_products(number: int) -> None:
    texts = [f"{form.mnemonic} {one};" for form in forms()[number::4] for one in operand_lists(form)]
    assert differing(texts, "sm_90a") == []


@pytest.mark.parametrize(("target", "version"), [("sm_90", "9.0"), ("sm_100a", "9.0"), ("sm_90a", "8.0")])
def test_targets_and_versions(target: str, version: str) -> None:
    texts = [f"{form.mnemonic} {operand_lists(form)[0]};" for form in forms()]
    assert differing(texts, target, version) == []
