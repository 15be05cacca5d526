"""The approximate functions: rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh and div, .approx or .full.

Knows the forms of PTX ISA 9.0, sections 9.7.3.8 and 9.7.3.13 to 9.7.3.22, 9.7.4.9 and 9.7.4.10, as ptxas 13.0
takes them, their special values, and the maximum errors that the manual states. Does not know what the chips
return within those errors: every result here is the value of the function, computed in float64 and, where its
last bits would decide, more exactly, and rounded to the type (but see rcp.approx.ftz.f64). It is the same on
every machine; its last bits may differ from hardware.

Relies on float64 arithmetic with subnormals, to nearest even: the caller sets such an environment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ....isa.features import Feature
from ..operation import Operation, Row, Values, opcode_row
from . import transcendental
from .doubles import NAN, with_nans
from .float_bits import FORMATS, canonical, flushed, in_pairs, quiet, widened
from .rounding import half, single
from .transcendental import settled

_Real = Callable[..., Values]  # float64 -> float64
_UPPER = np.uint64(0xFFFF_FFFF_0000_0000)


def _approx_quotient(a: Values, b: Values) -> Values:
    """Return a / b, with zero times infinity or a for 1 / b where |b| is above 2**126 and finite."""
    return np.where((np.abs(b) > 2.0**126) & np.isfinite(b), a * np.copysign(0.0, b), a / b)


_FUNCTIONS: dict[str, _Real] = {
    "rcp": lambda a: 1.0 / a,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
    "div.approx": _approx_quotient,
    "div.full": lambda a, b: a / b,
}

# Exact functions where NumPy's results differ between CPUs.
_EXACT: dict[str, transcendental.Exact] = {
    "sin": transcendental.sine,
    "cos": transcendental.cosine,
    "lg2": transcendental.logarithm,
    "ex2": transcendental.power,
    "tanh": transcendental.hyperbolic_tangent,
}

# Maximum errors as the manual states them.
_ANGLES = (
    "maximum absolute error 2^-20.5 for sources in [-2pi, 2pi], 2^-14.7 in [-100pi, 100pi]; "
    "none is stated outside"
)
_ERRORS: dict[tuple[str, str], str] = {
    ("rcp", "f32"): "maximum error 1 ulp",
    ("sqrt", "f32"): "maximum relative error 2^-23",
    ("rsqrt", "f32"): "maximum relative error 2^-22.9",
    ("sin", "f32"): _ANGLES,
    ("cos", "f32"): _ANGLES,
    ("lg2", "f32"): "maximum absolute error 2^-22 for sources in (0.5, 2), relative 2^-22 outside",
    ("ex2", "f32"): "maximum error 2 ulp of the correctly rounded result",
    ("ex2", "f16"): "maximum relative error 2^-9.9",
    ("ex2", "bf16"): "maximum relative error 2^-7",
    ("tanh", "f32"): "maximum relative error 2^-11",
    ("tanh", "f16"): "maximum absolute error 2^-10.987",
    ("tanh", "bf16"): "maximum absolute error 2^-8",
    ("div.approx", "f32"): "maximum error 2 ulp for |b| in [2^-126, 2^126]",
    ("div.full", "f32"): "maximum error 2 ulp",
}


@dataclass(frozen=True, kw_only=True)
class Approximation:
    """A function of "f32", "f16" or "bf16" values as one of arrays of bits."""

    name: str  # of _FUNCTIONS
    type_name: str
    ftz: bool

    def __call__(self, *sources: Values) -> Values:
        """Return bits of the result."""
        form = FORMATS[self.type_name]
        if self.ftz:
            sources = tuple(flushed(source, form) for source in sources)
        reals = [widened(source, self.type_name) for source in sources]
        value, exact = np.asarray(_FUNCTIONS[self.name](*reals)), _EXACT.get(self.name)
        bits = settled(value, reals[0], exact, self._rounded) if exact else self._rounded(value)
        return canonical(flushed(bits, form) if self.ftz else bits, form)

    def _rounded(self, value: Values) -> Values:
        return single(value, "rn") if self.type_name == "f32" else half(value, self.type_name)


def _build(opcode: str) -> Callable[[str, str, str], Operation]:
    """Return ``build`` of a row of f32, f16 or bf16."""

    def build(kind: str, ftz: str, type_name: str) -> Operation:
        name = f"div.{kind}" if opcode == "div" else opcode
        scalar = type_name.removesuffix("x2")
        function = in_pairs(Approximation(name=name, type_name=scalar, ftz=bool(ftz)), type_name)
        return Operation(
            results=(type_name,),
            sources=(type_name,) * (2 if opcode == "div" else 1),
            compute=quiet(lambda *sources: (function(*sources),)),
            fidelity="approximate",
            note=_ERRORS[name, scalar],
        )

    return build


def _rsqrt_double(bits: Values) -> Values:
    """Return uint64 bits of 1 / sqrt of f64 values."""
    value = 1.0 / np.sqrt(bits.view(np.float64))
    return with_nans(np.asarray(value).view(np.uint64), bits)


def _upper_word(function: _Real) -> Callable[[Values], Values]:
    """Return ``function`` of the upper words of f64 values; of its result the upper word, rounded, and
    zeros.
    """
    form = FORMATS["f64"]

    def compute(bits: Values) -> Values:
        source = flushed(bits & _UPPER, form)
        value = np.asarray(function(source.view(np.float64))).view(np.uint64)
        even = (value >> np.uint64(32)) & np.uint64(1)
        rounded = (value + np.uint64(0x7FFF_FFFF) + even) & _UPPER
        nan = np.isnan(value.view(np.float64))
        return np.where(nan, np.uint64(0x7FFF_FFFF_0000_0000), flushed(rounded, form))

    return compute


def _build_double(compute: Callable[[Values], Values], note: str) -> Callable[[str, str, str], Operation]:
    """Return ``build`` of a row of f64."""

    def build(kind: str, ftz: str, type_name: str) -> Operation:
        return Operation(
            results=(type_name,),
            sources=(type_name,),
            compute=quiet(lambda source: (compute(source),)),
            fidelity="approximate",
            note=note,
        )

    return build


_GROSS = "a gross approximation, of the upper 32 bits; the manual states no error"
_rsqrt64 = _build_double(_rsqrt_double, f"the manual states no error; {NAN}")
_rcp_upper = _build_double(_upper_word(_FUNCTIONS["rcp"]), _GROSS)
_rsqrt_upper = _build_double(_upper_word(_FUNCTIONS["rsqrt"]), _GROSS)

_APPROX, _FTZ, _NONE, _F32 = ("approx",), ("", "ftz"), ("",), ("f32",)
_F16, _BF16 = ("f16", "f16x2"), ("bf16", "bf16x2")

_APPROXIMATIONS, _BF16_ARITHMETIC = Feature.APPROXIMATIONS, Feature.BF16_ARITHMETIC
ROWS: tuple[Row, ...] = (
    opcode_row(_build, "rcp", _APPROX, _FTZ, _F32, since=(1, 4)),
    opcode_row(_build, "sqrt", _APPROX, _FTZ, _F32, since=(1, 4)),
    opcode_row(_build, "rsqrt", _APPROX, _FTZ, _F32, since=(1, 4)),
    opcode_row(_build, "sin", _APPROX, _FTZ, _F32, since=(1, 4)),
    opcode_row(_build, "cos", _APPROX, _FTZ, _F32, since=(1, 4)),
    opcode_row(_build, "lg2", _APPROX, _FTZ, _F32, since=(1, 4)),
    opcode_row(_build, "ex2", _APPROX, _FTZ, _F32, since=(1, 4)),
    opcode_row(_build, "ex2", _APPROX, _NONE, _F16, since=(7, 0), feature=_APPROXIMATIONS),
    opcode_row(_build, "ex2", _APPROX, ("ftz",), _BF16, since=(7, 8), feature=_BF16_ARITHMETIC),
    opcode_row(_build, "tanh", _APPROX, _NONE, _F32, since=(7, 0), feature=_APPROXIMATIONS),
    opcode_row(_build, "tanh", _APPROX, _NONE, _F16, since=(7, 0), feature=_APPROXIMATIONS),
    opcode_row(_build, "tanh", _APPROX, _NONE, _BF16, since=(7, 8), feature=_BF16_ARITHMETIC),
    opcode_row(_build, "div", ("approx", "full"), _FTZ, _F32, since=(1, 4)),
    Row(opcode="rcp", slots=(_APPROX, ("ftz",), ("f64",)), build=_rcp_upper, since=(2, 1)),
    Row(opcode="rsqrt", slots=(_APPROX, _NONE, ("f64",)), build=_rsqrt64, since=(1, 4)),
    Row(opcode="rsqrt", slots=(_APPROX, ("ftz",), ("f64",)), build=_rsqrt_upper, since=(4, 0)),
)  # fmt: skip
