"""Operands for comparisons: matrices of codes in many mixes, and what an instruction is given to read them.

Mixes go from random bits over numbers of like size, subnormals and the edges of the format to infinities and
NaNs; each element is of the mix or, sometimes, of another. Knows codes; sums nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers import nasty
from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction
from warpsim.workbench.generation.cases.drafts import Draft
from warpsim.workbench.generation.sums.limits import limits_of

Codes = npt.NDArray[Any]
Rng = np.random.Generator
Mix = Callable[[Format, tuple[int, ...], Rng], Codes]


def _near(element: Format, shape: tuple[int, ...], rng: Rng) -> Codes:
    """Return numbers of like size: they meet in the adder, and cancel."""
    return (
        nasty.near(element, shape, int(rng.integers(0, 6)), rng)
        if element.is_float
        else _bits(element, shape, rng)
    )


def _bits(element: Format, shape: tuple[int, ...], rng: Rng) -> Codes:
    return nasty.random_codes(element, shape, rng)


def _subnormal(element: Format, shape: tuple[int, ...], rng: Rng) -> Codes:
    """Return subnormals and the smallest normal numbers of both signs."""
    if not element.is_float:
        return _bits(element, shape, rng)
    exponents = rng.integers(element.minimum_exponent - 3, element.minimum_exponent + 3, shape)
    return nasty.encode(element, exponents, nasty.fractions(element, shape, rng), nasty.signs(shape, rng))


def _of(catalogue: Callable[[Format], Codes]) -> Mix:
    return lambda element, shape, rng: rng.choice(catalogue(element), shape)


def _few(element: Format, shape: tuple[int, ...], rng: Rng) -> Codes:
    """Return zeros, but for a few."""
    return np.where(rng.random(shape) < 0.15, _near(element, shape, rng), element.code_dtype.type(0))


MIXES: dict[str, Mix] = {
    "random bits": _bits,
    "alike": _near,
    "subnormals": _subnormal,
    "edges": _of(nasty.finite_catalogue),
    "specials": _of(nasty.special_catalogue),
    "few": _few,
}
_TOGETHER = ("alike", "random bits", "edges")  # mixes that others are strewn into


def codes(element: Format, shape: tuple[int, ...], name: str, rng: Rng) -> Codes:
    """Return a matrix of codes of a mix; where it is of specials, most of each row is something else."""
    found = MIXES[name](element, shape, rng)
    share = {"specials": 0.97, "random bits": 0.3}.get(name, rng.choice([0.0, 0.0, 0.1]))
    other = MIXES[rng.choice(_TOGETHER[: 1 if name == "random bits" else 3])](element, shape, rng)
    mixed: Codes = np.where(rng.random(shape) < share, other, found)
    return mixed.astype(element.code_dtype)


def drafted(form: Instruction, count: int, rng: Rng) -> Draft:
    """So many tiles of matrices of a form, each operand in a mix of its own, or all in one."""
    names = [str(item) for item in rng.choice([*MIXES], 3)]
    if rng.random() < 0.5:
        names = names[:1] * 3
    draft = Draft(limits_of(form), count * form.products, rng, free=True)
    draft.a, draft.b, draft.c = (
        codes(form.format(role), matrix.shape, name, rng)
        for role, matrix, name in zip("abc", (draft.a, draft.b, draft.c), names, strict=True)
    )
    if draft.scale_a is not None and draft.scale_b is not None and rng.random() < 0.5:
        octets = np.arange(256, dtype=np.uint8)
        draft.scale_a, draft.scale_b = (
            rng.choice(octets, item.shape) for item in (draft.scale_a, draft.scale_b)
        )
    return draft
