"""The small language of wgmma programs, the rules of a Warpgroup fed with them, and a naive twin that judges.

A program is lines, one event a line: ``wgmma d0,d1 a0,a1 e0 0:64,64:128 m64n8k16 zero`` with any of the
operands left out, ``read``, ``write``, ``store``, ``wait 1``, ``fence``, ``commit``, ``end``. The twin has
the rules as PTX words them, about pairs of statements, with no state; it shares nothing with the checker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from warpsim.base.errors import Location
from warpsim.machine.run.events import Observers
from warpsim.machine.state.lanes import DivergentPath, Lanes
from warpsim.machine.state.memory_access import MemoryAccess
from warpsim.observe.checks.wgmma.hazard import Hazard, Mode
from warpsim.programs.interactive.machines import Warpgroup
from warpsim.programs.interactive.warpgroup_hazards import WarpgroupHazards

BYTES = 256
UNIT = 16  # bytes of shared memory for each of a program: what a wgmma reads as a whole


@dataclass(frozen=True)
class Line:
    """One event: ``wgmma d0,d1 a0,a1 e0 0:64,64:128 m64n8k16 zero`` with any of the operands left out."""

    number: int
    text: str

    @cached_property
    def verb(self) -> str:
        return self.text.split()[0]

    @cached_property
    def words(self) -> list[str]:
        return self.text.split()[1:]

    @cached_property
    def place(self) -> Location:
        return Location("k.ptx", self.number, 1, len(self.verb), self.text)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(",".join(self.words).split(","))

    def named(self, letter: str) -> tuple[str, ...]:
        return tuple(n for word in self.words for n in word.split(",") if n.startswith(letter))

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        found = [word.split(":") for words in self.words for word in words.split(",") if ":" in word]
        return [(int(first), int(stop)) for first, stop in found]

    @cached_property
    def bytes(self) -> set[int]:
        return {one for first, stop in self.ranges for one in range(first, stop)}

    @cached_property
    def shape(self) -> str:
        return next((word for word in self.words if word.startswith("m64")), "m64n8k16")

    @cached_property
    def operands(self) -> dict[str, tuple[str, ...]]:
        """Operands by position, whatever the registers are called: 'D=', 'A=' and 'E=' override letters."""
        spelled = dict(word.split("=") for word in self.words if "=" in word)
        return {
            role: tuple(spelled[key].split(",")) if key in spelled else self.named(letter)
            for role, key, letter in (("D", "D", "d"), ("A", "A", "a"), ("metadata", "E", "e"))
        }


def lines(program: str) -> list[Line]:
    texts = [text.split("#")[0].strip() for text in program.strip().splitlines()]
    return [Line(number, text) for number, text in enumerate(texts, 1)]


class Checked:
    """The rules of a Warpgroup, and a wave whose statements are the lines of a program."""

    def __init__(self, mode: Mode = "error") -> None:
        group = Warpgroup(shared_bytes=UNIT * BYTES)
        self.wave: Any = group._wave
        self.wave.code = []
        self.lanes = Lanes(np.ones(128, np.bool_))
        self.checks = WarpgroupHazards(mode, group._file)
        self.events = Observers(self.checks.observers)
        self.checks.file = SimpleNamespace(unique=lambda name: name)  # type: ignore[assignment]
        self.rules: Any = self.checks.rules
        self.rules.uses = SimpleNamespace(named=lambda record, names: names)

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Those of asynchrony: programs have no barriers."""
        return tuple(self.checks.early.hazards)

    def front(self, line: Line) -> DivergentPath:
        """Where the warpgroup stands: the line is the latest statement of the code."""
        places = dict.fromkeys(("a_descriptor", "b_descriptor", "scale_d"), 0)
        here = SimpleNamespace(
            opcode="st",
            modifiers=(),
            location=lambda: line.place,
            operand_location=lambda index, element=None: line.place,
        )
        self.wave.code.append(SimpleNamespace(statement=here, matrix=SimpleNamespace(places=places)))
        return DivergentPath(len(self.wave.code) - 1, self.wave.frame, self.lanes)

    def share(self, line: Line) -> Any:
        chunks = [np.arange(first, stop) for first, stop in line.ranges]
        return SimpleNamespace(
            groups=np.array([0]),
            key=tuple(line.ranges),
            chunks=np.unique(np.concatenate([np.zeros(0, np.int64), *chunks])),
            scale_d="zero" not in line.words,
        )

    def wgmma(self, line: Line) -> None:
        one = SimpleNamespace(registers=line.operands, form=SimpleNamespace(shape=line.shape), sources={})
        self.events.wgmma(self.wave, self.front(line), one, self.share(line))

    def access(self, line: Line) -> None:
        self.checks.access(line.names, "read" if line.verb == "read" else "write", line.place)

    def order(self, line: Line) -> None:
        most = int(line.words[0]) if line.words else 0
        self.events.wgmma_order(self.wave, self.front(line), np.array([0]), line.verb, most)

    def store(self, line: Line) -> None:
        offsets = UNIT * np.array(sorted(line.bytes))
        self.events.store(
            self.wave, MemoryAccess(self.front(line), self.lanes, self.wave.memories.shared, offsets, UNIT)
        )

    def bulk(self, line: Line) -> None:
        shadow = self.rules.order.shared(self.wave)
        self.rules.written(self.wave, shadow.within(UNIT * np.array(line.ranges)), line.place)

    def bulkload(self, line: Line) -> None:
        self.rules.report([*self.rules.unproxied(self.wave, np.array([0]), self.share(line), line.place)])

    def proxy(self, line: Line) -> None:
        self.events.fence(self.wave, self.front(line), self.lanes, ("proxy", "async"))

    def uniform(self, line: Line) -> None:
        values = np.array([int(word, 0) for word in line.words[1:]])
        values = np.repeat(values, 128 // len(values))
        self.rules.differing(self.wave, self.front(line), 0, line.words[0], values)

    def finish(self, line: Line) -> None:
        self.checks.finish(line.place)

    def pass_over(self, line: Line) -> None:
        """No rule of wgmma looks at a load, or at a barrier."""


EVENTS = {
    **dict.fromkeys(("read", "write"), Checked.access),
    **dict.fromkeys(("fence", "commit", "wait"), Checked.order),
    **dict.fromkeys(("load", "bar"), Checked.pass_over),
    **{name: getattr(Checked, name) for name in ("wgmma", "store", "bulk", "bulkload", "proxy", "uniform")},
    "end": Checked.finish,
}


def feed(checker: Checked, line: Line) -> None:
    EVENTS[line.verb](checker, line)


def check(program: Iterable[Line]) -> tuple[Hazard, ...]:
    checker = Checked("warn")
    for line in program:
        feed(checker, line)
    return checker.hazards


# The twin


class Naive:
    """What must be reported for a program, by looking at every pair of its lines."""

    def __init__(self, program: list[Line]) -> None:
        self.program = program
        self.issued = [i for i, line in enumerate(program) if line.verb == "wgmma"]
        self.found: set[tuple[object, ...]] = set()
        for j, line in enumerate(program):
            rule = getattr(self, f"on_{line.verb}", None)
            if rule:
                rule(j, line)

    def has(self, verb: str, i: int, j: int) -> bool:
        return any(line.verb == verb for line in self.program[i + 1 : j])

    def is_complete(self, i: int, j: int) -> bool:
        commits = [c for c in range(i + 1, j) if self.program[c].verb == "commit"]
        waits = [w for w in range(i + 1, j) if self.program[w].verb == "wait"]
        return any(
            commits and commits[0] < w and sum(c < w for c in commits[1:]) >= int(self.program[w].words[0])
            for w in waits
        )

    def report(self, rule: str, j: int, i: int | None, what: Iterable[object]) -> None:
        first = None if i is None else self.program[i].number
        self.found.add((rule, self.program[j].number, first, frozenset(what)))

    def grouped(self, rule: str, j: int, pairs: Iterable[tuple[int, object]]) -> None:
        """One report for each earlier line."""
        by_line: dict[int, set[object]] = {}
        for i, what in pairs:
            by_line.setdefault(i, set()).add(what)
        for i, everything in by_line.items():
            self.report(rule, j, i, everything)

    def latest(self, j: int, role: str, name: str) -> int | None:
        """The last wgmma before line j that has the register in the role."""
        return max((i for i in self.issued if i < j and name in self.program[i].operands[role]), default=None)

    def early(self, j: int, names: Iterable[str], role: str, *, unchained: bool = False) -> None:
        rule = {"D": "accumulator", "A": "fragment", "metadata": "metadata"}[role] + "-in-flight"
        users = [(self.latest(j, role, name), name) for name in names]
        pairs = [(i, name) for i, name in users if i is not None and not self.is_complete(i, j)]
        self.grouped(rule, j, [pair for pair in pairs if not (unchained and self.is_chained(pair[0], j))])

    def is_chained(self, i: int, j: int) -> bool:
        first, second = self.program[i], self.program[j]
        return first.shape == second.shape and first.operands["D"] == second.operands["D"]

    def on_read(self, j: int, line: Line) -> None:
        self.early(j, line.names, "D")
        self.early(j, line.names, "A")

    def on_write(self, j: int, line: Line) -> None:
        self.on_read(j, line)
        self.early(j, line.names, "metadata")

    def on_wgmma(self, j: int, line: Line) -> None:
        used = line.operands
        self.early(j, used["D"], "D", unchained=True)
        self.early(j, used["D"], "A")
        self.early(j, used["D"], "metadata")
        self.early(j, used["A"], "D")
        self.early(j, used["metadata"], "D")
        self.on_bulkload(j, line)
        if self.issued[0] == j and not self.has("fence", -1, j):
            self.report("first-fence", j, None, used["D"] + used["A"])
            return
        self.touched(j, {*used["D"], *used["A"]})
        for role, earlier in (("D", "D"), ("D", "A"), ("A", "D")):
            users = [(self.latest(j, earlier, name), name) for name in used[role]]
            pairs = [(i, name) for i, name in users if i is not None and not self.has("fence", i, j)]
            chained = role == earlier == "D"
            self.grouped("fence-between", j, [p for p in pairs if not (chained and self.is_chained(p[0], j))])

    def touched(self, j: int, names: set[str]) -> None:
        late = []
        for name in names:
            accesses = [
                i
                for i, line in enumerate(self.program[:j])
                if line.verb in ("read", "write") and name in line.names
            ]
            uses = [i for role in "DA" if (i := self.latest(j, role, name)) is not None]
            if accesses and max(accesses) > max(uses, default=-1) and not self.has("fence", max(accesses), j):
                late.append((max(accesses), name))
        if late:
            self.report("fence", j, max(late)[0], (name for _, name in late))

    def on_store(self, j: int, line: Line) -> None:
        readers = [
            (i, one)
            for i in self.issued
            if i < j and not self.is_complete(i, j)
            for one in self.program[i].bytes & line.bytes
        ]
        if readers:
            self.report("shared-in-flight", j, max(readers)[0], (one for _, one in readers))

    on_bulk = on_store

    def on_bulkload(self, j: int, line: Line) -> None:
        stores = [
            (i, one)
            for i, store in enumerate(self.program[:j])
            if store.verb == "store" and not self.has("proxy", i, j)
            for one in store.bytes & line.bytes
        ]
        if stores:
            self.report("proxy-fence", j, max(stores)[0], (one for _, one in stores))

    def left(self, j: int) -> tuple[list[int], list[int]]:
        running = [i for i in self.issued if i < j and not self.is_complete(i, j)]
        committed = [i for i in running if self.has("commit", i, j)]
        return committed, [i for i in running if i not in committed]

    def on_wait(self, j: int, line: Line) -> None:
        committed, uncommitted = self.left(j)
        if line.words == ["0"] and uncommitted and not committed:
            names = [name for i in uncommitted for name in self.program[i].operands["D"]]
            self.report("uncommitted", j, uncommitted[-1], names)

    def on_end(self, j: int, line: Line) -> None:
        for rule, left in zip(("unwaited", "uncommitted"), self.left(j), strict=True):
            if left:
                names = [name for i in left for name in self.program[i].operands["D"]]
                self.report(rule, j, left[-1], names)


def facts(program: list[Line]) -> set[tuple[object, ...]]:
    """What the checker reports, in the form of the naive twin."""
    return {
        (
            hazard.rule,
            hazard.second.line,
            hazard.first.line if hazard.first else None,
            frozenset(hazard.registers)
            | frozenset(
                one // UNIT for first, stop in hazard.byte_ranges for one in range(first, stop, UNIT)
            ),
        )
        for hazard in check(program)
    }


# Random programs


D_OPERANDS = ("r0,r1", "r2,r3", "r1,r2", "r3,r2", "r4")
A_OPERANDS = ("r0,r1", "r2,r5", "r4")
E_OPERANDS = ("r3", "r5", "r6")
NAMES = ("r0", "r1", "r2", "r3", "r4", "r5", "r1,r5", "r0,r1,r2,r3")
RANGES = ("0:4", "4:8", "2:6", "0:2,6:8", "8:9", "7:8,5:6,5:7")
SHAPES = ("m64n8k16", "m64n8k32")
ALONE = ("fence", "fence", "commit", "commit", "proxy", "bar", "end")


def _random_line(random: Random) -> str:
    pick = random.random()
    if pick < 0.33:
        words = ["wgmma", f"D={random.choice(D_OPERANDS)}", random.choice(SHAPES)]
        words += [f"A={random.choice(A_OPERANDS)}"] * random.randrange(2)
        words += [f"E={random.choice(E_OPERANDS)}"] * random.randrange(2)
        words += [random.choice(RANGES)] * random.randrange(2)
        return " ".join(words + ["zero"] * random.randrange(2))
    if pick < 0.5:
        return f"{random.choice(('read', 'write'))} {random.choice(NAMES)}"
    if pick < 0.67:
        return f"{random.choice(('store', 'bulk', 'load', 'bulkload'))} {random.choice(RANGES)}"
    return f"wait {random.choice('0012')}" if pick < 0.8 else random.choice(ALONE)


def random_lines(random: Random, most: int = 24) -> list[Line]:
    """A program of up to so many lines."""
    return lines("\n".join(_random_line(random) for _ in range(random.randint(1, most))))
