"""Every code of every format up to 16 bits, and samples of the wider ones, against two other decoders.

One is NumPy and ml_dtypes, the other is `split` below: the bit fields of each format, spelled out here a
second time.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from tests.helpers import nasty
from warpsim import OperandError
from warpsim.isa.codes import codes_of, integers, magnitudes, matrix_of, values_of, zero_ranks
from warpsim.isa.formats import FORMATS, Format
from warpsim.sums.arithmetic.planes import FINITE, INFINITE, NOT_A_NUMBER, converted, planes


class Fields(NamedTuple):
    """A format as its definition has it: exponent bits, fraction bits, bias, and what all ones mean."""

    exponent: int
    fraction: int
    bias: int
    ones: str  # of the exponent: "Inf, NaN"; of everything: "NaN"; "numbers"
    sign: int = 1
    ignored: int = 0


FIELDS = {
    "f64": Fields(11, 52, 1023, "Inf, NaN"),
    "f32": Fields(8, 23, 127, "Inf, NaN"),
    "tf32": Fields(8, 10, 127, "Inf, NaN", ignored=13),
    "f16": Fields(5, 10, 15, "Inf, NaN"),
    "bf16": Fields(8, 7, 127, "Inf, NaN"),
    "e5m2": Fields(5, 2, 15, "Inf, NaN"),
    "e4m3": Fields(4, 3, 7, "NaN"),
    "e3m2": Fields(3, 2, 3, "numbers"),
    "e2m3": Fields(2, 3, 1, "numbers"),
    "e2m1": Fields(2, 1, 1, "numbers"),
    "ue8m0": Fields(8, 0, 127, "NaN", sign=0),
    "ue4m3": Fields(4, 3, 7, "NaN", sign=0),
}
NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn,
}
SMALL = [FORMATS[name] for name in NUMPY]
WIDE = [FORMATS[name] for name in ("f32", "tf32", "f64")]
INTEGERS = {  # bits, signed
    "s32": (32, True),
    "s8": (8, True),
    "u8": (8, False),
    "s4": (4, True),
    "u4": (4, False),
    "b1": (1, False),
}


def split(code: int, name: str) -> tuple[int, int, int]:
    """(significand, exponent, special) of a code, from its fields."""
    fields = FIELDS[name]
    code >>= fields.ignored
    fraction = code % 2**fields.fraction
    field = (code >> fields.fraction) % 2**fields.exponent
    negative = fields.sign and code >> (fields.fraction + fields.exponent) & 1
    sign = -1 if negative else 1
    if field == 2**fields.exponent - 1 and fields.ones == "Inf, NaN":
        return (0, 0, NOT_A_NUMBER) if fraction else (sign, 0, INFINITE)
    if fields.ones == "NaN" and field == 2**fields.exponent - 1 and fraction == 2**fields.fraction - 1:
        return 0, 0, NOT_A_NUMBER
    if field == 0 and fields.fraction:
        return sign * fraction, 1 - fields.bias, FINITE
    return sign * (2**fields.fraction + fraction), field - fields.bias, FINITE


def every_code(element: Format) -> Any:
    return np.arange(1 << element.bits, dtype=element.code_dtype)


def sample(element: Format) -> Any:
    """Nasty and random codes of a wide format."""
    rng = np.random.default_rng(element.bits)
    return np.concatenate([nasty.catalogue(element), nasty.random_codes(element, (20_000,), rng)])


every_small = pytest.mark.parametrize("element", SMALL, ids=str)
every_float = pytest.mark.parametrize("element", [*SMALL, *WIDE], ids=str)
every_format = pytest.mark.parametrize("element", list(FORMATS.values()), ids=str)


def codes_to_try(element: Format) -> Any:
    return every_code(element) if element.bits <= 16 else sample(element)


# --- codes to numbers ------------------------------------------------------------------------------


def test_every_format_is_tested() -> None:
    assert set(FORMATS) == {*FIELDS, *INTEGERS}


@every_float
def test_planes_are_the_bit_fields(element: Format) -> None:
    codes = codes_to_try(element)
    number = planes(codes, element)
    assert number.fraction_bits == FIELDS[element.name].fraction
    for i, code in enumerate(codes.tolist()):
        significand, exponent, special = split(code, element.name)
        found = (int(number.significand[i]), int(number.special[i]))
        assert found == (significand, special), hex(code)
        if significand and special == FINITE:
            assert number.exponent[i] == exponent, hex(code)


@every_float
def test_zeros_have_the_smallest_exponent(element: Format) -> None:
    codes = codes_to_try(element)
    number = planes(codes, element)
    zeros = (number.special == FINITE) & (number.significand == 0)
    assert set(number.exponent[zeros]) <= {element.minimum_exponent}
    assert zeros.any() == (element.name != "ue8m0")


@every_float
def test_planes_are_plain_integers(element: Format) -> None:
    number = planes(codes_to_try(element).reshape(2, -1), element)
    arrays = (number.significand, number.exponent, number.special)
    assert [array.dtype for array in arrays] == [np.int64, np.int32, np.int8]
    assert len({array.shape for array in arrays}) == 1


@every_small
def test_values_are_those_of_numpy_and_ml_dtypes(element: Format) -> None:
    codes = every_code(element)
    with np.errstate(invalid="ignore"):
        expected = codes.view(NUMPY[element.name]).astype(np.float64)
    found = values_of(codes, element)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(expected[~np.isnan(found)]))


@every_small
def test_planes_multiply_out_to_the_value(element: Format) -> None:
    codes = every_code(element)
    number, value = planes(codes, element), values_of(codes, element)
    finite = number.special == FINITE
    product = np.ldexp(number.significand.astype(np.float64), number.exponent - number.fraction_bits)
    assert np.array_equal(product[finite], value[finite])
    assert np.array_equal(number.special == NOT_A_NUMBER, np.isnan(value))
    infinite = number.special == INFINITE
    assert np.array_equal(number.significand[infinite], np.sign(value[infinite]))
    assert np.isinf(value[infinite]).all()


def test_planes_of_f32_multiply_out_to_the_value_that_c_sees() -> None:
    element = FORMATS["f32"]
    codes = sample(element)
    number = planes(codes, element)
    for i in np.flatnonzero(number.special == FINITE)[::7]:
        value = struct.unpack("<f", struct.pack("<I", int(codes[i])))[0]
        assert Fraction(value) == int(number.significand[i]) * Fraction(2) ** int(number.exponent[i] - 23)


@pytest.mark.parametrize(
    ("code", "kept"),
    [(0x3F801FFF, 0x3F800000), (0xFF800001, 0xFF800000), (0x80001FFF, 0x80000000), (0x7FC01234, 0x7FC00000)],
)
def test_tf32_planes_do_not_see_the_low_bits(code: int, kept: int) -> None:
    one, other = (planes(np.array([x], np.uint32), FORMATS["tf32"]) for x in (code, kept))
    assert one == other


def test_ue4m3_ignores_the_top_bit_of_its_byte() -> None:
    codes = np.arange(256, dtype=np.uint8)
    number = planes(codes, FORMATS["ue4m3"])
    for plane in (number.significand, number.exponent, number.special):
        assert np.array_equal(plane[128:], plane[:128])
    assert number.special[0x7F] == NOT_A_NUMBER


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_twos_complement(name: str) -> None:
    width, signed = INTEGERS[name]
    element = FORMATS[name]
    codes = codes_to_try(element)
    expected = [code - 2**width if signed and code >= 2 ** (width - 1) else code for code in codes.tolist()]
    assert integers(codes, element).tolist() == expected


@pytest.mark.parametrize(
    ("source", "result"),
    [("e4m3", "f16"), ("e5m2", "f16"), ("f16", "f32"), ("bf16", "f32"), ("e3m2", "f16"), ("e2m1", "e4m3")],
)
def test_conversion_to_a_format_that_holds_all_values_keeps_them(source: str, result: str) -> None:
    codes = every_code(FORMATS[source])
    wider = converted(codes, FORMATS[source], FORMATS[result])
    assert wider.dtype == FORMATS[result].code_dtype
    before, after = values_of(codes, FORMATS[source]), values_of(wider, FORMATS[result])
    assert np.array_equal(before, after, equal_nan=True)
    numbers = ~np.isnan(before)
    assert np.array_equal(np.signbit(before[numbers]), np.signbit(after[numbers]))


# --- matrices to codes and back --------------------------------------------------------------------


@every_format
def test_matrix_of_undoes_codes_of(element: Format) -> None:
    codes = codes_to_try(element).reshape(2, -1)
    matrix = matrix_of(codes, element)
    assert matrix.dtype == element.dtype
    back = codes_of(matrix, element, "A")
    assert back.dtype == element.code_dtype
    assert np.array_equal(back, codes)


@every_format
def test_unsigned_integers_are_codes(element: Format) -> None:
    codes = codes_to_try(element)
    for dtype in (element.code_dtype, np.dtype(np.uint64)):
        found = codes_of(codes.astype(dtype), element, "A")
        assert found.dtype == element.code_dtype
        if element.name != "u8" or dtype != np.uint8:
            assert np.array_equal(found, codes)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_signed_integers_are_values(name: str, dtype: type) -> None:
    element = FORMATS[name]
    value = integers(codes_to_try(element), element)
    value = value[(value >= np.iinfo(dtype).min) & (value <= np.iinfo(dtype).max)]
    assert np.array_equal(integers(codes_of(value.astype(dtype), element, "A"), element), value)


@pytest.mark.parametrize("name", ["s8", "u4", "b1"])
def test_bools_are_zero_and_one(name: str) -> None:
    assert codes_of(np.array([[True, False]]), FORMATS[name], "A").tolist() == [[1, 0]]


@every_float
def test_nan_payloads_survive(element: Format) -> None:
    codes = codes_to_try(element)
    nans = codes[planes(codes, element).special == NOT_A_NUMBER]
    assert np.array_equal(codes_of(matrix_of(nans, element), element, "A"), nans)
    assert len(nans) > 0 or FIELDS[element.name].ones == "numbers"


def test_codes_of_takes_any_layout_and_leaves_its_argument_alone() -> None:
    matrix = np.arange(24, dtype=np.float16).reshape(4, 6)
    expected = matrix.view(np.uint16)
    before = matrix.copy()
    assert np.array_equal(codes_of(matrix.T, FORMATS["f16"], "A"), expected.T)
    assert np.array_equal(codes_of(matrix[::2, ::-1], FORMATS["f16"], "A"), expected[::2, ::-1])
    codes = codes_of(matrix, FORMATS["f16"], "A")
    codes[:] = 0
    assert np.array_equal(matrix, before)


def test_lists_are_matrices_of_the_dtype_numpy_gives_them() -> None:
    assert codes_of([[1.0, -2.0]], FORMATS["f64"], "A").tolist() == [[0x3FF0 << 48, 0xC000 << 48]]
    assert codes_of([[1, -2]], FORMATS["s8"], "A").tolist() == [[1, 254]]


@pytest.mark.parametrize(
    ("name", "dtype", "dtype_name", "expected"),
    [
        ("f16", np.float64, "float64", "float16 or uint16 codes"),
        ("f16", np.float32, "float32", "float16 or uint16 codes"),
        ("f16", ">f2", ">f2", "float16 or uint16 codes"),
        ("bf16", np.float16, "float16", "bfloat16 or uint16 codes"),
        ("tf32", np.float64, "float64", "float32 or uint32 codes"),
        ("f32", np.int64, "int64", "float32 or uint32 codes"),
        ("f32", np.bool_, "bool", "float32 or uint32 codes"),
        ("f32", np.complex128, "complex128", "float32 or uint32 codes"),
        ("f64", np.float32, "float32", "float64 or uint64 codes"),
        ("e4m3", ml_dtypes.float8_e5m2, "float8_e5m2", "float8_e4m3fn or uint8 codes"),
        ("e2m1", np.float64, "float64", "float4_e2m1fn or uint8 codes"),
        ("s8", np.float64, "float64", "int8 or uint8 codes"),
        ("u4", ml_dtypes.int4, "int4", "uint4 or uint8 codes"),
        ("b1", np.float64, "float64", "bool or uint8 codes"),
    ],
)
def test_other_dtypes_are_refused(name: str, dtype: Any, dtype_name: str, expected: str) -> None:
    with pytest.raises(OperandError) as error:
        codes_of(np.zeros((2, 2), dtype), FORMATS[name], "A")
    assert str(error.value) == (
        f"A has dtype {dtype_name}, but {name} elements come as {expected}: "
        f"convert it first, so that the rounding is yours"
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("s8", np.int64(128), "A[1, 2] is 128, outside -128..127 of s8"),
        ("s8", np.int64(-129), "A[1, 2] is -129, outside -128..127 of s8"),
        ("u8", np.int64(-1), "A[1, 2] is -1, outside 0..255 of u8"),
        ("u8", np.int32(256), "A[1, 2] is 256, outside 0..255 of u8"),
        ("s4", np.int8(8), "A[1, 2] is 8, outside -8..7 of s4"),
        ("u4", np.int8(16), "A[1, 2] is 16, outside 0..15 of u4"),
        ("s4", np.uint8(16), "A[1, 2] is 16, outside 0..15 of s4"),
        ("b1", np.int8(2), "A[1, 2] is 2, outside 0..1 of b1"),
        ("b1", np.int8(-1), "A[1, 2] is -1, outside 0..1 of b1"),
        ("s32", np.int64(2**31), "A[1, 2] is 2147483648, outside -2147483648..2147483647 of s32"),
        ("s32", np.uint64(2**32), "A[1, 2] is 4294967296, outside 0..4294967295 of s32"),
        ("f16", np.uint32(0x10000), "A[1, 2] is 65536, outside 0..65535 of f16"),
        ("e3m2", np.uint8(64), "A[1, 2] is 64, outside 0..63 of e3m2"),
        ("e2m1", np.uint8(16), "A[1, 2] is 16, outside 0..15 of e2m1"),
        ("ue4m3", np.uint8(0x80), "A[1, 2] is 128, outside 0..127 of ue4m3"),
    ],
)
def test_numbers_out_of_range_are_refused_by_place(name: str, value: Any, message: str) -> None:
    matrix = np.zeros((3, 4), value.dtype)
    matrix[1, 2] = matrix[2, 0] = value
    with pytest.raises(OperandError) as error:
        codes_of(matrix, FORMATS[name], "A")
    assert str(error.value) == message


# --- magnitudes ------------------------------------------------------------------------------------


@every_small
def test_magnitudes_are_absolute_values_with_a_place_for_zeros_and_nans(element: Format) -> None:
    codes = every_code(element)
    value = values_of(codes, element)
    expected = np.where(np.isnan(value), np.inf, np.abs(value))
    expected[(value == 0) & ~np.signbit(value)] = -1
    assert np.array_equal(magnitudes(matrix_of(codes, element), element), expected)
    assert np.array_equal(magnitudes(codes, element), expected)
    ranks = (np.sign(expected) + 1).astype(np.uint8)
    for matrix in (codes, matrix_of(codes, element), value.astype(">f8")):
        assert np.array_equal(zero_ranks(matrix, element), ranks)


@pytest.mark.parametrize("name", ["s8", "u8", "s4", "u4"])
def test_magnitudes_of_integers_are_the_same_by_value_and_by_code(name: str) -> None:
    element = FORMATS[name]
    codes = every_code(element)
    value = integers(codes, element)
    expected = np.where(value == 0, -1, np.abs(value))
    for matrix in (codes, matrix_of(codes, element), value):
        assert np.array_equal(magnitudes(matrix, element), expected)
        assert np.array_equal(zero_ranks(matrix, element), 2 * (value != 0))
