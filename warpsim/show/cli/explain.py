"""``warpsim explain``: show how an element of D was computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from .options import (
    Case,
    Element,
    Event,
    Json,
    Operands,
    Out,
    Select,
    Targets,
    Undefined,
    Warp,
)
from .output import EXPECTED, deliver, perform
from .sources import decoded, is_file, subject_of
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...workbench.explanation.accumulators import Walk
    from ...workbench.explanation.records import Explanation, TargetComparison


@dataclass(frozen=True, kw_only=True)
class _Choices:
    """Which element of which execution, and on which chips."""

    element: Annotated[Element, "Which element of D."]
    targets: Targets
    event: Event
    warp: Warp
    case: Case = 0
    selection: Select
    product: Annotated[int, "Of m8n8k4 f16: which of the four products."] = 0
    undefined: Annotated[Undefined, "Read metadata that PTX leaves undefined literally."]
    html: Annotated[Out, Option(names=("-o", "--out", "--html")), "Write a page instead of printing text."]
    as_json: Json


@verb
def explain(
    source: Annotated[str, Option(metavar="TRACE|VECTORS|RECORDING|MNEMONIC")],
    operands: Operands = (),
    *,
    choices: _Choices,
) -> int:
    """Show how an element of D is computed: sources, products, alignment, cut bits, sums and rounding.

    Operands of a MNEMONIC are arguments of warpsim.execute by name, such as a=a.txt e=0x44444444 selector=1,
    or matrices such as A=a.npy B=b.npy. Larger matrices are a product: its accumulator is followed along k,
    and the first instruction at which targets differ is explained, or that of --event. D=d.npy is the actual
    result: of the end (m, n), for which the change of one instruction that reproduces it is searched; or of
    every instruction (instructions, m, n), of which the first that differs is explained.
    """
    if is_file(source) and operands:
        raise click.UsageError("operands go with a mnemonic: a trace or vector set has its own")
    subject = Path(source) if is_file(source) else Path("OPERANDS")
    document, page, lines = perform(_explained, subject, source, operands, choices)
    if choices.html:
        perform(_write, choices.html, page())
    return EXPECTED if choices.html and not choices.as_json else deliver(document, lines)


def _write(path: Path, text: str) -> None:
    from ...base.files.archives import write_lines

    write_lines(path, [text])


def _explained(_: Path, source: str, operands: tuple[str, ...], choices: _Choices) -> tuple[Any, Any, Any]:
    """Return the functions that make the JSON document, the page and the text."""
    from ...workbench.explanation import explanation_text as explain_text
    from ...workbench.explanation.accumulators import Walk
    from ...workbench.explanation.records import TargetComparison
    from ...workbench.explanation.walk_text import walk_lines
    from ..views import explanation_documents as documents
    from ..views.explanation_documents import walk_document, walk_page

    title, found = _found(source, operands, choices)
    if isinstance(found, Walk):
        return lambda: walk_document(found), lambda: walk_page(found), lambda: [*title, *walk_lines(found)]
    if isinstance(found, TargetComparison):
        return (
            lambda: documents.comparison_document(found),
            lambda: documents.comparison_page(found),
            lambda: [*title, *explain_text.comparison_lines(found)],
        )
    return (
        lambda: documents.explanation_document(found),
        lambda: documents.explanation_page(found),
        lambda: [*title, *explain_text.explanation_lines(found)],
    )


def _found(
    source: str, operands: tuple[str, ...], choices: _Choices
) -> tuple[list[str], Explanation | TargetComparison | Walk]:
    from ...ptx.qualifiers import on_target
    from ...workbench.explanation.explain import compare_inputs, explain_inputs

    (row, column), targets, product = choices.element, choices.targets or (), choices.product
    if not is_file(source):
        return [], _of_operands(source, operands, choices)
    subject = subject_of(
        source,
        event=choices.event,
        warp=choices.warp,
        case=choices.case,
        selection=choices.selection,
        literal=choices.undefined == "fallback",
    )
    form, inputs = subject.instruction, subject.inputs
    if len(targets) > 1:
        return [subject.title], compare_inputs(form, inputs, row, column, targets, product)
    return [subject.title], explain_inputs(
        on_target(form, targets[0] if targets else None), inputs, row, column, product
    )


def _is_product(form: Any, given: dict[str, Any]) -> bool:
    """Return whether there are matrices other than those of one instruction, or an actual D."""
    shape = form.shape
    sizes = (given["A"].shape, given["B"].shape) != ((shape.m, shape.k), (shape.k, shape.n))
    return "D" in given or (sizes and given["A"].ndim == given["B"].ndim == 2)


def _of_operands(
    mnemonic: str, operands: tuple[str, ...], choices: _Choices
) -> Explanation | TargetComparison | Walk:
    """Return the explanation of registers, or of the matrices A, B and C."""
    from ...workbench.explanation.explain import compare_dot, compare_matrices, explain_dot, explain_matrices

    (row, column), targets, product = choices.element, choices.targets or (), choices.product
    form, given = decoded(mnemonic, targets[0] if len(targets) == 1 else None, operands)
    undefined = choices.undefined
    if not given.keys() & {"A", "B", "C", "D"}:
        given["undefined"] = undefined
        if len(targets) > 1:
            return compare_dot(form, row, column, targets, product=product, **given)
        return explain_dot(form, row, column, product=product, **given)
    given.pop("printed", None)
    if not {"A", "B"} <= given.keys() <= {"A", "B", "C", "D", "scale_a", "scale_b"}:
        raise click.UsageError("matrices are A, B and perhaps C and D, and no registers beside them")
    if _is_product(form, given):
        from ...workbench.explanation.walk import walk_product

        chosen = targets or (form.target or "",)
        at = choices.event
        return walk_product(form, row, column, **given, targets=chosen, at=at, undefined=undefined)
    matrices = given["A"], given["B"], given.get("C"), given.get("scale_a"), given.get("scale_b")
    if len(targets) > 1:
        return compare_matrices(form, row, column, targets, *matrices, undefined=undefined)
    return explain_matrices(form, row, column, *matrices, undefined=undefined)
