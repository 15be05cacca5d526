"""add, sub, mul and fma of f16, f16x2, bf16 and bf16x2.

Knows the forms of PTX ISA 9.0, sections 9.7.4.1 to 9.7.4.4, as ptxas 13.0 takes them, and that .oob makes a
result +0.0 wherever a source is the value that tensor copies fill with. Missing: fma.{rz,rm,rp} of bf16,
which ptxas takes but the manual does not have: it generates the code of an f16 sum for them. In: fma.oob.sat
of f16, which the manual does not have but the hardware does (HFMA2.OOB.SAT).

A sum or product of two f16 values, and a sum of two bf16 values, is rounded in f32 first without harm: 24
bits are at least twice the format's precision and two (Figueroa, "When is double rounding innocuous?"), and
what f32 does not hold exactly is never subnormal in the result. Products of bf16 may be, and go through
float64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....isa.features import Feature
from ..operation import Operation, Row, Values, array, opcode_row
from .float_bits import FORMATS, in_pairs, quiet, widened
from .rounding import TININESS, Exact, brain, half, odd_fma, odd_product, odd_sum
from .stages import Arithmetic, native

OUT_OF_BOUNDS = 0x7FF7
OOB = (
    "inferred: OOB NaN is 0x7ff7, as reported of tensor copies on sm_120, and any of the three sources may "
    "be it; the manual gives no bits"
)


def _brain_add(a: Values, b: Values) -> Values:
    """Return uint16 bits of a + b for bits of bf16 values."""
    total = (a.astype(np.uint32) << np.uint32(16)).view(np.float32) + (
        b.astype(np.uint32) << np.uint32(16)
    ).view(np.float32)
    return brain(array(total).view(np.uint32))


def _through_double(exact: Exact, type_name: str) -> Callable[..., Values]:
    """Return a function of bits to bits, by the value rounded to odd in float64."""
    return lambda *sources: half(exact(*(widened(source, type_name) for source in sources), "rn"), type_name)


_EXACT: dict[str, Exact] = {"add": odd_sum, "sub": odd_sum, "mul": odd_product, "fma": odd_fma}
_NEAREST: dict[tuple[str, str], Callable[..., Values]] = {
    ("add", "f16"): native(np.add, np.float16),
    ("mul", "f16"): native(np.multiply, np.float16),
    ("fma", "f16"): _through_double(odd_fma, "f16"),
    ("add", "bf16"): _brain_add,
    ("mul", "bf16"): _through_double(odd_product, "bf16"),
    ("fma", "bf16"): _through_double(odd_fma, "bf16"),
}


def _without_bounds(compute: Callable[..., Values]) -> Callable[..., Values]:
    """Return ``compute``, with +0.0 where a source is out of bounds."""

    def bounded(*sources: Values) -> Values:
        outside = [source == np.uint16(OUT_OF_BOUNDS) for source in sources]
        return np.where(outside[0] | outside[1] | outside[2], np.uint16(0), compute(*sources))

    return bounded


def _function(opcode: str, type_name: str, ftz: str, clamp: str, oob: str) -> Callable[..., Values]:
    """Return bits of f16 or bf16 sources -> bits of the result."""
    step = "add" if opcode == "sub" else opcode
    compute: Callable[..., Values] = Arithmetic(
        type_name=type_name, nearest=_NEAREST[step, type_name], exact=_EXACT[step], ftz=bool(ftz), clamp=clamp
    )
    if opcode == "sub":
        sign = FORMATS[type_name].sign
        return lambda a, b: compute(a, b ^ sign)
    return _without_bounds(compute) if oob else compute


def _operation(opcode: str, type_name: str, ftz: str = "", clamp: str = "", oob: str = "") -> Operation:
    function = in_pairs(_function(opcode, type_name.removesuffix("x2"), ftz, clamp, oob), type_name)
    notes = [OOB] * bool(oob) + [TININESS] * bool(ftz and opcode in ("mul", "fma"))
    return Operation(
        results=(type_name,),
        sources=(type_name,) * (3 if opcode == "fma" else 2),
        compute=quiet(lambda *sources: (function(*sources),)),
        fidelity="inferred" if notes else "exact",
        note="; ".join(notes),
    )


def _binary(opcode: str) -> Callable[[str, str, str, str], Operation]:
    return lambda rounding, ftz, sat, type_name: _operation(opcode, type_name, ftz, sat)


def _fma(rounding: str, ftz: str, clamp: str, type_name: str) -> Operation:
    return _operation("fma", type_name, ftz, clamp)


def _fma_oob(rounding: str, oob: str, clamp: str, type_name: str) -> Operation:
    return _operation("fma", type_name, "", clamp, oob)


_F16, _BF16 = ("f16", "f16x2"), ("bf16", "bf16x2")
_RN, _FTZ, _SAT, _OOB, _NONE = ("", "rn"), ("", "ftz"), ("", "sat"), ("oob",), ("",)

_CLAMP, _RELU, _ONE_RN = ("", "relu", "sat"), ("", "relu"), ("rn",)

_BF16_ARITHMETIC, _BF16_FMA, _F16_CLAMPS = Feature.BF16_ARITHMETIC, Feature.BF16_FMA, Feature.F16_CLAMPS
_OUTSIDE = Feature.OUT_OF_BOUNDS
ROWS: tuple[Row, ...] = (
    opcode_row(_binary, "add", _RN, _FTZ, _SAT, _F16, since=(4, 2)),
    opcode_row(_binary, "sub", _RN, _FTZ, _SAT, _F16, since=(4, 2)),
    opcode_row(_binary, "mul", _RN, _FTZ, _SAT, _F16, since=(4, 2)),
    opcode_row(_binary, "add", _RN, _NONE, _NONE, _BF16, since=(7, 8), feature=_BF16_ARITHMETIC),
    opcode_row(_binary, "sub", _RN, _NONE, _NONE, _BF16, since=(7, 8), feature=_BF16_ARITHMETIC),
    opcode_row(_binary, "mul", _RN, _NONE, _NONE, _BF16, since=(7, 8), feature=_BF16_ARITHMETIC),
    Row(opcode="fma", slots=(_ONE_RN, _FTZ, _SAT, _F16), build=_fma, since=(4, 2)),
    Row(opcode="fma", slots=(_ONE_RN, _FTZ, ("relu",), _F16), build=_fma, since=(7, 0), feature=_F16_CLAMPS),
    Row(opcode="fma", slots=(_ONE_RN, _NONE, _RELU, _BF16), build=_fma, since=(7, 0), feature=_BF16_FMA),
    Row(opcode="fma", slots=(_ONE_RN, _OOB, _CLAMP, _F16), build=_fma_oob, since=(8, 1), feature=_OUTSIDE),
    Row(opcode="fma", slots=(_ONE_RN, _OOB, _RELU, _BF16), build=_fma_oob, since=(8, 1), feature=_OUTSIDE),
)  # fmt: skip
