"""``warpsim convert``: convert vector sets between formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import json_option
from .output import CONTEXT, EXPECTED, Failure, attempt, fail, print_json, say

if TYPE_CHECKING:
    from ...workbench.vectors.formats import VectorFormat
    from ...workbench.vectors.parted import SetInParts


@click.command(context_settings=CONTEXT)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("destination", metavar="OUT", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--from", "source_format", metavar="FORMAT", help="Format of IN, if not that of its suffix.")
@click.option(
    "--to", "destination_format", metavar="FORMAT", help="Format of OUT, if not that of its suffix."
)
@json_option
def convert(
    source: Path, destination: Path, source_format: str | None, destination_format: str | None, as_json: bool
) -> int:
    """Convert a vector set. Every format holds all of it: converting back gives the same bits. A set in an
    .npz file may have any size; of others at most 256 MiB are read.

    \b
    npz        .npz             NumPy archive, the canonical form
    readmemh   .hex .mem        $readmemh words, and a SystemVerilog package
                                of their places beside it (.svh)
    testfloat  .testfloat .tv   a dot product a line: a... b... c d
    c          .h               C header, a constant array an operand
    csv        .csv             a row a lane, a column a register
    jsonl      .jsonl           JSON lines, an object a case
    """
    to = attempt(_format, destination, destination_format)
    vectors = to if isinstance(to, Failure) else attempt(_converted, source, source_format, destination, to)
    if isinstance(vectors, Failure):
        return fail(vectors, as_json)
    form = vectors.instruction
    document = {
        "file": str(destination),
        "mnemonic": form.mnemonic,
        "target": form.target,
        "cases": len(vectors),
    }
    if as_json:
        print_json(document)
    else:
        say(f"{destination}: {len(vectors):,} cases of {form.mnemonic} on {form.target}")
    return EXPECTED


def _format(path: Path, name: str | None) -> VectorFormat:
    from ...workbench.vectors.formats import format_of

    return format_of(path, name)


def _converted(path: Path, name: str | None, destination: Path, to: VectorFormat) -> SetInParts:
    """Write the set in a file in another format, and return it."""
    vectors = _format(path, name).in_parts(path)
    to.write(destination, vectors)
    return vectors
