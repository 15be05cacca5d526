"""Arguments as terms: an array as it is or decoded, numbers of 4 bits, scales and zero points of blocks.

Knows arrays and formats; does not know kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....isa.codes import values_of
from ....isa.formats import FORMATS
from .formula_functions import NIBBLE, blocks, nibbles
from .formula_terms import Array, Term

_CODES: dict[int, Sequence[str]] = {1: ("e4m3", "e5m2"), 2: ("bf16", "f16")}  # by the bytes of an element
_SCALE_CODES = ("ue8m0", "ue4m3")
_PACKED = "e2m1"
_BYTE = 8


def readings(argument: int, name: str, content: Array) -> Iterator[Term]:
    """Yield an array as numbers: as its dtype has it, as codes of its size, as numbers of 4 bits."""
    yield _as_format(argument, name, content, "")
    if content.dtype.kind == "u":
        yield from (_as_format(argument, name, content, kind) for kind in _CODES.get(content.itemsize, ()))
    if content.dtype.kind in "iu" and content.itemsize == 1:
        yield _as_format(argument, name, content, _PACKED)
    if content.dtype.kind in "iu" and content.ndim == 2 and content.itemsize <= 4:
        whole, count = _as_format(argument, name, content, ""), _BYTE * content.itemsize // NIBBLE
        for axis in (-1, 0):
            yield from (whole.called(nibbles, count, axis, signed) for signed in (False, True))


def scales(argument: int, name: str, content: Array) -> Iterator[Term]:
    """Yield an array as scale factors: bytes are codes of ue8m0 or ue4m3."""
    kinds = ("",) if content.dtype.kind not in "iub" else _SCALE_CODES if content.dtype == np.uint8 else ()
    yield from (_as_format(argument, name, content, kind) for kind in kinds)


def decoded(content: Array, kind: str) -> Array:
    """Return the numbers of codes, two of e2m1 from a byte; of no format what the dtype has."""
    if not kind:
        return content.astype(np.int64 if content.dtype.kind in "iub" else np.float64)
    codes: Any = content.view(f"u{content.itemsize}")
    if kind != _PACKED:
        return np.asarray(values_of(codes, FORMATS[kind]), np.float64)
    halves = [values_of(codes >> NIBBLE * half & 15, FORMATS[kind]) for half in (0, 1)]
    return np.stack(halves, -1).reshape(*content.shape[:-1], -1).astype(np.float64)


def _as_format(argument: int, name: str, content: Array, kind: str) -> Term:
    return Term(text=name, values=decoded(content, kind), kinds={argument: kind})


def spread(term: Term, shape: tuple[int, ...]) -> Term | None:
    """Return a matrix of a number for each block, or a vector for each row, as one of a shape; None where
    blocks are not whole, or are single elements.
    """
    own = term.values.shape
    if len(own) == 1 and own[0] == shape[0]:
        return term.mapped(f"{term.inner}[:, None]", lambda x: x[:, None])
    if len(own) != 2 or len(shape) != 2 or own == shape or not all(own):
        return None
    if any(whole % part for part, whole in zip(own, shape, strict=True)):
        return None
    rows, columns = (whole // part for part, whole in zip(own, shape, strict=True))
    return term.called(blocks, rows, columns)
