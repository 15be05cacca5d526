"""Trying faults: does any corner case give another D?

A fault of a rule runs through the kernels, one of reference.py through a copy of the module with the line
changed, output by output until the first that differs.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import warpsim
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.sums.arithmetic import reference
from warpsim.sums.arithmetic.numerics import compute
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.generation.cases.corners import theme_chunk
from warpsim.workbench.generation.coverage.vector_coverage import gathered
from warpsim.workbench.vectors.sets import VectorSet

from .faults import Fault

CHUNKS = 4  # of corner cases that a fault may survive
_SOURCE = Path(reference.__file__).read_text(encoding="utf-8")
_SIDE = 2  # rows and columns of a tile that are tried at a time


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a fault: the case that caught it and its theme, or None; outputs looked at."""

    fault: Fault
    case: int | None
    theme: str
    outputs: int

    @property
    def caught(self) -> bool:
        """Whether any output differed."""
        return self.case is not None


def mutated(fault: Fault) -> types.ModuleType:
    """Return reference.py with the fault's line changed; raise ValueError unless its text occurs once."""
    if _SOURCE.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: {fault.old!r} occurs {_SOURCE.count(fault.old)} times")
    module = types.ModuleType("warpsim.sums.arithmetic.mutated_reference")
    module.__package__ = reference.__package__
    exec(compile(_SOURCE.replace(fault.old, fault.new), fault.name, "exec"), vars(module))
    return module


def try_fault(fault: Fault, chunks: int = CHUNKS) -> Verdict:
    """Look for a corner case that notices the fault."""
    looked = 0
    module = None if fault.numbers else mutated(fault)
    for index in range(chunks):
        vectors, operands, d = _chunk(fault.form, fault.target, index)
        tiles_a_case = vectors.instruction.products
        for tile, count, differs in _looks(fault, module, vectors.instruction, operands, d):
            looked += count
            if differs:
                case = tile // tiles_a_case
                return Verdict(
                    fault=fault, case=index * len(vectors) + case, theme=vectors.labels[case], outputs=looked
                )
    return Verdict(fault=fault, case=None, theme="", outputs=looked)


@cache
def _chunk(form: str, target: str, index: int) -> tuple[VectorSet, Operands, Any]:
    """Return a chunk of corner cases, its operands in the order of the cases, and D as the model has it."""
    vectors = theme_chunk(warpsim.decode(form, target=target), "corner", 0, index)
    parts = [(part.cases, gathered(vectors.instruction, part)) for part in vectors.inputs()]
    names = ("a", "b", "c", "columns", "scale_a", "scale_b")
    cases = np.concatenate([np.arange(len(vectors))[which] for which, _ in parts])
    order = np.argsort(np.repeat(cases, vectors.instruction.products), kind="stable")
    arrays: dict[str, Any] = {
        name: None
        if getattr(parts[0][1], name) is None
        else np.concatenate([getattr(part, name) for _, part in parts])[order]
        for name in names
    }
    operands = Operands(product=vectors.instruction.product, **arrays)
    return vectors, operands, compute(operands, rule_for(vectors.instruction))


def _looks(
    fault: Fault, module: types.ModuleType | None, form: Instruction, operands: Operands, d: Any
) -> Iterator[tuple[int, int, bool]]:
    """Yield tile, outputs looked at and whether any differs; every tile a little before any tile whole."""
    rule = rule_for(form)
    if module is None:
        wrong = (compute(operands, rule.realigned(**fault.numbers)) != d).any((1, 2))
        first = int(np.argmax(wrong))
        yield first, d.size, bool(wrong.any())
        return
    tiles, rows, columns = d.shape
    for corner in range(0, max(rows, columns), _SIDE):
        row, column = corner % rows, corner % columns
        for tile in range(tiles):
            part = _part(operands, tile, slice(row, row + _SIDE), slice(column, column + _SIDE))
            expected = d[tile : tile + 1, row : row + _SIDE, column : column + _SIDE]
            yield tile, expected.size, bool((module.compute(part, rule) != expected).any())


def _part(operands: Operands, tile: int, rows: slice, columns: slice) -> Operands:
    one = slice(tile, tile + 1)
    optional: dict[str, Any] = {}
    if operands.columns is not None:
        optional["columns"] = operands.columns[one, rows]
    if operands.scale_a is not None and operands.scale_b is not None:
        optional |= {"scale_a": operands.scale_a[one, rows], "scale_b": operands.scale_b[one, :, columns]}
    return Operands(
        product=operands.product,
        a=operands.a[one, rows],
        b=operands.b[one, :, columns],
        c=operands.c[one, rows, columns],
        **optional,
    )
