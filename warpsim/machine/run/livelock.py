"""Livelocks: which loops wait for other lanes, and the proof that their waiting never ends.

A loop waits for others where it reads what they may write (atomics, ordered and volatile loads, phases of an
mbarrier, sleep) and does nothing that they could see but atomics and waiting at barriers. Such lanes let
others go on after each round. Where a whole pass over all waves brings back every register, every byte and
every place, the same will happen for ever: machine and schedule are deterministic, and only what changes can
change them. A loop that reads a clock or counts its rounds is never at the same place again, and is left
alone, for it may end.
Knows paths and memories; does not know what a statement computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from ...base.errors import Deadlock, Fault
from ...isa.families import OPCODES
from ...ptx.operands import Register
from ...ptx.statements import InstructionStatement
from ..bind.scope import LabelName
from ..state.lanes import DivergentPath, Frame, Lanes
from ..state.memory_access import MemoryAccess
from ..state.spaces import Bytes
from .asynchronous import ASYNCHRONY
from .events import Observer, Observers, observe
from .execute import run
from .wave import Record, Wave
from .windows import place_of

_READING = frozenset({"atom", "nanosleep"})
_ORDERED = frozenset({"volatile", "relaxed", "acquire", "mmio", "test_wait"})
# what others may wait for, or what a loop that waits has no time for
_ACTING = OPCODES | {"st", "red", "call", "ret", "exit", "cp", "wmma", "stmatrix", "brx"}
_BARRIERS = frozenset({"bar", "barrier"})  # lanes that only arrive act; those that meet may all wait
_SHOWN = 4  # groups of lanes that an error describes
_ROUND = 256  # statements in which a loop that waits comes round, to see what it reads


def waiting_loops(code: Sequence[Record]) -> frozenset[int]:
    """Return the program counters of branches that close loops that wait for others."""
    return frozenset(pc for pc, start in _backward(code) if _waits(code[start : pc + 1]))


def _backward(code: Sequence[Record]) -> Iterator[tuple[int, int]]:
    """Yield branches backwards, and their targets."""
    for pc, record in enumerate(code):
        statement = record.statement
        if statement.opcode != "bra" or record.scope is None:
            continue
        for operand in statement.operands or ():
            label = record.scope.find(operand.name) if isinstance(operand, Register) else None
            if isinstance(label, LabelName) and label.pc <= pc:
                yield pc, label.pc


def _waits(body: Sequence[Record]) -> bool:
    statements = [record.statement for record in body]
    return not any(map(_acts, statements)) and any(
        statement.opcode in _READING or not _ORDERED.isdisjoint(statement.modifiers)
        for statement in statements
    )


def _acts(statement: InstructionStatement) -> bool:
    """Return whether others may wait for what a statement does."""
    return statement.opcode in _ACTING or (statement.opcode in _BARRIERS and "arrive" in statement.modifiers)


class LivelockDetector:
    """The check that passes over all waves change nothing any more.

    It compares after 1, 2, 4, ... passes in vain, for to read all memory takes time.
    """

    def __init__(self) -> None:
        self.passes = 0  # in a row in which every wave only went round
        self.wanted = 1
        self.before: tuple[bytes, list[int]] | None = None

    def check(self, waves: Sequence[Wave], moved: bool) -> None:
        """Check after each pass; ``moved`` where a wave has begun, ended or not only gone round.
        What is in flight may end the waiting.

        Raises Fault where no lane can ever continue.
        """
        if moved or not waves or any(ASYNCHRONY.of(wave).flying for wave in waves):
            self.passes, self.wanted, self.before = 0, 1, None
            return
        self.passes += 1
        if self.passes < self.wanted:
            return
        now = _state(waves), [went for wave in waves for went in _rounds(wave)]
        if self.before is not None and self.before[0] == now[0] and _all_went(self.before[1], now[1]):
            raise _deadlock(waves)
        self.before = now
        self.wanted = 2 * self.passes


def _rounds(wave: Wave) -> list[int]:
    """Return how far each path has gone round; a path that is alone does not count its turns."""
    paths = _in_order(wave)
    return [wave.scheduler.statements] if len(paths) == 1 else [path.turns for path in paths]


def _all_went(before: list[int], now: list[int]) -> bool:
    """Return whether every path has gone round in between."""
    return len(before) == len(now) and all(first < second for first, second in zip(before, now, strict=True))


def _in_order(wave: Wave) -> list[DivergentPath]:
    """Return the paths that run, by place and lanes."""
    return sorted(wave.scheduler.paths, key=lambda path: (path.pc, int(path.lanes.index[0])))


def _state(waves: Sequence[Wave]) -> bytes:
    """Return a digest of all that decides how the waves go on."""
    digest = blake2b(digest_size=16)
    digest.update(waves[0].memories.device.data.data)
    for wave in waves:
        digest.update(wave.memories.shared.data)
        digest.update(wave.memories.local.data)
        for path in (*_in_order(wave), *wave.scheduler.waiting):
            digest.update(f"{path.pc} {path.frame.depth}".encode())
            digest.update(path.lanes.mask.data)
            _add_registers(digest, path.frame)
    return digest.digest()


def _add_registers(digest: Any, frame: Frame | None) -> None:
    while frame is not None:
        for value in frame.values:
            digest.update(b"-" if value is None else np.ascontiguousarray(value).data)
        frame = frame.caller


# --- the error ---------------------------------------------------------------------------------------


class _Reads(Observer):
    """An observer that remembers the last word that each lane read, and where."""

    def __init__(self) -> None:
        self.of_lane: dict[int, tuple[int, Bytes, int, int]] = {}  # statement, memory, offset and size

    def load(self, wave: Wave, access: MemoryAccess) -> None:
        """Words that lanes read."""
        for lane, offset in zip(access.lanes.index.tolist(), access.offsets.tolist(), strict=False):
            self.of_lane[lane] = (access.path.pc, access.memory, offset, access.size)

    atomic = load


def _deadlock(waves: Sequence[Wave]) -> Fault:
    """Return the error of lanes that go round: where, and what they read."""
    groups = [group for wave in waves for group in _groups(wave)]
    shown = "; ".join(text for text, _ in groups[:_SHOWN])
    more = f"; and {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
    waiting = sum(path.lanes.count for wave in waves for path in wave.scheduler.waiting)
    others = f" ({waiting} more lanes wait at barriers)" if waiting else ""
    message = f"deadlock: no lane can continue, and none is left to write what they wait for{others}"
    return Deadlock(f"{message}: {shown}{more}", groups[0][1])


def _groups(wave: Wave) -> Iterator[tuple[str, Any]]:
    """Lanes of a CTA that go round at one place, in words, and the statement that they read by."""
    reads = _Reads()
    kept = observe(wave, Observers([reads]))
    for path in _in_order(wave):
        path.turns = 0
    run(wave, _ROUND * len(wave.scheduler.paths))
    observe(wave, kept)
    for path in _in_order(wave):
        for cta in np.unique(wave.cta[path.lanes.index]).tolist():
            part = Lanes(path.lanes.mask & (wave.cta == cta))
            yield _describe_loop(wave, path, part, reads)


def _describe_loop(wave: Wave, path: DivergentPath, lanes: Lanes, reads: _Reads) -> tuple[str, Any]:
    first = int(lanes.index[0])
    known = reads.of_lane.get(first)
    if known is None:
        place = wave.code[path.pc].statement.location()
        return f"{wave.describe_lanes(lanes)} at line {place.line}", place
    pc, memory, offset, size = known
    statement = wave.code[pc].statement
    value = int.from_bytes(memory[offset : offset + size].tobytes(), "little")
    place = statement.location()
    where = place_of(wave, first, memory, offset)
    return (
        f"{wave.describe_lanes(lanes)}: {statement.mnemonic} at line {place.line} reads {value} at {where}",
        place,
    )
