"""Exchange between the lanes of a warp: shfl, vote, match, redux, activemask, elect (PTX ISA 9.1, 9.7.9).

Knows what each lane gets from the others that execute with it; which lanes these are, and which wait, is
decided in convergence.py. A value read from a lane that does not take part is undefined: here it is 0, and
observers are notified
("unspecified"). The forms without .sync are those of PTX before 6.4: the lanes that stand together execute.
elect.sync chooses the lowest member that is there, which PTX leaves open.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....isa.features import Feature
from ....isa.warps import WARP
from ....ptx.operands import Operand, Pair, Sink
from ...run.convergence import lane_words, together
from ...run.events import Observer, observers_of
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes, Mask, Values
from ..effect import Effect
from ..integer.words import number_dtype, unsigned
from ..operation import Compute
from ..statement_binder import Reader, StatementBinder, Writer

# (wave, lanes that execute, members of each as words, values of the source) -> the results
Exchange = Callable[[Wave, Lanes, Values, Values], tuple[Values, ...]]

_LAST_UNSYNCHRONISED = (6, 3)


def _check_old(binder: StatementBinder) -> None:
    """Check that forms without .sync, which end with PTX 6.3, are still there; raises IllegalInstruction."""
    if binder.module.version > _LAST_UNSYNCHRONISED:
        raise binder.illegal(f"{binder.statement.opcode} without .sync is not in PTX 6.4 and later")


def _targets(binder: StatementBinder, kinds: tuple[str, ...], *, least: int = 1) -> list[Writer]:
    """Return writers of ``d``, or of ``d|p``; at least so many must be given."""
    first = binder.operands[0]
    given: tuple[Operand, ...] = (first.first, first.second) if isinstance(first, Pair) else (first,)
    if not least <= len(given) <= len(kinds):
        wanted = "'d|p'" if least > 1 else "'d'" if len(kinds) == 1 else "'d' or 'd|p'"
        raise binder.illegal(f"{binder.statement.mnemonic} writes {wanted}", 0)
    return [binder.writer(target, kind, 0) for target, kind in zip(given, kinds, strict=False)]


def _everywhere(wave: Wave, path: DivergentPath, read: Reader) -> Values:
    """Return a source, one value a lane."""
    return np.broadcast_to(read(wave, path), (wave.lanes,))


def _exchanged(members: Reader | None, source: Reader, writers: list[Writer], exchange: Exchange) -> Step:
    """Return the step of a statement: lanes of one mask come together, and each gets the results of an
    exchange.
    """

    def act(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        here = lane_words(lanes.mask)
        named = here if members is None else here & members(wave, path)
        results = exchange(wave, lanes, named, _everywhere(wave, path, source))
        for write, result in zip(writers, results, strict=False):
            write(wave, path, lanes, result)

    if members is None:
        return act
    masks = members
    return lambda wave, path, lanes: together(wave, path, lanes, masks(wave, path), act)


def _lane(wave: Wave) -> Values:
    """Return the number of each lane in its warp, int64."""
    return wave.thread % WARP


# --- shfl ------------------------------------------------------------------------------------------


def _up(lane: Values, b: Values, segments: Values, limit: Values) -> tuple[Values, Values]:
    source = lane - b
    return source, source >= limit


def _down(lane: Values, b: Values, segments: Values, limit: Values) -> tuple[Values, Values]:
    source = lane + b
    return source, source <= limit


def _butterfly(lane: Values, b: Values, segments: Values, limit: Values) -> tuple[Values, Values]:
    source = lane ^ b
    return source, source <= limit


def _indexed(lane: Values, b: Values, segments: Values, limit: Values) -> tuple[Values, Values]:
    source = (lane & segments) | (b & ~segments)
    return source, source <= limit


_MODES = {"up": _up, "down": _down, "bfly": _butterfly, "idx": _indexed}


def sources_of(mode: str, lane: Values, b: Values, c: Values) -> tuple[Values, Values]:
    """Return the lane of its warp that each lane reads, int64, and whether it lies within the segment
    (bool).
    """
    wide_b, wide_c = b.astype(np.int64) & 31, c.astype(np.int64)
    segments = wide_c >> 8 & 31
    limit = (lane & segments) | (wide_c & 31 & ~segments)
    source, within = _MODES[mode](lane, wide_b, segments, limit)
    return np.where(within, source, lane), within


def _shuffle(binder: StatementBinder, sync: str, mode: str, type_name: str) -> Step:
    binder.count(5 if sync else 4)
    first = binder.operands[0]
    if isinstance(first.first if isinstance(first, Pair) else first, Sink):
        raise binder.illegal("shfl does not take '_' for its first result", 0)
    writers = _targets(binder, (type_name, "pred"))
    value, b, c = (binder.reader(binder.operands[place], "b32", place) for place in (1, 2, 3))
    if not sync:
        _check_old(binder)
    members = binder.reader(binder.operands[4], "u32", 4) if sync else None

    def act(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        here = lane_words(lanes.mask)
        named = here if members is None else here & members(wave, path)
        source, within = sources_of(mode, _lane(wave), b(wave, path), c(wave, path))
        there = (named >> source.astype(np.uint32) & np.uint32(1)).astype(np.bool_)
        _notify_undefined(wave, path, lanes, lanes.mask & ~there)
        values = _everywhere(wave, path, value)[np.arange(wave.lanes) - _lane(wave) + source]
        results = np.where(there, values, np.uint32(0)), np.broadcast_to(within, (wave.lanes,))
        for write, result in zip(writers, results, strict=False):
            write(wave, path, lanes, result)

    if members is None:
        return act
    return lambda wave, path, lanes: together(wave, path, lanes, members(wave, path), act)


def _notify_undefined(wave: Wave, path: DivergentPath, lanes: Lanes, undefined: Mask) -> None:
    if observers_of(wave).hear(Observer.unspecified) and undefined.any():
        observers_of(wave).unspecified(wave, path, Lanes(undefined), "reads a lane that does not take part")


# --- vote ------------------------------------------------------------------------------------------


def _votes(decide: Callable[[Values, Values], Values]) -> Exchange:
    """By the members that say yes, and all that are there, each as words."""

    def exchange(wave: Wave, lanes: Lanes, named: Values, source: Values) -> tuple[Values]:
        return (decide(lane_words(lanes.mask & source) & named, named),)

    return exchange


_VOTES: dict[str, Exchange] = {
    "all": _votes(lambda yes, named: yes == named),
    "any": _votes(lambda yes, named: yes != 0),
    "uni": _votes(lambda yes, named: (yes == 0) | (yes == named)),
    "ballot": _votes(lambda yes, named: yes),
}


def _vote(binder: StatementBinder, sync: str, mode: str, type_name: str) -> Step:
    binder.count(3 if sync else 2)
    if not sync:
        _check_old(binder)
    writers = [binder.writer(binder.operands[0], type_name, 0)]
    members = binder.reader(binder.operands[2], "u32", 2) if sync else None
    return _exchanged(members, binder.reader(binder.operands[1], "pred", 1), writers, _VOTES[mode])


# --- match -----------------------------------------------------------------------------------------


def _equal(named: Values, source: Values) -> Values:
    """For each lane, the members that hold its value, as a word."""
    warps = source.reshape(-1, WARP)
    same = warps[:, :, None] == warps[:, None, :]
    words = np.packbits(same, axis=-1, bitorder="little").view("<u4").reshape(-1)
    return words.astype(np.uint32, copy=False) & named


def _match_any(wave: Wave, lanes: Lanes, named: Values, source: Values) -> tuple[Values]:
    return (_equal(named, source),)


def _match_all(wave: Wave, lanes: Lanes, named: Values, source: Values) -> tuple[Values, Values]:
    same = _equal(named, source) == named
    return np.where(same, named, np.uint32(0)), same


_MATCHES: dict[str, tuple[Exchange, tuple[str, ...]]] = {
    "any": (_match_any, ("u32",)),
    "all": (_match_all, ("u32", "pred")),
}


def _match(binder: StatementBinder, mode: str, sync: str, type_name: str) -> Step:
    binder.count(3)
    exchange, kinds = _MATCHES[mode]
    members = binder.reader(binder.operands[2], "u32", 2)
    return _exchanged(
        members, binder.reader(binder.operands[1], type_name, 1), _targets(binder, kinds), exchange
    )


# --- redux -----------------------------------------------------------------------------------------


def _reduction(step: Compute) -> Exchange:
    """Return all members' values, from the lowest lane on; the order is no matter for any ``step`` here."""

    def exchange(wave: Wave, lanes: Lanes, named: Values, source: Values) -> tuple[Values]:
        warps = source.reshape(-1, WARP)
        total, begun = source, np.zeros(wave.lanes, np.bool_)
        for place in range(WARP):
            member = (named >> np.uint32(place) & np.uint32(1)).astype(np.bool_)
            value = np.repeat(warps[:, place], WARP)
            (more,) = step(total, value)
            total = np.where(member, np.where(begun, more, value), total)
            begun = begun | member
        return (total,)

    return exchange


def _compared(function: np.ufunc, type_name: str) -> Compute:
    dtype = number_dtype(type_name)
    return lambda a, b: (unsigned(function(a.view(dtype), b.view(dtype))),)


_INTEGERS = {"add": np.add, "min": np.minimum, "max": np.maximum}
_BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _reduce(binder: StatementBinder, sync: str, operation: str, type_name: str) -> Step:
    function = (_INTEGERS | _BITS)[operation]
    return _reduced(binder, type_name, _reduction(_compared(function, type_name)))


def _reduce_floats(
    binder: StatementBinder, sync: str, operation: str, absolute: str, nan: str, type_name: str
) -> Step:
    """Return the step of min and max of f32: NaN is passed over, or with .NaN propagated; of NaN only,
    canonical.
    """
    from .. import operation as find

    compute = find(operation, *filter(None, (nan, type_name)), sources=2).compute
    reduction = _reduction(compute)
    kept = np.uint32(0x7FFF_FFFF if absolute else 0xFFFF_FFFF)

    def exchange(wave: Wave, lanes: Lanes, named: Values, source: Values) -> tuple[Values, ...]:
        (total,) = reduction(wave, lanes, named, source & kept)
        return compute(total, total)

    return _reduced(binder, type_name, exchange)


def _reduced(binder: StatementBinder, type_name: str, exchange: Exchange) -> Step:
    """Return the registers of .b32 are those of integers."""
    binder.count(3)
    type_name = {"b32": "u32"}.get(type_name, type_name)
    writers = [binder.writer(binder.operands[0], type_name, 0)]
    members = binder.reader(binder.operands[2], "u32", 2)
    return _exchanged(members, binder.reader(binder.operands[1], type_name, 1), writers, exchange)


# --- activemask and elect ----------------------------------------------------------------------------


def _active(binder: StatementBinder, type_name: str) -> Step:
    """Return the lanes of the warp that execute this statement now; where they have diverged, PTX leaves it
    open.
    """
    binder.count(1)
    write = binder.writer(binder.operands[0], type_name, 0)
    return lambda wave, path, lanes: write(wave, path, lanes, lane_words(lanes.mask))


def _elected(wave: Wave, lanes: Lanes, named: Values, source: Values) -> tuple[Values, Values]:
    lowest = named & (~named + np.uint32(1))
    leader = np.bitwise_count(lowest - np.uint32(1)).astype(np.uint32)
    return leader, leader == _lane(wave)


def _elect(binder: StatementBinder, sync: str) -> Step:
    binder.count(2)
    writers = _targets(binder, ("u32", "pred"), least=2)
    if isinstance(binder.operands[0], Pair) and isinstance(binder.operands[0].second, Sink):
        raise binder.illegal("elect.sync does not take '_' for its predicate", 0)
    members = binder.reader(binder.operands[1], "u32", 1)
    return _exchanged(members, members, writers, _elected)


# fmt: off
_SYNC, _PLAIN, _MODE = ("sync",), ("",), tuple(_MODES)
_DECISIONS, _BALLOT = ("all", "any", "uni"), ("ballot",)
_PRED, _B32, _EITHER = ("pred",), ("b32",), ("b32", "b64")
_SUMS, _WORDS = tuple(_INTEGERS), ("u32", "s32")
_FLOATS = (_SYNC, ("min", "max"), ("", "abs"), ("", "NaN"), ("f32",))

_ELECT, _REDUX = Feature.ELECT, Feature.REDUX
ROWS: tuple[Effect, ...] = (
    Effect(opcode="shfl",  slots=(_SYNC, _MODE, _B32),          bind=_shuffle, since=(6, 0)),
    Effect(opcode="shfl",  slots=(_PLAIN, _MODE, _B32),         bind=_shuffle, since=(3, 0)),
    Effect(opcode="vote",  slots=(_SYNC, _DECISIONS, _PRED),    bind=_vote,    since=(6, 0)),
    Effect(opcode="vote",  slots=(_SYNC, _BALLOT, _B32),        bind=_vote,    since=(6, 0)),
    Effect(opcode="vote",  slots=(_PLAIN, _DECISIONS, _PRED),   bind=_vote,    since=(1, 2)),
    Effect(opcode="vote",  slots=(_PLAIN, _BALLOT, _B32),       bind=_vote,    since=(2, 0)),
    Effect(opcode="match", slots=(("any", "all"), _SYNC, _EITHER), bind=_match, since=(6, 0)),
    Effect(opcode="redux", slots=(_SYNC, _SUMS, _WORDS),        bind=_reduce,  since=(7, 0), feature=_REDUX),
    Effect(opcode="redux", slots=(_SYNC, tuple(_BITS), _B32),   bind=_reduce,  since=(7, 0), feature=_REDUX),
    Effect(opcode="redux", slots=_FLOATS, bind=_reduce_floats,  since=(8, 6), feature=Feature.FLOAT_REDUX),
    Effect(opcode="activemask", slots=(_B32,),                  bind=_active,  since=(6, 2)),
    Effect(opcode="elect", slots=(_SYNC,),                      bind=_elect,   since=(8, 0), feature=_ELECT,
           fidelity="inferred", note="PTX leaves open which lane is elected; the lowest that is there"),
)
# fmt: on
