"""What a matrix is that was read in place of another: lines in another order, zeros, functions of values.

Works on codes ``(lines, k)``: the rows of A, the columns of B, or lines of scales. Each element is judged by
its value. Does not know instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ....isa.codes import matrix_of
from ....isa.formats import Format
from ....isa.products import Codes
from ..dumps.wrong_elements import ranges

Matrix = npt.NDArray[np.float64]
ValueChange = Callable[[Matrix, Format], Matrix]
_PERIODS = (2, 4, 8, 16, 32, 64)
_INSIDE = 0.5  # of what is read: the rest lies outside of the matrix


def nearest_codes(values: Matrix, element: Format) -> Codes:
    """Return the codes nearest to values, integers limited to their range."""
    if not element.is_float:
        low = -(1 << element.bits - 1) if element.signed else 0
        rounded = np.clip(np.round(values), low, low + element.mask).astype(np.int64)
        codes: Codes = (rounded & element.mask).astype(element.code_dtype)
        return codes
    with np.errstate(all="ignore"):
        found: Codes = values.astype(np.float32).astype(element.dtype).view(element.code_dtype)
    return found


def described(name: str, right: Codes, read: Codes, element: Format) -> tuple[str, bool]:
    """Return what an operand ``(lines, k)`` is that was read in place of the right matrix, and whether that
    is a rule for all its elements, and not only where it is wrong.
    """
    line = "row" if name in ("A", "scale_a") else "column"
    rule = next(_kinds(right, read, element, line), "")
    return f"{name} {rule or _where(right, read, line)}", bool(rule)


def _kinds(right: Codes, read: Codes, element: Format, line: str) -> Iterator[str]:
    yield from _zeros(right, read, line)
    for axis, what in ((1, "k"), (0, line)):
        x, y = (np.moveaxis(codes, axis, 0) for codes in (right, read))
        order = _order(x, y)
        if order is not None:
            yield f"has its {what} in another order: {_ordered(order)}"
    yield from _of_values(right, read, element)


def _zeros(right: Codes, read: Codes, line: str) -> Iterator[str]:
    """Yield elements that are zero, if all others are right."""
    wrong = right != read
    if not wrong.any() or (read[wrong] != 0).any():
        return
    for axis, what in ((0, "k"), (1, line)):
        flags = wrong.any(axis=axis)
        held = right != 0
        whole = (wrong == (held & (flags if axis == 0 else flags[:, None]))).all()
        if whole and not flags.all():
            yield f"is zero in {what} {_listed(flags)}"
            return


def _listed(flags: npt.NDArray[np.bool_]) -> str:
    """Return which indices are set, by their number in a period where they repeat."""
    for period in _PERIODS:
        if len(flags) % period == 0 and len(flags) > period:
            table = flags.reshape(-1, period)
            if (table == table[0]).all():
                return f"{ranges(np.flatnonzero(table[0]).tolist())} of every {period}"
    return ranges(np.flatnonzero(flags).tolist())


def _order(x: Codes, y: Codes) -> npt.NDArray[np.intp] | None:
    """Return which line of x each line of y is, if each is a line of x; the simplest order."""
    for order in _simple_orders(len(x)):
        if np.array_equal(x[order], y):
            return order
    known = {line.tobytes(): at for at, line in reversed(list(enumerate(np.ascontiguousarray(x))))}
    if len(known) < len(x) // 2:
        return None
    own = np.ascontiguousarray(y)
    found = np.array([known.get(line.tobytes(), -1) for line in own], np.intp)
    return found if (found >= 0).all() and (found != np.arange(len(found))).any() else None


def _simple_orders(size: int) -> Iterator[npt.NDArray[np.intp]]:
    """Yield exchanges by exclusive or, rotations, and the reverse."""
    place = np.arange(size)
    masks = (1 << bit for bit in range(size.bit_length()))
    yield from (place ^ mask for mask in masks if size % (2 * mask) == 0)
    yield from ((place + by) % size for step in (1, 2, 4, 8) for by in (step, -step) if step < size)
    yield place[::-1]


def _regular(order: npt.NDArray[np.intp]) -> str:
    """Describe an exchange by exclusive or, a rotation, or the reverse; empty for another order."""
    size, place = len(order), np.arange(len(order))
    if np.array_equal(order, place[::-1]):
        return "in reverse"
    mask, by = int(order[0]), int(order[0]) % size
    if mask and np.array_equal(order, place ^ mask):
        halves = f" (the halves, 0..{mask - 1} and {mask}..{size - 1}, are exchanged)"
        return f"number i holds number i xor {mask}" + halves * (2 * mask == size)
    if by and np.array_equal(order, (place + by) % size):
        left = by if by <= size // 2 else by - size
        return f"rotated by {left}: number i holds number (i {'-+'[left > 0]} {abs(left)}) % {size}"
    return ""


def _ordered(order: npt.NDArray[np.intp]) -> str:
    size, place = len(order), np.arange(len(order))
    if text := _regular(order):
        return text
    for period in (*_PERIODS, size):
        if size % period == 0 and (order // period == place // period).all():
            inner = (order % period).reshape(-1, period)
            if (inner == inner[0]).all():
                listed = ", ".join(map(str, inner[0].tolist()[:16])) + ", …" * (period > 16)
                return f"number i of every {period} is number ({listed})[i]"
            break
    moved = np.flatnonzero(order != place)
    by = np.unique(order[moved] - moved)
    if len(by) == 1:
        return f"{ranges(moved.tolist())} hold those {abs(int(by[0]))} {'further' if by[0] > 0 else 'before'}"
    first = ", ".join(f"{at} holds {int(order[at])}" for at in moved[:4].tolist())
    return f"{len(moved)} of {size} are elsewhere: {first}" + ", …" * (len(moved) > 4)


def _of_values(right: Codes, read: Codes, element: Format) -> Iterator[str]:
    """Yield a function of each value."""
    x, y = (matrix_of(codes, element).astype(np.float64) for codes in (right, read))
    for name, function in (*VALUE_CHANGES, *_FUNCTIONS):
        if np.array_equal(value_changed(function, x, element), y):  # a zero of either sign
            yield name
            return
    apart = np.unique(y - x)
    if len(apart) == 1 and apart[0]:
        yield f"has {apart[0]:g} more in every element (a zero point or an offset)"


def value_changed(function: ValueChange, values: Matrix, element: Format) -> Matrix:
    """Return the function of values as a type holds it."""
    with np.errstate(all="ignore"):
        made = nearest_codes(function(values, element), element)
    found: Matrix = matrix_of(made, element).astype(np.float64)
    return found


def _without_subnormals(x: Matrix, element: Format) -> Matrix:
    if not element.is_float:
        return x
    smallest = float(ml_dtypes.finfo(element.dtype).smallest_normal)  # type: ignore[no-untyped-call]
    return np.where(np.abs(x) < smallest, 0.0, x)


def _to_bf16(x: Matrix, _: Format) -> Matrix:
    cut = (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    found: Matrix = cut.astype(np.float64)
    return found


VALUE_CHANGES: tuple[tuple[str, ValueChange], ...] = (
    ("has its subnormal values set to zero", _without_subnormals),
    ("is truncated to integers", lambda x, _: np.trunc(x)),
    ("is rounded to integers", lambda x, _: np.round(x)),
    ("is rounded down to integers", lambda x, _: np.floor(x)),
    ("has the other sign", lambda x, _: -x),
    ("has no signs (absolute values)", lambda x, _: np.abs(x)),
)
_FUNCTIONS: tuple[tuple[str, ValueChange], ...] = (
    ("is truncated to bf16", _to_bf16),
    ("is rounded to bf16", lambda x, _: x.astype(ml_dtypes.bfloat16).astype(np.float64)),
    ("is rounded to e4m3", lambda x, _: x.astype(ml_dtypes.float8_e4m3fn).astype(np.float64)),
    ("is rounded to e5m2", lambda x, _: x.astype(ml_dtypes.float8_e5m2).astype(np.float64)),
    *(
        (f"is taken times {by:g}", lambda x, _, by=by: x * by)
        for by in (2.0, 4.0, 8.0, 16.0, 0.5, 0.25, 0.125, 0.0625)
    ),
)


def _where(right: Codes, read: Codes, line: str) -> str:
    """Return which lines and which k are wrong, and where their elements stand in the right matrix."""
    wrong = right != read
    lines, along = wrong.any(axis=1), wrong.any(axis=0)
    where = [
        f"{what} {ranges(np.flatnonzero(flags).tolist())}"
        for what, flags in ((f"{line}s", lines), ("k", along))
        if not flags.all()
    ]
    text = f"is wrong in {int(wrong.sum()):,} of {wrong.size:,} elements" + f", {', '.join(where)}" * bool(
        where
    )
    return text + (_in_memory(right, read, line) or _followed(right, read, wrong))


def _in_memory(right: Codes, read: Codes, line: str) -> str:
    """Return at which element of the matrix's memory each is read, where that is linear in both indices.

    Memory is row-major: the rows of A, and those of B along k. Elements outside of the matrix are left open.
    """
    memory = np.ascontiguousarray(right if line == "row" else right.T).reshape(-1)
    values, first, count = np.unique(memory, return_index=True, return_counts=True)
    at = np.searchsorted(values, read).clip(0, len(values) - 1)
    known = (values[at] == read) & (count[at] == 1) & (values[at] != 0)
    across, along = np.nonzero(known)
    if len(across) < max(8, read.size // 8):
        return ""
    places = first[at[known]]
    system = np.stack([across, along, np.ones(len(along))], axis=1)
    found = np.round(np.linalg.lstsq(system, places, rcond=None)[0]).astype(np.int64)
    by_line, by_k, start = found.tolist()
    wanted = np.arange(len(read))[:, None] * by_line + np.arange(read.shape[1]) * by_k + start
    inside = (wanted >= 0) & (wanted < len(memory))
    if min(by_line, by_k) < 0 or (memory[wanted[inside]] != read[inside]).any() or inside.mean() < _INSIDE:
        return ""
    return f"; it is read with a stride of {by_k} along k and {by_line} from {line} to {line}" + (
        f", from element {start} on" * bool(start)
    )


def _followed(right: Codes, read: Codes, wrong: npt.NDArray[np.bool_]) -> str:
    """Return by how much wrong elements are displaced in memory, if most are by the same."""
    flat, places = right.reshape(-1), np.flatnonzero(wrong.reshape(-1))
    values, first, count = np.unique(flat, return_index=True, return_counts=True)
    at = np.searchsorted(values, read.reshape(-1)[places]).clip(0, len(values) - 1)
    held = values[at]
    known = (held == read.reshape(-1)[places]) & (count[at] == 1) & (held != 0)
    if known.mean() < 0.25:
        return ""
    row, column = np.divmod(places[known], right.shape[1])
    there, across = np.divmod(first[at[known]], right.shape[1])
    moved, number = np.unique(np.stack([there - row, across - column], axis=1), axis=0, return_counts=True)
    if number.max() < 0.75 * len(row):
        return "; its values are those of other places"
    down, along = moved[number.argmax()].tolist()
    return f"; most hold the element {down:+d} rows and {along:+d} columns from their place"
