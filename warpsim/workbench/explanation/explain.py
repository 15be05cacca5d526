"""``warpsim explain``: how an element of D is computed, product by product and step by step.

From registers, as warpsim.execute takes them, or from matrices, as warpsim.matmul does; on one target or on
several side by side. The result is data: explanation_text.py and documents.py show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ...isa.operand_places.places import Feeds, Place, check_element, feeds
from ...ptx.decode import Form, resolved
from ...ptx.qualifiers import on_target
from ...sums.arithmetic.reference import Number
from ...sums.arithmetic.reference import product as multiplied
from ...sums.execution.inputs import inputs_by_name
from ...sums.execution.logical_matrices import Matrices
from ...sums.execution.pipeline import rule_for
from . import explanation_text  # noqa: F401  registers the texts of the records
from .gathered_operands import Gathered, from_matrices, from_registers
from .records import Explanation, Factor, Parting, Product, Step, TargetComparison
from .rule_steps import Summation, steps_of
from .yardsticks import yardsticks


def explain_dot(
    instruction: Form, row: int, column: int, *, target: str | None = None, product: int = 0, **operands: Any
) -> Explanation:
    """Return how D[row, column] is computed; ``operands`` are the keyword arguments of warpsim.execute.

    ``product`` chooses one of the four products of m8n8k4 f16. Raises what warpsim.execute raises,
    OperandError for an element that does not exist and for operands with batch axes.
    """
    form = resolved(instruction, target)
    return explain_inputs(form, inputs_by_name(operands), row, column, product)


def explain_inputs(
    instruction: Instruction, inputs: Inputs, row: int, column: int, product: int = 0
) -> Explanation:
    """Return the same from the record of everything that an execution reads."""
    check_element(instruction, "d", row, column, product)
    return _explain_element(from_registers(instruction, inputs), row, column, product)


def explain_matrices(
    instruction: Form,
    row: int,
    column: int,
    A: Any,
    B: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    *,
    target: str | None = None,
    undefined: str = "error",
) -> Explanation:
    """Return how D[row, column] of warpsim.matmul is computed; register places are those of warpsim.pack."""
    form = resolved(instruction, target)
    check_element(form, "d", row, column)
    matrices = Matrices(A, B, C, scale_a, scale_b)
    return _explain_element(from_matrices(form, matrices, undefined), row, column, 0)


# --- one element -----------------------------------------------------------------------------------


def _explain_element(gathered: Gathered, row: int, column: int, product: int) -> Explanation:
    instruction = gathered.instruction
    selected = {"product": product, "selector": gathered.selector}
    found = feeds(instruction, row, column, scales=gathered.scales, **selected)
    pairs = list(_pairs(gathered, found, row, column, product))
    c_code = int(_matrix(gathered, "c", product)[row, column])
    rule = rule_for(instruction, with_c=instruction.has_registers("b") or "c" not in gathered.absent)
    summation = steps_of(rule, instruction, _codes(pairs, c_code))
    products = _products(pairs, summation)
    plain = _in_order(products, _addends(instruction, summation))
    return Explanation(
        instruction=instruction,
        rule=rule,
        row=row,
        column=column,
        product=product,
        c=Factor(code=c_code, format=instruction.c, place=None if "c" in gathered.absent else found.c),
        products=products,
        steps=tuple(summation.steps),
        place=found.d,
        yardsticks=yardsticks(plain, summation.factors.c, instruction.d, summation.steps[-1].code),
        notes=gathered.notes,
    )


def _codes(pairs: Sequence[dict[str, Any]], c: int) -> dict[str, Sequence[int]]:
    names = ("a", "b", *(name for name in _SCALES if name in pairs[0]))
    return {"c": [c], **{name: [pair[name].code for pair in pairs] for name in names}}


def _products(pairs: Sequence[dict[str, Any]], summation: Summation) -> tuple[Product, ...]:
    step_of = {place: at for at, step in enumerate(summation.steps) for place in step.positions}
    return tuple(
        Product(**pair, position=position, number=number, step=step_of[position])
        for position, (pair, number) in enumerate(zip(pairs, summation.numbers, strict=True))
    )


def _matrix(gathered: Gathered, operand: str, product: int) -> npt.NDArray[Any]:
    """Return the matrix of codes of a, b or c, of one product of m8n8k4 f16."""
    codes: npt.NDArray[Any] = getattr(gathered.operands, operand)
    return codes[product] if codes.ndim > 2 else codes


def _pairs(gathered: Gathered, found: Feeds, row: int, column: int, product: int) -> Iterator[dict[str, Any]]:
    """Return for every product its k and its factors, scales and metadata, each with its place."""
    operands, instruction = gathered.operands, gathered.instruction
    a, b = _matrix(gathered, "a", product)[row].tolist(), _matrix(gathered, "b", product)[:, column].tolist()
    columns = range(len(a)) if operands.columns is None else operands.columns[row].tolist()
    for position, k in enumerate(columns):
        a_place = None if "a" in gathered.absent else found.a[position]
        b_place = None if "b" in gathered.absent else found.b[k]
        yield {
            "k": k,
            "a": Factor(code=a[position], format=instruction.a, place=a_place),
            "b": Factor(code=b[k], format=instruction.b, place=b_place),
            **_selection(gathered, found.metadata, row, position, k),
            **_scales(gathered, found, row, column, k),
        }


def _selection(
    gathered: Gathered, metadata: Sequence[Place], row: int, position: int, k: int
) -> dict[str, Any]:
    """Return the metadata of a stored element of A that select column k: field, its place, and the index in
    it.
    """
    pattern = gathered.instruction.pattern
    if pattern is None or gathered.fields is None:
        return {}
    chunk = position // pattern.stored
    return {
        "metadata": metadata[chunk],
        "field": int(gathered.fields[row, chunk]),
        "index": k % pattern.chunk // pattern.unit,
    }


def _scales(gathered: Gathered, found: Feeds, row: int, column: int, k: int) -> dict[str, Any]:
    operands, instruction = gathered.operands, gathered.instruction
    if instruction.scale is None or operands.scale_a is None or operands.scale_b is None:
        return {}
    chunk = k * instruction.scale_chunks // instruction.shape.k
    codes = int(operands.scale_a[row, chunk]), int(operands.scale_b[chunk, column])
    return {
        name: Factor(
            code=code, format=instruction.scale, place=None if name in gathered.absent else places[chunk]
        )
        for name, code, places in zip(_SCALES, codes, (found.scale_a, found.scale_b), strict=True)
    }


_SCALES = ("scale_a", "scale_b")


def _addends(instruction: Instruction, summation: Summation) -> Sequence[Number]:
    """Return the products with their scales; of 1-bit forms, the counted bits."""
    if instruction.bit_operation:
        return summation.numbers
    factors = summation.factors
    if not factors.scales:
        return factors.products
    return [multiplied(x, scale) for x, scale in zip(factors.products, factors.scales, strict=True)]


def _in_order(products: Sequence[Product], addends: Sequence[Number]) -> list[Number]:
    """Return the addends by ascending k."""
    order = np.argsort([each.k for each in products], kind="stable")
    return [addends[position] for position in order]


# --- several targets -------------------------------------------------------------------------------


def compare_dot(
    instruction: Form, row: int, column: int, targets: Sequence[str], *, product: int = 0, **operands: Any
) -> TargetComparison:
    """Explain a dot product on each of several targets, and find the first step that differs."""
    form = resolved(instruction)
    return _compared(
        targets,
        lambda target: explain_dot(form, row, column, target=target, product=product, **operands),
    )


def compare_inputs(
    instruction: Instruction, inputs: Inputs, row: int, column: int, targets: Sequence[str], product: int = 0
) -> TargetComparison:
    """Explain inputs on each of several targets, and find the first step that differs."""
    return _compared(
        targets,
        lambda target: explain_inputs(on_target(instruction, target), inputs, row, column, product),
    )


def compare_matrices(
    instruction: Form, row: int, column: int, targets: Sequence[str], *matrices: Any, **options: Any
) -> TargetComparison:
    """Explain an element of matrices on each of several targets, and find the first step that differs."""
    form = resolved(instruction)
    return _compared(
        targets, lambda target: explain_matrices(form, row, column, *matrices, target=target, **options)
    )


def _compared(targets: Sequence[str], explain: Callable[[str], Explanation]) -> TargetComparison:
    explanations = tuple(explain(target) for target in targets)
    return TargetComparison(explanations=explanations, parting=_parting(explanations))


def _parting(explanations: Sequence[Explanation]) -> Parting | None:
    for number, steps in enumerate(zip_longest(*(each.steps for each in explanations))):
        if len(set(steps)) > 1:
            return Parting(
                step=number, ways=_ways(explanations, steps), partial=_partial_parting(explanations)
            )
    return None


def _ways(
    explanations: Sequence[Explanation], steps: Sequence[Step | None]
) -> tuple[tuple[tuple[str, ...], Step | None], ...]:
    """Return targets grouped by equal steps."""
    ways: dict[Step | None, list[str]] = {}
    for each, step in zip(explanations, steps, strict=True):
        ways.setdefault(step, []).append(str(each.instruction.target))
    return tuple((tuple(names), step) for step, names in ways.items())


def _partial_parting(explanations: Sequence[Explanation]) -> int | None:
    """Return the number of products after which rounded sums of the same products first differ, or None."""
    partials: dict[frozenset[int], set[int]] = {}
    for each in explanations:
        summed: frozenset[int] = frozenset()
        for step in each.steps:
            summed |= frozenset(step.positions)
            partials.setdefault(summed, set()).add(step.code)
    return min((len(summed) for summed, codes in partials.items() if len(codes) > 1), default=None)
