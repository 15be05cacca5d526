"""CTAs of a launch over processes of this machine: helpers execute later waves ahead, this process the first.

A helper is a fork: it has the launch and the memory as they are then, and executes a range of waves, as this
process would later. When this process comes to that range, it takes what the helper has done, if that is what
it would have done itself: no byte that the helper has read is another by now, and none that it has written
was written here, where checks look for CTAs that write to one place. Otherwise, and where a helper fails or
dies, this process executes the range. So bytes, findings, counts and errors are those of one process.
What was touched comes back as pages in memory that both share, which has no name and goes with them.

Knows waves, pages and processes; does not know statements.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...machine.grid import Launch, run
from ...machine.independence import dependence
from ...machine.native.objects import failed_self_test
from ...machine.run.addition_orders import OpenAddition, Place
from ...machine.state.spaces import Bytes
from ...machine.state.undefined_metadata import UndefinedField
from ...observe.checks.findings import Findings, LaunchFinding
from .array_use import ArrayNotes, ArrayUse
from .forks import Cursor, Fork, begun, check_marked, processors, room_for, why_no_forks
from .touched_bytes import PAGE, READ, WRITTEN, Touched, gathered, pages_of, parts_of, put_pages

MOST = 256  # processes
WORTH = 5.0  # seconds that a launch takes by estimate before helpers begin by themselves
_SLOWER = 1.1  # times as long a helper takes for a wave: its pages are copied, and it notes what it touches
_PATIENCE = 60.0  # seconds to wait for a helper, or
_RATIO = 4.0  # so many times of what this process has computed since
_OWNED = 4  # bytes of a CTA, and of a statement, for each byte written


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a helper has done, but for bytes: how often statements ran, and what showed of them.

    ``read`` and ``written`` are numbers of pages, ``units`` are bytes for each element of ArrayUse's tables.
    """

    counts: npt.NDArray[np.int64]
    findings: tuple[tuple[tuple[Hashable, ...], LaunchFinding], ...]
    inferred: Mapping[int, str]
    with_c: Mapping[int, set[bool]]
    undefined: Mapping[int, UndefinedField]
    additions: Mapping[Place, OpenAddition]
    notes: tuple[ArrayNotes, ...]
    units: tuple[int, ...]
    read: int
    written: int
    failed_self_test: str = ""  # why it used no machine code


@dataclass(frozen=True, kw_only=True)
class _Helper:
    """A process that executes ``count`` waves from ``first`` on."""

    fork: Fork
    first: int
    count: int


class Helpers:
    """Helpers of one launch, a context that ends them: ``Ahead`` of grid.py.

    ``processes`` are all, this one included; None takes those that the machine has, once a launch takes long.
    ``counts`` are of the statements that helpers have executed, ``used`` the processes, and ``reason`` says
    why there is only one, "" where nothing prevents more. ``failed_self_tests`` say why helpers used no
    machine code.
    """

    def __init__(
        self, launch: Launch, findings: Findings, arrays: Sequence[ArrayUse], processes: int | None
    ) -> None:
        self.launch, self.findings, self.arrays = launch, findings, arrays
        self.counts = np.zeros(len(launch.module.code), np.int64)
        self.used = 1
        self.failed_self_tests = set[str]()
        self.reason = _hindrance(launch)
        self._asked = processes
        self._waves = launch.wave_count
        self._number = 0  # of the wave that is executed here
        self._begun = time.monotonic()
        self._helpers: list[_Helper] = []
        self._data: Bytes = np.zeros(0, np.uint8)  # memory when helpers began
        self._fresh: Bytes | None = None

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *error: object) -> None:
        self.interleave()

    # --- when this process executes a wave ---

    def look(self) -> None:
        """Let helpers begin where the launch takes long by estimate."""
        if self.used > 1 or self.reason or self._asked is not None:
            return
        if (time.monotonic() - self._begun) * self._waves > WORTH * (self._number + 1):
            self._begin(self._number + 1, half=1)

    def taken(self, number: int) -> int:
        """Take what a helper has executed from a wave on; return how many waves that are."""
        self._number = number
        if self._asked is not None and self.used == 1 and not self.reason:
            self._begin(number, half=0)
        if not self._helpers or self._helpers[0].first != number:
            return 0
        helper = self._helpers.pop(0)
        try:
            done = self._answer(helper)
            return helper.count if done is not None and self._take(helper, done) else 0
        finally:
            helper.fork.end()

    def interleave(self) -> None:
        """End all helpers: from now on waves take turns here, or the launch has ended."""
        while self._helpers:
            self._helpers.pop().fork.end()

    # --- to begin ---

    def _begin(self, first: int, *, half: int) -> None:
        """Begin helpers for the waves from ``first`` on; ``half`` waves are half done here."""
        memory, left = self.launch.device.memory, self._waves - first
        self.reason = "" if left + half > 1 else "all CTAs left are in one wave"
        count = min(self._asked or processors(), left + half, room_for(memory.data.size, MOST))
        if count < 2:
            self.reason = self.reason or "there is one processor, or too little memory"
            return
        self._data = memory.data.copy()
        self._fresh = None if memory.fresh is None else memory.fresh.copy()
        work = left + half / 2
        own = round(work * _SLOWER / (_SLOWER + count - 1) - half / 2)
        own = own if half else max(own, -(-left // count))
        bounds = np.linspace(first + own, self._waves, count).round().astype(int).tolist()
        for start, end in pairwise(bounds):
            if end > start and not self._fork(start, end - start):
                self.reason = "the system has no room for another process"
                break
        self.used = 1 + len(self._helpers)

    def _fork(self, first: int, count: int) -> bool:
        """Begin one helper; return whether there is room for it."""
        fork = begun(lambda pages: self._execute(first, count, pages), _most(self._data.size))
        if fork is None:
            return False
        self._helpers.append(_Helper(fork=fork, first=first, count=count))
        return True

    # --- in a helper ---

    def _execute(self, first: int, count: int, room: mmap.mmap) -> Done:
        """Execute some waves; return what they did, and put the bytes that they touched in place."""
        launch, touched, memory = self.launch, Touched(), self.launch.device.memory
        memory.detach(self._data)
        ahead, known = _Strict(os.getppid()), len(self.findings.found)
        part = replace(launch, first=first, count=count, ahead=ahead)
        part = replace(part, observers=lambda: (*launch.observers(), touched))
        before = [arrays.noted() for arrays in self.arrays]
        counts = run(part)
        if part.additions.sums() or memory.data.size != self._data.size:
            raise RuntimeError("the launch does what cannot be taken")
        if touched.marks.size != memory.data.size:
            touched.marks = np.zeros(memory.data.size, np.uint8)
        writing = pages_of(touched.marks, WRITTEN)
        check_marked(memory.data, self._data, touched.marks)
        reading = pages_of(touched.marks, READ)
        cursor = Cursor(np.frombuffer(room, np.uint8))
        for pages in (reading, writing):
            cursor.put(pages)
            cursor.put(gathered(touched.marks, pages))
        cursor.put(gathered(memory.data, writing))
        for arrays in self.arrays:
            for table in arrays.owners(memory.data.size):
                cursor.put(gathered(table, writing, PAGE // arrays.unit))
        keys = list(self.findings.known)[known:]
        return Done(
            counts=counts,
            findings=tuple(zip(keys, self.findings.found[known:], strict=True)),
            inferred=part.inferred,
            with_c=part.with_c,
            undefined=part.undefined.found,
            additions=part.additions.found(),
            notes=tuple(a.noted().since(b) for a, b in zip(self.arrays, before, strict=True)),
            units=tuple(arrays.unit for arrays in self.arrays),
            read=len(reading),
            written=len(writing),
            failed_self_test=failed_self_test(),
        )

    # --- what a helper has done ---

    def _answer(self, helper: _Helper) -> Done | None:
        """Return what a helper has done; None where it has failed, died, or takes much too long."""
        spent = time.monotonic() - self._begun
        return cast("Done | None", helper.fork.wait(max(_PATIENCE, _RATIO * spent)))

    def _take(self, helper: _Helper, done: Done) -> bool:
        """Take what a helper has done; return whether this process would have done the same."""
        launch, memory = self.launch, self.launch.device.memory
        cursor = Cursor(np.frombuffer(helper.fork.pages, np.uint8))
        reading, read = cursor.take(np.int64, done.read), cursor.pages(np.uint8, done.read)
        writing, written = cursor.take(np.int64, done.written), cursor.pages(np.uint8, done.written)
        content = cursor.pages(np.uint8, done.written)
        marks = (written & WRITTEN) != 0
        if not self._same(reading, (read & READ) != 0) or not _inferred_alike(launch.inferred, done.inferred):
            return False
        if not all(
            a.apart(notes, writing, marks, memory.data.size)
            for a, notes in zip(self.arrays, done.notes, strict=True)
        ):
            return False
        put_pages(memory.data, writing, marks, content)
        if memory.fresh is not None:
            put_pages(memory.fresh, writing, marks, np.zeros_like(content))
        for arrays, notes, unit in zip(self.arrays, done.notes, done.units, strict=True):
            tables = arrays.owners(memory.data.size)
            owners = [cursor.pages(np.int32, done.written, PAGE // unit) for _ in tables]
            arrays.absorb(notes, launch.entry.code, memory.data.size)
            arrays.own(writing, marks, owners, unit)
        for key, finding in done.findings:
            self.findings.add(key, finding)
        launch.inferred.update(done.inferred)
        for pc, added in done.with_c.items():
            launch.with_c.setdefault(pc, set()).update(added)
        launch.additions.elsewhere.update(done.additions)
        for pc, field in done.undefined.items():
            launch.undefined.found.setdefault(pc, field)
        self.counts += done.counts
        self.failed_self_tests.add(done.failed_self_test)
        return True

    def _same(self, pages: npt.NDArray[np.int64], read: npt.NDArray[np.bool_]) -> bool:
        """Return whether bytes that a helper has read are now what they were when it began."""
        memory = self.launch.device.memory
        pairs = [(self._data, memory.data)]
        if (self._fresh is None) != (memory.fresh is None) or self._data.size != memory.data.size:
            return False
        if self._fresh is not None and memory.fresh is not None:
            pairs.append((self._fresh, memory.fresh))
        return not any(
            ((gathered(then, pages[part]) != gathered(now, pages[part])) & read[part]).any()
            for then, now in pairs
            for part in parts_of(pages)
        )


class _Strict:
    """``Ahead`` of a helper: it gives up where waves take turns, and ends where its parent has."""

    def __init__(self, parent: int) -> None:
        self._parent = parent

    def look(self) -> None:
        """End where nothing waits for what is computed."""
        if os.getppid() != self._parent:
            os._exit(1)

    def taken(self, number: int) -> int:
        """Nothing is executed elsewhere."""
        return 0

    def interleave(self) -> None:
        """Waves take turns: give up."""
        raise RuntimeError("waves take turns")


def checked_processes(given: object) -> int | None:
    """Return the processes of a launch, None for the default; raises OperandError."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or not 1 <= given <= MOST:
        raise OperandError(f"processes={given!r}: expected an integer from 1 to {MOST}, or None")
    return int(given)


def _hindrance(launch: Launch) -> str:
    """Return why a launch stays in one process; "" where it may be in several."""
    if launch.wave_count < 2:
        return "all CTAs are in one wave"
    if launch.most_statements is not None:
        return "most_statements counts those of all CTAs together"
    return why_no_forks() or dependence(launch.entry)


def _most(size: int) -> int:
    """Return the bytes that all pages of a memory take, with what else comes back of them."""
    return size * (3 + 2 * _OWNED) + 32 * (size // PAGE + 2) * 8 + (1 << 16)


def _inferred_alike(known: Mapping[int, str], other: Mapping[int, str]) -> bool:
    """Return whether what is inferred of a statement is the same, where both know it."""
    return all(known.get(pc, why) == why for pc, why in other.items())
