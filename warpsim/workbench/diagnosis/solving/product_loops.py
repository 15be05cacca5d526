"""Loops along k: a product cut into steps of one instruction and tiles of D, everything as registers.

Knows steps and tiles, and what some steps make of C, exactly, or add to a tile, in ordinary numbers. Operands
of a wgmma in shared memory are tiles of codes. Does not know mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.codes import codes_of, matrix_of, scale_codes_of, values_of, zero_ranks
from ....isa.fragments import codes_from, registers_of
from ....isa.instruction import Instruction
from ....isa.products import Codes
from ....isa.sparsity import compress
from ....isa.warps import WARP
from ....sums.execution.interface import pack_metadata
from ..dumps.dump_comparison import numbers
from ..library.arithmetic_mistakes import WHOLE, Arithmetic, Part
from ..library.setting import Registers, Setting, SharedTiles

Matrix = npt.NDArray[np.float64]
Step = tuple[Registers, Arithmetic]  # what an instruction reads, of all tiles, and what it computes
_WORD = 4  # scales of a word
_LISTED = 4  # tiles


@dataclass(frozen=True, kw_only=True)
class Given:
    """The matrices of a product as they came; scales ``(m, chunks)`` and ``(chunks, n)``."""

    A: Any
    B: Any
    C: Any = None
    scale_a: Any = None
    scale_b: Any = None

    @property
    def scales(self) -> dict[str, Any]:
        """Those there are."""
        both = {"scale_a": self.scale_a, "scale_b": self.scale_b}
        return {name: codes for name, codes in both.items() if codes is not None}


@dataclass(frozen=True, kw_only=True)
class View:
    """The tile on which candidates are judged, or a part of it."""

    tile: int
    part: Part = WHOLE


class Loop:
    """A product cut into steps of one instruction and tiles of D, everything as registers.

    A of a wgmma lies in shared memory like B, unless ``a_in_registers``.
    """

    def __init__(self, form: Instruction, given: Given, *, a_in_registers: bool = False) -> None:
        self.form, self.given = form, given
        m, n, k = form.shape.m, form.shape.n, form.shape.k
        a, b = codes_of(given.A, form.a, "A"), codes_of(given.B, form.b, "B")
        self.shape = a.shape[0], b.shape[1]
        c = codes_of(given.C, form.c, "C") if given.C is not None else np.zeros(self.shape, form.c.code_dtype)
        self.tail = a.shape[1] % k
        self.a, self.b, self.c = _padded(a, m, k), _padded(b, k, n), _padded(c, m, n)
        self.steps, self.rows, self.columns = self.a.shape[1] // k, len(self.a) // m, self.b.shape[1] // n
        shared = SharedTiles(a=None if a_in_registers else 0, b=0, memory_bytes=0)
        self.setting = Setting(instruction=form, tiles=shared if form.lanes > WARP else None)

    @cached_property
    def registers(self) -> Registers:
        """``(steps, tiles, lanes, registers)`` of a, b, e and the scales; tiles row after row. C is
        ``(tiles, …)``, a and b in shared memory ``(steps, tiles, m or n, k)``."""
        a = _blocks(self.a, self.rows, self.steps).swapaxes(0, 1)[:, :, None]
        b = _blocks(self.b, self.steps, self.columns)[:, None]
        found: Registers = {}
        if self.form.pattern is not None:
            ranks = zero_ranks(matrix_of(a, self.form.a), self.form.a)
            a, indices = compress(a, ranks, self.form.pattern)
            found["e"] = pack_metadata(self.form, indices, 0)
        found |= {name: self._held(name, codes) for name, codes in (("a", a), ("b", b))}
        found |= self._scales()
        tiles = self.rows * self.columns
        whole = self.steps, self.rows, self.columns
        return {
            name: np.broadcast_to(words, (*whole, *words.shape[3:])).reshape(
                self.steps, tiles, *words.shape[3:]
            )
            for name, words in found.items()
        }

    def _held(self, name: str, codes: Codes) -> Any:
        """Return registers, or a tile in shared memory: B's is its transpose."""
        if not self.setting.in_shared(name):
            return registers_of(codes, self.form, name)
        return np.ascontiguousarray(codes if name == "a" else codes.swapaxes(-1, -2))

    def _scales(self) -> Registers:
        """Return words of scales ``(steps, rows or 1, columns or 1, lanes, 1)``.

        Byte 0 has the step's first chunk, and the others the rest of its four chunks, in a circle: that is
        what another byte id reads. All lanes of a quad hold the scales of B's column, lanes 2 and 3 those
        that lanes 0 and 1 have of A's rows.
        """
        form = self.form
        if form.scale is None:
            return {}
        a, b = self.scale_lines
        lane = np.arange(WARP)
        held = {"scale_a": (a, self.rows, form.shape.m, lane // 4 + 8 * (lane % 2))}
        held["scale_b"] = (b, self.columns, form.shape.n, lane // 4)
        found: Registers = {}
        for name, (codes, tiles, height, row) in held.items():
            codes = np.pad(codes, [(0, tiles * height - len(codes)), (0, -codes.shape[1] % _WORD + _WORD)])
            first = np.arange(self.steps)[:, None] * form.scale_chunks
            each = codes[
                :, (first // _WORD * _WORD + (first + np.arange(_WORD)) % _WORD)
            ]  # (rows, steps, bytes)
            words = np.ascontiguousarray(each).view(np.uint32).reshape(tiles, height, self.steps, 1)
            words = words[:, row].transpose(2, 0, 1, 3)  # (steps, tiles, lanes, 1)
            found[name] = words[:, :, None] if name == "scale_a" else words[:, None]
        return found

    @cached_property
    def scale_lines(self) -> tuple[Codes, Codes]:
        """Codes of the scales ``(m, chunks)`` of A and ``(n, chunks)`` of B. Raises for other forms."""
        element = present(self.form.scale, "scale")
        a = scale_codes_of(self.given.scale_a, element, "scale_a").astype(np.uint8)
        return a, scale_codes_of(self.given.scale_b, element, "scale_b").astype(np.uint8).T

    def with_matrices(self, **read: Any) -> Loop:
        """Return the loop of other matrices A and B of the same shape."""
        return Loop(self.form, replace(self.given, **read))

    @cached_property
    def accumulators(self) -> Any:
        """``(tiles, lanes, registers)`` of C."""
        return self.accumulators_of(self.c)

    @cached_property
    def c_values(self) -> Matrix:
        """``(tiles, m, n)`` of C."""
        return numbers(codes_from(self.accumulators, self.form, "c"), self.form.c)

    def times_c(self, factor: float) -> Any:
        """Return registers of C times a factor."""
        if factor == 1:
            return self.accumulators
        element = self.form.c
        with np.errstate(all="ignore"):
            c = (self.c_values * factor).astype(element.dtype)
        return registers_of(codes_of(c, element, "C"), self.form, "c")

    def plus(self, codes: Codes, values: Matrix) -> Codes:
        """Return codes of D with values added in its own type."""
        element = self.form.d
        with np.errstate(all="ignore"):
            total = matrix_of(codes, element) + values.astype(element.dtype)
            return codes_of(np.asarray(total, element.dtype), element, "D")

    def accumulators_of(self, c: Codes) -> Any:
        """Return ``(tiles, lanes, registers)`` of codes like C's."""
        blocks = _blocks(_padded(c, self.form.shape.m, self.form.shape.n), self.rows, self.columns)
        words = registers_of(blocks, self.form, "c")
        return words.reshape(-1, *words.shape[2:])

    def tiles_of(self, codes: Codes) -> Codes:
        """Return ``(tiles, m, n)`` of a matrix like D."""
        form = self.form
        blocks = _blocks(_padded(codes, form.shape.m, form.shape.n), self.rows, self.columns)
        return blocks.reshape(-1, form.shape.m, form.shape.n)

    def named(self, tiles: Sequence[int]) -> str:
        """Return tiles by row and column, the first few."""
        shown = ", ".join(f"({at // self.columns}, {at % self.columns})" for at in tiles[:_LISTED])
        return shown + ", …" * (len(tiles) > _LISTED)

    def chain(self, steps: Sequence[Step], c: Any) -> Codes:
        """Return codes ``(..., tiles, m, n)`` of D of these steps, from registers of C."""
        for registers, arithmetic in steps:
            codes = arithmetic.simulate(self.setting, {**registers, "c": c})
            c = registers_of(codes, self.form, "d")
        return codes_from(c, self.form, "d")

    def plain(self) -> list[Step]:
        """Return the steps as they should be."""
        each = ({name: words[at] for name, words in self.registers.items()} for at in range(self.steps))
        return [(registers, Arithmetic(instruction=self.form)) for registers in each]

    def contributions(self, view: View, arithmetic: Arithmetic | None = None, **changed: Any) -> Matrix:
        """Return ``(steps, m, n)``: what each step adds; ``changed`` registers are ``(steps, …)``."""
        registers = {name: words[:, view.tile] for name, words in self.registers.items()} | changed
        registers["c"] = np.zeros_like(self.accumulators[:1])
        how = arithmetic or Arithmetic(instruction=self.form)
        return numbers(how.simulate(self.setting, registers, view.part), self.form.d)


def _padded(codes: Codes, rows: int, columns: int) -> Codes:
    return np.pad(codes, [(0, -codes.shape[0] % rows), (0, -codes.shape[1] % columns)])


def _blocks(codes: Codes, rows: int, columns: int) -> Codes:
    """Return ``(rows, columns, height, width)`` of a matrix in so many blocks."""
    height, width = codes.shape[0] // rows, codes.shape[1] // columns
    return codes.reshape(rows, height, columns, width).swapaxes(1, 2)


def scaled_matrices(loop: Loop) -> tuple[Matrix, Matrix]:
    """Return A and B as numbers, filled up to whole tiles, with their scales multiplied in."""
    of_a, of_b = scale_matrices(loop)
    return numbers(loop.a, loop.form.a) * of_a, numbers(loop.b, loop.form.b) * of_b


def scale_matrices(loop: Loop) -> tuple[Matrix, Matrix]:
    """Return the scales of every element of A and B, filled up to whole tiles; 1 without scales."""
    form = loop.form
    if form.scale is None:
        return np.ones(loop.a.shape), np.ones(loop.b.shape)
    for_a, for_b = (values_of(codes, form.scale) for codes in loop.scale_lines)
    return _stretched(for_a, loop.a.shape), _stretched(for_b, loop.b.T.shape).T


def _stretched(scales: Matrix, shape: tuple[int, ...]) -> Matrix:
    """Return scales ``(lines, chunks)`` for every element of lines ``(lines, k)``."""
    lines, k = shape
    wide = np.repeat(scales, k // scales.shape[1], axis=1)
    return np.asarray(np.pad(wide, [(0, lines - len(wide)), (0, k - wide.shape[1])]))
