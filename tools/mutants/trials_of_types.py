"""Every fault on one form of each combination of types: does a case of the default corner set show it?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import warpsim
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.fragments import gather
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.sums.arithmetic.numerics import compute
from warpsim.sums.execution.inputs import inputs_by_name
from warpsim.sums.execution.pipeline import checked_inputs
from warpsim.workbench.generation.coverage.vector_coverage import gathered
from warpsim.workbench.generation.generate import corner_vectors
from warpsim.workbench.generation.sums.limits import Limits, limits_of
from warpsim.workbench.vectors.sets import VectorSet

from .behaviour import Behaviour
from .faults_of_operands import OPERANDS
from .faults_of_operations import OPERATIONS
from .faults_of_specials import SPECIALS
from .faults_of_sums import SUMS
from .injection import ARRAYS, slices, wrong_codes

BEHAVIOURS: tuple[Behaviour, ...] = (*SUMS, *SPECIALS, *OPERANDS, *OPERATIONS)
_FIRST, _TERMS = 24, 1 << 20  # tiles that are looked at first, and products that are looked at at a time


@dataclass(frozen=True, kw_only=True)
class FormVerdicts:
    """What became of every fault that concerns a form; ``proven`` with the proofs."""

    mnemonic: str
    target: str
    cases: int
    seconds: float
    caught: dict[str, int] = field(default_factory=dict)  # the case that showed it
    survived: tuple[str, ...] = ()
    proven: dict[str, str] = field(default_factory=dict)
    contradicted: tuple[str, ...] = ()  # proven, and caught


def forms(*, every: bool = False) -> list[Instruction]:
    """Return forms over all targets: one form for each pair of types, family, modifiers and rule.

    The formats of D and C take turns; with ``every``, or where nothing is aligned, each of them has a form.
    """
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], Instruction]] = {}
    for target in ARCHITECTURES:
        for form in warpsim.instructions(target):
            found.setdefault(_sort(form), {}).setdefault((str(form.c), str(form.d)), form)
    chosen = []
    for index, some in enumerate(map(list, map(dict.values, found.values()))):
        turn = index % len(some)
        all_of_them = every or limits_of(some[0]).rule.aligned is None
        chosen += some[turn:] + some[:turn] if all_of_them else [some[turn]]
    return chosen


def _sort(form: Instruction) -> tuple[Any, ...]:
    rule = limits_of(form).rule
    step = rule.aligned
    sums = (step.fraction_bits, limits_of(form).steps > 1) if step is not None else ()
    modifiers = (form.scale_chunks, form.satfinite, form.rounding, form.bit_operation, form.products > 1)
    return (
        type(rule).__name__,
        sums,
        form.family.name,
        str(form.a),
        str(form.b),
        str(form.scale),
        *modifiers,
    )


def try_form(mnemonic: str, target: str, only: str = "", seed: int = 0) -> FormVerdicts:
    """Try every fault whose name contains ``only`` on the default corner set of a form."""
    start = time.perf_counter()
    vectors, _ = corner_vectors(mnemonic, target=target, seed=seed)
    limits = limits_of(vectors.instruction)
    operands, order = _gathered(vectors)
    expected = compute(operands, limits.rule)
    caught: dict[str, int] = {}
    survived, contradicted, proven = [], [], {}
    for fault in BEHAVIOURS:
        if only not in fault.name or not fault.where(limits):
            continue
        shown = _shown(fault, limits, vectors, operands, expected)
        proof = fault.proof(limits)
        if shown is not None:
            caught[fault.name] = int(order[shown])
            contradicted += [fault.name] if proof else []
        elif proof:
            proven[fault.name] = proof
        else:
            survived.append(fault.name)
    return FormVerdicts(
        mnemonic=mnemonic,
        target=target,
        cases=len(vectors),
        seconds=time.perf_counter() - start,
        caught=caught,
        survived=tuple(survived),
        proven=proven,
        contradicted=tuple(contradicted),
    )


def _gathered(vectors: VectorSet) -> tuple[Operands, Any]:
    """Return the operands of all cases, the tiles of a case in succession, and the case of each tile."""
    parts = [(part.cases, gathered(vectors.instruction, part)) for part in vectors.inputs()]
    every = [np.arange(len(vectors))[which] for which, _ in parts]
    cases = np.repeat(np.concatenate(every), vectors.instruction.products)
    order = np.argsort(cases, kind="stable")
    arrays: dict[str, Any] = {
        name: None
        if getattr(parts[0][1], name) is None
        else np.concatenate([getattr(part, name) for _, part in parts])[order]
        for name in ARRAYS
    }
    return Operands(product=vectors.instruction.product, **arrays), cases[order]


def _shown(
    fault: Behaviour, limits: Limits, vectors: VectorSet, operands: Operands, expected: Any
) -> int | None:
    """Return the first tile seen that shows a fault; None if no tile does."""
    if fault.inputs is not None:
        return _shown_by_inputs(fault, limits, vectors)
    tiles = max(1, _TERMS // (expected[0].size * operands.a.shape[2]))
    for cut, some in slices(operands, _FIRST, tiles):
        differs = (wrong_codes(fault, limits, some) != expected[cut]).any((1, 2))
        if differs.any():
            return cut.start + int(np.argmax(differs))
    return None


def _shown_by_inputs(fault: Behaviour, limits: Limits, vectors: VectorSet) -> int | None:
    assert fault.inputs is not None
    form = vectors.instruction
    for part in vectors.inputs():
        right = checked_inputs(form, inputs_by_name(part.arguments))
        wrong = fault.inputs(form, right)
        if wrong == right:
            continue
        d = [_computed(form, inputs, limits) for inputs in (right, wrong)]
        if (d[0] != d[1]).any():
            return 0
    return None


def _computed(form: Instruction, inputs: Any, limits: Limits) -> Any:
    operands = gather(form, inputs)
    arrays: dict[str, Any] = {name: getattr(operands, name) for name in ARRAYS}
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in arrays.values() if x is not None))
    for name, array in arrays.items():
        if array is not None:
            arrays[name] = np.broadcast_to(array, (*lead, *array.shape[-2:])).reshape(-1, *array.shape[-2:])
    return compute(Operands(product=form.product, **arrays), limits.rule)


def every_form(chosen: list[Instruction], only: str, jobs: int) -> Iterator[FormVerdicts]:
    """Yield the verdicts of the chosen forms, in order."""
    from concurrent.futures import ProcessPoolExecutor

    if jobs == 1:
        yield from (try_form(str(form), str(form.target), only) for form in chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(try_form, str(form), str(form.target), only) for form in chosen]
        yield from (future.result() for future in waiting)
