"""add, sub, mul, fma and mad of f32, f32x2 and f64, and the sums that mix f32 with f16 or bf16.

Knows the forms of PTX ISA 9.0, sections 9.7.3.3 to 9.7.3.7 and 9.7.5, as ptxas 13.0 takes them. ``mad`` with
a rounding modifier is ``fma``. Does not know f16 and bf16 results (halves.py), nor division (rounded.py).

Relies on NumPy's float32 and float64 arithmetic being IEEE 754, to nearest even, with subnormals: the caller
sets such an environment.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....isa.features import Feature
from ..operation import Operation, Row, Values, array, opcode_row
from . import doubles
from .float_bits import in_pairs, nan_results, quiet, widened
from .rounding import TININESS, Exact, odd_fma, odd_product, odd_sum, single
from .stages import Arithmetic, native

ROUNDINGS = ("rn", "rz", "rm", "rp")


def fma_nearest(a: Values, b: Values, c: Values) -> Values:
    """Return uint32 bits of a * b + c, rounded once, for bits of three f32 values.

    The sum in float64 rounds as the exact sum does unless it lies halfway between two f32 values, or may do
    so because the result is hardly normal: then the error of the sum decides.
    """
    product = a.view(np.float32).astype(np.float64) * b.view(np.float32)
    total = array(product + c.view(np.float32))
    bits = single(total, "rn")
    ties = (total.view(np.uint64) & np.uint64(0x1FFF_FFFF)) == np.uint64(0x1000_0000)
    small = (bits & np.uint32(0x7FFF_FFFF)) <= np.uint32(0x0080_0000)
    if ties.any() or (small & (total != 0)).any():
        bits = single(odd_sum(product, c.view(np.float32).astype(np.float64), "rn"), "rn")
    return bits


def negated(bits: Values) -> Values:
    """Return bits of f32 values with the other sign."""
    return bits ^ np.uint32(0x8000_0000)


_NEAREST: dict[str, Callable[..., Values]] = {
    "add": native(np.add, np.float32),
    "mul": native(np.multiply, np.float32),
    "fma": fma_nearest,
}
_EXACT: dict[str, Exact] = {"add": odd_sum, "mul": odd_product, "fma": odd_fma}
_STEPS = {"add": "add", "sub": "add", "mul": "mul", "fma": "fma", "mad": "fma"}  # opcode -> arithmetic
_COUNTS = {"add": 2, "mul": 2, "fma": 3}


def _arithmetic(opcode: str, rounding: str, ftz: str, sat: str) -> Callable[..., Values]:
    """Return bits of f32 sources -> bits of the f32 result."""
    step = _STEPS[opcode]
    compute = Arithmetic(
        type_name="f32", nearest=_NEAREST[step], exact=_EXACT[step], rounding=rounding or "rn",
        ftz=bool(ftz), clamp=sat,
    )  # fmt: skip
    return (lambda a, b: compute(a, negated(b))) if opcode == "sub" else compute


def _singles(opcode: str) -> Callable[[str, str, str, str], Operation]:
    """Return ``build`` of a row of f32 or f32x2."""

    def build(rounding: str, ftz: str, sat: str, type_name: str) -> Operation:
        function = in_pairs(_arithmetic(opcode, rounding, ftz, sat), type_name)
        inferred = ftz and _STEPS[opcode] != "add"
        return Operation(
            results=(type_name,),
            sources=(type_name,) * _COUNTS[_STEPS[opcode]],
            compute=quiet(lambda *sources: (function(*sources),)),
            fidelity="inferred" if inferred else "exact",
            note=TININESS if inferred else "",
        )

    return build


def _mixed(opcode: str) -> Callable[[str, str, str, str], Operation]:
    """Return ``build`` of a row whose last source and result are f32, and its other sources f16 or bf16."""

    def build(rounding: str, sat: str, result: str, narrow: str) -> Operation:
        function = _arithmetic(opcode, rounding, "", sat)
        count = _COUNTS[_STEPS[opcode]]

        def compute(*sources: Values) -> tuple[Values]:
            wide = (widened(source, narrow).astype(np.float32).view(np.uint32) for source in sources[:-1])
            return (function(*wide, sources[-1]),)

        sources = (*(narrow,) * (count - 1), result)
        return Operation(results=(result,), sources=sources, compute=quiet(compute))

    return build


def _doubles(opcode: str) -> Callable[[str, str], Operation]:
    """Return ``build`` of a row of f64."""

    def build(rounding: str, type_name: str) -> Operation:
        function = doubles.ARITHMETIC[opcode]
        return Operation(
            results=(type_name,),
            sources=(type_name,) * _COUNTS[_STEPS[opcode]],
            compute=quiet(lambda *sources: (function(*sources, rounding or "rn"),)),
            fidelity="inferred",
            note=doubles.NAN,
            where=nan_results(type_name),
        )

    return build


_ANY = ("", *ROUNDINGS)
_FTZ, _SAT = ("", "ftz"), ("", "sat")
_NONE, _F32X2, _HALF = ("",), ("f32x2",), ("f16", "bf16")

_F32_PAIRS, _MIXED_SUMS = Feature.F32_PAIRS, Feature.MIXED_SUMS
ROWS: tuple[Row, ...] = (
    opcode_row(_singles, "add", _ANY, _FTZ, _SAT, ("f32",)),
    opcode_row(_singles, "sub", _ANY, _FTZ, _SAT, ("f32",)),
    opcode_row(_singles, "mul", _ANY, _FTZ, _SAT, ("f32",)),
    opcode_row(_singles, "fma", ROUNDINGS, _FTZ, _SAT, ("f32",), since=(2, 0)),
    opcode_row(_singles, "mad", ROUNDINGS, _FTZ, _SAT, ("f32",), since=(2, 0)),
    opcode_row(_singles, "add", _ANY, _FTZ, _NONE, _F32X2, since=(8, 6), feature=_F32_PAIRS),
    opcode_row(_singles, "sub", _ANY, _FTZ, _NONE, _F32X2, since=(8, 6), feature=_F32_PAIRS),
    opcode_row(_singles, "mul", _ANY, _FTZ, _NONE, _F32X2, since=(8, 6), feature=_F32_PAIRS),
    opcode_row(_singles, "fma", ROUNDINGS, _FTZ, _NONE, _F32X2, since=(8, 6), feature=_F32_PAIRS),
    opcode_row(_mixed, "add", _ANY, _SAT, ("f32",), _HALF, since=(8, 6), feature=_MIXED_SUMS),
    opcode_row(_mixed, "sub", _ANY, _SAT, ("f32",), _HALF, since=(8, 6), feature=_MIXED_SUMS),
    opcode_row(_mixed, "fma", ROUNDINGS, _SAT, ("f32",), _HALF, since=(8, 6), feature=_MIXED_SUMS),
    opcode_row(_doubles, "add", _ANY, ("f64",)),
    opcode_row(_doubles, "sub", _ANY, ("f64",)),
    opcode_row(_doubles, "mul", _ANY, ("f64",)),
    opcode_row(_doubles, "fma", ROUNDINGS, ("f64",), since=(1, 4)),
    opcode_row(_doubles, "mad", ROUNDINGS, ("f64",), since=(1, 4)),
)  # fmt: skip
