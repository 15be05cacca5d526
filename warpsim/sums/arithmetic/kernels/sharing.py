"""Executions that share factors, in groups: found by a hash of their registers, and by comparing all words.

The warps of a launch multiply few different fragments of A with few different fragments of B. A group has the
same words of A and of metadata; kernels.joined computes it as one product. Knows where the words of an
execution lie, not what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._jit import Array, kernel
from .llvm.vectors import I32, I64, Lanes, cgutils, constant, intrinsic, ir, load, pointer_of, types

WIDEST_GROUP = 8  # executions
SAME_A, SAME_B = 1, 2  # marks of a group: it has what the group before has
_TRIED = 64  # executions that are looked at before all are
_LEAST = 2  # executions of a group, on average, below which sums one by one are as fast
_ALL, _NEXT = 0xFFFFFFFF, 0x85EBCA6B  # an odd number
_LANES = 16  # runs of words are multiples of them

# Where the words of an execution lie in an operand: runs of words, words of a run, from a run to the next,
# and from an execution to the next.
Layout = tuple[int, int, int, int]


@intrinsic
def _mixed(typing: Any, words: Any, start: Any, length: Any, seed: Any) -> tuple[Any, Callable[..., Any]]:
    """Return a number of 32 bits for ``words[start : start + length]`` (uint32): sums of odd multiples."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = pointer_of(context, builder, signature.args[0], arguments[0])
        odd = ir.Constant(
            ir.VectorType(I32, _LANES), [(2 * k + 1) * 0x9E3779B1 & _ALL for k in range(_LANES)]
        )
        factor = cgutils.alloca_once_value(builder, odd)
        total = cgutils.alloca_once_value(builder, constant(builder, I32, 0, _LANES).value)
        with _vectors(builder, arguments[2]) as (k, _):
            factors = Lanes(builder, builder.load(factor))
            lanes = load(builder, source, builder.add(arguments[1], k), _LANES) * factors
            builder.store((Lanes(builder, builder.load(total)) + lanes).value, total)
            builder.store((factors * _NEXT).value, factor)
        kind = ir.FunctionType(I32, [ir.VectorType(I32, _LANES)])
        name = f"llvm.vector.reduce.add.v{_LANES}i32"
        reduce = cgutils.get_or_insert_function(builder.module, kind, name)
        found = builder.call(reduce, [builder.load(total)])
        mixed = builder.mul(builder.add(found, builder.trunc(arguments[3], I32)), ir.Constant(I32, _NEXT))
        return builder.zext(builder.xor(mixed, builder.lshr(mixed, ir.Constant(I32, 15))), I64)

    return types.int64(words, start, length, seed), emit


@intrinsic
def _differ(typing: Any, words: Any, first: Any, second: Any, length: Any) -> tuple[Any, Callable[..., Any]]:
    """Return whether words from ``first`` on and from ``second`` on are not the same."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = pointer_of(context, builder, signature.args[0], arguments[0])
        found = cgutils.alloca_once_value(builder, constant(builder, I32, 0, _LANES).value)
        with _vectors(builder, arguments[3]) as (k, _):
            left, right = (load(builder, source, builder.add(at, k), _LANES) for at in arguments[1:3])
            builder.store((Lanes(builder, builder.load(found)) | (left ^ right)).value, found)
        return (~Lanes(builder, builder.load(found)).equals(0)).any()

    return types.boolean(words, first, second, length), emit


def _vectors(builder: Any, length: Any) -> Any:
    return cgutils.for_range_slice(builder, ir.Constant(I64, 0), length, ir.Constant(I64, _LANES), I64)


@kernel
def _hash(words: Array, layout: Layout, element: int, seed: int) -> int:
    runs, length, stride, step = layout
    for run in range(runs):
        seed = _mixed(words, run * stride + element * step, length, seed)
    return seed


@kernel
def _equal(words: Array, layout: Layout, first: int, second: int) -> bool:
    runs, length, stride, step = layout
    for run in range(runs):
        start = run * stride
        if _differ(words, start + first * step, start + second * step, length):
            return False
    return True


@kernel
def _number(
    a: Array, metadata: Array, layouts: tuple[Layout, Layout], tried: int, table: Array, numbers: Array
) -> int:
    """Give equal executions the same number, in the order of their first; return how many numbers there are.

    Equal in the words of both operands (of metadata there may be none). Return 0 where the first ``tried``
    have too many. ``table`` is scratch, a power of two of elements, above the number of executions.
    """
    table[:] = -1
    firsts, found = np.empty(len(numbers), np.int32), 0
    mask = len(table) - 1
    of_a, of_metadata = layouts
    for element in range(len(numbers)):
        if element == tried and found * _LEAST > tried:
            return 0
        place = _hash(metadata, of_metadata, element, _hash(a, of_a, element, 0)) & mask
        number = table[place]
        while number >= 0:
            first = int(firsts[number])
            if _equal(a, of_a, first, element) and _equal(metadata, of_metadata, first, element):
                break
            place = (place + 1) & mask
            number = table[place]
        if number < 0:
            number = table[place] = found
            firsts[found] = element
            found += 1
        numbers[element] = number
    return 0 if tried <= len(numbers) < found * _LEAST else found


@kernel
def groups(
    a: Array, b: Array, metadata: Array, layouts: tuple[Layout, Layout, Layout], count: int
) -> tuple[Array, Array, Array]:
    """Return the members of all groups one behind the other, where each starts, and its marks.

    Operands are flat uint32 registers; ``layouts`` of A, B and metadata. No group where too few executions
    share A. Groups whose members have the same B, one by one, come one behind another.
    """
    size = 1
    while size < 2 * count:
        size *= 2
    table, of_a, of_b = np.empty(size, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    different = _number(a, metadata, (layouts[0], layouts[2]), min(_TRIED, count), table, of_a)
    if different == 0:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8)
    _number(b, metadata, (layouts[1], (0, 0, 0, 0)), count + 1, table, of_b)
    return _in_groups(of_a, of_b, different)


@kernel
def _in_groups(of_a: Array, of_b: Array, different: int) -> tuple[Array, Array, Array]:
    """Return groups of executions with equal numbers ``of_a``, below ``different``."""
    count = len(of_a)
    ends, order = np.zeros(different + 1, np.int32), np.empty(count, np.int32)
    for element in range(count):
        ends[of_a[element] + 1] += 1
    most = ends.max()
    for number in range(different):
        ends[number + 1] += ends[number]
    filled = ends[:different].copy()
    for element in range(count):
        order[filled[of_a[element]]] = element
        filled[of_a[element]] += 1
    members, starts = np.empty(count, np.int32), np.empty(count + 1, np.int32)
    marks = np.empty(count, np.uint8)
    number = filled_to = 0
    for row in range(0, most, WIDEST_GROUP):
        for factor in range(different):
            first, stop = ends[factor] + row, min(ends[factor] + row + WIDEST_GROUP, ends[factor + 1])
            if first >= stop:
                continue
            starts[number] = filled_to
            for place in range(first, stop):
                members[filled_to + place - first] = order[place]
            before = starts[number - 1] if number else 0
            marks[number] = 0
            if number and of_a[members[before]] == factor:
                marks[number] |= SAME_A
            if number and filled_to - before == stop - first:
                same = True
                for k in range(stop - first):
                    same &= of_b[members[before + k]] == of_b[members[filled_to + k]]
                if same:
                    marks[number] |= SAME_B
            filled_to += stop - first
            number += 1
    starts[number] = filled_to
    return members, starts[: number + 1], marks[:number]
