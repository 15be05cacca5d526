"""Breakpoints and watchpoints: where they stop, after how many hits, and what has been written.

Does not know how a launch is stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...base.errors import OperandError, WarpsimError
from ...machine.run.pending import Pending
from ...machine.run.wave import Record, Wave
from ...machine.state.lanes import DivergentPath, Frame, Lanes, Mask
from ..checks.findings import LaunchFinding
from .areas import Area, Issued, Running, Written
from .expressions import Expression
from .stop_places import Place


@dataclass(frozen=True, kw_only=True, eq=False)
class Moment:
    """A statement that is executed next: ``time`` statements were before it; ``lanes`` execute it."""

    time: int
    number: int  # of the wave
    wave: Wave
    path: DivergentPath
    lanes: Lanes
    pc: int

    @property
    def record(self) -> Record:
        """Return the statement."""
        return self.wave.code[self.pc]


_HITS = re.compile(r"\s*(==|>=|>|%|)\s*([0-9]{1,9})\s*")
Evaluate = Callable[[Expression, Moment], Mask]


@dataclass(kw_only=True, eq=False)
class Breakpoint:
    """A place with a condition. ``ignore`` hits are passed over, ``log`` is printed instead of stopping."""

    number: int
    place: Place
    condition: Expression | None = None
    temporary: bool = False
    enabled: bool = True
    ignore: int = 0
    hits: int = 0
    log: str | None = None
    counted: Callable[[int], bool] | None = None  # which hits stop, by their number

    def takes_hit(self) -> bool:
        """Count a hit; return whether it stops."""
        self.hits += 1
        return self.hits > self.ignore and (self.counted is None or self.counted(self.hits))

    def lanes(self, moment: Moment, evaluate: Evaluate) -> Mask | None:
        """Return the lanes that stop here, None for none."""
        if not self.enabled or moment.pc not in self.place.pcs:
            return None
        mask = moment.lanes.mask
        if self.condition is not None:
            mask = mask & self._holding(self.condition, moment, evaluate)
        return mask if mask.any() else None

    def _holding(self, condition: Expression, moment: Moment, evaluate: Evaluate) -> Mask:
        """Return the lanes where the condition holds; an error says whose it is."""
        try:
            return evaluate(condition, moment)
        except OperandError as error:
            raise OperandError(f"breakpoint {self.number}, if {condition}: {error.message}") from None

    def __str__(self) -> str:
        kind = "temporary breakpoint" if self.temporary else "breakpoint"
        condition = f" if {self.condition}" if self.condition else ""
        return f"{kind} {self.number}: {self.place.text}{condition}"


@dataclass(frozen=True, eq=False)
class Hit:
    """A breakpoint that lanes have come to, before its statement."""

    point: Breakpoint
    time: int
    lanes: Mask


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """A write to what is watched: the statement at ``time`` did it, in these lanes of wave ``number``.

    ``copy`` is the operation that has written, where it is not a statement of the lane.
    """

    point: Watchpoint
    time: int
    number: int
    pc: int
    lanes: tuple[int, ...]
    before: Any
    after: Any
    copy: Pending | Issued | None = None


@dataclass(kw_only=True, eq=False)
class Watchpoint:
    """A register or bytes that are watched; ``condition`` is evaluated at the statement that writes."""

    number: int
    text: str
    condition: Expression | None = None
    enabled: bool = True
    hits: int = 0

    def begin(self, execution: Running) -> None:
        """Forget what was seen: another execution, or other statements, come next."""

    def changes(self, execution: Running, moment: Moment | None) -> Iterator[Change]:
        """Yield what the statement before this moment has written; None stands for the end of the launch."""
        raise NotImplementedError

    def __str__(self) -> str:
        condition = f" if {self.condition}" if self.condition else ""
        return f"watchpoint {self.number}: {self.text}{condition}"


@dataclass(kw_only=True, eq=False)
class RegisterWatch(Watchpoint):
    """A register, by number, of a function (None for the kernel), in lanes of wave number ``wave``."""

    wave: int
    function: Any
    register: int
    lanes: tuple[int, ...]
    type: str
    _seen: tuple[Moment, Frame, Any, Mask | None] | None = field(default=None, repr=False)

    def begin(self, execution: Running) -> None:
        """Forget what was seen."""
        self._seen = None

    def changes(self, execution: Running, moment: Moment | None) -> Iterator[Change]:
        """Yield the lanes that the statement before this moment has written the register in."""
        if self._seen is not None:
            before, frame, old, written = self._seen
            new = frame.values[self.register]
            if new is not old and new is not None:
                yield from self._changed(before, new, old, written)
        self._seen = None
        if moment is not None and moment.number == self.wave and moment.path.frame.function is self.function:
            frame = moment.path.frame
            value, partial = frame.values[self.register], frame.partial.get(self.register)
            self._seen = moment, frame, value, partial

    def _changed(self, moment: Moment, new: Any, old: Any, written: Mask | None) -> Iterator[Change]:
        lanes = [lane for lane in self.lanes if moment.lanes.mask[lane]]
        if not lanes:
            return
        lane = next((each for each in lanes if old is None or old[each] != new[each]), lanes[0])
        missing = old is None or (written is not None and not written[lane])
        yield Change(
            point=self,
            time=moment.time,
            number=moment.number,
            pc=moment.pc,
            lanes=(lane, *(each for each in lanes if each != lane)),
            before=None if missing else old[lane],
            after=new[lane],
        )


@dataclass(kw_only=True, eq=False)
class MemoryWatch(Watchpoint):
    """Bytes of a memory, shown as words of a type."""

    area: Area
    type: str
    _seen: tuple[Moment, bytes | None] | None = field(default=None, repr=False)

    def begin(self, execution: Running) -> None:
        """Forget what was seen."""
        self._seen = None

    def changes(self, execution: Running, moment: Moment | None) -> Iterator[Change]:
        """Yield what the statement before this moment, or a copy behind it, has written to the bytes."""
        now = self.area.read(execution)
        if self._seen is not None:
            before, old = self._seen
            writes = [each for each in execution.writes.found if each.area is self.area]
            if writes or (old is not None and now is not None and old != now):
                yield self._changed(before, writes[-1] if writes else None, old, now)
        self._seen = None if moment is None else (moment, now)

    def _changed(self, moment: Moment, write: Written | None, old: bytes | None, new: bytes | None) -> Change:
        lanes = write.lanes if write is not None else tuple(moment.lanes.index[:1].tolist())
        return Change(
            point=self,
            time=moment.time,
            number=moment.number,
            pc=moment.pc,
            lanes=lanes,
            before=_word(old),
            after=_word(new),
            copy=None if write is None else write.copy,
        )


def _word(content: bytes | None) -> Any:
    """Return bytes as a word, or as they are where no word has their number."""
    if content is None:
        return None
    size = len(content)
    return np.frombuffer(content, f"u{size}")[0] if size in (1, 2, 4, 8) else content


def lanes_of_warp(wave: Wave, warp: int) -> tuple[int, ...]:
    """Return the lanes of a warp of a wave."""
    return tuple(range(32 * warp, 32 * warp + 32))


def hit_condition(text: str) -> Callable[[int], bool]:
    """Return whether a hit, counted from 1, stops, as ``3`` (and after), ``== 3``, ``> 3``, ``>= 3`` and
    ``% 3`` say. Raises OperandError.
    """
    match = _HITS.fullmatch(text)
    if match is None or not int(match[2]):
        raise OperandError(f"hit condition {text}: expected a count, as in 3, == 3, > 3, >= 3 or % 3")
    sign, count = match[1], int(match[2])
    match sign:
        case "==":
            return lambda hits: hits == count
        case ">":
            return lambda hits: hits > count
        case "%":
            return lambda hits: hits % count == 0
    return lambda hits: hits >= count


Kind = Literal["start", "end", "error", "breakpoint", "watch", "finding", "step", "interrupt", "time"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Stop:
    """Why a launch has stopped, after ``time`` statements; what else there is depends on the kind.

    A step that reaches the beginning of the launch or its end has the kind "start", "end" or "error".
    """

    kind: Kind
    time: int
    hit: Hit | None = None
    changes: tuple[Change, ...] = ()
    finding: LaunchFinding | None = None
    error: WarpsimError | None = None
    note: str = ""
