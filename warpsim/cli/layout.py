"""``warpsim layout``: which lane holds which element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .output import CONTEXT, EXPECTED, Failure, attempt, print_json, say


@click.command(context_settings=CONTEXT)
@click.argument("mnemonic")
@click.option(
    "--operand", type=click.Choice(["a", "b", "c", "d", "e", "scale_a", "scale_b"]), help="Only this one."
)
@click.option("--selector", type=int, default=0, show_default=True, help="Sparsity selector.")
@click.option(
    "--notation",
    type=click.Choice(["ptx", "cute"]),
    default="ptx",
    show_default=True,
    help="T0:{a0,a1}, or shape:stride.",
)
@click.option(
    "--element", metavar="ROW,COLUMN", help="Where one element of --operand lies; of d also what feeds it."
)
@click.option("--lane", type=int, help="What one lane holds of --operand.")
@click.option("--register", type=int, help="With --lane: only this register.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def layout(mnemonic: str, as_json: bool, **choices: Any) -> int:
    """Draw which lane and register hold which element, and which metadata bits describe what."""
    if choices["element"] and choices["lane"] is not None:
        raise click.UsageError("--element and --lane are two questions: ask one at a time")
    if (choices["element"] or choices["lane"] is not None) and choices["operand"] is None:
        raise click.UsageError("--element and --lane need --operand")
    lines = attempt(_layout, Path("MNEMONIC"), mnemonic, as_json, choices)
    if isinstance(lines, Failure):
        return lines.code()
    if as_json:
        print_json(lines)
    else:
        say("\n".join(lines))
    return EXPECTED


def _layout(_: Path, mnemonic: str, as_json: bool, choices: dict[str, Any]) -> Any:
    from ..interface import decode
    from ..views.layout import layout_document, layout_lines
    from ..views.lookups import element_lines, feeds_lines, lane_lines

    form, operand, selector = decode(mnemonic), choices["operand"], choices["selector"]
    if choices["element"]:
        row, column = _place(choices["element"])
        lines = element_lines(form, operand, row, column)
        return lines + feeds_lines(form, row, column, selector=selector) if operand == "d" else lines
    if choices["lane"] is not None:
        return lane_lines(form, operand, choices["lane"], choices["register"], selector=selector)
    if as_json:
        return layout_document(form, operand, selector=selector)
    return layout_lines(form, operand, selector=selector, notation=choices["notation"])


def _place(text: str) -> tuple[int, int]:
    """``3,17`` as row and column."""
    row, comma, column = text.partition(",")
    if not (comma and row.strip().isdecimal() and column.strip().isdecimal()):
        raise click.UsageError(f"--element {text!r}: expected ROW,COLUMN such as 3,17")
    return int(row), int(column)
