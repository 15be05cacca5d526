"""Which element of the product each element of an output is: found by giving D other values.

Every element of D is given a code of the row of A and the column of B that it is the product of; where the
output holds the code says where the kernel puts it. A cause is claimed where every wrong element is what is
expected of the row and column that it was found to be of. Knows outputs that hold D as it is; does not know
what a kernel computes from D.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ....base.errors import Location
from ....isa.codes import codes_of
from ....isa.fragments import registers_of
from ....isa.operand_places.placements import Inputs
from ....isa.products import Operands
from ....programs.launch.array_agreement import agree
from ..origins.element_origins import OperandOrigins, Origins
from ..origins.loaded_operands import layout_of, row_length
from ..origins.packing_checks import PackingFinding
from ..origins.tile_patterns import permutation_text
from .hypotheses import number_of
from .launch_causes import Cause, causes_of
from .matrix_hooks import MatrixHook, MatrixStep
from .output_errors import OutputError
from .tried_causes import Trial

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]
Lines = Mapping[
    tuple[int, tuple[int, ...]], tuple[Numbers, Numbers]
]  # by statement and execution: of A, of B
Cut = Literal["nowhere", "after", "before"]  # values below zero, of what is stored or of the product alone
CUTS: tuple[Cut, ...] = ("nowhere", "after", "before")
_BITS, _BASE = 4, 16  # of a digit: f16 and bf16 keep it, with something added to it
_LEVEL = 64.0  # by which D is larger than what may be added
_NEAR = 2.0**-6
_ODD = 0x9E3779B1  # of a hash
_GLOBAL_STORES = ("st.global", "st.volatile.global", "wmma.store", "red.global")
_TILES = (8, 16, 32, 64, 128)
_IN_TILE = "the operands are in the order of their layouts, D is not stored in the order of its own"
_OF_TILES = (
    "a tile is of other rows or columns, in the loads of A and B, in the registers added to or in the stores"
)
_FIX_IN_TILE = "store each element of D at the row and column that its layout has for lane and register"
_FIX_OF_TILES = (
    "use the same numbers of tiles in the loads of A and B, in the registers of D and in its stores"
)
_BY_CODES = (
    "the kernel was executed with chosen values in place of D, which show where each element is stored"
)
_PROOF = "every wrong element is what is expected of the row and column that it was found to be of"


@dataclass(frozen=True, kw_only=True)
class Stored:
    """``rows`` and ``columns`` of the product that the elements of an output are; -1 where not known.

    ``added`` is what each element of the output holds besides the product, ``gain`` what it grows by with D,
    and ``cut`` where negative values are set to zero.
    """

    rows: Numbers
    columns: Numbers
    added: Array
    gain: float
    cut: Cut = "nowhere"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The only output that is wrong, the lines of A and B of each execution, and where they are stored."""

    error: OutputError
    lines: Lines
    stored: Stored


class Coded(MatrixHook):
    """A launch whose D has values by row of A and column of B."""

    def __init__(self, lines: Lines, values: Array) -> None:
        super().__init__()
        self._lines, self._values = lines, values

    def of_registers(self, step: MatrixStep, inputs: Inputs) -> Array:
        """Return D of mma and wgmma."""
        return registers_of(self._codes(step), step.form, "d")

    def of_fragments(self, step: MatrixStep, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma."""
        return self._codes(step)

    def of_operands(self, step: MatrixStep, operands: Operands) -> Array:
        """Return D of tcgen05.mma."""
        return self._codes(step)

    def _codes(self, step: MatrixStep) -> Array:
        values = np.zeros((len(step.places), *step.shape))
        for number, place in enumerate(map(tuple, step.places.tolist())):
            if (step.pc, place) in self._lines:
                values[number] = self._values[np.ix_(*self._lines[step.pc, place])]
        return codes_of(values.astype(step.form.d.dtype), step.form.d, "D")


def measured(trial: Trial, origins: Origins, errors: Sequence[OutputError]) -> Measured | None:
    """Return where the elements of the product are stored; None where that is not seen.

    None too where the origins of operands show a mistake: that says more.
    """
    lines = {} if origins.findings else _lines(trial, origins)
    if len(errors) != 1 or not lines or errors[0].wrong.ndim != 2:
        return None
    found = stored(trial, lines, errors[0])
    return None if found is None else Measured(error=errors[0], lines=lines, stored=found)


def stored_causes(trial: Trial, origins: Origins, seen: Measured) -> list[Cause]:
    """Return what puts the elements of an output elsewhere, if that explains all that is wrong with it."""
    found = seen.stored
    if not _explains(found, seen.error):
        return []
    at_fault = [*_disordered(origins, found)]
    if at_fault:
        return [*causes_of(trial.launch, at_fault, f"{_BY_CODES}; {_PROOF}")]
    return [_of_store(trial, found, seen.error, _within_tiles(found, seen.lines))]


def stored(trial: Trial, lines: Lines, error: OutputError) -> Stored | None:
    """Return which element of the product each element of an output is; None where that is not seen.

    What the output holds besides, such as C or a bias, is subtracted; a factor is divided by. Negative values
    may be set to zero: the digits are positive.
    """
    sizes = [max(int(pair[side].max()) for pair in lines.values()) + 1 for side in (0, 1)]
    shape = max(sizes[0], error.wrong.shape[0]), max(sizes[1], error.wrong.shape[1])
    numbers = np.arange(shape[0] * shape[1]).reshape(shape)
    digits = -(-(numbers.size - 1).bit_length() // _BITS)
    planes = [numbers >> _BITS * digit & _BASE - 1 for digit in range(digits)]
    plain = [np.full(shape, value) for value in (-2, -1, 0, 1)]
    seen = [_seen(trial, lines, plane, error) for plane in (*plain, *planes, _hash(numbers))]
    given = [values for values in seen if values is not None]
    if len(given) < len(seen) or not all(np.isfinite(values).all() for values in given):
        return None
    negative, zero, unit, double, *others = given
    gain = float(np.median(double - unit))
    if not gain or np.abs(double - unit - gain).max() > _NEAR * abs(gain):
        return None
    added = zero if np.abs(unit - zero - gain).max() <= _NEAR * abs(gain) else unit - gain
    cut = next((cut for cut in CUTS if _is_cut(cut, gain, added, (negative, zero))), None)
    if cut is None:
        return None
    *read, check = ((values - unit) / gain for values in others)
    exact = np.all([np.abs(values - np.round(values)) < _NEAR * _BASE for values in (*read, check)], axis=0)
    found = sum(np.round(values).astype(np.int64) << _BITS * digit for digit, values in enumerate(read))
    inside = exact & (found >= 0) & (found < numbers.size)
    inside &= _hash(np.asarray(found)) == np.round(check)
    rows, columns = np.divmod(found, shape[1])
    rows, columns = (np.where(inside, places, -1) for places in (rows, columns))
    return Stored(rows=rows, columns=columns, added=added, gain=gain / _LEVEL, cut=cut)


def _is_cut(cut: Cut, gain: float, added: Array, seen: tuple[Array, Array]) -> bool:
    """Return whether an output holds of a negative D, and of zero, what values cut off so come to."""
    made = (cut_off(cut, np.full_like(added, level), added) for level in (-gain, 0.0))
    return all(np.abs(x - y).max() <= _NEAR * abs(gain) for x, y in zip(made, seen, strict=True))


def cut_off(cut: Cut, scaled: Array, added: Array) -> Array:
    """Return the product with its factor and the addend, negative values set to zero where ``cut`` says."""
    if cut == "before":
        return np.maximum(scaled, 0) + added
    return np.maximum(scaled + added, 0) if cut == "after" else scaled + added


def _hash(numbers: Numbers) -> Numbers:
    """Return digits that differ from those of the numbers: what is computed of several elements has none."""
    mixed: Numbers = (numbers * _ODD & (1 << 32) - 1) >> 32 - _BITS
    return mixed


def _seen(trial: Trial, lines: Lines, digits: Numbers, error: OutputError) -> Array | None:
    """Return what an output holds of digits; None where the launch does not end so."""
    attempt = trial.launch.attempt(checks="off", observers=(Coded(lines, _LEVEL * (digits + 1.0)),))
    return None if attempt.error is not None else attempt.arrays[error.argument].astype(np.float64)


def _explains(found: Stored, error: OutputError) -> bool:
    """Return whether every wrong element is of another place, and is what is expected there."""
    rows, columns = found.rows[error.wrong], found.columns[error.wrong]
    inside = (rows >= 0) & (rows < error.wrong.shape[0]) & (columns >= 0) & (columns < error.wrong.shape[1])
    if not inside.all():
        return False
    given, expected = error.given[error.wrong], error.expected[rows, columns]
    if not found.added.any():
        return bool(agree(given, expected, error.tolerance).all())
    moved = expected.astype(np.float64) - found.added[rows, columns] + found.added[error.wrong]
    return bool(error.tolerance and agree(given, moved, error.tolerance).all())


# --- rows of A and columns of B ----------------------------------------------------------------------


def _lines(trial: Trial, origins: Origins) -> Lines:
    """Return the lines of A and B of each execution; empty where some are not known."""
    found: dict[tuple[int, tuple[int, ...]], tuple[Numbers, Numbers]] = {}
    for given in origins.statements:
        sides = [_lines_of(given[role]) if role in given else None for role in "ab"]
        a, b = sides
        if a is None or b is None:
            return {}
        operand = given["a"].operand
        pc = number_of(trial.launch, operand.given.location)
        for number, place in enumerate(map(tuple, operand.places.tolist())):
            found[pc, place] = a[number], b[number]
    return found


def _lines_of(traced: OperandOrigins) -> Numbers | None:
    """Return ``(n, size)``: the row of A or column of B of each line of a tile; None for a mixture."""
    operand = traced.operand
    if operand.buffer is None or len(operand.buffer.shape) != 2:
        return None
    index = layout_of(operand).collect(operand.index)
    if operand.role == "b":
        index = np.swapaxes(index, 1, 2)
    if (index < 0).any():
        return None
    length = row_length(operand.buffer, operand.width)
    for lines in (index // length, index % length):
        if (lines == lines[:, :, :1]).all():
            return np.asarray(lines[:, :, 0])
    return None


def _disordered(origins: Origins, found: Stored) -> Iterator[PackingFinding]:
    """Yield operands whose lines are in another order than those of the tile, where outputs are so too."""
    moved = {"a": _moves(found.rows, 0), "b": _moves(found.columns, 1)}
    for given in origins.statements:
        for role, what in (("a", "rows of A"), ("b", "columns of B")):
            lines = _lines_of(given[role])
            if not moved[role] or lines is None:
                continue
            relative = lines - lines.min(axis=1, keepdims=True)
            if (relative != np.arange(lines.shape[1])).any():
                operand = given[role].operand
                assert operand.buffer is not None
                message = f"{what}, from {operand.buffer.name}, are permuted within the tile"
                if sorted(relative[0].tolist()) == list(range(lines.shape[1])):
                    message += f": {permutation_text(relative[0])}"
                yield PackingFinding(
                    kind="order",
                    operand=role,
                    message=f"{message}; D is stored as the layout has it",
                    location=operand.given.location,
                    places=operand.places,
                )


def _moves(places: Numbers, axis: int) -> bool:
    """Return whether rows, or columns, of elements that are known are not their own."""
    return bool(((places >= 0) & (places != np.indices(places.shape)[axis])).any())


# --- the store ---------------------------------------------------------------------------------------


def _within_tiles(found: Stored, lines: Lines) -> bool:
    """Return whether every element is of the tile in which it is stored: its operands are no others then."""
    rows, columns = np.indices(found.rows.shape)
    sizes = [min(len(pair[side]) for pair in lines.values()) for side in (0, 1)]
    same = (found.rows // sizes[0] == rows // sizes[0]) & (found.columns // sizes[1] == columns // sizes[1])
    return bool((same | (found.rows < 0)).all())


def _of_store(trial: Trial, found: Stored, error: OutputError, within: bool) -> Cause:
    """Return the cause at the first store; where whole tiles are elsewhere, loads may be what is wrong."""
    stores = store_locations(trial)
    what = _IN_TILE if within else _OF_TILES
    return Cause(
        kind="store",
        message=f"{error.name}[r, c] is the product of {_move_text(found)}: {what}",
        location=stores[0] if stores else None,
        evidence=f"{_BY_CODES}; {_PROOF}",
        fix=_FIX_IN_TILE if within else _FIX_OF_TILES,
        also=tuple(("another store", place) for place in stores[1:]),
    )


def store_locations(trial: Trial) -> list[Location]:
    """Return the statements that write global memory, in the text's order."""
    code = trial.launch.kernel._entry.code
    return [
        record.statement.location() for record in code if record.statement.mnemonic.startswith(_GLOBAL_STORES)
    ]


def _move_text(found: Stored) -> str:
    """Return which row of A and column of B meet in D[r, c]."""
    rows, columns = np.indices(found.rows.shape)
    known = found.rows >= 0
    for size in _TILES:
        down = rows - rows % size + columns % size
        right = columns - columns % size + rows % size
        if ((found.rows == down) & (found.columns == right) | ~known).all():
            return f"row c and column r of the tile: tiles of {size} x {size} are transposed"
    sides = (
        _line_text("row r", np.where(known, found.rows, rows), 0),
        _line_text("column c", np.where(known, found.columns, columns), 1),
    )
    if all(sides):
        return f"{sides[0]} of A and {sides[1]} of B"
    row, column = np.argwhere(known & ((found.rows != rows) | (found.columns != columns)))[0].tolist()
    x, y = int(found.rows[row, column]), int(found.columns[row, column])
    return f"another row and column: at [{row}, {column}] row {x} of A and column {y} of B"


def _line_text(name: str, places: Numbers, axis: int) -> str:
    """Return ``row r xor 8``: which line each line is; empty where that differs from element to element."""
    lines = places[:, 0] if axis == 0 else places[0]
    if (places != np.expand_dims(lines, 1 - axis)).any():
        return ""
    own = np.arange(len(lines))
    if (lines == own).all():
        return name
    by = int(lines[0] ^ own[0])
    if (lines == own ^ by).all():
        return f"{name} xor {by}"
    if (lines - own == lines[0]).all():
        return f"{name} {lines[0]:+d}"
    for size in (size for size in _TILES if len(lines) % size == 0):
        within = lines[:size] - lines[:size].min()
        whole = (lines.reshape(-1, size) == within + own[::size, None]).all()
        if whole and sorted(within.tolist()) == list(range(size)):
            return f"another {name.split()[0]} ({permutation_text(within)})"
    return f"another {name.split()[0]} (line 0 is {lines[0]})"
