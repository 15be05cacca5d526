"""ld and st of every space, width, vector and order (PTX ISA 9.1, sections 9.7.9.8 to 9.7.9.11)."""

from __future__ import annotations

import numpy as np

from ....isa.features import Feature
from ...bind.pure_semantics import Load
from ...bind.value_types import bits_of, dtype_of
from ...run.events import Observer, observers_of
from ...run.wave import Step, Wave
from ...run.windows import split_windows
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values, for_each
from ...state.memory_access import MemoryAccess
from ..effect import Effect
from ..operation import Version
from ..statement_binder import StatementBinder
from ..wide import WIDE, needed, word_readers, word_type, word_writers

TYPES = (  # that a word in memory may have
    *("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"),
    "b128",
)
_SCOPES = ("cta", "cluster", "gpu", "sys")
_SHARED = ("shared", "shared::cta", "shared::cluster")
_CACHED = ("", "global")  # spaces with cache lines, which may have a priority
_LOADED = ("const", "local", "param", "param::entry", "param::func")
_STORED = ("local", "param", "param::func")
_SPACES = ("", "global", "const", *_LOADED, *_SHARED)
_L1 = (
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
)
_L2 = ("", "L2::evict_normal", "L2::evict_first", "L2::evict_last")  # of 256 bits only
_HINTS = ("", "L2::cache_hint")
_PREFETCHES = ("", "L2::64B", "L2::128B", "L2::256B")
_STRONG = frozenset({"volatile", "relaxed", "acquire", "mmio"})  # loads that may wait for others
_VECTORS = ("", "v2", "v4", "v8")
_WIDEST = 128  # bits, of all but the cached spaces

# Modifiers that came after their opcode: the first PTX version and feature.
_NEEDS: dict[str, tuple[Version, Feature | None]] = {
    "weak": ((6, 0), None),
    "relaxed": ((6, 0), None),
    "acquire": ((6, 0), None),
    "release": ((6, 0), None),
    "mmio": ((8, 2), None),
    "cluster": ((7, 8), Feature.CLUSTERS),
    "shared::cta": ((7, 8), None),
    "shared::cluster": ((7, 8), Feature.CLUSTERS),
    "param::entry": ((8, 3), None),
    "param::func": ((8, 3), None),
    "L2::cache_hint": ((7, 4), Feature.CACHE_POLICIES),
    "L2::64B": ((7, 4), Feature.L2_PREFETCH_SIZES),
    "L2::128B": ((7, 4), Feature.L2_PREFETCH_SIZES),
    "L2::256B": ((7, 4), Feature.CACHE_POLICIES),
    **dict.fromkeys(_L1, ((7, 4), None)),
    **dict.fromkeys(_L2[1:], ((8, 8), Feature.WIDE_VECTORS)),
}
_VOLATILE_LOCAL = ((9, 1), None)  # as ptxas 13.5 has it; the manual names no version
_WIDE = ((8, 8), Feature.WIDE_VECTORS)  # more than 128 bits

_SPACE_NAMES = {"": "generic", "param::entry": "param", "param::func": "param", "shared::cta": "shared"}


def space_of(modifier: str) -> str:
    """Return the memory that a state space's modifier names."""
    return _SPACE_NAMES.get(modifier, modifier)


def load(
    wave: Wave, path: DivergentPath, lanes: Lanes, space: str, addresses: Values, size: int, count: int
) -> Values:
    """Return ``(lanes.count, count)``: words of ``size`` bytes, each lane's in a row, from each lane's
    address.

    The whole vector is aligned as one word. Raises InvalidAccess; observers are notified.
    """
    memory, offsets = wave.locate(space, lanes, addresses, size * count)
    if observers_of(wave).hear(Observer.load):
        observers_of(wave).load(wave, MemoryAccess(path, lanes, memory, offsets, size * count))
    return spaces.words_at(memory, offsets, size, count)


def store(
    wave: Wave, path: DivergentPath, lanes: Lanes, space: str, addresses: Values, words: Values
) -> None:
    """Write words ``(lanes.count, count)`` at each lane's address; notify observers. Raises InvalidAccess."""
    size = words.dtype.itemsize * words.shape[1]
    memory, offsets = wave.locate(space, lanes, addresses, size)
    if observers_of(wave).hear(Observer.store):
        observers_of(wave).store(wave, MemoryAccess(path, lanes, memory, offsets, size, words))
    spaces.put_words(memory, offsets, words)
    if memory is wave.memories.device.data:
        wave.scheduler.rounds = 0  # another wave may have waited for this


def _chosen(modifiers: tuple[str, ...]) -> tuple[str, int, str]:
    """Space, elements and type among the modifiers of an ld or st."""
    space = next((modifier for modifier in modifiers if modifier and modifier in _SPACES), "")
    count = int(next((modifier[1:] for modifier in modifiers if modifier in _VECTORS and modifier), "1"))
    return space_of(space), count, modifiers[-1]


def _check(binder: StatementBinder, modifiers: tuple[str, ...]) -> None:
    """Check the number of operands and what some modifiers need; a policy has 64 bits."""
    hint = "L2::cache_hint" in modifiers
    binder.count(2 + hint)
    if hint:
        binder.policy(2)
    _, count, type_name = _chosen(modifiers)
    needs = [_NEEDS[modifier] for modifier in modifiers if modifier in _NEEDS]
    needs.append((needed(modifiers), None))
    needs += [_VOLATILE_LOCAL] if {"volatile", "local"} <= {*modifiers} else []
    needs += [_WIDE] if count * bits_of(type_name) > _WIDEST else []
    for need in needs:
        binder.check_available(*need)


def _load(binder: StatementBinder, *modifiers: str) -> Step:
    space, count, type_name = _chosen(modifiers)
    _check(binder, modifiers)
    return loading(binder, space, count, type_name)


def loading(binder: StatementBinder, space: str, count: int, type_name: str) -> Step:
    """Return the step of a load: so many elements of a type from the second operand to the first."""
    word, each = word_type(type_name)
    size = bits_of(word) // 8
    targets = [
        write
        for place, element in enumerate(binder.elements(0, count))
        for write in word_writers(binder, element, type_name, 0, place if count > 1 else None, wide=True)
    ]
    address, space = binder.place(1, space)
    if _STRONG.isdisjoint(binder.statement.modifiers):
        binder.loads(Load(space, size, count * each, *binder.offset(1)), address, targets)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        where = address(wave, path)
        for part in parts(lanes, space, where):
            found = load(wave, path, part, space, part.of(where), size, count * each)
            for place, write in enumerate(targets):
                write(wave, path, part, part.spread(np.ascontiguousarray(found[:, place])))

    return step


def parts(lanes: Lanes, space: str, where: Values) -> list[Lanes]:
    """Return the lanes, parted by the windows that generic addresses lie in."""
    return split_windows(lanes, lanes.of(where)) if space == "generic" else [lanes]


def _store(binder: StatementBinder, *modifiers: str) -> Step:
    space, count, type_name = _chosen(modifiers)
    _check(binder, modifiers)
    dtype = dtype_of(word_type(type_name)[0])
    sources = [
        read
        for place, element in enumerate(binder.elements(1, count))
        for read in word_readers(binder, element, type_name, 1, place if count > 1 else None, wide=True)
    ]
    address, space = binder.place(0, space)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        where = address(wave, path)
        values = [for_each(read(wave, path), wave.lanes) for read in sources]
        for part in parts(lanes, space, where):
            words = np.stack([part.of(value).astype(dtype, copy=False) for value in values], axis=-1)
            store(wave, path, part, space, part.of(where), words)

    return step


# --- rows --------------------------------------------------------------------------------------------


def _narrow(*modifiers: str) -> bool:
    """Return vectors of at most 128 bits."""
    _, count, type_name = _chosen(modifiers)
    return count * bits_of(type_name) <= _WIDEST


def _wide(*modifiers: str) -> bool:
    """Return vectors of at most 256 bits; a priority in the second cache belongs to those that are so
    wide.
    """
    _, count, type_name = _chosen(modifiers)
    bits = count * bits_of(type_name)
    most = _WIDEST if type_name == WIDE else 2 * _WIDEST
    return bits <= most and (bits == 2 * _WIDEST or not any(modifier in _L2[1:] for modifier in modifiers))


def _row(opcode: str, *slots: tuple[str, ...], vectors: tuple[str, ...] = _VECTORS) -> Effect:
    wide = _CACHED in slots or ("global",) in slots
    return Effect(
        opcode=opcode,
        slots=(*slots, vectors, TYPES),
        bind=_load if opcode == "ld" else _store,
        legal=_wide if wide else _narrow,
        any_constant=True,
    )


_WEAK, _NONE = ("", "weak"), ("",)
_MMIO = (("mmio",), ("relaxed",), ("sys",))
_READS, _WRITES = ("ca", "cg", "cs", "lu", "cv"), ("cg", "cs", "wb", "wt")
_STRONG_READS, _STRONG_WRITES = ("relaxed", "acquire"), ("relaxed", "release")

ROWS: tuple[Effect, ...] = (
    _row("ld", _WEAK, _CACHED, ("", *_READS), _L2, _HINTS, _PREFETCHES),
    _row("ld", _WEAK, _CACHED, _L1, _L2, _HINTS, _PREFETCHES),
    _row("ld", ("global",), ("", "ca", "cg", "cs"), ("nc",), _L2, _HINTS, _PREFETCHES),
    _row("ld", ("global",), ("nc",), _L1, _L2, _HINTS, _PREFETCHES),
    _row("ld", _STRONG_READS, _SCOPES, _CACHED, ("", *_L1), _L2, _HINTS, _PREFETCHES),
    _row("ld", ("volatile",), _CACHED, _L2, _PREFETCHES),
    _row("ld", *_MMIO, _CACHED, vectors=_NONE),
    _row("ld", _WEAK, (*_LOADED, *_SHARED), ("", *_READS)),
    _row("ld", _STRONG_READS, _SCOPES, _SHARED),
    _row("ld", ("volatile",), _SHARED),
    _row("ld", ("volatile",), ("local",)),
    _row("st", _WEAK, _CACHED, ("", *_WRITES), _L2, _HINTS),
    _row("st", _WEAK, _CACHED, _L1, _L2, _HINTS),
    _row("st", _STRONG_WRITES, _SCOPES, _CACHED, ("", *_L1), _L2, _HINTS),
    _row("st", ("volatile",), _CACHED, _L2),
    _row("st", *_MMIO, _CACHED, vectors=_NONE),
    _row("st", _WEAK, (*_STORED, *_SHARED), ("", *_WRITES)),
    _row("st", _STRONG_WRITES, _SCOPES, _SHARED),
    _row("st", ("volatile",), _SHARED),
    _row("st", ("volatile",), ("local",)),
)
