"""``warpsim check``: check a whole module without running it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...ptx.symbols import names_shown
from .options import Mangled, Nvcc, Target
from .output import EXPECTED, MISMATCH, UNCHECKED, deliver, perform
from .verbs import verb

if TYPE_CHECKING:
    from ...workbench.diagnosis.linting.lint import ModuleCheck


@verb
def check(
    file: Path,
    *,
    target: Annotated[Target, "Check for this chip instead of the module's own."],
    nvcc: Nvcc,
    mangled: Mangled,
) -> int:
    """Check a PTX module, or what nvcc makes of a .cu file, without running it.

    Every statement must be known and legal on the target and in the PTX version of the text; what is not is
    listed with its place, and for matrix instructions with what would be legal. Warnings show where
    ptxas has to guard or serialise wgmma. Exit code 1: something is illegal. 4: something is not modelled.
    """
    from ..views.modules import check_document, check_lines

    with names_shown(mangled=mangled):
        found = perform(_checked, file, target, nvcc)
        code = MISMATCH if found.illegal else UNCHECKED if found.unmodelled else EXPECTED
        document, lines = (partial(make, str(file), found) for make in (check_document, check_lines))
        return deliver(document, lines, code)


def _checked(file: Path, target: str | None, nvcc: tuple[str, ...]) -> ModuleCheck:
    from ...programs.launch.loading import load
    from ...workbench.diagnosis.linting.lint import check_module

    return check_module(load(file, target, nvcc))
