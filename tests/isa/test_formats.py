"""What a format says of itself, against NumPy and ml_dtypes: for every code of every format up to 16 bits."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsim
from tools.house import nodes
from warpsim.isa.formats import FORMATS, Format, Specials, floats_of, integers_of
from warpsim.sums.arithmetic import reference
from warpsim.workbench.generation.sums import exact_numbers

FLOATS = [element for element in FORMATS.values() if element.is_float]
SMALL = [element for element in FLOATS if element.bits <= 16]
PACKAGE = Path(warpsim.__file__).parent

every_small = pytest.mark.parametrize("element", SMALL, ids=str)
every_float = pytest.mark.parametrize("element", FLOATS, ids=str)


def values(element: Format) -> Any:
    """Every code's value, as the dtype's own library has it."""
    codes = np.arange(1 << element.bits, dtype=element.code_dtype)
    with np.errstate(invalid="ignore"):  # signaling NaNs
        return codes.view(element.dtype).astype(np.float64)


@every_small
def test_infinities_and_nans_are_where_the_library_has_them(element: Format) -> None:
    value = values(element)
    assert np.isinf(value).any() == element.has_infinity
    assert np.isnan(value).any() == element.has_nan
    if element.has_infinity:
        wanted = {element.infinity, element.infinity | element.sign_bit}
        assert set(np.flatnonzero(np.isinf(value)).tolist()) == wanted
    if element.has_nan:
        assert np.isnan(value[element.canonical_nan])


@every_small
def test_the_largest_finite_code_is_the_largest_finite_number(element: Format) -> None:
    value = values(element)
    finite = np.where(np.isfinite(value), value, -1.0)
    assert int(np.argmax(finite)) == element.largest_finite
    assert value[element.largest_finite] == float(ml_dtypes.finfo(element.dtype).max)


@every_small
def test_zeros_and_signs_are_those_of_the_library(element: Format) -> None:
    value = values(element)
    assert (value == 0).any() == element.has_zero
    assert np.signbit(value[~np.isnan(value)]).any() == element.signed
    assert np.count_nonzero(value == 0) == element.has_zero * (1 + element.signed)


@every_small
def test_both_slow_decoders_find_the_special_codes(element: Format) -> None:
    value = values(element)
    codes = np.arange(1 << element.bits, dtype=element.code_dtype)
    wanted = np.where(np.isnan(value), 2, np.where(np.isinf(value), 1, 0))
    assert [reference.decode(code, element).kind for code in codes.tolist()] == wanted.tolist()
    assert exact_numbers.decode(codes, element).special.tolist() == wanted.tolist()


@pytest.mark.parametrize("element", [FORMATS[name] for name in ("f32", "tf32", "f64")], ids=str)
def test_wide_formats_end_where_the_library_has_them_end(element: Format) -> None:
    def value(code: int) -> Any:
        with np.errstate(invalid="ignore"):
            return np.array(code, element.code_dtype).view(element.dtype).astype(np.float64)

    assert np.isinf(value(element.infinity))
    assert np.isnan(value(element.canonical_nan))
    last = 1 << element.ignored_bits
    assert np.isfinite(value(element.largest_finite))
    assert element.largest_finite + last == element.infinity


@pytest.mark.parametrize("name", ["s32", "s8", "u8", "s4", "u4"])
def test_integers_end_where_the_library_has_them_end(name: str) -> None:
    element = FORMATS[name]
    assert element.largest_finite == int(ml_dtypes.iinfo(element.dtype).max)
    assert not element.has_infinity
    assert not element.has_nan


@every_float
def test_a_format_without_a_special_code_does_not_make_one_up(element: Format) -> None:
    if not element.has_infinity:
        with pytest.raises(AssertionError, match=f"{element} has no Inf"):
            _ = element.infinity
    if not element.has_nan:
        with pytest.raises(AssertionError, match=f"{element} has no NaN"):
            _ = element.canonical_nan


def test_a_format_states_its_special_codes_and_no_wrong_ones() -> None:
    rest: dict[str, Any] = {"name": "e3m4", "bits": 8, "dtype": np.dtype(np.uint8)}
    with pytest.raises(TypeError, match="specials"):
        Format(**rest, exponent_bits=3, fraction_bits=4)
    with pytest.raises(AssertionError, match="an integer format with one NaN"):
        Format(**rest, specials=Specials.ONE_NAN)
    with pytest.raises(AssertionError, match="no fraction bits to distinguish a NaN from an Inf"):
        Format(**rest, specials=Specials.INFINITIES, exponent_bits=7)


def test_every_sort_of_special_codes_is_decoded_by_everyone() -> None:
    assert set(reference._KINDS) == set(exact_numbers._SPECIAL) == set(Specials)
    page = (PACKAGE / "show/report/static/numbers.js").read_text(encoding="utf-8")
    table = page[page.index("SPECIALS = {") : page.index("};", page.index("SPECIALS = {"))]
    assert {one for one in Specials if f'"{one.value}":' in table} == set(Specials)


def test_multiplicands_of_a_width() -> None:
    assert floats_of(8, 6, 4) == ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
    assert floats_of(8) == ("e4m3", "e5m2")
    assert integers_of(8) == ("s8", "u8")
    assert integers_of(4) == ("s4", "u4")


def test_nobody_else_lists_narrow_formats() -> None:
    """A list of names of narrow formats somewhere else would have to grow with the table."""
    names = {element.name for element in SMALL if element.bits <= 8 and element.signed}
    for path in PACKAGE.rglob("*.py"):
        strings = {
            node.value
            for node in nodes(path)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        # What was compared with chips does not grow with the table of formats, nor do the codes of a word.
        known = ("formats.py", "comparisons.py", "instruction_descriptor.py")
        assert path.name in known or not names & strings, path
