"""Lint of the registers of a sparse instruction: what is undefined, ignored, or probably not meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import OperandError
from ....isa.codes import codes_of
from ....isa.fragments import checked_registers, require_sparse, shaped
from ....isa.instruction import Instruction
from ....ptx.decode import Form, resolved
from ....ptx.qualifiers import PTX_VERSION
from .rules import RULES, selector_rule
from .subject import Finding, Subject

__all__ = ["Finding", "lint"]


@in_default_environment
def lint(
    instruction: Form,
    *,
    e: npt.ArrayLike | None = None,
    selector: int = 0,
    a: npt.ArrayLike | None = None,
    b: npt.ArrayLike | None = None,
    matrix: npt.ArrayLike | None = None,
    target: str | None = None,
    version: tuple[int, int] = PTX_VERSION,
) -> tuple[Finding, ...]:
    """Return findings on the registers of a sparse instruction, in the order of the rules; empty if all is
    well.

    ``e``, ``a`` and ``b`` are registers ``(..., lanes, registers)``, of which any may be left out;
    ``matrix`` is logical A ``(..., m, k)``, and may also be given as ``a``. ``version`` is the PTX version
    of the text. Raises OperandError for a dense instruction, shapes and dtypes.
    """
    form = resolved(instruction, target)
    require_sparse(form)
    given = {"e": e, "a": a, "b": b, "matrix": matrix}
    if a is not None and np.shape(a)[-2:] == (form.shape.m, form.shape.k):
        given |= {"a": None, "matrix": a if matrix is None else matrix}
    arrays = {name: _array(form, name, value) for name, value in given.items() if value is not None}
    subject = Subject(instruction=form, selector=selector, version=version)
    wrong = tuple(selector_rule(subject))
    return wrong or tuple(finding for tile in _tiles(subject, arrays) for finding in tile)


def _array(form: Instruction, name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    if name != "matrix":
        return checked_registers(value, form, name)
    return shaped(codes_of(value, form.a, "A"), (form.shape.m, form.shape.k), "A")


def _tiles(subject: Subject, arrays: dict[str, npt.NDArray[Any]]) -> Iterator[list[Finding]]:
    """Yield the findings of every tile; raises OperandError where leading axes do not fit together."""
    try:
        lead = np.broadcast_shapes(*(array.shape[:-2] for array in arrays.values()))
    except ValueError:
        raise OperandError("the leading axes (tiles) of the arrays do not broadcast together") from None
    full: dict[str, Any] = {
        name: np.broadcast_to(array, (*lead, *array.shape[-2:])) for name, array in arrays.items()
    }
    for tile in np.ndindex(lead):
        one_tile = replace(subject, **{name: array[tile] for name, array in full.items()})
        findings = (
            finding
            for needs, rule in RULES
            if all(getattr(one_tile, name) is not None for name in needs)
            for finding in rule(one_tile)
        )
        yield [replace(finding, tile=tile or None) for finding in findings]
