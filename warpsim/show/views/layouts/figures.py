"""The PTX manual's figures of fragments, metadata and block scales, as grids of cells.

A figure is data: cells with a text, a lane and the matrix elements they cover. Drawing is left to
drawing.py (text) and svg.py. A cell is what the manual draws as one box: consecutive elements of one
lane that lie side by side in a row, or below each other in a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ....base.errors import present
from ....isa.families.tcgen05_operands import descriptor_of
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleSelectors
from ....isa.operand_places.places import NO_SCALES, CellPlace, Place, check_operand, places

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One box: a lane's text, what the box holds, and the rows and columns that it covers.

    Rows and columns are those of the figure's matrix: the logical columns of a sparse A that is drawn
    logically, and the chunks of metadata and scales.
    """

    text: str
    lane: int
    places: tuple[Place, ...]
    rows: range
    columns: range

    @property
    def detail(self) -> str:
        """The registers and bits behind the text, and the elements covered."""
        first, last = self.places[0], self.places[-1]
        held = str(first) if first == last else f"{first} to {last.register_name}{last.bit_range}"
        return f"{held}: row {span(self.rows)}, column {span(self.columns)}"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A grid of cells between labelled rows and columns; None where a box stays empty."""

    title: str
    corner: str
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    grid: tuple[tuple[Cell | None, ...], ...]

    @property
    def cells(self) -> Iterator[Cell]:
        """The boxes that are not empty, row by row."""
        return (cell for row in self.grid for cell in row if cell)

    def column_widths(self) -> list[int]:
        """Return the characters that each column needs."""
        columns = zip(self.column_labels, *self.grid, strict=True)
        return [max(len(name), *(len(cell.text) for cell in column if cell)) for name, *column in columns]


def span(numbers: range) -> str:
    """Return ``3`` or ``0..7``."""
    return f"{numbers.start}..{numbers.stop - 1}" if len(numbers) > 1 else str(numbers.start)


def figures(
    instruction: Instruction, operand: str, selector: int = 0, scales: ScaleSelectors = NO_SCALES
) -> tuple[Figure, ...]:
    """Return the figures of one operand: a, b, c, d, e (metadata), scale_a or scale_b.

    Sparse A is drawn twice, as stored and over its logical columns; metadata as chunks and as words;
    m8n8k4 f16 in a figure for each of its four products and wgmma in a figure for each warp. Raises what
    places raises.
    """
    check_operand(instruction, operand)
    found = places(instruction, operand, selector, scales)
    if operand == "e":
        return _metadata_figures(instruction, found, selector)
    if operand.startswith("scale_"):
        return (_scale_figure(instruction, operand, found),)
    drawn: list[Figure] = []
    for part, held in _parts(instruction, found):
        cells = [_fragment_cell(run) for run in _runs(held)]
        stored = ", stored columns" if operand == "a" and instruction.sparse else ""
        drawn.append(_matrix_figure(_title(instruction, operand) + stored + part, cells, "column"))
        if stored:
            logical = [_logical(instruction, cell) for cell in cells]
            title = _title(instruction, operand) + ", logical columns that the elements come from" + part
            drawn.append(_matrix_figure(title, logical, "column"))
    return tuple(drawn)


# --- fragments -------------------------------------------------------------------------------------


def _title(instruction: Instruction, operand: str) -> str:
    sparse = "sparse " if instruction.sparse else ""
    return f"{operand.upper()} of {sparse}{instruction.shape}, .{instruction.format(operand)}"


def _parts(instruction: Instruction, held: Sequence[Place]) -> Iterator[tuple[str, list[Place]]]:
    """Yield the places of each product of m8n8k4 f16 or of each warp of a warpgroup, with its name."""
    if instruction.products > 1:
        for product in range(instruction.products):
            low = 4 * product
            name = f", product {product} (lanes {low}..{low + 3} and {low + 16}..{low + 19})"
            yield name, [place for place in held if place.product == product]
        return
    warps = instruction.lanes // 32
    for warp in range(warps):
        cta = f" of CTA {warp // 4}" if warps > 4 else ""
        low = 32 * (warp % 4)
        name = f", warp {warp % 4}{cta} (lanes {low}..{low + 31})" if warps > 1 else ""
        own = [place for place in held if place.lane // 32 == warp]
        if own:  # lanes of tensor memory may hold copies only
            yield name, own


def _runs(held: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    """Consecutive elements of a lane that continue in one direction, along the row or the column."""
    run: list[Place] = []
    for place in held:
        if run and not _continues(run, place):
            yield tuple(run)
            run = []
        run.append(place)
    yield tuple(run)


def _continues(run: Sequence[Place], place: Place) -> bool:
    last = run[-1]
    step = (place.row - last.row, place.column - last.column)
    if place.lane != last.lane or step not in ((0, 1), (1, 0)):
        return False
    return len(run) == 1 or step == (last.row - run[-2].row, last.column - run[-2].column)


def _fragment_cell(run: Sequence[Place]) -> Cell:
    first, last = run[0], run[-1]
    listed = _places_text(run)
    return Cell(
        text=f"{first.holder}:{{{listed}}}",
        lane=first.lane,
        places=tuple(run),
        rows=range(first.row, last.row + 1),
        columns=range(first.column, last.column + 1),
    )


def _places_text(run: Sequence[Place]) -> str:
    """Return ``a0,a1``, or of tensor memory the columns, ``C0..C7``."""
    cells = isinstance(run[0], CellPlace)
    names = [place.register_name if cells else f"{place.operand}{place.index}" for place in run]
    names = list(dict.fromkeys(names))
    return ",".join(names) if len(names) <= 2 else f"{names[0]}..{names[-1]}"


def _logical(instruction: Instruction, cell: Cell) -> Cell:
    """Return the cell of a sparse A over the whole chunks that its stored elements come from."""
    pattern = present(instruction.pattern, "pattern")
    first, last = cell.columns.start // pattern.stored, (cell.columns.stop - 1) // pattern.stored
    return replace(cell, columns=range(pattern.chunk * first, pattern.chunk * (last + 1)))


def _matrix_figure(title: str, cells: Sequence[Cell], columns: str) -> Figure:
    """Return cells in the rows and columns that they cover."""
    across = sorted({cell.columns for cell in cells}, key=lambda numbers: numbers.start)
    by_rows = sorted(cells, key=lambda cell: (cell.rows.start, cell.columns.start))
    lines = [(rows, tuple(line)) for rows, line in groupby(by_rows, key=lambda cell: cell.rows)]
    grid = []
    for _, line in lines:
        at = {cell.columns: cell for cell in line}
        grid.append(tuple(at.get(numbers) for numbers in across))
    return Figure(
        title=title,
        corner=f"row \\ {columns}",
        row_labels=tuple(span(rows) for rows, _ in lines),
        column_labels=tuple(span(numbers) for numbers in across),
        grid=tuple(grid),
    )


# --- metadata and scales ---------------------------------------------------------------------------


def _metadata_figures(instruction: Instruction, fields: Sequence[Place], selector: int) -> tuple[Figure, ...]:
    """Return which bits describe each chunk of a row, and which chunks each word describes."""
    pattern = present(instruction.pattern, "pattern")
    if instruction.descriptor is not None:
        selector = descriptor_of(instruction).selector
    title = f"Metadata of sparse {instruction.shape}, .{instruction.a}, selector {selector}"
    width = pattern.chunk
    cells = [
        Cell(
            text=place.box,
            lane=place.lane,
            places=(place,),
            rows=range(place.row, place.row + 1),
            columns=range(width * place.column, width * (place.column + 1)),
        )
        for place in fields
    ]
    chunks = _matrix_figure(f"{title}: the bits that describe each chunk of A", cells, "columns")
    return chunks, _words_figure(f"{title}: the chunks [row][columns] that each word describes", cells)


def _words_figure(title: str, cells: Sequence[Cell]) -> Figure:
    """Return a line for each word that is read, its highest bits first."""
    words = {cell: (cell.lane, cell.places[0].register) for cell in cells}
    lanes = sorted(set(words.values()))
    bits = sorted({cell.places[0].low_bit for cell in cells}, reverse=True)
    at = {(words[cell], cell.places[0].low_bit): cell for cell in cells}
    first = {words[cell]: cell.places[0] for cell in cells}
    grid = [
        tuple(
            replace(at[lane, bit], text=f"[{span(at[lane, bit].rows)}][{span(at[lane, bit].columns)}]")
            for bit in bits
        )
        for lane in lanes
    ]
    return Figure(
        title=title,
        corner="word \\ bits",
        row_labels=tuple(_word_name(first[lane]) for lane in lanes),
        column_labels=tuple(at[lanes[0], bit].places[0].bit_range for bit in bits),
        grid=tuple(grid),
    )


def _word_name(place: Place) -> str:
    return f"{place.holder} {place.register_name}"


def _scale_figure(instruction: Instruction, operand: str, held: Sequence[Place]) -> Figure:
    cells = [
        Cell(
            text=place.box,
            lane=place.lane,
            places=(place,),
            rows=range(place.row, place.row + 1),
            columns=range(place.column, place.column + 1),
        )
        for place in held
    ]
    side = operand.removeprefix("scale_").upper()
    width = instruction.shape.k // instruction.scale_chunks
    title = f"Scales of {side}, {instruction.shape}, .{instruction.scale}: chunks of {width} along k"
    figure = _matrix_figure(title, cells, "chunk")
    return figure if side == "A" else replace(figure, corner="chunk \\ column")


# --- data ------------------------------------------------------------------------------------------


def figure_document(figure: Figure) -> Document:
    """Return a figure as JSON-ready data: its title, and each box with lane, register, bits and elements."""
    return {"title": figure.title, "cells": [_cell_document(cell) for cell in figure.cells]}


def _cell_document(cell: Cell) -> Document:
    return {
        "text": cell.text,
        "lane": cell.lane,
        "rows": [cell.rows.start, cell.rows.stop - 1],
        "columns": [cell.columns.start, cell.columns.stop - 1],
        "elements": [place_document(place) for place in cell.places],
    }


def place_document(place: Place) -> Document:
    """Return a place as JSON-ready data."""
    document: Document = {
        "operand": place.operand,
        "lane": place.lane,
        "register": place.register,
        "low_bit": place.low_bit,
        "bits": place.bits,
        "row": place.row,
        "column": place.column,
    }
    return document | ({"product": place.product} if place.product else {})
