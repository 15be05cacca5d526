"""atom and red: read, modify and write in one step (PTX ISA 9.1, sections 9.7.13.5 and 9.7.13.6).

Knows forms, operands and spaces; what becomes of the words is in updates.py. Lanes update one address
in the order of their numbers; PTX does not define the order. Orders and scopes change nothing here: a
statement completes before the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ....isa.features import Feature
from ....ptx.constants import Immediate
from ....ptx.operands import Sink
from ...bind.value_types import bits_of
from ...run.addition_orders import ADDITIONS, NOT_COMMUTING, Additions, place_of
from ...run.events import Observer, observers_of
from ...run.wave import Entry, Step, Wave
from ...run.windows import WINDOWS
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.memory_access import MemoryAccess
from ...state.side_tables import SideTable
from ...state.spaces import Bytes, Offsets
from ..effect import Effect
from ..operation import Version
from ..statement_binder import Reader, StatementBinder, Writer
from ..wide import needed, word_readers, word_type, word_writers
from .transfers import parts, space_of
from .updates import SPACES, apply, note_doubt, note_of, updates_of

# --- statements ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Places:
    """Lanes whose addresses lie in one space, and the words there."""

    lanes: Lanes
    space: str
    memory: Bytes
    offsets: Offsets


def _places(
    wave: Wave, path: DivergentPath, lanes: Lanes, space: str, where: Values, size: int
) -> list[_Places]:
    """Return addressed words by space; raises InvalidAccess, and Fault for local memory and parameters."""
    found = list[_Places]()
    for part in parts(lanes, space, where):
        addresses = part.of(where)
        real = space
        if space == "generic":
            window = int(addresses.flat[0]) // spaces.WINDOW_BYTES * spaces.WINDOW_BYTES
            real = WINDOWS.get(window, "global")
        if real == "shared::cluster":
            real = "shared"
        if real not in SPACES:
            message = f"{wave.code[path.pc].statement.mnemonic}: the address lies in .{real}"
            raise wave.fault(wave.code[path.pc], int(part.index[0]), message)
        found.append(_Places(part, real, *wave.locate(space, part, addresses, size)))
    return found


def _atomic(binder: StatementBinder, *modifiers: str) -> Step:
    _, scope, space, hint, name, _, vector, kind = modifiers
    _check_later(binder, scope, space, hint)
    returns, sources = int(binder.statement.opcode == "atom"), 2 if name == "cas" else 1
    binder.count(returns + 1 + sources + bool(hint))
    count, space = int(vector[1:] or 1), space_of(space)
    binder.check_available(needed((scope, kind)))
    word, each = word_type(kind)
    size, bits = bits_of(word) // 8 * count * each, f"b{bits_of(word)}"
    writers = _results(binder, kind, count) if returns else []
    address = binder.address(returns, space)
    readers = [_elements(binder, returns + 1 + place, kind, count) for place in range(sources)]
    if hint:
        binder.policy(len(binder.operands) - 1)
    updates, here = updates_of(name, word), place_of(binder.statement)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        prepared = _places(wave, path, lanes, space, address(wave, path), size)
        operands = [_stack_elements(wave, path, reader) for reader in readers]
        for places in prepared:
            if observers_of(wave).hear(Observer.atomic):
                observers_of(wave).atomic(
                    wave, MemoryAccess(path, places.lanes, places.memory, places.offsets, size)
                )
            values, update = [places.lanes.of(x) for x in operands], updates[places.space]
            old = apply(places.memory, places.offsets, values, update)
            note_doubt(wave, path.pc, update, old, values[0])
            if update.adds or name in NOT_COMMUTING or _USES_OLD.of(wave.entry):
                added = Additions(places.memory, places.offsets, old, values[-1], places.lanes.index)
                ADDITIONS.of(wave).note(wave, here, update.adds or bits, added)
            for place, write in writers:
                write(wave, path, places.lanes, places.lanes.spread(np.ascontiguousarray(old[:, place])))

    return step


def _uses_old(entry: Entry) -> bool:
    """Return whether a statement of a kernel may read an old value that an update has returned."""
    flows = [(record.statement.opcode, record.guard, record.flow) for record in entry.code]
    read = {guard for _, guard, _ in flows}.union(*(flow.values | flow.addresses for *_, flow in flows))
    return any(opcode == "atom" and not read.isdisjoint(flow.written) for opcode, _, flow in flows)


_USES_OLD = SideTable(_uses_old)


def _results(binder: StatementBinder, kind: str, count: int) -> list[tuple[int, Writer]]:
    """Return writers by word; none where ``_`` stands for all of them."""
    if isinstance(binder.operands[0], Sink):
        return []
    writers = [
        write
        for place, element in enumerate(binder.elements(0, count))
        for write in word_writers(binder, element, kind, 0, place if count > 1 else None)
    ]
    return list(enumerate(writers))


def _elements(binder: StatementBinder, index: int, kind: str, count: int) -> list[Reader]:
    given = binder.elements(index, count)
    if "f16" in kind and any(isinstance(element, Immediate) for element in given):
        raise binder.illegal(f"{binder.statement.mnemonic} takes no constant", index)
    return [
        read
        for place, element in enumerate(given)
        for read in word_readers(binder, element, kind, index, place if count > 1 else None)
    ]


def _stack_elements(wave: Wave, path: DivergentPath, readers: list[Reader]) -> Values:
    """Return (lanes, elements)."""
    return np.stack([np.broadcast_to(read(wave, path), (wave.lanes,)) for read in readers], axis=-1)


_LATER: dict[str, tuple[Version, Feature | None]] = {  # modifiers that are newer than the rows
    "cluster": ((7, 8), Feature.CLUSTERS),
    "shared::cluster": ((7, 8), Feature.CLUSTERS),
    "shared::cta": ((7, 8), None),
    "L2::cache_hint": ((7, 4), Feature.CACHE_POLICIES),
}


def _check_later(binder: StatementBinder, *modifiers: str) -> None:
    """Check modifiers that are newer than the statement; raises IllegalInstruction."""
    for word in modifiers:
        if word in _LATER:
            binder.check_available(*_LATER[word], f"{binder.statement.opcode}.{word}")


# --- rows ----------------------------------------------------------------------------------------------

_SCOPES = ("", "cta", "cluster", "gpu", "sys")
_ANY = ("", "global", "shared", "shared::cta", "shared::cluster")
_FAR, _NONE, _NOFTZ, _HINT = ("", "global"), ("",), ("noftz",), ("", "L2::cache_hint")
_BITS = ("b32", "b64")
_HALVES, _PAIRS = ("f16", "bf16"), ("f16", "bf16", "f16x2", "bf16x2")


def _hinted(order: str, scope: str, space: str, hint: str, *rest: str) -> bool:
    """Return whether a cache hint may stand: it goes with global and generic addresses."""
    return not (hint and space.startswith("shared"))


_Forms = tuple[tuple[str, ...], ...]  # spaces, hints, operations, flushing, vectors, types


def _rows(
    opcode: str, orders: tuple[str, ...], table: tuple[tuple[_Forms, Version, Feature | None], ...]
) -> Iterator[Effect]:
    for forms, since, feature in table:
        slots = (orders, _SCOPES, *forms)
        *_, names, _, _, types = forms
        note = note_of(names[0], types[0]) if "f" in types[0] else ""
        yield Effect(
            opcode=opcode,
            slots=slots,
            bind=_atomic,
            since=since,
            feature=feature,
            legal=_hinted,
            fidelity="inferred" if note else "exact",
            note=note,
            at_times=bool(note),
        )


_BF16, _LAST = Feature.BF16_ARITHMETIC, Feature.VECTOR_ATOMICS
# fmt: off
_BOTH: tuple[tuple[_Forms, Version, Feature | None], ...] = (
    ((_ANY, _HINT, ("add",),            _NONE,  _NONE,        ("u32", "s32", "u64")),        (1, 2), None),
    ((_ANY, _HINT, ("min", "max"),      _NONE,  _NONE,        ("u32", "s32", "u64", "s64")), (3, 1), None),
    ((_ANY, _HINT, ("inc", "dec"),      _NONE,  _NONE,        ("u32",)),                     (1, 1), None),
    ((_ANY, _HINT, ("and", "or", "xor"), _NONE, _NONE,        _BITS),                        (3, 1), None),
    ((_ANY, _HINT, ("add",),            _NONE,  _NONE,        ("f32",)),                     (2, 0), None),
    ((_ANY, _HINT, ("add",),            _NONE,  _NONE,        ("f64",)),                     (5, 0), None),
    ((_ANY, _HINT, ("add",),            _NOFTZ, _NONE,        ("f16x2",)),                   (6, 2), None),
    ((_ANY, _HINT, ("add",),            _NOFTZ, _NONE,        ("f16",)),                     (6, 3), None),
    ((_ANY, _HINT, ("add",),            _NOFTZ, _NONE,        ("bf16", "bf16x2")),           (7, 8), _BF16),
    ((_FAR, _HINT, ("add",),            _NONE,  ("v2", "v4"), ("f32",)),                     (8, 1), _LAST),
    ((_FAR, _HINT, ("add",),            _NOFTZ, ("v2", "v4"), _PAIRS),                       (8, 1), _LAST),
    ((_FAR, _HINT, ("add",),            _NOFTZ, ("v8",),      _HALVES),                      (8, 1), _LAST),
    ((_FAR, _HINT, ("min", "max"),      _NOFTZ, ("v2", "v4"), _PAIRS),                       (8, 1), _LAST),
    ((_FAR, _HINT, ("min", "max"),      _NOFTZ, ("v8",),      _HALVES),                      (8, 1), _LAST),
)
_SWAPS: tuple[tuple[_Forms, Version, Feature | None], ...] = (
    ((_ANY, _HINT, ("exch",),           _NONE,  _NONE,        _BITS),                        (1, 2), None),
    ((_ANY, _NONE, ("cas",),            _NONE,  _NONE,        _BITS),                        (1, 2), None),
    ((_ANY, _NONE, ("cas",),            _NONE,  _NONE,        ("b16",)),                     (6, 3), None),
    ((_ANY, _HINT, ("exch",),           _NONE,  _NONE,        ("b128",)),                    (8, 3), _LAST),
    ((_ANY, _NONE, ("cas",),            _NONE,  _NONE,        ("b128",)),                    (8, 3), _LAST),
)
# fmt: on

ROWS: tuple[Effect, ...] = (
    *_rows("atom", ("", "relaxed", "acquire", "release", "acq_rel"), (*_BOTH, *_SWAPS)),
    *_rows("red", ("", "relaxed", "release"), _BOTH),
)
