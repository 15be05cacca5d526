"""``warpsim explain``: show how an element of D was computed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .layout import place_of
from .operand_values import OPERANDS
from .options import json_option
from .output import CONTEXT, EXPECTED, Failure, attempt, check_target, fail, print_json, say
from .sources import SELECT, WHICH, decoded, is_file, subject_of

if TYPE_CHECKING:
    from ...sums.execution.pipeline import Undefined
    from ...workbench.explanation.accumulators import Walk
    from ...workbench.explanation.records import Explanation, TargetComparison


def _targets(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Return the known chips of a list such as ``sm_80,sm_90``."""
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    for name in names:
        check_target(context, parameter, name)
    return names


@click.command(context_settings=CONTEXT)
@click.argument("source", metavar="TRACE|VECTORS|RECORDING|MNEMONIC")
@OPERANDS
@click.option("--element", required=True, metavar="ROW,COLUMN", help="Which element of D.")
@click.option(
    "--target", "targets", callback=_targets, metavar="SM[,SM...]", help="One chip, or several side by side."
)
@WHICH[0]
@WHICH[1]
@WHICH[2]
@SELECT
@click.option("--product", type=int, default=0, help="Of m8n8k4 f16: which of the four products.")
@click.option("--allow-undefined", is_flag=True, help="Read metadata that PTX leaves undefined literally.")
@json_option
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a page instead of printing text.",
)
def explain(source: str, as_json: bool, html: Path | None, **choices: Any) -> int:
    """Show how an element of D is computed: sources, products, alignment, cut bits, sums and rounding.

    Operands of a MNEMONIC are arguments of warpsim.execute by name, such as a=a.txt e=0x44444444 selector=1,
    or matrices such as A=a.npy B=b.npy. Larger matrices are a product: its accumulator is followed along k,
    and the first instruction at which targets differ is explained, or that of --event. D=d.npy is the actual
    result: of the end (m, n), for which the change of one instruction that reproduces it is searched; or of
    every instruction (instructions, m, n), of which the first that differs is explained.
    """
    if is_file(source) and choices["operands"]:
        raise click.UsageError("operands go with a mnemonic: a trace or vector set has its own")
    found = attempt(_explained, Path(source) if is_file(source) else Path("OPERANDS"), source, choices)
    if isinstance(found, Failure):
        return fail(found, as_json)
    document, page, lines = found
    if html and (failure := attempt(_write, html, page())):
        return failure.code()
    if as_json:
        print_json(document())
    elif not html:
        say("\n".join(lines()))
    return EXPECTED


def _write(path: Path, text: str) -> None:
    from ...base.files.archives import write_lines

    write_lines(path, [text])


def _explained(_: Path, source: str, choices: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the functions that make the JSON document, the page and the text."""
    from ...workbench.explanation import explanation_text as explain_text
    from ...workbench.explanation.accumulators import Walk
    from ...workbench.explanation.records import TargetComparison
    from ...workbench.explanation.walk_text import walk_lines
    from ..views import explanation_documents as documents
    from ..views.explanation_documents import walk_document, walk_page

    title, found = _found(source, choices)
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


def _found(source: str, choices: dict[str, Any]) -> tuple[list[str], Explanation | TargetComparison | Walk]:
    from ...ptx.qualifiers import on_target
    from ...workbench.explanation.explain import compare_inputs, explain_inputs

    row, column = place_of(choices["element"])
    targets, product = choices["targets"], choices["product"]
    if not is_file(source):
        return [], _of_operands(source, choices, row, column)
    which = {name: choices[name] for name in ("event", "warp", "case", "selection")}
    subject = subject_of(source, **which, literal=choices["allow_undefined"])
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
    mnemonic: str, choices: dict[str, Any], row: int, column: int
) -> Explanation | TargetComparison | Walk:
    """Return the explanation of registers, or of the matrices A, B and C."""
    from ...workbench.explanation.explain import compare_dot, compare_matrices, explain_dot, explain_matrices

    targets = choices["targets"]
    form, given = decoded(mnemonic, targets[0] if len(targets) == 1 else None, choices["operands"])
    undefined: Undefined = "fallback" if choices["allow_undefined"] else "error"
    product = choices["product"]
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
        at = choices["event"]
        return walk_product(form, row, column, **given, targets=chosen, at=at, undefined=undefined)
    matrices = given["A"], given["B"], given.get("C"), given.get("scale_a"), given.get("scale_b")
    if len(targets) > 1:
        return compare_matrices(form, row, column, targets, *matrices, undefined=undefined)
    return explain_matrices(form, row, column, *matrices, undefined=undefined)
