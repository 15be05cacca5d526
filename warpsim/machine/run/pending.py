"""An operation in flight: the lane that issued it, the bytes that it touches, what it does when it completes.

Knows what is pending; does not know when it completes (asynchronous.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .wave import Record, Wave

Ranges = npt.NDArray[np.int64]  # (n, 2)
Action = Callable[[Wave], None]
Batch = Callable[[Wave, "Sequence[Pending]"], None]


class Stretches:
    """Bytes of a memory: ``space`` is "shared" or "global", ``ranges`` (n, 2) the first byte of each and the
    one behind the last, as offsets in ``wave.memories.shared`` or ``wave.memories.device.data``; or what
    returns them, when first asked for. ``some`` is a byte among them, None where there is none.
    """

    def __init__(self, *, space: str, ranges: Ranges | Callable[[], Ranges], some: int | None = None) -> None:
        self.space, self._given = space, ranges
        self.some = int(ranges[0, 0]) if not callable(ranges) and len(ranges) else some

    @cached_property
    def ranges(self) -> Ranges:
        """``(n, 2)``."""
        return self._given() if callable(self._given) else self._given

    @classmethod
    def single(cls, space: str, first: int, size: int) -> Stretches:
        """So many bytes in a row."""
        return cls(space=space, ranges=np.array([[first, first + size]], np.int64))

    @property
    def cells(self) -> npt.NDArray[np.int64]:
        """The number of every byte."""
        if not len(self.ranges):
            return np.zeros(0, np.int64)
        return np.concatenate([np.arange(first, past) for first, past in self.ranges.tolist()])


@dataclass(frozen=True, kw_only=True, eq=False)
class Moved:
    """Where each byte of an operation comes from and goes, one by one.

    ``source (n,)`` are offsets in ``space``: "global", "shared", or "registers", those of ``lanes`` lanes
    from
    the operation's on, byte by byte in the order of the operand; -1 is a byte that is filled. ``targets`` are
    spaces, "tensor" (tensor_cells.py) included, with offsets ``(n,)``. ``update`` and ``type`` are those of a
    reduction, "" for a copy.
    """

    space: str
    source: npt.NDArray[np.int64]
    targets: tuple[tuple[str, npt.NDArray[np.int64]], ...]
    lanes: int = 1
    update: str = ""
    type: str = ""
    lossy: bool = False  # whether bytes are made of parts of others


@dataclass(kw_only=True, eq=False)
class Pending:
    """An operation in flight: the lane that issued it, what it touches, and what it does when it completes.

    ``signals`` are mbarriers, as offsets in ``wave.memories.shared``, with the bytes that complete there, and
    ``arrivals`` those at which it arrives when it completes.
    ``group`` is the family of groups that it belongs to, "" for none; ``number`` of the group is set when it
    is issued.
    ``after`` are those that complete first; ``batch`` is called once, before, for those of several that
    complete together which have the same ``batch``. ``turn`` counts what the lane had issued before.
    """

    record: Record
    lane: int
    kind: str  # in words: "bulk copy"
    complete: Action
    read: Action | None = None
    reads: tuple[Stretches, ...] = ()
    writes: tuple[Stretches, ...] = ()
    signals: tuple[tuple[int, int], ...] = ()
    arrivals: tuple[int, ...] = ()
    group: str = ""
    after: tuple[Pending, ...] = ()
    batch: Batch | None = None
    moved: Callable[[Wave], Moved] | None = None  # what becomes of each byte, of an operation that copies
    number: int = -1
    turn: int = -1
    fetched: bool = False
    done: bool = False

    @property
    def barriers(self) -> tuple[int, ...]:
        """The mbarriers that it signals or arrives at."""
        return (*(offset for offset, _ in self.signals), *self.arrivals)
