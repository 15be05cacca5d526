"""Dense ``mma.sync``: its table of forms and its fragment layouts.

PTX ISA 9.1, sections 9.7.14.5 "Matrix multiply-accumulate operation using mma instruction" and
9.7.14.3 "Block scaling". PTX versions and targets are those that ptxas 13.0 accepts.
"""

from __future__ import annotations

from functools import cache

from ..architectures import targets_with
from ..features import Feature
from ..formats import floats_of, integers_of
from ..instruction import REGISTERS, Family, Instruction, Row
from ..layouts.fragment_layout import Layout, column_fragment, quad_fragment, row_fragment
from ..products import Shape
from ..warps import WARP

_ALL_LAYOUTS = tuple((a, b) for a in ("row", "col") for b in ("row", "col"))
_F8, _F4 = floats_of(8), floats_of(4)
_F8F6F4 = floats_of(8, 6, 4)
_BOTH = (False, True)
_ROUNDINGS = ("", "rn", "rz", "rm", "rp")
_FLOAT = ("f16.f16", "f32.f32")
_VOLTA = ("f16.f16", "f32.f16", "f32.f32")

MX_SCALES = (("", "ue8m0"), ("1X", "ue8m0"))
MXF4_SCALES = (("", "ue8m0"), ("2X", "ue8m0"))
NVF4_SCALES = (("2X", "ue8m0"), ("4X", "ue4m3"))
NVF4_SCALES_9_1 = (("4X", "ue8m0"),)


def _row(
    shape: tuple[int, int, int],
    accumulators: str | tuple[str, ...],
    multiplicands: str | tuple[str, ...],
    operation: str,
    since: tuple[int, int],
    feature: Feature,
    **more: object,
) -> Row:
    return Row(
        shape=Shape(*shape),
        accumulators=(accumulators,) if isinstance(accumulators, str) else accumulators,
        multiplicands=(multiplicands,) if isinstance(multiplicands, str) else multiplicands,
        operation=operation,
        since=since,
        targets=targets_with(feature),
        **more,  # type: ignore[arg-type]
    )


_EIGHT, _FOUR = integers_of(8), integers_of(4)
_QUAD, _TURING, _WIDE, _F64 = Feature.QUAD_MMA, Feature.INTEGER_MMA, Feature.WIDE_MMA, Feature.F64_MMA
_FP8, _KINDS, _NARROW = Feature.FP8_MMA, Feature.KINDS, Feature.NARROW_KINDS

ROWS = (
    #    m   n  k    D.C              A, B      operation     PTX     feature
    _row((8, 8, 4), _VOLTA, "f16", "m8n8k4.f16", (6, 4), _QUAD, layouts=_ALL_LAYOUTS),
    _row((16, 8, 8), _FLOAT, "f16", "f16", (6, 5), _TURING),
    _row((16, 8, 16), _FLOAT, "f16", "f16", (7, 0), _WIDE),
    _row((16, 8, 8), "f32.f32", "bf16", "bf16", (7, 0), _WIDE),
    _row((16, 8, 16), "f32.f32", "bf16", "bf16", (7, 0), _WIDE),
    _row((16, 8, 4), "f32.f32", "tf32", "tf32", (7, 0), _WIDE),
    _row((16, 8, 8), "f32.f32", "tf32", "tf32", (7, 0), _WIDE),
    _row((8, 8, 4), "f64.f64", "f64", "f64", (7, 0), _WIDE, roundings=_ROUNDINGS),
    _row((16, 8, 4), "f64.f64", "f64", "f64", (7, 8), _F64, roundings=_ROUNDINGS),
    _row((16, 8, 8), "f64.f64", "f64", "f64", (7, 8), _F64, roundings=_ROUNDINGS),
    _row((16, 8, 16), "f64.f64", "f64", "f64", (7, 8), _F64, roundings=_ROUNDINGS),
    _row((8, 8, 16), "s32.s32", _EIGHT, "integer", (6, 5), _TURING, satfinite=_BOTH),
    _row((16, 8, 16), "s32.s32", _EIGHT, "integer", (7, 0), _WIDE, satfinite=_BOTH),
    _row((16, 8, 32), "s32.s32", _EIGHT, "integer", (7, 0), _WIDE, satfinite=_BOTH),
    _row((8, 8, 32), "s32.s32", _FOUR, "integer", (6, 5), _TURING, satfinite=_BOTH),
    _row((16, 8, 32), "s32.s32", _FOUR, "integer", (7, 0), _WIDE, satfinite=_BOTH),
    _row((16, 8, 64), "s32.s32", _FOUR, "integer", (7, 0), _WIDE, satfinite=_BOTH),
    _row((8, 8, 128), "s32.s32", "b1", "b1", (7, 0), _TURING, bit_operation="xor"),
    _row((8, 8, 128), "s32.s32", "b1", "b1", (7, 1), _WIDE, bit_operation="and"),
    _row((16, 8, 128), "s32.s32", "b1", "b1", (7, 0), _WIDE, bit_operation="xor"),
    _row((16, 8, 128), "s32.s32", "b1", "b1", (7, 1), _WIDE, bit_operation="and"),
    _row((16, 8, 256), "s32.s32", "b1", "b1", (7, 0), _WIDE, bit_operation="xor"),
    _row((16, 8, 256), "s32.s32", "b1", "b1", (7, 1), _WIDE, bit_operation="and"),
    _row((16, 8, 16), _FLOAT, _F8, "f8f6f4", (8, 7), _FP8),
    _row((16, 8, 32), "f32.f32", _F8, "f8f6f4", (8, 4), _FP8),
    _row((16, 8, 32), "f16.f16", _F8, "f8f6f4", (8, 7), _FP8),
    _row((16, 8, 16), _FLOAT, _F8, "f8f6f4", (8, 7), _KINDS, kind="f8f6f4"),
    _row((16, 8, 32), "f32.f32", _F8, "f8f6f4", (8, 6), _KINDS, kind="f8f6f4"),
    _row((16, 8, 32), "f16.f16", _F8, "f8f6f4", (8, 7), _KINDS, kind="f8f6f4"),
    _row((16, 8, 32), _FLOAT, _F8F6F4, "f8f6f4", (8, 7), _NARROW, kind="f8f6f4"),
    _row((16, 8, 32), "f32.f32", _F8F6F4, "mxf8f6f4", (8, 7), _NARROW, kind="mxf8f6f4", scales=MX_SCALES),
    _row((16, 8, 64), "f32.f32", _F4, "mxf4", (8, 7), _NARROW, kind="mxf4", scales=MXF4_SCALES),
    _row((16, 8, 64), "f32.f32", _F4, "mxf4", (8, 7), _NARROW, kind="mxf4nvf4", scales=NVF4_SCALES),
    _row((16, 8, 64), "f32.f32", _F4, "mxf4", (9, 1), _NARROW, kind="mxf4nvf4", scales=NVF4_SCALES_9_1),
)  # fmt: skip


# --- fragments -------------------------------------------------------------------------------------


@cache
def fragment(instruction: Instruction, operand: str) -> Layout:
    """Return the layout of operand a, b, c or d over the warp; sparse A over its stored columns."""
    if instruction.products > 1:
        orders = {"a": instruction.a_layout, "b": instruction.b_layout}
        return quad_fragment(operand, orders.get(operand) or instruction.format(operand).name)
    rows, columns = instruction.matrix_shape(operand)
    lanes, slots = instruction.lanes, instruction.register_bits // instruction.storage(operand).bits
    values = rows * columns // lanes
    if operand == "b":
        return column_fragment(values=values, width=slots)
    width = slots if operand == "a" else 2
    return row_fragment(lanes=lanes, values=values, width=width, halves=min(instruction.shape.m // 8, 2))


MMA = Family(
    name="mma", opcode="mma", lanes=WARP, rules="mma", rows=ROWS, fragment=fragment, places=REGISTERS
)
