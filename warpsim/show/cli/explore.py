"""``warpsim explore``: write the layouts of all forms to one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import json_option
from .output import CONTEXT, EXPECTED, Failure, attempt, fail, print_json, say

if TYPE_CHECKING:
    from ..report.explorer import Explorer


@click.command(context_settings=CONTEXT)
@click.argument("mnemonic", required=False)
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    default=Path("explorer.html"),
    show_default=True,
    help="Where to write the page.",
)
@json_option
def explore(mnemonic: str | None, out: Path, as_json: bool) -> int:
    """Write a page with the layouts of every form of every target: one HTML file that loads nothing.

    B above D and A beside it, metadata, scales and shared tiles, from element to lane and back; PTX, CuTe
    layouts and C code to copy; figures as text, CSV, Markdown and LaTeX. It opens at MNEMONIC.
    """
    made = attempt(_explorer, Path("MNEMONIC"), mnemonic)
    if isinstance(made, Failure):
        return fail(made, as_json)
    if failure := attempt(_write, out, made):
        return fail(failure, as_json)
    size = out.stat().st_size
    if as_json:
        print_json({"page": out.as_posix(), "bytes": size, "forms": made.forms, "opens_at": made.form})
    else:
        say(f"{out.as_posix()}: {made.forms:,} forms, {size / 1e6:.1f} MB")
    return EXPECTED


def _explorer(_: Path, mnemonic: str | None) -> Explorer:
    from ..report.explorer import explore as explorer_of

    return explorer_of(mnemonic) if mnemonic else explorer_of()


def _write(out: Path, made: Explorer) -> None:
    made.save(out)
