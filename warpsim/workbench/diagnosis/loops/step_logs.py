"""A log of the accumulators after every step of a loop along k: the first wrong step, and what it did.

Operands are matrices, or registers of every step, or some of each. The C of a step is the D that the log has
of the step before. What a wrong step may have read instead is looked for among the other steps; mistakes
within the instruction are those of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....base.environment import in_default_environment
from ....base.errors import OperandError
from ....isa.fragments import codes_from
from ....isa.instruction import Instruction
from ....isa.registers import Words
from ....sums.execution.interface import execute
from ...inputs.decimals import Printed
from ..contents.dump_contents import Operands
from ..search.diagnose import Diagnosis, diagnose

_CHAINED = "the dumps are read as the steps of one loop: more of D is right if C is the D of the step before"

Watch = Callable[[int, int], None]  # called with what has been executed, and 0: the whole is not known


@dataclass(frozen=True, kw_only=True)
class StepCause:
    """What a step did instead, which gives every bit of its D."""

    name: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class StepLog:
    """The result: ``wrong`` steps, each by the D before it; ``causes`` or a ``diagnosis`` of the first.

    ``loaded`` are operands that the log itself has; others come from the matrices. ``note`` says how names of
    the log were read.
    """

    steps: int
    wrong: tuple[int, ...]
    causes: tuple[StepCause, ...]
    diagnosis: Diagnosis | None
    loaded: tuple[str, ...]
    note: str = ""
    printed: Printed | None = None

    @property
    def as_expected(self) -> bool:
        """Whether every step is right."""
        return not self.wrong


@in_default_environment
def diagnose_steps(
    operands: Operands,
    dumps: Mapping[str, Words],
    printed: Printed | None = None,
    watch: Watch | None = None,
) -> StepLog:
    """Return the first wrong step of a log of D, ``dumps["d"] (steps, lanes, registers)``, or of C.

    Operands that ``dumps`` have are what the steps read; others are those of the matrices. Raises
    OperandError for another number of steps than A and B have, and for an operand that neither has.
    """
    return _Log(operands, dumps, printed, watch).result()


@in_default_environment
def is_one_loop(form: Instruction, dumps: Mapping[str, Words], selector: int = 0) -> bool:
    """Return whether more steps of D ``(steps, lanes, registers)`` are right if C is the D of the step before
    than if C is zero; both are computed from the registers alone.
    """
    names = [name for name in ("a", "b", "e") if name in form.registers]
    if any(name not in dumps or dumps[name].shape[0] != len(dumps["d"]) for name in names):
        return False
    d = dumps["d"]
    read: dict[str, Any] = {name: dumps[name] for name in names}
    read |= {"selector": selector} if form.sparse else {}
    zero = np.zeros_like(d)
    chained, alone = (
        int((execute(form, c=c, undefined="fallback", **read) == d).all(axis=(1, 2)).sum())
        for c in (np.concatenate([zero[:1], d[:-1]]), zero)
    )
    return chained > alone


class _Log:
    """A log, its inputs step by step, and the D that they give."""

    def __init__(
        self, operands: Operands, dumps: Mapping[str, Words], printed: Printed | None, watch: Watch | None
    ) -> None:
        self.operands, self.form, self.printed = operands, operands.form, printed
        self.watch, self.executed = watch, 0
        self.names = [name for name in ("a", "b", "e") if name in self.form.registers]
        for name in self.names:
            if name not in dumps and name not in operands.codes:
                raise OperandError(f"{name} is missing: give its registers of every step, or its matrix")
        self.whole = "b" if "b" in operands.codes else "a" if "a" in operands.codes else ""
        self.steps = operands.steps(self.whole) if self.whole else len(dumps["b"])
        self.loaded = tuple(name for name in self.names if name in dumps)
        self.inputs = {name: self._of_steps(name, dumps) for name in self.names}
        self.first = self._first(dumps)
        self.note, self.d = self._accumulators(dumps)
        self.note = self.note or ("" if self.whole else _CHAINED)

    def _of_steps(self, name: str, dumps: Mapping[str, Words]) -> Words:
        """Return ``(steps, lanes, registers)`` of an operand."""
        if name in dumps:
            return dumps[name]
        each = [
            self.operands.expected(name, self.operands.origin(name, at))
            for at in range(self.operands.steps(name))
        ]
        return np.stack(each)

    def _first(self, dumps: Mapping[str, Words]) -> Words:
        """Return the C with which the loop begins: that of the matrix, or zero."""
        if "c" in self.operands.codes:
            return self.operands.expected("c", (0, 0))
        return np.zeros(self.form.held("d").shape, dumps["d" if "d" in dumps else "c"].dtype)

    def _accumulators(self, dumps: Mapping[str, Words]) -> tuple[str, Words]:
        """Return D after every step; C of a log is that before each if it begins as the loop does."""
        if "d" in dumps:
            note, d = "", dumps["d"]
        elif (dumps["c"][0] == self.first).all() and len(dumps["c"]) > 1:
            note, d = "c is read as the accumulators before each step: it begins as C does", dumps["c"][1:]
        else:
            note, d = "c is read as the accumulators after each step: it does not begin as C does", dumps["c"]
        counts = {name: len(words) for name, words in self.inputs.items()} | {"D": len(d)}
        for name, count in counts.items():
            if count != self.steps - (
                name == "D" and dumps.get("c") is not None and len(d) < len(dumps["c"])
            ):
                other = (
                    f"{self.whole.upper()} has {self.steps} along k" if self.whole else f"b has {self.steps}"
                )
                raise OperandError(f"the log has {name} of {count} steps, but {other}")
        return note, d

    def _computed(self, at: int, c: Words, **changed: Words) -> Words:
        self.executed += 1
        if self.watch is not None:
            self.watch(self.executed, 0)
        d: Words = execute(self.form, c=c, undefined="fallback", **self._read(at) | changed)
        return d

    def _read(self, at: int) -> dict[str, Any]:
        selector = {"selector": self.operands.selector} if self.form.sparse else {}
        return {name: self.inputs[name][at] for name in self.names} | selector

    def _agree(self, made: Words, at: int) -> bool:
        if self.printed is None:
            return bool((made == self.d[at]).all())
        codes, wanted = (codes_from(words, self.form, "d") for words in (made, self.d[at]))
        return bool((self.printed.settled(codes, wanted, self.form.d) == wanted).all())

    def result(self) -> StepLog:
        """Return the wrong steps and what the first did."""
        wrong, c = [], self.first
        before: list[Words] = []
        for at in range(len(self.d)):
            before.append(c)
            made = self._computed(at, c)
            right = self._agree(made, at)
            if not right:
                wrong.append(at)
                if self.printed is not None:
                    break  # what follows is known no better
            c = made if right else self.d[at]
        causes, diagnosis = self._explained(wrong[0], before) if wrong else ((), None)
        return StepLog(
            steps=len(self.d),
            wrong=tuple(wrong),
            causes=causes,
            diagnosis=diagnosis,
            loaded=self.loaded,
            note=self.note,
            printed=self.printed,
        )

    def _explained(self, at: int, before: list[Words]) -> tuple[tuple[StepCause, ...], Diagnosis | None]:
        causes = tuple(cause for cause, made in self._instead(at, before) if self._agree(made, at))
        if causes:
            return causes, None
        d, c = self.d[at], before[at]
        read = self._read(at)
        return (), diagnose(self.form, d=d, c=c, most=1, printed=self.printed, watch=self.watch, **read)

    def _instead(self, at: int, before: list[Words]) -> Iterator[tuple[StepCause, Words]]:
        c = before[at]
        zero = np.zeros_like(c)
        if c.any():
            advice = "clear them once, before the loop"
            yield (
                StepCause(name="the accumulators were cleared (C is zero)", advice=advice),
                self._computed(at, zero),
            )
        if at and (self.first != c).any() and self.first.any():
            name = "the accumulators start from C again"
            yield StepCause(name=name, advice="load C once, before the loop"), self._computed(at, self.first)
        if at > 1:
            name, advice = (
                f"C is the D of step {at - 2}: step {at - 1} is lost",
                "C is the D of the step before",
            )
            yield StepCause(name=name, advice=advice), self._computed(at, before[at - 1])
        yield StepCause(name="it changed nothing: D is its C", advice="the step was not executed"), c
        twice = self._computed(at, self._computed(at, c))
        yield StepCause(name="it was executed twice", advice="check the bounds of the loop"), twice
        yield from self._of_other_steps(at, c)

    def _of_other_steps(self, at: int, c: Words) -> Iterator[tuple[StepCause, Words]]:
        own = [name for name in self.names if name not in self.loaded]
        sets = [(name,) for name in own] + ([tuple(own)] if len(own) > 1 else [])
        spelled = {"a": "A", "b": "B", "e": "metadata"}
        advice = "check the stage, its wait and the address that advances along k"
        for names in sets:
            what = " and ".join(spelled[name] for name in names)
            for other in range(self.steps):
                if other != at:
                    changed = {name: self.inputs[name][other] for name in names}
                    cause = StepCause(name=f"it read {what} of step {other}", advice=advice)
                    yield cause, self._computed(at, c, **changed)
