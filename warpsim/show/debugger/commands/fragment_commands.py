"""``print fragment a``: an operand of a matrix instruction as a matrix, with the place of each element: in
registers of a warp, in tensor memory, or in the tile behind a descriptor.

    print fragment a            print fragment d[0:8,0:8]       print fragment metadata
    print fragment b[3,5]       print fragment a lane 5         print fragment scale_a[0,0]

D and C of a tcgen05.mma are the accumulator as it is now, in the cells that the statement adds to. Does not
know what the instruction computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....base.errors import OperandError
from ....base.text_columns import words
from ....isa.codes import matrix_of
from ....isa.descriptors.matrix_descriptor import Descriptor
from ....isa.element_packing import codes_of_cells
from ....isa.formats import Format
from ....isa.fragments import codes_from
from ....isa.instruction import Instruction
from ....isa.layouts.tensor_memory import BIT
from ....isa.numerals import whole_number
from ....isa.operand_places.placements import Inputs, SharedTile
from ....isa.operand_places.places import Place, places
from ....machine.opcodes.tensor.executed_products import inputs_of
from ....machine.opcodes.tensor.multiply import TensorMultiply
from ....machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ....machine.opcodes.tensor.tensor_products import Multiplication
from ....machine.opcodes.tensor.tensor_products import Part as TensorPart
from ....machine.run.wave import Step, Wave
from ....observe.stops.contexts import At, Standing
from ....observe.stops.values import Array, number
from ....ptx.binding import Bound
from ....sums.execution.interface import unpack_metadata
from ....workbench.debugger.travel import Travel
from .memory_commands import Part, grid, part_of, rest_of, split_part

Key = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """An operand at a statement: its elements as text by row and column, and where each lies.

    ``lanes`` are those whose registers, or cells of tensor memory, hold an element; none in shared memory.
    """

    title: str
    shape: tuple[int, int]
    values: Mapping[Key, str]
    holders: Mapping[Key, str]
    details: Mapping[Key, str]
    lanes: Mapping[Key, int]


_ALIASES = {"metadata": "e", "meta": "e"}
_ROWS, _COLUMNS = 16, 16  # that are printed where no part is named


def fragment(session: Travel, text: str) -> str:
    """Print an operand of the matrix instruction that the focus stands at."""
    text, _, lane = text.partition(" lane ")
    name, brackets = split_part(text)
    here = session.standing()
    found = fragment_at(here, session.at(), _ALIASES.get(name, name))
    if lane:
        return "\n".join(_of_lane(found, lane))
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


def _of_lane(found: Fragment, text: str) -> Iterator[str]:
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
        return _shared_fragment(here, at, bound, operand, descriptor)
    known = [role for role in (*"abcd", "e", "scale_a", "scale_b") if _names_of(bound, role)]
    if operand not in known or operand.startswith("scale_"):
        shown = [{"e": "metadata"}.get(role, role) for role in "abcde" if role in known]
        raise OperandError(f"{form} has fragments {', '.join(shown)} here, not {operand or 'without a name'}")
    return _register_fragment(here, at, bound, operand)


def _names_of(bound: Bound, role: str) -> list[Any]:
    """Return the registers of an operand; wgmma accumulates onto its D."""
    found = getattr(bound, role, None)
    if found is None and role == "c":
        found = bound.d
    if found is None:
        return []
    return [found] if isinstance(found, str) else list(found)


def _register_fragment(here: Standing, at: At, bound: Bound, operand: str) -> Fragment:
    form = bound.instruction
    names = _names_of(bound, operand)
    first = here.lane - int(here.wave.thread[here.lane]) % form.lanes
    columns = [_column(at, name, form)[first : first + form.lanes] for name in names]
    registers = np.stack(columns, axis=-1)
    found = places(form, operand, bound.selector)
    values = _texts_of(form, operand, registers, found, bound.selector)
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


def _texts_of(
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


def _shared_fragment(here: Standing, at: At, bound: Any, operand: str, descriptor: str | int) -> Fragment:
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


_OPERANDS = {"a": "A", "b": "B", "c": "C", "d": "D", "e": "metadata", "scale_a": "SFA", "scale_b": "SFB"}


def tensor_fragment(here: Standing, step: Step, operand: str) -> Fragment | None:
    """Return an operand of the tcgen05.mma that a lane stands at; None at another statement.

    Raises OperandError for an operand that it has not, and what is wrong with the others.
    """
    if not isinstance(step, TensorMultiply):
        return None
    wave = here.wave
    notify, wave.uninitialised = wave.uninitialised, None  # to look is not to execute
    try:
        work = step.work(wave, here.path, here.lane)
    finally:
        wave.uninitialised = notify
    if operand in "ab" and operand and (operand == "b" or work.a is not None):
        return _behind_descriptor(work, wave, operand)
    part = _part_of(work, operand)
    if part is None:
        known = ", ".join(_names(work))
        what = operand or "without a name"
        raise OperandError(f"{work.made.instruction} has fragments {known} here, not {what}")
    return _in_cells(work, wave, operand, part)


def _names(work: Multiplication) -> Iterator[str]:
    """Yield the operands of a statement, as they are asked for."""
    yield from "abcd"
    yield from ("metadata",) if work.metadata is not None else ()
    yield from ("scale_a", "scale_b") if work.scales is not None else ()


def _part_of(work: Multiplication, operand: str) -> TensorPart | None:
    """Return an operand in tensor memory; None where the statement has no such operand."""
    scales = work.scales or (None, None)
    parts = {"a": work.a_part, "c": work.d, "d": work.d, "e": work.metadata}
    return (parts | {"scale_a": scales[0], "scale_b": scales[1]}).get(operand)


def _title(work: Multiplication, operand: str, shape: tuple[int, int], what: str, where: str) -> str:
    mnemonic = work.record.statement.mnemonic
    size = f"{shape[0]} x {shape[1]}, {what}"
    return f"{_OPERANDS[operand]} of {mnemonic} ({size}): element, {where}"


def _behind_descriptor(work: Multiplication, wave: Wave, operand: str) -> Fragment:
    """Return A or B as its descriptor reads it from shared memory now."""
    form, inputs = work.made.instruction, inputs_of(work, wave)
    placement = form.tiles(inputs)[operand]
    word = work.given.a if operand == "a" else work.given.b
    matrix = matrix_of(placement.gather(inputs, form.product)[0], form.format(operand))
    addresses = placement.element_addresses(word, inputs, form.product)
    stride, bits = wave.memories.shared_stride, max(form.format(operand).bits, 8)
    keys = [*np.ndindex(matrix.shape)]
    ranks = addresses // stride if len(work.ctas) == 2 else np.zeros_like(addresses)
    own = addresses - ranks * stride
    return Fragment(
        title=_title(work, operand, matrix.shape, str(form.format(operand)), "shared address"),
        shape=matrix.shape,
        values={key: number(matrix[key]) for key in keys},
        holders={key: f"@{int(own[key]):#x}{_rank(int(ranks[key]))}" for key in keys},
        details={key: f"u{bits} shared+{int(own[key]):#x}{_rank(int(ranks[key]))}" for key in keys},
        lanes={},
    )


def _rank(rank: int) -> str:
    """Return whose memory it is: of the odd CTA of a pair, else ""."""
    return " of the odd CTA" if rank else ""


def _in_cells(work: Multiplication, wave: Wave, operand: str, part: TensorPart) -> Fragment:
    """Return an operand as it lies in tensor memory now."""
    cta, lane, column = part.index(work.ctas)
    memory = TENSOR_MEMORY.of(wave)
    values, known = _texts(work, wave, operand, part), memory.written[cta, lane, column]
    shape = known.shape
    keys = [*np.ndindex(shape)]
    texts = {key: values[key] if known[key] else "never written" for key in keys}
    cells = {key: f"{int(lane[key])},{int(column[key])}" for key in keys}
    odd = {key: _rank(int(work.ctas.index(int(cta[key])))) for key in keys}
    bits = part.layout.cells[..., BIT]
    width = _width(work, operand)
    ends = {
        key: "" if width == 32 else f", bits {int(bits[key]) + width - 1}..{int(bits[key])}" for key in keys
    }
    stored = ", stored" if operand == "a" and work.made.instruction.sparse else ""
    what = f"{_format(work.made.instruction, operand) or 'indices'}{stored}"
    return Fragment(
        title=_title(work, operand, shape, what, "lane and column of tensor memory"),
        shape=shape,
        values=texts,
        holders={key: f"{cells[key]}{f'[{int(bits[key])}]' if width < 32 else ''}{odd[key]}" for key in keys},
        details={key: f"tmem[{cells[key]}]{ends[key]}{odd[key]}" for key in keys},
        lanes={key: int(lane[key]) for key in keys},
    )


def _format(form: Instruction, operand: str) -> Format | None:
    """Return the format of an operand; None of metadata."""
    if operand == "e":
        return None
    return form.scale if operand.startswith("scale") else form.format(operand)


def _width(work: Multiplication, operand: str) -> int:
    """Return the bits of a cell that an element has."""
    product = work.made.instruction.product
    if operand in ("c", "d"):
        return 32
    return {"a": product.storage("a").bits, "e": 4}.get(operand, 8)


def _texts(work: Multiplication, wave: Wave, operand: str, part: TensorPart) -> dict[Key, str]:
    """Return the elements of an operand as text, those of cells that were never written too."""
    form = work.made.instruction
    if operand == "e":
        return _index_texts(work, wave)
    codes = _codes(work, wave, operand, part)
    element = _format(form, operand)
    assert element is not None
    matrix = matrix_of(codes.astype(element.code_dtype), element)
    return {key: number(matrix[key]) for key in np.ndindex(matrix.shape)}


def _codes(work: Multiplication, wave: Wave, operand: str, part: TensorPart) -> Array:
    """Return the codes of the elements of an operand in tensor memory."""
    cells, product = TENSOR_MEMORY.of(wave).cells, work.made.instruction.product
    words: Array = cells[part.index(work.ctas)]
    if operand == "a":
        return codes_of_cells(words[:, :: 32 // product.storage("a").bits], product, "a")
    element = _format(work.made.instruction, operand)
    assert element is not None
    shifts = part.layout.cells[..., BIT].astype(np.uint32)
    codes: Array = words >> shifts & np.uint32(element.mask)
    return codes


def _index_texts(work: Multiplication, wave: Wave) -> dict[Key, str]:
    """Return the indices that each field of the metadata means."""
    form, words = work.made.instruction, inputs_of(work, wave).registers["e"]
    indices = unpack_metadata(form, words, work.made.descriptor.selector)[0]
    assert work.metadata is not None
    rows, chunks = work.metadata.layout.shape
    width = indices.shape[1] // chunks
    return {
        (row, chunk): f"({', '.join(map(str, indices[row, width * chunk :][:width].tolist()))})"
        for row in range(rows)
        for chunk in range(chunks)
    }
