"""How long the rows of an allocation are, which has no shape of its own: as the tiles say that come from it.

Along k or across it, the elements of a tile mostly lie one behind another; along the other axis they lie a
row apart. Knows tiles and places; does not know what should be where.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .byte_keys import Indices
from .loaded_operands import Mask, Operand, layout_of, operands_of
from .modes import mode
from .traced_launch import Movement, TracedBuffer


def with_rows(movement: Movement) -> Movement:
    """Return a movement whose buffers have rows, where all tiles of a buffer agree on their length."""
    found: dict[str, set[int]] = {}
    for operand in operands_of(movement):
        if operand.buffer is not None and operand.role in ("a", "b"):
            length = _row_bytes(operand)
            found.setdefault(operand.buffer.name, set()).add(length)
    buffers = tuple(_shaped(buffer, found.get(buffer.name, set())) for buffer in movement.buffers)
    return replace(movement, buffers=buffers)


def arriving(movement: Movement) -> Movement:
    """Return a movement without the buffers that nothing arrives from; with all where nothing arrives."""
    operands = operands_of(movement)
    found = tuple(buffer for buffer in movement.buffers if any(_has(operand, buffer) for operand in operands))
    return replace(movement, buffers=found or movement.buffers)


def _has(operand: Operand, buffer: TracedBuffer) -> bool:
    """Return whether an operand has elements of a buffer."""
    start = 8 * buffer.start
    return bool(((operand.bits >= start) & (operand.bits < start + 8 * buffer.size)).any())


def _shaped(buffer: TracedBuffer, lengths: set[int]) -> TracedBuffer:
    """Return a buffer with rows of the length; behind the last whole row there may be more bytes."""
    length = next(iter(lengths)) if len(lengths) == 1 else 0
    if not length or buffer.size % length or length >= buffer.size:
        return buffer
    return replace(buffer, shape=(buffer.size // length, length))


def _row_bytes(operand: Operand) -> int:
    """Return how many bytes the rows of an operand's buffer lie apart; 0 where no axis is contiguous."""
    layout = layout_of(operand)
    index, valid = layout.collect(operand.index), layout.collect(operand.moved)
    steps = [_step(index, valid, axis) for axis in (1, 2)]
    others = [other for step, other in (steps, steps[::-1]) if step == 1 and other > 1]
    return others[0] * operand.width // 8 if others and not others[0] * operand.width % 8 else 0


def _step(index: Indices, valid: Mask, axis: int) -> int:
    """Return by how much the place mostly changes with one step along an axis of the tiles."""
    both = np.logical_and(*_shifted(valid, axis))
    behind, ahead = _shifted(index, axis)
    steps = (ahead - behind)[both]
    return mode(steps) if steps.size else 0


def _shifted(values: Indices | Mask, axis: int) -> tuple[Indices | Mask, Indices | Mask]:
    """Return all but the last, and all but the first, along an axis."""
    count = values.shape[axis]
    return values.take(range(count - 1), axis), values.take(range(1, count), axis)
