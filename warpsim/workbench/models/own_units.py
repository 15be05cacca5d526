"""The rule of a unit that no chip has: the numbers of a chip's rule, changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...base.errors import OperandError
from ...isa.comparisons import Evidence
from ...isa.formats import FORMATS
from ...isa.numerals import whole_number
from ...isa.rules import Output, Rule
from ..generation.separation import changed_rule

_OWN = Evidence(label="none", detail="The numbers of the rule were given: no chip has this unit.")
_ROUNDINGS = {"nearest": True, "zero": False}


def unit_rule(rule: Rule, changes: str) -> Rule:
    """Return a rule with other numbers, such as ``fraction_bits=23,precision=22,rounding=nearest``.

    ``precision`` and ``rounding`` ("nearest", "zero") are those of each rounded sum. Raises OperandError.
    """
    step: Any = rule.aligned or rule
    output: Output | None = getattr(step, "output", None)
    numbers = list[str]()
    for change in changes.split(","):
        key, _, value = change.partition("=")
        if key in ("precision", "rounding") and output is not None:
            output = _changed_output(output, key, value)
        else:
            numbers.append(change)
    if numbers:
        rule = changed_rule(
            rule, ",".join(numbers), changes, others=("precision", "rounding") if output else ()
        )
    if output is not None:
        rule = rule.realigned(output=output)
    return replace(rule, evidence=_OWN)


def _changed_output(output: Output, key: str, value: str) -> Output:
    if key == "rounding":
        if value not in _ROUNDINGS:
            raise OperandError(f"rounding={value[:20]}: expected {' or '.join(_ROUNDINGS)}")
        return replace(output, nearest=_ROUNDINGS[value])
    most, precision = FORMATS[output.format].fraction_bits + 1, whole_number(value)
    if precision is None or not 1 <= precision <= most:
        raise OperandError(f"precision={value[:20]}: {output.format} has 1 to {most} significant bits")
    return replace(output, precision=precision)
