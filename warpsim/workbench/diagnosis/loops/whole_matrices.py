"""Matrices that a kernel took for others as a whole: order in memory, a swizzle on one side, type.

Each is a change of all elements of A or B, whatever the tiles and steps are. Knows orders of elements; does
not know instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ....isa.codes import codes_of, matrix_of
from ....isa.formats import FORMATS, Format, floats_of
from ....isa.products import Codes
from ....sums.products.gemm import gemm
from ..locate.changed_lines import VALUE_CHANGES, value_changed
from ..solving.product_loops import Given, Loop, Step, View
from .loop_candidates import Candidate
from .memory_strides import read_at, strides_of

Values = npt.NDArray[Any]  # A as (m, k), B as (n, k)
_CHUNK = 128  # bits that swizzles move
_AWQ = (0, 2, 4, 6, 1, 3, 5, 7)  # eight weights of four bits in a word


class Reading(NamedTuple):
    """A way to read a matrix: its sentence, with ``{}`` for the operand; None where it does not apply."""

    text: str
    advice: str
    read: Callable[[Values, Format], Values | None]
    operands: tuple[str, ...] = ("A", "B")


def whole_matrices(loop: Loop, view: View) -> Iterator[Candidate]:
    """Yield candidates that change all of A, of B, or both; of a sparse A B alone, of scaled forms none."""
    for name, advice, read in _readings(loop):
        yield _candidate(loop, view, name, advice, read)


def in_every_step(
    loop: Loop, view: View
) -> Iterator[tuple[str, npt.NDArray[np.float64], Callable[[], list[Step]]]]:
    """Yield the names of the same mistakes, what the steps add with them, and those steps."""
    for name, _, read in _readings(loop):
        B = np.ascontiguousarray(read["B"].T)
        other = Loop(loop.form, Given(A=read["A"], B=B, C=loop.given.C))
        yield name, other.contributions(view), other.plain


def _readings(loop: Loop) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, advice, and A and the transpose of B as they are read."""
    form, given = loop.form, loop.given
    if form.scale is not None:
        return
    a, b = (
        matrix_of(codes_of(M, element, "A or B"), element)
        for M, element in ((given.A, form.a), (given.B, form.b))
    )
    right = {"A": a, "B": b.T}
    elements = {"A": form.a, "B": form.b}
    for reading in _READINGS:
        changed = {name: reading.read(values, elements[name]) for name, values in right.items()}
        for names in reading.operands:
            if all(changed[name] is not None for name in names) and not (form.sparse and "A" in names):
                both = right | {name: changed[name] for name in names}
                yield reading.text.format(" and ".join(names)), reading.advice, both
    if a.shape == b.shape == (a.shape[0], a.shape[0]) and form.a == form.b and not form.sparse:
        advice = "pass A and B in the order of the product; a column-major library takes B first"
        yield "A and B are exchanged: D is B·A", advice, {"A": b, "B": a.T}
    for name in "B" if form.sparse else "AB":
        for text, function in VALUE_CHANGES:
            made = value_changed(function, right[name].astype(np.float64), elements[name])
            if not np.array_equal(made, right[name].astype(np.float64)):
                read = made.astype(right[name].dtype)
                yield f"{name} {text}", f"check how {name} is converted and loaded", right | {name: read}
        for text, values in _at_strides(name, right[name], (*loop.shape, a.shape[1])):
            yield (
                text,
                "use the distance of rows of the matrix in memory, padding included",
                right | {name: values},
            )


def _at_strides(name: str, lines: Values, sizes: tuple[int, ...]) -> Iterator[tuple[str, Values]]:
    """Yield an operand whose rows, along k or across it, lie and are read at other distances."""
    orders = {"A": ("A", "A, stored [K][M],"), "B": ("B, stored [N][K],", "B")}[name]
    for text, across in zip(orders, (False, True), strict=True):
        rows = np.ascontiguousarray(lines.T if across else lines)
        for strides in strides_of(rows.shape[1], sizes):
            read = read_at(rows, strides)
            yield f"{text} is {strides}", read.T if across else read


def _candidate(loop: Loop, view: View, name: str, advice: str, read: dict[str, Any]) -> Candidate:
    form, given = loop.form, loop.given

    def run() -> Codes:
        d = gemm(form, read["A"], np.ascontiguousarray(read["B"].T), given.C)
        return loop.tiles_of(codes_of(d, form.d, "D"))

    return Candidate(name=name, advice=advice, change=_change(loop, view, read), exact=run, whole=True)


def _change(loop: Loop, view: View, read: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Return what the tile of the view has more with the matrices as they are read."""
    form, (m, n) = loop.form, (loop.form.shape.m, loop.form.shape.n)
    rows = slice(view.tile // loop.columns * m, view.tile // loop.columns * m + m)
    columns = slice(view.tile % loop.columns * n, view.tile % loop.columns * n + n)
    given = loop.given
    a, b = (
        matrix_of(codes_of(M, element, "A or B"), element)
        for M, element in ((given.A, form.a), (given.B, form.b))
    )
    with np.errstate(all="ignore"):
        wrong = _part(read["A"], rows) @ _part(read["B"], columns).T
        more = wrong - _part(a, rows) @ _part(b.T, columns).T
    tile = np.zeros((m, n))
    tile[: more.shape[0], : more.shape[1]] = more
    return view.part.of_result(tile)


def _part(values: Values, lines: slice) -> npt.NDArray[np.float64]:
    part: npt.NDArray[np.float64] = np.asarray(values[lines]).astype(np.float64)
    return part


# --- ways to read ----------------------------------------------------------------------------------------


def _ordered(order: tuple[int, ...], across: bool) -> Callable[[Values, Format], Values | None]:
    """Return groups of eight elements in another order, along k or across it."""

    def read(values: Values, _: Format) -> Values | None:
        lines = values.T if across else values
        if lines.shape[1] % len(order):
            return None
        place = np.arange(lines.shape[1]).reshape(-1, len(order))[:, order].reshape(-1)
        return lines[:, place].T if across else lines[:, place]

    return read


def _as_mn_major(values: Values, _: Format) -> Values:
    """Return what lies K-major read as if it lay MN-major."""
    lines, k = values.shape
    return values.reshape(-1).reshape(k, lines).T


def _as_k_major(values: Values, _: Format) -> Values:
    """Return what lies MN-major read as if it lay K-major."""
    return values.T.reshape(-1).reshape(values.shape)


def _swizzled(chunks: int, across: bool) -> Callable[[Values, Format], Values | None]:
    """Return chunks of 16 bytes exchanged within a row by the row, as swizzles of 32, 64, 128 bytes do."""

    def read(values: Values, element: Format) -> Values | None:
        lines = values.T if across else values
        size = _CHUNK // element.bits
        if lines.shape[1] % (chunks * size):
            return None
        count = lines.shape[1] // size
        mask = np.arange(len(lines)) // (8 // chunks) % chunks
        chunk = np.arange(count) ^ mask[:, None]
        place = (chunk[..., None] * size + np.arange(size)).reshape(len(lines), -1)
        moved = np.take_along_axis(lines, place, axis=1)
        return moved.T if across else moved

    return read


def _to_bf16(nearest: bool) -> Callable[[Values, Format], Values | None]:
    def read(values: Values, element: Format) -> Values | None:
        if element.bits < 16 or values.dtype not in (np.float16, np.float32):
            return None
        single = values.astype(np.float32)
        cut = (single.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        with np.errstate(all="ignore"):
            return (single.astype(ml_dtypes.bfloat16) if nearest else cut).astype(values.dtype)

    return read


def _offset(by: int) -> Callable[[Values, Format], Values | None]:
    def read(values: Values, element: Format) -> Values | None:
        if values.dtype != np.float16:
            return None
        return (values.astype(np.float32) + np.float32(by)).astype(values.dtype)

    return read


def _of_type(name: str) -> Callable[[Values, Format], Values | None]:
    """Return the codes of another type of as many bits, taken for those of the own type."""

    def read(values: Values, element: Format) -> Values | None:
        other = FORMATS[name]
        if other == element or other.bits != element.bits or not element.is_float or element.ignored_bits:
            return None
        with np.errstate(all="ignore"):
            return values.astype(np.float32).astype(other.dtype).view(element.dtype)

    return read


def _added(by: int) -> Callable[[Values, Format], Values | None]:
    """Return integers with an offset that wrap; none of values that it would not change."""

    def read(values: Values, element: Format) -> Values | None:
        if element.is_float or element.bits != 8:
            return None
        return (values.astype(np.int64) + by).astype(np.uint8).view(values.dtype)

    return read


_SAME = "what is stored and what is read disagree: use one order on both sides"
_TYPES = tuple(
    Reading(f"{{}} {how} to bf16", "keep the elements in their own type", _to_bf16(nearest), ("A", "B", "AB"))
    for how, nearest in (("truncated", False), ("rounded", True))
)
_BYTES = floats_of(8)
_READINGS = (
    *_TYPES,
    *(
        Reading(
            f"the codes of {{}} are of type {name}, and are multiplied as another type",
            "use one type on both sides",
            _of_type(name),
        )
        for name in _BYTES
    ),
    Reading(
        "{}: the sign bit of every element is flipped (an offset of 128)",
        "subtract the zero point of 128",
        _added(128),
    ),
    Reading("{} is read MN-major but stored K-major", _SAME, _as_mn_major),
    Reading("{} is read K-major but stored MN-major", _SAME, _as_k_major),
    *(
        Reading(
            f"{{}}: groups of eight {where} in AWQ's order, {what}", _SAME, _ordered(order, across), ("B",)
        )
        for across, where in ((False, "along k"), (True, "across k"))
        for order, what in ((_AWQ, "not undone"), (tuple(int(i) for i in np.argsort(_AWQ)), "undone twice"))
    ),
    *(
        Reading(
            f"{{}}: a swizzle of {16 * chunks} bytes on one side only, rows {where}",
            _SAME,
            _swizzled(chunks, across),
        )
        for across, where in ((False, "along k"), (True, "across k"))
        for chunks in (8, 4, 2)
    ),
    *(
        Reading(
            f"every element of {{}} is {by} more: 0x6400 | x is 1024 + x",
            "subtract what the trick adds",
            _offset(by),
        )
        for by in (1024, 1032)
    ),
)
