"""min, max, abs and neg of f16, bf16, f32, f64, f16x2 and bf16x2.

Knows the forms of PTX ISA 9.0, sections 9.7.3.9 to 9.7.3.12 and 9.7.4.5 to 9.7.4.8, as ptxas 13.0 takes them;
min and max of f32 with three sources have the modifiers of those with two, and .abs. Compares bits, with no
floating-point arithmetic: minus zero is less than plus zero.

NaN: min and max return the other source, .NaN or two NaN the canonical NaN. The manual calls what abs and neg
make of a NaN unspecified; here it is what the additions to minus zero give that ptxas generates for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ....isa.features import Feature
from ..operation import Operation, Row, Values, array, opcode_row
from .float_bits import FORMATS, Format, flushed, format_of, in_pairs, is_nan, nan_results, quiet

NAN_OF_SIGN = (
    "a NaN's result is unspecified by PTX; inferred: the canonical NaN, as of the addition that ptxas "
    "generates"
)
NAN_OF_SIGN_64 = "a NaN's result is unspecified by PTX; inferred: the source made quiet, its sign unchanged"
NAN_OF_TWO = "of two NaN, the bits of the result are inferred: the second source made quiet"


def _ordered(bits: Values, form: Format) -> Values:
    """Signed integers in the order of the values, and back; not for NaN."""
    signed = bits.view(f"i{form.bits // 8}")
    ordered: Values = signed ^ ((signed >> (form.bits - 1)) & signed.dtype.type(form.magnitude))
    return ordered


def _extremum(a: Values, b: Values, *, largest: bool, propagate: bool, form: Format) -> Values:
    """Return bits of min or max of two sources."""
    pick = np.maximum if largest else np.minimum
    result = _ordered(array(pick(_ordered(a, form), _ordered(b, form))), form).view(form.word)
    not_a, not_b = is_nan(a, form), is_nan(b, form)
    if not (not_a.any() or not_b.any()):
        return result
    result = np.where(not_a, b, np.where(not_b, a, result))
    both = b | np.uint64(1 << 51) if form is FORMATS["f64"] else form.nan
    return np.where(not_a | not_b if propagate else not_a & not_b, both, result)


def _with_xor_of_signs(compute: Callable[..., Values], form: Format) -> Callable[..., Values]:
    """Return ``compute`` of magnitudes, with the exclusive or of the sources' signs, unless it is a NaN."""
    sign, magnitude = form.sign, form.magnitude

    def signed(a: Values, b: Values) -> Values:
        result = compute(a & magnitude, b & magnitude)
        return np.where(is_nan(result, form), result, result | (a ^ b) & sign)

    return signed


def _flushing(compute: Callable[..., Values], form: Format) -> Callable[..., Values]:
    return lambda *sources: compute(*(flushed(source, form) for source in sources))


def _build(opcode: str) -> Callable[[str, str, str, str, str], Operation]:
    """Return ``build`` of a row with two sources."""

    def build(ftz: str, nan: str, xorsign: str, absolute: str, type_name: str) -> Operation:
        form = format_of(type_name)
        compute: Callable[..., Values] = partial(
            _extremum, largest=opcode == "max", propagate=bool(nan), form=form
        )
        compute = _with_xor_of_signs(compute, form) if xorsign else compute
        function = in_pairs(_flushing(compute, form) if ftz else compute, type_name)
        return Operation(
            results=(type_name,),
            sources=(type_name,) * 2,
            compute=quiet(lambda *sources: (function(*sources),)),
            fidelity="inferred" if type_name == "f64" else "exact",
            note=NAN_OF_TWO if type_name == "f64" else "",
        )

    return build


def _build_three(opcode: str) -> Callable[[str, str, str, str], Operation]:
    """Return ``build`` of a row with three sources."""

    def build(ftz: str, nan: str, absolute: str, type_name: str) -> Operation:
        form = format_of(type_name)
        two = partial(_extremum, largest=opcode == "max", propagate=bool(nan), form=form)
        mask = form.magnitude if absolute else form.magnitude | form.sign

        def compute(a: Values, b: Values, c: Values) -> Values:
            return two(two(a & mask, b & mask), c & mask)

        function = _flushing(compute, form) if ftz else compute
        return Operation(
            results=(type_name,),
            sources=(type_name,) * 3,
            compute=quiet(lambda *sources: (function(*sources),)),
        )

    return build


def _with_sign(opcode: str, bits: Values, form: Format) -> Values:
    """Return bits of abs or neg; see NAN_OF_SIGN."""
    sign = form.sign
    result = bits & ~sign if opcode == "abs" else bits ^ sign
    nan = is_nan(bits, form)
    if not nan.any():
        return result
    unchanged = bits | np.uint64(1 << 51) if form is FORMATS["f64"] else form.nan
    return np.where(nan, unchanged, result)


def _build_sign(opcode: str) -> Callable[[str, str], Operation]:
    """Return ``build`` of a row of abs or neg."""

    def build(ftz: str, type_name: str) -> Operation:
        form = format_of(type_name)
        compute: Callable[..., Values] = partial(_with_sign, opcode, form=form)
        function = in_pairs(_flushing(compute, form) if ftz else compute, type_name)
        return Operation(
            results=(type_name,),
            sources=(type_name,),
            compute=quiet(lambda source: (function(source),)),
            fidelity="inferred",
            note=NAN_OF_SIGN_64 if type_name == "f64" else NAN_OF_SIGN,
            where=nan_results(type_name),
        )

    return build


_F16, _BF16 = ("f16", "f16x2"), ("bf16", "bf16x2")
_FTZ, _NAN, _NONE = ("", "ftz"), ("", "NaN"), ("",)
_XOR, _ABS, _F32, _ABSOLUTE = ("xorsign",), ("abs",), ("f32",), ("", "abs")

_BF16_FMA, _F16_CLAMPS, _THREE = Feature.BF16_FMA, Feature.F16_CLAMPS, Feature.THREE_SOURCES
_XORSIGN = Feature.XORSIGN
ROWS: tuple[Row, ...] = (
    *(
        row
        for opcode in ("min", "max")
        for row in (
            opcode_row(_build, opcode, _FTZ, _NONE, _NONE, _NONE, _F32),
            opcode_row(_build, opcode, _FTZ, ("NaN",), _NONE, _NONE, _F32, since=(7, 0), feature=_F16_CLAMPS),
            opcode_row(_build, opcode, _FTZ, _NAN, _XOR, _ABS, _F32, since=(7, 2), feature=_XORSIGN),
            opcode_row(_build_three, opcode, _FTZ, _NAN, _ABSOLUTE, _F32, since=(8, 8), feature=_THREE),
            opcode_row(_build, opcode, _NONE, _NONE, _NONE, _NONE, ("f64",)),
            opcode_row(_build, opcode, _FTZ, _NAN, _NONE, _NONE, _F16, since=(7, 0), feature=_F16_CLAMPS),
            opcode_row(_build, opcode, _FTZ, _NAN, _XOR, _ABS, _F16, since=(7, 2), feature=_XORSIGN),
            opcode_row(_build, opcode, _NONE, _NAN, _NONE, _NONE, _BF16, since=(7, 0), feature=_BF16_FMA),
            opcode_row(_build, opcode, _NONE, _NAN, _XOR, _ABS, _BF16, since=(7, 2), feature=_XORSIGN),
        )
    ),
    opcode_row(_build_sign, "abs", _FTZ, ("f32",)),
    opcode_row(_build_sign, "abs", _NONE, ("f64",)),
    opcode_row(_build_sign, "abs", _FTZ, _F16, since=(6, 5)),
    opcode_row(_build_sign, "abs", _NONE, _BF16, since=(7, 0), feature=_BF16_FMA),
    opcode_row(_build_sign, "neg", _FTZ, ("f32",)),
    opcode_row(_build_sign, "neg", _NONE, ("f64",)),
    opcode_row(_build_sign, "neg", _FTZ, _F16, since=(6, 0)),
    opcode_row(_build_sign, "neg", _NONE, _BF16, since=(7, 0), feature=_BF16_FMA),
)  # fmt: skip
