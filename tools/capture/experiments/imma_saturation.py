"""When an integer instruction with .satfinite saturates: once at the end, or at steps inside."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from warpsim.isa.codes import integers
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.isa.rules import Rule
from warpsim.workbench.vectors.sets import VectorSet

from ..candidates import Candidate, computing, model, paired
from ..operands import Array, random_codes, random_fields, vector_set
from .experiment import Experiment, Trial, elements, representatives

_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1


def _stepwise(operands: Operands, rule: Rule, *, length: int, backward: bool) -> Array:
    """Saturation after every ``length`` products."""
    form = operands.product
    a = integers(operands.a, form.a)[..., None]
    products = a * paired(operands, integers(operands.b, form.b))
    total = integers(operands.c, form.c)
    starts = range(0, products.shape[2], length)
    for start in reversed(starts) if backward else starts:
        total = np.clip(total + products[:, :, start : start + length].sum(axis=2), _LOWEST, _HIGHEST)
    wrapped: Array = total & 0xFFFF_FFFF
    return wrapped


def candidates(form: Instruction) -> Iterator[Candidate]:
    """Once, or after every so many products, upward or downward; or never."""
    yield Candidate(name="once", meaning="the exact sum saturates once, at the end", arithmetic=model)
    length = form.stored_k // 2
    while length >= 1:
        for backward in (False, True):
            name = f"every {length}{', last first' if backward else ''}"
            step = computing(partial(_stepwise, length=length, backward=backward))
            yield Candidate(name=name, meaning=f"saturation after every {length} products", arithmetic=step)
        length //= 2
    never = computing(_wrapped)
    yield Candidate(name="never", meaning="the sum wraps", arithmetic=never)


def _wrapped(operands: Operands, rule: Rule) -> Array:
    form = operands.product
    products = integers(operands.a, form.a)[..., None] * paired(operands, integers(operands.b, form.b))
    wrapped: Array = (integers(operands.c, form.c) + products.sum(axis=2)) & 0xFFFF_FFFF
    return wrapped


def _sets(form: Instruction) -> VectorSet:
    """Return C beside a limit, and products that leave the range and come back in runs of 1, 2, 4, ...
    columns.
    """
    rng = np.random.default_rng(4)
    m, stored = form.matrix_shape("a")
    top = (1 << (form.a.bits - 1)) - 1
    runs = [1 << power for power in range(stored.bit_length() - 1)]
    row, place = np.arange(m), np.arange(stored)
    run = np.array(runs)[row // 4 % len(runs)]
    sign = np.where(place[None] // run[:, None] % 2 == 0, 1, -1) * np.where(row % 2, -1, 1)[:, None]
    cases = 2 * -(-4 * len(runs) // m) + 6
    a = np.broadcast_to(top * sign, (cases, m, stored)).copy()
    for case in range(cases - 6):
        a[case] = np.roll(top * sign, -16 * (case // 2), axis=0)
    b = np.full((cases, *form.matrix_shape("b")), top)
    near = rng.integers(0, top * top, (cases, m, form.shape.n))
    c = np.where((row // 2 % 2 == 0)[:, None], _HIGHEST - near, _LOWEST + near)
    packed = [
        (array.astype(np.int64) & form.format(name).mask).astype(form.format(name).code_dtype)
        for name, array in zip("abc", (a, b, c), strict=True)
    ]
    for name, index in (("a", 0), ("b", 1)):
        shape = (6, *form.matrix_shape(name))
        packed[index][-6:] = random_codes(rng, form.format(name), shape, 0, 0)
    labels = ["runs"] * (cases - 6) + ["random"] * 6 + ["extremes"] * 2
    extremes = [_extremes(rng, form, name) for name in "ab"]
    extremes.append(np.resize(packed[2], (2, *packed[2].shape[1:])))
    packed = [np.concatenate(pair) for pair in zip(packed, extremes, strict=True)]
    fields = random_fields(rng, form, cases + 2) if form.sparse else None
    return vector_set(form, *packed, title="imma-saturation", fields=fields, labels=labels, seed=4)


def _extremes(rng: np.random.Generator, form: Instruction, name: str) -> Array:
    """Return two cases of the lowest and the highest number: only the product of two lowest needs all its
    bits.
    """
    element = form.format(name)
    lowest = element.sign_bit
    codes = rng.choice([lowest, lowest, lowest - 1], (2, *form.matrix_shape(name)))
    return codes.astype(element.code_dtype)


def _observed(outputs: VectorSet) -> Iterator[str]:
    """Yield runs add up to nothing, so that D is C where saturation comes once."""
    runs = sum(label == "runs" for label in outputs.labels)
    form = outputs.instruction
    c, d = (elements(form, words)[:runs] for words in (outputs.registers["c"], outputs.d))
    yield f"{int((c != d).sum())} of {c.size} sums that add up to C differ from C"


def _key(form: Instruction) -> object | None:
    if form.operation != "integer" or not form.satfinite or not (form.a.signed and form.b.signed):
        return None
    return form.family.name, form.shape, form.a, form.variant


def trials(target: str) -> Iterator[Trial]:
    """Yield every shape with .satfinite, signed."""
    for form in representatives(target, _key):
        yield Trial(vectors=_sets(form), candidates=tuple(candidates(form)), observe=_observed)


IMMA_SATURATION = Experiment(
    name="imma-saturation",
    question="does .satfinite clamp the exact sum once, or also partial sums inside an instruction?",
    source="PTX's wording suggests once; nobody has published a test",
    answers="'once' confirms the model",
    trials=trials,
)
