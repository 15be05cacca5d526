"""``warpsim info``: list the instruction forms, rules and promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .options import Idesc, MnemonicOrNone, PtxVersion, Target
from .output import Ended, Failure, attempt, deliver
from .verbs import verb

if TYPE_CHECKING:
    from ...isa.instruction import Instruction


@dataclass(kw_only=True)
class Tables:
    """Which table of the forms is asked for, if not their list."""

    rules: Annotated[
        bool, "The numbers of every sum by chip: length, fraction bits, rounding, subnormals, NaN, evidence."
    ]
    evidence: Annotated[
        bool, "Why results are believed: outputs of real chips compared, and how many differ."
    ]
    promises: Annotated[
        bool, "What is guaranteed, inferred and refused, what tests it, and what tools last said."
    ]


@verb
def info(
    mnemonic: MnemonicOrNone,
    *,
    target: Annotated[Target, "Only this chip, such as sm_90a, or a card, such as H100."],
    idesc: Idesc,
    version: Annotated[PtxVersion, "PTX version to go by, such as 8.5.  [default: 9.5]"],
    tables: Tables,
) -> int:
    """List the instruction forms, or describe the form that MNEMONIC spells."""
    from ...workbench.explanation.information import form_document, form_lines, forms_lines

    forms = attempt(_forms, Path("MNEMONIC"), mnemonic, target, version, idesc)
    if isinstance(forms, Failure):
        raise Ended(forms, forms=[])
    if mnemonic is None and (tables.rules or tables.evidence or tables.promises):
        forms += _reported(target, version)
    if tables.rules:
        return _say_rules(forms)
    if tables.promises:
        return _say_promises(forms)
    if tables.evidence:
        return _say_evidence(forms, with_reasons=mnemonic is not None)
    return deliver(
        lambda: {"forms": [form_document(form) for form in forms], "errors": []},
        lambda: form_lines(forms[0]) if mnemonic else forms_lines(forms),
    )


def _say_evidence(forms: list[Instruction], with_reasons: bool) -> int:
    """Print the table; of a single form, whose lines are few, with the reasons."""
    from ..views.evidence import evidence_documents, evidence_lines, reason_lines

    return deliver(
        lambda: {"evidence": evidence_documents(forms), "errors": []},
        lambda: [*evidence_lines(forms), *(reason_lines(forms) if with_reasons else ())],
    )


def _say_rules(forms: list[Instruction]) -> int:
    from ..views.rule_table import rule_documents, rule_lines, rule_rows

    rows = rule_rows(forms)
    return deliver(lambda: {"rules": rule_documents(rows), "errors": []}, lambda: rule_lines(rows))


def _say_promises(forms: list[Instruction]) -> int:
    import json
    from importlib.resources import files

    from ..views import promises
    from ..views.promises.promises import promises_document, promises_lines

    statements = json.loads(files(promises).joinpath("statements.json").read_text(encoding="utf-8"))
    return deliver(
        lambda: {**promises_document(forms, statements), "errors": []},
        lambda: promises_lines(forms, statements),
    )


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
