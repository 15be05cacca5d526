"""Shared memory as the async proxy sees it: which generic stores and which wgmma touched each chunk last.

A chunk is 16 bytes, which no store exceeds and a wgmma reads as a whole. A store is visible to a wgmma when
the warp that stored, or one of the warpgroup, has executed fence.proxy.async since. Knows the memory of a
wave, its warps and warpgroups; does not know registers, or how a finding is worded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..isa.warps import WARP, WARPGROUP
from ..machine.run.convergence import Warpgroups

if TYPE_CHECKING:
    from ..machine.run.events import Groups, Share
    from ..machine.run.wave import Wave

Integers = npt.NDArray[np.int64]
Found = tuple[int, Integers]  # a warpgroup, and chunks of its CTA

CHUNK = 16


class TileMarks:
    """The marks of a wave. ``completed`` (warpgroups,) is the step up to which the wgmma of each are done."""

    def __init__(self, wave: Wave) -> None:
        self.places = Warpgroups.of(wave)
        self.chunks = wave.memories.shared_stride // CHUNK  # of a CTA
        count, groups = len(wave.ctas) * self.chunks, len(self.places.first)
        self.of_cta = groups // len(wave.ctas)  # warpgroups
        self.step = self.latest = 0  # of anything, of a store
        self.stored: Integers = np.zeros(count, np.int64)
        self.stored_at: Integers = np.zeros(count, np.int64)  # program counters
        self.stored_by: Integers = np.zeros(count, np.int64)  # warps of the wave
        self.fenced: Integers = np.zeros(wave.lanes // WARP, np.int64)  # by warp: its latest proxy fence
        self.read: Integers = np.zeros((self.of_cta, count), np.int64)  # by warpgroup of the CTA: its step
        self.completed: Integers = np.zeros(groups, np.int64)

    def store(self, chunks: Integers, warps: Integers, pc: int) -> None:
        """Chunks of the wave are written through the generic proxy."""
        self.step += 1
        self.latest = self.step
        self.stored[chunks] = self.step
        self.stored_at[chunks] = pc
        self.stored_by[chunks] = warps

    def brought(self, chunks: Integers) -> None:
        """Chunks are overwritten through the async proxy: what was stored there before is gone."""
        self.stored[chunks] = 0

    def fence(self, warps: Integers) -> None:
        """Warps execute fence.proxy.async."""
        self.step += 1
        self.fenced[warps] = self.step

    def busy(self, chunks: Integers) -> Found | None:
        """Return a warpgroup whose wgmma in flight reads some of the chunks, and which: numbers in the
        wave.
        """
        ctas = chunks // self.chunks
        for place in range(self.of_cta):
            late = self.read[place][chunks] > self.completed[ctas * self.of_cta + place]
            if late.any():
                first = int(late.argmax())
                group = int(ctas[first]) * self.of_cta + place
                return group, np.unique(chunks[late & (ctas == ctas[first])])
        return None

    def unseen(self, groups: Groups, share: Share) -> Found | None:
        """Return a warpgroup whose wgmma need not see generic stores, and the chunks of the wave they are
        in.
        """
        if self.latest <= self.fenced.min():
            return None
        cells = self._cells(groups, share)
        stored = self.stored[cells]
        own = self.fenced[(self.places.warps[groups][:, None] + np.arange(WARPGROUP // WARP))].max(axis=1)
        late = stored > np.maximum(self.fenced[self.stored_by[cells]], own[:, None])
        if not late.any():
            return None
        row = int(late.any(axis=1).argmax())
        return int(groups[row]), cells[row][late[row]]

    def reads(self, groups: Groups, share: Share, step: int) -> None:
        """Mark the tiles that a wgmma of some warpgroups reads from now on."""
        cells, place = self._cells(groups, share), groups % self.of_cta
        self.read[place[:, None], cells] = step

    def _cells(self, groups: Groups, share: Share) -> Integers:
        """Return ``(groups, chunks)``: the chunks of the wave that each reads."""
        cells: Integers = self.places.cta[groups][:, None] * self.chunks + share.chunks
        return cells

    def ranges(self, chunks: Integers) -> tuple[tuple[int, int], ...]:
        """Return chunks of one CTA as ranges of bytes of its memory."""
        inside = np.unique(chunks % self.chunks)
        breaks = np.flatnonzero(np.diff(inside) != 1) + 1
        return tuple((CHUNK * int(item[0]), CHUNK * int(item[-1] + 1)) for item in np.split(inside, breaks))
