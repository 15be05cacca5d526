"""The shortcut: one kernel from registers and tiles to registers of D, many executions at once.

Follows recipes.py and does not pass ``Operands``; in threads where there is enough to do. Serves instructions
that have recipes, on uint32 registers of the right shape. The results are those of the general path, bit for
bit; metadata without a meaning is left to the general path, which reports it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from ...base.environment import default_environment, in_default_environment, is_default
from ...base.errors import present
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import NO_TENSOR_SETTINGS, Inputs
from ...isa.registers import Words, with_registers
from ..arithmetic.cores import thread_count
from ..arithmetic.kernels.sharing import groups
from .compilation_budget import LOADED, CompilationBudget, limit_here
from .recipes import Recipe, Table, layouts_of, recipe_of, table_by_register, tiles_of

JOINED = 16  # executions from which on sharing is looked for
# Products of a recipe, one execution at a time, that take as long as to load the kernel of executions that
# share factors, or a part of the time that compiling it takes.
JOINING = CompilationBudget(many=1 << 24 if limit_here() == LOADED else 1 << 31)
_SHARE = 1 << 20  # words of D that a thread makes at a time: some milliseconds, for its start takes a part

_NO_WORDS = np.zeros(0, np.uint32)
_WORD = np.dtype(np.uint32)
_NO_IDS = Inputs.scale_selectors  # the default


# The shortcut for given inputs: a recipe, and the operands in the order of its kernel.
FusedCall = tuple[Recipe, list[Words]]


def fused_call(instruction: Instruction, inputs: Inputs) -> FusedCall | None:
    """Return the arguments of ``run`` that execute the inputs; None without a recipe that registers match."""
    tiles, registers = None, inputs.registers
    ids = inputs.scale_selectors
    if ids is not _NO_IDS and ids != _NO_IDS:  # of block scales, which have no recipes
        return None
    if not inputs.warp_level:
        tiles = None if instruction.descriptor is not None else tiles_of(instruction, inputs)
        if tiles is None or inputs.tensor is not NO_TENSOR_SETTINGS:
            return None
        registers = _with_memory(instruction, inputs)
    recipe = recipe_of(instruction, inputs.selector, inputs.literal, tiles)
    given = None if recipe is None else _matching(recipe, registers)
    return None if given is None or recipe is None else (recipe, given)


def straight(
    instruction: Instruction, registers: tuple[Any, ...], selector: int, literal: bool
) -> Words | None:
    """Return D of one execution whose registers, of a, b, c and metadata, are as the kernel takes them.

    None for all others, which ``execute`` may convert: each further function takes a tenth of a call, as does
    a loop over four arrays.
    """
    recipe = recipe_of(instruction, selector, literal, None)
    if recipe is None or not is_default():
        return None
    a, b, c, e, *_ = registers
    if not type(a) is type(b) is type(c) is np.ndarray:
        return None
    if not a.dtype is b.dtype is c.dtype is _WORD:
        return None
    if not (a.flags.writeable and b.flags.writeable and c.flags.writeable):  # Numba would compile anew
        return None
    shapes: tuple[tuple[int, ...], ...] = (a.shape, b.shape, c.shape)
    if e is None:
        fields = _NO_WORDS
    elif type(e) is np.ndarray and e.dtype is _WORD and e.flags.writeable:
        shapes, fields = (*shapes, e.shape), e.ravel()
    else:
        return None
    if shapes != recipe.plain:
        return None
    d = np.empty(shapes[2], _WORD)
    return (
        d if recipe.kernel(a.ravel(), b.ravel(), c.ravel(), fields, d.ravel(), 1, recipe.table) < 0 else None
    )


def execute(instruction: Instruction, inputs: Inputs, threads: int | None = 1) -> Words | None:
    """Return D registers ``(..., lanes, registers)``; None where the shortcut does not serve the inputs."""
    call = fused_call(instruction, inputs)
    return None if call is None else run(call, threads)


def _with_memory(instruction: Instruction, inputs: Inputs) -> dict[str, Words]:
    """Return the registers of wgmma, its shared memory as words, and zeros for C where scale-d is false."""
    shared = present(inputs.shared, "shared")
    memory = np.ascontiguousarray(shared)
    memory = memory if memory.ctypes.data % 4 == 0 else memory.copy()
    registers = inputs.registers | {"shared": memory.view(_WORD)[..., None, :]}
    if not inputs.scale_d:
        lead = next(
            (array.shape[:-2] for name, array in registers.items() if name not in ("c", "shared")), ()
        )
        shape = instruction.in_registers("c").shape
        registers["c"] = np.broadcast_to(np.zeros((), _WORD), (*lead, *shape))
    return registers


def run(call: FusedCall, threads: int | None, joining: CompilationBudget = JOINING) -> Words | None:
    """Return D registers of registers that match; None where metadata is not legal.

    ``joining``: from when on executions that share factors have a kernel of their own.
    """
    if not is_default():  # a block or a decorator around every call would take longer
        with default_environment():
            return run(call, threads, joining)
    recipe, given = call
    if given[2].ndim == 3 and not given[2].flags.c_contiguous:
        flat = _by_register(recipe, given)
        if flat is not None and table_by_register(recipe, given[2].shape[0]) is not None:
            return _run_by_register(recipe, flat, threads, joining)
    d = np.empty(given[2].shape, _WORD)
    wrong = _many(recipe, [_flat(array) for array in given], d.ravel(), None, threads, joining)
    return d if wrong < 0 else None


def _flat(array: Words) -> Words:
    """Return all words in a row: a copy of what is not contiguous; and of what is read-only, for which
    Numba would compile anew.
    """
    return array.ravel() if array.flags.writeable else array.flatten()


def _by_register(recipe: Recipe, given: list[Words]) -> list[Words] | None:
    """Return all operands register by register, flat; None where one of them does not lie so in memory."""
    flat = list[Words]()
    for array, name in zip(given, recipe.names, strict=True):
        words = array if name == "shared" else array.transpose(2, 0, 1)
        if not words.flags.c_contiguous:
            return None
        flat.append(_flat(words))
    return flat


def _run_by_register(
    recipe: Recipe, flat: list[Words], threads: int | None, joining: CompilationBudget
) -> Words | None:
    """Run for operands whose registers lie one behind the other, as ``(registers, cases, lanes)``; so does
    D.
    """
    lanes, count = recipe.shapes[2]
    cases = flat[2].size // recipe.sizes[2]
    d = np.empty((count, cases, lanes), _WORD)
    wrong = _many(recipe, flat, d.ravel(), cases, threads, joining)
    return d.transpose(1, 2, 0) if wrong < 0 else None


def _many(
    recipe: Recipe,
    flat: list[Words],
    d: Words,
    cases: int | None,
    threads: int | None,
    joining: CompilationBudget,
) -> int:
    """Run the kernel over a batch, in threads if there is enough to do; -1 unless a case is in error.

    ``cases``: their number where the operands lie register by register, otherwise None.
    """
    steps = recipe.sizes if cases is None else recipe.steps  # from a case to the next
    if len(flat) == 3:
        flat, steps = [*flat, _NO_WORDS], [*steps, 0]
    count = d.size // recipe.sizes[2]
    if count < JOINED:
        return recipe.kernel(*flat, d, count, _table_of(recipe, cases))
    joined = recipe.joined if joining.earns(recipe.kernel, count * recipe.products) else None
    share = max(1, _SHARE // recipe.sizes[2])
    workers = 1 if count < 2 * share else thread_count(threads)
    if workers == 1:
        return _part(recipe, joined, (*flat, d), count, cases)

    @in_default_environment
    def compute(first: int) -> int:
        starts = [first * step for step in (*steps, steps[2])]
        parts = tuple(array[start:] for array, start in zip((*flat, d), starts, strict=True))
        return _part(recipe, joined, parts, min(share, count - first), cases)

    with ThreadPoolExecutor(workers) as pool:
        return max(pool.map(compute, range(0, count, share)))


def _part(
    recipe: Recipe, joined: Recipe | None, operands: tuple[Words, ...], count: int, cases: int | None
) -> int:
    """Run the kernel over ``count`` cases, that of executions which share factors where enough do."""
    if joined is not None:
        a, b, _, e, _ = operands
        found = groups(a, b, e, layouts_of(joined, cases), count)
        if len(found[2]):
            return joined.kernel(operands, found, _table_of(joined, cases))
    return recipe.kernel(*operands, count, _table_of(recipe, cases))


def _table_of(recipe: Recipe, cases: int | None) -> Table:
    return recipe.table if cases is None else present(table_by_register(recipe, cases), "table")


def _matching(recipe: Recipe, registers: dict[str, Words]) -> list[Words] | None:
    """Return the operands in the order of the kernel; None where they are not exactly what it takes."""
    if registers.keys() != recipe.sources:
        return None
    given = [registers[name] for name in recipe.names]
    for array in given:
        if array.dtype is not _WORD and array.dtype != _WORD:
            return None
    if _shapes_match(recipe, given):
        return given
    for place in recipe.singles:
        given[place] = with_registers(given[place], *recipe.shapes[place])
    return given if _shapes_match(recipe, given) else _broadcast(recipe, given)


def _shapes_match(recipe: Recipe, given: list[Words]) -> bool:
    """Return whether all shapes are those of the recipe, or a batch of them with equal leading axes."""
    shapes = [array.shape for array in given]
    return shapes == recipe.shapes or shapes == _batch_shapes(recipe, shapes[2][:-2])


@lru_cache(maxsize=256)
def _batch_shapes(recipe: Recipe, lead: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the shapes of operands with these leading axes, except of operands that all cases share."""
    pairs = zip(recipe.sizes, recipe.shapes, strict=True)
    return [(*lead, *shape) if size else shape for size, shape in pairs]


def _broadcast(recipe: Recipe, given: list[Words]) -> list[Words] | None:
    """Return all operands with the same leading axes; None where those do not broadcast together."""
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
