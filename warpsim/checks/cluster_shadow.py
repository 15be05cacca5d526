"""Bytes that CTAs of a cluster touch in shared memory, and who touched each of them last.

Knows places, CTAs and times; does not know what is allowed (cluster_memory.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..errors import Location
from ..machine.run.clusters import in_shared
from ..machine.state.lanes import Values
from ..machine.state.memory_access import MemoryAccess
from .cluster_order import NEVER

if TYPE_CHECKING:
    from ..machine.run.asynchronous import Pending
    from ..machine.run.wave import Wave


@dataclass(eq=False)
class Shadow:
    """Of each byte: the CTA that touched it last, -1 for none; when; and at which statement."""

    cta: npt.NDArray[np.int16]
    time: npt.NDArray[np.int64]
    place: npt.NDArray[np.int32]

    @classmethod
    def of(cls, size: int) -> Shadow:
        """Nobody has touched anything."""
        return cls(np.full(size, -1, np.int16), np.full(size, NEVER, np.int64), np.zeros(size, np.int32))

    def note(self, cells: Values, ctas: Values, time: int, place: int) -> None:
        """Bytes are touched now."""
        self.cta[cells], self.time[cells], self.place[cells] = ctas, time, place


@dataclass(frozen=True)
class Access:
    """Bytes (words, size) that lanes touch: ``lanes`` and ``ctas`` (words, 1) say whose."""

    wave: Wave
    place: int  # the statement
    cells: Values
    lanes: Values
    ctas: Values
    location: Location
    mnemonic: str

    @property
    def homes(self) -> Values:
        """The CTA whose memory each byte is in."""
        homes: Values = self.cells // self.wave.shared_stride
        return homes

    @property
    def far(self) -> Values:
        """Which bytes are in the memory of another CTA."""
        return np.asarray(self.homes != self.ctas)

    def where(self, row: int, column: int) -> str:
        """A byte in words."""
        return in_shared(self.wave, int(self.lanes[row, 0]), int(self.cells[row, column]))

    def who(self, row: int) -> str:
        """A lane in words."""
        return self.wave.describe_lane(int(self.lanes[min(row, len(self.lanes) - 1), 0]))


def access_of(wave: Wave, access: MemoryAccess) -> Access:
    """The bytes of a statement's lanes."""
    index = access.lane_of[:, None]
    statement = wave.code[access.path.pc].statement
    place, ctas = access.path.pc, wave.cta[index]
    return Access(wave, place, access.cells, index, ctas, statement.location(), statement.mnemonic)


def access_of_lane(wave: Wave, place: int, lane: int, cells: Values) -> Access:
    """Bytes that an operation of one lane touches."""
    index, statement = np.array([[lane]]), wave.code[place].statement
    return Access(
        wave, place, cells[None, :], index, wave.cta[index], statement.location(), statement.mnemonic
    )


def written_by(wave: Wave, place: int, pending: Pending) -> list[Access]:
    """The bytes of shared memory that an operation writes, if some are in other CTAs."""
    places = [one.cells for one in pending.writes if one.space == "shared"]
    found = [access_of_lane(wave, place, pending.lane, cells) for cells in places]
    return [one for one in found if one.cells.size and one.far.any()]
