"""Many executions of one instruction at once: from registers, or from the operands' matrices.

Prepares the tables of positions and numbers that kernels.batches works with. Knows formats, rules and, for
registers, the instruction's layouts; ``applies`` tells for which instructions it can be used, and the
results are those of numerics.compute, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .architectures import ARCHITECTURES, Rule, rule_of
from .fragments import metadata_map
from .instruction import Codes, Inputs, Instruction, Operands
from .kernels.batches import COLUMNS, HEADER, matrix_kernel, register_kernel
from .kernels.panels import interpreted
from .kernels.variants import Variant
from .panels import Plan, coding_of, plan_of
from .panels import applies as has_panels
from .registers import Words
from .sparsity import Pattern

Table = npt.NDArray[Any]


def applies(instruction: Instruction, rule: Rule) -> bool:
    """Whether ``compute`` handles the rule of this instruction (under this interpreter)."""
    return not interpreted() and has_panels(instruction, rule)


def applies_to_registers(instruction: Instruction, rule: Rule) -> bool:
    """Whether ``execute`` handles the instruction: mma and mma.sp, eight columns, no block scales."""
    return (
        applies(instruction, rule)
        and instruction.family.rules == "mma"
        and instruction.products == 1
        and instruction.scale is None
        and instruction.shape.n == COLUMNS
        and (instruction.pattern is None or instruction.pattern.unit == 1)
    )


# --- from registers ----------------------------------------------------------------------------------


@cache
def _compiled(variant: Variant, bits: int, kept: int) -> Callable[..., int]:
    return register_kernel(variant, bits, kept)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe:
    """A compiled kernel and the table of numbers and places that it works by."""

    kernel: Callable[..., int]
    table: npt.NDArray[np.int32]
    word: np.dtype[Any]  # of two accumulators
    names: tuple[str, ...]
    counts: tuple[int, ...]  # registers of each
    lanes: int


@cache
def _recipe(instruction: Instruction, selector: int, literal: bool) -> Recipe | None:
    """None where execute does not handle the instruction, or the selector is not legal."""
    if instruction.target is None or selector not in (instruction.selectors or (selector,)):
        return None
    family, result = instruction.family.rules, instruction.d.name
    rule = rule_of(instruction.target, family, instruction.operation, result, sparse=instruction.sparse)
    if not applies_to_registers(instruction, rule):
        return None
    plan = plan_of(instruction, rule, COLUMNS)
    bits = instruction.storage("a").bits
    pattern = instruction.pattern
    tables = _fragment_tables(plan, bits)
    legal = 0xFFFF
    if pattern is not None:
        tables += _metadata_tables(plan, selector)
        legal = legal if literal else _legal_fields(instruction, pattern)
    names = ("a", "b", "c", "e") if pattern is not None else ("a", "b", "c")
    words = [instruction.family.lanes * instruction.registers[name] for name in "abc"]
    if instruction.c.bits == 32:
        words[2] //= 2
    codings = [_coding(plan, name) for name in "abc"]
    header = np.zeros(HEADER, np.int64)
    numbers = [*words, instruction.family.lanes, legal, *plan.numbers, *np.concatenate(codings)]
    header[: 2 + len(numbers)] = [instruction.shape.m, plan.passes(1), *numbers]
    return Recipe(
        kernel=_compiled(plan.variant, bits, pattern.kept if pattern else 0),
        table=np.concatenate([header, *(table.reshape(-1) for table in tables)]).astype(np.int32),
        word=np.dtype(np.uint32 if plan.variant.half else np.uint64),
        names=names,
        counts=tuple(instruction.registers[name] for name in names),
        lanes=instruction.family.lanes,
    )


def _legal_fields(instruction: Instruction, pattern: Pattern) -> int:
    """A bit for each value of a metadata field that is legal and whose effect is known."""
    known = ARCHITECTURES[str(instruction.target)].unsorted_operations
    ascending = instruction.ordered or instruction.operation in known
    allowed = pattern.ascending if ascending else pattern.distinct
    return int(np.sum(allowed.astype(np.int64) << np.arange(16)))


def _coding(plan: Plan, operand: str) -> tuple[int, ...]:
    form = plan.instruction
    if operand == "c":
        return coding_of(form.c)
    shift = form.storage(operand).shift
    return coding_of(form.format(operand), as_half=plan.variant.emulated, shift=shift)


def _fragment_tables(plan: Plan, bits: int) -> list[Table]:
    """Places of the words of A, B and C, the rows of B and the order of products (see kernels.batches)."""
    form = plan.instruction
    each = 32 // bits
    a, b, c = (form.family.fragment(form, operand).inverse for operand in "abc")
    depth = form.shape.k
    order = np.arange(plan.depth) if plan.variant.sparse else plan.order
    # Row r of the planes is row whole[r] of B.
    whole = (np.arange(0, depth, plan.depth)[:, None] + order).reshape(-1)
    tables = [_words(a, each, 1), _words(b, each, 0), _words(c, 2, 1)]
    return [*tables, np.argsort(whole), plan.order]


def _words(places: Table, each: int, axis: int) -> Table:
    """Places of words, of places of elements, ``each`` of which along the axis make up a word."""
    first = places[:, ::each] if axis == 1 else places[::each]
    last = places[:, each - 1 :: each] if axis == 1 else places[each - 1 :: each]
    if (first % each).any() or (last != first + each - 1).any():
        raise AssertionError("the elements of a word are not neighbours in the matrix")
    return first // each


def _metadata_tables(plan: Plan, selector: int) -> list[Table]:
    """Offsets of the chunks of a row, and place and lowest bit of every four fields (see kernels.batches)."""
    form = plan.instruction
    pattern = form.pattern
    assert pattern is not None
    lane, bit, _, _, _ = metadata_map(form, selector).T.reshape(5, -1, 4)  # by row of A, then chunk
    if (lane != lane[:, :1]).any() or (bit != bit[:, :1] + np.arange(0, 16, 4)).any():
        raise AssertionError("four fields are not neighbours in a register")
    stored = np.arange(form.stored_k)
    bases = stored // pattern.stored * pattern.chunk % plan.depth
    return [bases * COLUMNS, lane[:, 0], bit[:, 0]]


_NO_WORDS = np.zeros(1, np.uint32)


def execute(instruction: Instruction, inputs: Inputs) -> Words | None:
    """D registers ``(..., lanes, registers)``, or None: not for batches, or it is an error.

    It is for instructions that ``applies_to_registers`` and uint32 registers of equal leading axes. Whatever
    else there is to say, such as which metadata field is not legal or not modelled, is the slow way's
    business, which gets the same inputs.
    """
    recipe = _recipe(instruction, inputs.selector, inputs.literal)
    if recipe is None:
        return None
    given = [inputs.registers.get(name) for name in recipe.names]
    lead = None
    for array, count in zip(given, recipe.counts, strict=True):
        if array is None or array.dtype != np.uint32 or array.shape[-2:] != (recipe.lanes, count):
            return None
        if lead is not None and array.shape[:-2] != lead:
            return None
        lead = array.shape[:-2]
    if len(inputs.registers) != len(given):
        return None
    a, b, c, *e = (np.ascontiguousarray(array).reshape(-1) for array in given)
    d = np.empty(given[2].shape, np.uint32)  # type: ignore[union-attr]
    out = d.reshape(-1).view(recipe.word)
    count = len(c) // (recipe.lanes * recipe.counts[2])
    wrong = recipe.kernel(a, b, c.view(recipe.word), e[0] if e else _NO_WORDS, out, count, recipe.table)
    return d if wrong < 0 else None


# --- from matrices -----------------------------------------------------------------------------------


@cache
def _matrix_kernel(variant: Variant) -> Callable[..., None]:
    return matrix_kernel(variant)


@cache
def _matrix_plan(instruction: Instruction, rule: Rule, stride: int, width: int) -> Plan:
    plan = plan_of(instruction, rule, stride)
    return replace(plan, variant=replace(plan.variant, width=width))


def compute(operands: Operands, rule: Rule) -> Codes:
    """What numerics.compute returns, for an instruction and rule that ``applies``; n is a multiple of 8."""
    form = operands.instruction
    count, m, _ = operands.a.shape
    n = operands.b.shape[2]
    width = 32 if n % 32 == 0 else 8
    plan = _matrix_plan(form, rule, max(width, 1 << (n - 1).bit_length()), width)
    results = np.empty(operands.c.shape, form.d.code_dtype)
    if not results.size:
        return results
    scale = form.scale
    scales = [_flat(codes, np.uint8) for codes in (operands.scale_a, operands.scale_b)]
    depth = np.arange(plan.depth) if plan.variant.sparse else plan.order
    _matrix_kernel(plan.variant)(
        (*(_flat(x) for x in (operands.a, operands.b, operands.c)), results.reshape(-1)),
        _flat(operands.columns, np.int64),
        (*scales, np.array([scale.bias, scale.canonical_nan] if scale else [0, 0])),
        (count, m, plan.passes(1), n),
        (plan.order, depth),
        tuple(_matrix_coding(plan, name) for name in "abc"),
        plan.numbers,
    )
    return results


def _matrix_coding(plan: Plan, operand: str) -> tuple[int, ...]:
    emulated = plan.variant.emulated and operand != "c"
    return coding_of(plan.instruction.format(operand), as_half=emulated)


def _flat(array: Table | None, dtype: npt.DTypeLike | None = None) -> Table:
    return np.zeros(1, dtype) if array is None else np.ascontiguousarray(array, dtype).reshape(-1)
