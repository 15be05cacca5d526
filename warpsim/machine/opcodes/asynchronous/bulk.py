"""cp.async.bulk, cp.reduce.async.bulk and their groups: copies of many bytes that one lane starts.

Addresses and sizes are multiples of 16; a copy lies within one allocation, or within the shared memory of one
CTA. What is wrong is found when a copy is issued; bytes move when the schedule says (asynchronous.py). Every
lane that executes a statement starts a copy. Reductions go element by element; add.f32 flushes subnormals in
global memory, as red does (inferred). A prefetch does nothing but check. PTX ISA 9.1, section 9.7.9.25.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ....isa.features import Feature
from ....ptx.constants import Immediate
from ...bind.value_types import dtype_of
from ...run.addition_orders import WAITED, Adder, adder, note_copy
from ...run.asynchronous import commit, drain, issue
from ...run.clusters import FIRST, RANK_BYTES
from ...run.pending import Moved, Pending, Stretches
from ...run.wave import Record, Step, Wave
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.spaces import DEVICE_BASE, Bytes, InvalidAccess, Offsets
from ..effect import Effect
from ..memory.updates import FLUSHED, FLUSHES, Update, apply, note_doubt, updates_of
from ..operation import Version
from ..statement_binder import Reader, StatementBinder

UNIT = 16  # bytes: sizes and addresses are multiples
MOST = (1 << 20) - UNIT
RANKS = 16  # of CTAs in a cluster, one bit each of a mask
_BYTES, _GROUP = "mbarrier::complete_tx::bytes", "bulk_group"
_SPACES = ("global", "shared::cta", "shared::cluster")
FAMILY = "bulk"

Put = Callable[[Wave, str, int, Bytes], None]  # into a space, from an offset on, what has been read


@dataclass(frozen=True, kw_only=True)
class _Form:
    """What a statement's modifiers and operands mean; readers give one value a lane."""

    spaces: tuple[str, str]  # to, from
    target: Reader
    source: Reader
    size: Reader
    barrier: Reader | None
    ranks: Reader | None
    put: Callable[[int, Adder], Put]  # of the mask of bytes
    mask: Reader | None
    kind: str
    update: str = ""  # of a reduction, with its type
    type: str = ""


# --- operands ----------------------------------------------------------------------------------------


def _form(binder: StatementBinder, put: Callable[[int, Adder], Put], kind: str) -> _Form:
    """Return the operands in their order: to, from, size, mbarrier, CTAs, policy, bytes."""
    words = binder.statement.modifiers
    to, from_ = _direction(binder)
    optional = [
        modifier for modifier in ("multicast::cluster", "L2::cache_hint", "cp_mask") if modifier in words
    ]
    counted = _BYTES in words
    binder.count(3 + counted + len(optional))
    places = {modifier: 3 + counted + index for index, modifier in enumerate(optional)}
    if (policy := places.get("L2::cache_hint")) is not None:
        binder.policy(policy)
    return _Form(
        spaces=(to, from_),
        target=binder.address(0, to.partition("::")[0]),
        source=binder.address(1, from_.partition("::")[0]),
        size=_size(binder, 2),
        barrier=binder.address(3, "shared") if counted else None,
        ranks=_word(binder, places.get("multicast::cluster")),
        mask=_word(binder, places.get("cp_mask")),
        put=put,
        kind=kind,
    )


def _direction(binder: StatementBinder) -> tuple[str, str]:
    """Return the spaces in the order in which they are written, to and from; raises IllegalInstruction."""
    words = binder.statement.modifiers
    found = tuple(word for word in words if word in _SPACES)
    if len(found) != 2 or found == ("shared::cta", "shared::cluster") or found[1] == "shared::cluster":
        raise binder.illegal(f"{binder.statement.opcode}.async.bulk does not go to .{' from .'.join(found)}")
    stored = found[0] == "global"
    if stored is not (_GROUP in words) or ("reduce" in words and found == ("shared::cta", "global")):
        raise binder.illegal(f"{binder.statement.mnemonic}: its modifiers do not go together")
    return found[0], found[1]


def _size(binder: StatementBinder, index: int) -> Reader:
    """Return bytes, a multiple of 16; raises IllegalInstruction for other constants."""
    operand = binder.operands[index]
    if isinstance(operand, Immediate) and operand.kind == "integer":
        size = operand.value & 0xFFFF_FFFF
        if size % UNIT or size > MOST:
            raise binder.illegal(f"a size of {operand}: expected a multiple of {UNIT}, at most {MOST}", index)
    return binder.reader(operand, "u32", index)


def _word(binder: StatementBinder, index: int | None) -> Reader | None:
    return None if index is None else binder.reader(binder.operands[index], "b16", index)


def _values(read: Reader | None, wave: Wave, path: DivergentPath, lanes: Lanes, default: int = 0) -> Values:
    """Return (lanes.count,) int64: an operand."""
    given = np.array(default) if read is None else read(wave, path)
    return np.broadcast_to(lanes.of(given), (lanes.count,)).astype(np.int64)


# --- starting a copy ---------------------------------------------------------------------------------


def _checked_sizes(form: _Form, wave: Wave, path: DivergentPath, lanes: Lanes) -> Values:
    """Return bytes of each lane's copy; raises Fault where PTX leaves it undefined."""
    sizes = _values(form.size, wave, path, lanes)
    wrong = np.flatnonzero((sizes % UNIT != 0) | (sizes > MOST))
    if wrong.size:
        message = f"a size of {int(sizes[wrong[0]])}: expected a multiple of {UNIT}, at most {MOST}"
        raise wave.fault(wave.code[path.pc], int(lanes.index[wrong[0]]), message)
    return sizes


def _ends(wave: Wave, space: str, lanes: Lanes, addresses: Values, sizes: Values) -> Offsets:
    """Return where in its memory each lane's bytes begin, now that all of them are known to be there."""
    space = "shared" if space == "shared::cta" else space
    begin = wave.locate(space, lanes, addresses, UNIT)[1]
    if space == "global":
        _check_allocations(wave, lanes, begin + DEVICE_BASE, sizes)
    else:
        wave.locate(space, lanes, addresses + np.maximum(sizes, UNIT) - UNIT, UNIT)
    return begin


def _check_allocations(wave: Wave, lanes: Lanes, addresses: Values, sizes: Values) -> None:
    """Check that both ends of a copy lie in one allocation; raises InvalidAccess."""
    for lane, address, size in zip(lanes.index.tolist(), addresses.tolist(), sizes.tolist(), strict=True):
        found = wave.memories.device.allocation_at(address)
        if address + size > found.address + found.size:
            past = address + size - found.address - found.size
            raise InvalidAccess(
                lane, address, f"lacks room: {size} bytes from there run {past} bytes over the end of {found}"
            )


def _offsets_of_rank(addresses: Values, rank: int) -> Values:
    """Return the same offsets in the CTA of that rank."""
    return np.asarray(addresses % RANK_BYTES + (rank + FIRST) * RANK_BYTES)


def _targets(
    form: _Form, wave: Wave, path: DivergentPath, lanes: Lanes, sizes: Values
) -> list[list[tuple[int, int]]]:
    """Of each lane, where its bytes go and the mbarrier there, or -1; a pair for each CTA that gets them."""
    to, barriers = _values(form.target, wave, path, lanes), _values(form.barrier, wave, path, lanes, -1)
    if form.ranks is None:
        return [[pair] for pair in _pairs(form, wave, lanes, to, barriers, sizes)]
    masks = _values(form.ranks, wave, path, lanes)
    found: list[list[tuple[int, int]]] = [[] for _ in range(lanes.count)]
    for rank in range(RANKS):
        chosen = np.flatnonzero(masks >> rank & 1)
        if chosen.size:
            mask = np.zeros_like(lanes.mask)
            mask[lanes.index[chosen]] = True
            there = (
                _offsets_of_rank(to[chosen], rank),
                _offsets_of_rank(barriers[chosen], rank),
                sizes[chosen],
            )
            for place, pair in zip(chosen.tolist(), _pairs(form, wave, Lanes(mask), *there), strict=True):
                found[place].append(pair)
    return found


def _pairs(
    form: _Form, wave: Wave, lanes: Lanes, to: Values, barriers: Values, sizes: Values
) -> list[tuple[int, int]]:
    begin = _ends(wave, form.spaces[0], lanes, to, sizes).tolist()
    if form.barrier is None:
        return [(offset, -1) for offset in begin]
    space = "shared" if form.spaces[0] == "shared::cta" else form.spaces[0]
    return list(zip(begin, wave.locate(space, lanes, barriers, 8)[1].tolist(), strict=True))


def _starting(form: _Form) -> Step:
    """Return every lane's copy is checked, then all of them are issued."""

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        sizes = _checked_sizes(form, wave, path, lanes)
        begin = _ends(wave, form.spaces[1], lanes, _values(form.source, wave, path, lanes), sizes)
        targets = _targets(form, wave, path, lanes, sizes)
        masks = _values(form.mask, wave, path, lanes, (1 << UNIT) - 1)
        rows = zip(lanes.index.tolist(), begin.tolist(), targets, sizes.tolist(), masks.tolist(), strict=True)
        record = wave.code[path.pc]
        made = [_pending(form, adder(wave, path.pc, row[0]), record, _Copy(*row)) for row in rows]
        for pending in made:
            issue(wave, path, pending)

    return step


def _memory(wave: Wave, space: str) -> Bytes:
    return wave.memories.device.data if space == "global" else wave.memories.shared


class _Copy(NamedTuple):
    """A lane's copy of ``size`` bytes from ``begin`` on, to (offset, mbarrier or -1) of each target."""

    lane: int
    begin: int
    targets: Sequence[tuple[int, int]]
    size: int
    mask: int


def _pending(form: _Form, by: Adder, record: Record, copy: _Copy) -> Pending:
    """One lane's copy."""
    lane, begin, targets, size, mask = copy
    to, from_ = (space.partition("::")[0] for space in form.spaces)
    put, held = form.put(mask, by), list[Bytes]()

    def read(wave: Wave) -> None:
        held.append(_memory(wave, from_)[begin : begin + size].copy())

    def complete(wave: Wave) -> None:
        for first, _ in targets:
            put(wave, to, first, held[0])

    def moved(wave: Wave) -> Moved:
        places = np.arange(size)
        places = places[mask >> places % UNIT & 1 == 1]
        ends = tuple((to, first + places) for first, _ in targets)
        return Moved(space=from_, source=begin + places, targets=ends, update=form.update, type=form.type)

    return Pending(
        record=record,
        lane=lane,
        kind=form.kind,
        moved=moved,
        read=read,
        complete=complete,
        reads=(Stretches.single(from_, begin, size),),
        writes=tuple(_written_ranges(to, first, size, mask) for first, _ in targets),
        signals=tuple((barrier, size) for _, barrier in targets if barrier >= 0),
        group="" if form.barrier else FAMILY,
    )


def _written_ranges(space: str, first: int, size: int, mask: int) -> Stretches:
    """Return the bytes that a copy writes, with a mask of those of each 16."""
    if mask == (1 << UNIT) - 1:
        return Stretches.single(space, first, size)
    chosen = [place for place in range(UNIT) if mask >> place & 1]
    begin = (np.arange(first, first + size, UNIT)[:, None] + np.array(chosen, np.int64)).reshape(-1)
    return Stretches(space=space, ranges=np.stack([begin, begin + 1], axis=1))


# --- what becomes of the bytes -----------------------------------------------------------------------


def _overwriting(mask: int, by: Adder) -> Put:
    if mask == (1 << UNIT) - 1:

        def put(wave: Wave, space: str, first: int, content: Bytes) -> None:
            _memory(wave, space)[first : first + content.size] = content

        return put
    chosen = np.flatnonzero([mask >> place & 1 for place in range(UNIT)])

    def put_some(wave: Wave, space: str, first: int, content: Bytes) -> None:
        memory = _memory(wave, space)[first : first + content.size].reshape(-1, UNIT)
        memory[:, chosen] = content.reshape(-1, UNIT)[:, chosen]

    return put_some


def _reducing(updates: dict[str, Update], type_name: str, by: Adder) -> Put:
    dtype = dtype_of(type_name)

    def put(wave: Wave, space: str, first: int, content: Bytes) -> None:
        words, update, memory = content.view(dtype)[:, None], updates[space], _memory(wave, space)
        offsets = first + np.arange(len(words)) * dtype.itemsize
        old = apply(memory, offsets, [words], update)
        note_doubt(wave, by.pc, update, old, words)
        note_copy(wave, update.adds, by, (memory, offsets, old, words))

    return put


# --- statements --------------------------------------------------------------------------------------


def _copy(binder: StatementBinder, *modifiers: str) -> Step:
    _check_order(binder, "async", "bulk")
    return _starting(_form(binder, _overwriting, "bulk copy"))


def _reduce(binder: StatementBinder, *modifiers: str) -> Step:
    _check_order(binder, "reduce", "async", "bulk")
    type_name = modifiers[-1]
    updates = updates_of(modifiers[-3], type_name)
    form = _form(binder, lambda mask, by: _reducing(updates, type_name, by), "bulk reduction")
    form = replace(form, update=modifiers[-3], type=type_name)
    start = _starting(form)
    if (modifiers[-3], type_name) != FLUSHED:
        return start

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
        wave.infer(path.pc, FLUSHES)
        return start(wave, path, lanes)

    return step


def _check_order(binder: StatementBinder, *words: str) -> None:
    """Check that the words of an instruction's name come first; raises IllegalInstruction."""
    if binder.statement.modifiers[: len(words)] != words:
        name = ".".join((binder.statement.opcode, *words))
        raise binder.illegal(f"{binder.statement.mnemonic}: the name of the instruction is {name}")


def _prefetch(binder: StatementBinder, *modifiers: str) -> Step:
    _check_order(binder, "async", "bulk", "prefetch")
    hint = "L2::cache_hint" in modifiers
    binder.count(2 + hint)
    address, size = binder.address(0, "global"), _size(binder, 1)
    if hint:
        binder.policy(2)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        sizes = _values(size, wave, path, lanes)
        wrong = np.flatnonzero((_values(address, wave, path, lanes) | sizes) % UNIT)
        if wrong.size:
            lane, message = int(lanes.index[wrong[0]]), f"the address or the size is not a multiple of {UNIT}"
            raise wave.fault(wave.code[path.pc], lane, message)

    return step


def _commit(binder: StatementBinder, *modifiers: str) -> Step:
    _check_order(binder, "async", "bulk", "commit_group")
    binder.count(0)
    return lambda wave, path, lanes: commit(wave, lanes, FAMILY)


def _wait(binder: StatementBinder, *modifiers: str) -> Step:
    _check_order(binder, "async", "bulk", "wait_group")
    binder.count(1)
    operand, reads = binder.operands[0], "read" in modifiers
    if not isinstance(operand, Immediate) or operand.kind != "integer":
        raise binder.illegal(f"the number of groups is an integer constant, not '{operand}'", 0)
    most = min(operand.value & 0xFFFF_FFFF, 1 << 31)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        drain(wave, path, lanes, FAMILY, most, reads=reads)
        if not (most or reads):
            WAITED.of(wave)[lanes.index] += 1

    return step


# --- rows --------------------------------------------------------------------------------------------

Slots = tuple[tuple[str, ...], ...]

_BULK: Slots = (("async",), ("bulk",))
_REDUCE: Slots = (("reduce",), *_BULK)
_LOADED: Slots = (*_BULK, ("shared::cta",), ("global",), (_BYTES,))
_FAR: Slots = (*_BULK, ("shared::cluster",), ("global",), (_BYTES,))
_PEER: Slots = (("shared::cluster",), ("shared::cta",), (_BYTES,))
_STORED: Slots = (("global",), ("shared::cta",), (_GROUP,))
_HINT: Slots = (("", "L2::cache_hint"),)
_NONE = ("",)

# fmt: off
_TABLE: tuple[tuple[Callable[..., Step], Slots, Version, Feature], ...] = (
    (_copy, (*_LOADED, *_HINT),                                      (8, 6), Feature.BULK_COPY),
    (_copy, (*_FAR, ("", "multicast::cluster"), *_HINT),             (8, 0), Feature.BULK_COPY),
    (_copy, (*_BULK, *_PEER),                                        (8, 0), Feature.BULK_COPY),
    (_copy, (*_BULK, *_STORED, *_HINT),                              (8, 0), Feature.BULK_COPY),
    (_copy, (*_BULK, *_STORED, *_HINT, ("cp_mask",)),                (8, 6), Feature.BYTE_MASKS),
    (_prefetch, (*_BULK, ("prefetch",), ("L2",), ("global",), *_HINT), (8, 0), Feature.BULK_COPY),
    (_commit, (*_BULK, ("commit_group",)),                           (8, 0), Feature.BULK_COPY),
    (_wait, (*_BULK, ("wait_group",), ("", "read")),                 (8, 0), Feature.BULK_COPY),
)
_REDUCTIONS: tuple[tuple[Slots, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (_PEER,   ("add",),              _NONE,      ("u32", "s32", "u64")),
    (_PEER,   ("min", "max"),        _NONE,      ("u32", "s32")),
    (_PEER,   ("inc", "dec"),        _NONE,      ("u32",)),
    (_PEER,   ("and", "or", "xor"),  _NONE,      ("b32",)),
    (_STORED, ("add",),              _NONE,      ("u32", "s32", "u64", "f32", "f64")),
    (_STORED, ("add",),              ("noftz",), ("f16", "bf16")),
    (_STORED, ("min", "max"),        _NONE,      ("u32", "s32", "u64", "s64", "f16", "bf16")),
    (_STORED, ("inc", "dec"),        _NONE,      ("u32",)),
    (_STORED, ("and", "or", "xor"),  _NONE,      ("b32", "b64")),
)
# fmt: on

ROWS: tuple[Effect, ...] = (
    *(
        Effect(opcode="cp", slots=slots, bind=bind, since=since, feature=feature)
        for bind, slots, since, feature in _TABLE
    ),
    *(
        Effect(
            opcode="cp",
            slots=(*_REDUCE, *places, *(_HINT if places is _STORED else ()), names, flushing, types),
            bind=_reduce,
            since=(8, 0),
            feature=Feature.BULK_COPY,
        )
        for places, names, flushing, types in _REDUCTIONS
    ),
)
