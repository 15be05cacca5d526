"""Which products of nvfp4 (4-bit elements with scales of ue4m3) tcgen05.mma sums before it cuts them.

The products of the first block of 16 are huge and cancel, in groups of 8; those of the others are tiny. What
is cut below the huge ones, and in which groups the tiny ones were summed before, shows in D.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from warpsim.isa.element_packing import bytes_of_codes
from warpsim.isa.families.tcgen05 import KINDS, Form, spelling_of, with_numerics
from warpsim.isa.families.tcgen05_operands import behind_descriptor
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.places import tensor_cells
from warpsim.isa.rules import ScaledQuads
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.generation.cases.tensor_cases import major_of, packings
from warpsim.workbench.vectors.sets import VectorSet, make_vectors

from ..candidates import Candidate, computing, model
from ..operands import ENGINE, Array, Rng
from .experiment import Experiment, Trial

_WORD = 0x08020480  # 128 x 8 x 64, A and B of e2m1, scales of ue4m3
_CASES = 4  # of each theme: 1,024 outputs each
_SIGN, _ROWS, _COLUMNS, _DEPTH, _BLOCK = 8, 128, 8, 64, 16
_SMALL, _LARGE = (1, 4), 0x7E  # codes of tiny scales, and that of the largest


def candidates(form: Instruction) -> Iterator[Candidate]:
    """Yield the model's groups, those of a public model of B200, and others cut as those are."""
    yield Candidate(
        name="groups of 16", meaning="a block of 16 products is summed before it is cut", arithmetic=model
    )
    public = rule_for(with_numerics(form, "groups_of_4"))
    assert isinstance(public, ScaledQuads)
    for group in (4, 2, 8):
        meaning = f"groups of {group} products are summed before they are cut; of 16 where C is larger"
        arithmetic = computing(rule=replace(public, group=group))
        yield Candidate(name=f"groups of {group}", meaning=meaning, arithmetic=arithmetic)


# --- inputs ----------------------------------------------------------------------------------------


def _codes(rng: Rng, shape: tuple[int, ...], low: int, high: int) -> Array:
    """Return codes of f32 of both signs with encoded exponents from ``low`` to ``high - 1``."""
    fraction, sign = rng.integers(0, 1 << 23, shape), rng.integers(0, 2, shape)
    return (fraction | rng.integers(low, high, shape) << 23 | sign << 31).astype(np.uint32)


def _drawn(rng: Rng, theme: str) -> dict[str, Array]:
    """Return codes of one case: A, B, C and both scales."""
    found = {
        "a": rng.integers(0, 16, (_ROWS, _DEPTH)).astype(np.uint8),
        "b": rng.integers(0, 16, (_DEPTH, _COLUMNS)).astype(np.uint8),
        "c": _codes(rng, (_ROWS, _COLUMNS), 60, 110),
        "scale_a": rng.integers(*_SMALL, (_ROWS, 4)).astype(np.uint8),
        "scale_b": rng.integers(*_SMALL, (4, _COLUMNS)).astype(np.uint8),
    }
    if theme == "moderate scales":  # nothing is cut, so all candidates agree
        for name in ("scale_a", "scale_b"):
            found[name] = rng.integers(0x28, 0x50, found[name].shape).astype(np.uint8)
        return found
    found["scale_a"][:, 0], found["scale_b"][0] = _LARGE, _LARGE
    half = _BLOCK // 2
    found["a"][:, half:_BLOCK] = found["a"][:, :half] ^ _SIGN
    found["b"][half:_BLOCK] = found["b"][:half]
    if theme == "a larger C":
        found["c"] = _codes(rng, (_ROWS, _COLUMNS), 144, 152)
    if theme == "no C":
        found["c"][:] = 0
    return found


_THEMES = ("cancelling blocks", "no C", "a larger C", "moderate scales")


def sets(form: Instruction) -> VectorSet:
    """Return the cases of all themes."""
    rng = np.random.default_rng(16)
    labels = [f"{theme}, case {case}" for theme in _THEMES for case in range(_CASES)]
    drawn = [_drawn(rng, theme) for theme in _THEMES for _ in range(_CASES)]
    codes = {name: np.stack([case[name] for case in drawn]) for name in drawn[0]}
    codes["scale_b"] = codes["scale_b"].swapaxes(1, 2)
    words = {
        name: tensor_cells(form, name).scatter(np.ascontiguousarray(codes[name]))
        for name in ("c", "scale_a", "scale_b")
    }
    tiles = _tiles(form, {"a": codes["a"], "b": codes["b"].swapaxes(1, 2)})
    return make_vectors(form, title="scale-groups", labels=tuple(labels), engine=ENGINE, **words, **tiles)


def _tiles(form: Instruction, codes: dict[str, Array]) -> dict[str, Array]:
    """Return shared memory of every case, and the descriptors of A and B: packed, without swizzle."""
    found, images, start = dict[str, Array](), list[Array](), 0
    for side, matrices in codes.items():
        place, major = behind_descriptor(form, side), major_of(form, side)
        packed = packings(place, major)[0]
        addresses = place.addresses(packed.descriptor.encode(), major, packed.size)
        image = np.zeros((len(matrices), packed.size), np.uint8)
        for case, matrix in enumerate(matrices):
            image[case, addresses] = bytes_of_codes(np.ascontiguousarray(matrix), form.product, side)
        found[f"{side}_desc"] = np.full(len(matrices), packed.descriptor.advanced(start).encode(), np.uint64)
        images.append(image)
        start += packed.size
    return found | {"shared": np.concatenate(images, axis=1)}


def trials(target: str) -> Iterator[Trial]:
    """Yield both spellings of the form, of which chips have the same instruction."""
    for vector in ("block16", "scale_vec::4X"):
        spelling = spelling_of(Form(kind=KINDS["mxf4nvf4"], vector=vector), target)
        if target not in spelling.targets:
            continue
        form = spelling.described(_WORD)
        yield Trial(
            vectors=sets(form),
            candidates=tuple(candidates(form)),
            unasked=("sparse forms, and a K of 96", "scales of ue8m0, whose published outputs agree"),
        )


SCALE_GROUPS = Experiment(
    name="scale-groups",
    question="how many products of nvfp4 does tcgen05.mma sum before it cuts them?",
    source="a public model of B200 has groups of 4, and other models of the same products of 16",
    answers="the groups that survive are those of the rule of nvf4 in architectures.py",
    trials=trials,
)
