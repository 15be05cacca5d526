"""Parts of arrays, and copies by tables of places, as LLVM code that Numba has not to infer types of.

A kernel allocates its scratch memory once and takes parts of it: to allocate ten arrays takes as long as a
small sum, and to compile that longer than all arithmetic of the kernel. A part borrows the memory: the array
that it is of must be kept (``keep``) until the part is used no more. Nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba.np.arrayobj

from .vectors import I64, cgutils, intrinsic, ir, pointer_of, types

_populate: Any = numba.np.arrayobj.populate_array
_WIDE = 64  # bytes of which every part of a scratch memory begins at a multiple

Intrinsic = Callable[..., Any]


def scratch(kinds: tuple[Any, ...]) -> tuple[Intrinsic, Intrinsic]:
    """Return two intrinsics for parts of a memory whose elements are of these kinds (types of Numba).

    ``size(counts, unit)`` returns the bytes of parts of so many elements each, and ``parts(memory, counts,
    unit)`` these parts of a memory of uint8 that is so large. ``unit`` is NumPy's type where a kind is None.
    Kernels name both as globals: what a closure captures is part of its name in Numba's cache.
    """

    def known(unit: Any) -> tuple[Any, ...]:
        return tuple(unit.instance_type if kind is None else kind for kind in kinds)

    @intrinsic
    def size(typing: Any, counts: Any, unit: Any) -> tuple[Any, Callable[..., Any]]:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _ends(context, builder, known(unit), arguments[0])[-1]

        return types.int64(counts, unit), emit

    @intrinsic
    def parts(typing: Any, memory: Any, counts: Any, unit: Any) -> tuple[Any, Callable[..., Any]]:
        arrays = types.Tuple([types.Array(kind, 1, "C") for kind in known(unit)])

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            first = pointer_of(context, builder, signature.args[0], arguments[0])
            starts = [ir.Constant(I64, 0), *_ends(context, builder, known(unit), arguments[1])]
            sizes = cgutils.unpack_tuple(builder, arguments[1], len(kinds))
            found = [
                _borrowed(context, builder, kind, builder.gep(first, [start]), count)
                for kind, start, count in zip(arrays.types, starts, sizes, strict=False)
            ]
            return context.make_tuple(builder, arrays, found)

        return arrays(memory, counts, unit), emit

    return size, parts


def _ends(context: Any, builder: Any, kinds: tuple[Any, ...], counts: Any) -> list[Any]:
    """Return the byte behind every part, rounded up."""
    ends, end = list[Any](), ir.Constant(I64, 0)
    for kind, count in zip(kinds, cgutils.unpack_tuple(builder, counts, len(kinds)), strict=True):
        used = builder.add(builder.mul(count, _item_size(context, kind)), ir.Constant(I64, _WIDE - 1))
        end = builder.add(end, builder.and_(used, ir.Constant(I64, -_WIDE)))
        ends.append(end)
    return ends


@intrinsic
def seen_as(typing: Any, array: Any, unit: Any) -> tuple[Any, Callable[..., Any]]:
    """Return an array's memory as elements of another type of NumPy."""
    result = types.Array(unit.instance_type, 1, "C")

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = context.make_array(signature.args[0])(context, builder, arguments[0])
        count = cgutils.unpack_tuple(builder, given.shape, 1)[0]
        bytes_ = builder.mul(count, _item_size(context, signature.args[0].dtype))
        count = builder.sdiv(bytes_, _item_size(context, unit.instance_type))
        return _borrowed(context, builder, result, given.data, count)

    return result(array, unit), emit


@intrinsic
def runs_of(typing: Any, array: Any, start: Any, counts: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the first ``counts`` elements from ``start`` on, those behind them, and so on."""
    runs = types.UniTuple(array, len(counts))

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, at = pointer_of(context, builder, signature.args[0], arguments[0]), arguments[1]
        found = list[Any]()
        for count in cgutils.unpack_tuple(builder, arguments[2], len(counts)):
            found.append(_borrowed(context, builder, array, builder.gep(data, [at]), count))
            at = builder.add(at, count)
        return context.make_tuple(builder, runs, found)

    return runs(array, start, counts), emit


def _borrowed(context: Any, builder: Any, kind: Any, data: Any, count: Any) -> Any:
    """Return an array of memory that it does not own."""
    array = context.make_array(kind)(context, builder)
    data, size = builder.bitcast(data, array.data.type), _item_size(context, kind.dtype)
    shape, strides = cgutils.pack_array(builder, [count]), cgutils.pack_array(builder, [size])
    _populate(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


def _item_size(context: Any, kind: Any) -> Any:
    return ir.Constant(I64, context.get_abi_sizeof(context.get_data_type(kind)))


@intrinsic
def keep(typing: Any, memory: Any) -> tuple[Any, Callable[..., Any]]:
    """Do nothing: memory that is named here is not freed before."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_dummy_value()

    return types.void(memory), emit


@intrinsic
def gathered(
    typing: Any, source: Any, places: Any, result: Any, at: Any, count: Any
) -> tuple[Any, Callable[..., Any]]:
    """Write ``result[to + k] = source[start + places[first + k]]`` for k below count; ``at = (start, first,
    to)``.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for far, near in _places(context, builder, signature, arguments):
            builder.store(builder.load(far), near)
        return context.get_dummy_value()

    return types.void(source, places, result, at, count), emit


@intrinsic
def scattered(
    typing: Any, result: Any, places: Any, source: Any, at: Any, count: Any
) -> tuple[Any, Callable[..., Any]]:
    """Write ``result[start + places[first + k]] = source[to + k]`` for k below count; ``at = (start, first,
    to)``.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for far, near in _places(context, builder, signature, arguments):
            builder.store(builder.load(near), far)
        return context.get_dummy_value()

    return types.void(result, places, source, at, count), emit


def _places(context: Any, builder: Any, signature: Any, arguments: Any) -> Iterator[tuple[Any, Any]]:
    """Yield once, inside a loop over k, where an element lies among the places and where in a row."""
    spread, places, row = (
        pointer_of(context, builder, kind, array)
        for kind, array in zip(signature.args[:3], arguments[:3], strict=True)
    )
    start, first, to = cgutils.unpack_tuple(builder, arguments[3], 3)
    with cgutils.for_range(builder, arguments[4], intp=I64) as loop:
        place = builder.load(builder.gep(places, [builder.add(first, loop.index)]))
        far = builder.gep(spread, [builder.add(start, builder.sext(place, I64))])
        yield far, builder.gep(row, [builder.add(to, loop.index)])


def record_of(record: type, plain: int, runs: int, length: int) -> Intrinsic:
    """Return the intrinsic that reads a named tuple from the beginning of an array of integers: so many plain
    numbers, then so many tuples of ``length`` numbers.
    """
    run = types.UniTuple(types.int64, length)
    kind = types.NamedTuple([types.int64] * plain + [run] * runs, record)

    @intrinsic
    def read(typing: Any, array: Any) -> tuple[Any, Callable[..., Any]]:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = pointer_of(context, builder, signature.args[0], arguments[0])
            places = (ir.Constant(I64, k) for k in range(plain + runs * length))
            numbers = [builder.sext(builder.load(builder.gep(data, [place])), I64) for place in places]
            starts = range(plain, len(numbers), length)
            parts = [context.make_tuple(builder, run, numbers[start : start + length]) for start in starts]
            return context.make_tuple(builder, kind, [*numbers[:plain], *parts])

        return kind(array), emit

    return read
