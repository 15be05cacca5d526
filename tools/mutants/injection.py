"""Faults carried out: result codes of a batch as a faulty unit has them.

Faults of lines run in copies of four modules of workbench/generation/sums, made from their text; Numba
compiles nothing. Everything else goes through the kernels, with other operands or another rule.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import warpsim
from warpsim.isa.products import Operands
from warpsim.sums.arithmetic.numerics import compute
from warpsim.workbench.generation.sums.limits import Limits

from .behaviour import Behaviour, Edit

MODULES = ("exact_numbers", "terms", "factors", "summing")  # in the order of their imports
_FOLDER = Path(warpsim.__file__).parent / "workbench" / "generation" / "sums"
_PACKAGE = "faulty_generation"
ARRAYS = ("a", "b", "c", "columns", "scale_a", "scale_b")


@cache
def _source(module: str) -> str:
    text = (_FOLDER / f"{module}.py").read_text(encoding="utf-8")
    text = text.replace("from ....", "from warpsim.")
    for name in MODULES:
        text = text.replace(f"from .{name} import", f"from {_PACKAGE}.{name} import")
    return text


@cache
def faulty_sums(edits: tuple[Edit, ...]) -> types.ModuleType:
    """Return a copy of summing.py with the lines changed, there or in what it imports.

    Raise ValueError unless each ``old`` occurs once.
    """
    made: dict[str, types.ModuleType] = {}
    for name in MODULES:
        text = _source(name)
        for edit in edits:
            if edit.module == name:
                if text.count(edit.old) != 1:
                    raise ValueError(f"{name}.py: {edit.old!r} occurs {text.count(edit.old)} times")
                text = text.replace(edit.old, edit.new)
        module = types.ModuleType(f"{_PACKAGE}.{name}")
        made[module.__name__] = sys.modules[module.__name__] = module
        exec(compile(text, f"{name}.py with a fault", "exec"), vars(module))
    for name in made:
        del sys.modules[name]
    return made[f"{_PACKAGE}.summing"]


def wrong_codes(fault: Behaviour, limits: Limits, operands: Operands) -> Any:
    """Return the codes of D as the faulty unit has them; ``(tiles, m, n)``."""
    if fault.operands is not None:
        return compute(fault.operands(operands), limits.rule)
    if fault.numbers is not None:
        return compute(operands, limits.rule.realigned(**fault.numbers(limits)))
    edits = fault.edits(limits) if callable(fault.edits) else fault.edits
    with np.errstate(all="ignore"):
        return faulty_sums(edits).summed(operands, limits.rule).code


def slices(operands: Operands, first: int, rest: int) -> Iterator[tuple[slice, Operands]]:
    """Yield the batch in slices, a small slice first: most faults show there."""
    start, size = 0, first
    while start < len(operands.c):
        cut = slice(start, start + size)
        arrays: dict[str, Any] = {
            name: None if getattr(operands, name) is None else getattr(operands, name)[cut] for name in ARRAYS
        }
        yield cut, Operands(product=operands.product, **arrays)
        start, size = start + size, rest
