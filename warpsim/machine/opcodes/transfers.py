"""ld and st of every space, width, vector and order (PTX ISA 9.1, sections 9.7.9.8 to 9.7.9.11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import spaces
from ..lanes import Front, Lanes, Values
from .effect import Effect
from .operation import bits_of, dtype_of

if TYPE_CHECKING:
    from ..site import Site
    from ..wave import Step, Wave

_TYPES = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64")
_ORDERS = ("", "weak", "volatile", "relaxed", "acquire", "release", "mmio")
_SCOPES = ("", "cta", "cluster", "gpu", "sys")
_SPACES = ("", "const", "global", "local", "param", "param::entry", "param::func")
_SHARED = ("shared", "shared::cta", "shared::cluster")
_CACHES = ("", "ca", "cg", "cs", "lu", "cv", "nc", "wb", "wt")
_EVICTIONS = (
    "",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
)
_HINTS = ("", "L2::cache_hint")
_PREFETCHES = ("", "L2::64B", "L2::128B", "L2::256B")
_VECTORS = ("", "v2", "v4", "v8")

_SPACE_NAMES = {"": "generic", "param::entry": "param", "param::func": "param"}


def space_of(modifier: str) -> str:
    """The memory that a state space's modifier names."""
    return _SPACE_NAMES.get(modifier, modifier.partition("::")[0])


def load(
    wave: Wave, front: Front, lanes: Lanes, space: str, addresses: Values, size: int, count: int
) -> Values:
    """``(lanes.count, count)``: words of ``size`` bytes, each lane's in a row, from each lane's address.

    The whole vector is aligned as one word. Raises Trespass; observers are told.
    """
    memory, offsets = wave.places(space, lanes, addresses, size * count)
    if wave.observers:
        wave.tell("load", front, lanes, memory, offsets, size * count)
    return spaces.words_at(memory, offsets, size, count)


def store(wave: Wave, front: Front, lanes: Lanes, space: str, addresses: Values, words: Values) -> None:
    """Write words ``(lanes.count, count)`` at each lane's address. Raises Trespass; observers are told."""
    size = words.dtype.itemsize * words.shape[1]
    memory, offsets = wave.places(space, lanes, addresses, size)
    if wave.observers:
        wave.tell("store", front, lanes, memory, offsets, size)
    spaces.put_words(memory, offsets, words)
    wave.rounds = 0


def _chosen(modifiers: tuple[str, ...]) -> tuple[str, int, str]:
    """Space, elements and type among the modifiers of an ld or st."""
    space = next((one for one in modifiers if one and (one in _SPACES or one in _SHARED)), "")
    count = int(next((one[1:] for one in modifiers if one in _VECTORS and one), "1"))
    return space_of(space), count, modifiers[-1]


def _load(site: Site, *modifiers: str) -> Step:
    space, count, type_name = _chosen(modifiers)
    site.count(2, 3)
    size = bits_of(type_name) // 8
    targets = [
        site.writer(one, type_name, 0, place if count > 1 else None, wide=True)
        for place, one in enumerate(site.elements(0, count))
    ]
    address, space = site.place(1, space)

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        where = address(wave, front)
        for part in parts(lanes, space, where):
            found = load(wave, front, part, space, part.of(where), size, count)
            for place, write in enumerate(targets):
                write(wave, front, part, part.spread(np.ascontiguousarray(found[:, place])))

    return step


def parts(lanes: Lanes, space: str, where: Values) -> list[Lanes]:
    """The lanes, parted by the windows that generic addresses lie in."""
    from ..wave import split_windows

    return split_windows(lanes, lanes.of(where)) if space == "generic" else [lanes]


def _store(site: Site, *modifiers: str) -> Step:
    space, count, type_name = _chosen(modifiers)
    site.count(2, 3)
    dtype = dtype_of(type_name)
    sources = [
        site.reader(one, type_name, 1, place if count > 1 else None, wide=True)
        for place, one in enumerate(site.elements(1, count))
    ]
    address, space = site.place(0, space)

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        where = address(wave, front)
        values = [np.broadcast_to(read(wave, front), (wave.lanes,)) for read in sources]
        for part in parts(lanes, space, where):
            words = np.stack([part.of(one).astype(dtype, copy=False) for one in values], axis=-1)
            store(wave, front, part, space, part.of(where), words)

    return step


def _rows(opcode: str, bind: object) -> tuple[Effect, ...]:
    slots = (
        (_ORDERS, _SCOPES, (*_SPACES, *_SHARED), _CACHES, _EVICTIONS, _HINTS, _PREFETCHES, _VECTORS, _TYPES),
    )
    return tuple(Effect(opcode=opcode, slots=one, bind=bind) for one in slots)  # type: ignore[arg-type]


ROWS: tuple[Effect, ...] = (*_rows("ld", _load), *_rows("st", _store))
