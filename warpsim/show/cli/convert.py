"""``warpsim convert``: convert vector sets between formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .options import InputFile, VectorFormat
from .output import deliver, perform
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...workbench.vectors.formats import VectorFormat as Format
    from ...workbench.vectors.parted import SetInParts


@verb
def convert(
    source: Annotated[InputFile, Option(metavar="IN")],
    destination: Annotated[Path, Option(metavar="OUT")],
    *,
    source_format: Annotated[VectorFormat, "--from", "Format of IN, if not that of its suffix."],
    destination_format: Annotated[VectorFormat, "--to", "Format of OUT, if not that of its suffix."],
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
    to = perform(_format, destination, destination_format)
    vectors = perform(_converted, source, source_format, destination, to)
    form = vectors.instruction
    document = {
        "file": str(destination),
        "mnemonic": form.mnemonic,
        "target": form.target,
        "cases": len(vectors),
    }
    return deliver(document, f"{destination}: {len(vectors):,} cases of {form.mnemonic} on {form.target}")


def _format(path: Path, name: str | None) -> Format:
    from ...workbench.vectors.formats import format_of

    return format_of(path, name)


def _converted(path: Path, name: str | None, destination: Path, to: Format) -> SetInParts:
    """Write the set in a file in another format, and return it."""
    vectors = _format(path, name).in_parts(path)
    to.write(destination, vectors)
    return vectors
