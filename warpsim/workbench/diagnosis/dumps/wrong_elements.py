"""Where D is wrong: the shape of the set of wrong elements, in rows and columns or in lanes and registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from ....isa.fragments import metadata_map
from ....isa.instruction import Instruction
from ..library.setting import Index, Setting

Mask = Any  # npt.NDArray[np.bool_], which its own methods do not return


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """The wrong elements of D over all tiles.

    ``rows`` and ``columns`` (of products stacked along the rows) have a wrong element, and so have
    ``lanes`` and ``registers``. ``text`` describes the set as simply as it can be.
    """

    count: int
    total: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    lanes: tuple[int, ...]
    registers: tuple[int, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def wrong_elements(instruction: Instruction, mask: Mask) -> Wrong:
    """Return the pattern of a mask ``(tiles, lanes * registers * slots)`` in the order of the registers."""
    held = instruction.in_registers("d")
    layout = held.layout
    anywhere = mask.any(axis=0).reshape(layout.lanes, -1)
    matrix = layout.collect(anywhere)
    words = anywhere.reshape(*held.shape, -1)
    return Wrong(
        count=int(mask.sum()),
        total=mask.size,
        rows=_where(matrix.any(axis=1)),
        columns=_where(matrix.any(axis=0)),
        lanes=_where(anywhere.any(axis=1)),
        registers=_where(words.any(axis=(0, 2))),
        text=_text(matrix, words),
    )


def _where(flags: Mask) -> tuple[int, ...]:
    return tuple(int(index) for index in np.flatnonzero(flags))


def _text(matrix: Mask, words: Mask) -> str:
    """Return the first description that fits exactly, or else the rows and columns concerned."""
    if not matrix.any():
        return "nothing wrong"
    if matrix.all():
        return "every element wrong"
    candidates: tuple[tuple[Mask, tuple[str, str]], ...] = (
        (matrix, ("row", "column")),
        (words.any(axis=2), ("lane", "register")),
        (words.any(axis=0), ("register", "half")),
    )
    for mask, axes in candidates:
        if _is_product(mask) and mask.sum() * (matrix.size // mask.size) == matrix.sum():
            first, second = mask.any(axis=1), mask.any(axis=0)
            if second.all():
                return f"{_axis_text(first, axes[0])} wrong, {axes[1]}s all alike"
            if first.all():
                return f"{_axis_text(second, axes[1])} wrong, {axes[0]}s all alike"
            return f"{_axis_text(second, axes[1])} of {_axis_text(first, axes[0])} wrong"
    part = f"{int(matrix.sum())} of {matrix.size} elements wrong"
    return f"{part}, in {_axis_text(matrix.any(axis=1), 'row')}, {_axis_text(matrix.any(axis=0), 'column')}"


def _is_product(mask: Mask) -> bool:
    return bool((np.outer(mask.any(axis=1), mask.any(axis=0)) == mask).all())


def _axis_text(flags: Mask, name: str) -> str:
    if flags.all():
        return f"every {name}"
    indices = _where(flags)
    return f"{name}{'s'[: len(indices) != 1]} {ranges(indices)}"


def ranges(indices: Sequence[int]) -> str:
    """Return ``0-3, 8, 10-11``; a regular step as ``0, 4, ..., 28``."""
    steps = {after - before for before, after in pairwise(indices)}
    if len(indices) > 3 and len(steps) == 1 and steps != {1}:
        return f"{indices[0]}, {indices[1]}, ..., {indices[-1]}"
    parts = []
    for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
        members = [index for _, index in run]
        parts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ", ".join(parts)


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


class RemarkKind(Enum):
    """What a remark states; the value is the sentence, with the names of its facts."""

    ROWS = (
        "D's rows are permuted: row r holds what belongs in row {order}[r]; {moved} of {count} are elsewhere"
    )
    COLUMNS = (
        "D's columns are permuted: column j holds what belongs in column {order}[j]; "
        "{moved} of {count} are elsewhere"
    )
    ELEMENTS = "D is a permutation of the expected values{count}: {first}, …"
    FUNCTION = "D is the expected result {function}"
    FUNCTION_UNKNOWN = "D is a function of each expected value, whatever its place: {pairs}"
    FUNCTION_FIRST = "D is A·B {function}, and C added then: the activation comes before C (a bias)"
    MASKED = (
        "D is {value:g} in all elements {side} the diagonal{first}, and right elsewhere: a triangle is masked"
    )
    SOLVED = "solved from D: {what}"
    NARROWED = "D is the expected result rounded to {format} before it was stored"
    TRUNCATED = "D is the expected result truncated (rounded toward zero) to {format}, not to nearest"
    ROUNDINGS = (
        "D is right but for roundings: {count} of {total} elements are off, "
        "by at most {most:.6g} of the largest"
    )
    MULTIPLE = "D is {factor:.6g} times what was expected (D times {factor:.6g}): alpha, or a scale"
    PRODUCTS_MULTIPLE = "D is {factor:.6g} times A·B, without C: alpha, or a scale"
    FACTORS = (
        "{what} is off by a factor of its own in each {axis}: a scale per {axis}, "
        "from {low:.6g} to {high:.6g}"
    )
    ALPHA_BETA = "D is {alpha:.6g} times A·B plus {beta:.6g} times C: alpha and beta"
    C_MISSING = "C was not added"
    C_MULTIPLE = "D - A·B is C times {factor:.6g} (beta)"
    C_CONSTANT = "D - A·B is {level:.6g} everywhere: not what was passed, as if C were {level:.6g}"
    C_UNRELATED = (
        "D - A·B has nothing to do with C: what is added to the products is something else (garbage in the "
        "accumulators, or C from elsewhere)"
    )
    BIAS = "D is {level:.6g} more than expected everywhere: a bias"
    BIASES = "D differs from the expected by the same in each {axis}: a bias per {axis}"
    ZERO_POINT = "{operand}: zero point: every element of {operand} is {level:.6g} more than was passed"
    ZERO_POINTS = "A and B: zero points: A is {a:.6g} more, and B {b:.6g} more than was passed"
    SHARED = "behind the wrong {which}: {parts}"


_VAGUE = {RemarkKind.FUNCTION_UNKNOWN, RemarkKind.ELEMENTS, RemarkKind.C_UNRELATED}
_OF_POSITIONS = {RemarkKind.ROWS, RemarkKind.COLUMNS, RemarkKind.SHARED}


@dataclass(frozen=True)
class Remark:
    """One remark; ``place`` names the tile of a larger product that it is about."""

    kind: RemarkKind
    facts: Mapping[str, object]
    place: str = ""

    def __str__(self) -> str:
        return self.place + self.kind.value.format(**self.facts)

    @property
    def is_certain(self) -> bool:
        """Whether the remark says how D came about, so that no further search is needed."""
        return self.kind not in _VAGUE

    @property
    def explains_values(self) -> bool:
        """Whether the remark says how the values of D came about: pairs of mistakes need not be tried."""
        return self.is_certain and self.kind not in _OF_POSITIONS | {RemarkKind.ROUNDINGS}


def remark(kind: RemarkKind, **facts: object) -> Remark:
    """Return a remark with these facts."""
    return Remark(kind, facts)
