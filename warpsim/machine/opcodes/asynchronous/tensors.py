"""cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and cp.async.bulk.prefetch.tensor: boxes of tensors.

Every lane that executes a statement moves a box. What is wrong is found when it is issued (tensor_boxes.py);
bytes move when the schedule has it (run/asynchronous.py). The tx-count falls by the bytes of the whole box in
shared memory, those that are filled included, but not by the gaps that packed elements leave there: kernels
of CUTLASS, DeepGEMM and tilelang expect so many (reported; PTX leaves it open).
Destinations and sources in shared memory are multiples of 128 bytes. Reductions go element by element, and
flush subnormals of f32 as red does (inferred). PTX ISA 9.1, section 9.7.9.27.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ....isa.features import Feature
from ....ptx.operands import Address, Operand, Vector
from ...run.addition_orders import Adder, adder
from ...run.asynchronous import issue
from ...run.clusters import rank_in, ranks_of
from ...run.events import observers_of
from ...run.pending import Pending
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ..effect import Effect
from ..memory.updates import FLUSHED, FLUSHES, updates_of
from ..operation import Version
from ..statement_binder import StatementBinder
from .tensor_boxes import FOUR, Box, NamedBox, Reader, boxes_of, landing, ranked, signal, values_of
from .tensor_moves import Content, Move

FAMILY = "bulk"  # of groups
_RANKS = 16  # of CTAs in a cluster, one bit each of a mask
_BYTES, _GROUP = "mbarrier::complete_tx::bytes", "bulk_group"
_COLUMNS = ("im2col", "im2col_no_offs")
_WIDE = ("im2col::w", "im2col::w::128")


# --- operands ----------------------------------------------------------------------------------------


def _box(binder: StatementBinder, index: int, offsets: int | None = None, reduction: str = "") -> Box:
    """Return the box of an operand ``[map, {coordinates}]``; ``offsets`` is the place of im2col's. Raises
    IllegalInstruction.
    """
    words = binder.statement.modifiers
    rank = next(int(word[0]) for word in words if word in _DIMENSIONS)
    mode = next((word for word in words if word in _MODES), "tile")
    if mode in _WIDE:
        raise binder.not_modelled(f"{mode}: the manual shows the order of its pixels in figures only")
    count = 5 if mode in FOUR else rank
    return Box(
        rank=rank,
        mode=mode,
        map=binder.address(index, "generic", box=True),
        coordinates=_vector(binder, index, _coordinates(binder, index), count, "s32"),
        offsets=()
        if offsets is None
        else _vector(binder, offsets, binder.operands[offsets], rank - 2, "u16"),
        target=binder.module.target,
        stored=_GROUP in words,
        reduction=reduction,
    )


def _coordinates(binder: StatementBinder, index: int) -> Operand:
    operand = binder.operands[index]
    if isinstance(operand, Address) and operand.offset:
        raise binder.illegal(f"the address of a tensor map takes no offset, as in '{operand}'", index)
    if not isinstance(operand, Address) or len(operand.coordinates) != 1:
        raise binder.illegal(f"expected a map and coordinates, as [map, {{x, y}}], not '{operand}'", index)
    return operand.coordinates[0]


def _vector(
    binder: StatementBinder, index: int, operand: Operand, count: int, kind: str
) -> tuple[Reader, ...]:
    given = operand.elements if isinstance(operand, Vector) else (operand,)
    if not isinstance(operand, Vector) or len(given) != count:
        raise binder.illegal(f"expected {count} values in braces, not '{operand}'", index)
    return tuple(binder.reader(element, kind, index) for element in given)


# --- statements --------------------------------------------------------------------------------------


def _check_order(binder: StatementBinder, *words: str) -> None:
    """Check that the words of the name come first, and "to" before "from"; raises IllegalInstruction."""
    given = binder.statement.modifiers
    if given[: len(words)] != words:
        name = ".".join((binder.statement.opcode, *words))
        raise binder.illegal(f"{binder.statement.mnemonic}: the name of the instruction is {name}")
    places = [word for word in given if word in ("global", *_CTA, *_CLUSTER)]
    if len(places) == 2 and (places[0] == "global") is not (_GROUP in given):
        places.reverse()
        swapped = f"goes to .{places[0]} from .{places[1]}, and says so in that order"
        raise binder.illegal(f"{binder.statement.mnemonic} {swapped}")


def _load(binder: StatementBinder, *modifiers: str) -> Step:
    """From global to shared memory; operands: to, box, mbarrier, offsets, CTAs, policy."""
    words = binder.statement.modifiers
    _check_order(binder, "async", "bulk", "tensor")
    more = [
        modifier
        for modifier in (*_COLUMNS, *_WIDE, "multicast::cluster", "L2::cache_hint")
        if modifier in words
    ]
    binder.count(3 + len(more))
    places = {modifier: 3 + index for index, modifier in enumerate(more)}
    if (policy := places.get("L2::cache_hint")) is not None:
        binder.policy(policy)
    space = "shared::cluster" if "shared::cluster" in words else "shared"
    target, barrier = binder.address(0, space), binder.address(2, space)
    mask = places.get("multicast::cluster")
    ranks = None if mask is None else binder.reader(binder.operands[mask], "b16", mask)
    box, paired = _box(binder, 1, places.get("im2col")), "cta_group::2" in words

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        boxes = boxes_of(box, wave, path, lanes)
        to, barriers = (values_of(read, wave, path, lanes) for read in (target, barrier))
        masks = values_of(ranks, wave, path, lanes)
        made = list[Pending]()
        for named, *where, chosen in zip(boxes, to, barriers, masks, strict=True):
            pairs = [tuple(where)] if ranks is None else _everywhere(chosen, *where)
            if paired and ranks is not None:
                pairs = [(place, _in_pair(wave, named, place, where[1])) for place, _ in pairs]
            made.append(_loading(wave, path, named, space, pairs))
        for pending in made:
            issue(wave, path, pending)

    return step


def _everywhere(mask: int, to: int, barrier: int) -> list[tuple[int, ...]]:
    """Destination and mbarrier in each CTA of a mask."""
    chosen = (rank for rank in range(_RANKS) if mask >> rank & 1)
    return [(ranked(to, rank), ranked(barrier, rank)) for rank in chosen]


def _in_pair(wave: Wave, named: NamedBox, to: int, barrier: int) -> int:
    """Return the mbarrier of a destination with .cta_group::2: in the CTA of its pair whose parity is that of
    the CTA of ``barrier``.
    """
    own = int(ranks_of(wave, named.lanes)[0])
    parity = rank_in(barrier, own) & 1
    return ranked(barrier, rank_in(to, own) & ~1 | parity)


def _loading(
    wave: Wave, path: DivergentPath, named: NamedBox, space: str, pairs: Sequence[tuple[int, ...]]
) -> Pending:
    """One lane's load, to each CTA."""
    landings = tuple(landing(wave, named, space, to) for to, _ in pairs)
    signals = tuple(signal(wave, named, space, barrier) for _, barrier in pairs)
    move, held = Move(map=named.map, pieces=named.pieces, landings=landings), list[Content]()
    if (why := move.inferred) is not None:
        wave.infer(path.pc, why)
    return Pending(
        record=wave.code[path.pc],
        lane=named.lane,
        kind="tensor copy",
        read=lambda wave: held.append(move.fetched(wave)),
        complete=lambda wave: move.land(wave, held[0]),
        moved=move.loaded,
        reads=(move.in_global(),) if observers_of(wave) else (),
        writes=move.in_shared() if observers_of(wave) else (),
        signals=signals,
    )


def _store(binder: StatementBinder, *modifiers: str) -> Step:
    """From shared to global memory; operands: box, from, policy. Reductions, too."""
    words = binder.statement.modifiers
    reduces = words[0] == "reduce"
    _check_order(binder, *(("reduce",) if reduces else ()), "async", "bulk", "tensor")
    hint = "L2::cache_hint" in words
    binder.count(2 + hint)
    if hint:
        binder.policy(2)
    box = _box(binder, 0, reduction=next((word for word in words if word in _REDUCTIONS), ""))
    source = binder.address(1, "shared")

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        boxes = boxes_of(box, wave, path, lanes)
        made = [
            _storing(wave, path, box, named, address)
            for named, address in zip(boxes, values_of(source, wave, path, lanes), strict=True)
        ]
        for pending in made:
            issue(wave, path, pending)

    return step


def _storing(wave: Wave, path: DivergentPath, box: Box, named: NamedBox, address: int) -> Pending:
    """One lane's store or reduction."""
    there = landing(wave, named, "shared", address)
    move, held = Move(map=named.map, pieces=named.pieces, landings=(there,)), list[Content]()
    by = adder(wave, path.pc, named.lane)
    put = _reducing(move, box.reduction, by) if box.reduction else move.store
    if (box.reduction, named.map.element) == FLUSHED:
        wave.infer(path.pc, FLUSHES)
    return Pending(
        record=wave.code[path.pc],
        lane=named.lane,
        kind="tensor reduction" if box.reduction else "tensor copy",
        read=lambda wave: held.append(move.taken(wave)),
        complete=lambda wave: put(wave, held[0]),
        moved=partial(move.left, update=box.reduction),
        reads=(move.source(),) if observers_of(wave) else (),
        writes=(move.in_global(),) if observers_of(wave) else (),
        group=FAMILY,
    )


def _reducing(move: Move, name: str, by: Adder) -> Callable[[Wave, Content], None]:
    update = updates_of(name, move.map.element)["global"]
    return lambda wave, content: move.reduce(wave, content, update, by)


def _prefetch(binder: StatementBinder, *modifiers: str) -> Step:
    """Nothing but a look at the map and the coordinates."""
    words = binder.statement.modifiers
    _check_order(binder, "async", "bulk", "prefetch", "tensor")
    more = [modifier for modifier in (*_COLUMNS, *_WIDE, "L2::cache_hint") if modifier in words]
    binder.count(1 + len(more))
    if "L2::cache_hint" in words:
        binder.policy(len(more))
    box = _box(binder, 0, 1 if "im2col" in words else None)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        boxes_of(box, wave, path, lanes)

    return step


# --- rows --------------------------------------------------------------------------------------------

Slots = tuple[tuple[str, ...], ...]

_DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
_MODES = ("tile", *FOUR, *_COLUMNS, *_WIDE)
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_ANY, _IMAGES, _ROWS = _DIMENSIONS, _DIMENSIONS[2:], ("2d",)
_TILE, _PIXELS = ("", "tile"), ("im2col",)
_HINT = ("", "L2::cache_hint")
_NAME: Slots = (("async",), ("bulk",), ("tensor",))
_REDUCE: Slots = (("reduce",), *_NAME)
_PREFETCH: Slots = (("async",), ("bulk",), ("prefetch",), ("tensor",))
_LOADED: Slots = (("global",), (_BYTES,))
_STORED: Slots = (("global",), ("shared::cta",), (_GROUP,), _HINT)
_CTA, _CLUSTER = ("shared::cta",), ("shared::cluster",)
_MANY, _NONE = ("", "multicast::cluster"), ("",)
_PAIRS = ("cta_group::1", "cta_group::2")

_Need = tuple[Version, Feature]
_FIRST: _Need = ((8, 0), Feature.TENSOR_COPY)
_NEAR: _Need = ((8, 6), Feature.TENSOR_COPY)
_LATER: _Need = ((8, 6), Feature.GATHER4)
_OWN: _Need = ((8, 6), Feature.CTA_PAIRS)

# fmt: off
_LOADS: tuple[tuple[Slots, _Need], ...] = (  # dimensions, to, mode, multicast, pairs
    ((_ANY,    _CLUSTER, _TILE,                _MANY, _NONE),  _FIRST),
    ((_IMAGES, _CLUSTER, _PIXELS,              _MANY, _NONE),  _FIRST),
    ((_ANY,    _CTA,     _TILE,                _NONE, _NONE),  _NEAR),
    ((_IMAGES, _CTA,     _PIXELS,              _NONE, _NONE),  _NEAR),
    ((_ROWS,   _CTA,     ("tile::gather4",),   _NONE, _NONE),  _LATER),
    ((_IMAGES, _CTA,     ("im2col::w",),       _NONE, _NONE),  _LATER),
    ((_ROWS,   _CLUSTER, ("tile::gather4",),   _MANY, _NONE),  _OWN),
    ((_IMAGES, _CLUSTER, _WIDE,                _MANY, _NONE),  _OWN),
    ((_IMAGES, _CTA,     ("im2col::w::128",),  _NONE, _NONE),  _OWN),
    ((_ANY,    _CLUSTER, _TILE,                _MANY, _PAIRS), _OWN),
    ((_ANY,    _CTA,     _TILE,                _NONE, _PAIRS), _OWN),
    ((_ROWS,   _CLUSTER, ("tile::gather4",),   _MANY, _PAIRS), _OWN),
    ((_ROWS,   _CTA,     ("tile::gather4",),   _NONE, _PAIRS), _OWN),
    ((_IMAGES, _CLUSTER, (*_PIXELS, *_WIDE),   _MANY, _PAIRS), _OWN),
    ((_IMAGES, _CTA,     (*_PIXELS, *_WIDE),   _NONE, _PAIRS), _OWN),
)
_STORES: tuple[tuple[Slots, _Need], ...] = (
    ((_ANY,    _TILE),                _FIRST),
    ((_IMAGES, ("im2col_no_offs",)),  _FIRST),
    ((_ROWS,   ("tile::scatter4",)),  _OWN),
)
_PREFETCHES: tuple[tuple[Slots, _Need], ...] = (
    ((_ANY,    _TILE),                _FIRST),
    ((_IMAGES, _PIXELS),              _FIRST),
    ((_ROWS,   ("tile::gather4",)),   _OWN),
    ((_IMAGES, _WIDE),                _OWN),
)
# fmt: on


_ORDER = (
    "inferred: pixels are visited with W fastest, and from the box's lower corner on; the manual has figures"
)


def _row(bind: Callable[..., Step], slots: Slots, need: _Need) -> Effect:
    since, feature = need
    note = _ORDER if any(word in slot for slot in slots for word in _COLUMNS) else ""
    return Effect(
        opcode="cp",
        slots=slots,
        bind=bind,
        since=since,
        feature=feature,
        fidelity="inferred" if note else "exact",
        note=note,
    )


ROWS: tuple[Effect, ...] = (
    *(_row(_load, (*_NAME, *slots, *_LOADED, _HINT), need) for slots, need in _LOADS),
    *(_row(_store, (*_NAME, *slots, *_STORED), need) for slots, need in _STORES),
    *(_row(_store, (*_REDUCE, *slots, *_STORED, _REDUCTIONS), need) for slots, need in _STORES),
    *(
        _row(_prefetch, (*_PREFETCH, *slots, ("L2",), ("global",), _HINT), need)
        for slots, need in _PREFETCHES
    ),
)
