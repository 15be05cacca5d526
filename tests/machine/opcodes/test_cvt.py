"""Every form of cvt against one lane at a time in Python's integers; ml_dtypes and C as third opinions."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.helpers.cvt_samples import STEPS, Array, codes_of_float, integers, sources_of
from tests.helpers.families import each_of, sample
from tests.helpers.slow_conversions import expected
from warpsim.machine.bind.value_types import bits_of, dtype_of
from warpsim.machine.opcodes.conversion import cvt as conversion
from warpsim.machine.opcodes.conversion import cvt_packed as packing
from warpsim.machine.opcodes.operation import Operation, Row

ROWS: tuple[Row, ...] = (*conversion.ROWS, *packing.ROWS)
FORMS = [(row, choice) for row in ROWS for choice in row.forms()]
IDS = [".".join(filter(None, choice)) for _, choice in FORMS]


def built(name: str) -> Operation:
    """The operation of ``rn.f16.f32``."""
    row, choice = FORMS[IDS.index(name)]
    return row.build(*choice)


def test_forms_are_written_differently() -> None:
    assert len(set(IDS)) == len(IDS)


def wanted(modifiers: tuple[str, ...], sources: tuple[Array, ...]) -> Array:
    """The oracle's results, for all codes of one source only once for forms that must agree."""
    if len(sources) == 1 and sources[0].itemsize <= 2 and modifiers[-2] != "pack":
        idle = {"ftz"} - {"ftz" for x in modifiers[-2:] if x == "f32" and modifiers[-1] == "bf16"}
        idle |= {"sat"} - {"sat" for x in modifiers[-2:-1] if x[0] == "f" or modifiers[-1][0] in "us"}
        return of_codes(tuple(x for x in modifiers if x not in idle), sources[0].itemsize)
    lanes = zip(*(x.tolist() for x in sources), strict=True)
    return np.array([expected(modifiers, lane) for lane in lanes], dtype=np.uint64)


@cache
def of_codes(modifiers: tuple[str, ...], size: int) -> Array:
    codes = range(0, 1 << 8 * size, STEPS[size])
    return np.array([expected(modifiers, (code,)) for code in codes], dtype=np.uint64)


@each_of(sample(FORMS, 2), parts=12)
def test_results(row: Row, choice: tuple[str, ...]) -> None:
    operation, modifiers = row.build(*choice), tuple(filter(None, choice))
    sources = sources_of(operation, modifiers)
    before = [x.copy() for x in sources]
    (result,) = operation.compute(*sources)
    want = wanted(modifiers, sources)
    assert result.dtype == dtype_of(operation.results[0])
    wrong = np.flatnonzero(result != want)
    shown = [([hex(int(x[i])) for x in sources], hex(int(result[i])), hex(int(want[i]))) for i in wrong[:5]]
    assert not shown, f"{len(wrong)} of {len(want)}"
    assert all(np.array_equal(x, y) for x, y in zip(sources, before, strict=True))
    assert not any(np.shares_memory(result, x) for x in sources)


@each_of(FORMS, parts=2)
def test_shapes(row: Row, choice: tuple[str, ...]) -> None:
    """Sources of no axis are the same in all lanes, and any bits pass without a warning."""
    operation = row.build(*choice)
    rng = np.random.default_rng(1)
    sources = [rng.integers(0, 1 << bits_of(x), (4, 32), dtype=dtype_of(x)) for x in operation.sources]
    (result,) = operation.compute(*sources)
    assert result.shape == (4, 32)
    for lane in ((0, 0), (3, 31)):
        (alone,) = operation.compute(*(np.array(x[lane]) for x in sources))
        assert isinstance(alone, np.ndarray)
        assert alone.shape == ()
        assert alone == result[lane]
    for place in range(len(sources) if len(sources) > 1 else 0):
        mixed = [np.array(x[1, 1]) if i == place else x for i, x in enumerate(sources)]
        (some,) = operation.compute(*mixed)
        assert some.shape == (4, 32)
        assert some[1, 1] == result[1, 1]


@each_of(FORMS)
def test_inexact_results_say_why(row: Row, choice: tuple[str, ...]) -> None:
    operation = row.build(*choice)
    assert (operation.fidelity == "exact") == (operation.note == "")


# --- ml_dtypes -------------------------------------------------------------------------------------

_NARROWED = {
    "rn.bf16.f32": ml_dtypes.bfloat16,
    "rn.f16.f32": np.float16,
    "rn.satfinite.e4m3x2.f32": ml_dtypes.float8_e4m3fn,
    "rn.satfinite.e5m2x2.f32": ml_dtypes.float8_e5m2,
    "rn.satfinite.e3m2x2.f32": ml_dtypes.float6_e3m2fn,
    "rn.satfinite.e2m3x2.f32": ml_dtypes.float6_e2m3fn,
}


@pytest.mark.parametrize("name", _NARROWED)
def test_narrowing_is_that_of_ml_dtypes(name: str) -> None:
    dtype, operation = np.dtype(_NARROWED[name]), built(name)
    codes = codes_of_float(32)
    values = codes.view(np.float32)
    limit = float(ml_dtypes.finfo(dtype).max)
    values = values[np.abs(values) <= limit]  # what overflows, and NaN, differs by design
    (result,) = operation.compute(*[values.view(np.uint32)] * len(operation.sources))
    want = values.astype(dtype).view(f"u{dtype.itemsize}")
    assert np.array_equal(result & ((1 << 8 * dtype.itemsize) - 1), want)


# --- C ---------------------------------------------------------------------------------------------

_SOURCE = """
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#pragma STDC FENV_ACCESS ON
static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
#define FROM(name, from, to) void name(int mode, long n, const volatile from *x, volatile to *y) { \\
    fesetround(modes[mode]); for (long i = 0; i < n; i++) y[i] = (to)x[i]; fesetround(FE_TONEAREST); }
FROM(f32_s32, int32_t, float) FROM(f32_u32, uint32_t, float) FROM(f32_s64, int64_t, float)
FROM(f64_s32, int32_t, double) FROM(f64_u32, uint32_t, double) FROM(f64_s64, int64_t, double)
FROM(f32_f64, double, float)
#define TO(name, from, to, low, high) void name(int mode, long n, const volatile from *x, volatile to *y) { \\
    fesetround(modes[mode]); \\
    for (long i = 0; i < n; i++) { \\
        long double v = rintl((long double)x[i]); \\
        y[i] = v < (long double)low ? low : v > (long double)high ? high : (to)v; } \\
    fesetround(FE_TONEAREST); }
TO(s32_f32, float, int32_t, INT32_MIN, INT32_MAX) TO(s32_f64, double, int32_t, INT32_MIN, INT32_MAX)
TO(u32_f32, float, uint32_t, 0, UINT32_MAX) TO(u32_f64, double, uint32_t, 0, UINT32_MAX)
TO(s64_f32, float, int64_t, INT64_MIN, INT64_MAX) TO(s64_f64, double, int64_t, INT64_MIN, INT64_MAX)
TO(u64_f32, float, uint64_t, 0, UINT64_MAX) TO(u64_f64, double, uint64_t, 0, UINT64_MAX)
"""
_FROM = ("f32_s32", "f32_u32", "f32_s64", "f64_s32", "f64_u32", "f64_s64", "f32_f64")
_TO = ("s32_f32", "s32_f64", "u32_f32", "u32_f64", "s64_f32", "s64_f64", "u64_f32", "u64_f64")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder: Path = tmp_path_factory.mktemp("cvt")
    (folder / "cvt.c").write_text(_SOURCE)
    command = ["gcc", "-O1", "-frounding-math", "-shared", "-fPIC", "cvt.c", "-o", "cvt.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "cvt.so"))


@pytest.mark.parametrize("name", [*_FROM, *_TO])
@pytest.mark.parametrize("mode", range(4), ids=("n", "z", "m", "p"))
def test_as_c_converts(compiled: ctypes.CDLL, name: str, mode: int) -> None:
    result, source = name.split("_")
    rounding = ("rn", "rz", "rm", "rp")[mode] + ("i" if name in _TO else "")
    bits = int(source[1:])
    values: Array = codes_of_float(bits) if source[0] == "f" else integers(bits)
    if source[0] == "f":
        values = values[~np.isnan(values.view(f"f{bits // 8}"))]
    want = np.empty(len(values), f"u{int(result[1:]) // 8}")
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (values, want)]
    getattr(compiled, name)(mode, ctypes.c_long(len(values)), *pointers)
    (got,) = built(f"{rounding}.{result}.{source}").compute(values)
    assert np.array_equal(got, want)
