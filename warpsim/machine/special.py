"""Special registers: what each lane of a wave sees of itself (PTX ISA 9.1, section 10).

Knows grid, clusters, block and lanes; clocks and machine numbers are made up and deterministic, and say so.
Not modelled are those that only a driver or a real chip could tell: %pm, %envreg, %reserved_smem_offset.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .lanes import Values

if TYPE_CHECKING:
    from .wave import Wave

_WARP = 32
_RESERVED = 1024  # bytes of shared memory that the system takes from each CTA


@dataclass(frozen=True, kw_only=True)
class SpecialRegister:
    """One special register: its type, its value in a wave, whether that stays, and whether it is made up."""

    type: str
    value: Callable[[Wave], Values]
    constant: bool = True
    made_up: bool = False


def _lane(wave: Wave) -> Values:
    return wave.thread % _WARP


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
    """Bits of a warp's lanes that compare so with the own one."""

    def value(wave: Wave) -> Values:
        bits = np.where(compare(np.arange(_WARP)[None, :], np.arange(_WARP)[:, None]), 1, 0)
        words = (bits << np.arange(_WARP)).sum(axis=1)
        mask: Values = words[_lane(wave)]
        return mask

    return SpecialRegister(type="u32", value=value)


def _counter(scale: int = 1, shift: int = 0) -> Callable[[Wave], Values]:
    """Statements executed so far; the same in all lanes."""
    return lambda wave: np.array(wave.statements * scale >> shift, np.uint64)


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
    "%warpid": SpecialRegister(type="u32", value=lambda wave: wave.thread // _WARP),
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
        type="u32", value=lambda wave: np.array(wave.shared_bytes - wave.entry.static_shared_bytes)
    ),
    "%total_smem_size": SpecialRegister(type="u32", value=lambda wave: np.array(wave.shared_bytes)),
    "%aggr_smem_size": SpecialRegister(
        type="u32", value=lambda wave: np.array(wave.shared_bytes + _RESERVED), made_up=True
    ),
    "%current_graph_exec": SpecialRegister(type="u64", value=lambda wave: np.array(0)),
}
_NAME = re.compile(
    r"%(?:n?tid|n?ctaid|laneid|n?warpid|n?smid|gridid|lanemask_[a-z]{2}|clock(?:_hi|64)?|globaltimer(?:_lo|_hi)?"
    r"|pm[0-7](?:_64)?|envreg\d+|n?clusterid|cluster_n?cta(?:id|rank)|is_explicit_cluster|reserved_smem_\w+"
    r"|dynamic_smem_size|total_smem_size|aggr_smem_size|current_graph_exec)(?:\.[xyzw])?"
)


def is_special(name: str) -> bool:
    """Whether PTX has a special register of that name."""
    return bool(_NAME.fullmatch(name))


def needs_clusters(name: str) -> bool:
    """Whether it is one of those that came with clusters: PTX 7.8 and sm_90."""
    return "cluster" in name


def type_of(name: str) -> str | None:
    """Its type, or None where it is not modelled."""
    found = REGISTERS.get(name)
    return found.type if found else None
