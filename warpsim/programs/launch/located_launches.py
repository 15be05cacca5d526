"""Where a launch leaves its reference: the comparison, again with provenance, and again with maxima at 0.

observe/algebra/locating finds the place; here the launch is executed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...observe.algebra.equivalence import Equivalence, Output
from ...observe.algebra.keys.finite_fields import equal
from ...observe.algebra.locating.formula_graphs import KernelGraph
from ...observe.algebra.locating.formula_search import Sides, located
from ...observe.algebra.locating.gauge import rescaled, uneven_steps
from ...observe.algebra.locating.located_record import Located, user_location
from ...observe.algebra.provenance import Provenance
from .reference_runs import Reference, Repeatable, Run, argument_names, equivalence_of, reference_of


class Answer(NamedTuple):
    """Whether a launch computes a reference, and where it does not."""

    equivalence: Equivalence
    located: Located | None


def answer_of(launch: Repeatable, reference: str | Reference, tolerance: float | None = None) -> Answer:
    """Return whether a launch computes a reference, and the statement that leaves it.

    Raises what the launch raises, and ReferenceError.
    """
    first = equivalence_of(launch, reference, tolerance)
    if first.equivalence.answer != "other":
        return Answer(first.equivalence, None)
    run = equivalence_of(launch, reference, tolerance, provenance=Provenance())
    names = argument_names(launch.formula_arguments(), reference_of(reference)[1])
    if not _has_maximum(run):
        return Answer(first.equivalence, located(_sides(run, names)))
    gauge = equivalence_of(launch, reference, tolerance, provenance=Provenance(), gauge=True)
    found = located(_sides(gauge, names)) if gauge.equivalence.answer == "other" else None
    if found is None or (found.proven and found.kind != "operand"):  # an operand brings its own maximum
        found = _rescaling(run, gauge, names) or found
    if found is None:
        nearest = located(_sides(run, names))
        found = None if nearest is None else replace(nearest, certainty="suspected")
    return Answer(first.equivalence, found)


def _has_maximum(run: Run) -> bool:
    """Return whether the reference has an exponential and a maximum along an axis."""
    names = {each.name for each in run.trace.operations}
    return "exp" in names and any(
        each.name == "max" and len(each.operands) == 1 for each in run.trace.operations
    )


def _sides(run: Run, names: list[str]) -> Sides:
    provenance = run.algebra.provenance or Provenance()  # none of a second seed
    algebra, outputs = run.algebra, run.equivalence.outputs
    return Sides(outputs, provenance, run.leaves, run.trace, names, algebra.code, algebra.written_by or {})


def _rescaling(run: Run, gauge: Run, names: list[str]) -> Located | None:
    """Return which sum has operands of different maxima, if any: with all maxima at 0 it seems right."""
    true, other = run.algebra.provenance, gauge.algebra.provenance
    if true is None or other is None:
        return None
    steps = uneven_steps(true, other)
    if not steps:
        return None
    step, kinds = steps[0], len({each.pc for each in steps})
    output = next(each for each in run.equivalence.outputs if each.other.any())
    tried = len(_some(output))
    checked = max(_rescaled(output, true, rescaled(steps, operand=operand)) for operand in (0, 1))
    return Located(
        kind="rescaling", pc=step.pc, location=user_location(run.algebra.code[step.pc].statement.location()),
        operation="a quotient" if step.name == "/" else "a sum", output=names[output.argument], places=kinds,
        first=output.first(output.other), elements=int(output.other.sum()), tried=tried, checked=checked,
        certainty="proven" if checked == tried else "located",
    )  # fmt: skip


def _rescaled(output: Output, provenance: Provenance, right: dict[int, int]) -> int:
    """Return how many of some wrong elements are the reference's with their sums rescaled."""
    graph = KernelGraph(provenance)
    return sum(
        bool(equal(graph.evaluate(int(output.kernel[index]), {}, right), output.reference[index]))
        for index in _some(output)
    )


def _some(output: Output) -> list[tuple[int, ...]]:
    places = np.argwhere(output.other)
    return [tuple(map(int, index)) for index in places[:: max(len(places) // _TRIED, 1)][:_TRIED]]


_TRIED = 8  # wrong elements that a rescaling is tried on
