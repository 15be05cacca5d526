"""What sparse metadata does that PTX leaves undefined: equal or descending indices, other 1:2 fields.

Every one of the 16 fields is tried in all places of the metadata at once. A holds 1 in the first stored unit
of one chunk in each row and 16 in the second, and the rows of B that belong to a chunk hold 1, 2, 4 and 8, so
that each output spells which rows of B were multiplied by which unit of A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from warpsim.isa.fragments import legal_fields, read_fields, registers_of
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.products import Operands
from warpsim.isa.registers import Words
from warpsim.isa.rules import Rule
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.vectors.sets import VectorSet

from ..candidates import Candidate, computing, gathered, model, rule_compute
from ..operands import Array, uniform_fields, values, vector_set
from .experiment import Experiment, Trial, elements, representatives

_WEIGHTS = (1.0, 16.0)  # of the units in a chunk of A
_DIFFERENT_HALVES = (0x3F82_2000, 0x4084_8000)  # of tf32 numbers

Pair = tuple[int | None, int | None]  # the rows of a chunk that both units multiply; None: nothing


# --- candidates for two indices --------------------------------------------------------------------


def _literal(first: int, second: int) -> Pair:
    return first, second


def _sorted(first: int, second: int) -> Pair:
    return min(first, second), max(first, second)


def _once(first: int, second: int) -> Pair:
    return first, None if second == first else second


def _next(first: int, second: int) -> Pair:
    return first, (first + 1) % 4 if second == first else second


def _narrow(first: int, second: int) -> Pair:
    """Three-way selectors: the first unit never needs row 3, the second never row 0."""
    return first if first < 3 else None, second if second > 0 else None


def _clamped(first: int, second: int) -> Pair:
    return min(first, 2), max(second, 1)


def _or(first: int, second: int) -> Pair:
    """Return the second index cannot be below the first: it is the larger of both."""
    return first, max(first, second)


PAIRS: tuple[tuple[str, str, Callable[[int, int], Pair]], ...] = (
    ("literal", "each unit multiplies the row that its own index names", _literal),
    ("sorted", "the indices are sorted, the values of A stay where they are", _sorted),
    ("equal once", "of two equal indices the second multiplies nothing", _once),
    ("equal next", "of two equal indices the second names the next row", _next),
    ("three ways", "the first unit reaches rows 0 to 2 and the second 1 to 3, others give nothing", _narrow),
    (
        "three ways, clamped",
        "the first unit reaches rows 0 to 2 and the second 1 to 3, others the nearest",
        _clamped,
    ),
    ("second not below", "the second index is at least the first", _or),
)


def selecting(rule_of_pair: Callable[[int, int], Pair]) -> Callable[[Operands, Rule], Array]:
    """Other columns of A's stored units, or none."""
    table = [rule_of_pair(field & 3, field >> 2) for field in range(16)]
    chosen = np.array([[0 if x is None else x for x in pair] for pair in table])
    dropped = np.array([[x is None for x in pair] for pair in table])

    def compute(operands: Operands, rule: Rule) -> Array:
        pattern = operands.product.pattern
        assert pattern is not None
        assert operands.columns is not None
        units = operands.columns[..., :: pattern.unit]
        index = (units % pattern.chunk // pattern.unit).reshape(*units.shape[:-1], -1, 2)
        field = index[..., 0] | index[..., 1] << 2
        chunk = np.arange(field.shape[-1])[:, None, None] * pattern.chunk
        element = np.arange(pattern.unit)
        columns = chunk + (chosen[field] * pattern.unit)[..., None] + element
        nothing = np.broadcast_to(dropped[field][..., None], columns.shape).reshape(operands.a.shape)
        a = np.where(nothing, operands.a.dtype.type(0), operands.a)
        return rule_compute(replace(operands, a=a, columns=columns.reshape(operands.a.shape)), rule)

    return compute


# --- candidates for one of two ---------------------------------------------------------------------


def _by_halves(instruction: Instruction, inputs: Inputs) -> Words:
    """Return a tf32 number of B is two halves of 16 bits, and each of both indices chooses one."""
    operands, batch = gathered(instruction, inputs)
    chunks = instruction.stored_k
    fields = read_fields(instruction, inputs.registers["e"], inputs.selector).reshape(
        -1, instruction.shape.m, chunks
    )
    halves = np.ascontiguousarray(operands.b.swapaxes(1, 2)).view(np.uint16)  # (batch, n, 2 k)
    halves = halves.reshape(*halves.shape[:2], chunks, 4).swapaxes(1, 2)  # (batch, chunks, n, 4)
    uniform = fields[:, 0]  # the trial has the same fields in all rows
    b = np.zeros_like(operands.b)
    for place, shift in ((0, 0), (1, 16)):
        index = (uniform >> 2 * place & 3).astype(np.intp)[:, :, None, None]
        b[:, ::2] |= np.take_along_axis(halves, index, axis=3)[..., 0].astype(np.uint32) << np.uint32(shift)
    columns = np.broadcast_to(2 * np.arange(chunks), operands.a.shape)
    codes = rule_compute(replace(operands, b=b, columns=np.ascontiguousarray(columns)), rule_for(instruction))
    return registers_of(codes.reshape(*batch, *instruction.matrix_shape("d")), instruction, "d")


def _from_bit(bit: int, instruction: Instruction, inputs: Inputs) -> Words:
    """One bit of the field chooses the number."""
    fields = read_fields(instruction, inputs.registers["e"], inputs.selector)
    operands, batch = gathered(instruction, inputs)
    chosen = (fields.astype(np.intp) >> bit & 1).reshape(operands.a.shape)
    columns = 2 * np.arange(operands.a.shape[2]) + chosen
    codes = rule_compute(replace(operands, columns=columns), rule_for(instruction))
    return registers_of(codes.reshape(*batch, *instruction.matrix_shape("d")), instruction, "d")


_ONES = (
    Candidate(name="literal", meaning="bit 1 of the field chooses", arithmetic=model),
    Candidate(name="bit 3", meaning="bit 3 of the field chooses", arithmetic=partial(_from_bit, 3)),
    Candidate(name="bit 0", meaning="bit 0 of the field chooses", arithmetic=partial(_from_bit, 0)),
    Candidate(name="halves", meaning="each index chooses one half of a number", arithmetic=_by_halves),
)


def candidates(form: Instruction) -> Iterator[Candidate]:
    """Yield those of the form's pattern."""
    assert form.pattern is not None
    if form.pattern.kept == 1:
        yield from _ONES
        return
    for name, meaning, pair in PAIRS:
        arithmetic = model if pair is _literal else computing(selecting(pair))
        yield Candidate(name=name, meaning=meaning, arithmetic=arithmetic)


# --- inputs ----------------------------------------------------------------------------------------


def _sets(form: Instruction) -> VectorSet:
    assert form.pattern is not None
    pattern, cases = form.pattern, 16
    m, stored = form.matrix_shape("a")
    chunks = form.shape.k // pattern.chunk
    a = np.zeros((cases, m, chunks, pattern.kept, pattern.unit))
    row = np.arange(m)
    for unit in range(pattern.kept):
        a[:, row, row % chunks, unit, 0] = _WEIGHTS[unit]
    b = np.zeros((cases, chunks, pattern.choices, pattern.unit, form.shape.n))
    b[:, :, :, 0] = (2.0 ** np.arange(pattern.choices))[:, None]
    codes = [
        _coded(form, "a", a.reshape(cases, m, stored)),
        _coded(form, "b", b.reshape(cases, form.shape.k, -1)),
    ]
    if pattern.kept == 1:  # tf32: every half of both numbers is different
        column = np.resize(np.array(_DIFFERENT_HALVES, np.uint32), form.shape.k)
        codes[1] = np.broadcast_to(column[:, None], codes[1].shape).copy()
    c = np.zeros((cases, *form.matrix_shape("c")), form.c.code_dtype)
    fields = uniform_fields(form, np.arange(cases), cases)
    labels = [f"field {field:#06b}" for field in range(cases)]
    return vector_set(form, codes[0], codes[1], c, title="metadata-undefined", fields=fields, labels=labels)


def _coded(form: Instruction, operand: str, array: Array) -> Array:
    element = form.format(operand)
    return values(element, array) if element.is_float else array.astype(element.code_dtype)


def _observed(outputs: VectorSet) -> Iterator[str]:
    form = outputs.instruction
    assert form.pattern is not None
    matrix = elements(form, outputs.d)
    spread = [field for field in range(16) if (matrix[field, :, :] != matrix[field, :1, :1]).any()]
    if spread:
        yield f"fields whose outputs differ between rows or columns: {', '.join(map(str, spread))}"
    for field in range(16):
        if not legal_fields(form)[field]:
            yield f"field {field:#06b}: {_spelled(form, int(matrix[field, 0, 0]))}"


def _spelled(form: Instruction, code: int) -> str:
    """Return which rows a result is made of."""
    assert form.pattern is not None
    value = float(np.array(code, form.d.code_dtype).view(form.d.dtype))
    if form.pattern.kept == 1 or not 0 <= value < 256 or value != int(value):
        return f"D is {code:#x}"
    rows = [[row for row in range(4) if int(value) >> 4 * unit >> row & 1] for unit in range(2)]
    return f"the first unit multiplies rows {rows[0]}, the second {rows[1]} (D is {value:g})"


def _key(form: Instruction) -> object | None:
    if not form.sparse or form.scale or form.a != form.b or form.satfinite or form.a.bits < 8:
        return None
    if form.a.is_float and form.a.exponent_bits < 4:
        return None
    return form.family.name, form.variant, form.pattern, form.operation


def trials(target: str) -> Iterator[Trial]:
    """One for each operation with metadata, ordered and not."""
    for form in representatives(target, _key):
        yield Trial(vectors=_sets(form), candidates=tuple(candidates(form)), observe=_observed)


METADATA_UNDEFINED = Experiment(
    name="metadata-undefined",
    question="which rows of B does metadata select that PTX leaves undefined?",
    source="PTX: indices in ascending order, or distinct; tf32 fields 0b0100 or 0b1110; undefined otherwise",
    answers="'literal' confirms the fallback of the model; otherwise the observations are its new table",
    trials=trials,
)
