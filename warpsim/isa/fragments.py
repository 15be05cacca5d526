"""Between registers and matrices: fragments, metadata and scales of one instruction.

The left side of the hinge: knows lanes, registers, selectors and layouts, and no arithmetic. PTX ISA
9.1, sections 9.7.14.5 (fragments), 9.7.14.6 (sparse A and metadata) and 9.7.14.3 (block scaling).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import NotModelled, OperandError, UndefinedBehavior
from .architectures import ARCHITECTURES
from .arrays import as_array
from .codes import codes_of, matrix_of
from .formats import Format
from .instruction import Instruction
from .layouts.field_layout import FieldLayout
from .operand_places.placements import Inputs, MetadataRegisters, Registers
from .operand_places.tensor_placements import TensorCells
from .products import Codes, Operands
from .registers import Words
from .sparsity import Pattern, stored_columns

Fields = npt.NDArray[np.uint8]  # (..., m, chunks): one 4-bit metadata field each


# --- a, b, c, d ------------------------------------------------------------------------------------


def registers_of(codes: Codes, instruction: Instruction, operand: str) -> Words:
    """Return registers ``(..., lanes, registers)`` of a matrix of codes (m8n8k4 f16: of four products)."""
    return _elements(instruction, operand).scatter(codes)


def codes_from(words: Words, instruction: Instruction, operand: str) -> Codes:
    """Return the matrix of codes that registers hold; the inverse of registers_of."""
    return _elements(instruction, operand).codes(words)


def checked_registers(words: npt.ArrayLike, instruction: Instruction, operand: str) -> Words:
    """Return registers of an operand, checked; raises OperandError."""
    return instruction.held(operand).checked(words)


def pack(instruction: Instruction, operand: str, matrix: npt.ArrayLike) -> Words:
    """Return registers ``(..., lanes, registers)`` of a matrix ``(..., rows, columns)`` of operand a, b, c
    or d.

    Sparse A is given compressed; m8n8k4 f16 takes ``(..., 4, rows, columns)``. Raises OperandError.
    """
    codes = matrix_codes(matrix, instruction, operand)
    return registers_of(codes, instruction, operand)


def unpack(instruction: Instruction, operand: str, words: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the matrix that registers hold, in the format's dtype; the inverse of pack."""
    codes = codes_from(checked_registers(words, instruction, operand), instruction, operand)
    return matrix_of(codes, instruction.format(operand))


def matrix_codes(matrix: npt.ArrayLike, instruction: Instruction, operand: str) -> Codes:
    """Return codes of a matrix with the rows and columns that packing operand a, b, c or d expects."""
    codes = codes_of(matrix, instruction.format(operand), operand)
    expected: tuple[int, ...] = instruction.matrix_shape(operand)
    if instruction.products > 1:
        expected = (instruction.products, *expected)
    return shaped(codes, expected, operand)


def shaped(array: npt.NDArray[Any], expected: tuple[int, ...], what: str) -> npt.NDArray[Any]:
    """Return the array, if its last axes are as expected; otherwise OperandError."""
    if array.shape[-len(expected) :] != expected:
        wanted = ", ".join(str(size) for size in expected)
        raise OperandError(f"{what} has shape {array.shape}, but this instruction takes (..., {wanted})")
    return array


def fragment(instruction: Instruction, operand: str) -> npt.NDArray[np.intp]:
    """Return ``(lanes, registers, elements per register, 2)``: row and column of every element of a register.

    Columns of sparse A are stored columns; rows of m8n8k4 f16 count within the lane's own product.
    """
    return _elements(instruction, operand).places()


def _elements(instruction: Instruction, operand: str) -> Registers | TensorCells:
    """Return the registers or cells of tensor memory of a, b, c or d."""
    held = instruction.held(operand)
    return held if isinstance(held, TensorCells) else instruction.in_registers(operand)


def written_words(codes: Codes, instruction: Instruction, inputs: Inputs) -> Words:
    """Return words of D after an instruction: registers, or cells of which some may stay as they were."""
    return _elements(instruction, "d").written(codes, inputs)


# --- metadata --------------------------------------------------------------------------------------


def _fields(instruction: Instruction) -> MetadataRegisters | TensorCells:
    held = instruction.held("e")
    return held if isinstance(held, TensorCells) else instruction.metadata


@cache
def metadata_map(instruction: Instruction, selector: int) -> npt.NDArray[np.intp]:
    """Return ``(fields, 5)``: lane, lowest bit, bits, row and chunk of every metadata field, by row and
    chunk. Bits of tensor memory count on from column to column.
    """
    held = _fields(instruction)
    if isinstance(held, TensorCells):
        lane, column, bit = held.index
        row, chunk = np.indices(lane.shape)
        low = 32 * column + bit.astype(np.intp)
        return np.stack([lane, low, np.full_like(lane, held.bits), row, chunk], -1).reshape(-1, 5)
    layout = metadata_layout(instruction, selector)
    row, chunk = np.indices(layout.shape)
    bits = np.full_like(row, layout.field_bits)
    return np.stack([*np.moveaxis(layout.index, -1, 0), bits, row, chunk], -1).reshape(-1, 5)


def metadata_layout(instruction: Instruction, selector: int) -> FieldLayout:
    """Return the layout ``(row, chunk) -> (lane, lowest bit)`` of the metadata under a selector."""
    return instruction.metadata.fields(selector)


def require_sparse(instruction: Instruction) -> Pattern:
    """Return the sparsity pattern; raises OperandError for a dense instruction."""
    if instruction.pattern is None:
        raise OperandError(f"{instruction} is dense: it has no metadata")
    return instruction.pattern


def check_selector(instruction: Instruction, selector: int) -> None:
    """Raise UndefinedBehavior for a sparsity selector that PTX does not define for the form."""
    if selector not in instruction.selectors:
        legal = ", ".join(str(value) for value in instruction.selectors)
        raise UndefinedBehavior(f"sparsity selector {selector}: {instruction} has {legal}")


def read_fields(instruction: Instruction, e: Words, selector: int) -> Fields:
    """Return the metadata fields ``(..., m, chunks)`` that the selector's lanes hold; other lanes are
    ignored.
    """
    return _fields(instruction).codes(e, selector)


def write_fields(instruction: Instruction, fields: Fields, selector: int) -> Words:
    """Metadata registers ``(..., lanes, 1)`` with the fields in place and zeros elsewhere."""
    return _fields(instruction).scatter(fields, selector)


def fields_of(instruction: Instruction, indices: npt.ArrayLike) -> Fields:
    """Return the fields ``(..., m, chunks)`` that name the given unit indices.

    ``indices`` is ``(..., m, units)`` as compress returns it, or ``(..., m, chunks, kept)``.
    """
    pattern = require_sparse(instruction)
    m, chunks = instruction.shape.m, instruction.shape.k // pattern.chunk
    array = as_array(indices)
    if array.dtype.kind not in "iu":
        raise OperandError(f"indices have dtype {array.dtype}, but they are integers")
    if array.shape[-3:] == (m, chunks, pattern.kept):
        array = array.reshape(*array.shape[:-2], chunks * pattern.kept)
    array = shaped(array, (m, chunks * pattern.kept), "indices")
    if array.size and (array.min() < 0 or array.max() >= pattern.choices):
        raise OperandError(f"indices run from 0 to {pattern.choices - 1} in a {pattern} chunk")
    units = array.reshape(*array.shape[:-1], chunks, pattern.kept)
    fields: Fields = pattern.encode_table[tuple(np.moveaxis(units, -1, 0))]
    return fields


def indices_of(instruction: Instruction, fields: Fields) -> npt.NDArray[np.uint8]:
    """Return unit indices ``(..., m, units)`` of fields, read literally; the inverse of fields_of."""
    pattern = require_sparse(instruction)
    units: npt.NDArray[np.uint8] = np.take(pattern.decode_numbers, fields).view(np.uint8)
    return units.reshape(*fields.shape[:-1], fields.shape[-1] * pattern.kept)


def legal_fields(instruction: Instruction) -> npt.NDArray[np.bool_]:
    """Return ``(16,)``: the metadata fields with a meaning; those of ordered metadata ascend."""
    pattern, fields = require_sparse(instruction), instruction.family.fields
    if fields is not None:
        return np.isin(np.arange(16), list(fields)) & pattern.distinct
    return pattern.ascending if instruction.ordered else pattern.distinct


def known_fields(instruction: Instruction) -> npt.NDArray[np.bool_]:
    """Return ``(16,)``: the legal fields whose effect on the target is known.

    Descending fields have not been executed on a chip where ptxas does not sort them.
    """
    target = ARCHITECTURES.get(instruction.target or "")
    own = instruction.family.fields is not None  # what the family takes has been executed
    unsorted = target is not None and not own and instruction.operation in target.unsorted_operations
    return require_sparse(instruction).ascending if unsorted else legal_fields(instruction)


def check_fields(
    instruction: Instruction, fields: Fields, selector: int | None = None, *, unknown: bool = False
) -> None:
    """Raise for metadata that PTX leaves undefined, or whose effect on the target is not known.

    UndefinedBehavior names row, chunk and, given the selector, lane and bits. NotModelled (only asked
    for with ``unknown``) is for descending plain ``.sp`` fields that ptxas does not sort.
    """
    known = known_fields(instruction)
    if np.take(known if unknown else legal_fields(instruction), fields).all():
        return
    if undefined_rows(instruction, fields).any():
        raise UndefinedBehavior(undefined_field(instruction, fields, selector))
    reason = (
        f"descending indices are legal under plain .sp, but on {instruction.target} ptxas hands "
        f"{instruction.a} metadata to the hardware unsorted and its effect is not known; "
        f"sort the pairs, or ask for the documented fallback (undefined='fallback')"
    )
    raise NotModelled(_field_message(instruction, fields, ~known[fields], selector, reason))


def undefined_rows(instruction: Instruction, fields: Fields) -> npt.NDArray[np.bool_]:
    """Return ``(..., m)``: the rows of A with metadata that PTX leaves undefined."""
    return np.asarray(~legal_fields(instruction)[fields].all(axis=-1))


def undefined_field(instruction: Instruction, fields: Fields, selector: int | None) -> str:
    """Return which field is the first that PTX leaves undefined, and why; there must be such a field."""
    wrong = ~legal_fields(instruction)[fields]
    reason = _undefined_reason(instruction, int(fields[wrong][0]))
    return _field_message(instruction, fields, wrong, selector, reason)


def _undefined_reason(instruction: Instruction, field: int) -> str:
    pattern = require_sparse(instruction)
    if pattern.kept == 1:
        return f"a 1:2 field is 0b0100 or 0b1110, {field:#06b} is undefined"
    first, second = (int(index) for index in pattern.decode_table[field])
    if first == second:
        return f"indices {first}, {second} are equal, which PTX leaves undefined"
    return f"indices {first}, {second} descend, which PTX leaves undefined under .sp::ordered_metadata"


def _field_message(
    instruction: Instruction,
    fields: Fields,
    wrong: npt.NDArray[np.bool_],
    selector: int | None,
    reason: str,
) -> str:
    *batch, row, chunk = (int(i) for i in np.argwhere(wrong)[0])
    value = int(fields[(*batch, row, chunk)])
    place = f"row {row}, chunk {chunk}"
    if selector is not None:
        mapped = metadata_map(instruction, selector)
        lane, bit = (int(x) for x in mapped[(mapped[:, 3] == row) & (mapped[:, 4] == chunk)][0, :2])
        column, bit = divmod(bit, 32)
        cell = f", column {column}" if isinstance(_fields(instruction), TensorCells) else ""
        place = f"lane {lane}{cell}, bits {bit + 3}..{bit} ({place})"
    which = f" of batch element {tuple(batch)}" if batch else ""
    return f"metadata field {value:#06b} in {place}{which}: {reason}"


# --- gathering -------------------------------------------------------------------------------------


def columns_of(
    instruction: Instruction, fields: Fields, selector: int | None, *, literal: bool
) -> npt.NDArray[np.intp]:
    """Logical column of every stored element; unless ``literal``, fields without a known effect raise."""
    if not literal:
        check_fields(instruction, fields, selector, unknown=True)
    return stored_columns(indices_of(instruction, fields), require_sparse(instruction))


def gathered_columns(instruction: Instruction, inputs: Inputs) -> npt.NDArray[np.intp] | None:
    """Return the logical columns that the metadata registers name; None for a dense form."""
    if not instruction.sparse:
        return None
    check_selector(instruction, inputs.selector)
    fields = instruction.place("e", inputs).gather(inputs, instruction.product)
    return columns_of(instruction, fields, inputs.selector, literal=inputs.literal)


def gathered_scales(instruction: Instruction, inputs: Inputs) -> dict[str, Codes]:
    """Return the scale codes where the inputs give them, by operand; empty without block scales."""
    names = ("scale_a", "scale_b") if instruction.scale else ()
    return {name: instruction.place(name, inputs).gather(inputs, instruction.product) for name in names}


def signed(codes: Codes, element: Format, negated: bool) -> Codes:
    """Return the codes, every sign flipped where ``negated``."""
    return codes ^ element.code_dtype.type(element.sign_bit) if negated else codes


def gather(instruction: Instruction, inputs: Inputs) -> Operands:
    """Return the numbers of an instruction, each operand read where the inputs give it.

    C counts as +0 where scale-d is false. Raises what the family's check, reading a place, and metadata
    without a meaning raise.
    """
    instruction.family.check(instruction, inputs)
    product = instruction.product.with_immediates(inputs.negate, inputs.transposed)
    scales = gathered_scales(instruction, inputs)
    b, a = (instruction.place(name, inputs).gather(inputs, product) for name in "ba")
    zero = np.zeros(product.matrix_shape("c"), product.c.code_dtype)
    operands = Operands(
        product=instruction.product,
        a=signed(a, product.a, product.negated[0]),
        b=signed(b, product.b, product.negated[1]),
        c=instruction.place("c", inputs).gather(inputs, product) if inputs.scale_d else zero,
        columns=gathered_columns(instruction, inputs),
        **scales,
    )
    adjusted = instruction.family.adjusted
    return operands if adjusted is None else adjusted(instruction, inputs, operands)
