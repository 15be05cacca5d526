"""How a sparse instruction groups its products into fused sums: NUMERICS candidates C1 to C6."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from warpsim.isa.instruction import Instruction
from warpsim.isa.rules import EmulatedF8, FusedSum, Rule, ScaledGroups
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.vectors.sets import VectorSet

from ..candidates import Candidate, computing, model, reordered
from ..floors import idle_floor
from ..operands import Array, random_codes, random_fields, uniform_fields, values, vector_set
from ..probes import FIRST_TWO, spread
from .experiment import Experiment, Trial, elements, representatives
from .exponent_floor import NOT_ASKED, general, not_seen
from .fp8_sync import emulations

_FIRST_TWO = FIRST_TWO
_FIRST_HALVING, _HALVINGS = 12, 18  # of the product that precision depends on
_LARGE, _SMALL = 7, -7  # exponents of factors: products of 2^14, beside which 2^-14 is cut off


# --- candidates ------------------------------------------------------------------------------------


def fused_candidates(form: Instruction, rule: FusedSum) -> Iterator[Candidate]:
    """Yield the dense rule, other lengths and orders of its groups, and other fraction bits."""
    stored = form.stored_k
    length = min(rule.length, stored)
    yield Candidate(
        name="dense", meaning=f"as the dense rule: groups of {length} stored columns", arithmetic=model
    )
    for other in sorted({stored, 2 * length, length // 2, length // 4} - {length, 0}):
        if other <= stored:
            changed = computing(rule=replace(rule, length=other))
            yield Candidate(
                name=f"groups of {other}", meaning=f"groups of {other} stored columns", arithmetic=changed
            )
    place = np.arange(stored)
    if length < stored:
        backward = computing(rule=replace(rule, length=length), change=reordered(place[::-1]))
        yield Candidate(name="reversed", meaning="the dense groups, the last one first", arithmetic=backward)
    for name, key, meaning in (
        ("even-odd", place % 2, "the first of every pair, then the second"),
        ("chunk pairs", place % 4 // 2, "the pairs of even chunks, then those of odd ones"),
    ):
        order = np.argsort(key, kind="stable")
        changed = computing(rule=replace(rule, length=max(stored // 2, 1)), change=reordered(order))
        yield Candidate(name=name, meaning=meaning, arithmetic=changed)
    yield from _numbers(form, rule)


def _numbers(form: Instruction, rule: FusedSum | ScaledGroups) -> Iterator[Candidate]:
    """Yield the dense groups with other fraction bits, and other floors where an input can tell them
    apart.
    """
    for bits in (rule.fraction_bits - 1, rule.fraction_bits + 1):
        changed = computing(rule=replace(rule, fraction_bits=bits))
        meaning = f"the dense groups with {bits} fraction bits"
        yield Candidate(name=f"F={bits}", meaning=meaning, arithmetic=changed)
    unseen = idle_floor(form, rule)
    floors = (rule.exponent_floor - 1, rule.exponent_floor + 1, rule.exponent_floor + 4)
    for floor in floors if rule.exponent_floor > unseen else (unseen + 1,):
        changed = computing(rule=replace(rule, exponent_floor=floor))
        meaning = f"the dense groups, no term being aligned below exponent {floor}"
        yield Candidate(name=f"floor {floor}", meaning=meaning, arithmetic=changed)


def scaled_candidates(form: Instruction, rule: ScaledGroups) -> Iterator[Candidate]:
    """Yield groups that are summed exactly, of other lengths, and other fraction bits."""
    chunk = form.stored_k // form.scale_chunks
    yield Candidate(name="dense", meaning=f"groups of {rule.group} stored columns", arithmetic=model)
    for group in (rule.group // 2, 2 * rule.group):
        if group <= chunk:
            changed = computing(rule=replace(rule, group=group))
            yield Candidate(
                name=f"groups of {group}", meaning=f"groups of {group} stored columns", arithmetic=changed
            )
    yield from _numbers(form, rule)


CANDIDATES: dict[type[Rule], Callable[[Instruction, Any], Iterable[Candidate]]] = {
    FusedSum: fused_candidates,
    EmulatedF8: lambda form, rule: emulations(form),
    ScaledGroups: scaled_candidates,
}


def candidates(form: Instruction) -> tuple[Candidate, ...]:
    """Return those of the form's rule."""
    rule = rule_for(form)
    return tuple(CANDIDATES[type(rule)](form, rule))


# --- inputs ----------------------------------------------------------------------------------------


def structure(form: Instruction) -> tuple[Array, Array, Array, list[str]]:
    """For every two of the products and C: these two are large and cancel, all others are small.

    The small ones that D holds were added after both had met. Pair q stands in row and column q % 8 of case
    q // 8, so that the other outputs of a case mix pairs. After Xie et al., FPRev, arXiv 2411.00442.
    """
    stored, (m, n) = form.stored_k, (form.shape.m, form.shape.n)
    pairs = list(combinations(range(-1, stored), 2))  # -1 is C
    cases = -(-len(pairs) // 8)
    small = [max(_SMALL, element.minimum_exponent) for element in (form.a, form.b)]
    a, b = np.full((cases, m, stored), 2.0 ** small[0]), np.full((cases, stored, n), 2.0 ** small[1])
    c = np.full((cases, m, n), 2.0 ** sum(small))
    labels = list[str]()
    for case in range(cases):
        mine = pairs[8 * case : 8 * case + 8]
        for q, (i, j) in enumerate(mine):
            if i < 0:
                c[case, q, q] = 2.0 ** (2 * _LARGE)
            else:
                a[case, q, i] = b[case, i, q] = 2.0**_LARGE
            a[case, q, j], b[case, j, q] = -(2.0**_LARGE), 2.0**_LARGE
        labels.append("structure " + " ".join(f"{'c' if i < 0 else i}-{j}" for i, j in mine))
    return values(form.a, a), spread(form, values(form.b, b), 2.0**_LARGE), values(form.c, c), labels


def precision(form: Instruction) -> tuple[Array, Array, Array, list[str]]:
    """Return two large products cancel, and a third, halved once more in every row, is D where it is not
    cut off.
    """
    m, stored = form.matrix_shape("a")
    cases = -(-_HALVINGS // m)
    small = max(_SMALL, form.b.minimum_exponent)
    exponent = 2 * _LARGE - _FIRST_HALVING - np.arange(cases * m).reshape(cases, m) - small
    a, b = np.zeros((cases, m, stored)), np.zeros((cases, stored, form.shape.n))
    a[..., 0], a[..., 1], a[..., 2] = 2.0**_LARGE, -(2.0**_LARGE), 2.0**exponent
    b[:, :2], b[:, 2] = 2.0**_LARGE, 2.0**small
    c = np.zeros((cases, *form.matrix_shape("c")), form.c.code_dtype)
    return values(form.a, a), spread(form, values(form.b, b), 2.0**_LARGE), c, ["precision"] * cases


def sets(form: Instruction) -> VectorSet:
    """Structure cases where the formats reach far enough, and random ones."""
    rng = np.random.default_rng(9)
    count = 32 if form.shape.m == 16 else 8
    reach = (-5, 3) if form.a.bits > 4 else (0, 2)
    a = random_codes(rng, form.a, (count, *form.matrix_shape("a")), *reach)
    b = random_codes(rng, form.b, (count, *form.matrix_shape("b")), *reach)
    c = random_codes(rng, form.c, (count, *form.matrix_shape("c")), -3, 5)
    fields, labels = random_fields(rng, form, count), ["random"] * count
    if form.scale_chunks > 1:
        _cancelled(form, a, b)
        fields, c = uniform_fields(form, _FIRST_TWO, count), np.zeros_like(c)
    if form.a.exponent_bits >= 4 and form.b.exponent_bits >= 4 and form.scale is None:
        for *codes, names in (precision(form), structure(form)):
            a, b, c = (np.concatenate(pair) for pair in zip(codes, (a, b, c), strict=True))
            fields = np.concatenate([uniform_fields(form, _FIRST_TWO, len(names)), fields])
            labels = names + labels
    scales = _scales(form, rng, len(a))
    (*rest, more), extra = general(form, rule_for(form))
    a, b, c = (np.concatenate(pair) for pair in zip((a, b, c), rest, strict=True))
    fields = np.concatenate([fields, uniform_fields(form, _FIRST_TWO, len(more))])
    if scales is not None and extra is not None:
        scales = {name: np.concatenate([words, extra[name]]) for name, words in scales.items()}
    return vector_set(
        form, a, b, c, title="sparse-grouping", fields=fields, labels=labels + more, seed=9, scales=scales
    )  # fmt: skip


def _scales(form: Instruction, rng: np.random.Generator, cases: int) -> dict[str, Array] | None:
    """One scale near one; where there are several, the first is large and the others so much smaller that
    their groups end about where bits are cut off."""
    if form.scale is None:
        return None
    one, step = form.scale.bias << form.scale.fraction_bits, 1 << form.scale.fraction_bits
    shape = (cases, 32, 4)
    if form.scale_chunks == 1:
        return {f"scale_{x}": _words(rng.integers(one - 2, one + 2, shape)) for x in "ab"}
    small = rng.integers(one - 14, one - 8, shape) if step == 1 else rng.integers(1, 2 * step, shape)
    small[..., 0] = one + 8 * step
    return {f"scale_{side}": _words(small) for side in "ab"}


def _words(codes: Array) -> Array:
    return np.ascontiguousarray(codes.astype(np.uint8)).view(np.uint32)


def _cancelled(form: Instruction, a: Array, b: Array) -> None:
    """Make the products of the first scale cancel, so that D shows what the others leave."""
    stored, logical = form.stored_k // form.scale_chunks, form.shape.k // form.scale_chunks
    half = stored // 2
    a[:, :, half:stored] = a[:, :, :half] ^ a.dtype.type(form.a.sign_bit)
    b[:, logical // 2 : logical] = b[:, : logical // 2]


def observed(form: Instruction, outputs: VectorSet) -> Iterable[str]:
    """Yield how many small summands C's partner outlived, one number for every stored column it cancelled
    with.
    """
    places = [
        (case, q, word)
        for case, label in enumerate(outputs.labels)
        if label.startswith("structure ")
        for q, word in enumerate(label.split()[1:])
    ]
    if not places:
        return
    unit = float(2.0 ** sum(max(_SMALL, element.minimum_exponent) for element in (form.a, form.b)))
    d = elements(form, outputs.d).view(form.d.dtype).astype(np.float64)
    counts = [f"{d[case, q, q] / unit:g}" for case, q, word in places if word.startswith("c-")]
    yield f"summands added after C has met stored column 0, 1, ...: {' '.join(counts)}"


def _key(form: Instruction) -> object | None:
    if not form.sparse or not form.a.is_float or form.a != form.b:
        return None
    if form.family.opcode == "mma" and not form.ordered:
        return None
    return form.family.name, form.shape, form.operation, form.d, form.scale_chunks, form.scale


def trials(target: str) -> Iterator[Trial]:
    """One for each sparse shape and operation on floats."""
    for form in representatives(target, _key):
        yield Trial(
            vectors=sets(form),
            candidates=candidates(form),
            observe=partial(observed, form),
            unasked=(not_seen(form, rule_for(form)), *NOT_ASKED),
        )


SPARSE_GROUPING = Experiment(
    name="sparse-grouping",
    question="which products of a sparse instruction are summed together, and in which order?",
    source="PTX leaves the order open, and nobody has published outputs of sparse instructions",
    answers="'dense' confirms the model: sparse sums follow the dense rule over stored columns",
    trials=trials,
)
