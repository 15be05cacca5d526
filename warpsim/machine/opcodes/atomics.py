"""atom and red: read, modify and write in one step (PTX ISA 9.1, sections 9.7.13.5 and 9.7.13.6).

Knows operations, types and spaces. Lanes that reach one address do so one after the other, in the order of
their numbers, each with its own rounding; PTX leaves the order open. Orders and scopes change nothing here: a
statement is done before the next one begins. add.f32 flushes subnormals on global memory and keeps them in
shared memory, as the manual says of "current implementations"; that min and max of halves pass over a NaN, as
min.f16 does, is inferred. Forms of 128 bits are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...ptx.operands import Sink
from .. import spaces
from ..lanes import Front, Lanes, Values
from ..spaces import Bytes, Offsets
from .effect import Effect
from .floats import FORMATS
from .operation import bits_of, dtype_of
from .transfers import parts, space_of
from .words import number_dtype, unsigned

if TYPE_CHECKING:
    from ..site import Reader, Site
    from ..wave import Step, Wave

_FEW = 8  # lanes at one address, up to which a round for each is quicker than a scan for each address
_ATOMIC_SPACES = ("global", "shared")

Scan = Callable[
    [Values], "Values | None"
]  # the old value and operands -> all values in turn; None: cannot say


@dataclass(frozen=True)
class Update:
    """New values of old ones and operands, ``(lanes, elements)`` each, and a quicker way for many in a row."""

    function: Callable[..., Values]
    scan: Scan | None = None


# --- operations --------------------------------------------------------------------------------------


def _increased(old: Values, limit: Values) -> Values:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decreased(old: Values, limit: Values) -> Values:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _exchanged(old: Values, new: Values) -> Values:
    return new


def _swapped(old: Values, compare: Values, new: Values) -> Values:
    return np.where(old == compare, new, old)


_FUNCTIONS: dict[str, Callable[..., Values]] = {
    "inc": _increased,
    "dec": _decreased,
    "exch": _exchanged,
    "cas": _swapped,
}
_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _integers(name: str, type_name: str) -> Update:
    if name in _FUNCTIONS:
        return Update(_FUNCTIONS[name])
    ufunc, dtype = _UFUNCS[name], number_dtype(type_name)

    def function(old: Values, value: Values) -> Values:
        return unsigned(np.asarray(ufunc(old.view(dtype), value.view(dtype))))

    return Update(function, lambda chain: unsigned(ufunc.accumulate(chain.view(dtype), dtype=dtype)))


def _floats(name: str, type_name: str, flush: str) -> Update:
    from . import operation

    compute = operation(name, *filter(None, (flush, type_name)), sources=2).compute
    scan = _sums(type_name) if name == "add" and type_name in ("f32", "f64") else None
    return Update(lambda old, value: compute(old, value)[0], scan)


def _sums(type_name: str) -> Scan:
    """Sums one after the other, as long as all values are normal or zero: no flushing, no NaN."""
    form, dtype = FORMATS[type_name], np.dtype(type_name)

    def scan(chain: Values) -> Values | None:
        with np.errstate(all="ignore"):
            sums = np.add.accumulate(chain.view(dtype), dtype=dtype).view(chain.dtype)
        for values in (chain, sums):
            magnitude = values & form.magnitude
            if ((magnitude >= form.infinity) | (magnitude - form.word(1) < form.largest_subnormal)).any():
                return None
        return sums

    return scan


def _updates(name: str, type_name: str) -> dict[str, Update]:
    """The update in each space."""
    if type_name[0] != "f" and not type_name.startswith("bf"):
        return dict.fromkeys(_ATOMIC_SPACES, _integers(name, type_name))
    flushes = {"global": "ftz"} if type_name == "f32" else {}
    return {space: _floats(name, type_name, flushes.get(space, "")) for space in _ATOMIC_SPACES}


# --- many lanes at one address -------------------------------------------------------------------------


def _runs(offsets: Offsets) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Places in the order of their offsets, ascending among equals, and where in it each offset begins."""
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    return order, np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])


def _rounds(order: npt.NDArray[np.intp], starts: npt.NDArray[np.intp]) -> Iterator[npt.NDArray[np.intp]]:
    """Places with different offsets; those of one offset come in turn."""
    lengths = np.diff(np.r_[starts, order.size])
    rank = np.arange(order.size) - np.repeat(starts, lengths)
    for turn in range(int(lengths.max())):
        yield order[rank == turn]


def apply(memory: Bytes, offsets: Offsets, operands: list[Values], update: Update) -> Values:
    """Update the words at some offsets one after the other, and return what each found, (offsets, elements)."""
    order, starts = _runs(offsets)
    scan = update.scan
    if scan is not None and offsets.size > _FEW * starts.size and operands[0].shape[1] == 1:
        return _by_address(memory, offsets, operands, update, scan)
    found = np.empty_like(operands[0])
    for chosen in _rounds(order, starts):
        found[chosen] = _update(memory, offsets[chosen], [one[chosen] for one in operands], update)
    return found


def _update(memory: Bytes, offsets: Offsets, operands: list[Values], update: Update) -> Values:
    """As apply, where no offset comes twice."""
    size, count = operands[0].dtype.itemsize, operands[0].shape[1]
    old = spaces.words_at(memory, offsets, size, count)
    spaces.put_words(memory, offsets, update.function(old, *operands))
    return old


def _by_address(
    memory: Bytes, offsets: Offsets, operands: list[Values], update: Update, scan: Scan
) -> Values:
    """As apply, address by address; one by one where the scan cannot say."""
    order, starts = _runs(offsets)
    found = np.empty_like(operands[0])
    view = memory.view(operands[0].dtype)
    for chosen in np.split(order, starts[1:]):
        first = int(offsets[chosen[0]]) // view.itemsize
        chain = scan(np.r_[view[first], operands[0][chosen, 0]])
        if chain is not None:
            found[chosen, 0], view[first] = chain[:-1], chain[-1]
            continue
        for one in chosen:
            place = slice(one, one + 1)
            found[place] = _update(memory, offsets[place], [part[place] for part in operands], update)
    return found


# --- statements ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Places:
    """Lanes whose addresses lie in one space, and the words there."""

    lanes: Lanes
    space: str
    memory: Bytes
    offsets: Offsets


def _places(wave: Wave, front: Front, lanes: Lanes, space: str, where: Values, size: int) -> list[_Places]:
    """The words that lanes address, by space; raises Trespass, and Fault for local memory and parameters."""
    from ..wave import WINDOWS

    found = list[_Places]()
    for part in parts(lanes, space, where):
        addresses = part.of(where)
        real = space
        if space == "generic":
            window = int(addresses.flat[0]) // spaces.WINDOW_BYTES * spaces.WINDOW_BYTES
            real = WINDOWS.get(window, "global")
        if real not in _ATOMIC_SPACES:
            message = f"{wave.code[front.pc].statement.mnemonic}: the address lies in .{real}"
            raise wave.fault(wave.code[front.pc], int(part.index[0]), message)
        found.append(_Places(part, real, *wave.places(space, part, addresses, size)))
    return found


def _atomic(
    site: Site, order: str, scope: str, space: str, hint: str, name: str, flush: str, vector: str, kind: str
) -> Step:
    _check_later(site, scope, space, hint)
    returns, sources = int(site.statement.opcode == "atom"), 2 if name == "cas" else 1
    site.count(returns + 1 + sources + bool(hint))
    count, space = int(vector[1:] or 1), space_of(space)
    size = bits_of(kind) // 8 * count
    writers = _results(site, kind, count) if returns else []
    address = site.address(returns, space)
    readers = [_elements(site, returns + 1 + place, kind, count) for place in range(sources)]
    if hint:
        site.reader(site.operands[-1], "b64", len(site.operands) - 1)
    updates = _updates(name, kind)

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        prepared = _places(wave, front, lanes, space, address(wave, front), size)
        operands = [_together(wave, front, one) for one in readers]
        for one in prepared:
            wave.tell("atomic", front, one.lanes, one.memory, one.offsets, size)
            old = apply(one.memory, one.offsets, [one.lanes.of(x) for x in operands], updates[one.space])
            for place, write in writers:
                write(wave, front, one.lanes, one.lanes.spread(np.ascontiguousarray(old[:, place])))

    return step


def _results(site: Site, kind: str, count: int) -> list[tuple[int, Any]]:
    """Writers by element; none where ``_`` stands for all of them."""
    if isinstance(site.operands[0], Sink):
        return []
    return [
        (place, site.writer(one, kind, 0, place if count > 1 else None))
        for place, one in enumerate(site.elements(0, count))
    ]


def _elements(site: Site, index: int, kind: str, count: int) -> list[Reader]:
    return [
        site.reader(one, kind, index, place if count > 1 else None)
        for place, one in enumerate(site.elements(index, count))
    ]


def _together(wave: Wave, front: Front, readers: list[Reader]) -> Values:
    """(lanes, elements)."""
    return np.stack([np.broadcast_to(read(wave, front), (wave.lanes,)) for read in readers], axis=-1)


_LATER = {  # what came after the rows: the PTX version and the target
    "cluster": ((7, 8), 90),
    "shared::cluster": ((7, 8), 90),
    "shared::cta": ((7, 8), 30),
    "L2::cache_hint": ((7, 4), 80),
}


def _check_later(site: Site, *modifiers: str) -> None:
    """Modifiers that are newer than the statement; raises IllegalInstruction."""
    target, version = site.module.target, site.module.version
    for word in modifiers:
        since, chip = _LATER.get(word, ((1, 0), 0))
        if version < since or int("".join(filter(str.isdecimal, target))) < chip:
            needs = f"PTX {since[0]}.{since[1]} and sm_{chip}"
            raise site.illegal(f"{site.statement.opcode}.{word} needs {needs} or higher")


def _wide(site: Site, *modifiers: str) -> Step:
    raise site.not_modelled(f"'{site.statement.mnemonic}' is not modelled: registers of 128 bits")


# --- rows ----------------------------------------------------------------------------------------------

_ORDERS = {"atom": ("", "relaxed", "acquire", "release", "acq_rel"), "red": ("", "relaxed", "release")}
_SCOPES = ("", "cta", "cluster", "gpu", "sys")
_SPACES = ("", "global", "shared", "shared::cta", "shared::cluster")
_NONE, _NOFTZ = ("",), ("noftz",)


def _hinted(order: str, scope: str, space: str, hint: str, *rest: str) -> bool:
    """A cache hint goes with global and generic addresses."""
    return not (hint and space.startswith("shared"))


def _rows(opcode: str) -> Iterator[Effect]:
    orders, hints, plain = _ORDERS[opcode], ("", "L2::cache_hint"), ("",)
    table = [
        # operations        flush    vectors  types                              since   chip
        (("add",),          _NONE,   _NONE,   ("u32", "s32", "u64"),             (1, 1), 11),
        (("min", "max"),    _NONE,   _NONE,   ("u32", "s32", "u64", "s64"),      (1, 1), 11),
        (("inc", "dec"),    _NONE,   _NONE,   ("u32",),                          (1, 1), 11),
        (("and", "or", "xor"), _NONE, _NONE,  ("b32", "b64"),                    (1, 1), 11),
        (("add",),          _NONE,   _NONE,   ("f32",),                          (2, 0), 20),
        (("add",),          _NONE,   _NONE,   ("f64",),                          (5, 0), 60),
        (("add",),          _NOFTZ,  _NONE,   ("f16x2",),                        (6, 2), 60),
        (("add",),          _NOFTZ,  _NONE,   ("f16",),                          (6, 3), 70),
        (("add",),          _NOFTZ,  _NONE,   ("bf16", "bf16x2"),                (7, 8), 90),
    ]  # fmt: skip
    vectors = [
        (("add",),          _NONE,   ("v2", "v4"),       ("f32",)),
        (("add", "min", "max"), _NOFTZ, ("v2", "v4"),    ("f16", "bf16", "f16x2", "bf16x2")),
        (("add", "min", "max"), _NOFTZ, ("v8",),         ("f16", "bf16")),
    ]  # fmt: skip
    for names, flush, width, types, since, chip in table:
        slots = (orders, _SCOPES, _SPACES, hints, names, flush, width, types)
        yield Effect(opcode=opcode, slots=slots, bind=_atomic, since=since, chip=chip, legal=_hinted)
    for names, flush, width, types in vectors:
        slots = (orders, _SCOPES, ("", "global"), hints, names, flush, width, types)
        yield Effect(opcode=opcode, slots=slots, bind=_atomic, since=(8, 1), chip=90)
    if opcode == "atom":
        yield from _swaps(orders, plain, hints)


def _swaps(orders: tuple[str, ...], plain: tuple[str, ...], hints: tuple[str, ...]) -> Iterator[Effect]:
    """exch and cas, which red does not have; those of 128 bits are refused."""
    table = [
        (("exch",), hints, ("b32", "b64"), (1, 1), 11, _atomic),
        (("cas",),  plain, ("b32", "b64"), (1, 1), 11, _atomic),
        (("cas",),  plain, ("b16",),       (6, 3), 70, _atomic),
        (("exch",), hints, ("b128",),      (8, 3), 90, _wide),
        (("cas",),  plain, ("b128",),      (8, 3), 90, _wide),
    ]  # fmt: skip
    for names, hint, types, since, chip, bind in table:
        slots = (orders, _SCOPES, _SPACES, hint, names, plain, plain, types)
        yield Effect(opcode="atom", slots=slots, bind=bind, since=since, chip=chip, legal=_hinted)


ROWS: tuple[Effect, ...] = (*_rows("atom"), *_rows("red"))
