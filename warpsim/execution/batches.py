"""Many executions of one instruction at once: from registers, or from the operands' matrices.

Hands registers (with the tables of recipes), or matrices, to kernels.batches, in threads; knows formats and
rules, no layouts. The results are those of numerics.compute, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arithmetic.cores import thread_count
from ..arithmetic.kernels._jit import interpreted
from ..arithmetic.kernels.batches import COLUMNS, matrix_kernel
from ..arithmetic.kernels.variants import Variant
from ..arithmetic.panels import read_only
from ..arithmetic.plans import Plan, coding_of
from ..arithmetic.plans import applies as has_panels
from ..environment import default_environment, in_default_environment, is_default
from ..errors import present
from ..isa.instruction import Codes, Inputs, Instruction, Operands
from ..isa.products import Product
from ..isa.registers import Words, with_registers
from ..isa.rules import Rule
from .recipes import Recipe, narrow_plan, recipe_of, tiles_of

Table = npt.NDArray[Any]
_SHARE = 1 << 16  # words of D that a thread makes at a time


def applies(product: Product, rule: Rule) -> bool:
    """Whether ``compute`` handles the rule of this product (under this interpreter)."""
    return not interpreted() and has_panels(product, rule)


# --- from registers ----------------------------------------------------------------------------------

_NO_WORDS = np.zeros(0, np.uint32)
_WORD = np.dtype(np.uint32)
_NO_IDS = Inputs.scale_selectors  # the default


def execute(instruction: Instruction, inputs: Inputs, threads: int | None = 1) -> Words | None:
    """D registers ``(..., lanes, registers)``, or None: not for batches, or it is an error.

    It is for instructions that have recipes and uint32 registers. Whatever else there is to say, such as
    which metadata field is not legal or not modelled, is the slow way's business, which gets the same
    inputs.
    """
    tiles, registers = None, inputs.registers
    ids = inputs.scale_selectors
    if ids is not _NO_IDS and ids != _NO_IDS:  # of block scales, which have no recipes
        return None
    if not inputs.warp_level:
        tiles = tiles_of(instruction, inputs)
        if tiles is None:
            return None
        registers = _with_memory(instruction, inputs)
    recipe = recipe_of(instruction, inputs.selector, inputs.literal, tiles)
    given = None if recipe is None else _matching(recipe, registers)
    return None if given is None or recipe is None else _run(recipe, given, threads)


def _with_memory(instruction: Instruction, inputs: Inputs) -> dict[str, Words]:
    """The registers of wgmma, the words of its shared memory, and zeros for C where scale-d is false."""
    shared = present(inputs.shared, "shared")
    memory = np.ascontiguousarray(shared)
    memory = memory if memory.ctypes.data % 4 == 0 else memory.copy()
    registers = inputs.registers | {"shared": memory.view(_WORD)[..., None, :]}
    if not inputs.scale_d:
        lead = next(
            (array.shape[:-2] for name, array in registers.items() if name not in ("c", "shared")), ()
        )
        shape = instruction.lanes, instruction.registers["c"]
        registers["c"] = np.broadcast_to(np.zeros((), _WORD), (*lead, *shape))
    return registers


def _run(recipe: Recipe, given: list[Words], threads: int | None) -> Words | None:
    """D registers of registers that match; None where metadata is not legal."""
    if not is_default():  # asked here, as a block or a decorator would take longer
        with default_environment():
            return _run(recipe, given, threads)
    d = np.empty(given[2].shape, _WORD)
    # Copies of what is not contiguous; and of what is read-only, for which Numba would compile anew.
    flat = [array.ravel() if array.flags.writeable else array.flatten() for array in given]
    if len(flat) == 3:
        flat.append(_NO_WORDS)
    if d.ndim > 2:
        wrong = _many(recipe, flat, d.ravel(), threads)
    else:
        wrong = recipe.kernel(*flat, d.ravel(), 1, recipe.table)
    return d if wrong < 0 else None


def _many(recipe: Recipe, flat: list[Words], d: Words, threads: int | None) -> int:
    """The kernel over a batch, in threads if there is enough to do; -1, or not where a case is in error."""
    count = d.size // recipe.sizes[2]
    share = max(1, _SHARE // recipe.sizes[2])
    workers = 1 if count < 2 * share else thread_count(threads)
    if workers == 1:
        return recipe.kernel(*flat, d, count, recipe.table)
    return _shared_out(recipe, flat, d, (count, share), workers)


def _matching(recipe: Recipe, registers: dict[str, Words]) -> list[Words] | None:
    """The operands in the kernel's order, or None where they are not just what it takes."""
    if registers.keys() != recipe.sources:
        return None
    given = [registers[name] for name in recipe.names]
    for array in given:
        if array.dtype is not _WORD and array.dtype != _WORD:
            return None
    if _alike(recipe, given):
        return given
    for place in recipe.singles:
        given[place] = with_registers(given[place], *recipe.shapes[place])
    return given if _alike(recipe, given) else _broadcast(recipe, given)


def _alike(recipe: Recipe, given: list[Words]) -> bool:
    """Whether all shapes are the wanted ones, or a batch of them with equal leading axes."""
    shapes = [array.shape for array in given]
    return shapes == recipe.shapes or shapes == _batched(recipe, shapes[2][:-2])


@lru_cache(maxsize=256)
def _batched(recipe: Recipe, lead: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes of operands with these leading axes, wherever cases have operands of their own."""
    pairs = zip(recipe.sizes, recipe.shapes, strict=True)
    return [(*lead, *shape) if size else shape for size, shape in pairs]


def _broadcast(recipe: Recipe, given: list[Words]) -> list[Words] | None:
    """All operands with the same leading axes, or None where those do not go together."""
    if any(array.shape[-2:] != shape for array, shape in zip(given, recipe.shapes, strict=True)):
        return None
    varying = [array for array, size in zip(given, recipe.sizes, strict=True) if size]
    try:
        lead = np.broadcast_shapes(*(array.shape[:-2] for array in varying))
    except ValueError:
        return None
    wide = [
        (*lead, *array.shape[-2:]) if size else array.shape
        for array, size in zip(given, recipe.sizes, strict=True)
    ]
    return [np.broadcast_to(array, shape) for array, shape in zip(given, wide, strict=True)]


def _shared_out(recipe: Recipe, flat: list[Words], d: Words, batch: tuple[int, int], threads: int) -> int:
    """The kernel over ``batch = (cases, cases of a share)`` in threads; -1, or not where one is in error."""
    count, share = batch
    sizes = (*recipe.sizes, *(0 for _ in flat[len(recipe.sizes) :]), recipe.sizes[2])

    @in_default_environment
    def run(first: int) -> int:
        stop = min(first + share, count)
        parts = [
            array[first * size : stop * size] if size else array
            for array, size in zip((*flat, d), sizes, strict=True)
        ]
        return recipe.kernel(*parts, stop - first, recipe.table)

    with ThreadPoolExecutor(threads) as pool:
        return max(pool.map(run, range(0, count, share)))


# --- from matrices -----------------------------------------------------------------------------------


@cache
def _matrix_kernel(variant: Variant) -> Callable[..., None]:
    return matrix_kernel(variant)


_LARGE = 1 << 21  # products, from which on a kernel of its own pays for being compiled


@in_default_environment
def computed(operands: Operands, rule: Rule, threads: int | None = 1) -> Codes:
    """What numerics.compute returns, by the faster way, in threads over the batch."""
    from ..arithmetic.numerics import cases

    way, count = _way(operands, rule), operands.a.shape[0]
    workers = thread_count(threads) if _is_large(operands) else 1
    if workers == 1:
        return way(operands, rule)
    share = -(-count // (4 * workers))
    parts = [cases(operands, slice(first, first + share)) for first in range(0, count, share)]
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(lambda part: way(part, rule), parts)))


def _way(operands: Operands, rule: Rule) -> Callable[[Operands, Rule], Codes]:
    """Which of compute and numerics' ways is for these operands."""
    from ..arithmetic import numerics  # late: a trace of warp instructions does not need its kernels

    if interpreted() and not numerics.needs_compiler(rule):
        return numerics.compute_uncompiled
    product, n = operands.product, operands.b.shape[2]
    fits = n % COLUMNS == 0 and product.products == 1 and _is_large(operands)
    return compute if fits and applies(product, rule) else numerics.compute


def _is_large(operands: Operands) -> bool:
    return bool(operands.a.size * operands.b.shape[2] >= _LARGE)


@in_default_environment
def compute(operands: Operands, rule: Rule) -> Codes:
    """What numerics.compute returns, for an instruction and rule that ``applies``; n is a multiple of 8."""
    product = operands.product
    count, m, _ = operands.a.shape
    n = operands.b.shape[2]
    plan = narrow_plan(product, rule, n)
    results = np.empty(operands.c.shape, product.d.code_dtype)
    if not results.size:
        return results
    scale = product.scale
    scales = [_flat(codes, np.uint8) for codes in (operands.scale_a, operands.scale_b)]
    depth = np.arange(plan.depth) if plan.variant.sparse else plan.order
    matrices = (_flat(x) for x in (operands.a, operands.b, operands.c))
    _matrix_kernel(plan.variant)(
        (*matrices, _flat(operands.columns, np.int64), results.reshape(-1)),
        (*scales, np.array([scale.bias, scale.canonical_nan] if scale else [0, 0])),
        (count, m, plan.passes(1), n),
        (plan.order, depth),
        tuple(_matrix_coding(plan, name) for name in "abc"),
        plan.numbers,
    )
    return results


def _matrix_coding(plan: Plan, operand: str) -> tuple[int, ...]:
    emulated = plan.variant.emulated and operand != "c"
    return coding_of(plan.product.format(operand), as_half=emulated)


def _flat(array: Table | None, dtype: npt.DTypeLike | None = None) -> Table:
    """The array as the kernels take it."""
    return read_only(np.zeros(1, dtype) if array is None else np.ascontiguousarray(array, dtype).reshape(-1))
