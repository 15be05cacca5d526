"""A warp where a kernel was stopped: operands of a matrix instruction as matrices, other registers by lane.

Returns text; does not know how a kernel is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError, UndefinedBehavior
from ...base.text_columns import words
from ...isa.codes import matrix_of
from ...isa.families.tcgen05_operands import descriptor_of
from ...isa.fragments import codes_from, gather
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ...isa.operand_places.places import Place, lane_places
from ...observe.recording.matrix_events import Event
from ...observe.stops.debugger import RegisterValue, WarpStop
from ...observe.stops.values import number, number_of
from ...sums.execution.interface import unpack_metadata
from ...workbench.explanation.gathered_operands import from_registers
from ...workbench.explanation.information import Document
from .report import addresses_of, matrix_lines, names_of, word_names


def stop_lines(stop: WarpStop, lane: int | None = None) -> Iterator[str]:
    """Yield the state at a stop, of one lane if it is given; raise OperandError for a lane out of range."""
    if lane is not None and not 0 <= lane < len(stop.lanes):
        raise OperandError(f"lane {lane}: a warp has lanes 0 to {len(stop.lanes) - 1}")
    place = stop.statement.location()
    why = f" writes {stop.watched}" if stop.watched else ""
    yield f"{place.line_name}: {stop.place}{why}: {stop.statement}"
    if place.source is not None:
        yield from place.source.excerpt().splitlines()
    if stop.event is not None:
        yield from _event_lines(stop.event, lane)
    else:
        yield from (f"  {line}" for line in _register_lines(stop, lane))


# --- matrices --------------------------------------------------------------------------------------


def _event_lines(event: Event, lane: int | None) -> Iterator[str]:
    form = event.instruction
    names = names_of(event)
    for operand in ("a", "e", "scale_a", "b", "scale_b", "c", "d"):
        if operand in "ab" and operand not in _register_operands(event):
            yield f"  {_title(form, operand, event.inputs)} in shared memory, {_descriptor(event, operand)}:"
            yield from (f"   {line}" for line in matrix_lines(_tile(event, operand)))
            continue
        if operand not in _register_operands(event):
            continue
        held = ", ".join(names.get(operand, ())) + _cell_of(event, operand)
        yield f"  {_title(form, operand, event.inputs)} in {held}:"
        if lane is None:
            yield from (f"   {line}" for line in _matrix(event, operand))
        else:
            yield from (f"    {line}" for line in _lane(event, operand, lane))

    yield from (f"  {line}" for line in _mask_lines(event.inputs))


def _mask_lines(inputs: Inputs) -> Iterator[str]:
    """Yield what the masks of a tcgen05.mma leave as it is, or zero."""
    words, mask = inputs.tensor.disable_output_lane, inputs.tensor.zero_column_mask
    if words:
        off = np.flatnonzero(inputs.tensor.disabled(32 * len(words))).tolist()
        yield f"lanes of D that stay as they are, from its lane on: {', '.join(map(str, off))}"
    if mask:
        yield f"zero-column mask {mask:#018x}: columns of B that count as 0 are not in B above"


def _cell_of(event: Event, operand: str) -> str:
    """Return the lane and column of tensor memory at which an operand begins, in words; "" for registers."""
    address = addresses_of(event).get(operand)
    return "" if address is None else f", tensor memory from lane {address >> 16}, column {address & 0xFFFF}"


def _register_operands(event: Event) -> tuple[str, ...]:
    """Return the operands that lie in registers or tensor memory, D among them."""
    return (*event.inputs.registers, "d")


def _descriptor(event: Event, operand: str) -> str:
    """Return the descriptor of a tile, in words."""
    word = int(getattr(event.inputs, f"{operand}_descriptor"))
    return f"{operand}-desc {word:#018x}"


def _tile(event: Event, operand: str) -> npt.NDArray[Any]:
    """Return a or B of a wgmma as it lies in shared memory, before imm-scale."""
    form = event.instruction
    inputs = replace(event.inputs, negate=(False, False))
    return matrix_of(getattr(gather(form, inputs), operand), form.format(operand))


def _title(form: Instruction, operand: str, inputs: Inputs) -> str:
    if operand == "e":
        selector = inputs.selector if form.descriptor is None else descriptor_of(form).selector
        return f"metadata (selector {selector}, indices)"
    if operand.startswith("scale_"):
        side = operand[-1].upper()
        return f"scales of {side} ({form.scale})"
    rows, columns = form.matrix_shape(operand)
    stored = ", stored" if operand == "a" and form.sparse else ""
    return f"{operand.upper()} ({rows} x {columns}{stored}, {form.format(operand)})"


def _words(event: Event, operand: str) -> npt.NDArray[Any]:
    return event.d if operand == "d" else event.inputs.registers[operand]


def _matrix(event: Event, operand: str) -> Iterator[str]:
    form, inputs = event.instruction, event.inputs
    if operand == "e":
        try:
            yield from matrix_lines(unpack_metadata(form, inputs.registers["e"], inputs.selector))
        except UndefinedBehavior as error:
            yield error.message
        return
    if operand.startswith("scale_"):
        codes = getattr(from_registers(form, inputs).operands, operand)
        yield from matrix_lines(matrix_of(codes, form.scale) if form.scale else codes)
        return
    matrix = matrix_of(codes_from(_words(event, operand), form, operand), form.format(operand))
    for product in matrix.reshape(-1, *matrix.shape[-2:]):
        yield from matrix_lines(product)


def _lane(event: Event, operand: str, lane: int) -> Iterator[str]:
    """Yield the registers of a lane, and the elements in each: lowest bits first."""
    form, inputs = event.instruction, event.inputs
    held = lane_places(form, operand, lane, selector=inputs.selector, scales=inputs.scale_selectors)
    rows = []
    for register, name in enumerate(word_names(event)[operand]):
        word = int(_words(event, operand)[lane, register])
        inside = sorted((item for item in held if item.register == register), key=lambda entry: entry.low_bit)
        text = ", ".join(_element(form, element, word) for element in inside) or "not read"
        rows.append([name, f"{word:#0{2 + (form.register_bits if operand in 'abcd' else 32) // 4}x}", text])
    yield from words(rows)


def _element(form: Instruction, place: Place, word: int) -> str:
    code = np.array([word >> place.low_bit & (1 << place.bits) - 1])
    name = {"e": "index", "scale_a": "scale A", "scale_b": "scale B"}.get(
        place.operand, place.operand.upper()
    )
    if place.operand == "e":
        return f"row {place.row} chunk {place.column} = {int(code[0]):#0{2 + -(-place.bits // 4)}x}"
    element = form.scale if place.operand.startswith("scale_") else form.format(place.operand)
    value = code if element is None else matrix_of(code, element)
    return f"{name}[{place.row},{place.column}] = {number(value[0], 6)}"


# --- registers -------------------------------------------------------------------------------------


def _register_lines(stop: WarpStop, lane: int | None) -> list[str]:
    """Return a column for each register before the statement, and for each that it has changed."""
    lanes = range(len(stop.lanes)) if lane is None else [lane]
    if not stop.registers:
        return ["no registers"]
    columns = [column for item in stop.registers for column in _columns(stop, item, lanes)]
    head, *rows = zip(*columns, strict=True)
    return words([("lane", *head), *_merged(lanes, rows)])


def _merged(lanes: Sequence[int], rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield rows with their lanes in front; neighbours with equal content share a row."""
    for row, same in groupby(zip(lanes, rows, strict=True), key=lambda item: item[1]):
        numbers = [lane for lane, _ in same]
        first, last = numbers[0], numbers[-1]
        yield (str(first) if first == last else f"{first}..{last}", *row)


def _columns(stop: WarpStop, register: RegisterValue, lanes: Sequence[int]) -> Iterator[list[str]]:
    before = [
        _cell(register.type, register.before[lane], register.missing[lane], stop.lanes[lane])
        for lane in lanes
    ]
    yield [f"{register.name} .{register.type}", *before]
    if register.after is not None:
        after = [
            _cell(register.type, register.after[lane], not stop.lanes[lane], stop.lanes[lane])
            for lane in lanes
        ]
        yield [f"{register.name} after", *after]


def _cell(type_name: str, word: Any, missing: bool, executes: bool) -> str:
    """In hexadecimal and by type; what was never written is a question mark, idle lanes have a dash."""
    if not executes:
        return "-"
    if missing:
        return "?"
    if type_name == "pred":
        return "true" if word else "false"
    code = f"{int(word):#0{2 + word.dtype.itemsize * 2}x}"
    value = number_of(np.asarray(word), type_name)
    return code if value is None else f"{code} {number(value, 6)}"


# --- data ------------------------------------------------------------------------------------------


def stop_document(stop: WarpStop) -> Document:
    """Return a stop as JSON-ready data: its place, registers by name and operands by role, in hexadecimal."""
    found = {register.name: _hexadecimal(register.before, register.missing) for register in stop.registers}
    after = {item.name: _hexadecimal(item.after) for item in stop.registers if item.after is not None}
    operands = {}
    if stop.event is not None:
        operands = {
            operand: _hexadecimal(_words(stop.event, operand)) for operand in _register_operands(stop.event)
        }
        inputs = stop.event.inputs
        named = {"a-desc": inputs.a_descriptor, "b-desc": inputs.b_descriptor}
        operands |= {name: f"{int(word):#018x}" for name, word in named.items() if word is not None}
        operands |= {f"{name}-address": f"{word:#010x}" for name, word in stop.event.addresses.items()}
    return {
        "line": stop.line,
        "statement": str(stop.statement),
        "cta": list(stop.cta),
        "warp": stop.warp,
        "step": stop.index,
        "watched": stop.watched,
        "lanes": np.flatnonzero(stop.lanes).tolist(),
        "registers": found,
        "after": after,
        "operands": operands,
    }


def _hexadecimal(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> Any:
    if values.ndim > 1:
        return [_hexadecimal(part) for part in values]
    digits = 2 + 2 * values.dtype.itemsize
    texts = [value if isinstance(value, bool) else f"{value:#0{digits}x}" for value in values.tolist()]
    if missing is None:
        return texts
    return [None if absent else text for text, absent in zip(texts, missing.tolist(), strict=True)]
