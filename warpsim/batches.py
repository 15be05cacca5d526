"""Many executions of one instruction at once: from registers, or from the operands' matrices.

Prepares the tables of positions and numbers that kernels.batches works with. Knows formats, rules and, for
registers, the instruction's layouts; ``applies`` tells for which instructions it can be used, and the
results are those of numerics.compute, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from . import numerics
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
from .threads import thread_count

Table = npt.NDArray[Any]
_SHARE = 512  # cases that a thread takes at a time


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
    """A compiled kernel and the table of numbers and places that it works by.

    ``shapes``: (lanes, registers) of each operand in ``names``.
    """

    kernel: Callable[..., int]
    table: npt.NDArray[np.int32]
    names: tuple[str, ...]
    shapes: list[tuple[int, ...]]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Words of a case in each operand."""
        return tuple(prod(shape) for shape in self.shapes)


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
        names=names,
        shapes=[(instruction.family.lanes, instruction.registers[name]) for name in names],
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


_NO_WORDS = np.zeros(0, np.uint32)
_WORD = np.dtype(np.uint32)


def execute(instruction: Instruction, inputs: Inputs, threads: int | None = 1) -> Words | None:
    """D registers ``(..., lanes, registers)``, or None: not for batches, or it is an error.

    It is for instructions that ``applies_to_registers`` and uint32 registers. Whatever else there is to say,
    such as which metadata field is not legal or not modelled, is the slow way's business, which gets the
    same inputs.
    """
    recipe = _recipe(instruction, inputs.selector, inputs.literal)
    if recipe is None:
        return None
    given = _matching(recipe, inputs.registers)
    if given is None:
        return None
    d = np.empty(given[2].shape, _WORD)
    flat = [array.reshape(-1) for array in given]  # copies what is not contiguous
    words = flat[3] if len(flat) > 3 else _NO_WORDS
    count = flat[2].size // recipe.sizes[2] if d.ndim > 2 else 1
    workers = 1 if count < 2 * _SHARE else thread_count(threads)
    if workers == 1:
        wrong = recipe.kernel(flat[0], flat[1], flat[2], words, d.reshape(-1), count, recipe.table)
    else:
        wrong = _shared_out(recipe, [*flat[:3], words], d.reshape(-1), count, workers)
    return d if wrong < 0 else None


def _matching(recipe: Recipe, registers: dict[str, Words]) -> list[Words] | None:
    """The registers in the kernel's order, or None where they are not just what it takes."""
    given = [registers[name] for name in recipe.names if name in registers]
    if len(given) != len(recipe.names) or len(given) != len(registers):
        return None
    for array in given:
        if array.dtype != _WORD:
            return None
    shapes = [array.shape for array in given]
    if shapes == recipe.shapes or _alike(recipe.shapes, shapes):
        return given
    return _broadcast(recipe.shapes, given)


def _alike(wanted: list[tuple[int, ...]], shapes: list[tuple[int, ...]]) -> bool:
    """Whether all shapes are a batch of the wanted ones, with equal leading axes."""
    lead = shapes[0][:-2]
    return shapes == [(*lead, *shape) for shape in wanted]


def _broadcast(wanted: list[tuple[int, ...]], given: list[Words]) -> list[Words] | None:
    """All registers with the same leading axes, or None where those do not go together."""
    if any(array.shape[-2:] != shape for array, shape in zip(given, wanted, strict=True)):
        return None
    try:
        lead = np.broadcast_shapes(*(array.shape[:-2] for array in given))
    except ValueError:
        return None
    return [np.broadcast_to(array, (*lead, *array.shape[-2:])) for array in given]


def _shared_out(recipe: Recipe, flat: list[Words], d: Words, count: int, threads: int) -> int:
    """The kernel over slices of the batch, in threads; -1, or a number where any slice is in error."""
    sizes = (*recipe.sizes[:3], recipe.sizes[3] if len(recipe.sizes) > 3 else 0, recipe.sizes[2])

    def run(first: int) -> int:
        stop = min(first + _SHARE, count)
        parts = [array[first * size : stop * size] for array, size in zip((*flat, d), sizes, strict=True)]
        return recipe.kernel(*parts, stop - first, recipe.table)

    with ThreadPoolExecutor(threads) as pool:
        return max(pool.map(run, range(0, count, _SHARE)))


# --- from matrices -----------------------------------------------------------------------------------


@cache
def _matrix_kernel(variant: Variant) -> Callable[..., None]:
    return matrix_kernel(variant)


@cache
def _matrix_plan(instruction: Instruction, rule: Rule, stride: int, width: int) -> Plan:
    plan = plan_of(instruction, rule, stride)
    return replace(plan, variant=replace(plan.variant, width=width))


_LARGE = 1 << 21  # products, from which on a kernel of its own pays for being compiled


def computed(operands: Operands, rule: Rule, threads: int | None = 1) -> Codes:
    """What numerics.compute returns, by the faster way, in threads over the batch."""
    way, count = _way(operands, rule), operands.a.shape[0]
    workers = thread_count(threads) if _is_large(operands) else 1
    if workers == 1:
        return way(operands, rule)
    share = -(-count // (4 * workers))
    parts = [_slice(operands, first, first + share) for first in range(0, count, share)]
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(lambda part: way(part, rule), parts)))


def _way(operands: Operands, rule: Rule) -> Callable[[Operands, Rule], Codes]:
    """Which of numerics.compute and compute is for these operands."""
    form, n = operands.instruction, operands.b.shape[2]
    fits = n % COLUMNS == 0 and form.products == 1 and _is_large(operands)
    return compute if fits and applies(form, rule) else numerics.compute


def _is_large(operands: Operands) -> bool:
    return bool(operands.a.size * operands.b.shape[2] >= _LARGE)


def _slice(operands: Operands, first: int, stop: int) -> Operands:
    """Some cases of a batch."""
    names = ("a", "b", "c", "columns", "scale_a", "scale_b")
    arrays = {name: getattr(operands, name) for name in names}
    parts: dict[str, Any] = {name: x if x is None else x[first:stop] for name, x in arrays.items()}
    return replace(operands, **parts)


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
