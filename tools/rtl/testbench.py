"""The cocotb test: feeds the units, and holds every result against warpsim's.

Runs inside the simulator. The first unit is the sound one; whatever it gets wrong fails the test. What the
faulty units beside it get wrong is counted by coverage bins.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from .coverage import Coverage
from .directed import cases
from .events import Event
from .model import steps_of
from .simulation import Job
from .stimulus import Beat, DotProduct, beats, from_vectors


def job() -> Job:
    """Return the job that the starting process left."""
    return Job(**json.loads(Path(os.environ["WARPSIM_RTL_JOB"]).read_text(encoding="utf-8")))


class Scoreboard:
    """Expected results in the order of the clocks, and what became of them."""

    def __init__(self, work: Job) -> None:
        self.configuration = work.configuration()
        self.coverage = Coverage(units=work.units, enough=work.enough)
        self._bits = self.configuration.widths["c"]

    def expectations(self, dot: DotProduct) -> Iterator[tuple[Event, int]]:
        """Yield what the units shall make in each clock; a vector set has its own word for the last."""
        steps = steps_of(self.configuration, dot)
        for clock, step in enumerate(steps):
            given = dot.expected if clock == len(steps) - 1 else None
            event = Event(configuration=self.configuration, dot=dot, clock=clock, step=step)
            yield event, step.code if given is None else given

    @property
    def active(self) -> int:
        """A bit for every unit that is still looked at."""
        return sum(1 << place for place in range(len(self.coverage.units)) if self.coverage.active(place))

    def observe(self, results: int, event: Event, expected: int) -> None:
        """Compare the results of one clock, all units side by side."""
        mask = (1 << self._bits) - 1
        codes = [results >> self._bits * place & mask for place in range(len(self.coverage.units))]
        self.coverage.sample(event, codes, expected)


def dots(work: Job) -> Iterator[DotProduct]:
    """Yield the dot products of a vector set, or the directed and random ones."""
    if work.vectors:
        yield from from_vectors(Path(work.vectors), work.cases or None)[1]
    else:
        yield from cases(work.configuration(), work.seed, work.cases, work.repeats)


def drive(dut: Any, beat: Beat) -> None:
    """Put operands on the ports."""
    dut.first.value = beat.first
    dut.a.value = beat.a
    dut.b.value = beat.b
    dut.metadata.value = beat.metadata
    dut.c.value = beat.c


@cocotb.test()
async def every_sum_is_the_models(dut: Any) -> None:
    """One beat a clock; results are read half a clock after the edge that makes them."""
    work = job()
    scoreboard = Scoreboard(work)
    cocotb.start_soon(Clock(dut.clock, 2, unit="ns").start(start_high=False))
    await FallingEdge(dut.clock)
    for dot in dots(work):
        expectations = scoreboard.expectations(dot)
        for beat, (event, expected) in zip(beats(scoreboard.configuration, dot), expectations, strict=True):
            drive(dut, beat)
            dut.active.value = scoreboard.active
            await FallingEdge(dut.clock)
            scoreboard.observe(int(dut.d.value), event, expected)
    Path(work.results).write_text(json.dumps(scoreboard.coverage.as_json()), encoding="utf-8")
    sound = scoreboard.coverage.tallies[0]
    assert not sound.wrong, f"{sound.wrong} of {scoreboard.coverage.clocks} clocks are wrong: {sound.first}"
