"""What is wrong with words of metadata and scales that a kernel has loaded, whatever their arrangement is.

Any arrangement is taken for right in which the place of a lane's word is a sum of what each bit of the
lane's number adds; what breaks such a sum is found, and so are words of another k step than A, and words that
serve two tiles. Knows words and lanes; does not know what the words say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ...isa.fragments import metadata_map
from .anchors import Anchored, agreed_k
from .loaded_operands import Mask, Operand, mode, row_length, word_text
from .packing_checks import PackingFinding, warps_text
from .tags import Indices

_NAMES = {"e": "metadata", "scale_a": "scales of A", "scale_b": "scales of B"}


@dataclass(frozen=True, kw_only=True)
class Words:
    """Words of lanes: ``byte (n, lanes, 4)``, where in the buffer each byte comes from, and ``valid``.

    ``base (n,)`` and ``lane (lanes,)`` add up to the place of the first byte of each word, mostly.
    """

    operand: Operand
    byte: Indices
    valid: Mask
    base: Indices
    lane: Indices
    signs: Indices  # what each bit of the lane adds

    @property
    def known(self) -> Mask:
        """``(n,)``: executions in which any word comes from the buffer."""
        known: Mask = np.asarray(self.valid.any(axis=(1, 2)))
        return known

    @property
    def expected(self) -> Indices:
        """``(n, lanes)``: where each lane's word should begin; bits that subtract are exchanged lanes."""
        signs = self.signs
        lane = _bits_of_lanes(self.byte.shape[1]) @ np.abs(signs)
        expected: Indices = self.base[:, None] + signs[signs < 0].sum() + lane
        return expected


def words_of(operand: Operand) -> Words | None:
    """Return the words of an operand; None where they come from no buffer."""
    if operand.buffer is None:
        return None
    lanes = operand.bits.shape[1]
    used = np.isin(np.arange(lanes), _lanes_used(operand))
    valid = operand.moved & used[None, :, None]
    if not valid.any():
        return None
    byte = np.where(valid, operand.index, -1)
    first = valid[:, :, 0]
    bits = _bits_of_lanes(lanes)
    signs = np.array([_sign(byte[:, :, 0], first, bit) for bit in range(bits.shape[1])])
    lane = bits @ signs
    base = byte[:, :, 0] - lane
    found = np.array([mode(base[n][first[n]]) if first[n].any() else -1 for n in range(len(base))])
    return Words(operand=operand, byte=byte, valid=valid, base=found, lane=lane, signs=signs)


def _bits_of_lanes(lanes: int) -> Indices:
    """Return ``(lanes, bits)``: the bits of each lane's number, lowest first."""
    bits: Indices = np.arange(lanes)[:, None] >> np.arange((lanes - 1).bit_length()) & 1
    return bits


def _lanes_used(operand: Operand) -> npt.NDArray[np.intp]:
    """Return the lanes whose words the instruction reads."""
    form, given = operand.instruction, operand.given
    if operand.role == "e":
        return np.unique(metadata_map(form, given.selector)[:, 0])
    side = operand.role[-1]
    return form.scales(side).lanes_of(getattr(given.scale_selectors, f"thread_id_{side}"))


def _sign(first: Indices, valid: Mask, bit: int) -> int:
    """Return what a bit of the lane's number mostly adds."""
    low = np.flatnonzero(~np.arange(first.shape[1]) >> bit & 1)
    both = valid[:, low] & valid[:, low | 1 << bit]
    steps = (first[:, low | 1 << bit] - first[:, low])[both]
    return mode(steps) if steps.size else 0


# --- findings --------------------------------------------------------------------------------------


def word_findings(operand: Operand, a: Anchored | None, b: Anchored | None) -> Iterator[PackingFinding]:
    """Yield what is wrong with metadata or scales; ``a`` and ``b`` are those that they go with."""
    words = words_of(operand)
    if words is None:
        return
    yield from _bytes_exchanged(words)
    yield from _lanes_exchanged(words)
    yield from _other_lanes(words)
    if a is not None:
        k = agreed_k(a, b)
        yield from _other_steps(words, a, k)
        if operand.role != "scale_b":
            yield from _shared_words(words, a, k)


def _found(words: Words, kind: str, message: str, events: npt.NDArray[np.intp]) -> PackingFinding:
    operand = words.operand
    return PackingFinding(
        kind=kind,
        operand=operand.role,
        message=message,
        location=operand.given.location,
        places=operand.places[events],
    )


def _bytes_exchanged(words: Words) -> Iterator[PackingFinding]:
    """Yield bytes of the words that are not in order."""
    whole = words.valid.all(axis=2)
    if not whole.any():
        return
    order = words.byte - words.byte.min(axis=2, keepdims=True)
    wrong = whole & (order != np.arange(4)).any(axis=2)
    events = np.flatnonzero(wrong.any(axis=1))
    if not events.size:
        return
    lane = int(np.flatnonzero(wrong[events[0]])[0])
    seen = order[events[0], lane].tolist()
    lanes = _lanes_text(np.flatnonzero(wrong.any(axis=0)), wrong.shape[1])
    yield _found(words, "metadata bytes", f"{_bytes_text(words, lane, seen)} ({lanes})", events)


def _bytes_text(words: Words, lane: int, seen: list[int]) -> str:
    name = _NAMES[words.operand.role]
    if seen != [2, 3, 0, 1] or words.operand.role != "e":
        return f"the bytes of words of {name} are in the order {', '.join(map(str, seen))}"
    fields = metadata_map(words.operand.instruction, words.operand.given.selector)
    mine = fields[fields[:, 0] == lane]
    low, high = (sorted(set(mine[mine[:, 1] // 16 == half][:, 3].tolist())) for half in (0, 1))
    if low == high:
        return "the halves of words of metadata are exchanged: chunks of the same row"
    first = min(low[0], high[0])
    return (
        f"metadata of row g and g+{abs(high[0] - low[0])} are exchanged: the halves of each word "
        f"(in lane {lane}, rows {first} and {max(low[0], high[0])})"
    )


def _lanes_exchanged(words: Words) -> Iterator[PackingFinding]:
    """Yield bits of the lane's number that subtract: lanes hold each other's words."""
    mask = sum(1 << bit for bit, sign in enumerate(words.signs.tolist()) if sign < 0)
    if mask:
        message = f"lane l holds the word of {_NAMES[words.operand.role]} of lane l xor {mask}"
        yield _found(words, "metadata lane", message, np.flatnonzero(words.known))


def _other_lanes(words: Words) -> Iterator[PackingFinding]:
    """Yield lanes that hold another word than the sum says."""
    least = words.byte.min(axis=2)
    wrong = words.valid.all(axis=2) & (least != words.base[:, None] + words.lane)
    if words.valid[..., 0].any() and (words.byte[..., 0] != least).any():
        wrong &= False  # bytes are exchanged: reported above
    found: dict[str, list[int]] = {}
    for event in np.flatnonzero(wrong.any(axis=1)).tolist():
        found.setdefault(_lane_message(words, event, np.flatnonzero(wrong[event])), []).append(event)
    for message, events in found.items():
        yield _found(words, "metadata lane", message, np.array(events))


def _lane_message(words: Words, event: int, lanes: npt.NDArray[np.intp]) -> str:
    name, texts = _NAMES[words.operand.role], list[str]()
    for lane in lanes[:4].tolist():
        other = np.flatnonzero(words.expected[event] == words.byte[event, lane].min())
        assert words.operand.buffer is not None
        where = (
            f"belongs to lane {int(other[0])}"
            if other.size
            else f"is {word_text(words.operand.buffer, int(words.byte[event, lane].min()))}"
        )
        texts.append(f"the word of {name} in lane {lane} {where}")
    more = f", and {lanes.size - 4} more lanes" if lanes.size > 4 else ""
    return "; ".join(texts) + more


def _lanes_text(lanes: npt.NDArray[np.intp], of: int) -> str:
    return "all lanes" if lanes.size == of else f"lanes {', '.join(map(str, lanes.tolist()))}"


# --- k steps ---------------------------------------------------------------------------------------


def _other_steps(words: Words, a: Anchored, k: Indices) -> Iterator[PackingFinding]:
    """Yield words of another k step than A and B: where one axis of the buffer goes with the steps."""
    steps = k // words.operand.instruction.shape.k
    known = words.known & ~a.empty & (k >= 0)
    axis = _stepping_axis(words, steps, known, _step_count(a))
    if axis is None:
        return
    off = np.where(known, (axis.at - steps // axis.steps) % axis.count, 0)
    off = np.where(off > axis.count // 2, off - axis.count, off)
    for by in np.unique(off[off != 0]).tolist():
        events = np.flatnonzero(off == by)
        first = int(events[0])
        far = f"{abs(by)} step{'s'[: abs(by) != 1]} {'ahead' if by > 0 else 'behind'}"
        message = (
            f"{_NAMES[words.operand.role]} of k step {int(axis.at[first])} is used in k step "
            f"{int(steps[first] // axis.steps)}: {far}"
        )
        yield _found(words, "metadata step", message, events)


def _step_count(a: Anchored) -> int:
    """Return how many k steps of the instruction there are in the buffer of A."""
    operand = a.tiles.operand
    assert operand.buffer is not None
    depth, length = a.tiles.inner.shape[2], row_length(operand.buffer, operand.width)
    size = prod(operand.buffer.shape[:-1]) if a.tiles.inner_axis == "rows" else length
    return int(-(-size // depth))


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """An axis along which words go with k: ``at (n,)`` in units of ``steps`` k steps, ``count`` in all."""

    at: Indices
    steps: int
    count: int


def _stepping_axis(words: Words, steps: Indices, known: Mask, count: int) -> _Axis | None:
    """Return the axis of the buffer that moves when the k step of A does; None for none, or several."""
    operand = words.operand
    assert operand.buffer is not None
    size = operand.buffer.dtype.itemsize
    least = np.where(words.valid, words.byte, np.iinfo(np.int64).max).min(axis=(1, 2))
    at = np.unravel_index(np.where(known, least, 0) // size, operand.buffer.shape)
    places = operand.places
    next_one = (places[1:, :4] == places[:-1, :4]).all(axis=1) & known[1:] & known[:-1]
    later = np.flatnonzero(next_one) + 1
    if not later.size:
        return None
    step = mode(steps[later] - steps[later - 1])
    moves = [mode(value[later] - value[later - 1]) for value in at]
    moving = [axis for axis, by in enumerate(moves) if by > 0]
    if step <= 0 or len(moving) != 1:
        return None
    return _axis(operand.buffer.shape[moving[0]], at[moving[0]], moves[moving[0]], step, count)


def _axis(extent: int, at: npt.NDArray[np.intp], move: int, step: int, count: int) -> _Axis | None:
    """Return how words move (``move``) when k does (``step``), both in their least unit."""
    common = int(np.gcd(move, step))
    unit, steps = move // common, step // common
    groups = count // steps
    if groups < 2 or count % steps or extent % (unit * groups):
        return None
    return _Axis(at=(at // unit) % groups, steps=steps, count=groups)


def _shared_words(words: Words, a: Anchored, k: Indices) -> Iterator[PackingFinding]:
    """Yield words that two warps use for different rows of A in one k step."""
    known = np.flatnonzero(words.known & ~a.empty & (k >= 0))
    seen: dict[tuple[int, int], int] = {}
    clashes = list[tuple[int, int]]()
    for event in known.tolist():
        key = int(words.base[event]), int(k[event])
        other = seen.setdefault(key, event)
        if a.outer[other] != a.outer[event]:
            clashes.append((other, event))
    if not clashes:
        return
    first, other = clashes[0]
    rows = a.tiles.outer.shape[1]
    texts = [f"{int(a.outer[x])}..{int(a.outer[x]) + rows - 1}" for x in (first, other)]
    message = (
        f"the same {_NAMES[words.operand.role]} is used for {a.tiles.outer_axis} {texts[0]} and {texts[1]} "
        f"of A ({warps_text(words.operand.places[[first, other]])})"
    )
    yield _found(words, "metadata rows", message, np.array(sorted({x for pair in clashes for x in pair})))
