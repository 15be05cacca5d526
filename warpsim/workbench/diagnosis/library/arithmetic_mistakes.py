"""Wrong arithmetic: other element types, accumulators, modifiers and targets.

Knows which other legal forms the same registers could have been fed to, and how to run those on the
registers of the nominal instruction. Does not rearrange anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.architectures import ARCHITECTURES
from ....isa.codes import codes_of, matrix_of
from ....isa.families import forms
from ....isa.formats import Format
from ....isa.fragments import codes_from, gather, gathered_columns, registers_of, signed
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs, ScaleSelectors
from ....isa.products import Codes, Operands
from ....isa.rules import Rule
from ....sums.execution.pipeline import execute_operands, rule_for
from ....sums.rule_programs.program_rewrites import Rewrite, rewritten
from ...generation.sums.program_sums import inputs_of, program_codes
from .setting import Registers, Setting


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some rows and columns of D, in ascending order; None: all of them."""

    rows: npt.NDArray[np.intp] | None = None
    columns: npt.NDArray[np.intp] | None = None

    def of_result(self, codes: Codes) -> Codes:
        """Return the part of a matrix ``(..., m, n)``."""
        codes = codes if self.rows is None else codes[..., self.rows, :]
        return codes if self.columns is None else codes[..., self.columns]

    def of_operands(self, operands: Operands) -> Operands:
        """Return what the part is computed from; only operands without block scales are ever cut."""
        if self is WHOLE:
            return operands
        rows, columns = Part(rows=self.rows), Part(columns=self.columns)
        kept = None if operands.columns is None else rows.of_result(operands.columns)
        return replace(
            operands,
            a=rows.of_result(operands.a),
            b=columns.of_result(operands.b),
            c=self.of_result(operands.c),
            columns=kept,
        )


WHOLE = Part()


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """What is computed: a form on its target, its rule rewritten, C added once more to its result."""

    instruction: Instruction
    adds_c: bool = False
    rewrite: Rewrite | None = None

    def simulate(self, setting: Setting, registers: Registers, part: Part = WHOLE) -> Codes:
        """Return codes of D ``(..., m, n)`` of the setting's instruction, or of a part of D, in this
        arithmetic.

        Undefined metadata is read literally. Where the accumulators have another type, C is rounded to
        it (to nearest even) and the result converted back.
        """
        nominal, other = setting.instruction, self.instruction
        before = codes_from(registers["c"], nominal, "c")
        c = registers_of(_converted(before, nominal.c, other.c), other, "c")
        operands = part.of_operands(gathered_operands(setting, other, registers | {"c": c}))
        d = _converted(self._executed(operands), other.d, nominal.d)
        return _added(d, part.of_result(before), nominal.d) if self.adds_c else d

    def _executed(self, operands: Operands) -> Codes:
        """Return codes of D ``(..., m, n)``."""
        rule = rule_for(self.instruction)
        if self.rewrite is None:
            return execute_operands(operands, rule)
        stacked = as_tiles(operands)
        program = rewritten(rule.bare, operands.product, self.rewrite)
        made: Codes = program_codes(program, inputs_of(stacked, np.arange(stacked.c.size)))
        made = made.reshape(operands.c.shape)
        return made.astype(operands.c.dtype)


def as_tiles(operands: Operands) -> Operands:
    """Return operands ``(tiles, ...)``: of all leading axes."""
    lead = operands.c.shape[:-2]
    names = ("a", "b", "c", "columns", "scale_a", "scale_b")
    arrays = {name: getattr(operands, name) for name in names}
    parts: dict[str, Any] = {
        name: x if x is None else np.broadcast_to(x, (*lead, *x.shape[-2:])).reshape(-1, *x.shape[-2:])
        for name, x in arrays.items()
    }
    return replace(operands, **parts)


def gathered_operands(setting: Setting, form: Instruction, registers: Registers) -> Operands:
    """Return the operands of a form; tiles in shared memory have been read already."""
    inputs = Inputs(
        registers=registers,
        selector=setting.selector,
        scale_selectors=legal_ids(setting.scale_selectors, form),
        literal=True,
    )
    if setting.tiles is None:
        return gather(form, inputs)
    negate_a, negate_b = setting.tiles.negate
    a = registers["a"] if setting.in_shared("a") else codes_from(registers["a"], form, "a")
    return Operands(
        product=form.product,
        a=signed(a, form.a, negate_a),
        b=signed(np.swapaxes(registers["b"], -1, -2), form.b, negate_b),
        c=codes_from(registers["c"], form, "c"),
        columns=gathered_columns(form, inputs),
    )


def legal_ids(ids: ScaleSelectors, form: Instruction) -> ScaleSelectors:
    """Return the byte ids cut to what the form can have: multiples of its scales a word."""
    if not form.scale:
        return ids
    chunks = form.scale_chunks
    a, b = (byte_id // chunks * chunks for byte_id in (ids.byte_id_a, ids.byte_id_b))
    return ids._replace(byte_id_a=a, byte_id_b=b)


def _converted(codes: Codes, source: Format, target: Format) -> Codes:
    if source == target:
        return codes
    with np.errstate(all="ignore"):
        return codes_of(matrix_of(codes, source).astype(target.dtype), target, "C or D")


def _added(d: Codes, c: Codes, element: Format) -> Codes:
    """Return D + C, rounded to nearest even (integers wrap), where both have the same format."""
    x, y = (matrix_of(codes, element) for codes in (d, c))
    with np.errstate(all="ignore"):
        return codes_of(np.asarray(x + y, element.dtype), element, "d")


# --- the alternatives ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Qualifiers of a mnemonic that may be wrong together."""

    name: str
    read: Callable[[Instruction], tuple[Any, ...]]


_SLOTS = (
    Slot(name="type of A", read=lambda form: (form.a,)),
    Slot(name="type of B", read=lambda form: (form.b,)),
    Slot(name="accumulator type", read=lambda form: (form.c, form.d)),
    Slot(name="layout of A", read=lambda form: (form.a_layout,)),
    Slot(name="layout of B", read=lambda form: (form.b_layout,)),
    Slot(name=".satfinite", read=lambda form: (form.satfinite,)),
    Slot(name="rounding", read=lambda form: (form.rounding or "rn",)),
    Slot(name="bit operation", read=lambda form: (form.bit_operation,)),
    Slot(name="scale vector", read=lambda form: (form.scale, form.scale_chunks)),
)
_TOGETHER = ({"type of A", "type of B"}, {"layout of A", "layout of B"})  # may differ at once


def _differences(nominal: Instruction, form: Instruction) -> set[str]:
    return {slot.name for slot in _SLOTS if slot.read(nominal) != slot.read(form)}


def _comparable(nominal: Instruction, form: Instruction) -> bool:
    """Return whether a form reads the same registers; only its qualifiers differ."""
    return (
        form.family is nominal.family
        and form.shape == nominal.shape
        and form.variant == nominal.variant
        and form.kind == nominal.kind
        and nominal.target in form.targets
        and all(form.registers.get(name) == nominal.registers.get(name) for name in ("a", "b", "e"))
    )


def _other_forms(nominal: Instruction) -> Iterator[tuple[str, Instruction]]:
    """Yield each form that differs in one slot, or in both types or layouts alike, with what differs."""
    seen = {tuple(slot.read(nominal) for slot in _SLOTS)}
    for form in forms().values():
        if not _comparable(nominal, form):
            continue
        key = tuple(slot.read(form) for slot in _SLOTS)
        if key in seen:
            continue
        differences = _differences(nominal, form)
        alike = form.a == form.b or (form.a, form.b) == (nominal.b, nominal.a)
        if len(differences) == 1 or (differences in _TOGETHER and alike):
            seen.add(key)
            yield _text(nominal, form, differences), replace(form, target=nominal.target)


def _text(nominal: Instruction, form: Instruction, differences: set[str]) -> str:
    changes = []
    for slot in _SLOTS:
        if slot.name in differences:
            before, after = (_spelled(slot.read(which)) for which in (nominal, form))
            changes.append(f"{slot.name} {after} instead of {before}")
    return ", ".join(changes)


def _spelled(values: tuple[Any, ...]) -> str:
    words = {True: "on", False: "off"}
    return ".".join(words[value] if isinstance(value, bool) else str(value) for value in values)


def _other_targets(nominal: Instruction) -> Iterator[tuple[str, Instruction]]:
    """Yield one target for each other arithmetic that the form has somewhere, with all that share it."""
    own, found = rule_for(nominal).bare, dict[Rule, list[str]]()
    for target in ARCHITECTURES:
        if target in nominal.targets:
            found.setdefault(rule_for(replace(nominal, target=target)).bare, []).append(target)
    for rule, targets in found.items():
        if rule != own:
            yield f"numerics of {', '.join(targets)}", replace(nominal, target=targets[0])


def alternatives(nominal: Arithmetic) -> Iterator[tuple[str, str, Arithmetic]]:
    """Yield name, advice and arithmetic of each wrong computation on the same registers."""
    instruction = nominal.instruction
    for name, form in _other_forms(instruction):
        advice = f"the result is that of {form.mnemonic}: check the {name.rpartition(' instead')[0]}"
        yield name, advice, replace(nominal, instruction=form)
    for name, form in _other_targets(instruction):
        advice = f"the result is that of {form.target}: compare with the chip that the code ran on"
        yield name, advice, replace(nominal, instruction=form)
    if instruction.c == instruction.d and not nominal.adds_c:
        advice = "C is an operand of the instruction already: do not add it to the result again"
        yield "accumulator added again to the result", advice, replace(nominal, adds_c=True)
