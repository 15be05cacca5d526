"""Maps that no list had, pairs, and the words of each kind of atom: one catalogue of sentences."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim.workbench.diagnosis.solving.atoms import atoms
from warpsim.workbench.diagnosis.solving.map_words import map_words, value_words
from warpsim.workbench.diagnosis.solving.place_words import Speaker
from warpsim.workbench.diagnosis.solving.value_functions import (
    index_functions,
    scale_functions,
    value_functions,
)
from warpsim.workbench.diagnosis.solving.views import views_of

FORM = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
LANE, REGISTER = np.arange(32)[:, None], np.arange(4)
REVERSED = np.array([int(f"{lane:05b}"[::-1], 2) for lane in range(32)])[:, None]
MAPS = {
    "A: lanes i and i ^ 7 exchanged": (LANE ^ 7, REGISTER),
    "A: lanes in reverse order": (LANE ^ 31, REGISTER),
    "A: bits of the lane in the order (4, 3, 2, 1, 0), lowest first": (REVERSED, REGISTER),
    "A: lane i holds lane 5 * i mod 32": (5 * LANE % 32, REGISTER),
    "A: swizzled: lane ^ (register & 3)": (LANE ^ REGISTER, REGISTER),
}


def registers(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrices = {"a": (16, 16), "b": (16, 8), "c": (16, 8)}
    return {
        name: warpsim.pack(FORM, name, rng.standard_normal(shape).astype(FORM.format(name).dtype))
        for name, shape in matrices.items()
    }


@pytest.mark.parametrize("name", MAPS)
def test_five_maps_are_named(name: str) -> None:
    given = registers(0)
    moved = {"a": given["a"][np.broadcast_arrays(*MAPS[name])[0], MAPS[name][1]]}
    found = warpsim.diagnose(FORM, **given, d=warpsim.execute(FORM, **given | moved), most=1)
    (match,) = found.matches
    assert match.simplest.names == (name,)


def test_two_operands_are_solved_together() -> None:
    given = registers(1)
    moved = {"a": given["a"][np.arange(32) ^ 5], "c": given["c"] * np.uint32(0)}
    found = warpsim.diagnose(FORM, **given, d=warpsim.execute(FORM, **given | moved))
    assert ("A: lanes i and i ^ 5 exchanged", "C: not added") in {
        cause.names for match in found.matches for cause in match.equivalent
    }


def test_an_operand_and_d_are_solved_together() -> None:
    given = registers(2)
    d = warpsim.execute(FORM, **given | {"b": given["b"][np.arange(32) ^ 9]})[np.arange(32) ^ 18]
    found = warpsim.diagnose(FORM, **given, d=d)
    operands = [tuple(each.operands for each in match.simplest.mistakes) for match in found.matches]
    assert (("b",), ("d",)) in operands


def test_noise_and_the_right_d_have_no_cause() -> None:
    given = registers(3)
    noise = np.random.default_rng(0).standard_normal((32, 4)).astype(np.float32).view(np.uint32)
    assert not warpsim.diagnose(FORM, **given, d=noise).found
    assert warpsim.diagnose(FORM, **given, d=warpsim.execute(FORM, **given)).as_expected


# --- words -----------------------------------------------------------------------------------------------


SENTENCES = {  # of A of m16n8k16: kind and facts, and what is said
    "xor": ("lane", {"by": 16}, "lane halves exchanged"),
    "rotated": ("lane", {"by": 31}, "lane off by -1"),
    "swapped": ("register", {"first": 1, "second": 3}, "registers 1 and 3 exchanged"),
    "copied": ("lane", {"at": 13, "from": 14}, "lane 13 holds lane 14's elements"),
    "ordered": ("register", {"order": (2, 0, 1, 3)}, "registers in the order 2, 0, 1, 3"),
    "shifted": ("row", {"by": -1}, "row off by -1, nothing beyond the edge"),
    "clamped": ("column", {"by": 2}, "k off by +2, the last repeated at the edge"),
    "scaled": ("lane", {"factor": 3, "by": 2}, "lane i holds lane (3 * i + 2) mod 32"),
    "constant": ("lane", {"value": 5}, "lane 5's elements in every lane"),
    "cleared": ("lane", {"bit": 2}, "bit 2 of the lane cleared"),
    "interleaved": ("lane", {"width": 8}, "lanes interleaved in blocks of 8"),
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_a_kind_of_atom_has_words(kind: str) -> None:
    field, facts, text = SENTENCES[kind]
    known = atoms(views_of(FORM, "a"))
    size = {"lane": 32, "register": 4, "row": 16, "column": 16}[field]
    wanted = {"field": field, "size": size, **facts}
    made = known.named(kind, **wanted)
    assert map_words(kind, made.facts, Speaker("a", 16), views_of(FORM, "a")[0]) == text


def test_each_kind_of_atom_and_value_has_words() -> None:
    scaled = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    other = warpsim.decode(scaled, target="sm_120a")
    for form in (FORM, other):
        for operand in form.operands:
            for atom in atoms(views_of(form, operand)):
                if atom.kind != "unchanged":
                    text = map_words(atom.kind, atom.facts, Speaker(operand, 16), atom.view)
                    assert "{" not in text
                    assert not text.endswith(".")
    functions = [*value_functions(FORM.a), *value_functions(other.a, 2), *value_functions(FORM.c)]
    functions += [*value_functions(warpsim.decode(S8, target="sm_80").a), *index_functions(2)]
    functions += [*index_functions(4), *scale_functions(other.scale)]
    for function in functions:
        assert value_words(function.kind, function.facts, Speaker("a", 16))


S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
