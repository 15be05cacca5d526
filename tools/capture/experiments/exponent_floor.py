"""From which exponent on small products are no longer aligned to the largest one: NUMERICS e_floor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpsim.isa.codes import values_of
from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import Rule
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.vectors.sets import VectorSet

from ..candidates import Candidate, computing, model
from ..floors import floor_of, idle_floor
from ..gathering import gathered_by_scales
from ..operands import Array, joined, uniform_fields, values, vector_set
from ..probes import FIRST_TWO, probes, scales_of, spread
from .experiment import Experiment, Trial, elements, representatives

_STEPS = 28  # halvings of the small product that are tried
_BLOCK_STEPS = 40  # where a step is a case, and more bits are kept
_OTHERS = (-8, -2, -1, 1, 2, 7)  # distances from the floor of the model
_NONE = -300  # below every exponent that products have; kernels are not made for -1000


def candidates(form: Instruction, rule: Rule) -> Iterator[Candidate]:
    """Yield the model's floor, others, and none; of those that no input can tell from none, none alone."""
    floor, unseen = floor_of(rule), idle_floor(form, rule)
    same = f"; so would be any up to {unseen}" if floor <= unseen else ""
    yield Candidate(
        name=f"floor {floor}", meaning=f"no term is aligned below exponent {floor}{same}", arithmetic=model
    )
    if floor <= unseen:
        others = [unseen + 1, unseen + 3]
    else:
        far = (unseen + 1, form.d.minimum_exponent - form.d.fraction_bits)  # the lowest that shows; D's own
        known = dict.fromkeys((*far, *(floor + distance for distance in _OTHERS)))
        others = [other for other in known if unseen < other != floor]
    for other in others:
        changed = computing(rule=rule.realigned(exponent_floor=other))
        yield Candidate(
            name=f"floor {other}", meaning=f"no term is aligned below exponent {other}", arithmetic=changed
        )
    if floor > unseen:
        changed = computing(rule=rule.realigned(exponent_floor=_NONE))
        meaning = (
            f"terms are aligned to the largest exponent, however small; so would be floors up to {unseen}"
        )
        yield Candidate(name="no floor", meaning=meaning, arithmetic=changed)


# --- inputs ----------------------------------------------------------------------------------------


def sets(form: Instruction, rule: Rule) -> VectorSet:
    """Small products beside larger ones where the formats have such, and the probes that all sums share."""
    (a, b, c, labels), scales = general(form, rule)
    fields = uniform_fields(form, FIRST_TWO, len(labels)) if form.sparse else None
    return vector_set(form, a, b, c, title="exponent-floor", fields=fields, labels=labels, scales=scales)


def general(
    form: Instruction, rule: Rule
) -> tuple[tuple[Array, Array, Array, list[str]], dict[str, Array] | None]:
    """Return these inputs and their labels, and the registers of their scales."""
    parts = [probes(form)]
    scales = [scales_of(form, parts[0][3])]
    if floor_of(rule) > idle_floor(form, rule):
        parts.insert(0, small_products(form, rule))
        scales.insert(0, _small_scales(form, len(parts[0][3])))
    if form.scale is None:
        return joined(parts), None
    if not form.scale.fraction_bits:
        (a, b, c), exponents = gathered_by_scales(form)
        parts.append((a, spread(form, b, 1.0), c, ["gathered"] * len(a)))
        scales.append(scale_words(form, exponents))
    names = ("scale_a", "scale_b")
    return joined(parts), {name: np.concatenate([scale[name] for scale in scales if scale]) for name in names}


def small_products(form: Instruction, rule: Rule) -> tuple[Array, Array, Array, list[str]]:
    """One large product that decides the result alone, and a small one that changes it where it is kept.

    Where results are cut, the large one is the smallest number of D and the small one is against it; where
    they are rounded it is half of that, a tie, and the small one breaks it. Row r of case i halves the small
    one 16 i + r + 1 times. Scales, where there are any, make both of them small.
    """
    smallest = form.d.minimum_exponent - form.d.fraction_bits
    nearest = form.d.name == "f16"
    large = smallest - int(nearest) - sum(_scale_exponents(form))
    cases = -(-_STEPS // form.shape.m)
    step = 1 + np.arange(cases * form.shape.m).reshape(cases, form.shape.m)
    first, second = 0, _other_block(form)
    if form.scale_chunks > 1:  # the second block's scale halves, as far as all rows go together
        return _halved_blocks(form, large, first, second)
    in_b = (large // 2, _deep(form, cases))  # exponents of B's two elements; A has the rest
    in_a = (np.full_like(step, large - in_b[0]), large - step - in_b[1][:, None])
    sign = 1.0 if nearest else -1.0
    a, b, c = (np.zeros((2 * cases, *shape)) for shape in _shapes(form))
    b[:, first], b[:, second] = np.ldexp(1.0, in_b[0]), np.ldexp(1.0, np.tile(in_b[1], 2))[:, None]
    for half, direction in ((slice(0, cases), 1.0), (slice(cases, None), -1.0)):
        a[half, :, first] = np.ldexp(direction, in_a[0])
        a[half, :, second] = np.ldexp(sign * direction, in_a[1])
    codes = [values(form.format(name), array) for name, array in zip("abc", (a, b, c), strict=True)]
    _check_exact(form, codes[0], a)
    labels = [f"{name} large product, case {i}" for name in ("positive", "negative") for i in range(cases)]
    return codes[0], spread(form, codes[1], 1.0), codes[2], labels


def _halved_blocks(
    form: Instruction, large: int, first: int, second: int
) -> tuple[Array, Array, Array, list[str]]:
    """Return the same with one case for every halving, which is the scales' doing; see _small_scales."""
    a, b, c = (np.zeros((2 * _BLOCK_STEPS, *shape)) for shape in _shapes(form))
    assert large == 0
    b[:, [first, second]] = 1.0
    a[:_BLOCK_STEPS, :, first], a[:_BLOCK_STEPS, :, second] = 1.0, -1.0
    a[_BLOCK_STEPS:] = -a[:_BLOCK_STEPS]
    codes = [values(form.format(name), array) for name, array in zip("abc", (a, b, c), strict=True)]
    labels = [
        f"{name} large product, case {i}" for name in ("positive", "negative") for i in range(_BLOCK_STEPS)
    ]
    return codes[0], spread(form, codes[1], 1.0), codes[2], labels


def _shapes(form: Instruction) -> tuple[tuple[int, ...], ...]:
    m, stored = form.matrix_shape("a")
    return (m, stored), (stored, form.shape.n), form.matrix_shape("c")


def _other_block(form: Instruction) -> int:
    """Return a stored column that has another scale than the first, or the second one."""
    return form.stored_k // form.scale_chunks if form.scale_chunks > 1 else 1


def _scale_exponents(form: Instruction) -> tuple[int, int]:
    """Return exponents of the scales of A and B beside which products of about one are as small as D's
    numbers.
    """
    if form.scale is None:
        return 0, 0
    smallest = form.d.minimum_exponent - form.d.fraction_bits
    middle = 0 if form.scale_chunks > 1 else _highest(form)
    return (smallest - middle) // 2, smallest - middle - (smallest - middle) // 2


def _highest(form: Instruction) -> int:
    """Return what the large product is beside those scales: large enough for the small one to be a normal
    number.
    """
    return 8 if form.a.exponent_bits >= 4 else 2


def _small_scales(form: Instruction, cases: int) -> dict[str, Array] | None:
    """Return those scales in every lane; of several blocks the others halve case by case."""
    if form.scale is None:
        return None
    exponents = np.full((cases, form.scale_chunks), sum(_scale_exponents(form)))
    exponents[:, 1:] -= (1 + np.arange(cases) % _BLOCK_STEPS)[:, None]
    return scale_words(form, exponents)


def scale_words(form: Instruction, exponents: Array) -> dict[str, Array]:
    """Return scales whose products have these exponents ``(cases, chunks)``, in every lane."""
    assert form.scale is not None
    words = {}
    for name, part in (("scale_a", exponents // 2), ("scale_b", exponents - exponents // 2)):
        codes = np.zeros((len(exponents), form.lanes, 4), np.uint8)
        codes[:, :, : form.scale_chunks] = (form.scale.bias + part)[:, None]
        words[name] = codes.view(np.uint32)
    return words


def _deep(form: Instruction, cases: int) -> Array:
    """Return exponents for B, case by case, that leave A one that it can have, however small the product."""
    smallest = form.b.minimum_exponent - form.b.fraction_bits
    if form.scale is None:
        return np.full(cases, max(smallest, -100))
    return np.where(np.arange(cases) == 0, 0, smallest)


def _check_exact(form: Instruction, codes: Array, wanted: Array) -> None:
    held = values_of(codes, form.a)
    assert ((held == wanted) | (held == 0)).all(), "an exponent that A does not have"


def _observed(outputs: VectorSet) -> Iterator[str]:
    form = outputs.instruction
    cases = [
        place for place, label in enumerate(outputs.labels) if label.startswith("positive large product")
    ]
    if not cases:
        return
    rows = slice(0, 1) if form.scale_chunks > 1 else slice(None)
    d = elements(form, outputs.d)[cases, rows, 0].ravel()[: _BLOCK_STEPS if form.scale_chunks > 1 else _STEPS]
    plain = int(d[-1])  # there the small product is far too small to count
    kept = [halvings for halvings, code in enumerate(d, 1) if int(code) != plain]
    yield f"the small product counts up to {max(kept, default=0)} halvings"


def _key(form: Instruction) -> object | None:
    if not form.a.is_float or form.a.bits == 64 or form.operation == "m8n8k4.f16" or form.a != form.b:
        return None
    if form.sparse and form.family.opcode == "mma" and not form.ordered:
        return None
    if form.a.bits < 8 and form.scale_chunks < 2:
        return None
    return form.family.name, form.variant, form.shape, form.operation, form.d, form.scale_chunks, form.scale


def trials(target: str) -> Iterator[Trial]:
    """Yield every shape and operation on floats, dense and sparse."""
    for form in representatives(target, _key):
        rule = rule_for(form)
        if rule.aligned is not None:
            yield Trial(
                vectors=sets(form, rule),
                candidates=tuple(candidates(form, rule)),
                observe=_observed,
                unasked=(not_seen(form, rule), *NOT_ASKED),
            )


def not_seen(form: Instruction, rule: Rule) -> str:
    """Return the floors that nobody can ask for."""
    unseen = idle_floor(form, rule)
    return f"floors up to {unseen} cannot be seen by any operands: they give the same bits as none"


NOT_ASKED = (
    "which NaN is written: nan-payload",
    "metadata that PTX leaves undefined: metadata-undefined",
    "the low bits of tf32: tf32-low-bits",
)


EXPONENT_FLOOR = Experiment(
    name="exponent-floor",
    question="how small may the exponent be to which the terms of a sum are aligned?",
    source="two models of published outputs agree on the floor since 2026, and did not before",
    answers="the floor that survives is exponent_floor of the rule in architectures.py",
    trials=trials,
)
