"""What wrong rows and columns of D share: lanes, registers, metadata words, rows, scales.

Knows where the operands of an instruction are. Does not know what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.fragments import metadata_map
from ..library.setting import Index, Setting
from .remark import Remark, RemarkKind, remark
from .wrong_elements import ranges

Mask = npt.NDArray[np.bool_]
_MOST = 0.5  # of the wrong rows' elements: so many must be wrong


def shared_causes(setting: Setting, wrong: Mask) -> Iterator[Remark]:
    """Yield what the wrong rows of D ``(m, n)`` share, and the wrong columns, unless all are wrong."""
    for axis, name, describe in ((1, "row", _of_rows), (0, "column", _of_columns)):
        some = np.asarray(wrong.any(axis=axis))
        part = wrong[some] if axis else wrong[:, some]
        if not some.any() or some.all() or part.mean() < _MOST:
            continue
        if parts := list(describe(setting, some)):
            which = f"{name}{'s'[: int(some.sum()) != 1]} {ranges(np.flatnonzero(some).tolist())}"
            yield remark(RemarkKind.SHARED, which=which, parts="; ".join(parts))


def _of_rows(setting: Setting, rows: Mask) -> Iterator[str]:
    form = setting.instruction
    yield from _held(setting, "a", rows, 0)
    if form.sparse:
        field = metadata_map(form, setting.selector)
        yield from _fields(field[rows[field[:, 3]]], field[~rows[field[:, 3]]])
    if form.scale:
        lanes = form.scales("a").lanes_of(setting.scale_selectors.thread_id_a)
        yield f"scales of A in lane{_several(lanes[rows])}"


def _of_columns(setting: Setting, columns: Mask) -> Iterator[str]:
    form = setting.instruction
    if form.products > 1:
        return
    yield from _held(setting, "b", columns, 1)
    if form.scale:
        lanes = form.scales("b").lanes_of(setting.scale_selectors.thread_id_b)
        yield f"scales of B in lane{_several(lanes[columns])}"


def _held(setting: Setting, operand: str, some: Mask, axis: int) -> Iterator[str]:
    """Yield the registers of an operand that hold only elements of these rows or columns."""
    if setting.in_shared(operand):
        count = np.flatnonzero(some).tolist()
        yield f"row{'s'[: len(count) != 1]} {ranges(count)} of the tile of {operand.upper()} in shared memory"
        return
    form = setting.instruction
    held = form.in_registers(operand)
    layout = held.layout
    index = layout.column_index if axis else layout.row_index
    elements = some[index].reshape(*held.shape, -1)
    inside = np.asarray(elements.all(axis=2))
    if text := places_text(inside, operand):
        yield text


def places_text(inside: Mask, operand: str) -> str:
    """Return ``a0, a2 of lanes 20-23`` for registers ``(lanes, registers)``; empty if they are irregular."""
    lanes, registers = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if not inside.any() or inside.sum() != len(lanes) * len(registers):
        return ""
    holders = "all lanes" if len(lanes) == len(inside) else f"lane{_several(lanes)}"
    if len(registers) == inside.shape[1]:
        return f"{operand.upper()} in {holders}"
    return f"{', '.join(f'{operand}{number}' for number in registers.tolist())} of {holders}"


def _fields(inside: Any, outside: Any) -> Iterator[str]:
    """Yield whole metadata words, or a range of bits of them."""
    lanes = np.unique(inside[:, 0])
    shared = np.isin(lanes, outside[:, 0])
    if not shared.any():
        yield f"metadata words of lane{_several(lanes)}"
        return
    low, high = int(inside[:, 1].min()), int((inside[:, 1] + inside[:, 2]).max()) - 1
    if not ((outside[:, 1] >= low) & (outside[:, 1] <= high) & np.isin(outside[:, 0], lanes)).any():
        yield f"bits {low}-{high} of the metadata words of lane{_several(lanes)}"


def _several(lanes: Index) -> str:
    found = np.unique(lanes).tolist()
    return f"{'s'[: len(found) != 1]} {ranges(found)}"
