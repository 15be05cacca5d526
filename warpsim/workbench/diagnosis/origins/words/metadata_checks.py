"""What is wrong with words of metadata and scales that a kernel has loaded, whatever their arrangement is.

Any arrangement is taken for right in which the place of a lane's word is a sum of what each bit of the
lane's number adds; what breaks such a sum is found, and so are words of another k step than A, and words that
serve two tiles. Knows words and lanes; does not know what the words say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from ..anchors import Anchored, agreed_k
from ..byte_keys import Indices
from ..loaded_operands import Mask, Operand, extents_in_bytes, mode, row_length, word_text
from ..packing_checks import OtherByte, PackingFinding
from .word_places import NAMES, Words, words_of

_LOOKED = 64  # executions by which an axis is judged
_LANE_BIT = 2  # the lower bits of a byte's number are of its place in the word


# --- findings --------------------------------------------------------------------------------------


def word_findings(operand: Operand, a: Anchored | None, b: Anchored | None) -> Iterator[PackingFinding]:
    """Yield what is wrong with metadata or scales; ``a`` and ``b`` are those that they go with."""
    words = words_of(operand)
    if words is None:
        return
    yield from _bytes_exchanged(words)
    # bits of the lane's number that subtract: lanes hold each other's words
    mask = sum(1 << bit for bit, step in enumerate(words.steps[_LANE_BIT:].tolist()) if step < 0)
    if mask:
        message = f"lane l holds the word of {NAMES[words.operand.role]} of lane l xor {mask}"
        yield PackingFinding.of(words.operand, "metadata lane", message, np.flatnonzero(words.known))
    yield from _other_lanes(words)
    if a is not None:
        partner = b if operand.role == "scale_b" else a
        yield from _other_steps(words, a, agreed_k(a, b), _lines_of(partner))


def _bytes_exchanged(words: Words) -> Iterator[PackingFinding]:
    order, wrong = words.order_of_bytes
    events = np.flatnonzero(wrong.any(axis=1))
    if not events.size:
        return
    lane = int(np.flatnonzero(wrong[events[0]])[0])
    seen = order[events[0], lane].tolist()
    lanes = _lanes_text(np.flatnonzero(wrong.any(axis=0)), wrong.shape[1])
    yield PackingFinding.of(
        words.operand, "metadata bytes", f"{_bytes_text(words, lane, seen)} ({lanes})", events
    )


def _bytes_text(words: Words, lane: int, seen: list[int]) -> str:
    name = NAMES[words.operand.role]
    if seen != [2, 3, 0, 1] or words.operand.role != "e":
        return f"the bytes of words of {name} are in the order {', '.join(map(str, seen))}"
    line, used = words.uses.line[lane], words.uses.used[lane]
    low, high = (sorted(set(line[half][used[half]].tolist())) for half in (slice(0, 2), slice(2, 4)))
    if low == high:
        return "the halves of words of metadata are exchanged: chunks of the same row"
    first = min(low[0], high[0])
    return (
        f"metadata of row g and g+{abs(high[0] - low[0])} are exchanged: the halves of each word "
        f"(in lane {lane}, rows {first} and {max(low[0], high[0])})"
    )


def _other_lanes(words: Words) -> Iterator[PackingFinding]:
    """Yield lanes that hold another word than the sum says; nothing where most words break it."""
    if words.order_of_bytes[1].any():
        return  # reported above
    if not words.follow_sums:
        return
    wrong = (words.valid & (words.byte != words.summed)).any(axis=2)
    found: dict[str, list[int]] = {}
    for event in np.flatnonzero(wrong.any(axis=1)).tolist():
        lanes = np.flatnonzero(wrong[event])
        name, texts = NAMES[words.operand.role], list[str]()
        used = words.uses.used
        for lane in lanes[:4].tolist():
            byte = int(np.flatnonzero(words.valid[event, lane])[0])
            held = int(words.byte[event, lane, byte])
            other = np.flatnonzero(used[:, byte] & (words.expected[event, :, byte] == held))
            where = (
                f"belongs to lane {int(other[0])}"
                if other.size
                else f"is {word_text(words.operand.source, held)}"
            )
            texts.append(f"the word of {name} in lane {lane} {where}")
        more = f", and {lanes.size - 4} more lanes" if lanes.size > 4 else ""
        found.setdefault("; ".join(texts) + more, []).append(event)
    for message, events in found.items():
        yield PackingFinding.of(words.operand, "metadata lane", message, np.array(events))


def _lanes_text(lanes: npt.NDArray[np.intp], of: int) -> str:
    return "all lanes" if lanes.size == of else f"lanes {', '.join(map(str, lanes.tolist()))}"


# --- k steps ---------------------------------------------------------------------------------------


def _other_steps(words: Words, a: Anchored, k: Indices, lines: int | None) -> Iterator[PackingFinding]:
    """Yield words of another k step than A and B: where one axis of the buffer goes with the steps.

    ``lines`` are the rows of A, or columns of B, that the words serve; None where they are not known.
    """
    steps = k // words.operand.instruction.shape.k
    known = words.known & ~a.empty & (k >= 0)
    axis = _stepping_axis(words, steps, known, _step_count(a), lines)
    if axis is None:
        return
    off = np.where(known, (axis.at - steps // axis.steps) % axis.count, 0)
    off = np.where(off > axis.count // 2, off - axis.count, off)
    for by in np.unique(off[off != 0]).tolist():
        events = np.flatnonzero(off == by)
        first = int(events[0])
        name, verb = NAMES[words.operand.role], "is" if words.operand.role == "e" else "are"
        message = f"{name} of {axis.text(first)} {verb} used in k step {int(steps[first])}: {axis.far(by)}"
        byte = _other_byte(words, axis, first, by) if words.operand.role != "e" and axis.steps == 1 else None
        if byte is not None:
            byte = replace(byte, used=int(steps[first]))
        yield replace(PackingFinding.of(words.operand, "metadata step", message, events), byte=byte)


def _other_byte(words: Words, axis: _Axis, event: int, by: int) -> OtherByte | None:
    """Return which byte of the words that are there has the scales of the step, if any has."""
    operand = words.operand
    side, ids = operand.role[-1], operand.given.scale_selectors
    read = int(getattr(ids, f"byte_id_{side}"))
    lanes = np.flatnonzero(words.valid[event, :, read])
    wanted = words.byte[event, lanes, read] - by * axis.size
    there = operand.index[event, lanes] == wanted[:, None]
    own = np.flatnonzero((there & operand.moved[event, lanes]).all(axis=0))
    if not lanes.size or not own.size:
        return None
    return OtherByte(held=int(axis.at[event]), used=-1, read=read, own=int(own[0]))


def _step_count(a: Anchored) -> int:
    rows, columns = _extents(a)
    depth = a.tiles.inner.shape[2]
    size = rows if a.tiles.inner_axis == "rows" else columns
    return int(-(-size // depth))


def _lines_of(anchored: Anchored | None) -> int | None:
    """Return the rows of A, or columns of B, that there are in a buffer; None for no tiles."""
    if anchored is None:
        return None
    rows, columns = _extents(anchored)
    return columns if anchored.tiles.inner_axis == "rows" else rows


def _extents(anchored: Anchored) -> tuple[int, int]:
    operand = anchored.tiles.operand
    return prod(operand.source.shape[:-1]), row_length(operand.source, operand.width)


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """An axis along which words go with k: ``at (n,)`` in units of ``steps`` k steps, ``count`` in all, of
    ``size`` bytes each from the next.
    """

    at: Indices
    steps: int
    count: int
    size: int

    def text(self, event: int) -> str:
        """Return the k steps that the words of an execution are of."""
        first = int(self.at[event]) * self.steps
        return f"k step {first}" if self.steps == 1 else f"k steps {first}..{first + self.steps - 1}"

    def far(self, by: int) -> str:
        """Return how far off so many units are."""
        steps = abs(by) * self.steps
        return f"{steps} step{'s'[: steps != 1]} {'ahead' if by > 0 else 'behind'}"


def _stepping_axis(words: Words, steps: Indices, known: Mask, count: int, lines: int | None) -> _Axis | None:
    """Return the axis of the buffer that moves when the k step of A does; None for none, or several.

    Where the other axes have no room for every line, or where words of several lines and the same k lie along
    this axis, as in blocks of 128 lines and 4 factors, it has lines, too: a place within what the words
    advance by says which line they are of, and the advance is the least unit.
    """
    operand = words.operand
    shape = extents_in_bytes(operand.source)
    at = np.unravel_index(np.maximum(words.first, 0), shape)
    later = np.flatnonzero(operand.later & known[1:] & known[:-1]) + 1
    if not later.size:
        return None
    step = mode(steps[later] - steps[later - 1])
    moves = [mode(value[later] - value[later - 1]) for value in at]
    moving = [axis for axis, by in enumerate(moves) if by > 0]
    if step <= 0 or len(moving) != 1:
        return None
    extent, move = shape[moving[0]], moves[moving[0]]
    of_k_alone = lines is not None and prod(shape) // extent >= lines
    of_k_alone = of_k_alone and not _has_lines(words, known, shape, moving[0])
    common = int(np.gcd(move, step)) if of_k_alone else 1
    found = _axis(extent, at[moving[0]], move // common, step // common, count)
    return None if found is None else replace(found, size=found.size * prod(shape[moving[0] + 1 :]))


def _has_lines(words: Words, known: Mask, shape: tuple[int, ...], axis: int) -> bool:
    """Return whether bytes of several lines and the same k mostly lie at several places along an axis."""
    events = np.flatnonzero(known)[:_LOOKED]
    byte, valid = words.byte[events], words.valid[events]
    at = np.unravel_index(np.maximum(byte, 0), shape)[axis]
    several = np.zeros(len(events), np.bool_)
    for k in np.unique(words.uses.k[words.uses.used]).tolist():
        here = valid & (words.uses.used & (words.uses.k == k))
        highest = np.where(here, at, -1).max(axis=(1, 2))
        several |= np.where(here, at, highest[:, None, None]).min(axis=(1, 2)) < highest
    return bool(2 * np.count_nonzero(several) > len(events))


def _axis(extent: int, at: npt.NDArray[np.intp], unit: int, steps: int, count: int) -> _Axis | None:
    """Return the axis along which words move by ``unit`` bytes in so many k steps."""
    groups = count // steps
    if groups < 2 or count % steps or extent % (unit * groups):
        return None
    return _Axis(at=(at // unit) % groups, steps=steps, count=groups, size=unit)


def folded_byte_ids(found: Sequence[PackingFinding]) -> list[PackingFinding]:
    """Return findings in their order, with the same sentence for all steps that read one byte of words in
    which other bytes are theirs; for A and B alike where the same is true of both.
    """
    groups: dict[tuple[str, int, int], set[tuple[int, int]]] = {}
    for finding in found:
        if byte := finding.byte:
            groups.setdefault((finding.operand, *_held(byte)), set()).add((byte.used, byte.own))
    return [
        replace(finding, message=_message(finding.operand, finding.byte, groups))
        if finding.byte is not None
        else finding
        for finding in found
    ]


def _held(byte: OtherByte) -> tuple[int, int]:
    return byte.held, byte.read


def _message(operand: str, byte: OtherByte, groups: dict[tuple[str, int, int], set[tuple[int, int]]]) -> str:
    own = groups[operand, *_held(byte)]
    both = all(groups.get((role, *_held(byte))) == own for role in ("scale_a", "scale_b"))
    name = "scales of A and B" if both else NAMES[operand]
    steps, ids = sorted({used for used, _ in own}), sorted({at for _, at in own})
    verb = "has" if len(ids) == 1 else "have"
    return (
        f"{name} of k step {byte.held} are used in k step{_several(steps)}: byte id {byte.read} is read, "
        f"where byte id{_several(ids)} of the same words {verb} the right scales"
    )


def _several(numbers: Sequence[int]) -> str:
    return "s"[: len(numbers) > 1] + " " + ", ".join(map(str, numbers))
