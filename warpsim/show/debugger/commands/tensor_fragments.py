"""Operands of a tcgen05.mma as ``print fragment`` shows them: in tensor memory, or behind a descriptor.

    print fragment d[0:4,0:4]     print fragment b[3,5]     print fragment scale_a[0,0]

D and C are the accumulator as it is now, in the cells that the statement adds to. Knows where operands lie;
does not know what the statement computes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....base.errors import OperandError
from ....isa.codes import matrix_of
from ....isa.element_packing import codes_of_cells
from ....isa.formats import Format
from ....isa.instruction import Instruction
from ....isa.layouts.tensor_memory import BIT
from ....machine.opcodes.tensor.executed_products import inputs_of
from ....machine.opcodes.tensor.multiply import TensorMultiply
from ....machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ....machine.opcodes.tensor.tensor_products import Multiplication, Part
from ....machine.run.wave import Step, Wave
from ....sums.execution.interface import unpack_metadata
from ....workbench.debugger.contexts import Standing
from ....workbench.debugger.value_formatting import Array, number
from .fragments_shown import Fragment, Key

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
    part = _part(work, operand)
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


def _part(work: Multiplication, operand: str) -> Part | None:
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


def _in_cells(work: Multiplication, wave: Wave, operand: str, part: Part) -> Fragment:
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


def _texts(work: Multiplication, wave: Wave, operand: str, part: Part) -> dict[Key, str]:
    """Return the elements of an operand as text, those of cells that were never written too."""
    form = work.made.instruction
    if operand == "e":
        return _index_texts(work, wave)
    codes = _codes(work, wave, operand, part)
    element = _format(form, operand)
    assert element is not None
    matrix = matrix_of(codes.astype(element.code_dtype), element)
    return {key: number(matrix[key]) for key in np.ndindex(matrix.shape)}


def _codes(work: Multiplication, wave: Wave, operand: str, part: Part) -> Array:
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
