"""What mma.sync does with fp8: the emulation that ptxas emits, in which order, or a unit of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from warpsim.isa.comparisons import Evidence
from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import RN_F16, RZ_E8M13, RZ_F32, EmulatedF8, FusedSum
from warpsim.machine.run.engines import Engine as Arithmetic
from warpsim.workbench.vectors.sets import VectorSet

from ..candidates import Candidate, computing, reordered
from ..floors import unseen_floor
from ..operands import Array, random_codes, random_fields, uniform_fields, values, vector_set
from ..probes import FIRST_TWO, probes
from .experiment import Experiment, Trial, representatives

_GUESS = Evidence(label="inferred", detail="a candidate")
_F8 = ("e4m3", "e5m2")


def _emulation(form: Instruction, key: Array, **numbers: int) -> Arithmetic:
    """Return two f16 steps from zero, over the columns with key 0 and then 1, and C added last."""
    step = FusedSum(
        evidence=_GUESS,
        length=form.stored_k // 2,
        fraction_bits=25,
        output=RN_F16 if form.d.bits == 16 else RZ_F32,
        exponent_floor=-21 if form.d.bits == 16 else -133,
    )
    # The rule sums places with place % 4 in 0, 1 first: what is to come first goes there.
    places = np.argsort(np.arange(form.stored_k) % 4 // 2, kind="stable")
    order = np.empty(form.stored_k, np.intp)
    order[places] = np.argsort(key, kind="stable")
    rule = EmulatedF8(step=replace(step, **numbers), evidence=_GUESS)  # type: ignore[arg-type]
    return computing(rule=rule, change=reordered(order))


def _first_floor(form: Instruction) -> int:
    """Return the lowest floor of the emulation that inputs can tell from none."""
    step = FusedSum(evidence=_GUESS, length=1, fraction_bits=25, output=RZ_F32, exponent_floor=0)
    return unseen_floor(form, EmulatedF8(step=step, evidence=_GUESS)) + 1


def emulations(form: Instruction) -> Iterator[Candidate]:
    """Yield emulations in four orders, and native units."""
    place, half = np.arange(form.stored_k), form.stored_k // 2
    for name, key, meaning in (
        ("emulated", place % 4 // 2, "two f16 steps: columns with k % 4 in 0, 1, then 2, 3; C added last"),
        ("emulated, swapped", 1 - place % 4 // 2, "the same, columns with k % 4 in 2, 3 first"),
        ("emulated by halves", place // half, "two f16 steps: the lower half of the columns, then the upper"),
        ("emulated even-odd", place % 2, "two f16 steps: even columns, then odd ones"),
    ):
        yield Candidate(name=name, meaning=meaning, arithmetic=_emulation(form, key))
    for bits in (24, 26):
        emulated = _emulation(form, place % 4 // 2, fraction_bits=bits)
        meaning = f"as emulated, in steps with {bits} fraction bits"
        yield Candidate(name=f"emulated, F={bits}", meaning=meaning, arithmetic=emulated)
    floor = _first_floor(form)
    emulated = _emulation(form, place % 4 // 2, exponent_floor=floor)
    meaning = f"as emulated, no term being aligned below exponent {floor}"
    yield Candidate(name=f"emulated, floor {floor}", meaning=meaning, arithmetic=emulated)
    narrow = RN_F16 if form.d.bits == 16 else RZ_E8M13
    wide = RN_F16 if form.d.bits == 16 else RZ_F32
    floor = {13: (-132, -20), 25: (-133, -21)}
    for bits, output in ((13, narrow), (25, wide)):
        for length in sorted({min(16, form.stored_k), form.stored_k}):
            rule = FusedSum(
                evidence=_GUESS,
                length=length,
                fraction_bits=bits,
                output=output,
                exponent_floor=floor[bits][form.d.bits == 16],
            )
            yield Candidate(
                name=f"native F={bits}, groups of {length}",
                meaning=f"a unit of its own: {bits} fraction bits, C in the first group of {length}",
                arithmetic=computing(rule=rule),
            )


def _sets(form: Instruction) -> VectorSet:
    """Return numbers of about one size, of all sizes, and of all sizes with two large products that
    cancel.
    """
    rng = np.random.default_rng(8)
    count = 16
    shapes = {name: (count, *form.matrix_shape(name)) for name in "abc"}
    near = {name: random_codes(rng, form.format(name), shapes[name], -5, 4) for name in "ab"}
    codes = {name: np.concatenate([near[name], _wide(rng, form, name, shapes[name])]) for name in "ab"}
    cancelling = {name: array[count:].copy() for name, array in codes.items()}
    first = rng.integers(0, form.stored_k, (count, form.shape.m))
    second = (first + rng.integers(1, form.stored_k, first.shape)) % form.stored_k
    large = values(form.a, [2.0 ** (form.a.bias), -(2.0 ** (form.a.bias))])
    for place, code in ((first, large[0]), (second, large[1])):
        np.put_along_axis(cancelling["a"], place[..., None], code, axis=2)
    cancelling["b"] = np.broadcast_to(cancelling["b"][:, :1], cancelling["b"].shape)
    a, b = (np.concatenate([codes[name], cancelling[name]]) for name in "ab")
    c = random_codes(rng, form.c, (3 * count, *form.matrix_shape("c")), -4, 9)
    fields = random_fields(rng, form, 3 * count) if form.sparse else None
    labels = ["near"] * count + ["wide"] * count + ["cancelling"] * count
    *rest, more = probes(form)
    a, b, c = (np.concatenate(pair) for pair in zip((a, b, c), rest, strict=True))
    labels += more
    if fields is not None:
        fields = np.concatenate([fields, uniform_fields(form, FIRST_TWO, len(more))])
    return vector_set(form, a, b, c, title="fp8-sync", fields=fields, labels=labels, seed=8)


def _wide(rng: np.random.Generator, form: Instruction, name: str, shape: tuple[int, ...]) -> Array:
    element = form.format(name)
    return random_codes(rng, element, shape, element.minimum_exponent, element.bias)


def _key(form: Instruction) -> object | None:
    eligible = form.family.opcode == "mma" and form.operation == "f8f6f4" and form.scale is None
    if not eligible or form.a.name not in _F8 or form.b.name not in _F8:
        return None
    if form.sparse and not form.ordered:
        return None
    return form.family.name, form.shape, form.d, form.a, form.b, form.kind


def trials(target: str) -> Iterator[Trial]:
    """Yield every form of mma and mma.sp with fp8."""
    for form in representatives(target, _key):
        yield Trial(vectors=_sets(form), candidates=tuple(emulations(form)), unasked=_not_asked(form))


def _not_asked(form: Instruction) -> tuple[str, ...]:
    return (
        f"floors below {_first_floor(form)} of an emulation: they give the same bits as none",
        "floors of native units: exponent-floor",
        "which NaN is written: nan-payload",
    )


FP8_SYNC = Experiment(
    name="fp8-sync",
    question="does mma.sync of fp8 emulate, in which order are the halves summed, and when is C added?",
    source="the instructions that ptxas emits on sm_90 and sm_100; other drivers may emit others",
    answers="'emulated' confirms the model on sm_90 and sm_100, 'native' the ones on sm_89 and sm_120",
    trials=trials,
)
