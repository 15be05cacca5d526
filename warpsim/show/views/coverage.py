"""Coverage and separations as text lines and JSON documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.text_columns import words
from ...isa.codes import matrix_of
from ...isa.formats import Format

if TYPE_CHECKING:
    from ...workbench.generation.coverage.vector_coverage import Coverage
    from ...workbench.generation.separation import Separation


def coverage_lines(coverage: Coverage) -> list[str]:
    """Return a line a group of bins, then every bin that was missed, then unreachable bins with reasons."""
    reachable = coverage.reachable
    hit = len(reachable) - len(coverage.missed)
    rows = [["  bins", "hit", "of", "fewest cases", "of bin"], *_group_rows(coverage)]
    lines = [
        f"coverage of {coverage.cases:,} cases: {hit} of {len(reachable)} reachable bins hit",
        *words(rows),
    ]
    lines += [f"  missed: {name}" for name in coverage.missed]
    if coverage.unreachable:
        lines.append(f"unreachable: {len(coverage.unreachable)} bins")
        lines += [f"  {line}" for line in words(list(_reasons(coverage)))]
    return lines


def _group_rows(coverage: Coverage) -> Iterator[list[str]]:
    groups: dict[str, list[str]] = {}
    for name in coverage.reachable:
        groups.setdefault(_group(name), []).append(name)
    for group, names in groups.items():
        hits = {name: coverage.hits[name].cases for name in names if name in coverage.hits}
        rarest = min(hits, key=lambda name: hits[name], default="")
        fewest = f"{hits[rarest]:,}" if rarest else "-"
        yield [f"  {group}", str(len(hits)), str(len(names)), fewest, rarest.removeprefix(group).lstrip(": ")]


def _group(name: str) -> str:
    """Return the common part of names of bins: the text before the colon, or the immediate's name."""
    head, colon, _ = name.partition(":")
    return head if colon else name.rpartition(" ")[0]


def _reasons(coverage: Coverage) -> Iterator[list[str]]:
    """Yield bins out of reach; neighbours of one kind and reason on one line."""
    for (group, reason), bins in groupby(
        coverage.unreachable.items(), lambda item: (_group(item[0]), item[1])
    ):
        names = [name.removeprefix(group).lstrip(": ") for name, _ in bins]
        yield [f"{group}: {', '.join(names)}", reason]


def coverage_document(coverage: Coverage) -> dict[str, Any]:
    """Return the same as a JSON document."""
    return {
        "cases": coverage.cases,
        "reachable": len(coverage.reachable),
        "complete": coverage.complete,
        "hit": {
            name: {"cases": hits.cases, "outputs": hits.outputs, "first_case": hits.first}
            for name in coverage.bins  # in their order, which no batch decides
            if (hits := coverage.hits.get(name))
        },
        "missed": coverage.missed,
        "unreachable": coverage.unreachable,
    }


# --- separations -----------------------------------------------------------------------------------


def separation_lines(found: Separation) -> list[str]:
    """Return what each case is made of, and the D[0,0] of both models."""
    return [f"case {case}: {comment}" for case, comment in enumerate(separation_comments(found))]


def separation_comments(found: Separation) -> list[str]:
    """Return one line a case: the sum, and what the models make of it."""
    form = found.models[0].instruction
    comments, a_of = [], "a stored" if form.sparse else "a"
    for (c, products), first, second in zip(found.terms, found.first, found.second, strict=True):
        sum_of = [f"{a_of}[{k}] {_value(a, form.a)} * b {_value(b, form.b)}" for k, a, b in products]
        sum_of += [f"c {_value(c, form.c)}"] if c or not products else []
        results = (
            f"{model.name} {_value(int(code), form.d)} ({int(code):#x})"
            for model, code in zip(found.models, (first, second), strict=True)
        )
        comments.append(f"{' + '.join(sum_of)} = {', '.join(results)}")
    return comments


def _value(code: int, element: Format) -> str:
    value = matrix_of(np.array([code], element.code_dtype), element)[0]
    if not element.is_float:
        return str(int(value))
    return re.sub(r"\.?0*p", "p", float(value).hex()) if np.isfinite(float(value)) else str(float(value))


def separation_document(found: Separation) -> dict[str, Any]:
    """Return the same as a JSON document, in codes."""
    return {
        "models": [model.name for model in found.models],
        "cases": [
            {
                "c": c,
                "products": [{"k": k, "a": a, "b": b} for k, a, b in products],
                "d": [int(first), int(second)],
            }
            for (c, products), first, second in zip(found.terms, found.first, found.second, strict=True)
        ],
    }
