"""Special registers: what each lane of a wave sees of itself (PTX ISA 9.1, section 10).

Knows grid, clusters, block and lanes. Clocks, machine numbers and what a driver or a real chip decides (%pm,
%envreg, %reserved_smem_offset) are made up and deterministic, and say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...isa.features import Feature
from ...isa.warps import WARP
from ..bind.value_types import bits_of
from ..run.wave import Wave
from ..state.lanes import Values

_RESERVED = 1024  # bytes of shared memory that the system takes from each CTA


@dataclass(frozen=True, kw_only=True)
class SpecialRegister:
    """One special register: its type, its value in a wave, whether that stays, and whether it is made up."""

    type: str
    value: Callable[[Wave], Values]
    constant: bool = True
    made_up: bool = False


def _lane(wave: Wave) -> Values:
    return wave.thread % WARP


def _axes(name: str, value: Callable[[Wave, int], Any]) -> dict[str, SpecialRegister]:
    """``name.x``, ``name.y`` and ``name.z``; ``name.w`` is always 0."""

    def reader(axis: int) -> Callable[[Wave], Values]:
        return lambda wave: np.asarray(value(wave, axis) if axis < 3 else 0)

    return {f"%{name}.{'xyzw'[axis]}": SpecialRegister(type="u32", value=reader(axis)) for axis in range(4)}


def _thread(wave: Wave, axis: int) -> Values:
    x, y, _ = wave.block
    strides = (1, x, x * y)
    return wave.thread // strides[axis] % wave.block[axis]


def _cluster(wave: Wave) -> tuple[int, int, int]:
    """CTAs of a cluster."""
    return wave.cluster.shape


def _cta_of_cluster(wave: Wave, axis: int) -> Values:
    return np.asarray(wave.ctas[wave.cta, axis] % _cluster(wave)[axis])


def _rank(wave: Wave) -> Values:
    """Of a CTA in its cluster: x is fastest."""
    x, y, _ = _cluster(wave)
    places = [_cta_of_cluster(wave, axis) for axis in range(3)]
    return np.asarray(places[0] + x * (places[1] + y * places[2]))


def _mask(compare: Callable[[Values, Values], Values]) -> SpecialRegister:
    """Bits of a warp's lanes that compare so with the own bit."""

    def value(wave: Wave) -> Values:
        bits = np.where(compare(np.arange(WARP)[None, :], np.arange(WARP)[:, None]), 1, 0)
        words = (bits << np.arange(WARP)).sum(axis=1)
        mask: Values = words[_lane(wave)]
        return mask

    return SpecialRegister(type="u32", value=value)


def _counter(scale: int = 1, shift: int = 0) -> Callable[[Wave], Values]:
    """Statements executed so far; the same in all lanes."""
    return lambda wave: np.array(wave.scheduler.statements * scale >> shift, np.uint64)


def _made_up(stem: str, count: int, type_name: str) -> dict[str, SpecialRegister]:
    """Numbered registers of which a driver or a chip decides, all 0 here."""
    zero = SpecialRegister(type=type_name, value=lambda wave: np.array(0), made_up=True)
    return {f"{stem}{number}": zero for number in range(count)}


def _workspace(shift: int) -> SpecialRegister:
    """Half of the address that cooperative groups find the barrier of the grid at."""

    def value(wave: Wave) -> Values:
        return np.array(0 if wave.runtime is None else wave.runtime.grid_workspace >> shift & 0xFFFF_FFFF)

    return SpecialRegister(type="u32", value=value)


def _reserved(**offsets: int) -> dict[str, SpecialRegister]:
    """Where the shared memory lies that the system takes."""

    def register(offset: int) -> SpecialRegister:
        return SpecialRegister(type="u32", value=lambda wave: np.array(offset), made_up=True)

    return {f"%reserved_smem_offset_{name}": register(offset) for name, offset in offsets.items()}


REGISTERS: dict[str, SpecialRegister] = {
    **_axes("tid", _thread),
    **_axes("ntid", lambda wave, axis: wave.block[axis]),
    **_axes("ctaid", lambda wave, axis: wave.ctas[wave.cta, axis]),
    **_axes("nctaid", lambda wave, axis: wave.grid[axis]),
    **_axes("clusterid", lambda wave, axis: wave.ctas[wave.cta, axis] // _cluster(wave)[axis]),
    **_axes("nclusterid", lambda wave, axis: wave.grid[axis] // _cluster(wave)[axis]),
    **_axes("cluster_ctaid", _cta_of_cluster),
    **_axes("cluster_nctaid", lambda wave, axis: _cluster(wave)[axis]),
    "%cluster_ctarank": SpecialRegister(type="u32", value=_rank),
    "%cluster_nctarank": SpecialRegister(type="u32", value=lambda wave: np.array(np.prod(_cluster(wave)))),
    "%is_explicit_cluster": SpecialRegister(type="pred", value=lambda wave: np.array(wave.cluster.explicit)),
    "%laneid": SpecialRegister(type="u32", value=_lane),
    "%warpid": SpecialRegister(type="u32", value=lambda wave: wave.thread // WARP),
    "%nwarpid": SpecialRegister(type="u32", value=lambda wave: np.array(wave.warps)),
    "%smid": SpecialRegister(type="u32", value=lambda wave: 0 * wave.cta, made_up=True),
    "%nsmid": SpecialRegister(type="u32", value=lambda wave: np.array(1), made_up=True),
    "%gridid": SpecialRegister(type="u64", value=lambda wave: np.array(1), made_up=True),
    "%lanemask_eq": _mask(np.equal),
    "%lanemask_le": _mask(np.less_equal),
    "%lanemask_lt": _mask(np.less),
    "%lanemask_ge": _mask(np.greater_equal),
    "%lanemask_gt": _mask(np.greater),
    "%clock": SpecialRegister(type="u32", value=_counter(), constant=False, made_up=True),
    "%clock_hi": SpecialRegister(type="u32", value=_counter(1, 32), constant=False, made_up=True),
    "%clock64": SpecialRegister(type="u64", value=_counter(), constant=False, made_up=True),
    "%globaltimer": SpecialRegister(type="u64", value=_counter(), constant=False, made_up=True),
    "%globaltimer_lo": SpecialRegister(type="u32", value=_counter(), constant=False, made_up=True),
    "%globaltimer_hi": SpecialRegister(type="u32", value=_counter(1, 32), constant=False, made_up=True),
    "%dynamic_smem_size": SpecialRegister(
        type="u32", value=lambda wave: np.array(wave.memories.shared_bytes - wave.entry.static_shared_bytes)
    ),
    "%total_smem_size": SpecialRegister(type="u32", value=lambda wave: np.array(wave.memories.shared_bytes)),
    "%aggr_smem_size": SpecialRegister(
        type="u32", value=lambda wave: np.array(wave.memories.shared_bytes + _RESERVED), made_up=True
    ),
    "%current_graph_exec": SpecialRegister(type="u64", value=lambda wave: np.array(0)),
    **_made_up("%pm", 8, "u32"),
    **{f"{name}_64": register for name, register in _made_up("%pm", 8, "u64").items()},
    **_made_up("%envreg", 32, "u32"),
    "%envreg1": _workspace(32),
    "%envreg2": _workspace(0),
    **_reserved(begin=0, cap=0, end=_RESERVED),
    **_made_up("%reserved_smem_offset_", 2, "u32"),
}
_NEEDS: tuple[tuple[str, tuple[int, int], Feature | None], ...] = (  # names, PTX version, feature
    (r"%n?clusterid|%cluster_n?cta(?:id|rank)|%is_explicit_cluster", (7, 8), Feature.CLUSTERS),
    (r"%reserved_smem_offset_\w+", (7, 6), Feature.RESERVED_SHARED),
    (r"%aggr_smem_size", (8, 1), Feature.AGGREGATE_SHARED),
    (r"%current_graph_exec", (8, 0), None),
)
_NARROW = re.compile(r"%(?:n?tid|n?ctaid)\.[xyzw]|%gridid")  # those that mov.u16 reads too
_NAME = re.compile(
    r"%(?:n?tid|n?ctaid|laneid|n?warpid|n?smid|gridid|lanemask_[a-z]{2}|clock(?:_hi|64)?|globaltimer(?:_lo|_hi)?"
    r"|pm[0-7](?:_64)?|envreg\d+|n?clusterid|cluster_n?cta(?:id|rank)|is_explicit_cluster|reserved_smem_\w+"
    r"|dynamic_smem_size|total_smem_size|aggr_smem_size|current_graph_exec)(?:\.[xyzw])?"
)


def is_special(name: str) -> bool:
    """Whether PTX has a special register of that name."""
    return bool(_NAME.fullmatch(name))


def needed(name: str) -> tuple[tuple[int, int], Feature | None]:
    """Return the first PTX version that has a special register, and the feature that it needs."""
    stem = name.partition(".")[0]
    known = ((since, feature) for pattern, since, feature in _NEEDS if re.fullmatch(pattern, stem))
    return next(known, ((1, 0), None))


def widths(name: str) -> tuple[int, ...]:
    """Bits of the types of mov that read it."""
    own = bits_of(REGISTERS[name].type)
    return tuple(sorted({own, *((16, 32) if _NARROW.fullmatch(name) else ())}))


def type_of(name: str) -> str | None:
    """Its type, or None where it is not modelled."""
    found = REGISTERS.get(name)
    return found.type if found else None
