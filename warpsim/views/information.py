"""What is known of a form: registers, metadata, targets, arithmetic and evidence, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ..architectures import ARCHITECTURES, Evidence, Rule, rule_of
from ..instruction import Instruction

Document = dict[str, Any]


def version_text(version: tuple[int, int]) -> str:
    """``(8, 5)`` as ``8.5``."""
    return ".".join(str(part) for part in version)


def targets_text(targets: Iterable[str]) -> str:
    """Targets in order, ``sm_80 and later`` where every later one is among them."""
    names = [name for name in ARCHITECTURES if name in targets]
    every = list(ARCHITECTURES)
    start = every.index(names[0])
    if len(names) > 1 and names == every[start:]:
        return f"{names[0]} and later"
    return ", ".join(names)


def evidence_document(evidence: Evidence) -> Document:
    """Label, detail, chips and outputs of an evidence record."""
    return asdict(evidence)


def rule_document(rule: Rule) -> Document:
    """The rule's name and parameters, without its evidence."""
    parameters = asdict(rule)
    parameters.pop("evidence")
    step = parameters.get("step")
    if step:
        step.pop("evidence")
    return {"rule": type(rule).__name__, **parameters}


def rule_on(form: Instruction, target: str) -> Rule:
    """The rule of a form on one of its targets."""
    result = form.d.name
    return rule_of(target, form.family.rules, form.operation, result, sparse=form.sparse)


def form_document(form: Instruction) -> Document:
    """Everything about one form; its rules on its target, or on every target it is legal on."""
    targets = [form.target] if form.target else [name for name in ARCHITECTURES if name in form.targets]
    document: Document = {
        "mnemonic": form.mnemonic,
        "family": form.family.name,
        "shape": {"m": form.shape.m, "n": form.shape.n, "k": form.shape.k},
        "formats": {operand: form.format(operand).name for operand in "abcd"},
        "registers": form.registers,
        "register_bits": form.register_bits,
        "since": version_text(form.since),
        "targets": [name for name in ARCHITECTURES if name in form.targets],
        "rules": {name: _target_document(form, name) for name in targets},
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


def rule_text(rule: Rule) -> str:
    """The rule on one line: its name and parameters."""
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
