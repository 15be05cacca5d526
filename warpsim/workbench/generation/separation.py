"""Short inputs on which two models differ: two targets, or a target and a rule with other numbers.

Corner cases directed at both rules are executed by both; each output that differs is then reduced, one
operand at a time: products and C that do not matter become zero, significands powers of two, exponents
small. What is left is short, but not proved to be the shortest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...isa.formats import Format
from ...isa.fragments import registers_of
from ...isa.instruction import Instruction
from ...isa.products import Operands
from ...isa.rules import Rule
from ...ptx.decode import Form, resolved
from ...ptx.qualifiers import on_target
from ...sums.arithmetic.numerics import compute
from ...sums.execution.pipeline import rule_for
from ..vectors.sets import VectorSet, make_vectors
from .cases.assembly import joined_arguments
from .cases.corners import themes_of
from .cases.drafts import Draft
from .cases.placement import Place, arguments_of
from .coverage.vector_coverage import gathered
from .sums.exact_numbers import Array, decode
from .sums.factors import broadcast_factors
from .sums.limits import Limits

_ROUNDS = 24  # of all themes of both models, at most
_KEPT = 512  # differing outputs that are reduced


@dataclass(frozen=True, kw_only=True)
class Model:
    """An instruction on a target, and the rule to compute it by."""

    name: str
    instruction: Instruction
    rule: Rule


def model_of(instruction: Instruction, name: str) -> Model:
    """Return the model ``TARGET`` or ``TARGET:parameter=value,...``; raises OperandError, IllegalInstruction.

    Parameters are the whole numbers of the target's rule: length, fraction_bits, exponent_floor, group.
    """
    target, _, changes = name.partition(":")
    form = on_target(replace(instruction, target=None), target)
    return Model(name=name, instruction=form, rule=changed_rule(rule_for(form), changes, name))


_RANGES = {  # of a rule's numbers, within which its kernel computes exactly
    "length": range(1, 65),
    "fraction_bits": range(49),
    "exponent_floor": range(-1000, 1001),
    "group": range(1, 65),
}


def changed_rule(rule: Rule, changes: str, name: str, others: Sequence[str] = ()) -> Rule:
    """Return a rule with other whole numbers; an error names the model, and ``others`` that it may have.

    Raises OperandError.
    """
    if not changes:
        return rule
    step: Any = rule.aligned or rule
    legal = [field.name for field in fields(step) if isinstance(getattr(step, field.name), int)]
    values: dict[str, int] = {}
    for change in changes.split(","):
        key, _, value = change.partition("=")
        if key not in legal or not value.removeprefix("-").isdecimal():
            known = ", ".join([*legal, *others]) or "none"
            raise OperandError(
                f"model {name!r}: {change!r} is not a PARAMETER=NUMBER; parameters are {known}"
            )
        values[key] = _number(name, key, value)
    return rule.realigned(**values)


def _number(name: str, key: str, value: str) -> int:
    legal = _RANGES[key]
    if len(value) > 6 or int(value) not in legal:
        raise OperandError(f"model {name!r}: {key} is {legal.start} to {legal.stop - 1}, not {value[:20]}")
    return int(value)


@dataclass(frozen=True, kw_only=True)
class Separation:
    """Cases on which two models differ, smallest first; D is that of the first model.

    ``first`` and ``second`` are the codes that they give D[0, 0], ``terms`` what it is made of: C, and the
    products that are not zero, as (k, code of A, code of B).
    """

    models: tuple[Model, Model]
    vectors: VectorSet
    first: Array
    second: Array
    terms: tuple[tuple[int, tuple[tuple[int, int, int], ...]], ...]


@in_default_environment
def separate(
    instruction: Form,
    first: str,
    second: str,
    *,
    count: int = 8,
    seed: int = 0,
    a_in: Place = "shared",
) -> Separation | None:
    """Return the shortest inputs found on which two models of an instruction differ; None where nothing
    differs.

    Models are targets, or targets with other numbers: ``"sm_80"``, ``"sm_90:fraction_bits=24,length=8"``.
    ``count`` is how many cases at most, and wgmma reads A from ``a_in`` "shared" memory or "registers".
    Raises OperandError, IllegalInstruction where a target has no such form, PtxError.
    """
    if count < 1:
        raise OperandError(f"count is {count}: a vector set has at least one case")
    form = resolved(instruction)
    models = model_of(form, first), model_of(form, second)
    dots = _differing(models, seed)
    if dots is None:
        return None
    dots = _reduced(models, dots)
    order = np.argsort(_weight(dots), kind="stable")
    dots = _distinct(_take(dots, order), count)
    return _separation(models, dots, seed, a_in)


# --- dots that differ ------------------------------------------------------------------------------
#
# A dot is one output with operands of its own: an Operands of 1 x 1 matrices.


def _results(models: tuple[Model, Model], dots: Operands) -> tuple[Array, Array]:
    codes = [compute(dots, model.rule) for model in models]
    return codes[0][:, 0, 0], codes[1][:, 0, 0]


def _differ(models: tuple[Model, Model], dots: Operands) -> Array:
    first, second = _results(models, dots)
    return first != second


def _differing(models: tuple[Model, Model], seed: int) -> Operands | None:
    """Return outputs of corner cases of both models that they compute differently, at most some hundred."""
    found: list[Operands] = []
    for index in range(_ROUNDS):
        for number, model in enumerate(models):
            limits = Limits(instruction=model.instruction, rule=model.rule)
            for place, theme in enumerate(themes_of(model.instruction, "corner")):
                key = (index, number, place)
                rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
                draft = theme(limits, 2 * model.instruction.products, rng)
                found += _dots_of(models, draft)
        if sum(len(dots.c) for dots in found) >= _KEPT or (found and index > 1):
            break
    if not found:
        return None
    return _take(_concatenate(found), slice(0, _KEPT))


def _dots_of(models: tuple[Model, Model], draft: Draft) -> Iterator[Operands]:
    operands = Operands(
        product=models[0].instruction.product,
        a=draft.a,
        b=draft.b[:, : draft.k],  # of a free sparse draft the first rows
        c=draft.c,
        scale_a=draft.scale_a,
        scale_b=draft.scale_b,
    )
    codes = [compute(operands, model.rule) for model in models]
    tile, row, column = np.nonzero(codes[0] != codes[1])
    if len(tile):
        yield _at(operands, tile[:64], row[:64], column[:64])


def _at(operands: Operands, tile: Array, row: Array, column: Array) -> Operands:
    """Return the outputs at these places, each as matrices of its own; B is cut down to what A meets."""
    b = broadcast_factors(operands.b, operands, "b")[tile, row, column]
    scales: dict[str, Any] = {}
    if operands.scale_a is not None and operands.scale_b is not None:
        scales = {
            "scale_a": operands.scale_a[tile, row][:, None],
            "scale_b": operands.scale_b[tile, :, column][..., None],
        }
    return Operands(
        product=operands.product,
        a=operands.a[tile, row][:, None],
        b=b[..., None],
        c=operands.c[tile, row, column][:, None, None],
        **scales,
    )


_ARRAYS = ("a", "b", "c", "scale_a", "scale_b")


def _take(dots: Operands, index: Any) -> Operands:
    arrays: dict[str, Any] = {
        name: None if getattr(dots, name) is None else getattr(dots, name)[index] for name in _ARRAYS
    }
    return replace(dots, **arrays)


def _concatenate(parts: Sequence[Operands]) -> Operands:
    arrays: dict[str, Any] = {
        name: None if getattr(parts[0], name) is None else np.concatenate([getattr(x, name) for x in parts])
        for name in _ARRAYS
    }
    return replace(parts[0], **arrays)


# --- reducing --------------------------------------------------------------------------------------


def _reduced(models: tuple[Model, Model], dots: Operands) -> Operands:
    """Return every dot as simple as it gets by itself while the models differ on it."""
    for _ in range(3):
        for simplify in _simplifications(dots):
            candidate = simplify(dots)
            better = _differ(models, candidate)
            dots = _chosen(better, candidate, dots)
    return dots


def _chosen(better: Array, candidate: Operands, dots: Operands) -> Operands:
    def pick(name: str) -> Array | None:
        new, old = getattr(candidate, name), getattr(dots, name)
        return None if old is None else np.where(better[:, None, None], new, old)

    arrays: dict[str, Any] = {name: pick(name) for name in _ARRAYS}
    return replace(dots, **arrays)


def _simplifications(dots: Operands) -> Iterator[Callable[[Operands], Operands]]:
    """Yield steps towards simplicity, the largest first."""
    form = dots.product
    stored = dots.a.shape[2]
    for place in range(stored):
        yield lambda x, at=place: _with_product(x, at, 0, 0)  # type: ignore[misc]
    yield lambda x: replace(x, c=np.zeros_like(x.c))
    for side in "abc":
        yield lambda x, name=side: replace(x, **{name: _simple(getattr(x, name), form.format(name))})  # type: ignore[misc]
    for place in range(stored):
        yield lambda x, at=place: _plain_product(x, at)  # type: ignore[misc]
    yield lambda x: replace(x, c=_simple(x.c, form.c))


def _with_product(dots: Operands, place: int, a: Any, b: Any) -> Operands:
    left, right = dots.a.copy(), dots.b.copy()
    left[:, 0, place], right[:, place, 0] = a, b
    return replace(dots, a=left, b=right)


def _plain_product(dots: Operands, place: int) -> Operands:
    form = dots.product
    a, b = _simple(dots.a[:, 0, place], form.a), _simple(dots.b[:, place, 0], form.b)
    return _with_product(dots, place, a, b)


def _simple(codes: Array, element: Format) -> Array:
    """Return powers of two of the same exponents and signs; integers become 1 or -1."""
    if not element.is_float:
        number = decode(codes, element).significand
        return (np.sign(number) & element.mask).astype(element.code_dtype)
    low = element.ignored_bits + element.fraction_bits
    field = codes & element.code_dtype.type(((1 << element.exponent_bits) - 1) << low)
    sign = codes & element.code_dtype.type(element.sign_bit)
    special = decode(codes, element).special != 0
    return np.where((field != 0) & ~special, field | sign, codes)


def _weight(dots: Operands) -> Array:
    """Return the length of a dot: terms that are not zero, then set bits of significands."""
    form = dots.product
    a, b, c = decode(dots.a[:, 0], form.a), decode(dots.b[..., 0], form.b), decode(dots.c[:, 0, 0], form.c)
    products = (a.significand != 0) & (b.significand != 0)
    special = ((a.special | b.special) != 0).any(-1) | (c.special != 0)
    bits = np.bitwise_count(np.abs(a.significand)).sum(-1) + np.bitwise_count(np.abs(b.significand)).sum(-1)
    bits = bits.astype(np.int64) + np.bitwise_count(np.abs(c.significand))
    distance = np.abs(np.where(a.significand != 0, a.exponent, 0)).sum(-1) + np.abs(
        np.where(b.significand != 0, b.exponent, 0)
    ).sum(-1)
    terms = products.sum(-1) + (c.significand != 0)
    return terms * 1_000_000 + special * 500_000 + np.minimum(bits, 99) * 4000 + np.minimum(distance, 3999)


def _distinct(dots: Operands, count: int) -> Operands:
    """Return the first dots that are not alike."""
    seen: set[bytes] = set()
    kept: list[int] = []
    for index in range(len(dots.c)):
        key = np.sort(_products_of(dots, index)).tobytes() + dots.c[index].tobytes()
        if key not in seen and len(kept) < count:
            seen.add(key)
            kept.append(index)
    return _take(dots, np.array(kept))


def _products_of(dots: Operands, index: int) -> Array:
    return (dots.a[index, 0].astype(np.uint64) << np.uint64(32)) ^ dots.b[index, :, 0].astype(np.uint64)


# --- the result ------------------------------------------------------------------------------------


def _separation(models: tuple[Model, Model], dots: Operands, seed: int, a_in: Place) -> Separation:
    instruction, count = models[0].instruction, len(dots.c)
    rng = np.random.default_rng(seed)
    parts = []
    for index in range(count):
        draft = Draft(
            Limits(instruction=instruction, rule=models[0].rule), instruction.products, rng, shift=0
        )
        draft.plain = True
        for name in _ARRAYS:
            if getattr(dots, name) is not None:
                _put(draft, name, getattr(dots, name)[index])
        parts.append(arguments_of(instruction, draft, rng, a_in))
    first, second = _results(models, dots)
    title = f"separate {models[0].name} {models[1].name}"
    vectors = make_vectors(instruction, title=title, seed=seed, **joined_arguments(parts))
    if models[0].rule != rule_for(instruction):
        vectors = _with_results(vectors, models[0])
    return Separation(models=models, vectors=vectors, first=first, second=second, terms=tuple(_terms(dots)))


def _with_results(vectors: VectorSet, model: Model) -> VectorSet:
    """Return the set with D as a changed rule computes it."""
    d = np.empty_like(vectors.d)
    for part in vectors.inputs():
        operands = gathered(vectors.instruction, part)
        codes = compute(operands, model.rule)
        products = vectors.instruction.products
        if products > 1:
            codes = codes.reshape(-1, products, *codes.shape[1:])
        d[part.cases] = registers_of(codes, vectors.instruction, "d")
    return replace(vectors, d=d, provenance={**vectors.provenance, "rule": model.name})


def _put(draft: Draft, name: str, values: Array) -> None:
    """Set row 0 of A, column 0 of B, element 0, 0 of C; zeros elsewhere, all scales alike."""
    array = getattr(draft, name)
    if name.startswith("scale"):
        array[:] = values
        return
    array[:] = 0
    rows, columns = values.shape
    array[0, :rows, :columns] = values


def _terms(dots: Operands) -> Iterator[tuple[int, tuple[tuple[int, int, int], ...]]]:
    for index in range(len(dots.c)):
        a, b = dots.a[index, 0].tolist(), dots.b[index, :, 0].tolist()
        products = tuple((k, x, y) for k, (x, y) in enumerate(zip(a, b, strict=True)) if x or y)
        yield int(dots.c[index, 0, 0]), products
