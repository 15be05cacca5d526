"""Sparse ``mma.sp`` and ``mma.sp::ordered_metadata``: table of forms and place of the metadata.

PTX ISA 9.1, section 9.7.14.6 "Matrix multiply-accumulate operation using mma.sp instruction with
sparse matrix A". Fragments are those of dense forms: A's over its stored columns, B's over all of k.
"""

from __future__ import annotations

from functools import cache

from ...base.errors import present
from ..architectures import targets_with
from ..features import Feature
from ..formats import floats_of, integers_of
from ..instruction import METADATA, REGISTERS, Family, Instruction, Row
from ..layouts.field_layout import FieldLayout, metadata_fields
from ..products import Shape
from ..sparsity import FIELD_BITS
from ..warps import WARP
from .mma import MX_SCALES, MXF4_SCALES, NVF4_SCALES, NVF4_SCALES_9_1, fragment

_BOTH_SINCE = (("sp", (7, 1)), ("sp::ordered_metadata", (8, 5)))
_ORDERED = "sp::ordered_metadata"


def _plain_and_ordered(
    shape: tuple[int, int, int],
    accumulators: tuple[str, ...],
    multiplicands: tuple[str, ...],
    operation: str,
    feature: Feature,
    since: tuple[int, int] = (7, 1),
) -> tuple[Row, ...]:
    """Return the row twice: plain ``.sp`` and, from PTX 8.5, ``.sp::ordered_metadata``."""
    return tuple(
        Row(
            shape=Shape(*shape),
            accumulators=accumulators,
            multiplicands=multiplicands,
            operation=operation,
            since=max(since, variant_since),
            targets=targets_with(feature),
            variants=(variant,),
            satfinite=(False, True) if operation == "integer" else (False,),
        )
        for variant, variant_since in _BOTH_SINCE
    )


def _ordered(
    k: int,
    accumulators: tuple[str, ...],
    multiplicands: tuple[str, ...],
    operation: str,
    since: tuple[int, int],
    feature: Feature,
    kind: str = "",
    scales: tuple[tuple[str, str], ...] = (("", ""),),
) -> Row:
    return Row(
        shape=Shape(16, 8, k),
        accumulators=accumulators,
        multiplicands=multiplicands,
        operation=operation,
        since=since,
        targets=targets_with(feature),
        variants=(_ORDERED,),
        kind=kind,
        scales=scales,
    )


_F32 = ("f32.f32",)
_F16_F32 = ("f16.f16", "f32.f32")
_S32 = ("s32.s32",)
_F8, _F4 = floats_of(8), floats_of(4)
_F8F6F4 = floats_of(8, 6, 4)
_EIGHT, _FOUR = integers_of(8), integers_of(4)
_WIDE, _FP8, _KINDS = Feature.WIDE_MMA, Feature.FP8_MMA, Feature.KINDS
_NARROW, _SPARSE_F4 = Feature.NARROW_KINDS, Feature.SPARSE_F4

ROWS = (
    #      m   n  k     D.C      A, B     operation  from
    *_plain_and_ordered((16, 8, 16), _F16_F32, ("f16",), "f16", _WIDE),
    *_plain_and_ordered((16, 8, 32), _F16_F32, ("f16",), "f16", _WIDE),
    *_plain_and_ordered((16, 8, 16), _F32, ("bf16",), "bf16", _WIDE),
    *_plain_and_ordered((16, 8, 32), _F32, ("bf16",), "bf16", _WIDE),
    *_plain_and_ordered((16, 8, 8), _F32, ("tf32",), "tf32", _WIDE),
    *_plain_and_ordered((16, 8, 16), _F32, ("tf32",), "tf32", _WIDE),
    *_plain_and_ordered((16, 8, 32), _S32, _EIGHT, "integer", _WIDE),
    *_plain_and_ordered((16, 8, 64), _S32, _EIGHT, "integer", _WIDE),
    *_plain_and_ordered((16, 8, 64), _S32, _FOUR, "integer", _WIDE),
    *_plain_and_ordered((16, 8, 128), _S32, _FOUR, "integer", _WIDE),
    *_plain_and_ordered((16, 8, 64), _F32, _F8, "f8f6f4", _FP8, since=(8, 4)),
    _ordered(64, ("f16.f16",), _F8, "f8f6f4", (8, 7), _NARROW),
    _ordered(64, _F32, _F8, "f8f6f4", (8, 6), _KINDS, "f8f6f4"),
    _ordered(64, _F16_F32, _F8F6F4, "f8f6f4", (8, 7), _NARROW, "f8f6f4"),
    _ordered(64, _F32, _F8F6F4, "mxf8f6f4", (8, 7), _NARROW, "mxf8f6f4", MX_SCALES),
    _ordered(128, _F32, _F4, "mxf4", (8, 7), _SPARSE_F4, "mxf4", MXF4_SCALES),
    _ordered(128, _F32, _F4, "mxf4", (8, 7), _SPARSE_F4, "mxf4nvf4", NVF4_SCALES),
    _ordered(128, _F32, _F4, "mxf4", (9, 1), _SPARSE_F4, "mxf4nvf4", NVF4_SCALES_9_1),
)


@cache
def metadata_layout(instruction: Instruction, selector: int) -> FieldLayout:
    """Return the layout ``(row, chunk) -> (lane, lowest bit)`` of the metadata under a selector."""
    pattern = present(instruction.pattern, "pattern")
    return metadata_fields(
        rows=instruction.shape.m,
        chunks=instruction.shape.k // pattern.chunk,
        field_bits=FIELD_BITS,
        element_bits=instruction.storage("a").bits,
        first_lane=instruction.metadata_words * selector,
    )


MMA_SP = Family(
    name="mma.sp",
    opcode="mma",
    lanes=WARP,
    rules="mma",
    rows=ROWS,
    fragment=fragment,
    places={**REGISTERS, **METADATA},
    metadata=metadata_layout,
)
