"""``print fragment a``: the matrix that the registers of a warp, or a tile behind a descriptor, form at a
matrix instruction, with the place of each element.

    print fragment a            print fragment d[0:8,0:8]       print fragment metadata
    print fragment b[3,5]       print fragment a lane 5

Knows registers of a statement and their layouts; does not know what the instruction computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....base.errors import OperandError
from ....base.text_columns import words
from ....isa.codes import matrix_of
from ....isa.descriptors.matrix_descriptor import Descriptor
from ....isa.fragments import codes_from
from ....isa.instruction import Instruction
from ....isa.numerals import whole_number
from ....isa.operand_places.placements import Inputs, SharedTile
from ....isa.operand_places.places import Place, places
from ....machine.opcodes.tensor.multiply import TensorMultiply
from ....ptx.binding import Bound
from ....sums.execution.interface import unpack_metadata
from ....workbench.debugger.contexts import At, Standing
from ....workbench.debugger.travel import Travel
from ....workbench.debugger.value_formatting import Array, number
from .fragments_shown import Fragment, Key
from .matrix_parts import Part, grid, part_of, rest_of, split_part
from .tensor_fragments import tensor_fragment

_ALIASES = {"metadata": "e", "meta": "e"}
_ROWS, _COLUMNS = 16, 16  # that are printed where no part is named


def fragment(session: Travel, text: str) -> str:
    """Print an operand of the matrix instruction that the focus stands at."""
    text, _, lane = text.partition(" lane ")
    name, brackets = split_part(text)
    here = session.standing()
    found = fragment_at(here, session.at(), _ALIASES.get(name, name))
    if lane:
        return "\n".join(_lane_lines(found, lane))
    first = _first_row(here, found)
    default = Part(
        rows=range(first, min(first + _ROWS, found.shape[0])), columns=range(found.shape[1])[:_COLUMNS]
    )
    part = part_of(brackets, found.shape, default)
    if part.single:
        key = part.rows[0], part.columns[0]
        return f"{name}[{key[0]},{key[1]}] = {found.values[key]}: {found.details[key]}"
    cells = grid(part, lambda row, column: f"{found.values[row, column]} {found.holders[row, column]}")
    return "\n".join([found.title, *cells, *rest_of(part, found.shape, f"print fragment {name}")])


def _first_row(here: Standing, found: Fragment) -> int:
    """Return the first row of the focus: those of its warp, where four warps have 64."""
    warp = int(here.wave.thread[here.lane]) // 32 % 4
    warpgroup = here.record.matrix is not None and here.record.matrix.instruction.lanes == 128
    return 16 * warp if warpgroup and found.shape[0] == 64 and found.lanes else 0


def _lane_lines(found: Fragment, text: str) -> Iterator[str]:
    lane = whole_number(text.strip())
    own = sorted(key for key, holder in found.lanes.items() if holder == lane)
    if lane is None or not own:
        most = max(found.lanes.values(), default=-1)
        where = f"lanes 0 to {most} hold its elements" if most >= 0 else "it lies in memory, not in lanes"
        raise OperandError(f"lane {text} holds nothing of this operand: {where}")
    yield f"{found.title}, lane {lane}"
    yield from words(
        [
            [f"  [{row},{column}]", found.values[row, column], found.details[row, column]]
            for row, column in own
        ]
    )


def has_fragments(here: Standing, at: At) -> bool:
    """Return whether a lane stands at a matrix instruction."""
    return here.record.matrix is not None or isinstance(at.plain[here.path.pc].step, TensorMultiply)


def fragment_at(here: Standing, at: At, operand: str) -> Fragment:
    """Return an operand of the matrix instruction that a lane stands at. Raises OperandError."""
    bound = here.record.matrix
    if bound is None:
        found = tensor_fragment(here, at.plain[here.path.pc].step, operand)
        if found is not None:
            return found
        stops = "break mnemonic mma, wgmma or tcgen05.mma, stops at some"
        raise OperandError(f"{here.record.statement.mnemonic} has no fragments: {stops}")
    form = bound.instruction
    descriptor = getattr(bound, f"{operand}_descriptor", None)
    if descriptor is not None:
        return _tile(here, at, bound, operand, descriptor)
    known = [role for role in (*"abcd", "e", "scale_a", "scale_b") if _names(bound, role)]
    if operand not in known or operand.startswith("scale_"):
        shown = [{"e": "metadata"}.get(role, role) for role in "abcde" if role in known]
        raise OperandError(f"{form} has fragments {', '.join(shown)} here, not {operand or 'without a name'}")
    return _in_registers(here, at, bound, operand)


def _names(bound: Bound, role: str) -> list[Any]:
    """Return the registers of an operand; wgmma accumulates onto its D."""
    found = getattr(bound, role, None)
    if found is None and role == "c":
        found = bound.d
    if found is None:
        return []
    return [found] if isinstance(found, str) else list(found)


def _in_registers(here: Standing, at: At, bound: Bound, operand: str) -> Fragment:
    form = bound.instruction
    names = _names(bound, operand)
    first = here.lane - int(here.wave.thread[here.lane]) % form.lanes
    columns = [_column(at, name, form)[first : first + form.lanes] for name in names]
    registers = np.stack(columns, axis=-1)
    found = places(form, operand, bound.selector)
    values = _values(form, operand, registers, found, bound.selector)
    keys = {(place.row, place.column): place for place in found if not place.product}
    shape = max(row for row, _ in keys) + 1, max(column for _, column in keys) + 1
    stored = ", stored" if operand == "a" and form.sparse else ""
    what = f"selector {bound.selector}, indices" if operand == "e" else f"{form.format(operand)}{stored}"
    title = "metadata" if operand == "e" else operand.upper()
    return Fragment(
        title=f"{title} of {form.mnemonic} ({shape[0]} x {shape[1]}, {what}): element, lane, register",
        shape=shape,
        values={key: values[key] for key in keys},
        holders={
            key: f"{place.lane}:{names[place.register]}{_half(place, form)}" for key, place in keys.items()
        },
        details={
            key: f"lane {place.lane}, {names[place.register]}, bits {place.high_bit}..{place.low_bit}"
            for key, place in keys.items()
        },
        lanes={key: place.lane for key, place in keys.items()},
    )


def _half(place: Place, form: Instruction) -> str:
    """Return which part of its register an element is: "" for all of it."""
    width = form.register_bits if place.operand in "abcd" else 32
    return "" if place.bits == width else f"[{place.low_bit}]"


def _column(at: At, name: Any, form: Instruction) -> Array:
    """Return a register in all lanes of the wave; a constant, or a sink, in each of them."""
    dtype = np.dtype(f"u{form.register_bits // 8}")
    if isinstance(name, str):
        return at.named(name).words.astype(dtype)
    return np.zeros(at.wave.lanes, dtype)


def _values(
    form: Instruction, operand: str, registers: Array, found: tuple[Place, ...], selector: int
) -> dict[Key, str]:
    if operand == "e":
        indices = unpack_metadata(form, registers, selector)
        chunks = 1 + max(place.column for place in found)
        width = indices.shape[1] // chunks
        return {
            (place.row, place.column): "("
            + ", ".join(map(str, indices[place.row, width * place.column :][:width].tolist()))
            + ")"
            for place in found
        }
    matrix = matrix_of(codes_from(registers, form, operand), form.format(operand))
    matrix = matrix.reshape(-1, *matrix.shape[-2:])[0]
    return {
        (place.row, place.column): number(matrix[place.row, place.column])
        for place in found
        if not place.product
    }


def _tile(here: Standing, at: At, bound: Any, operand: str, descriptor: str | int) -> Fragment:
    """Return A or B of a wgmma as its descriptor reads it from shared memory now."""
    form, wave = bound.instruction, here.wave
    word = descriptor if isinstance(descriptor, int) else int(at.named(descriptor).words[here.lane])
    tile = form.in_shared_memory(operand)
    if not isinstance(tile, SharedTile):
        raise OperandError(f"{operand} of {form} is behind a descriptor that print tile reads")
    base, size = int(wave.memories.shared_base[here.lane]), wave.memories.shared_bytes
    shared = wave.memories.shared[base : base + size]
    transposed = tuple(bool(each) for each in bound.imm_trans)
    inputs = Inputs(registers={}, shared=shared, transposed=(transposed[0], transposed[1]))
    addresses = tile.element_addresses(word, inputs, form.product)
    if int(addresses.max()) + tile.element.bits // 8 > size:
        raise OperandError(f"the tile behind {word:#018x} leaves the {size} bytes of shared memory")
    width = max(tile.element.bits // 8, 1)
    cells = np.ascontiguousarray(shared[addresses[..., None] + np.arange(width)]).view(f"u{width}")[..., 0]
    matrix = matrix_of(cells, tile.element)
    keys = [(row, column) for row in range(matrix.shape[0]) for column in range(matrix.shape[1])]
    what = f"({matrix.shape[0]} x {matrix.shape[1]}, {tile.element}), {Descriptor.decode(word)}"
    return Fragment(
        title=f"{operand.upper()} of {form.mnemonic} {what}: element, shared address",
        shape=(matrix.shape[0], matrix.shape[1]),
        values={key: number(matrix[key]) for key in keys},
        holders={key: f"@{int(addresses[key]):#x}" for key in keys},
        details={key: f"u{8 * width} shared+{int(addresses[key]):#x}" for key in keys},
        lanes={},
    )
