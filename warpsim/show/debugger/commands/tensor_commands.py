"""``print tmem`` and ``info tmem``: tensor memory of the CTA of the focus, and its allocations.

    print tmem[0:4,0:8]              words of lanes 0 to 3, columns 0 to 7
    print tmem[0:4,0:8] as f32       the same as numbers; of f16 two elements a cell
    print tmem[3,5]                  one cell

Knows cells and columns; what a tcgen05.mma has where is tensor_fragments.py. PTX ISA 9.3, section 9.7.17.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ....base.errors import OperandError
from ....isa.layouts.tensor_memory import COLUMNS, LANES
from ....machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ....machine.state.tensor_cells import Columns, TensorMemory
from ....workbench.debugger.travel import Travel
from ....workbench.debugger.value_formatting import check_format, shown
from .matrix_parts import Part, grid, part_of

_SPELLING = re.compile(r"tmem\s*(?P<part>\[[^\]]*\])?(?:\s+as\s+(?P<format>\S+))?")
_SIDE = 8  # lanes and columns that are printed where no part is named


def is_cells(text: str) -> bool:
    """Return whether a text names cells by lane and column, or all of tensor memory."""
    match = _SPELLING.fullmatch(text.strip())
    return match is not None and (match["part"] is None or "," in match["part"])


def cells(session: Travel, text: str, letters: str = "") -> str:
    """Print cells of tensor memory; ``letters`` is a format as in print/x."""
    match = _SPELLING.fullmatch(text.strip())
    assert match is not None
    letters = check_format(match["format"]) if match["format"] else letters or "x"
    _, wave, lane = session.wave()
    memory, cta = TENSOR_MEMORY.of(wave), int(wave.cta[lane])
    part = part_of(match["part"] or "", (LANES, COLUMNS), _default(session, memory.columns[cta]))

    def cell(row: int, column: int) -> str:
        known = memory.written[cta, row, column]
        return shown(memory.cells[cta, row, column], "", letters) if known else "-"

    if part.single:
        row, column = part.rows[0], part.columns[0]
        known = memory.written[cta, row, column]
        word = memory.cells[cta, row, column] if known else None
        return f"tmem[{row},{column}] = {shown(word, '', letters)}"
    lines = grid(part, cell)
    return "\n".join(["lanes down, columns across; - was never written", *lines])


def _default(session: Travel, columns: Columns) -> Part:
    """Return what is printed without brackets: lanes of the warp, from the first allocated column on."""
    if not columns.held:
        raise OperandError("no columns of tensor memory are allocated; print tmem[0:4,0:8] prints some")
    first, lane = min(columns.held), 32 * (session.focus.warp % 4)
    return Part(rows=range(lane, lane + _SIDE), columns=range(first, first + _SIDE))


def allocations(session: Travel) -> Iterator[str]:
    """Yield the allocations of the CTA of the focus, and which of their cells are written."""
    _, wave, lane = session.wave()
    memory, cta = TENSOR_MEMORY.of(wave), int(wave.cta[lane])
    columns = memory.columns[cta]
    for first, size in sorted(columns.held.items()):
        place = f"columns {first}..{first + size - 1}, allocated at line {columns.lines[first]} of the PTX"
        yield f"{place}: {_written_text(memory, cta, first, size)}"
    for first, line in sorted(columns.freed.items()):
        if first not in columns.held:
            yield f"column {first} and those behind it: freed at line {line} of the PTX"
    if columns.relinquished:
        yield f"the right to allocate was relinquished at line {columns.relinquished} of the PTX"


def _written_text(memory: TensorMemory, cta: int, first: int, size: int) -> str:
    """Return which cells of columns are written, in words."""
    known = memory.written[cta, :, first : first + size]
    if not known.any():
        return "nothing is written"
    lanes, own = np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0)) + first
    box = f"lanes {lanes[0]}..{lanes[-1]} of columns {own[0]}..{own[-1]}"
    whole = known[lanes[0] : lanes[-1] + 1, own[0] - first : own[-1] - first + 1].all()
    return f"{box} are written" if whole else f"some cells in {box} are written"
