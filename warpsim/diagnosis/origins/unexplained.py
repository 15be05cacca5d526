"""What of a launch's operands is not explained: no mistake perhaps, but nothing that fits together either.

Elements that were computed, operands in no order that is known, and elements of arrays that no matrix
instruction is given. Padding, triangles and parts of a larger grid leave elements unused too, so that none of
this is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .loaded_operands import Mask, Operand
from .packing_checks import follows_sum
from .tagged_runs import TaggedBuffer
from .tags import COMPUTED
from .word_places import follow_sums, words_of

_LISTED = 4  # ranges of one axis


def unexplained_operands(operands: Sequence[tuple[Operand, bool]]) -> Iterator[str]:
    """Yield sentences on operands, each with whether it is tiles of a matrix; equal sentences once."""
    found: dict[str, list[int]] = {}
    for operand, is_tiles in operands:
        for text in _unexplained(operand, is_tiles) if operand.role != "c" else ():
            found.setdefault(text, []).append(operand.given.location.line)
    for text, lines in found.items():
        unique = sorted(set(lines))
        more = ", …" * (len(unique) > _LISTED)
        yield f"line{'s'[: len(unique) != 1]} {', '.join(map(str, unique[:_LISTED]))}{more}: {text}"


def _unexplained(operand: Operand, is_tiles: bool) -> Iterator[str]:
    computed = int((operand.bits == COMPUTED).sum())
    if computed:
        unit = "elements" if operand.role in ("a", "b") else "bytes"
        yield f"{computed / operand.bits.size:.1%} of the {unit} of {operand.role} are computed, not moved"
    if operand.buffer is None or is_tiles:
        return
    if operand.role in ("a", "b"):
        known = follows_sum(operand)
    else:
        words = words_of(operand)
        known = words is None or follow_sums(words)
    if not known:
        yield f"{operand.role} comes from {operand.buffer.name} in no order that is known"


def unused_text(buffer: TaggedBuffer, bits: Mask) -> str:
    """Describe which ``bits`` of an array arrive in matrix instructions, by elements; empty for all."""
    used: Mask = np.asarray(bits.reshape(-1, 8).any(axis=1))
    if used.all():
        return ""
    if not used.any():
        return f"nothing of {buffer.name} arrives unchanged in a matrix instruction"
    size = buffer.dtype.itemsize
    elements = used.reshape(-1, size).any(axis=1)
    shape = buffer.shape or (1,)
    share = f"{used.mean():.1%} of {buffer.name} is used"
    if elements.size != int(np.prod(shape)):
        return share
    elements = elements.reshape(shape)
    axes = [_along(elements, axis) for axis in range(len(shape))]
    box = np.ix_(*axes)
    if not elements[box].all():
        first = np.unravel_index(int(np.argmin(elements)), shape)
        return f"{share}: {buffer.name}[{', '.join(map(str, map(int, first)))}] is the first that is not"
    parts = [
        f"{_ranges(axis)} of {len(axis)} along axis {n}" for n, axis in enumerate(axes) if not axis.all()
    ]
    return f"{share}: {', '.join(parts)}" if parts else share


def _along(elements: Mask, axis: int) -> Mask:
    """Return which places along an axis have any element that is used."""
    along: Mask = np.asarray(np.moveaxis(elements, axis, 0).reshape(elements.shape[axis], -1).any(axis=1))
    return along


def _ranges(axis: Mask) -> str:
    """Return ``0..7, 16..23``: the places that are used."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], axis, [False]]).astype(np.int8)))
    texts = [f"{start}..{end - 1}" for start, end in edges.reshape(-1, 2)[:_LISTED].tolist()]
    return ", ".join(texts) + ", …" * (len(edges) > 2 * _LISTED)
