"""Verification: execute sets and traces again, and compare every bit of D.

A set is taken in parts. ``verify_chunk`` is the unit of work: it depends on nothing but its arguments, and
its results can be added in any order, so that a ``Scheduler`` may run chunks anywhere. Knows what a
difference is; does not know files of sets (see vector_formats), nor how results are shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from ...base.environment import in_default_environment
from ...base.errors import WarpsimError, present
from ...isa.instruction import Instruction
from ...ptx.qualifiers import on_target
from ...sums.execution.pipeline import Engine, Undefined
from ..traces.checks import ByteDifference, Difference, element_of
from ..traces.running import Run
from .sets import VectorSet, adds_c, expected

SHOWN = 3  # differences of a set that are kept


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """A register that differs from its expectation: in a case of a set, or at a line of a trace."""

    difference: Difference | ByteDifference
    case: int | None = None
    label: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}" if self.case is None else f"case {self.case}"
        return f"{place}{f' ({self.label})' if self.label else ''}: {self.difference}"

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key of the place: line or case, then lane."""
        lane = self.difference.lane if isinstance(self.difference, Difference) else 0
        return self.line or 0, self.case or 0, lane


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The numbers of compared and of differing words, and the first differences. Tallies add in any order."""

    cases: int = 0
    words: int = 0
    different_cases: int = 0
    different_words: int = 0
    first: tuple[Mismatch, ...] = ()
    kept: int = SHOWN

    def __add__(self, other: Tally) -> Tally:
        kept = max(self.kept, other.kept)
        first = sorted((*self.first, *other.first), key=lambda mismatch: mismatch.order)
        return Tally(
            cases=self.cases + other.cases,
            words=self.words + other.words,
            different_cases=self.different_cases + other.different_cases,
            different_words=self.different_words + other.different_words,
            first=tuple(first[:kept]),
            kept=kept,
        )

    @property
    def passed(self) -> bool:
        """Whether every bit is as expected."""
        return self.different_words == 0


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A unit of work: some cases of a set, and how to execute them.

    ``start`` is the number of its first case in the whole set, ``kept`` how many differences are explained.
    """

    vectors: VectorSet
    start: int = 0
    engine: Engine = "kernel"
    undefined: Undefined = "error"
    kept: int = SHOWN


Scheduler = Callable[[Callable[[Chunk], Tally], Iterable[Chunk]], Iterator[Tally]]


@dataclass(frozen=True, kw_only=True)
class Item:
    """The result of an instruction on a target in a file; None where registers came from elsewhere.

    ``with_c`` says whether any case adds C.
    """

    instruction: Instruction | None
    target: str
    tally: Tally
    with_c: bool = True


# --- the unit of work ------------------------------------------------------------------------------


@in_default_environment
def verify_chunk(chunk: Chunk) -> Tally:
    """Execute the cases of a chunk and compare D.

    Raises what executing raises (UndefinedBehavior, NotModelled ...), naming the first case that does.
    """
    vectors = chunk.vectors
    try:
        d = expected(vectors, chunk.engine, chunk.undefined, threads=1)
    except WarpsimError as error:
        raise _first_failing_case(chunk, error) from None
    different = vectors.d != d
    wrong = different.any(axis=(1, 2))
    first = islice(np.argwhere(different), chunk.kept) if wrong.any() else ()
    return Tally(
        cases=len(vectors),
        words=different.size,
        different_cases=int(wrong.sum()),
        different_words=int(different.sum()),
        first=tuple(_mismatch(chunk, d, *map(int, place)) for place in first),
        kept=chunk.kept,
    )


def _mismatch(chunk: Chunk, d: Any, case: int, lane: int, register: int) -> Mismatch:
    form = chunk.vectors.instruction
    words = int(chunk.vectors.d[case, lane, register]), int(d[case, lane, register])
    difference = Difference(
        lane=lane,
        register=f"d{register}" if form.descriptor is None else str(register),
        expected=words[0],
        actual=words[1],
        bits=form.register_bits,
        element=element_of(form, lane, register, words),
        kind="register" if form.descriptor is None else "column",
    )
    label = chunk.vectors.labels[case] if chunk.vectors.labels else ""
    return Mismatch(case=chunk.start + case, label=label, difference=difference)


def _first_failing_case(chunk: Chunk, error: WarpsimError) -> WarpsimError:
    """Return the error of the first case that cannot be executed by itself, found by bisection, naming the
    case.
    """
    start, stop = 0, len(chunk.vectors)
    while stop - start > 1:
        middle = (start + stop) // 2
        start, stop = (start, middle) if _failure(chunk, start, middle) else (middle, stop)
    error = _failure(chunk, start, stop) or error
    label = f" ({chunk.vectors.labels[start]})" if chunk.vectors.labels else ""
    reason = error.message.replace(" of batch element (0,)", "")
    error.message = f"case {chunk.start + start}{label}: {reason}"
    return error


def _failure(chunk: Chunk, start: int, stop: int) -> WarpsimError | None:
    """Return the error of executing some cases of a chunk; None if there is none."""
    try:
        expected(chunk.vectors.part(start, stop), chunk.engine, chunk.undefined, threads=1)
    except WarpsimError as error:
        return error
    return None


# --- many of them ----------------------------------------------------------------------------------


def serial(function: Callable[[Chunk], Tally], chunks: Iterable[Chunk]) -> Iterator[Tally]:
    """Run one chunk after the other."""
    return map(function, chunks)


def threads(count: int) -> Scheduler:
    """Run chunks in so many threads, with at most one more chunk in memory; the kernels release the GIL."""

    def schedule(function: Callable[[Chunk], Tally], chunks: Iterable[Chunk]) -> Iterator[Tally]:
        running: deque[Future[Tally]] = deque()
        with ThreadPoolExecutor(count) as pool:
            try:
                for chunk in chunks:
                    running.append(pool.submit(function, chunk))
                    if len(running) > count:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:
                for future in running:
                    future.cancel()

    return schedule if count > 1 else serial


def verify_parts(
    parts: Iterable[VectorSet],
    *,
    target: str | None = None,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
    kept: int = SHOWN,
    scheduler: Scheduler = serial,
    watch: Callable[[Tally], object] = lambda tally: None,
) -> Item:
    """Return the result of a set that is given in parts, on another ``target`` if it is given.

    ``watch`` is called with the tally of every chunk when it is done. Raises what verify_chunk and the parts
    raise, and IllegalInstruction where the target has no such form.
    """
    instruction: Instruction | None = None
    with_c = False

    def chunks() -> Iterator[Chunk]:
        nonlocal instruction, with_c
        start = 0
        for part in parts:
            with_c = with_c or adds_c(part.immediates)
            instruction = on_target(part.instruction, target)
            vectors = replace(part, instruction=instruction)
            yield Chunk(vectors=vectors, start=start, engine=engine, undefined=undefined, kept=kept)
            start += len(part)

    total = Tally(kept=kept)
    for tally in scheduler(verify_chunk, chunks()):
        watch(tally)
        total += tally
    instruction = present(instruction, "instruction")
    return Item(instruction=instruction, target=str(instruction.target), tally=total, with_c=with_c)


# --- traces ----------------------------------------------------------------------------------------


def run_items(run: Run) -> list[Item]:
    """Return the checks of a trace by the instruction whose registers they compare."""
    tallies: dict[Instruction | None, Tally] = {}
    for event in run.events:
        tally = tallies.get(event.instruction, Tally())
        tallies[event.instruction] = tally + Tally(cases=1)
    for check in run.checks:
        mismatch = Mismatch(difference=check.first, line=check.location.line) if check.first else None
        tally = Tally(
            words=check.compared,
            different_cases=int(not check.passed),
            different_words=check.different,
            first=(mismatch,) if mismatch else (),
        )
        tallies[check.instruction] = tallies.get(check.instruction, Tally()) + tally
    adding = {event.instruction for event in run.events if event.inputs.scale_d}
    return [
        Item(instruction=item, target=run.machine.target, tally=tally, with_c=item is None or item in adding)
        for item, tally in tallies.items()
    ]
