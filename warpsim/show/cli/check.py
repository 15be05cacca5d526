"""``warpsim check``: check a whole module without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...ptx.symbols import names_shown
from .options import json_option, mangled_option
from .output import (
    CONTEXT,
    EXPECTED,
    MISMATCH,
    UNCHECKED,
    Failure,
    attempt,
    check_target,
    fail,
    print_json,
    say,
)

if TYPE_CHECKING:
    from ...workbench.diagnosis.linting.modules import ModuleCheck


@click.command(context_settings=CONTEXT)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--target", metavar="SM", callback=check_target, help="Check for this chip instead of the module's own."
)
@click.option(
    "--nvcc", multiple=True, metavar="OPTION", help="An option for nvcc, which compiles a .cu FILE."
)
@mangled_option
@json_option
def check(file: Path, target: str | None, nvcc: tuple[str, ...], mangled: bool, as_json: bool) -> int:
    """Check a PTX module, or what nvcc makes of a .cu file, without running it.

    Every statement must be known and legal on the target and in the PTX version of the text; what is not is
    listed with its place, and for matrix instructions with what would be legal. Warnings show where
    ptxas has to guard or serialise wgmma. Exit code 1: something is illegal. 4: something is not modelled.
    """
    with names_shown(mangled=mangled):
        found = attempt(_checked, file, target, nvcc)
        if isinstance(found, Failure):
            return fail(found, as_json)
        _report(file, found, as_json)
    if found.illegal:
        return MISMATCH
    return UNCHECKED if found.unmodelled else EXPECTED


def _checked(file: Path, target: str | None, nvcc: tuple[str, ...]) -> ModuleCheck:
    from ...programs.launch.loading import load
    from ...workbench.diagnosis.linting.modules import check_module

    return check_module(load(file, target, nvcc))


def _report(file: Path, found: ModuleCheck, as_json: bool) -> None:
    from ..views.modules import check_document, check_lines

    if as_json:
        print_json(check_document(str(file), found))
    else:
        say("\n".join(check_lines(str(file), found)))
