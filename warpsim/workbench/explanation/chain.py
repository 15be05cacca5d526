"""A product as instructions along k: the operands of each for a tile of D, and D after it.

Knows matrices of codes; walk.py and changes.py interpret the accumulators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.codes import codes_of, matrix_of, scale_codes_of
from ...isa.formats import Format
from ...isa.instruction import Instruction
from ...isa.products import Codes
from ...ptx.qualifiers import on_target
from ...sums.execution.logical_matrices import Matrices, matmul_matrices
from ...sums.execution.pipeline import Undefined


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """The operands of an instruction beside C: A ``(m, k)``, B ``(k, n)`` and perhaps scales, as codes."""

    a: Codes
    b: Codes
    scale_a: Codes | None = None
    scale_b: Codes | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """The instructions along k of the tile that holds an element; ``c`` are the codes that the first adds to.

    ``element`` is the place in the tile, ``corner`` that of the tile in D; ``extent`` is the part of the tile
    in D, the rest is padding.
    """

    form: Instruction
    links: tuple[Link, ...]
    c: Codes
    element: tuple[int, int]
    corner: tuple[int, int]
    extent: tuple[int, int]
    undefined: Undefined = "error"

    def on(self, target: str) -> Instruction:
        """Return the instruction on a target."""
        return on_target(self.form, target)

    def after(self, form: Instruction, link: Link, c: Codes) -> Codes:
        """Return D ``(..., m, n)`` of an instruction, as codes, from C of the same shape."""
        a, b, start = matrix_of(link.a, form.a), matrix_of(link.b, form.b), matrix_of(c, form.c)
        matrices = Matrices(a, b, start, link.scale_a, link.scale_b)
        found = matmul_matrices(form, matrices, undefined=self.undefined)
        return codes_of(found, form.d, "D")

    def along(self, moves: Sequence[tuple[Instruction, Link]], c: Codes) -> list[Codes]:
        """Return D of the tile after each of a range of instructions."""
        found = list[Codes]()
        for form, link in moves:
            c = self.after(form, link, c)
            found.append(c)
        return found

    @property
    def size(self) -> int:
        """Number of elements of D in the tile."""
        return self.extent[0] * self.extent[1]

    def alike(self, tile: Codes, other: Codes) -> int:
        """Return how many elements of D two tiles have in common."""
        rows, columns = self.extent
        return int((tile[:rows, :columns] == other[:rows, :columns]).sum())

    def each(self, form: Instruction, links: Sequence[Link], c: Codes) -> Codes:
        """Return the element's D ``(count,)`` of as many links, each from its own accumulator."""
        row, column = self.element
        rows = np.stack([item.a[row] for item in links]), [item.scale_a for item in links]
        columns = np.stack([item.b[:, column] for item in links]), [item.scale_b for item in links]
        accumulators = np.zeros((len(links), *self.c.shape), c.dtype)
        accumulators[:, row, column] = c
        a, b = _alone(rows[0], row, form.shape.m), _alone(columns[0], column, form.shape.n)
        left = [item[row] for item in rows[1] if item is not None]
        right = [item[:, column] for item in columns[1] if item is not None]
        link = Link(
            a=a,
            b=b.swapaxes(1, 2),
            scale_a=_alone(np.stack(left), row, form.shape.m) if left else None,
            scale_b=_alone(np.stack(right), column, form.shape.n).swapaxes(1, 2) if right else None,
        )
        return self.after(form, link, accumulators)[:, row, column]

    def elements(self, form: Instruction, link: Link, c: Codes) -> Codes:
        """Return the element's D ``(count,)`` of one instruction, from as many accumulators.

        Many accumulators share a tile, each beside the element's row of A and column of B.
        """
        m, n = form.shape.m, form.shape.n
        row, column = self.element
        repeated = Link(
            a=np.repeat(link.a[row : row + 1], m, axis=0),
            b=np.repeat(link.b[:, column : column + 1], n, axis=1),
            scale_a=None if link.scale_a is None else np.repeat(link.scale_a[row : row + 1], m, axis=0),
            scale_b=None
            if link.scale_b is None
            else np.repeat(link.scale_b[:, column : column + 1], n, axis=1),
        )
        tiles = np.pad(c, (0, -len(c) % (m * n))).reshape(-1, m, n)
        return self.after(form, repeated, tiles).reshape(-1)[: len(c)]


def chain_of(
    form: Instruction,
    element: tuple[int, int],
    matrices: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike | None],
    scales: tuple[npt.ArrayLike | None, npt.ArrayLike | None],
    undefined: Undefined = "error",
) -> Chain:
    """Return the instructions that make D[row, column] of A ``(m, k)``, B ``(k, n)`` and C; zeros fill up
    tiles.

    Scales are ``(m, chunks)`` and ``(chunks, n)`` along the whole of k. Raises OperandError.
    """
    (row, column), (A, B, C) = element, matrices
    left, right = _matrix(A, "A"), _matrix(B, "B")
    shape, count = form.shape, _count(form, left, right, element)
    top, first = row // shape.m * shape.m, column // shape.n * shape.n
    rows, columns = slice(top, top + shape.m), slice(first, first + shape.n)
    a = _filled(codes_of(left[rows], form.a, "A"), shape.m, count * shape.k)
    b = _filled(codes_of(right[:, columns], form.b, "B"), count * shape.k, shape.n)
    c = np.zeros((shape.m, shape.n), form.c.code_dtype)
    if C is not None:
        whole = _shaped(_matrix(C, "C"), (left.shape[0], right.shape[1]), "C")
        c = _filled(codes_of(whole[rows, columns], form.c, "C"), shape.m, shape.n)
    parts = _scales(form, *scales, (rows, columns), (left.shape, right.shape), count)
    links = (
        Link(a=a[:, at : at + shape.k], b=b[at : at + shape.k], scale_a=sa, scale_b=sb)
        for at, (sa, sb) in zip(range(0, count * shape.k, shape.k), parts, strict=True)
    )
    return Chain(
        form=form,
        links=tuple(links),
        c=c,
        element=(row - top, column - first),
        corner=(top, first),
        extent=(min(shape.m, left.shape[0] - top), min(shape.n, right.shape[1] - first)),
        undefined=undefined,
    )


def _count(form: Instruction, left: Codes, right: Codes, element: tuple[int, int]) -> int:
    """Return the number of instructions along k; OperandError for A, B or an element that do not fit."""
    (row, column), k = element, int(left.shape[1])
    if not (0 <= row < left.shape[0] and 0 <= column < right.shape[1]):
        raise OperandError(f"D has no element [{row}, {column}]: A is {left.shape}, B is {right.shape}")
    if k != right.shape[0]:
        raise OperandError(f"A is {left.shape} and B is {right.shape}: k is {k} and {right.shape[0]}")
    count = max(-(-k // form.shape.k), 1)
    if count > 1 and form.c != form.d:
        raise OperandError(
            f"{form}: C is {form.c} and D is {form.d}: D of one instruction is not C of the next"
        )
    return count


def _alone(rows: Codes, at: int, count: int) -> Codes:
    """Return each of the chosen rows as a matrix of ``rows`` rows, all others zero."""
    found = np.zeros((len(rows), count, rows.shape[1]), rows.dtype)
    found[:, at] = rows
    return found


def _scales(
    form: Instruction,
    scale_a: npt.ArrayLike | None,
    scale_b: npt.ArrayLike | None,
    tile: tuple[slice, slice],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    count: int,
) -> list[tuple[Codes | None, Codes | None]]:
    """Return the block scales of every instruction; None without block scaling."""
    if form.scale is None:
        if scale_a is not None or scale_b is not None:
            raise OperandError(f"{form} has no block scales")
        return [(None, None)] * count
    if scale_a is None or scale_b is None:
        raise OperandError(f"{form} has block scales: give scale_a= and scale_b=")
    chunks, (m, k), n = form.scale_chunks, shapes[0], shapes[1][1]
    whole = -(-k * chunks // form.shape.k)  # including those of a ragged end
    left = _scale_codes(scale_a, form.scale, (m, whole), "scale_a")[tile[0]]
    right = _scale_codes(scale_b, form.scale, (whole, n), "scale_b")[:, tile[1]]
    left = _filled(left, form.shape.m, count * chunks)
    right = _filled(right, count * chunks, form.shape.n)
    places = range(0, count * chunks, chunks)
    return [(left[:, at : at + chunks], right[at : at + chunks]) for at in places]


def _scale_codes(given: npt.ArrayLike, element: Format, shape: tuple[int, int], what: str) -> Codes:
    return _shaped(scale_codes_of(given, element, what), shape, what)


def _matrix(given: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    array = np.asarray(given)
    if array.ndim != 2:
        raise OperandError(f"{what} has {array.ndim} axes, but a matrix has 2")
    return array


def _shaped(array: npt.NDArray[Any], shape: tuple[int, int], what: str) -> npt.NDArray[Any]:
    if array.shape != shape:
        raise OperandError(f"{what} has shape {array.shape}, but A and B make it {shape}")
    return array


def _filled(codes: Codes, rows: int, columns: int) -> Codes:
    return np.pad(codes, [(0, rows - codes.shape[0]), (0, columns - codes.shape[1])])
