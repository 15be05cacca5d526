"""The CTAs, warps and lanes of a wave: their numbers and their places in the grid.

Knows sizes and places; does not know memories, statements or which lanes have exited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...isa.warps import WARP
from ..bind.tuning import Dimensions
from ..state.lanes import Lanes


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """CTAs of a cluster along each axis; ``explicit`` where the kernel or the launch states them."""

    shape: Dimensions = (1, 1, 1)
    explicit: bool = False

    @property
    def count(self) -> int:
        """Return how many CTAs a cluster has."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    def __str__(self) -> str:
        return " x ".join(map(str, self.shape))


ALONE = Cluster()  # each CTA is a cluster of its own


class Geometry:
    """The CTAs of a wave: ``ctas`` (CTAs, 3) are their coordinates in the grid.

    Lanes are numbered CTA by CTA; each CTA is padded to whole warps with lanes that never run.
    ``cta`` and ``thread`` (lanes,) are the place of its CTA in the wave and its number in the CTA. The CTAs
    of a cluster are adjacent.
    """

    def __init__(
        self, ctas: npt.NDArray[np.int64], grid: Dimensions, block: Dimensions, cluster: Cluster = ALONE
    ) -> None:
        self.ctas = ctas
        self.grid = grid
        self.block = block
        self.cluster = cluster
        self.threads: int = block[0] * block[1] * block[2]  # of a CTA
        self.warps: int = -(-self.threads // WARP)  # of a CTA
        self.lanes: int = len(ctas) * self.warps * WARP
        number = np.arange(self.lanes)
        self.cta: npt.NDArray[np.int64] = number // (self.warps * WARP)
        self.thread: npt.NDArray[np.int64] = number % (self.warps * WARP)

    def count_of(self, lanes: Lanes) -> npt.NDArray[np.int64]:
        """Return ``(CTAs,)``: how many of the lanes are in each CTA."""
        return np.bincount(self.cta[lanes.index], minlength=len(self.ctas))

    def describe_lane(self, lane: int) -> str:
        """Return CTA, warp and lane of a lane of the wave, in words."""
        cta = ", ".join(map(str, self.ctas[self.cta[lane]].tolist()))
        thread = int(self.thread[lane])
        return f"CTA ({cta}), warp {thread // WARP}, lane {thread % WARP}"
