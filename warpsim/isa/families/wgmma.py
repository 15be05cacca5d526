"""``wgmma.mma_async`` and ``wgmma.mma_async.sp``: table of forms; fragments of the 128 lanes.

PTX ISA 9.1, sections 9.7.15.5 "Asynchronous warpgroup level matrix multiply-accumulate" and 9.7.15.6
(sparse). A lies in registers or in shared memory, B always in shared memory (see descriptor.py), the
accumulator D in registers. Warp i of the warpgroup holds rows 16i to 16i + 15 in the fragments of mma.
"""

from __future__ import annotations

from itertools import chain

from ...base.errors import IllegalInstruction, OperandError
from ..architectures import targets_with
from ..features import Feature
from ..formats import floats_of, integers_of
from ..instruction import METADATA, Family, Instruction, Row, in_registers, in_shared_memory
from ..operand_places.placements import Inputs
from ..products import Shape
from ..warps import WARPGROUP
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


# --- operands --------------------------------------------------------------------------------------

PLACES = {
    "a": (in_shared_memory, in_registers),
    "b": (in_shared_memory,),
    "c": (in_registers,),
    "d": (in_registers,),
}


def check(instruction: Instruction, inputs: Inputs) -> None:
    """Raise for missing tiles and for immediates that the form does not have.

    imm-scale belongs to floating point, imm-trans to 16-bit elements in shared memory.
    """
    if inputs.b_descriptor is None or inputs.shared is None:
        raise OperandError(f"{instruction} reads B from shared memory: give b_desc= and shared=")
    if any(inputs.negate) and not instruction.a.is_float:
        raise IllegalInstruction(f"{instruction} has no imm-scale: only floating-point forms do")
    if any(inputs.transposed) and instruction.a.bits != 16:
        raise IllegalInstruction(f"{instruction} has no imm-trans: only f16 and bf16 forms do")
    if inputs.transposed[0] and inputs.a_descriptor is None:
        raise IllegalInstruction("imm-trans-a belongs to A in shared memory; here A is in registers")


WGMMA = Family(
    name="wgmma",
    opcode="wgmma",
    lanes=WARPGROUP,
    rules="wgmma",
    rows=_table(sparse=False) + _BITS,
    fragment=fragment,
    places=PLACES,
    check=check,
    modifiers=("mma_async",),
    types="dab",
)
WGMMA_SP = Family(
    name="wgmma.sp",
    opcode="wgmma",
    lanes=WARPGROUP,
    rules="wgmma",
    rows=_table(sparse=True),
    fragment=fragment,
    places={**PLACES, **METADATA},
    check=check,
    metadata=metadata_layout,
    modifiers=("mma_async",),
    types="dab",
)
