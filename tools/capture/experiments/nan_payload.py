"""Which NaN an instruction writes, and whether a wgmma that does not accumulate looks at D."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np

from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.products import Operands
from warpsim.isa.registers import Words
from warpsim.isa.rules import Rule
from warpsim.sums.arithmetic.planes import planes
from warpsim.workbench.vectors.sets import VectorSet

from ..candidates import Candidate, computing, model, paired, rule_compute
from ..operands import Array, random_codes, random_fields, vector_set
from .experiment import Experiment, Trial, elements, representatives

_NOT_A_NUMBER = 2


def is_nan(codes: Array, element: Format) -> Array:
    """Return which codes are NaNs."""
    nan: Array = planes(codes, element).special == _NOT_A_NUMBER
    return nan


def _exponent_mask(element: Format) -> int:
    return ((1 << element.exponent_bits) - 1) << (element.fraction_bits + element.ignored_bits)


def _quiet(element: Format) -> int:
    """Return the bit that makes a NaN a quiet one."""
    return 1 << (element.fraction_bits + element.ignored_bits - 1)


# --- one NaN for all -------------------------------------------------------------------------------


def _with_nan(operands: Operands, rule: Rule, *, nan: int) -> Array:
    codes, element = rule_compute(operands, rule), operands.product.d
    return np.where(is_nan(codes, element), element.code_dtype.type(nan), codes)


def _from_c(operands: Operands, rule: Rule) -> Array:
    """Return where C is a NaN it stays, made quiet; otherwise the model's."""
    codes, form = rule_compute(operands, rule), operands.product
    kept = operands.c | form.c.code_dtype.type(_quiet(form.c))
    return np.where(is_nan(operands.c, form.c), kept, codes).astype(codes.dtype)


def nan_patterns(element: Format) -> dict[str, int]:
    """NaNs that a chip may write wherever there is one."""
    top = _exponent_mask(element)
    return {
        "canonical": element.mask & ~element.sign_bit,
        "IEEE default": top | _quiet(element),
        "negative default": top | _quiet(element) | element.sign_bit,
        "all ones": element.mask,
    }


def _fixed(form: Instruction) -> Iterator[Candidate]:
    for name, nan in nan_patterns(form.d).items():
        arithmetic = computing(partial(_with_nan, nan=nan))
        yield Candidate(name=name, meaning=f"every NaN is {nan:#x}", arithmetic=arithmetic)
    if form.c == form.d:
        yield Candidate(name="C's", meaning="a NaN in C stays, made quiet", arithmetic=computing(_from_c))


# --- f64: a chain of fused multiply-adds -----------------------------------------------------------


def chained(operands: Operands, rule: Rule, *, order: str, invalid: int) -> Array:
    """Return each step hands on the first NaN of a, b and c in an order, made quiet; 0 * Inf gives
    ``invalid``.
    """
    form = operands.product
    codes = rule_compute(operands, rule)
    quiet = np.uint64(_quiet(form.d))
    b = paired(operands, operands.b)
    total, nan = operands.c.copy(), np.zeros(operands.c.shape, np.bool_)
    for step in range(operands.a.shape[2]):
        terms = {
            "a": np.broadcast_to(operands.a[:, :, step, None], total.shape),
            "b": b[:, :, step],
            "c": total,
        }
        with np.errstate(all="ignore"):
            value = _float(terms["a"]) * _float(terms["b"]) + _float(total)
        result = np.ascontiguousarray(value).view(np.uint64)
        is_nan = np.isnan(value)
        result = np.where(is_nan, np.uint64(invalid), result)
        for name in reversed(order):
            result = np.where(np.isnan(_float(terms[name])), terms[name] | quiet, result)
        total, nan = result, is_nan
    return np.where(nan, total, codes)


def _float(codes: Array) -> Array:
    return np.ascontiguousarray(codes).view(np.float64)


def _chains(form: Instruction) -> Iterator[Candidate]:
    yield from _fixed(form)
    patterns = nan_patterns(form.d)
    for name in ("IEEE default", "negative default", "canonical"):
        for order in map("".join, permutations("abc")):
            arithmetic = computing(partial(chained, order=order, invalid=patterns[name]))
            given = f"0 * Inf and Inf - Inf give {patterns[name]:#x}"
            meaning = f"the first NaN of {', '.join(order)} is handed on; {given}"
            yield Candidate(name=f"first of {order}, {name}", meaning=meaning, arithmetic=arithmetic)


# --- scale-d = 0 -----------------------------------------------------------------------------------


def _times_zero(instruction: Instruction, inputs: Inputs) -> Words:
    """Return D is read and multiplied by zero: what is not finite makes a NaN."""
    d = model(instruction, inputs)
    c = inputs.registers["c"]
    view, out = (np.ascontiguousarray(x).view(instruction.d.code_dtype) for x in (c, d))
    special = planes(view, instruction.c).special > 0
    codes = np.where(special, instruction.d.code_dtype.type(instruction.d.canonical_nan), out)
    return np.ascontiguousarray(codes).view(d.dtype).reshape(d.shape)


def _accumulated(instruction: Instruction, inputs: Inputs) -> Words:
    return model(instruction, replace(inputs, scale_d=True))


_UNREAD = (
    Candidate(name="not read", meaning="D before counts as zero, whatever it is", arithmetic=model),
    Candidate(name="times zero", meaning="an Inf or NaN in D before gives NaN", arithmetic=_times_zero),
    Candidate(name="accumulated", meaning="scale-d has no effect", arithmetic=_accumulated),
)


# --- inputs ----------------------------------------------------------------------------------------


def _nans(element: Format) -> list[int]:
    """Quiet, signalling and negative NaNs with payloads, those that the format has."""
    top, quiet, sign = _exponent_mask(element), _quiet(element), element.sign_bit
    last = 1 << element.ignored_bits
    every = (
        top | quiet,
        top | last,
        top | quiet | last,
        sign | top | quiet | 3 * last,
        sign | top | last,
        element.mask,
    )
    kept = [code & element.mask for code in every]
    found = [code for code in kept if is_nan(np.array([code], element.code_dtype), element)[0]]
    return list(dict.fromkeys(found))


def _infinity(element: Format) -> int | None:
    code = np.array([_exponent_mask(element)], element.code_dtype)
    return int(code[0]) if planes(code, element).special[0] == 1 else None


def _codes(form: Instruction) -> tuple[list[Array], list[str]]:
    """Ordinary numbers with NaNs and Infs at some places, one sort a case."""
    rng = np.random.default_rng(64)
    sorts = [
        "NaN in A",
        "NaN in B",
        "NaN in C",
        "NaN in A, B and C",
        "NaN twice in A",
        "Inf times zero",
        "Inf minus Inf",
    ]
    shapes = [(len(sorts), *form.matrix_shape(name)) for name in "abc"]
    a, b, c = (
        random_codes(rng, form.format(x), shape, -3, 3) for x, shape in zip("abc", shapes, strict=True)
    )
    m, stored, n = form.shape.m, form.stored_k, form.shape.n
    row, column = np.arange(m), np.arange(n)
    nans = [np.array(_nans(form.format(name)), form.format(name).code_dtype) for name in "abc"]
    for case in (0, 3, 4):
        a[case, row, row % stored] = np.resize(nans[0], m)
    a[4, row, (row + 1) % stored] = np.resize(nans[0][::-1], m)
    for case in (1, 3):
        b[case, column % form.shape.k, column] = np.resize(np.roll(nans[1], 1), n)
    for case in (2, 3):
        c[case] = np.resize(nans[2], (m, n))
        c[case, 1::4] = 0  # rows in which the other operands decide
    infinities = [_infinity(form.format(name)) for name in "abc"]
    if infinities[0] is not None:
        a[5, row, row % stored], b[5] = infinities[0], 0
        a[6, row, row % stored] = infinities[0]
        b[6] = b[6] & ~b.dtype.type(form.b.sign_bit)
    if infinities[2] is not None:
        c[6] = infinities[2] | form.c.sign_bit
    return [a, b, c], sorts


def _sets(form: Instruction) -> VectorSet:
    codes, labels = _codes(form)
    fields = None
    if form.sparse:
        fields = random_fields(np.random.default_rng(6), form, len(labels))
    return vector_set(form, *codes, title="nan-payload", fields=fields, labels=labels, seed=64)


def _unread(form: Instruction) -> VectorSet:
    codes, _ = _codes(form)
    codes = [codes[0][2:4].copy(), codes[1][2:4].copy(), codes[2][2:4]]
    codes[0][1], codes[1][1] = codes[0][0], codes[1][0]  # NaN in C only
    codes[2] = np.concatenate([codes[2][:1], np.full_like(codes[2][:1], _infinity(form.c) or 0)])
    fields = random_fields(np.random.default_rng(6), form, 2) if form.sparse else None
    return vector_set(
        form, *codes,
        title="nan-payload scale-d 0", fields=fields, labels=["NaN in D before", "Inf in D before"],
        immediates={"scale_d": 0}, seed=64,
    )  # fmt: skip


def _observed(outputs: VectorSet) -> Iterator[str]:
    form = outputs.instruction
    d = elements(form, outputs.d)
    for label, codes in zip(outputs.labels, d, strict=True):
        patterns, counts = np.unique(codes[is_nan(codes, form.d)], return_counts=True)
        pairs = [f"{int(code):#x} ({count})" for code, count in zip(patterns[:6], counts[:6], strict=True)]
        yield f"{label}: {', '.join(pairs) or 'no NaN'}{' ...' if len(patterns) > 6 else ''}"


def _key(form: Instruction) -> object | None:
    if not form.a.is_float or form.scale or form.a.exponent_bits < 4 or form.a != form.b or form.rounding:
        return None
    if form.family.opcode == "mma" and form.sparse and not form.ordered:
        return None
    shape = form.shape if form.a.bits == 64 else None
    return form.family.name, form.operation, form.d, shape


def trials(target: str) -> Iterator[Trial]:
    """One for each operation and result on floats, every shape of f64, and wgmma without accumulation."""
    for form in representatives(target, _key):
        find: Callable[[Instruction], Iterator[Candidate]] = _chains if form.a.bits == 64 else _fixed
        yield Trial(vectors=_sets(form), candidates=tuple(find(form)), observe=_observed)
        if form.family.opcode == "wgmma":
            yield Trial(vectors=_unread(form), candidates=_UNREAD, observe=_observed)


NAN_PAYLOAD = Experiment(
    name="nan-payload",
    question="which NaN is written; does f64 hand on payloads; is D read where scale-d is 0?",
    source="PTX does not say; models of published outputs excuse f64",
    answers="'canonical' and 'not read' confirm the model; for f64 any survivor settles kernels/binary64.py",
    trials=trials,
)
