"""Where the operands of tcgen05.mma lie, and what its settings change in them.

PTX ISA 9.3, section 9.7.17.10. The instruction descriptor is part of the instruction (``descriptor``). Does
not know spellings beyond ``.ws``, nor how a launch issues an instruction.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import NotModelled, OperandError, UndefinedBehavior, present
from ..arrays import as_words
from ..codes import codes_of, scale_codes_of
from ..descriptors.instruction_descriptor import InstructionDescriptor
from ..instruction import Instruction
from ..layouts.tensor_memory import (
    LANES,
    LETTERS,
    TensorLayout,
    accumulator,
    column_scales,
    metadata,
    multiplicand,
    row_scales,
)
from ..layouts.zero_columns import zero_columns
from ..operand_places.placements import NO_SCALE_SELECTORS, Inputs
from ..operand_places.tensor_placements import DescribedTile, GivenMatrix, TensorCells
from ..products import Codes, Operands

_PARTS = {128: 1, 64: 2, 32: 4}  # by M of .ws: into which a zero-column mask cuts the columns


def letter_of(instruction: Instruction) -> str:
    """Return the layout of D, by the letter of the manual."""
    stationary = is_stationary(instruction)
    return LETTERS[ctas_of(instruction), stationary, instruction.shape.m, instruction.sparse]


def is_stationary(instruction: Instruction) -> bool:
    """Return whether an instruction is a ``.ws``."""
    return "ws" in instruction.mnemonic.split(".")


def is_shifted(instruction: Instruction) -> bool:
    """Return whether an instruction multiplies rows of A that have moved: ``.ashift``."""
    return "ashift" in instruction.mnemonic.split(".")


def ctas_of(instruction: Instruction) -> int:
    """Return the CTAs whose tensor memory has parts of the operands: 1 or 2."""
    return instruction.lanes // LANES


def masks_of(instruction: Instruction) -> dict[str, int]:
    """Return the masks that a tcgen05.mma takes, and the words of 32 bits in each; nothing for others."""
    if instruction.descriptor is None or instruction.scale is not None:
        return {}
    stationary = is_stationary(instruction)
    return {"zero_column_mask": 2} if stationary else {"disable_output_lane": instruction.lanes // 32}


def descriptor_of(instruction: Instruction) -> InstructionDescriptor:
    """Return the instruction descriptor of an instruction, decoded."""
    word = present(instruction.descriptor, "descriptor")
    return InstructionDescriptor.decode(word, instruction.kind)


# --- places ------------------------------------------------------------------------------------------


def layout_of(instruction: Instruction, operand: str) -> TensorLayout | None:
    """Return the layout of an operand in tensor memory; None where the manual has figures only."""
    product, letter = instruction.product, letter_of(instruction)
    if operand in "cd":
        return accumulator(letter, product.shape.n)
    if operand == "a":
        return multiplicand(letter, product.stored_k, product.storage("a").bits)
    if operand == "e":
        chunks = product.shape.k // present(product.pattern, "pattern").chunk
        return metadata(letter, product.storage("a").bits, chunks)
    first = getattr(descriptor_of(instruction), f"{operand}_id")
    if operand == "scale_a":
        return row_scales(product.shape.m, product.scale_chunks, ctas_of(instruction), first)
    return column_scales(product.shape.n, product.scale_chunks, letter, first)


def in_tensor_memory(instruction: Instruction, operand: str) -> TensorCells:
    """Return the cells of an operand: a, c, d, e, scale_a or scale_b. Raises NotModelled."""
    layout = layout_of(instruction, operand)
    if layout is None:
        raise NotModelled(
            f"{operand} of {instruction} with layout {letter_of(instruction)} in tensor memory is known in "
            "figures only"
        )
    settings: dict[str, Any] = {"bits": 8, "code_dtype": np.dtype(np.uint8)}
    if operand in "acd":
        element = instruction.format(operand)
        storage = instruction.storage(operand)
        settings = {"bits": element.bits, "code_dtype": element.code_dtype, "low_bit": storage.shift}
    elif operand == "e":
        settings |= {"bits": 4, "first_column": descriptor_of(instruction).selector}
    return TensorCells(operand=operand, lanes=instruction.lanes, layout=layout, **settings)


def behind_descriptor(instruction: Instruction, operand: str) -> DescribedTile:
    """Return the tile of A or B in the shared memory of each CTA."""
    product, ctas = instruction.product, ctas_of(instruction)
    rows = (product.shape.m if operand == "a" else product.shape.n) // ctas
    return DescribedTile(
        operand=operand,
        rows=rows,
        row_bytes=product.row_bytes(operand),
        ctas=ctas,
        element_bytes=max(product.format(operand).bits, 8) // 8,
    )


def as_matrix(instruction: Instruction, operand: str) -> GivenMatrix:
    """Return the place of a multiplicand that is given as a matrix."""
    return GivenMatrix(operand=operand)


def _cells_if_known(instruction: Instruction, operand: str) -> TensorCells | GivenMatrix:
    """Return the cells of an operand; of a layout known in figures only, the place of a matrix."""
    known = layout_of(instruction, operand) is not None
    known &= operand != "a" or not instruction.product.transposed[0]
    return in_tensor_memory(instruction, operand) if known else as_matrix(instruction, operand)


PLACES = {
    "a": (as_matrix, behind_descriptor, _cells_if_known),
    "b": (as_matrix, behind_descriptor),
    "c": (in_tensor_memory,),
    "d": (in_tensor_memory,),
    "e": (in_tensor_memory,),
    "scale_a": (as_matrix, _cells_if_known),
    "scale_b": (as_matrix, _cells_if_known),
}


# --- inputs ------------------------------------------------------------------------------------------


_MATRICES = ("a", "b", "scale_a", "scale_b")  # that need not lie in tensor memory


def arranged(instruction: Instruction, inputs: Inputs) -> Inputs:
    """Return the inputs with matrices set apart from words of tensor memory, which are uint32.

    B is always a matrix. Raises OperandError, and NotModelled for words of what cannot lie in tensor memory.
    """
    given, matrices = dict(inputs.registers), dict(inputs.matrices)
    for operand in _MATRICES:
        array = given.get(operand)
        if array is None:
            continue
        if inputs.descriptor(operand) is not None:
            raise OperandError(f"{operand.upper()} is given twice: as {operand} and behind {operand}_desc")
        if operand == "b" or array.dtype != np.uint32:
            matrices[operand] = _matrix(instruction, operand, given.pop(operand))
        elif operand not in instruction.registers:
            raise _misplaced_operand(instruction, operand)
    if is_shifted(instruction):
        if "a" not in given:
            raise OperandError(f"{instruction} shifts A in tensor memory: give a= as uint32 words")
        check_shift(instruction)
    _check_settings(instruction, inputs)
    _check_lanes(instruction, inputs)
    _check_tiles(instruction, inputs, given.keys() | matrices.keys())
    return replace(inputs, registers=given, matrices=matrices)


def _matrix(instruction: Instruction, operand: str, array: npt.NDArray[Any]) -> Codes:
    """Return the codes of a matrix; raises OperandError for what the instruction does not take."""
    shape, name = instruction.shape, operand
    if operand in "ab":
        codes, name = codes_of(array, instruction.format(operand), operand.upper()), operand.upper()
        expected = instruction.matrix_shape(operand)
    elif instruction.scale is None:
        raise OperandError(f"{instruction} has no block scales: it takes no {operand}")
    else:
        codes, chunks = scale_codes_of(array, instruction.scale, operand), instruction.scale_chunks
        expected = (shape.m, chunks) if operand == "scale_a" else (chunks, shape.n)
    if codes.shape[-2:] != expected:
        stored = ", as it is stored" if operand == "a" and instruction.sparse else ""
        words = f"; uint32 words of tensor memory are another way to give {name}" * (operand != "b")
        raise OperandError(
            f"{operand} has shape {array.shape}, but the matrix {name} is (..., {expected[0]}, {expected[1]})"
            f"{stored}{words}"
        )
    return codes


def _misplaced_operand(
    instruction: Instruction, operand: str
) -> OperandError | NotModelled | UndefinedBehavior:
    """Return the error of words of tensor memory for an operand that cannot lie there."""
    if operand == "a" and instruction.product.transposed[0]:
        return UndefinedBehavior("A in tensor memory is K-major, but its descriptor says transpose A")
    if operand.startswith("scale") and instruction.scale is None:
        return OperandError(f"{instruction} has no block scales: it takes no {operand}")
    return NotModelled(
        f"{operand} in tensor memory with layout {letter_of(instruction)} is known in figures only: "
        f"give it as a matrix"
    )


def _check_tiles(instruction: Instruction, inputs: Inputs, given: set[str]) -> None:
    """Raise OperandError where A or B is given nowhere."""
    ways = {"a": "words of tensor memory or a matrix a=", "b": "a matrix b="}
    for operand, way in ways.items():
        if operand in given:
            continue
        if inputs.descriptor(operand) is None or inputs.shared is None:
            raise OperandError(
                f"{instruction} needs {operand.upper()}: {way}, or {operand}_desc= and shared="
            )


def _check_settings(instruction: Instruction, inputs: Inputs) -> None:
    """Raise OperandError for what other instructions take, and the instruction descriptor says here."""
    if any(inputs.negate + inputs.transposed):
        raise OperandError(
            f"{instruction} has no imm_scale and no imm_trans: its descriptor says signs and majors"
        )
    if inputs.selector or inputs.scale_selectors != NO_SCALE_SELECTORS:
        raise OperandError(
            f"{instruction}: selector and ids of scale factors are in its instruction descriptor, idesc="
        )
    tensor = inputs.tensor
    if tensor.scale_input_d and instruction.kind not in ("f16", "tf32"):
        raise OperandError(f"scale_input_d belongs to kind::f16 and kind::tf32, not to {instruction.kind}")
    if tensor.zero_column_mask and "zero_column_mask" not in masks_of(instruction):
        raise OperandError(f"zero_column_mask belongs to tcgen05.mma.ws, not to {instruction}")


def check_shift(instruction: Instruction) -> None:
    """Raise OperandError for rows of A that ``.ashift`` does not have, NotModelled for a sparse A."""
    if instruction.shape.m < LANES * ctas_of(instruction):
        raise OperandError(f".ashift has M of 128, of a pair 256, not {instruction.shape.m}")
    if instruction.sparse:
        raise NotModelled(".ashift of a sparse A: whether metadata move with the rows is not documented")


def _check_lanes(instruction: Instruction, inputs: Inputs) -> None:
    words = inputs.tensor.disable_output_lane
    if not words:
        return
    count = masks_of(instruction).get("disable_output_lane")
    if count is None:
        raise OperandError(f"{instruction} has no lanes of D to disable: no .ws and no block scales have")
    if len(words) != count:
        raise OperandError(f"disable_output_lane has {len(words)} words, but {instruction} takes {count}")


def as_lane_words(lanes: Any) -> tuple[int, ...]:
    """Return the words of disable-output-lane as Python's integers; raises OperandError."""
    words = as_words(lanes, "disable_output_lane")
    if words.ndim != 1 or (words >> np.uint64(32)).any():
        raise OperandError("disable_output_lane is 4 words of 32 bits, of a pair 8")
    return tuple(int(word) for word in words)


# --- operands ----------------------------------------------------------------------------------------


def adjusted(instruction: Instruction, inputs: Inputs, operands: Operands) -> Operands:
    """Return the operands with D scaled down and the columns of B zeroed that the inputs say, and the rows of
    A moved that ``.ashift`` moves.
    """
    tensor = inputs.tensor
    if is_shifted(instruction):
        moved = operands.a[..., shifted_rows(instruction.shape.m, ctas_of(instruction)), :]
        operands = replace(operands, a=moved)
    if tensor.scale_input_d and inputs.scale_d:
        operands = replace(operands, c=scaled_down(operands.c, tensor.scale_input_d, instruction.c.name))
    if tensor.zero_column_mask:
        off = zero_mask(instruction, tensor.zero_column_mask)
        operands = replace(operands, b=np.where(off, operands.b.dtype.type(0), operands.b))
    return operands


def shifted_rows(m: int, ctas: int) -> npt.NDArray[np.intp]:
    """Return ``(m,)``: the row whose elements of A each row has under ``.ashift``.

    Inferred: rows take those of the next, but the last of each CTA its own. PTX ISA 9.3, section 9.7.17.10.9.
    """
    own = m // ctas
    row = np.arange(m)
    return np.where(row % own == own - 1, row, row + 1)


def zero_mask(instruction: Instruction, mask: int) -> npt.NDArray[np.bool_]:
    """Return ``(n,)``: the columns of B that a zero-column mask sets to zero; raises as zero_columns does."""
    return _zero_mask(mask, instruction.shape.n, _PARTS[instruction.shape.m])


@lru_cache(maxsize=64)
def _zero_mask(mask: int, n: int, parts: int) -> npt.NDArray[np.bool_]:
    return zero_columns(mask, n, parts)


def scaled_down(codes: Codes, power: int, element: str) -> Codes:
    """Return codes of f32 or f16 times ``2**-power``; raises NotModelled where that is not exact."""
    dtype = np.dtype(np.float16 if element == "f16" else np.float32)
    values = codes.view(dtype)
    with np.errstate(all="ignore"):
        scaled = np.ldexp(values.astype(np.float64), -power).astype(dtype)
    wrong = np.isfinite(values) & (np.ldexp(scaled.astype(np.float64), power) != values)
    if wrong.any():
        raise NotModelled(
            f"scale-input-d {power} of D = {values[wrong][0]!r}: how subnormals round is not known"
        )
    return np.where(np.isnan(values), codes, scaled.view(codes.dtype))
