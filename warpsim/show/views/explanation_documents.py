"""An explanation, and a comparison of targets, as JSON-ready data and as pages of HTML.

In the data every code and every exact integer is a string, so that no reader loses digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from xml.etree.ElementTree import Element

from ...sums.arithmetic.reference import Number
from ...workbench.explanation.accumulators import Outcome, Walk
from ...workbench.explanation.digits import exact_text, hexadecimal, value_text
from ...workbench.explanation.explanation_text import (
    alignment_text,
    comparison_table,
    heading_lines,
    operand_table,
    operation_table,
    outcome_lines,
    parting_text,
    scale_table,
    term_table,
    yardstick_table,
)
from ...workbench.explanation.information import evidence_document, rule_document
from ...workbench.explanation.records import (
    Explanation,
    Factor,
    Product,
    Step,
    TargetComparison,
    Term,
    Yardstick,
    value_of,
)
from ...workbench.explanation.walk_text import summary_lines
from .drawings.svg import element, page, table
from .layouts.figures import place_document

Document = dict[str, Any]

# --- data ------------------------------------------------------------------------------------------


def explanation_document(explanation: Explanation) -> Document:
    """Return an explanation as JSON-ready data."""
    instruction = explanation.instruction
    return {
        "mnemonic": instruction.mnemonic,
        "target": instruction.target,
        "row": explanation.row,
        "column": explanation.column,
        "product": explanation.product,
        "place": place_document(explanation.place),
        **_result(explanation.code, instruction.d.bits, explanation.number),
        **rule_document(explanation.rule),
        "evidence": evidence_document(explanation.rule.evidence),
        "notes": list(explanation.notes),
        "c": _factor_document(explanation.c),
        "products": [_product_document(product) for product in explanation.products],
        "steps": [_step_document(step) for step in explanation.steps],
        "other_sums": [_yardstick_document(each, explanation) for each in explanation.yardsticks],
    }


def _result(code: int, bits: int, number: Number) -> Document:
    return {"code": hexadecimal(code, bits), "value": value_text(number)}


def _number_document(number: Number) -> Document:
    """Return a number as data; ``exact`` is null for Inf and NaN."""
    exact = None if value_of(number) is None else exact_text(number.signed, number.scale)
    return {"value": value_text(number), "exact": exact, "exponent": number.exponent}


def _factor_document(factor: Factor) -> Document:
    place = place_document(factor.place) if factor.place else None
    code = hexadecimal(factor.code, factor.format.bits)
    return {"format": factor.format.name, "code": code, **_number_document(factor.number), "place": place}


def _product_document(product: Product) -> Document:
    document: Document = {
        "position": product.position,
        "k": product.k,
        "a": _factor_document(product.a),
        "b": _factor_document(product.b),
        "product": _number_document(product.number),
        "step": product.step,
    }
    if product.metadata:
        metadata = {"place": place_document(product.metadata), "field": product.field, "index": product.index}
        document["metadata"] = metadata
    if product.scale_a and product.scale_b:
        document["scale_a"] = _factor_document(product.scale_a)
        document["scale_b"] = _factor_document(product.scale_b)
    return document


def _step_document(step: Step) -> Document:
    return {
        "operation": step.operation,
        "special": step.special,
        "exponent": step.exponent,
        "unit": step.unit,
        "terms": [_term_document(term, special=step.special) for term in step.terms],
        "sum": None if step.special else str(step.total),
        "leading": None if step.special else step.leading,
        "rounding": step.rounding,
        "dropped": None if step.special else str(step.dropped),
        "dropped_bits": None if step.special else step.dropped_width,
        **_result(step.code, step.format.bits, step.number),
    }


def _term_document(term: Term, *, special: bool) -> Document:
    document: Document = {
        "name": term.name,
        "products": list(term.positions),
        "aligns": term.aligns,
        **_number_document(term.number),
    }
    if not special:
        document |= {"kept": str(term.kept), "cut": str(term.cut), "cut_bits": term.cut_width}
    return document


def _yardstick_document(yardstick: Yardstick, explanation: Explanation) -> Document:
    ulps = None if yardstick.ulps is None else float(yardstick.ulps)
    exact = None if yardstick.value is None else str(yardstick.value)
    code = hexadecimal(yardstick.code, explanation.instruction.d.bits)
    return {"name": yardstick.name, "code": code, "ulps": ulps, "exact": exact}


def comparison_document(comparison: TargetComparison) -> Document:
    """Return targets side by side as JSON-ready data; ``parting`` is null where every step is the same."""
    parting = comparison.parting
    ways = [
        {"targets": list(targets), "takes": None if step is None else _step_document(step)}
        for targets, step in (parting.ways if parting else ())
    ]
    return {
        "explanations": [explanation_document(each) for each in comparison.explanations],
        "same_d": comparison.same_d,
        "parting": parting and {"step": parting.step, "partial": parting.partial, "ways": ways},
    }


def walk_document(walk: Walk) -> Document:
    """Return the accumulators of a product's element as JSON-ready data, and the explained instruction."""
    bits, several = walk.instruction.d.bits, isinstance(walk.shown, TargetComparison)
    shown = comparison_document(walk.shown) if several else explanation_document(walk.shown)  # type: ignore[arg-type]
    outcome = {} if walk.outcome is None else {"outcome": _outcome_document(walk.outcome, bits)}
    return outcome | {
        "element": list(walk.element),
        "accumulators": {
            name: [hexadecimal(code, bits) for code in codes] for name, codes in walk.codes.items()
        },
        "parting": walk.parting,
        "instruction": walk.at,
        "explained": shown,
    }


def _outcome_document(outcome: Outcome, bits: int) -> Document:
    """Return the actual D, the targets that reproduce it, and the changes of an instruction that do."""
    found = outcome.search
    return {
        "codes": [hexadecimal(code, bits) for code in outcome.codes],
        "parting": outcome.parting if outcome.every else None,
        "makes": list(outcome.makes),
        "tile": {"equal": outcome.tile, "of": outcome.size},
        "on": outcome.on,
        "tried": found.tried if found else 0,
        "fitting": found.fitting if found else 0,
        "changes": [asdict(change) for change in found.changes] if found else [],
    }


# --- pages -----------------------------------------------------------------------------------------


def explanation_page(explanation: Explanation) -> str:
    """Return an explanation as a page of HTML without external resources."""
    return page(heading_lines(explanation)[0], explanation_parts(explanation))


def explanation_parts(explanation: Explanation) -> Iterator[Element]:
    """Yield the elements of such a page: heading, operands, steps, other ways to sum."""
    yield element("pre", "\n".join(line.strip() for line in heading_lines(explanation)[1:]))
    yield element("h2", "Operands and products")
    yield _table(operand_table(explanation))
    if scales := scale_table(explanation):
        yield _table(scales)
    yield element("h2", "Steps")
    for number, step in enumerate(explanation.steps):
        yield from step_parts(number, step)
    yield element("h2", "Other ways to sum")
    yield _table(yardstick_table(explanation))


def step_parts(number: int, step: Step) -> Iterator[Element]:
    """Yield a step: its aligned terms, or a line where nothing is aligned."""
    if step.exponent is None:
        yield _table(operation_table([(number, step)]))
        return
    yield element("p", f"Step {number}, {step.operation}: {alignment_text(step)}")
    yield _table(term_table(step))
    yield element("p", "; ".join(outcome_lines(step)))


def _table(rows: list[list[str]]) -> Element:
    header, *rest = rows
    return table(header, rest)


def comparison_page(comparison: TargetComparison) -> str:
    """Return targets side by side, the first difference, and every explanation, as a page of HTML."""
    first = comparison.explanations[0]
    title = f"D[{first.row},{first.column}] of {first.instruction.mnemonic}"
    return page(title, _comparison_parts(comparison))


def walk_page(walk: Walk) -> str:
    """Return the walk as text above the page of the explained instruction."""
    row, column = walk.element
    parts = _comparison_parts if isinstance(walk.shown, TargetComparison) else explanation_parts
    above = element("pre", "\n".join(summary_lines(walk)))
    return page(f"D[{row},{column}] of a product", [above, *parts(walk.shown)])  # type: ignore[arg-type]


def _comparison_parts(comparison: TargetComparison) -> Iterator[Element]:
    yield _table(comparison_table(comparison))
    parting = comparison.parting
    text = parting_text(comparison)
    yield element("h2", f"{text[0].upper()}{text[1:]}")
    for targets, step in parting.ways if parting else ():
        yield element("h3", ", ".join(targets))
        if step is not None and parting:
            yield from step_parts(parting.step, step)
    for explanation in comparison.explanations:
        yield element("h2", str(explanation.instruction.target))
        yield from explanation_parts(explanation)
