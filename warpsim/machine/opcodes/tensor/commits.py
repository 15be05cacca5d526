"""tcgen05.commit and tcgen05.fence: an arrival when the work of a thread is complete, and order of threads.

Fences order what a thread does before and after it synchronises with others; here every statement is in order
with the next, so they do nothing, and their absence is not an error. PTX ISA 9.3, sections 9.7.17.11 and
9.7.17.12.
"""

from __future__ import annotations

import numpy as np

from ....isa.features import Feature
from ...run.clusters import peers_of
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes
from ..asynchronous.tensor_boxes import single, values_of
from ..effect import Effect
from ..statement_binder import StatementBinder
from .issue_order import issue_arrival
from .tensor_places import misused

_NARROW = (
    "inferred: a generic address of 32 bits is in .shared::cluster, as ptxas 13.0 compiles it to the same"
)


def _commit(binder: StatementBinder, *modifiers: str) -> Step:
    multicast = "multicast::cluster" in modifiers
    binder.count(1 + multicast)
    narrow = "shared::cluster" not in modifiers and binder.offset(0)[1]
    generic = "shared::cluster" not in modifiers and not narrow
    address = binder.address(0, "generic" if generic else "shared::cluster")
    mask = binder.reader(binder.operands[1], "b16", 1) if multicast else None
    ctas = 2 if "cta_group::2" in modifiers else 1

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        if narrow:
            wave.infer(path.pc, _NARROW)
        masks = values_of(mask, wave, path, lanes)
        for place, (lane, where) in enumerate(
            zip(lanes.index.tolist(), values_of(address, wave, path, lanes), strict=True)
        ):
            if generic:
                where = _in_shared(wave, path, lane, where)
            offset = int(
                wave.locate("shared::cluster", single(wave, lane), np.array([where], np.int64), 8)[1][0]
            )
            barriers = (offset,) if mask is None else _everywhere(wave, path, lane, offset, masks[place])
            issue_arrival(wave, path, (lane, ctas), barriers)

    return step


def _in_shared(wave: Wave, path: DivergentPath, lane: int, where: int) -> int:
    """Return the shared address of a generic address; raises Fault outside shared memory."""
    if spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW):
        raise misused(wave, path, lane, f"the generic address {where:#x} is not in shared memory")
    return where - spaces.SHARED_WINDOW


def _everywhere(wave: Wave, path: DivergentPath, lane: int, offset: int, mask: int) -> tuple[int, ...]:
    """Return the same offset in every CTA of the cluster whose bit is set; raises Fault for others."""
    count, stride = wave.cluster.count, wave.memories.shared_stride
    if mask >> count:
        raise misused(
            wave, path, lane, f"the mask {mask:#x} names CTAs of rank {count} and more: there are none"
        )
    ranks = np.array([rank for rank in range(count) if mask >> rank & 1], np.int64)
    peers = peers_of(wave, single(wave, lane), ranks)
    return tuple((peers * stride + offset % stride).tolist())


def _fence(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(0)
    return lambda wave, path, lanes: None


_GROUPS = ("cta_group::1", "cta_group::2")

ROWS: tuple[Effect, ...] = (
    Effect(
        opcode="tcgen05",
        slots=(
            ("commit",),
            _GROUPS,
            ("mbarrier::arrive::one",),
            ("", "shared::cluster"),
            ("", "multicast::cluster"),
            ("b64",),
        ),
        bind=_commit,
        since=(8, 6),
        feature=Feature.TCGEN05,
    ),
    Effect(
        opcode="tcgen05",
        slots=(("fence::before_thread_sync", "fence::after_thread_sync"),),
        bind=_fence,
        since=(8, 6),
        feature=Feature.TCGEN05,
    ),
)
