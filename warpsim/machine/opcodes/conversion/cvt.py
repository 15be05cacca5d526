"""``cvt`` of one value a lane: between integers, floating-point types, and both; tf32.

Knows which combinations PTX has, as ptxas 13.0 accepts them, and what their operands are. Does not know how
numbers are rounded (codes, elements), nor packed results (packing). PTX ISA 9.0, section 9.7.9.21 "cvt".

ptxas takes modifiers in any order (the manual's own examples write ``cvt.f64.bf16.rp``): the rows have the
manual's order. Registers may be wider than a type, but not those of bf16
and tf32, given here as b16 and b32, nor the 8-bit types of conversions from and to bf16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ....isa.features import Feature
from ..operation import Compute, Operation, Row, Values, array
from .codes import LAYOUTS, Layout
from .elements import Array, Modifiers, NotANumber, Step, format_conversion
from .integer_elements import INTEGERS, from_integer, integer_conversion, to_integer

FLOAT_ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGER_ROUNDINGS = ("rni", "rzi", "rmi", "rpi")
SAT, FTZ, RELU, SATFINITE = ("", "sat"), ("", "ftz"), ("", "relu"), ("", "satfinite")
_ALL_INTEGERS = tuple(INTEGERS)

# Register types that differ from the type's name.
REGISTERS = {
    "bf16": "b16", "bf16x2": "b32", "tf32": "b32", "e4m3x2": "b16", "e5m2x2": "b16", "e2m3x2": "b16",
    "e3m2x2": "b16", "e2m1x2": "b8", "ue8m0x2": "b16", "e4m3x4": "b32", "e5m2x4": "b32", "e2m3x4": "b32",
    "e3m2x4": "b32", "e2m1x4": "b16",
}  # fmt: skip


def register(type_name: str) -> str:
    """Return the type of the register that holds a value of a type."""
    return REGISTERS.get(type_name, type_name)


def lanewise(function: Callable[..., Array]) -> Compute:
    """Return ``function`` with one result for sources of any shapes that broadcast, ``()`` included.

    NumPy warns about scalars that wrap around, and not about arrays: sources without an axis get an axis of
    1.
    """

    def compute(*sources: Values) -> tuple[Values, ...]:
        result = function(*[x if x.ndim else x.reshape(1) for x in map(array, sources)])
        return (result if any(np.ndim(x) for x in sources) else result.reshape(()),)

    return compute


# --- NaNs ------------------------------------------------------------------------------------------

_BITS_NOTE = (
    "the bits of a NaN are unspecified by PTX; inferred: the source's, as ptxas 13.0 shifts them for sm_80 "
    "and later; everything else is exact"
)
_CUT_NOTE = (
    "what becomes of a NaN is inferred from the integer code that ptxas 13.0 makes for sm_80 and later: its "
    "low bits are cut off, which may leave an infinity, and .satfinite takes a unit (0x7f7fe000 of "
    "0x7f800001); everything else is exact"
)
_QUIET_NOTE = (
    "the bits of a NaN are not documented: that its sign and payload are kept and it is made quiet is what "
    "others report of the F2F and FRND of a B200; everything else is exact"
)

# (result, source) -> the NaN that comes out, unless it is canonical. That cvt.f32.bf16, of which PTX
# says "an unspecified NaN", shifts the bits is read off the code that ptxas 13.0 makes for sm_80 and later.
_NANS: dict[tuple[str, str], NotANumber] = {
    ("f32", "f64"): "quiet",
    ("f16", "f64"): "quiet",
    ("bf16", "f64"): "quiet",
    ("f64", "f32"): "quiet",
    ("f64", "f16"): "quiet",
    ("f64", "bf16"): "quiet",
    ("f64", "f64"): "quiet",
    ("f32", "bf16"): "same",
}
_COPIED = {"f32", "f64"}  # cvt.f32.f32 and cvt.f64.f64 are moves; those of f16 and bf16 add zero


def _nan(modifiers: Modifiers, result: str, source: str) -> NotANumber:
    if modifiers.sat:
        return "canonical"  # becomes +0
    if result == source and result in _COPIED and not modifiers.rounding and not modifiers.ftz:
        return "same"
    if modifiers.ftz and source != "f64":
        return "canonical"
    return _NANS.get((result, source), "canonical")


# --- builders --------------------------------------------------------------------------------------


def _operation(step: Step, result: str, source: str, note: str = "") -> Operation:
    return Operation(
        results=(register(result),),
        sources=(register(source),),
        compute=lanewise(step),
        fidelity="inferred" if note else "exact",
        note=note,
        where=partial(_from_nan, LAYOUTS[source]) if note else None,
    )


def _from_nan(layout: Layout, sources: Sequence[Array], results: Sequence[Array]) -> Array:
    """Return in which lanes the source is a NaN."""
    codes = array(sources[0])
    return array((codes & codes.dtype.type(layout.magnitude)) > layout.exponent_mask)


def _between_formats(modifiers: Modifiers, result: str, source: str) -> Operation:
    kind = _nan(modifiers, result, source)
    if (result, source, modifiers.ftz, modifiers.sat) == ("f64", "f32", True, False):
        return _operation(_flushed_widening, result, source, _QUIET_NOTE)
    step = format_conversion(LAYOUTS[source], LAYOUTS[result], replace(modifiers, nan=kind))
    notes = {"quiet": _QUIET_NOTE, "same": _BITS_NOTE if result != source else ""}
    return _operation(step, result, source, notes.get(kind, ""))


def _flushed_widening(codes: Array) -> Array:
    """cvt.ftz.f64.f32: ptxas flushes by an f32 product, whose NaN is canonical, before it widens."""
    f32, f64 = LAYOUTS["f32"], LAYOUTS["f64"]
    flushed = format_conversion(f32, f32, Modifiers(ftz=True))(codes)
    return format_conversion(f32, f64, Modifiers(nan="quiet"))(flushed)


def _floats(rounding: str, ftz: str, sat: str, result: str, source: str) -> Operation:
    return _between_formats(Modifiers(rounding=rounding, ftz=bool(ftz), sat=bool(sat)), result, source)


def _unsaturated(rounding: str, ftz: str, result: str, source: str) -> Operation:
    return _floats(rounding, ftz, "", result, source)


def _plain(rounding: str, result: str, source: str) -> Operation:
    return _floats(rounding, "", "", result, source)


def _clamped(rounding: str, relu: str, satfinite: str, result: str, source: str) -> Operation:
    modifiers = Modifiers(rounding=rounding, relu=bool(relu), satfinite=bool(satfinite))
    return _between_formats(modifiers, result, source)


def _integers(sat: str, result: str, source: str) -> Operation:
    return _operation(integer_conversion(INTEGERS[source], INTEGERS[result], sat=bool(sat)), result, source)


def _to_integer(rounding: str, ftz: str, sat: str, result: str, source: str) -> Operation:
    modifiers = Modifiers(rounding=rounding, ftz=bool(ftz), sat=bool(sat))
    return _operation(to_integer(LAYOUTS[source], INTEGERS[result], modifiers), result, source)


def _from_integer(rounding: str, ftz: str, sat: str, result: str, source: str) -> Operation:
    modifiers = Modifiers(rounding=rounding, ftz=bool(ftz), sat=bool(sat))
    return _operation(from_integer(INTEGERS[source], LAYOUTS[result], modifiers), result, source)


# --- tf32 ------------------------------------------------------------------------------------------

_TF32_LOW = np.uint32(LAYOUTS["f32"].fraction_bits - LAYOUTS["tf32"].fraction_bits)


def _tf32(rounding: str, satfinite: str, relu: str, result: str, source: str) -> Operation:
    modifiers = Modifiers(rounding=rounding, satfinite=bool(satfinite), relu=bool(relu))
    narrow = format_conversion(LAYOUTS["f32"], LAYOUTS["tf32"], modifiers)
    return _operation(lambda codes: narrow(codes) << _TF32_LOW, result, source)


def _tf32_away(rounding: str, satfinite: str, result: str, source: str) -> Operation:
    """Nearest, ties away: half a unit is added to the bits, which are then cut.

    What becomes of a NaN is read off the integer code that ptxas 13.0 makes for sm_80 and later: its low
    bits are cut off, which may leave an infinity, and .satfinite takes a unit from infinities and NaNs.
    """
    infinity, sign = np.uint32(0x7F80_0000), np.uint32(0x8000_0000)

    def away(codes: Array) -> Array:
        half = np.uint32(1 << (int(_TF32_LOW) - 1))
        finite = codes & ~sign < infinity
        made = (codes + half * finite) >> _TF32_LOW << _TF32_LOW
        if satfinite:
            made -= (made & ~sign >= infinity) * (np.uint32(1) << _TF32_LOW)
        return made

    return _operation(away, result, source, _CUT_NOTE)


# --- rows ------------------------------------------------------------------------------------------


def _flushes(*modifiers: str) -> bool:
    """Return whether ``.ftz`` stands only beside an f32."""
    return "ftz" not in modifiers or "f32" in modifiers[-2:]


def _clamps(sat: str, result: str, source: str) -> bool:
    """Return whether ``.sat`` has something to clamp."""
    return not sat or not INTEGERS[result].holds(INTEGERS[source])


def _widens(*modifiers: str) -> bool:
    result, source = modifiers[-2:]
    return _flushes(*modifiers) and LAYOUTS[result].bits > LAYOUTS[source].bits


def _narrows(*modifiers: str) -> bool:
    result, source = modifiers[-2:]
    return _flushes(*modifiers) and LAYOUTS[result].bits < LAYOUTS[source].bits


def _stays(*modifiers: str) -> bool:
    return _flushes(*modifiers) and modifiers[-2] == modifiers[-1]


def _row(slots: tuple[tuple[str, ...], ...], build: Callable[..., Operation], **more: Any) -> Row:
    return Row(opcode="cvt", slots=slots, build=build, any_order=True, **more)


_IEEE = ("f16", "f32", "f64")
_RN_RZ = ("rn", "rz")
_MAYBE_FLOAT, _MAYBE_INTEGER = ("", *FLOAT_ROUNDINGS), ("", *INTEGER_ROUNDINGS)

_BF16, _FMA, _CLAMPS = Feature.BF16_ARITHMETIC, Feature.BF16_FMA, Feature.F16_CLAMPS
_TF32_RN, _TF32, _TF32_SAT = Feature.TF32_NEAREST, Feature.TF32_ROUNDING, Feature.TF32_SATURATION
ROWS: tuple[Row, ...] = (
    _row((SAT, _ALL_INTEGERS, _ALL_INTEGERS), _integers, legal=_clamps),
    _row((INTEGER_ROUNDINGS, FTZ, SAT, _ALL_INTEGERS, _IEEE), _to_integer, legal=_flushes),
    _row(
        (INTEGER_ROUNDINGS, ("",), ("",), _ALL_INTEGERS, ("bf16",)),
        _to_integer,
        since=(7, 8),
        feature=_BF16,
    ),
    _row((FLOAT_ROUNDINGS, FTZ, SAT, _IEEE, _ALL_INTEGERS), _from_integer, legal=_flushes),
    _row(
        (FLOAT_ROUNDINGS, ("",), ("",), ("bf16",), _ALL_INTEGERS),
        _from_integer,
        since=(7, 8),
        feature=_BF16,
    ),
    _row((_MAYBE_INTEGER, FTZ, SAT, _IEEE, _IEEE), _floats, legal=_stays),
    _row((("",), FTZ, SAT, _IEEE, _IEEE), _floats, legal=_widens),
    _row((FLOAT_ROUNDINGS, FTZ, SAT, _IEEE, _IEEE), _floats, legal=_narrows),
    _row((_RN_RZ, ("relu",), ("",), ("f16",), ("f32",)), _clamped, since=(7, 0), feature=_CLAMPS),
    _row((_RN_RZ, ("",), ("satfinite",), ("f16",), ("f32",)), _clamped, since=(8, 1)),
    _row((_RN_RZ, ("relu",), ("satfinite",), ("f16",), ("f32",)), _clamped, since=(8, 1), feature=_CLAMPS),
    # bf16
    _row((FLOAT_ROUNDINGS, FTZ, ("bf16",), ("f32",)), _unsaturated, since=(7, 0), feature=_FMA),
    _row((_RN_RZ, ("relu",), ("",), ("bf16",), ("f32",)), _clamped, since=(7, 0), feature=_FMA),
    _row((_RN_RZ, RELU, ("satfinite",), ("bf16",), ("f32",)), _clamped, since=(8, 1), feature=_FMA),
    _row((_MAYBE_FLOAT, ("f32",), ("bf16",)), _plain, since=(7, 1), feature=_FMA),
    _row((_MAYBE_FLOAT, ("ftz",), ("f32",), ("bf16",)), _unsaturated, since=(7, 8), feature=_BF16),
    _row((_MAYBE_FLOAT, ("f16", "f64"), ("bf16",)), _plain, since=(7, 8), feature=_BF16),
    _row((_MAYBE_FLOAT, ("bf16",), ("f16",)), _plain, since=(7, 8), feature=_BF16),
    _row((FLOAT_ROUNDINGS, ("bf16",), ("f64",)), _plain, since=(7, 8), feature=_BF16),
    _row((_MAYBE_INTEGER, ("bf16",), ("bf16",)), _plain, since=(7, 8), feature=_BF16),
    # tf32
    _row((("rna",), ("",), ("tf32",), ("f32",)), _tf32_away, since=(7, 0), feature=_TF32),
    _row((("rna",), ("satfinite",), ("tf32",), ("f32",)), _tf32_away, since=(8, 1), feature=_TF32),
    _row((_RN_RZ, ("",), RELU, ("tf32",), ("f32",)), _tf32, since=(7, 8), feature=_TF32_RN),
    _row((_RN_RZ, ("satfinite",), RELU, ("tf32",), ("f32",)), _tf32, since=(8, 6), feature=_TF32_SAT),
)  # fmt: skip
