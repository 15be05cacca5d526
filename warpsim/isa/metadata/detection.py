"""Which arrangements a blob of metadata can be in.

All orders permute the same fields, so legality alone seldom excludes an order: ``detect`` can also use A.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ..arrays import as_array, as_integer, is_numeric
from ..instruction import Instruction
from ..sparsity import Pattern, stored_columns
from .arrangements import arrangements
from .orders import (
    Arrangement,
    Fields,
    check_size,
)


@dataclass(frozen=True, kw_only=True)
class Detection:
    """Which arrangements a blob can be in.

    ``legal`` decode to fields with a meaning, ``ascending`` also obey sp::ordered_metadata, and
    ``consistent`` also name every non-zero of A, where A was given.
    """

    legal: tuple[str, ...]
    ascending: tuple[str, ...]
    consistent: tuple[str, ...] | None = None

    @property
    def candidates(self) -> tuple[str, ...]:
        """The arrangements that pass every test that was made."""
        return self.legal if self.consistent is None else self.consistent

    def __str__(self) -> str:
        names = self.candidates
        if not names:
            return "decodes as none of the known arrangements"
        if {"cutlass", "torch"} <= set(names):  # one order, two names
            names = (*(name for name in names if name not in ("cutlass", "torch")), "cutlass (= torch)")
        return f"decodes as {names[0]} only" if len(names) == 1 else f"decodes as any of {', '.join(names)}"


def detect(
    blob: npt.ArrayLike,
    rows: int,
    k: int,
    element: str | Instruction,
    matrix: npt.ArrayLike | None = None,
) -> Detection:
    """Return which arrangements decode this blob to legal metadata of an A of ``rows x k``.

    Size and legality exclude few of them; ``matrix``, A ``(rows, k)`` itself, distinguishes the rest: its
    non-zeros must all lie in columns that the metadata names.
    """
    rows, k = as_integer(rows, "rows"), as_integer(k, "k")
    check_size(rows, k)
    array, nonzero = as_array(blob), None if matrix is None else _nonzero(matrix, (rows, k))
    legal, ascending, consistent = [], [], []
    for arrangement, fields in _decode_all(array, rows, k, element):
        if not arrangement.pattern.distinct[fields].all():
            continue
        legal.append(arrangement.name)
        if arrangement.pattern.ascending[fields].all():
            ascending.append(arrangement.name)
        if nonzero is not None and not nonzero[~named_columns(fields, arrangement.pattern)].any():
            consistent.append(arrangement.name)
    return Detection(
        legal=tuple(legal),
        ascending=tuple(ascending),
        consistent=None if nonzero is None else tuple(consistent),
    )


def _nonzero(matrix: npt.ArrayLike, shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return where A is not zero; raise OperandError for an array that is no such matrix of numbers."""
    array = as_array(matrix)
    if array.shape != shape:
        raise OperandError(f"A has shape {array.shape}, but rows and k are {shape}")
    if not is_numeric(array.dtype):
        raise OperandError(f"A has dtype {array.dtype}, but its elements are numbers")
    nonzero: npt.NDArray[np.bool_] = array != 0
    return nonzero


def _decode_all(
    array: npt.NDArray[Any], rows: int, k: int, element: str | Instruction
) -> Iterator[tuple[Arrangement, Fields]]:
    for arrangement in arrangements(element):
        with suppress(OperandError):  # another size, or an index out of range
            yield arrangement, arrangement.decode(array, rows, k)


def named_columns(fields: Fields, pattern: Pattern) -> npt.NDArray[np.bool_]:
    """Return ``(..., rows, k)``: the logical columns that metadata fields name, read literally."""
    units = pattern.decode_table[fields].reshape(*fields.shape[:-1], -1)
    named_here = np.zeros((*fields.shape[:-1], fields.shape[-1] * pattern.chunk), np.bool_)
    np.put_along_axis(named_here, stored_columns(units, pattern), True, axis=-1)
    return named_here
