"""What becomes of the low 13 bits of a tf32 operand, which are no part of the format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from warpsim.isa.formats import FORMATS
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.isa.rules import Rule
from warpsim.workbench.vectors.sets import VectorSet

from ..candidates import Candidate, computing, model, rule_compute
from ..operands import Array, random_fields, vector_set
from .experiment import Experiment, Trial, elements, representatives

_LOW = np.uint32(0x1FFF)
_SIGN = np.uint32(0x8000_0000)
_INFINITY = np.uint32(0x7F80_0000)
_NAN = np.uint32(0x7FFF_E000)
_ONE = 0x3F80_0000

_SPECIAL = (
    0x7F80_0001,  # a NaN in the low bits only
    0xFF80_1FFF,
    0x7F80_2000,  # a NaN in any case
    0x3F80_0FFF,  # below, at and above half of the last place
    0x3F80_1000,
    0x3F80_1001,
    0x3F80_3000,  # half, and the last place is odd
    0x3F80_1FFF,
    0xBF80_1FFF,
    0x0000_1FFF,  # zero but for the low bits
    0x7F7F_FFFF,  # rounds to Inf
    0x7F7F_E000,
    0x0060_3000,  # half, and the last place is odd, of a subnormal number
    0x7F80_0000,
    0xFF80_0000,
    0x0080_1000,
)


def _is_nan(codes: Array) -> Array:
    return (codes & ~_SIGN) > _INFINITY


def _classified_first(codes: Array) -> Array:
    return np.where(_is_nan(codes), _NAN, codes & ~_LOW).astype(np.uint32)


def _to_nearest(codes: Array, *, even: bool) -> Array:
    magnitude = (codes & ~_SIGN).astype(np.uint64)
    half = 0x0FFF + (magnitude >> np.uint64(13) & np.uint64(1)) if even else 0x1000
    rounded = ((magnitude + half) & ~np.uint64(_LOW)).astype(np.uint32) | codes & _SIGN
    special = (codes & ~_SIGN) >= _INFINITY
    return np.where(special, _classified_first(codes), rounded).astype(np.uint32)


def _changed(change: Callable[[Array], Array], operands: Operands) -> Operands:
    return replace(operands, a=change(operands.a), b=change(operands.b))


def _all_bits(operands: Operands, rule: Rule) -> Array:
    f32 = FORMATS["f32"]
    return rule_compute(replace(operands, product=replace(operands.product, a=f32, b=f32)), rule)


def candidates() -> Iterator[Candidate]:
    """Return the candidates: dropped, with NaN found before or after; rounded; or not dropped at all."""
    yield Candidate(name="dropped first", meaning="x & 0xffffe000, then decoded", arithmetic=model)
    for name, meaning, change in (
        ("classified first", "NaN is found in all 32 bits, then the low bits are dropped", _classified_first),
        ("rounded to even", "rounded to 10 fraction bits, ties to even", partial(_to_nearest, even=True)),
        (
            "rounded away",
            "rounded to 10 fraction bits, ties away from zero",
            partial(_to_nearest, even=False),
        ),
    ):
        yield Candidate(name=name, meaning=meaning, arithmetic=computing(change=partial(_changed, change)))
    yield Candidate(
        name="all bits", meaning="all 23 fraction bits are multiplied", arithmetic=computing(_all_bits)
    )


def _sets(form: Instruction) -> VectorSet:
    """Return special codes in A and then in B beside ones, and random numbers near one with all 23 bits."""
    rng = np.random.default_rng(32)
    cases = 2 + 4
    shapes = {name: (cases, *form.matrix_shape(name)) for name in "abc"}
    a, b = (rng.integers(_ONE, _ONE + (1 << 23), shapes[name]).astype(np.uint32) for name in "ab")
    c = np.zeros(shapes["c"], np.uint32)
    a[:2], b[:2] = 0, _ONE
    a[0, np.arange(form.shape.m), 0] = np.resize(np.array(_SPECIAL, np.uint32), form.shape.m)
    a[1, :, :] = 0
    a[1, :, 0] = _ONE
    b[1] = 0  # but for what the only number of A multiplies: Inf times zero would hide a NaN
    first = slice(0, form.pattern.chunk if form.pattern else 1)
    b[1, first] = np.resize(np.array(_SPECIAL, np.uint32), (2, form.shape.n))[:1]
    a2, b2, c2 = a[1:2].copy(), b[1:2].copy(), c[1:2]
    b2[:, first] = np.array(_SPECIAL, np.uint32)[form.shape.n : 2 * form.shape.n]
    fields = random_fields(rng, form, cases + 1) if form.sparse else None
    labels = ["special A", "special B", *["random"] * 4, "special B"]
    a, b, c = (np.concatenate(pair) for pair in ((a, a2), (b, b2), (c, c2)))
    return vector_set(form, a, b, c, title="tf32-low-bits", fields=fields, labels=labels, seed=32)


def _observed(outputs: VectorSet) -> Iterator[str]:
    d = elements(outputs.instruction, outputs.d)[0, : len(_SPECIAL), 0]
    pairs = (f"{code:08x}->{int(result):08x}" for code, result in zip(_SPECIAL, d, strict=True))
    yield f"A times one: {' '.join(pairs)}"


def _key(form: Instruction) -> object | None:
    return (form.family.name, form.shape, form.variant) if form.operation == "tf32" else None


def trials(target: str) -> Iterator[Trial]:
    """Yield every shape of tf32."""
    for form in representatives(target, _key):
        yield Trial(vectors=_sets(form), candidates=tuple(candidates()), observe=_observed)


TF32_LOW_BITS = Experiment(
    name="tf32-low-bits",
    question="are the low 13 bits of a tf32 operand dropped, and before or after NaN is recognised?",
    source="PTX says so for wgmma only; for mma it calls the layout implementation defined",
    answers="'dropped first' confirms the model: a NaN in the low bits alone is an Inf",
    trials=trials,
)
