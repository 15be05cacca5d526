"""rcp, sqrt and div with a rounding modifier, of f32 and f64: IEEE 754, right to the bit.

Knows the forms of PTX ISA 9.0, sections 9.7.3.8, 9.7.3.13 and 9.7.3.15, as ptxas 13.0 takes them, and one
more that the manual does not have: for rcp.rnd.ftz.f64 ptxas generates the code of rcp.rnd.f64.

A quotient or root of f32 values in float64 needs no rounding to odd: it is either a number of 25 bits or
farther from every such number than float64 rounds, so that one more rounding sees the right side of it.

Relies on NumPy's float32 and float64 arithmetic being IEEE 754, to nearest even, with subnormals: the caller
sets such an environment.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..operation import Operation, Row, Values, opcode_row
from . import doubles
from .float_bits import nan_results, quiet
from .rounding import TININESS, Exact
from .singles import ROUNDINGS
from .stages import Arithmetic, native

_NEAREST: dict[str, Callable[..., Values]] = {
    "rcp": native(lambda a: np.float32(1) / a, np.float32),
    "sqrt": native(np.sqrt, np.float32),
    "div": native(np.divide, np.float32),
}
_EXACT: dict[str, Exact] = {
    "rcp": lambda a, rounding: 1.0 / a,
    "sqrt": lambda a, rounding: np.sqrt(a),
    "div": lambda a, b, rounding: a / b,
}
_COUNTS = {"rcp": 1, "sqrt": 1, "div": 2}
UNDOCUMENTED = "not in the manual; inferred: as without .ftz, the code that ptxas generates"


def _singles(opcode: str) -> Callable[[str, str, str], Operation]:
    """Return ``build`` of a row of f32."""

    def build(rounding: str, ftz: str, type_name: str) -> Operation:
        function = Arithmetic(
            type_name="f32", nearest=_NEAREST[opcode], exact=_EXACT[opcode], rounding=rounding, ftz=bool(ftz)
        )
        inferred = bool(ftz) and opcode != "sqrt"  # no root is subnormal
        return Operation(
            results=(type_name,),
            sources=(type_name,) * _COUNTS[opcode],
            compute=quiet(lambda *sources: (function(*sources),)),
            fidelity="inferred" if inferred else "exact",
            note=TININESS if inferred else "",
        )

    return build


def _doubles(opcode: str) -> Callable[[str, str, str], Operation]:
    """Return ``build`` of a row of f64."""

    def build(rounding: str, ftz: str, type_name: str) -> Operation:
        function = doubles.ARITHMETIC[opcode]
        return Operation(
            results=(type_name,),
            sources=(type_name,) * _COUNTS[opcode],
            compute=quiet(lambda *sources: (function(*sources, rounding),)),
            fidelity="inferred",
            note=f"{UNDOCUMENTED}; {doubles.NAN}" if ftz else doubles.NAN,
            where=None if ftz else nan_results(type_name),
        )

    return build


_FTZ, _NONE = ("", "ftz"), ("",)

ROWS: tuple[Row, ...] = (
    opcode_row(_singles, "rcp", ROUNDINGS, _FTZ, ("f32",), since=(1, 4)),
    opcode_row(_singles, "sqrt", ROUNDINGS, _FTZ, ("f32",), since=(1, 4)),
    opcode_row(_singles, "div", ROUNDINGS, _FTZ, ("f32",), since=(1, 4)),
    opcode_row(_doubles, "rcp", ROUNDINGS, _FTZ, ("f64",), since=(1, 4)),
    opcode_row(_doubles, "sqrt", ROUNDINGS, _NONE, ("f64",), since=(1, 4)),
    opcode_row(_doubles, "div", ROUNDINGS, _NONE, ("f64",), since=(1, 4)),
)  # fmt: skip
