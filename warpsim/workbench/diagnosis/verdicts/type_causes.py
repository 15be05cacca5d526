"""Arrays whose elements are read as another type: f16 as bf16, e4m3 as e5m2, s8 as u8.

The array's own dtype says what its elements are. Claimed where the instruction that reads them so gives every
output as expected. Knows types; does not know places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import WarpsimError
from ....isa.formats import FORMATS
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....machine.opcodes.matrix.wmma import product
from ....ptx.decode import decode
from ....sums.execution.pipeline import execute_inputs
from ..origins.element_origins import OperandOrigins, Origins
from .hypotheses import number_of
from .launch_causes import BY_TAGS, Cause
from .matrix_hooks import MatrixHook, MatrixStep
from .tried_causes import Trial

Array = npt.NDArray[Any]


class Retyped(MatrixHook):
    """A launch in which some statements are other instructions, by their number."""

    def __init__(self, forms: Mapping[int, Instruction]) -> None:
        super().__init__()
        self._forms = forms

    def of_registers(self, step: MatrixStep, inputs: Inputs) -> Array:
        """Return D of mma and wgmma."""
        return execute_inputs(self._forms.get(step.pc, step.form), inputs)

    def of_fragments(self, step: MatrixStep, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma."""
        form = self._forms.get(step.pc, step.form)
        return product(execute_inputs, form, codes["a"], codes["b"], codes["c"])


def type_causes(trial: Trial, origins: Origins) -> tuple[list[Cause], list[Cause]]:
    """Return types that are not those of the arrays: what is confirmed, and what is not."""
    launch, forms = trial.launch, dict[int, Instruction]()
    causes: dict[tuple[str, str], tuple[OperandOrigins, str]] = {}
    for given in origins.statements:
        own = {role: name for role in "ab" if role in given and (name := _own_type(given[role]))}
        if not own:
            continue
        operand = next(iter(given.values())).operand.given
        other = _retyped(operand.instruction, own)
        if other is not None:
            forms[number_of(launch, operand.location)] = other
        for role, name in own.items():
            assert given[role].buffer is not None
            causes.setdefault((role, name), (given[role], name))
    if not causes:
        return [], []
    left = trial.wrong(Retyped(forms)) if forms else None
    if left == 0:
        evidence = f"{BY_TAGS}; with the type of the array, every output is as expected"
        return [_cause(traced, name, evidence) for traced, name in causes.values()], []
    evidence = f"{BY_TAGS}; located: with the type of the array {left} elements of outputs are still wrong"
    return [], [_cause(traced, name, evidence) for traced, name in causes.values()]


def _cause(traced: OperandOrigins, name: str, evidence: str) -> Cause:
    buffer, form = traced.buffer, traced.operand.instruction
    assert buffer is not None
    read = form.format(traced.role).name
    return Cause(
        kind="type",
        message=f"operand {traced.role} of the matrix instruction: {buffer.name} is {buffer.dtype}, but is "
        f"read as {read}",
        location=traced.operand.given.location,
        evidence=evidence,
        operand=traced.role,
        fix=f"use the instruction with .{name} for operand {traced.role}, or convert {buffer.name} to {read}",
    )


def _own_type(traced: OperandOrigins) -> str:
    """Return the PTX type of an array, where it is read as another of its kind and size; else empty."""
    buffer, role = traced.buffer, traced.role
    if buffer is None or traced.operand.moved.mean() == 0:
        return ""
    read = traced.operand.instruction.format(role)
    if np.dtype(read.dtype) == buffer.dtype or buffer.dtype.kind == "u" or _raw(read.dtype, buffer.dtype):
        return ""
    names = (name for name, known in FORMATS.items() if np.dtype(known.dtype) == buffer.dtype)
    return next((name for name in names if FORMATS[name].bits == read.bits), "")


def _raw(read: npt.DTypeLike, given: np.dtype[Any]) -> bool:
    """Return whether integers stand for bytes of floating-point elements, or the other way round."""
    return (np.dtype(read).kind in "iu") != (given.kind in "iu")


def _retyped(form: Instruction, own: Mapping[str, str]) -> Instruction | None:
    """Return the instruction that reads A and B as their own types; None where there is none."""
    words = form.mnemonic.split(".")
    pair = [form.a.name, form.b.name]
    places = [at for at in range(len(words) - 1) if words[at : at + 2] == pair]
    if not places:
        return None
    words[places[0] : places[0] + 2] = [own.get("a", pair[0]), own.get("b", pair[1])]
    try:
        return decode(".".join(words), target=form.target)
    except WarpsimError:
        return None
