"""Tensor copies and tensormap: the tables have what ptxas 13.0 takes, no more, no less."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from tests.helpers import ptxas
from tests.helpers.effect_statements import accepted, judged, mutants, refused, statements
from tests.helpers.own_operands import of_tensors as spell
from tests.helpers.row_targets import first_target, is_on
from warpsim.machine.opcodes.asynchronous import tensormap as tensor_maps
from warpsim.machine.opcodes.asynchronous import tensors
from warpsim.machine.opcodes.effect import Effect
from warpsim.programs.launch.launching import load_text

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

OWN = (100, 101, 103, 110)  # the family with what sm_120 lacks


ROWS: tuple[Effect, ...] = (*tensors.ROWS, *tensor_maps.ROWS)


def _name(row: Effect) -> str:
    return ".".join((row.opcode, *("|".join(slot) for slot in row.slots)))


def _some(rows: Sequence[Effect], count: int) -> list[str]:
    """So many statements of each row, chosen at random but always alike."""
    found = list[str]()
    for row in rows:
        texts = [text for text in statements([row], spell) if "swizzle_atomicity" not in text]
        found += Random(_name(row)).sample(texts, min(count, len(texts)))
    return found


def test_every_form_assembles() -> None:
    assert refused([*statements(tensor_maps.ROWS, spell), *_some(tensors.ROWS, 16)], "sm_100a") == []


@pytest.mark.parametrize("target", ["sm_90", "sm_90a", "sm_100", "sm_120a"])
def test_forms_are_where_the_rows_say_so(target: str) -> None:
    there, missing = list[Effect](), list[Effect]()
    for row in ROWS:
        (there if is_on(row, target) else missing).append(row)
    verdicts = judged([*_some(there, 3), *_some(missing, 3)], target)
    assert [text for text, error in verdicts if error is None] == _some(there, 3)


@pytest.mark.parametrize("opcode", ["cp", "tensormap"])
def test_no_mutant_assembles(opcode: str) -> None:
    """But those that are bulk copies without a tensor."""
    texts = [text for text in mutants(ROWS, opcode, spell, 3, 3) if ".tensor" in text or opcode != "cp"]
    chosen = Random(opcode).sample(texts, min(500, len(texts)))
    assert accepted(chosen, "sm_100a") == []


AVAILABLE = sorted({(row.since, first_target(row).name) for row in ROWS})


@pytest.mark.parametrize(("since", "target"), AVAILABLE)
def test_first_version(since: tuple[int, int], target: str) -> None:
    rows = [row for row in ROWS if (row.since, first_target(row).name) == (since, target)]
    assert refused(_some(rows, 3), target, ".".join(map(str, since))) == []
    if since > (8, 0) and target.startswith("sm_90"):
        assert accepted(_some(rows, 3), target, f"8.{since[1] - 1}") == []


VALUES = [  # field, values from 0 to it on a target
    ("elemtype", 12, "sm_90a"),
    ("elemtype", 15, "sm_100a"),
    ("interleave_layout", 2, "sm_90a"),
    ("swizzle_mode", 3, "sm_90a"),
    ("swizzle_mode", 4, "sm_103a"),
    ("swizzle_atomicity", -1, "sm_90a"),
    ("swizzle_atomicity", 3, "sm_120a"),
    ("fill_mode", 1, "sm_90a"),
]


@pytest.mark.parametrize(("name", "most", "target"), VALUES)
def test_values_of_fields(name: str, most: int, target: str) -> None:
    """ptxas and the table take the same ones."""
    texts = [f"tensormap.replace.tile.{name}.global.b1024.b32 [%d1], {value};" for value in range(-1, 18)]
    taken = accepted(texts, target, "8.8")
    assert taken == texts[1 : most + 2]
    assert [text for text in texts if not _problems(text, target)] == taken


def _problems(statement: str, target: str) -> int:
    head = f".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k() {{\n.reg .b64 %d<9>;\n"
    return len(load_text(f"{head}.reg .b32 %r<9>;\n{statement}\n}}").problems)


FENCE = "global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
OPERANDS = [
    "tensormap.replace.tile.box_dim.global.b1024.b32 [%d1], 5, %r2;",
    "tensormap.replace.tile.box_dim.global.b1024.b32 [%d1], %r1, %r2;",
    "tensormap.replace.tile.elemtype.global.b1024.b32 [%d1], %r2;",
    f"tensormap.cp_fenceproxy.{FENCE} [%d1], [%r1], 64;",
    "cp.async.bulk.tensor.2d.shared::cta.global.bulk_group [%d1, {%r1, %r2}], [%r3];",
    "cp.async.tensor.bulk.2d.global.shared::cta.bulk_group [%d1, {%r1, %r2}], [%r3];",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, %r2], [%r3];",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1+128, {%r2}], [%r3];",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, {%d2}], [%r3];",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, {%r2}, {%r2}], [%r3];",
]


def test_operands_that_nobody_takes() -> None:
    assert accepted(OPERANDS, "sm_90a") == []
    assert [_problems(statement, "sm_90a") for statement in OPERANDS] == [1] * len(OPERANDS)
