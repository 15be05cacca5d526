"""``wgmma.mma_async`` and ``wgmma.mma_async.sp``: table of forms; fragments of the 128 lanes.

PTX ISA 9.1, sections 9.7.15.5 "Asynchronous warpgroup level matrix multiply-accumulate" and 9.7.15.6
(sparse). A lies in registers or in shared memory, B always in shared memory (see descriptors), the
accumulator D in registers. Warp i of the warpgroup holds rows 16i to 16i + 15 in the fragments of mma.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from ...errors import IllegalInstruction, OperandError, present
from ..architectures import targets_with
from ..descriptors.matrix_descriptor import Descriptor, Major
from ..descriptors.tile_addresses import load_tile, touched_bytes
from ..features import Feature
from ..formats import Format, floats_of, integers_of
from ..fragments import codes_from, gathered_columns
from ..instruction import Codes, Family, Inputs, Instruction, Operands, Row, Shape
from .mma import fragment
from .mma_sp import metadata_layout

_TARGETS = targets_with(Feature.WGMMA)
_EVERY_8 = tuple(range(8, 257, 8))
_INTEGER_N = (8, 16, 24, *range(32, 257, 16))
_F8 = floats_of(8)
_FLOAT = ("f16.f16", "f32.f32")


def _rows(
    k: int,
    accumulators: tuple[str, ...],
    multiplicands: tuple[str, ...],
    operation: str,
    columns: tuple[int, ...] = _EVERY_8,
    *,
    sparse: bool,
    since: tuple[int, int] | None = None,
    satfinite: tuple[bool, ...] = (False,),
    bit_operation: str = "",
) -> tuple[Row, ...]:
    """One row for each N; the sparse form has twice the k."""
    return tuple(
        Row(
            shape=Shape(64, n, 2 * k if sparse else k),
            accumulators=accumulators,
            multiplicands=multiplicands,
            operation=operation,
            since=since or ((8, 2) if sparse else (8, 0)),
            targets=_TARGETS,
            variants=("sp",) if sparse else ("",),
            layouts=(("", ""),),
            satfinite=satfinite,
            bit_operation=bit_operation,
        )
        for n in columns
    )


def _table(*, sparse: bool) -> tuple[Row, ...]:
    saturating = (False, True)
    mixed = integers_of(8)
    return tuple(
        chain(
            #      k   D.D     A, B      operation
            _rows(16, _FLOAT, ("f16",), "f16", sparse=sparse),
            _rows(16, ("f32.f32",), ("bf16",), "bf16", sparse=sparse),
            _rows(8, ("f32.f32",), ("tf32",), "tf32", sparse=sparse),
            _rows(32, _FLOAT, _F8, "f8f6f4", sparse=sparse),
            _rows(32, ("s32.s32",), ("s8",), "integer", _INTEGER_N, sparse=sparse, satfinite=saturating),
            _rows(32, ("s32.s32",), ("u8",), "integer", _INTEGER_N, sparse=sparse, satfinite=saturating),
            _rows(32, ("s32.s32",), mixed, "integer", _INTEGER_N, sparse=sparse, satfinite=saturating,
                  since=(8, 4)),
        )
    )  # fmt: skip


_BITS = _rows(256, ("s32.s32",), ("b1",), "b1", _INTEGER_N, sparse=False, bit_operation="and")


# --- gathering -------------------------------------------------------------------------------------


def gather(instruction: Instruction, inputs: Inputs) -> Operands:
    """Operands of a warpgroup instruction: B and perhaps A come from shared memory.

    The accumulator counts as +0 where scale-d is false; imm-scale -1 flips the sign of every element.
    Raises OperandError for missing inputs and for immediates that the form does not have, and what
    reading the tiles raises.
    """
    _check_immediates(instruction, inputs)
    k, n = instruction.matrix_shape("b")
    b = np.swapaxes(_tile(instruction, inputs, 1, n, k), -1, -2)
    if inputs.a_descriptor is None:
        a = codes_from(inputs.registers["a"], instruction, "a")
    else:
        a = _tile(instruction, inputs, 0, *instruction.matrix_shape("a"))
    zero = np.zeros(instruction.matrix_shape("c"), instruction.c.code_dtype)
    return Operands(
        instruction=instruction,
        a=_signed(a, instruction.a, inputs.negate[0]),
        b=_signed(b, instruction.b, inputs.negate[1]),
        c=codes_from(inputs.registers["c"], instruction, "c") if inputs.scale_d else zero,
        columns=gathered_columns(instruction, inputs),
    )


def _signed(codes: Codes, element: Format, negate: bool) -> Codes:
    return codes ^ element.code_dtype.type(element.sign_bit) if negate else codes


def _check_immediates(instruction: Instruction, inputs: Inputs) -> None:
    """imm-scale belongs to floating point, imm-trans to 16-bit elements in shared memory."""
    if inputs.b_descriptor is None or inputs.shared is None:
        raise OperandError(f"{instruction} reads B from shared memory: give b_desc= and shared=")
    if any(inputs.negate) and not instruction.a.is_float:
        raise IllegalInstruction(f"{instruction} has no imm-scale: only floating-point forms do")
    if any(inputs.transposed) and instruction.a.bits != 16:
        raise IllegalInstruction(f"{instruction} has no imm-trans: only f16 and bf16 forms do")
    if inputs.transposed[0] and inputs.a_descriptor is None:
        raise IllegalInstruction("imm-trans-a belongs to A in shared memory; here A is in registers")


def _tile(instruction: Instruction, inputs: Inputs, side: int, rows: int, columns: int) -> Codes:
    """Codes ``(..., rows, columns)`` of A (side 0) or B (side 1, rows along n) in shared memory."""
    shared = present(inputs.shared, "shared")
    element = instruction.format("ab"[side])
    descriptors = (inputs.a_descriptor, inputs.b_descriptor)[side]
    descriptors = present(descriptors, "descriptors")
    major: Major = "MN" if inputs.transposed[side] else "K"
    read = partial(_read, element=element, rows=rows, columns=columns, major=major, literal=inputs.literal)
    if np.unique(descriptors).size == 1:
        return read(shared, int(descriptors.flat[0]))
    batch = np.broadcast_shapes(descriptors.shape, shared.shape[:-1])
    memories = np.broadcast_to(shared, (*batch, shared.shape[-1]))
    values = np.broadcast_to(descriptors, batch)
    tiles = [read(memories[index], int(values[index])) for index in np.ndindex(batch)]
    return np.stack(tiles).reshape(*batch, rows, columns)


def _read(
    memory: npt.NDArray[np.uint8],
    descriptor: int,
    *,
    element: Format,
    rows: int,
    columns: int,
    major: Major,
    literal: bool,
) -> Codes:
    """One tile; eight 1-bit elements are read as a byte, the first in its lowest bit."""
    bytewise = max(element.bits, 8)
    tile = load_tile(
        memory,
        Descriptor.decode(descriptor),
        mn=rows,
        k=columns * element.bits // bytewise,
        dtype=np.dtype(f"u{bytewise // 8}"),
        major=major,
        literal=literal,
    )
    return tile if element.bits == bytewise else np.unpackbits(tile, axis=-1, bitorder="little")


@lru_cache(maxsize=4096)
def tile_bytes(
    form: Instruction, side: int, descriptor: int, memory_bytes: int, literal: bool, transposed: bool
) -> npt.NDArray[np.int64]:
    """The bytes ``(n, 2)`` that A (side 0) or B take up in shared memory; do not write to them.

    Raises as touched_bytes does.
    """
    rows, columns = form.matrix_shape("a") if side == 0 else (form.shape.n, form.shape.k)
    bits = form.format("ab"[side]).bits
    return touched_bytes(
        Descriptor.decode(np.uint64(descriptor)),
        mn=rows,
        k=columns * bits // max(bits, 8),
        element_bits=max(bits, 8),
        major="MN" if transposed else "K",
        memory_bytes=memory_bytes,
        literal=literal,
    )


WGMMA = Family(
    name="wgmma",
    opcode="wgmma",
    lanes=128,
    rules="wgmma",
    rows=_table(sparse=False) + _BITS,
    fragment=fragment,
    gather=gather,
    operands="acd",
    modifiers=("mma_async",),
    types="dab",
)
WGMMA_SP = Family(
    name="wgmma.sp",
    opcode="wgmma",
    lanes=128,
    rules="wgmma",
    rows=_table(sparse=True),
    fragment=fragment,
    gather=gather,
    metadata=metadata_layout,
    operands="acd",
    modifiers=("mma_async",),
    types="dab",
)
