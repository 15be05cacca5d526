"""Why D of a tcgen05.mma came out as it did: each single change of what it reads, executed again.

Changes are those of fields of both descriptors, of the places of metadata and scale factors, and of the
layout in which D was taken from tensor memory. Knows one execution; diagnose.py searches what registers hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import OperandError, WarpsimError
from ....isa.descriptors.instruction_descriptor import FIELDS
from ....isa.descriptors.tensor_descriptor import SWIZZLES, TensorDescriptor
from ....isa.families.tcgen05 import form_of, spelling_of
from ....isa.families.tcgen05_operands import descriptor_of, letter_of
from ....isa.instruction import Instruction
from ....isa.layouts.tensor_memory import COLUMN, CTA, LANE, LANES, accumulator
from ....isa.operand_places.placements import Inputs, arrays_of, part_of
from ....isa.operand_places.places import tensor_cells
from ....isa.registers import Words
from ....sums.execution.pipeline import execute_inputs
from ..descriptors.descriptor_views import DescriptorView, differences, of_words
from .diagnose import Diagnosis, diagnose_inputs

_CASES = 4  # wrong executions of a set in which changes are tried


class Change(NamedTuple):
    """A single change: what it is, and the instruction and the inputs with it."""

    name: str
    instruction: Instruction
    inputs: Inputs


@dataclass(frozen=True, kw_only=True)
class TensorDiagnosis:
    """The result of a search: ``wrong`` of ``elements`` of D differ from what should have come out.

    ``matches`` say which single changes give every bit, of ``tried``.
    """

    instruction: Instruction
    wrong: int
    elements: int
    matches: tuple[str, ...]
    tried: int

    @property
    def as_expected(self) -> bool:
        """Whether D is right already."""
        return self.wrong == 0

    @property
    def found(self) -> bool:
        """Whether some change gives every bit."""
        return bool(self.matches)

    def document(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        found = {"wrong": self.wrong, "elements": self.elements, "tried": self.tried}
        return {"mnemonic": self.instruction.mnemonic, "matches": list(self.matches)} | found

    def lines(self) -> list[str]:
        """Return the result as lines of text."""
        return str(self).split("\n")

    def __str__(self) -> str:
        if self.as_expected:
            return "D is as expected, bit for bit"
        lines = [f"D differs in {self.wrong:,} of {self.elements:,} elements"]
        lines += [f"{name}: the result matches bit for bit" for name in self.matches]
        return "\n".join(lines if self.matches else [*lines, f"none of {self.tried} changes gives every bit"])


@in_default_environment
def diagnose_tensor(instruction: Instruction, inputs: Inputs, d: npt.ArrayLike) -> TensorDiagnosis:
    """Return which single changes of a tcgen05.mma explain D, given as words of tensor memory ``(lanes,
    columns)``, or of each of several executions: then of the first that are wrong, with what explains all.

    Raises what executing raises, and OperandError for words of another shape.
    """
    actual = instruction.held("d").checked(d)
    expected = execute_inputs(instruction, inputs)
    if expected.shape != actual.shape or expected.ndim > 3:
        raise OperandError(
            f"D has shape {actual.shape}, but these operands of tcgen05.mma make {expected.shape}: at most "
            "one axis of executions is in front"
        )
    if expected.ndim == 3 and any(array.shape[:1] != expected.shape[:1] for array in arrays_of(inputs)):
        raise OperandError(
            "tcgen05.mma is diagnosed one execution at a time: all operands have an axis of them, or none"
        )
    if expected.ndim == 2:
        return _of_one(instruction, inputs, expected, actual)
    each = [
        _of_one(instruction, part_of(inputs, case), expected[case], actual[case])
        for case in np.flatnonzero((expected != actual).any(axis=(1, 2)))[:_CASES].tolist() or [0]
    ]
    common = [name for name in each[0].matches if all(name in other.matches for other in each)]
    return replace(
        each[0],
        wrong=sum(found.wrong for found in each),
        elements=sum(found.elements for found in each),
        matches=tuple(common),
    )


def _of_one(instruction: Instruction, inputs: Inputs, expected: Words, actual: Words) -> TensorDiagnosis:
    mask = np.uint32(instruction.d.mask)
    lane, column, _ = tensor_cells(instruction, "d").index
    differs = ((expected ^ actual) & mask)[lane, column] != 0
    matches, tried = [], 0
    for name, found in _outcomes(instruction, inputs, expected) if differs.any() else ():
        tried += 1
        if not (((found ^ actual) & mask)[lane, column] != 0).any():
            matches.append(name)
    return TensorDiagnosis(
        instruction=instruction,
        wrong=int(differs.sum()),
        elements=differs.size,
        matches=tuple(dict.fromkeys(matches)),
        tried=tried,
    )


def _outcomes(instruction: Instruction, inputs: Inputs, expected: Words) -> Iterator[tuple[str, Words]]:
    for change in changes(instruction, inputs):
        try:
            yield change.name, execute_inputs(change.instruction, change.inputs)
        except WarpsimError:
            continue
    # D whose elements were taken by the places of another layout and written by those of its own
    own = letter_of(instruction)
    lane, column, _ = tensor_cells(instruction, "d").index
    for letter in "ABCDEFG":
        layout = accumulator(letter, instruction.shape.n)
        if letter == own or layout.shape != lane.shape or layout.ctas * LANES > instruction.lanes:
            continue
        cells = layout.cells
        lanes, columns = cells[..., CTA] * LANES + cells[..., LANE], cells[..., COLUMN]
        if columns.max() >= expected.shape[1]:
            continue
        found = expected.copy()
        found[lane, column] = expected[lanes, columns]
        yield f"the epilogue reads layout {own} as {letter}", found
    if tensor_cells(instruction, "d").layout.half:
        rows = np.arange(len(lane))[:, None]
        found = expected.copy()
        found[lane, column] = expected[rows % LANES, column]
        yield f"the epilogue reads layout {own} without the gaps between its rows", found


def changes(instruction: Instruction, inputs: Inputs) -> Iterator[Change]:
    """Yield every single change of what an execution reads."""
    # other values of the fields of the instruction descriptor that change no shape
    word = descriptor_of(instruction)
    form = form_of(tuple(instruction.mnemonic.split(".")[1:]))
    fields = {field.attribute: field for field in FIELDS[word.of.group]}
    for attribute in (*_FIELDS, *_IDS):
        if attribute not in fields:
            continue
        field, own = fields[attribute], getattr(word, attribute)
        for value in range(1 << field.bits):
            if value == own:
                continue
            try:
                other = word.encode() & ~field.mask | value << field.lowest
                made = spelling_of(form, instruction.target).described(other)
            except WarpsimError:
                continue
            if "e" not in inputs.registers or inputs.registers["e"].shape[-1] >= made.held("e").words:
                yield Change(f"with {field.name} {value} instead of {own}", made, inputs)
    for operand in "ab":
        yield from _of_a_tile(instruction, inputs, operand)
    yield from _of_scales(instruction, inputs)
    read = "not read" if inputs.scale_d else "read"
    yield Change(f"D before was {read}", instruction, replace(inputs, scale_d=not inputs.scale_d))


# --- the instruction descriptor ----------------------------------------------------------------------

_FIELDS = ("selector", "a_type", "b_type", "negate_a", "negate_b", "transpose_a", "transpose_b", "scale_type")
_IDS = ("scale_a_id", "scale_b_id")


# --- shared-memory descriptors -----------------------------------------------------------------------


def _of_a_tile(instruction: Instruction, inputs: Inputs, operand: str) -> Iterator[Change]:
    words = inputs.descriptor(operand)
    if words is None or words.ndim:
        return
    tile, capital = TensorDescriptor.decode(int(words)), operand.upper()
    given = DescriptorView.of(tile)
    for _, view in of_words(given, tuple(SWIZZLES.values())):
        text = "; ".join(differences(given, view, of=f" of {capital}'s descriptor"))
        try:
            word = np.array(view.into(tile).encode(), np.uint64)
        except WarpsimError:
            continue
        first, second = (word, inputs.b_descriptor) if operand == "a" else (inputs.a_descriptor, word)
        yield Change(text, instruction, replace(inputs, a_descriptor=first, b_descriptor=second))


# --- scale factors -----------------------------------------------------------------------------------


def _of_scales(instruction: Instruction, inputs: Inputs) -> Iterator[Change]:
    """Yield factors of other blocks along K, and those of A and B exchanged."""
    words = inputs.registers
    if instruction.scale is None:
        return
    for side in "ab":
        name = f"scale_{side}"
        if name not in words or instruction.scale_chunks < 2:
            continue
        cells = tensor_cells(instruction, name)
        codes = cells.codes(cells.checked(words[name]))
        for block in range(instruction.scale_chunks):
            for other in range(instruction.scale_chunks):
                moved = codes.copy()
                moved[..., block] = codes[..., other]
                if other != block:
                    text = f"SF{side.upper()} of k block {other} is used in block {block}"
                    yield Change(
                        text,
                        instruction,
                        replace(inputs, registers={**inputs.registers, name: cells.scatter(moved)}),
                    )
    if {"scale_a", "scale_b"} <= words.keys() and words["scale_a"].shape == words["scale_b"].shape:
        both = words | {"scale_a": words["scale_b"], "scale_b": words["scale_a"]}
        yield Change("SFA and SFB are exchanged", instruction, replace(inputs, registers=both))


# --- D -----------------------------------------------------------------------------------------------


def diagnose_executions(
    instruction: Instruction, inputs: Inputs, d: npt.ArrayLike, *, most: int = 2
) -> Diagnosis | TensorDiagnosis:
    """Return what explains the D of executions, as words; raises what both searches raise.

    ``most`` mistakes at once are looked for in registers, and single changes in tensor memory.
    """
    if instruction.descriptor is not None:
        return diagnose_tensor(instruction, inputs, d)
    return diagnose_inputs(instruction, inputs, d, most=most)
