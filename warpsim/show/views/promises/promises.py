"""The page of promises: what is guaranteed, inferred and refused.

Promises are those that are stated (promises_stated.py) and those that tables make (promises_derived.py). What
tests them is in tools/promises of a checkout. Does not read files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from textwrap import wrap

from ....isa.instruction import Instruction
from ....workbench.explanation.information import Document
from .promise import LABELS, Promise
from .promises_derived import Statement, refused_promises, result_promises, statement_promises
from .promises_stated import BITS, ERRORS, FORMS, LIMITS, RESULTS, STATED, STATEMENTS

SECTIONS = (BITS, RESULTS, STATEMENTS, FORMS, ERRORS, LIMITS)
_WIDTH = 110
_INDENT = max(map(len, LABELS)) + 2


def promises(forms: Iterable[Instruction], statements: Iterable[Statement]) -> list[Promise]:
    """Return all of them, by section and label; of matrix instructions those of the forms."""
    found = (*STATED, *result_promises(forms), *statement_promises(statements), *refused_promises())
    order = list(LABELS)
    return sorted(found, key=lambda item: (SECTIONS.index(item.section), order.index(item.label)))


def promises_lines(forms: Iterable[Instruction], statements: Iterable[Statement]) -> Iterator[str]:
    """Yield the page: what labels mean, then every promise."""
    yield from label_lines()
    for section, kept in groupby(promises(forms, statements), key=lambda entry: entry.section):
        yield from ("", section)
        for item in kept:
            yield from block(item.label, item.what, "  ")


def label_lines() -> Iterator[str]:
    """Yield every label with its meaning."""
    for label, meaning in LABELS.items():
        yield from block(label, meaning, "")


def block(label: str, text: str, margin: str) -> list[str]:
    """Return text beside a label, in lines of a page's width."""
    first, rest = f"{margin}{label:{_INDENT}}", margin + " " * _INDENT
    return wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def promises_document(forms: Iterable[Instruction], statements: Iterable[Statement]) -> Document:
    """Return the page as JSON-ready data."""
    found = promises(forms, statements)
    return {
        "labels": LABELS,
        "promises": [{"section": item.section, "label": item.label, "what": item.what} for item in found],
    }
