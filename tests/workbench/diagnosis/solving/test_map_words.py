"""Words of each kind of map and function of values: one catalogue of sentences."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim.workbench.diagnosis.solving.atoms import Where, atoms
from warpsim.workbench.diagnosis.solving.map_words import Speaker, map_words, places, value_words
from warpsim.workbench.diagnosis.solving.value_functions import (
    index_functions,
    scale_functions,
    value_functions,
)
from warpsim.workbench.diagnosis.solving.views import view, views_of

FORM = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
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


@pytest.mark.parametrize(
    ("tiled", "text"), [(False, "columns 56-63 are"), (True, "columns 8-15 of each tile are")]
)
def test_a_block_of_lines_is_said_as_the_lines_in_it(tiled: bool, text: str) -> None:
    place = np.arange(64 * 4)
    tiles = [("k step", place // 64)] * tiled
    blocks = view("blocks", [*tiles, ("column block of 8", place // 8 % 8)])
    facts = {"field": "column block of 8", "size": 8, "value": 1 if tiled else 7}
    assert places((Where(blocks, facts, place == 0),), Speaker("b", 16)) == text


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
