"""The arrangements of the metadata of an element type or an instruction, and conversion between them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy.typing as npt

from ...base.errors import OperandError
from ..arrays import as_integer
from ..families import forms
from ..fragments import require_sparse
from ..instruction import Instruction
from .orders import (
    Arrangement,
    cutlass,
    cutlass3,
    fields_matrix,
    index_pairs,
    lane_words,
    row_major_words,
    torch_cutlass,
)


@cache
def sparse_forms(element: str) -> tuple[Instruction, ...]:
    """Return one warp-level sparse form of each k that multiplies an element, smallest k first."""
    found: dict[int, Instruction] = {}
    for form in forms().values():
        if form.sparse and form.lanes == 32 and form.a.name == element and not form.kind:
            found.setdefault(form.shape.k, form)
    if not found:
        raise OperandError(f"{element}: no sparse form without a .kind multiplies it: give an instruction")
    return tuple(found[k] for k in sorted(found))


@cache
def arrangements(element: str | Instruction) -> tuple[Arrangement, ...]:
    """Return every arrangement of the metadata of an element (``"f16"``) or of an instruction.

    CUTLASS's words are 16-bit for 16- and 32-bit elements and 32-bit for narrower elements.
    """
    given = isinstance(element, Instruction)
    known = (element,) if isinstance(element, Instruction) else sparse_forms(element)
    pattern, width = require_sparse(known[0]), 2 if known[0].storage("a").bits >= 16 else 4
    bits = known[0].storage("a").bits
    plain = (fields_matrix(pattern), index_pairs(pattern), row_major_words(pattern, width))
    libraries: tuple[Arrangement, ...] = ()
    if not (given and known[0].kind):
        libraries = (cutlass(pattern, width), torch_cutlass(pattern, width))
        libraries += (cutlass3(pattern, bits),) if bits >= 8 else ()
    lanes = tuple(lane_words(form, selector) for form in known for selector in form.selectors)
    return plain + libraries + lanes


def named(name: str, element: str | Instruction) -> Arrangement:
    """Return the arrangement of that name, of ``"lanes"`` the first lane order; raise OperandError."""
    known = arrangements(element)
    for arrangement in known:
        if arrangement.name == name or (name == "lanes" and arrangement.name.startswith("lanes ")):
            return arrangement
    raise OperandError(f"arrangement {name!r}: expected {', '.join(map(str, known))}")


def convert(
    blob: npt.ArrayLike, rows: int, k: int, element: str | Instruction, *, source: str, target: str
) -> npt.NDArray[Any]:
    """Return the blob in another arrangement: unsigned words in the shape that the target has.

    ``rows`` and ``k`` are those of logical A. Raises OperandError where either arrangement does not
    allow them, or the blob has the wrong size.
    """
    fields = named(source, element).decode(blob, as_integer(rows, "rows"), as_integer(k, "k"))
    return named(target, element).encode(fields)
