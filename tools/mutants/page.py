"""The table of faults and forms as a page: what was caught before and now, what is proven to be no fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Verdicts = list[dict[str, Any]]  # FormVerdicts as dictionaries

_HEAD = """# Faults that corner vectors catch, on every pair of types

Made by `{command}`. Each fault is put into the arithmetic of
one form of every pair of types, family and rule that it concerns, and the default corner set of that form (as
many cases as full coverage takes) is asked whether any D differs. *Proven* is where no operands whatever show
it: the proofs are below.{earlier}

{summary}

"""
_EARLIER = """ *Before* are the default sets as they were when bins of special values counted wherever
an Inf or a NaN took part; what is proven now is left out."""


def page(verdicts: Verdicts, before: Verdicts, command: str) -> str:
    """Return the whole page; ``before`` may be empty."""
    faults = _names(verdicts)
    rows = [_row(name, verdicts, before) for name in faults]
    title = ["fault", "forms", "caught", "proven", "survives"]
    title += ["survived before"] if before else []
    table = _table([title, *rows])
    head = _HEAD.format(
        command=command, earlier=_EARLIER if before else "", summary=_summary(verdicts, before, len(faults))
    )
    return head + "\n".join([*table, *_proofs(verdicts)]) + "\n"


def totals(verdicts: Verdicts) -> tuple[int, int, int]:
    """Count the faults on forms: caught, proven to be none, surviving."""
    return (
        sum(len(one["caught"]) for one in verdicts),
        sum(len(one["proven"]) for one in verdicts),
        sum(len(one["survived"]) for one in verdicts),
    )


def _summary(verdicts: Verdicts, before: Verdicts, faults: int) -> str:
    caught, proven, survived = totals(verdicts)
    cases = sum(one["cases"] for one in verdicts)
    text = (
        f"{faults} faults, {len(verdicts)} forms, {cases:,} cases: {caught + proven + survived:,} faults on "
        f"forms, **{caught:,} caught, {proven:,} proven to be none, {survived:,} survive**."
    )
    if before:
        same = _both(verdicts, before)
        survived_before = sum(len(_unproven(old, new)) for new, old in same)
        text += f" Before, on {len(same)} of the forms, {survived_before:,} survived."
    return text


def _both(verdicts: Verdicts, before: Verdicts) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    known = {(one["mnemonic"], one["target"]): one for one in before}
    keys = ((one, (one["mnemonic"], one["target"])) for one in verdicts)
    return [(one, known[key]) for one, key in keys if key in known]


def _unproven(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return what survived then, without faults that no longer concern the form or are proven now."""
    return [name for name in old["survived"] if name in new["caught"] or name in new["survived"]]


def _names(verdicts: Verdicts) -> list[str]:
    names: dict[str, None] = {}
    for one in verdicts:
        names |= dict.fromkeys([*one["caught"], *one["proven"], *one["survived"]])
    return sorted(names)


def _row(name: str, verdicts: Verdicts, before: Verdicts) -> list[str]:
    counts = [sum(name in one[what] for one in verdicts) for what in ("caught", "proven", "survived")]
    row = [name, str(sum(counts)), *map(str, counts)]
    if before:
        row.append(str(sum(name in _unproven(old, new) for new, old in _both(verdicts, before))))
    return [cell if cell != "0" else "" for cell in row]


def _table(rows: list[list[str]]) -> Iterator[str]:
    """Yield a Markdown table, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for index, row in enumerate(rows):
        cells = [cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in
                 enumerate(zip(row, widths, strict=True))]  # fmt: skip
        yield f"| {' | '.join(cells)} |"
        if not index:
            rules = (
                "-" * width if not place else "-" * (width - 1) + ":" for place, width in enumerate(widths)
            )
            yield f"| {' | '.join(rules)} |"


def _proofs(verdicts: Verdicts) -> Iterator[str]:
    """Yield every proof, with the faults and the number of forms that it is for."""
    found: dict[str, dict[str, int]] = {}
    for one in verdicts:
        for name, proof in one["proven"].items():
            counts = found.setdefault(name, {})
            counts[proof] = counts.get(proof, 0) + 1
    yield from ("", "## Proofs", "")
    for name in sorted(found):
        yield f"- {name}: {'; '.join(_counted(found[name].items()))}."
    survivors = [(one["target"], one["mnemonic"], name) for one in verdicts for name in one["survived"]]
    if survivors:
        yield from ("", "## Survivors", "")
        yield from (f"- {target} `{mnemonic}`: {name}" for target, mnemonic, name in survivors)


def _counted(proofs: Iterable[tuple[str, int]]) -> Iterator[str]:
    for proof, count in proofs:
        yield f"{proof} ({count} {'form' if count == 1 else 'forms'})"
