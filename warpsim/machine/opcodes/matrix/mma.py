"""mma and mma.sp: all warps that stand at the same instruction are computed together.

Knows how registers become the inputs of an instruction; forms, operands and arithmetic are those of isa, ptx
and execution. ``wave.modes`` has what computes, and the mode of metadata without a meaning (PTX ISA 9.1,
sections 9.7.14.5.14 and 9.7.14.6.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from ....base.errors import NotModelled, UndefinedBehavior, located
from ....isa.families import forms
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs, ScaleSelectors, part_of
from ....isa.warps import WARP
from ....ptx.binding import Bound, WarpBound, bind
from ....ptx.constants import Immediate
from ....ptx.decode import Bind, bind_statement
from ....ptx.operands import NegatedPredicate, Register, Vector
from ...bind.constants import constant_bits
from ...bind.scope import RegisterName
from ...bind.value_types import bits_of
from ...run.events import MatrixExecution, Observer, observers_of
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.undefined_metadata import UNDEFINED_METADATA, MetadataOperand
from ..effect import Effect
from ..statement_binder import Reader, StatementBinder
from .mma_runs import member_of
from .warpwide import Columns, Roles, Warps, whole_warps, write_registers

Engine = Callable[[Instruction, Inputs], Values]
B = TypeVar("B", bound=Bound)


@dataclass(frozen=True, kw_only=True)
class MatrixRow(Effect):
    """The row of an opcode whose forms are those of the instruction families."""

    def forms(self) -> Iterator[tuple[str, ...]]:
        """Return the modifiers of every form, in PTX's order."""
        return (tuple(name.split(".")[1:]) for name in forms(self.opcode))

    def match(self, modifiers: tuple[str, ...]) -> tuple[str, ...] | None:
        """Whatever they are: decode says what is wrong with them."""
        return modifiers


# --- loading ---------------------------------------------------------------------------------------


def _names(binder: StatementBinder) -> Iterator[str]:
    """Yield every name in the operands."""
    for operand in binder.operands:
        for element in operand.elements if isinstance(operand, Vector) else (operand,):
            if isinstance(element, Register | NegatedPredicate):
                yield element.name


def types_of(binder: StatementBinder) -> dict[str, str] | None:
    """Register name to type, of the registers that the statement names, its guard included.

    None where registers need no declaration.
    """
    if not binder.declared:
        return None
    guard = [binder.statement.guard[1]] if binder.statement.guard else []
    found = {name: binder.scope.find(name) for name in (*_names(binder), *guard)}
    return {name: meaning.type for name, meaning in found.items() if isinstance(meaning, RegisterName)}


def bound_of(binder: StatementBinder, bind: Bind[B]) -> B:
    """Return the instruction on the module's target, with checked operands; no register is written twice."""
    module = binder.module
    bound = bind_statement(binder.statement, module.target, module.version, types_of(binder), bind)
    for place, name in enumerate(bound.d):
        if name is not None and name in bound.d[:place]:
            message = f"{name} is written twice: PTX does not define which value stays"
            raise binder.at(UndefinedBehavior(message), 0, place)
    binder.matrix = bound
    return bound


def source_of(
    binder: StatementBinder,
    source: str | Immediate | int,
    bits: int,
    role: str,
    operand: int,
    element: int | None = None,
) -> Reader:
    """Return a reader of a register, or of a constant, as bits; raise IllegalInstruction for other widths."""
    if not isinstance(source, str):
        value = source if isinstance(source, int) else constant_bits(source, bits)
        constant = np.array(value, f"u{bits // 8}")
        return lambda wave, path: constant
    found = binder.register(Register(source), operand, element)
    _check_width(binder, source, bits, role, operand, element)
    return binder.reading(found.number)


def _check_width(
    binder: StatementBinder, name: str, bits: int, role: str, operand: int, element: int | None
) -> None:
    """Raise IllegalInstruction for a register of another width: types are checked where any are declared."""
    found = binder.scope.find(name)
    has = bits_of(found.type) if isinstance(found, RegisterName) else bits
    if has != bits:
        kind = "is a predicate" if has == 1 else f"holds {has} bits"
        message = f"{role} takes registers of {bits} bits, but {name} {kind}"
        raise binder.illegal(message, operand, element)


def _sources(binder: StatementBinder, bound: WarpBound) -> Roles:
    """Return the sources of each operand but D."""
    bits, places = bound.instruction.register_bits, bound.places
    found = {role: sources_of(binder, getattr(bound, role), bits, role, places[role]) for role in "abc"}
    for role in ("e", "scale_a", "scale_b"):
        if (name := getattr(bound, role)) is not None:
            found[role] = sources_of(binder, name, 32, role, places[role])
    return Roles(found)


def sources_of(
    binder: StatementBinder, sources: str | Sequence[str | Immediate], bits: int, role: str, operand: int
) -> Columns:
    """Return the columns of a vector, or of a single register."""
    if isinstance(sources, str):
        readers, sources = [source_of(binder, sources, bits, role, operand)], [sources]
    else:
        readers = [source_of(binder, name, bits, role, operand, at) for at, name in enumerate(sources)]
    numbers = tuple(numbers_of(binder, sources))
    return Columns(readers, np.dtype(f"u{bits // 8}"), numbers if len(numbers) == len(readers) else ())


def numbers_of(binder: StatementBinder, names: Sequence[object]) -> Iterator[int]:
    """Yield the numbers of the registers among some sources."""
    for name in names:
        found = binder.scope.find(name) if isinstance(name, str) else None
        if isinstance(found, RegisterName):
            yield found.number


def targets_of(binder: StatementBinder, bound: Bound) -> list[int | None]:
    """Return the number of each register of D, None for a sink."""
    operand, bits = binder.operands[0], bound.instruction.register_bits
    assert isinstance(operand, Vector)
    for place, name in enumerate(bound.d):
        if name is not None:
            _check_width(binder, name, bits, "d", 0, place)
    for place, element in enumerate(operand.elements):
        if bound.d[place] is not None:
            binder.writer(element, f"b{bits}", 0, place)
    return [None if name is None else next(numbers_of(binder, [name])) for name in bound.d]


Choose = Callable[[Wave, DivergentPath, Lanes], ScaleSelectors]


def _selectors(binder: StatementBinder, bound: WarpBound) -> Choose:
    """Byte and thread ids of block scales: constants, or registers on which all lanes agree."""
    if all(isinstance(source, int) for source in bound.ids):
        constant = ScaleSelectors(*(int(source) & 0xFFFF for source in bound.ids))
        return lambda wave, path, lanes: constant
    places = [bound.places[role] for role in ("ids_a", "ids_a", "ids_b", "ids_b")]
    readers = [
        _agreed(binder, source, place) if isinstance(source, str) else _constant(source)
        for source, place in zip(bound.ids, places, strict=True)
    ]
    return lambda wave, path, lanes: ScaleSelectors(*(read(wave, path, lanes) for read in readers))


Number = Callable[[Wave, DivergentPath, Lanes], int]


def _constant(value: int) -> Number:
    return lambda wave, path, lanes: value


def _agreed(binder: StatementBinder, name: str, operand: int) -> Number:
    """Return a register on which all lanes agree; raises NotModelled where they do not."""
    read = binder.reading(binder.register(Register(name), operand).number)

    def number(wave: Wave, path: DivergentPath, lanes: Lanes) -> int:
        values = lanes.of(read(wave, path))
        if (values != values[0]).any():
            message = f"{name} differs between lanes; scale ids are modelled where all lanes agree"
            raise binder.not_modelled(message, operand)
        return int(values[0])

    return number


# --- running ---------------------------------------------------------------------------------------


def _matrix(binder: StatementBinder, *modifiers: str) -> Step:
    bound = bound_of(binder, bind)
    form = bound.instruction
    sources, targets, choose = _sources(binder, bound), targets_of(binder, bound), _selectors(binder, bound)
    metadata = partial(binder.statement.operand_location, bound.places.get("e", 0))
    binder.member = member_of(bound, sources, targets, metadata)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        inputs = Inputs.plain(sources.by_warp(wave, path, warps), bound.selector, wave.modes.literal)
        if bound.ids:
            inputs = replace(inputs, scale_selectors=choose(wave, path, lanes))
        d = computed(wave, form, inputs, warps, MetadataOperand(path.pc, metadata))
        write_registers(wave, path, lanes, warps, targets, d)
        if observers_of(wave).hear(Observer.matrix):
            execution = MatrixExecution(
                pc=path.pc,
                record=wave.code[path.pc],
                instruction=form,
                inputs=inputs.by_rows(),
                d=np.ascontiguousarray(d),
                warps=warps,
                whole=path.lanes.whole,
            )
            observers_of(wave).matrix(wave, execution)

    return whole_warps(act)


def computed(
    wave: Wave, form: Instruction, inputs: Inputs, warps: Warps, metadata: MetadataOperand
) -> Values:
    """Return D ``(executions, lanes, registers)``; an error names the first warp that is in error.

    Only metadata can be undefined or not modelled: errors point at its place.
    """
    engine = wave.modes.engine_of(wave, warps)
    try:
        d = engine(form, inputs)
    except (UndefinedBehavior, NotModelled):
        with located(metadata.location):
            for place, warp in enumerate(warps.tolist()):
                _compute_alone(wave, form, part_of(inputs, place), warp)
        raise
    if inputs.literal and form.sparse:
        return UNDEFINED_METADATA.of(wave).follow_registers(wave, form, inputs, warps, [metadata], d)
    return d


def _compute_alone(wave: Wave, form: Instruction, inputs: Inputs, warp: int) -> None:
    """Compute one execution for its error, whose message then names the warp."""
    engine = wave.modes.engine
    try:
        engine(form, inputs)
    except (UndefinedBehavior, NotModelled) as error:
        wave.name_execution(error, warp, form.lanes)
        raise


ROWS: tuple[Effect, ...] = (MatrixRow(opcode="mma", slots=(), bind=_matrix, together=WARP),)
