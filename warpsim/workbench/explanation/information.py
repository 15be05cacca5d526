"""What is known of a form: registers, metadata, targets, arithmetic and evidence, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from ...base.text_columns import words
from ...isa.architectures import ARCHITECTURES, rule_of, targets_text
from ...isa.comparisons import Evidence
from ...isa.instruction import Instruction
from ...isa.rules import Rule

Document = dict[str, Any]

# --- text ------------------------------------------------------------------------------------------


def forms_lines(forms: Sequence[Instruction]) -> list[str]:
    """Return a table of forms, a line each, and their number; evidence too where they have a target."""
    header = ["form", "registers d/a/b/c", "PTX", "targets"]
    rows = [_form_cells(form) for form in forms]
    if forms and forms[0].target:
        header.append("evidence")
    return [*words([header, *rows]), f"{len(forms)} forms"]


def _form_cells(form: Instruction) -> list[str]:
    counts = "/".join(str(form.registers.get(operand, "-")) for operand in "dabc")
    cells = [form.mnemonic, counts, version_text(form.since), targets_text(form.targets)]
    return [*cells, rule_on(form, form.target).evidence.label] if form.target else cells


def form_lines(form: Instruction) -> Iterator[str]:
    """Yield one form: shape, registers, metadata, scales, and its arithmetic with its evidence by target."""
    yield form.mnemonic
    yield f"  shape      {form.shape}" + (f", {form.stored_k} stored columns" if form.sparse else "")
    for operand in filter(form.has_registers, "dabc"):
        rows, columns = form.matrix_shape(operand)
        cells = form.descriptor is not None
        unit = "columns of tensor memory" if cells else f"registers of {form.register_bits} bits"
        yield (
            f"  {operand}          {form.held(operand).words} {unit}: "
            f"{rows} x {columns} {form.format(operand)}, {form.storage(operand).bits} bits an element"
        )
    if form.pattern and form.descriptor is not None:
        yield f"  metadata   {form.registers['e']} columns of tensor memory, {form.pattern} sparsity"
    elif form.pattern:
        selectors = ", ".join(map(str, form.selectors))
        yield f"  metadata   1 register, {form.pattern} sparsity, selector {selectors}"
    if form.scale:
        yield f"  scales     {form.scale_chunks} of {form.scale} a row of A and a column of B"
    yield f"  PTX        {version_text(form.since)}, on {targets_text(form.targets)}"
    for rule, targets in groupby(_targets(form), lambda target: rule_on(form, target)):
        yield f"  {', '.join(targets):10} {rule_text(rule)}"
        yield f"             {rule.evidence}"


def _targets(form: Instruction) -> list[str]:
    """Return its target, or in order all that it is legal on."""
    return [form.target] if form.target else [name for name in ARCHITECTURES if name in form.targets]


def version_text(version: tuple[int, int]) -> str:
    """Return ``(8, 5)`` as ``8.5``."""
    return ".".join(str(part) for part in version)


def rule_text(rule: Rule) -> str:
    """Return the rule on one line: its name and parameters."""
    document = rule_document(rule)
    name = document.pop("rule")
    parameters = ", ".join(f"{key} {_short(value)}" for key, value in document.items())
    return f"{name}({parameters})"


def _short(value: Any) -> str:
    if isinstance(value, dict) and "precision" in value:
        rounding = "nearest even" if value["nearest"] else "toward zero"
        return f"{value['format']} ({value['precision']} bits, {rounding})"
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} {_short(inner)}" for key, inner in value.items()) + ")"
    return str(value)


# --- data ------------------------------------------------------------------------------------------


def evidence_document(evidence: Evidence) -> Document:
    """Label, detail, chips and outputs of an evidence record."""
    return {
        "label": evidence.label,
        "detail": evidence.detail,
        "chips": evidence.chips,
        "outputs": evidence.outputs,
    }


def rule_document(rule: Rule) -> Document:
    """Return the rule's name and parameters, without its evidence."""
    parameters = asdict(rule)
    parameters.pop("evidence")
    step = parameters.get("step")
    if step:
        step.pop("evidence")
    return {"rule": type(rule).__name__, **parameters}


def rule_on(form: Instruction, target: str, *, with_c: bool = True) -> Rule:
    """Return the rule of a form on one of its targets, with the evidence of it with or without C."""
    return rule_of(target, form.family.rules, form.product, with_c=with_c, words=form.issue)


def form_document(form: Instruction) -> Document:
    """Return everything about one form; its rules on its target, or on every target it is legal on."""
    document: Document = {
        "mnemonic": form.mnemonic,
        "family": form.family.name,
        "shape": {"m": form.shape.m, "n": form.shape.n, "k": form.shape.k},
        "target": form.target,
        "formats": {operand: form.format(operand).name for operand in "abcd"},
        "registers": form.registers,
        "register_bits": form.register_bits,
        "since": version_text(form.since),
        "targets": [name for name in ARCHITECTURES if name in form.targets],
        "rules": {name: _target_document(form, name) for name in _targets(form)},
    }
    if form.pattern:
        document["sparsity"] = form.pattern.name
        document["stored_k"] = form.stored_k
        document["selectors"] = list(form.selectors)
    if form.scale:
        document["scale"] = {"format": form.scale.name, "chunks": form.scale_chunks}
    return document


def _target_document(form: Instruction, target: str) -> Document:
    rule = rule_on(form, target)
    return {**rule_document(rule), "evidence": evidence_document(rule.evidence)}
