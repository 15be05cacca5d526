"""Parts of arrays, and copies by tables of places, as LLVM code that Numba has not to infer types of.

A kernel allocates its scratch memory once and takes parts of it: to allocate ten arrays takes as long as a
small sum, and to compile that longer than all arithmetic of the kernel. A part borrows the memory: the array
that it is of must be kept (``keep``) until the part is used no more. Nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba.np.arrayobj

from .vectors import I64, cgutils, intrinsic, ir, load, pointer_of, types

_populate: Any = numba.np.arrayobj.populate_array
RUN = 4  # words of a row that may lie one behind another
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
        arrays = _three(context, builder, signature, arguments)
        start, first, to = cgutils.unpack_tuple(builder, arguments[3], 3)
        _words(_gathered, builder, arrays, (start, first, to), arguments[4])
        return context.get_dummy_value()

    return types.void(source, places, result, at, count), emit


def _row_copies(move: Callable[..., None]) -> Intrinsic:
    """Return the intrinsic that copies a few words of each row, by ``move`` in either direction.

    ``copied(spread, places, rows, at, shape, runs, adjacent)``: ``spread[start + places[first + i * pitch +
    k]]`` and ``rows[i * step + to + k]`` for every row i and k below ``runs * RUN``; ``at = (start, first,
    to)``, ``shape = (rows, pitch, step)``. ``runs`` is a constant: where ``adjacent``, RUN of the words that
    are ``runs`` apart follow each other where they are spread.
    """

    @intrinsic
    def copied(
        typing: Any, spread: Any, places: Any, rows: Any, at: Any, shape: Any, runs: Any, adjacent: Any
    ) -> tuple[Any, Callable[..., Any]] | None:
        if not isinstance(runs, types.IntegerLiteral):
            return None  # Numba asks again with the literal type
        count = int(runs.literal_value)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            arrays = _three(context, builder, signature, arguments)
            start, first, to = cgutils.unpack_tuple(builder, arguments[3], 3)
            number, pitch, step = cgutils.unpack_tuple(builder, arguments[4], 3)
            with cgutils.for_range(builder, number, intp=I64) as loop:
                place = builder.add(first, builder.mul(loop.index, pitch))
                at = start, place, builder.add(to, builder.mul(loop.index, step))
                with builder.if_else(arguments[6]) as (alike, otherwise):
                    with alike:
                        move(builder, arrays[0], _places(builder, arrays[1], at, count), arrays[2], at[2])
                    with otherwise:
                        _words(move, builder, arrays, at, ir.Constant(I64, count * RUN))
            return context.get_dummy_value()

        return types.void(spread, places, rows, at, shape, runs, adjacent), emit

    return copied


def _gathered(builder: Any, spread: Any, starts: list[Any], row: Any, to: Any, width: int = RUN) -> None:
    found = [load(builder, spread, start, width) for start in starts]
    (found[0] if len(found) == 1 else found[0].interleaved(found[1])).store(row, to)


def _scattered(builder: Any, spread: Any, starts: list[Any], row: Any, to: Any, width: int = RUN) -> None:
    whole = load(builder, row, to, len(starts) * width)
    for number, start in enumerate(starts):
        whole.every(len(starts), number).store(spread, start)


gathered_rows, scattered_rows = _row_copies(_gathered), _row_copies(_scattered)


def _three(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    return [
        pointer_of(context, builder, kind, array)
        for kind, array in zip(signature.args[:3], arguments[:3], strict=True)
    ]


def _words(
    move: Callable[..., None], builder: Any, arrays: list[Any], at: tuple[Any, ...], count: Any
) -> None:
    """Copy words one by one, as ``gathered`` has them."""
    start, first, to = at
    with cgutils.for_range(builder, count, intp=I64) as loop:
        place = _places(builder, arrays[1], (start, builder.add(first, loop.index)), 1)
        move(builder, arrays[0], place, arrays[2], builder.add(to, loop.index), 1)


def _places(builder: Any, places: Any, at: tuple[Any, ...], count: int) -> list[Any]:
    """Return ``start + places[first + k]`` for k below count; ``at = (start, first, ...)``."""
    found = list[Any]()
    for k in range(count):
        place = builder.load(builder.gep(places, [builder.add(at[1], ir.Constant(I64, k))]))
        found.append(builder.add(at[0], builder.sext(place, I64)))
    return found


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
