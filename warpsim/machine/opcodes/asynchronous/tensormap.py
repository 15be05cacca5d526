"""tensormap.replace and tensormap.cp_fenceproxy: maps that kernels change, and bring to global memory.

Knows the forms and where maps lie; what fields there are is in tensor_map_bytes.py. A map that has been
changed is looked at when it is used, since fields are replaced singly. prefetch.tensormap is in
caches.py, the fences are in fences.py. PTX ISA 9.1, sections 9.7.9.28 and 9.7.13.16.

Inferred: the ordinals of strides count from the first dimension that has a stride, as CUTLASS counts.
"""

from __future__ import annotations

import numpy as np

from ....base.errors import OperandError
from ....isa.features import Feature
from ....isa.tensor_maps.tensor_fields import MAP_BYTES
from ....isa.tensor_maps.tensor_map_bytes import PLACES, replaced
from ....ptx.constants import Immediate
from ...run.convergence import EVERYONE, together
from ...run.events import observers_of
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ..effect import Effect
from ..operation import Version
from ..statement_binder import StatementBinder
from .tensor_boxes import Reader, at_lane, check_map_place, map_bytes, put_map, single, values_of

_WHOLE = ("global_address", "rank")
_ORDINAL = ("box_dim", "global_dim", "global_stride", "element_stride")
_CONSTANT = ("elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode")
_WIDE = ("global_address", "global_stride")
_MOST_ORDINAL = 4
_Need = tuple[int, Version, Feature]  # up to which value, from which version, and what it needs
_VALUES: dict[str, tuple[_Need, ...]] = {
    "elemtype": ((12, (8, 3), Feature.TENSORMAP_REPLACE), (15, (8, 7), Feature.REPLACED_ATOMS)),
    "interleave_layout": ((2, (8, 3), Feature.TENSORMAP_REPLACE),),
    "swizzle_mode": ((3, (8, 3), Feature.TENSORMAP_REPLACE), (4, (8, 8), Feature.REPLACED_SWIZZLE_96B)),
    "swizzle_atomicity": ((3, (8, 6), Feature.REPLACED_ATOMS),),
    "fill_mode": ((1, (8, 3), Feature.TENSORMAP_REPLACE),),
}


def _replace(binder: StatementBinder, *modifiers: str) -> Step:
    _, _, name, space, _, kind = modifiers
    binder.count(3 if name in _ORDINAL else 2)
    named = {"": "generic", "shared::cta": "shared"}.get(space, space)
    address = binder.address(0, named)
    ordinal = _constant(binder, 1, _MOST_ORDINAL, "the ordinal") if name in _ORDINAL else 0
    if name in _CONSTANT:
        _check_value(binder, name)
    value = binder.reader(binder.operands[-1], kind, len(binder.operands) - 1)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        where = values_of(address, wave, path, lanes)
        values = values_of(value, wave, path, lanes)
        made = dict[tuple[int, int], tuple[Lanes, int, bytes]]()
        for lane, at, new in zip(lanes.index.tolist(), where, values, strict=True):
            only = single(wave, lane)
            with at_lane(wave, path, lane):
                check_map_place(wave, only, named, at)
                place = _place(wave, only, named, at)
                before = made[place][2] if place in made else map_bytes(wave, path, only, named, at)
                _check_ordinal(name, ordinal)
                made[place] = (only, at, replaced(before, name, new, ordinal))
        for only, at, content in made.values():
            put_map(wave, path, only, named, at, content)

    return step


def _place(wave: Wave, lane: Lanes, space: str, address: int) -> tuple[int, int]:
    """Return which memory an address of one lane is in, and where: each CTA has its own shared memory."""
    memory, offsets = wave.locate(space, lane, np.array([address], np.int64), 1)
    return id(memory), int(offsets[0])


def _check_ordinal(name: str, ordinal: int) -> None:
    if ordinal >= PLACES[name].count:
        raise OperandError(f"{name} has the ordinals 0 to {PLACES[name].count - 1}, not {ordinal}")


def _constant(binder: StatementBinder, index: int, most: int, what: str) -> int:
    """Return an operand that is a constant from 0 to ``most``; raises IllegalInstruction."""
    operand = binder.operands[index]
    if not isinstance(operand, Immediate) or operand.kind != "integer" or not 0 <= operand.value <= most:
        raise binder.illegal(f"{what} is a constant, 0 to {most}, not '{operand}'", index)
    return operand.value


def _check_value(binder: StatementBinder, name: str) -> None:
    """Check the new value of a field that takes constants, as far as chip and version have it."""
    needs = _VALUES[name]
    value = _constant(binder, 1, needs[-1][0], f"the value of {name}")
    _, since, feature = next(need for need in needs if value <= need[0])
    binder.check_available(since, feature)


# --- cp_fenceproxy -----------------------------------------------------------------------------------


def _copy(binder: StatementBinder, *modifiers: str) -> Step:
    """128 bytes go to global memory once for each warp and destination; a fence follows."""
    binder.count(3)
    target, source = binder.address(0, "global"), binder.address(1, "shared")
    size = binder.operands[2]
    if not isinstance(size, Immediate) or size.value != MAP_BYTES:
        raise binder.illegal(f"expected {MAP_BYTES}, the bytes of a tensor map, not '{size}'", 2)
    scope = next(word for word in modifiers if word in _SCOPES)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        _copy_map(wave, path, lanes, target, source)
        observers_of(wave).fence(wave, path, lanes, ("proxy", "tensormap::generic", "release", scope))

    return lambda wave, path, lanes: together(wave, path, lanes, EVERYONE, act)


def _copy_map(wave: Wave, path: DivergentPath, lanes: Lanes, target: Reader, source: Reader) -> None:
    to, from_ = values_of(target, wave, path, lanes), values_of(source, wave, path, lanes)
    first = dict[tuple[int, int, int], int]()  # (warp, to, from) -> the lane that copies
    for lane, *places in zip(lanes.index.tolist(), to, from_, strict=True):
        first.setdefault((lane // 32, places[0], places[1]), lane)
    made = list[tuple[Lanes, int, bytes]]()
    for (_, there, here), lane in first.items():
        only = single(wave, lane)
        made.append((only, there, map_bytes(wave, path, only, "shared", here)))
        check_map_place(wave, only, "global", there)
    for only, there, content in made:
        put_map(wave, path, only, "global", there, content, released=True)


# --- rows --------------------------------------------------------------------------------------------

_SCOPES = ("cta", "cluster", "gpu", "sys")
_SPACES = ("", "global", "shared::cta")


def _replacing(names: tuple[str, ...], kind: str) -> Effect:
    slots = (("replace",), ("tile",), names, _SPACES, ("b1024",), (kind,))
    return Effect(
        opcode="tensormap", slots=slots, bind=_replace, since=(8, 3), feature=Feature.TENSORMAP_REPLACE
    )


_NARROW = tuple(name for name in (*_WHOLE, *_ORDINAL, *_CONSTANT) if name not in _WIDE)

ROWS: tuple[Effect, ...] = (
    _replacing(_WIDE, "b64"),
    _replacing(_NARROW, "b32"),
    Effect(
        opcode="tensormap",
        slots=(
            *(("cp_fenceproxy",), ("global",), ("shared::cta",), ("tensormap::generic",)),
            *(("release",), _SCOPES, ("sync",), ("aligned",)),
        ),
        bind=_copy,
        since=(8, 3),
        feature=Feature.TENSOR_COPY,
        together=32,
    ),
)
