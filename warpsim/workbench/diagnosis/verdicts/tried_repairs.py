"""Repairs that are tried: the launch again with something put right; a count of the elements that stay wrong.

A repair counts only where it holds on other data, too, if the formula of the expected values is known. Where
the length of a sum is an argument, it is tried with sums twice as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError, present
from ....isa.descriptors.instruction_descriptor import FIELDS, InstructionDescriptor
from ....isa.families import OPCODES
from ....isa.families.tcgen05 import Form, form_of
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.warps import WARP
from ....machine.opcodes.matrix import wmma
from ....machine.opcodes.tensor.tensor_products import Given, Multiplication
from ....machine.run.events import Observer, helper
from ....machine.run.wave import Record, Step, Wave
from ....machine.state.lanes import DivergentPath, Lanes
from ....sums.execution.pipeline import execute_inputs, execute_operands, rule_for
from ..origins.kept_products import Numbers, places_of
from .formula_causes import Formulas
from .launch_causes import Cause
from .output_errors import output_error
from .repeated_launch import Array, Attempt, RepeatedLaunch

Wanted = Mapping[int, npt.ArrayLike]
_SEED = 7
_SHAPES, _CHOICES = 4, 32  # launches with longer sums, and choices of axes, that are tried
_NEAR = 2.0**-6  # of sums in another order and narrow outputs, where expected values are computed here


@dataclass(frozen=True, kw_only=True)
class Repair:
    """Another launch, or the launch with a hook, and what is wrong if every output is right so."""

    cause: Cause
    launch: RepeatedLaunch | None = None
    hook: MatrixHook | None = None


class Trial:
    """Launches that are executed in another way; counts what stays wrong.

    ``formulas`` give the expected values of other data, None where they are not known.
    """

    def __init__(
        self,
        *,
        launch: RepeatedLaunch,
        expected: Wanted,
        tolerance: float,
        formulas: Formulas | None = None,
    ) -> None:
        self.launch, self.expected, self.tolerance = launch, expected, tolerance
        self.formulas, self.budget = formulas, launch.budget
        self._longer = True  # whether every repair that held did so with longer sums

    def first(self, search: str, repairs: Iterable[Repair]) -> list[Cause]:
        """Return the cause of the first repair that makes every output right, and what shows it."""
        with self.budget.search(search):
            for each in repairs:
                hooks = [each.hook] if each.hook is not None else []
                if self._left_by(each.launch or self.launch, hooks) == 0:
                    return [replace(each.cause, evidence=self.again(each.cause.evidence))]
        return []

    def with_formulas(self, formulas: Formulas) -> Trial:
        """Return the trial with formulas of the expected values."""
        return Trial(launch=self.launch, expected=self.expected, tolerance=self.tolerance, formulas=formulas)

    def wrong(self, hook: MatrixHook) -> int | None:
        """Return how many elements of outputs are wrong; None where that is not known."""
        return self._left_by(self.launch, (hook,))

    def wrong_of(self, launch: RepeatedLaunch) -> int | None:
        """Return how many elements of outputs are wrong after another launch; None where not known."""
        return self._left_by(launch, ())

    def again(self, evidence: str) -> str:
        """Return what shows a repair, in words: a trial, and whether other data were tried."""
        if self._other_data(self.launch) is None:
            return f"a trial: {evidence}"
        shapes = "and with sums twice as long" if self._longer else "of this shape"
        return f"a trial: {evidence}; so it is on other data {shapes}"

    def _left_by(self, launch: RepeatedLaunch, observers: Sequence[MatrixHook]) -> int | None:
        others, unused = ([_unused(hook) for hook in observers] for _ in range(2))
        left = self._count(launch, observers, self.expected, self.tolerance)
        fresh = self._other_data(launch) if left == 0 else None
        if fresh is None:
            return left
        other, expected = fresh
        left = self._count(other, others, expected, max(self.tolerance, _NEAR))
        if left == 0:
            self._longer &= any(
                self._count(longer, [_unused(hook) for hook in unused], values, max(self.tolerance, _NEAR))
                == 0
                for longer, values in islice(self._with_longer_sums(launch), _SHAPES)
            )
        return left

    def _count(
        self, launch: RepeatedLaunch, observers: Sequence[MatrixHook], expected: Wanted, tolerance: float
    ) -> int | None:
        attempt = self._executed(launch, observers)
        if attempt is None or attempt.error is not None:
            return None
        errors = [
            output_error(index, launch.name(index), attempt.arrays[index], value, tolerance)
            for index, value in expected.items()
        ]
        return sum(error.count for error in errors if error is not None)

    def _executed(self, launch: RepeatedLaunch, observers: Sequence[MatrixHook]) -> Attempt | None:
        if not self.budget.allows():
            return None
        try:
            return launch.again(checks="off", observers=observers)
        except OperandError:  # sizes or arguments that no launch has
            return None

    def _other_data(self, launch: RepeatedLaunch) -> tuple[RepeatedLaunch, dict[int, Array]] | None:
        """Return a launch on other data with its expected values; None where they are not known."""
        if self.formulas is None or launch.args is not self.launch.args:
            return None
        random, args = np.random.default_rng(_SEED), list(launch.args)
        for index in {at for each in self.formulas.found for at in each.term.kinds}:
            if not isinstance(args[index], np.ndarray):
                return None
            args[index] = random.permutation(launch.initial(index).ravel()).reshape(args[index].shape)
        before = {at: content for at, content in launch.before.items() if args[at] is launch.args[at]}
        values = self.formulas.values(args)
        expected = {at: values[at].astype(np.asarray(self.expected[at]).dtype) for at in values}
        return replace(launch, args=args, before=before), expected

    def _with_longer_sums(self, launch: RepeatedLaunch) -> Iterator[tuple[RepeatedLaunch, dict[int, Array]]]:
        """Yield launches with an axis of arrays twice as long that the output does not have, and of the
        arguments that are as long either all or a single value twice as large: the launch shows which.
        """
        kept = (int, np.integer, np.ndarray)
        numbers = {
            at: int(value)
            for at, value in enumerate(launch.args)
            if isinstance(value, kept) and not np.ndim(value) and np.asarray(value).dtype.kind in "iu"
        }
        for length in sorted({*numbers.values()} - {0, 1}):
            same = [at for at, value in numbers.items() if value == length]
            some = [each for count in {1, len(same)} for each in combinations(same, count)]
            for longer, values in islice(self._doubled(launch, length), 1):
                for chosen in some:
                    args = [2 * x if at in chosen else x for at, x in enumerate(longer.args)]
                    yield replace(longer, args=args), values

    def _doubled(
        self, launch: RepeatedLaunch, length: int
    ) -> Iterator[tuple[RepeatedLaunch, dict[int, Array]]]:
        """Yield launches with some axes of a length twice as long, of outputs that keep their shape."""
        fresh = self._other_data(launch)
        if fresh is None or self.formulas is None:
            return
        other, expected = fresh
        used = sorted({at for each in self.formulas.found for at in each.term.kinds})
        axes = [[-1, *np.flatnonzero(np.array(other.args[at].shape) == length)] for at in used]
        for chosen in islice(product(*axes), 1, _CHOICES):
            args = list(other.args)
            for at, axis in zip(used, chosen, strict=True):
                if axis >= 0:
                    args[at] = np.concatenate([args[at], np.flip(args[at])], axis)
            try:
                values = self.formulas.values(args)
            except (ValueError, IndexError, OperandError):
                continue
            if all(values[at].shape == expected[at].shape for at in expected):
                yield (
                    replace(other, args=args),
                    {at: values[at].astype(expected[at].dtype) for at in expected},
                )


def _unused(hook: MatrixHook) -> MatrixHook:
    """Return a hook that has counted no executions."""
    other = copy(hook)
    vars(other).update({name: Counter() for name, value in vars(hook).items() if isinstance(value, Counter)})
    return other


_OPCODES = OPCODES | {"wmma", "tcgen05"}


class MatrixHook(Observer):
    """An observer of one launch that computes its matrix instructions."""

    def __init__(self) -> None:
        self._now: int | None = None

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the records, those of matrix instructions with a note of what is executed."""
        return [
            record.stepping(self._noted(pc, record.step)) if record.statement.opcode in _OPCODES else record
            for pc, record in enumerate(code)
        ]

    def _noted(self, pc: int, before: Step) -> Step:
        def noted(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool | None:
            if wave.modes.interposed is not self:
                wave.modes = replace(wave.modes, interposed=self)
            self._now = pc
            return before(wave, path, lanes)

        return noted

    @helper
    def registers(self, wave: Wave, warps: Numbers, form: Instruction, inputs: Inputs) -> Array:
        """Return D of mma and wgmma."""
        return self.of_registers(present(self._now, "a statement"), form, inputs)

    @helper
    def fragments(self, wave: Wave, warps: Numbers, form: Instruction, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma, as it is: its fragments have no layout that a program may rely on."""
        return wmma.product(execute_inputs, form, codes["a"], codes["b"], codes["c"])

    def descriptors(self, pc: int, role: str, words: Array) -> Array:
        """Return the descriptors of wgmma that are used: these, unless a hook has others."""
        return words

    @helper
    def tensor_operands(self, wave: Wave, pc: int, lane: int, given: Given) -> Given:
        """Return the operands of tcgen05.mma that are used: these, unless a hook has others."""
        return given

    @helper
    def tensor_product(self, wave: Wave, work: Multiplication) -> Array:
        """Return codes of D of tcgen05.mma."""
        return execute_operands(work.operands(wave), rule_for(work.made.instruction))

    def of_registers(self, pc: int, form: Instruction, inputs: Inputs) -> Array:
        """Return D ``(n, lanes, registers)`` of executions of a statement."""
        return execute_inputs(form, inputs)


Place = tuple[int, ...]  # x, y, z of the CTA, warp, how many-th time


@dataclass(frozen=True, kw_only=True)
class Issue:
    """A tcgen05.mma that is issued: its statement, place and form; ``turn`` counts those of its warp."""

    pc: int
    place: Place
    turn: int
    form: Form
    given: Given

    @property
    def descriptor(self) -> InstructionDescriptor:
        """The instruction descriptor. Raises OperandError."""
        return InstructionDescriptor.decode(self.given.word, self.form.kind.name)

    def has(self, attribute: str) -> bool:
        """Return whether the descriptor has a field."""
        return any(field.attribute == attribute for field in FIELDS[self.form.kind.group])

    def with_fields(self, **fields: Any) -> Given:
        """Return the operands with other fields of the instruction descriptor."""
        return replace(self.given, word=replace(self.descriptor, **fields).encode())


Change = Callable[[Issue], Given]


class Reissued(MatrixHook):
    """A launch with other operands; ``issues`` are those that it was given."""

    def __init__(self, change: Change | None = None) -> None:
        super().__init__()
        self.issues: list[Issue] = []
        self._change, self._forms = change, dict[int, Form]()
        self._executed, self._turns = Counter[Place](), Counter[Place]()

    @helper
    def tensor_operands(self, wave: Wave, pc: int, lane: int, given: Given) -> Given:
        """Return the operands that are used."""
        if pc not in self._forms:
            self._forms[pc] = form_of(wave.code[pc].statement.modifiers)
        own = tuple(places_of(wave, np.array([lane // WARP]))[0].tolist())
        place = (*own, self._executed[pc, *own])
        issue = Issue(pc=pc, place=place, turn=self._turns[own], form=self._forms[pc], given=given)
        self._executed[pc, *own] += 1
        self._turns[own] += 1
        self.issues.append(issue)
        return given if self._change is None else self._change(issue)
