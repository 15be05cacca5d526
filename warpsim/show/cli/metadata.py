"""``warpsim metadata``: convert sparse metadata of whole matrices between the orders of kernels and
libraries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .operand_values import read_array_file, write_output
from .options import json_option
from .output import CONTEXT, EXPECTED, MISMATCH, Failure, attempt, fail, print_json, say


@click.command(context_settings=CONTEXT)
@click.argument("element", metavar="FORMAT|MNEMONIC")
@click.argument("file", required=False)
@click.option("--rows", type=int, help="Rows of logical A.")
@click.option("--k", type=int, help="Columns of logical A.")
@click.option("--from", "source", metavar="NAME", help="The order of FILE.")
@click.option("--to", "wanted", metavar="NAME", help="The order to convert to.")
@click.option("--detect", is_flag=True, help="Say which orders FILE can be in.")
@click.option("--matrix", metavar="FILE", help="With --detect: logical A, whose non-zeros must be named.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write FILE.npy, FILE.npz or text instead of printing.",
)
@json_option
def metadata(element: str, file: str | None, as_json: bool, out: Path | None, **choices: Any) -> int:
    """Convert metadata between PTX lane words, index pairs, CUTLASS's reordered E and PyTorch's, or detect.

    Without FILE, list the orders that metadata of an element (f16, tf32, s8 ...) or of an instruction can be
    in. Every conversion proves that both orders are one-to-one for the rows and columns given. Exit code 1:
    --detect finds no order.
    """
    if file is not None and (choices["rows"] is None or choices["k"] is None):
        raise click.UsageError("--rows and --k are needed: the size of logical A")
    if file is not None and choices["detect"] == bool(choices["source"] or choices["wanted"]):
        raise click.UsageError("give --from and --to, or --detect")
    if file is not None and not choices["detect"] and not (choices["source"] and choices["wanted"]):
        raise click.UsageError("--from and --to go together")
    action = _listed if file is None else _detected if choices["detect"] else _converted
    found = attempt(action, Path(file or "FORMAT"), element, choices)
    if isinstance(found, Failure):
        return fail(found, as_json)
    document, lines, arrays = found
    if out and arrays:
        failure = attempt(_write, out, arrays, lines)
        return failure.code() if failure else EXPECTED
    if as_json:
        print_json(document)
    else:
        say("\n".join(lines))
    return MISMATCH if document.get("candidates") == [] else EXPECTED


def _write(path: Path, arrays: dict[str, Any], lines: list[str]) -> None:
    write_output(path, arrays, lines)


def _known(element: str) -> Any:
    """Return the element, or the instruction."""
    from ...sums.execution.interface import decode

    return decode(element) if "." in element else element


def _listed(
    _: Path, element: str, choices: dict[str, Any]
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
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
    path: Path, element: str, choices: dict[str, Any]
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    from ...isa.metadata.arrangements import convert
    from ...workbench.inputs.register_text import code_lines

    blob = read_array_file(str(path), "metadata")
    rows, k = choices["rows"], choices["k"]
    made = convert(blob, rows, k, _known(element), source=choices["source"], target=choices["wanted"])
    flat = made.reshape(-1, made.shape[-1]) if made.ndim != 1 else made.reshape(1, -1)
    unsigned = flat.view(f"u{made.dtype.itemsize}")
    lines = list(code_lines(unsigned, 8 * made.dtype.itemsize))
    return (
        {"arrangement": choices["wanted"], "shape": list(made.shape), "words": made.tolist()},
        lines,
        {"metadata": made},
    )


def _detected(
    path: Path, element: str, choices: dict[str, Any]
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    from ...isa.metadata.detection import detect
    from ..views.findings import detection_document

    blob = read_array_file(str(path), "metadata")
    matrix = read_array_file(choices["matrix"], "A") if choices["matrix"] else None
    found = detect(blob, choices["rows"], choices["k"], _known(element), matrix)
    return detection_document(found), [str(found)], {}
