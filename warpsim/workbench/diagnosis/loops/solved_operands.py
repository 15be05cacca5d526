"""Operands of a loop as they were read, solved from D line by line, beside the right operands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....isa.codes import codes_of, matrix_of
from ....isa.formats import Format
from ....isa.products import Codes
from ....sums.products.gemm import gemm
from ..dumps.closeness import numbers
from ..locate.changed_lines import described, nearest_codes
from ..solving.lines import Lines, Solved, least_squares
from ..solving.product_loops import Loop, Matrix
from ..solving.step_causes import Solution

_LARGEST = 1 << 20  # elements of an operand


def of_operands(loop: Loop, wanted: Codes, near: Matrix) -> Iterator[Solution]:
    """Yield A, and B, as they were read; nothing of scaled and sparse forms, nor of infinite values."""
    form, (m, n) = loop.form, loop.shape
    if form.scale is not None or form.sparse:
        return
    k = np.asarray(loop.given.A).shape[1]
    a, b, c = (
        numbers(loop.a[:m, :k], form.a),
        numbers(loop.b[:k, :n], form.b),
        numbers(loop.c[:m, :n], form.c),
    )
    rest = numbers(wanted, form.d) - c
    if not all(np.isfinite(x).all() for x in (a, b, rest)):
        return
    for name, other, lines, bound, element, right in (
        ("A", b, rest, near, form.a, loop.a[:m, :k]),
        ("B", a.T, rest.T, near.T, form.b, loop.b[:k, :n].T),
    ):
        if element.bits > 16 or right.size > _LARGEST:
            continue
        solved = least_squares(Lines.of(other, lines, bound))
        codes = None if solved is None else settled(solved, (np.ascontiguousarray(right), element))
        if (
            codes is None
            or (np.abs(_values(codes, element) @ other - lines) > 4 * bound * max(1, k / 16)).any()
        ):
            continue
        text, rule = described(name, np.ascontiguousarray(right), codes, element)
        yield Solution(
            text=f"{text} (solved from D)",
            advice=f"compare with the addresses and the order in which {name} is loaded",
            kind="operand",
            facts={"operand": name},
            computed=(lambda n=name, x=codes: _with(loop, n, x),),  # type: ignore[misc]
            is_rule=rule,
        )


def settled(solved: Solved, right: tuple[Codes, Format]) -> Codes | None:
    """Return the codes nearest to solved values; those of the right matrix where within the error.

    None where values are not finite.
    """
    known, element = right
    values, off = (x.reshape(known.shape) for x in solved)
    held = _values(np.unique(known), element)
    held = np.sort(held[np.isfinite(held)])
    at = np.searchsorted(held, values).clip(1, len(held) - 1)
    below, above = held[at - 1], held[at]
    near = np.where(values - below < above - values, below, above)
    codes = nearest_codes(np.where(np.abs(near - values) <= off, near, values), element)
    return codes if np.isfinite(_values(codes, element)).all() else None


def _values(codes: Codes, element: Format) -> Matrix:
    return np.asarray(matrix_of(codes, element), np.float64)


def _with(loop: Loop, name: str, codes: Codes) -> Codes:
    """Return D of all tiles with an operand as it was read."""
    form, given = loop.form, loop.given
    read: dict[str, Any] = {"A": given.A, "B": given.B}
    lines = codes if name == "A" else np.ascontiguousarray(codes.T)
    read[name] = matrix_of(lines, form.a if name == "A" else form.b)
    return loop.tiles_of(codes_of(gemm(form, read["A"], read["B"], given.C), form.d, "D"))
