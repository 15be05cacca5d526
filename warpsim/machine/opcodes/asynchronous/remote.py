"""st.async and red.async: stores and reductions that complete later (PTX ISA 9.1, 9.7.9.12, 9.7.13.7).

st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type  [a], b, [mbar];
red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.op.type  [a], b, [mbar];
st.async{.mmio}.release.scope{.global}.type  [a], b;        red.async… .op.type  [a], b;

Those of shared memory signal an mbarrier in the CTA of their destination with the bytes that completed; those
of global memory signal nothing. Each lane issues an operation of its own: the schedule says when it
completes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ....isa.features import Feature
from ...bind.value_types import bits_of, dtype_of
from ...run.asynchronous import issue
from ...run.barriers.mbarrier import undefined
from ...run.pending import Moved, Pending, Stretches
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.spaces import Bytes
from ..effect import Effect
from ..memory.transfers import space_of
from ..memory.updates import apply, updates_of
from ..statement_binder import Reader, StatementBinder

Write = Callable[[Bytes, Values, Values], None]  # memory, the place of one word or vector, its (1, words)


def _put(memory: Bytes, place: Values, words: Values) -> None:
    spaces.put_words(memory, place, words)


def _updating(name: str, type_name: str, space: str) -> Write:
    update = updates_of(name, type_name)[space]

    def write(memory: Bytes, place: Values, words: Values) -> None:
        apply(memory, place, [words], update)

    return write


def updates_in(binder: StatementBinder, type_name: str) -> tuple[str, str]:
    """Return the name of a reduction, "" for a store, and the type."""
    modifiers = binder.statement.modifiers
    return modifiers[-2] if binder.statement.opcode == "red" else "", type_name


def _sources(binder: StatementBinder, count: int, type_name: str) -> list[Reader]:
    """Return the elements of what is stored."""
    return [
        binder.reader(element, type_name, 1, place if count > 1 else None)
        for place, element in enumerate(binder.elements(1, count))
    ]


def _words(wave: Wave, path: DivergentPath, lanes: Lanes, sources: list[Reader], type_name: str) -> Values:
    """Return (lanes.count, elements): what each lane stores."""
    values = [np.broadcast_to(read(wave, path), (wave.lanes,)) for read in sources]
    return np.stack([lanes.of(value).astype(dtype_of(type_name), copy=False) for value in values], axis=-1)


@dataclass(frozen=True)
class _Stores:
    """What lanes store: ``words`` (lanes, elements) at ``offsets`` (lanes,), and the mbarriers to signal."""

    space: str
    offsets: Values
    words: Values
    write: Write
    barriers: Values | None = None
    update: str = ""  # of a reduction, with its type
    type: str = ""

    def complete(self, place: int, wave: Wave) -> None:
        """Write the words of one lane."""
        memory = wave.memories.shared if self.space == "shared" else wave.memories.device.data
        self.write(memory, self.offsets[place : place + 1], self.words[place : place + 1])

    def moved(self, place: int, wave: Wave) -> Moved:
        """Return where each byte of one lane goes."""
        source = np.arange(self.words.dtype.itemsize * self.words.shape[1])
        ends = ((self.space, int(self.offsets[place]) + source),)
        return Moved(space="registers", source=source, targets=ends, update=self.update, type=self.type)


def _issue_each(wave: Wave, path: DivergentPath, lanes: Lanes, stores: _Stores) -> None:
    """Issue the operation of each lane."""
    record, size = wave.code[path.pc], stores.words.dtype.itemsize * stores.words.shape[1]
    kind, barriers = f"{record.statement.opcode}.async", stores.barriers
    for place, (lane, offset) in enumerate(zip(lanes.index.tolist(), stores.offsets.tolist(), strict=True)):
        pending = Pending(
            record=record,
            lane=lane,
            kind=kind,
            complete=partial(stores.complete, place),
            moved=partial(stores.moved, place),
            writes=(Stretches.single(stores.space, offset, size),),
            signals=() if barriers is None else ((int(barriers[place]), size),),
        )
        issue(wave, path, pending)


# --- to shared memory -----------------------------------------------------------------------------------


def _remote(binder: StatementBinder, space: str, count: int, type_name: str, write: Write) -> Step:
    """Return stores or updates words in shared memory of the cluster."""
    binder.count(3)
    space = space_of(space)
    address, barrier = binder.address(0, space), binder.address(2, space)
    sources, size = _sources(binder, count, type_name), bits_of(type_name) // 8 * count
    other = binder.statement.opcode == "red"

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        offsets, barriers = (
            in_shared_memory(wave, path, lanes, space, read, each)
            for read, each in ((address, size), (barrier, 8))
        )
        _check_ctas(wave, path, lanes, offsets, barriers, other)
        words = _words(wave, path, lanes, sources, type_name)
        stores = _Stores("shared", offsets, words, write, barriers, *updates_in(binder, type_name))
        _issue_each(wave, path, lanes, stores)

    return step


def in_shared_memory(
    wave: Wave, path: DivergentPath, lanes: Lanes, space: str, read: Reader, size: int
) -> Values:
    """Return offsets of words in the wave's shared memory; raises Fault outside it, and InvalidAccess."""
    where = np.broadcast_to(lanes.of(read(wave, path)), (lanes.count,))
    if space == "generic":
        outside = np.flatnonzero(spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW))
        if outside.size:
            lane, address = int(lanes.index[outside[0]]), int(where[outside[0]])
            statement = wave.code[path.pc].statement
            message = f"{statement.mnemonic}: the generic address {address:#x} is not in shared memory"
            raise wave.fault(wave.code[path.pc], lane, message)
    return wave.locate(space, lanes, where, size)[1]


def _check_ctas(
    wave: Wave, path: DivergentPath, lanes: Lanes, offsets: Values, barriers: Values, other: bool
) -> None:
    """Check that destination and mbarrier lie in one CTA of a real cluster; raises UndefinedBehavior."""
    ctas, own = offsets // wave.memories.shared_stride, lanes.of(wave.cta)
    apart = ctas != barriers // wave.memories.shared_stride
    for wrong, why in (
        (apart, "the mbarrier is not in the CTA of the destination"),
        (apart | (wave.cluster.count == 1), "the CTA is alone in its cluster"),
        (
            other & (ctas == own),
            "the destination is in the lane's own CTA: it must be in another CTA of the cluster",
        ),
    ):
        if wrong.any():
            raise undefined(wave, path, int(lanes.index[int(wrong.argmax())]), why)


def _store_remote(binder: StatementBinder, *modifiers: str) -> Step:
    _, _, space, _, vector, type_name = modifiers
    return _remote(binder, space, int(vector[1:] or 1), type_name, _put)


def _reduce_remote(binder: StatementBinder, *modifiers: str) -> Step:
    _, _, _, space, _, name, type_name = modifiers
    return _remote(binder, space, 1, type_name, _updating(name, type_name, "shared"))


# --- to global memory -----------------------------------------------------------------------------------


def _released(binder: StatementBinder, space: str, type_name: str, write: Write) -> Step:
    """Return stores or updates words in global memory, some time."""
    binder.count(2)
    space = space_of(space)
    address, size = binder.address(0, space), bits_of(type_name) // 8
    sources = _sources(binder, 1, type_name)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        where = np.broadcast_to(lanes.of(address(wave, path)), (lanes.count,))
        _, offsets = wave.locate("global", lanes, where, size)  # generic addresses must lie there
        words = _words(wave, path, lanes, sources, type_name)
        stores = _Stores("global", offsets, words, write, None, *updates_in(binder, type_name))
        _issue_each(wave, path, lanes, stores)

    return step


def _store_released(binder: StatementBinder, *modifiers: str) -> Step:
    *_, space, type_name = modifiers
    return _released(binder, space, type_name, _put)


def _reduce_released(binder: StatementBinder, *modifiers: str) -> Step:
    *_, space, name, type_name = modifiers
    return _released(binder, space, type_name, _updating(name, type_name, "global"))


# --- rows -----------------------------------------------------------------------------------------------


def _fits(_: str, weak: str, space: str, mechanism: str, vector: str, type_name: str) -> bool:
    """At most 128 bits."""
    return int(vector[1:] or 1) * bits_of(type_name) <= 128


def _scoped(_: str, mmio: str, order: str, scope: str, *more: str) -> bool:
    """mmio is of the whole system."""
    return not mmio or scope == "sys"


_ASYNC, _BYTES = ("async",), ("mbarrier::complete_tx::bytes",)
_ANY_SHARED = ("", "shared::cluster", "shared", "shared::cta")
_WORDS = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_SMALL = ("b8", "u8", "s8", "b16", "u16", "s16")
_NEAR, _RELAXED = ("", "shared::cluster"), (("relaxed",), ("cluster",))
_RELEASED = (("", "mmio"), ("release",), ("gpu", "sys"), ("", "global"))
_OPERATIONS = (
    (("inc", "dec"), ("u32",)),
    (("min", "max"), ("u32", "s32")),
    (("add",), ("u32", "s32", "u64", "s64")),
    (("and", "or", "xor"), ("b32",)),
)

ROWS: tuple[Effect, ...] = (
    *(
        Effect(
            opcode="st",
            slots=(_ASYNC, orders, spaces_, _BYTES, ("", "v2", "v4"), _WORDS),
            bind=_store_remote,
            since=(8, 1),
            feature=Feature.BULK_COPY,
            legal=_fits,
        )
        for orders, spaces_ in ((("", "weak"), _ANY_SHARED), (("cluster",), _NEAR))
    ),
    Effect(
        opcode="st",
        slots=(_ASYNC, *_RELEASED, (*_WORDS, *_SMALL)),
        bind=_store_released,
        since=(8, 7),
        feature=Feature.ASYNC_RELEASE,
        legal=_scoped,
    ),
    *(
        Effect(
            opcode="red",
            slots=(_ASYNC, *_RELAXED, _NEAR, _BYTES, *forms),
            bind=_reduce_remote,
            since=(8, 1),
            feature=Feature.BULK_COPY,
        )
        for forms in _OPERATIONS
    ),
    *(
        Effect(
            opcode="red",
            slots=(_ASYNC, *_RELEASED, *forms),
            bind=_reduce_released,
            since=(8, 7),
            feature=Feature.ASYNC_RELEASE,
            legal=_scoped,
        )
        for forms in _OPERATIONS
    ),
)
