"""``warpsim info``: list the instruction forms, rules and promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import idesc_of, json_option
from .output import CONTEXT, EXPECTED, Failure, attempt, check_target, check_version, print_json, say

if TYPE_CHECKING:
    from ...isa.instruction import Instruction


@click.command(context_settings=CONTEXT)
@click.argument("mnemonic", required=False)
@click.option("--target", metavar="SM", callback=check_target, help="Only this chip, such as sm_90a.")
@click.option("--idesc", metavar="HEX", help="The instruction descriptor of a tcgen05.mma: shape and types.")
@click.option(
    "--ptx-version",
    "version",
    metavar="VERSION",
    callback=check_version,
    help="PTX version to go by, such as 8.5.  [default: 9.5]",
)
@click.option(
    "--evidence",
    "only_evidence",
    is_flag=True,
    help="Why results are believed: outputs of real chips compared, and how many differ.",
)
@click.option(
    "--promises",
    "only_promises",
    is_flag=True,
    help="What is guaranteed, inferred and refused, what tests it, and what tools last said.",
)
@json_option
def info(
    mnemonic: str | None,
    target: str | None,
    idesc: str | None,
    version: str | None,
    as_json: bool,
    **only: bool,
) -> int:
    """List the instruction forms, or describe the form that MNEMONIC spells."""
    from ...workbench.explanation.information import form_document, form_lines, forms_lines

    given = (mnemonic, target, version, idesc_of(idesc))
    forms = attempt(_forms, Path("MNEMONIC"), *given)
    if isinstance(forms, Failure):
        if as_json:
            from ..views.report import error_document

            print_json({"forms": [], "errors": [error_document(forms.error, "MNEMONIC")]})
        return forms.code()
    if mnemonic is None and any(only.values()):
        forms += _reported(target, version)
    if only["only_promises"]:
        _say_promises(forms, as_json)
    elif only["only_evidence"]:
        _say_evidence(forms, as_json, with_reasons=mnemonic is not None)
    elif as_json:
        print_json({"forms": [form_document(form) for form in forms], "errors": []})
    else:
        say("\n".join(form_lines(forms[0]) if mnemonic else forms_lines(forms)))
    return EXPECTED


def _say_evidence(forms: list[Instruction], as_json: bool, with_reasons: bool) -> None:
    """Print the table; of a single form, whose lines are few, with the reasons."""
    from ..views.evidence import evidence_documents, evidence_lines, reason_lines

    if as_json:
        print_json({"evidence": evidence_documents(forms), "errors": []})
    else:
        say("\n".join([*evidence_lines(forms), *(reason_lines(forms) if with_reasons else ())]))


def _say_promises(forms: list[Instruction], as_json: bool) -> None:
    import json
    from importlib.resources import files

    from ..views import promises
    from ..views.promises.promises import promises_document, promises_lines

    statements = json.loads(files(promises).joinpath("statements.json").read_text(encoding="utf-8"))
    if as_json:
        print_json({**promises_document(forms, statements), "errors": []})
    else:
        say("\n".join(promises_lines(forms, statements)))


def _forms(
    _: Path, mnemonic: str | None, target: str | None, version: str | None, idesc: int | None
) -> list[Instruction]:
    from ...sums.execution.interface import decode, instructions

    if mnemonic is None:
        return [*instructions(target, version), *_described(target, version)]
    return [decode(mnemonic, target=target, version=version, idesc=idesc)]


def _described(target: str | None, version: str | None) -> list[Instruction]:
    """Return forms whose products descriptors state, with a common shape each."""
    from ...isa.families.tcgen05 import typical

    return _fitting(typical(), target, version)


def _reported(target: str | None, version: str | None) -> list[Instruction]:
    """Return such forms with the shapes that have evidence of their own."""
    from ...isa.families.tcgen05 import reported

    return _fitting(reported(), target, version)


def _fitting(forms: Iterator[Instruction], target: str | None, version: str | None) -> list[Instruction]:
    """Return forms on a target, of a version of PTX."""
    from ...ptx.decode import version_of
    from ...ptx.qualifiers import on_target

    known = version_of(version, target)
    fitting = (form for form in forms if target is None or target in form.targets)
    return [on_target(form, target) for form in fitting if form.since <= known]
