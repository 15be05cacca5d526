"""``warpsim metadata``: convert sparse metadata of whole matrices between the orders of kernels and
libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from ...base.errors import present
from .operand_values import read_array_file, write_output
from .options import Converted
from .output import EXPECTED, MISMATCH, deliver, perform
from .verbs import Option, verb

_Order = Annotated[str | None, Option(metavar="NAME")]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The options: the size of logical A, the orders of its metadata, and where to write."""

    rows: Annotated[int | None, "Rows of logical A."]
    k: Annotated[int | None, "Columns of logical A."]
    source: Annotated[_Order, "--from", "The order of FILE."]
    wanted: Annotated[_Order, "--to", "The order to convert to."]
    detect: Annotated[bool, "Say which orders FILE can be in."]
    matrix: Annotated[
        str | None, Option(metavar="FILE"), "With --detect: logical A, whose non-zeros must be named."
    ]
    out: Converted

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of logical A, where they are given."""
        return present(self.rows, "rows"), present(self.k, "k")


@verb
def metadata(
    element: Annotated[str, Option(metavar="FORMAT|MNEMONIC")], file: str | None = None, *, choices: Choices
) -> int:
    """Convert metadata between PTX lane words, index pairs, CUTLASS's reordered E and PyTorch's, or detect.

    Without FILE, list the orders that metadata of an element (f16, tf32, s8 ...) or of an instruction can be
    in. Every conversion proves that both orders are one-to-one for the rows and columns given. Exit code 1:
    --detect finds no order.
    """
    action = _listed if file is None else _action(choices)
    document, lines, arrays = perform(action, Path(file or "FORMAT"), element, choices)
    if choices.out and arrays:
        perform(write_output, choices.out, arrays, lines)
        return EXPECTED
    return deliver(document, lines, MISMATCH if document.get("candidates") == [] else EXPECTED)


def _action(choices: Choices) -> Callable[..., tuple[dict[str, Any], list[str], dict[str, Any]]]:
    """Return what to do with FILE. Raises UsageError."""
    if choices.rows is None or choices.k is None:
        raise click.UsageError("--rows and --k are needed: the size of logical A")
    if choices.detect == bool(choices.source or choices.wanted):
        raise click.UsageError("give --from and --to, or --detect")
    if not choices.detect and not (choices.source and choices.wanted):
        raise click.UsageError("--from and --to go together")
    return _detected if choices.detect else _converted


def _known(element: str) -> Any:
    """Return the element, or the instruction."""
    from ...sums.execution.interface import decode

    return decode(element) if "." in element else element


def _listed(_: Path, element: str, choices: Choices) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    from ...base.text_columns import words
    from ...isa.metadata.arrangements import arrangements

    known = arrangements(_known(element))
    rows = [[item.name, f"{item.dtype.name} words", item.description] for item in known]
    document = {
        "arrangements": [
            {"name": item.name, "dtype": item.dtype.name, "text": item.description} for item in known
        ]
    }
    return document, words(rows), {}


def _converted(
    path: Path, element: str, choices: Choices
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    from ...isa.metadata.arrangements import convert
    from ...workbench.inputs.register_text import code_lines

    blob = read_array_file(str(path), "metadata")
    source, wanted = present(choices.source, "source"), present(choices.wanted, "wanted")
    made = convert(blob, *choices.size, _known(element), source=source, target=wanted)
    flat = made.reshape(-1, made.shape[-1]) if made.ndim != 1 else made.reshape(1, -1)
    unsigned = flat.view(f"u{made.dtype.itemsize}")
    lines = list(code_lines(unsigned, 8 * made.dtype.itemsize))
    return (
        {"arrangement": choices.wanted, "shape": list(made.shape), "words": made.tolist()},
        lines,
        {"metadata": made},
    )


def _detected(path: Path, element: str, choices: Choices) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    from ...isa.metadata.detection import detect
    from ..views.findings import detection_document

    blob = read_array_file(str(path), "metadata")
    matrix = read_array_file(choices.matrix, "A") if choices.matrix else None
    found = detect(blob, *choices.size, _known(element), matrix)
    return detection_document(found), [str(found)], {}
