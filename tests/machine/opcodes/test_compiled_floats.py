"""f32 and f64 arithmetic against the C library's, compiled by gcc, in all four directions."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.float_samples import random, sources
from tests.helpers.slow_floats import KINDS
from warpsim.machine.opcodes.floating import rounded
from warpsim.machine.opcodes.floating import singles as floating

SOURCE = """
#include <fenv.h>
#include <math.h>
#pragma STDC FENV_ACCESS ON
static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
#define EACH(name, type, value) \\
    void name(int mode, long n, const volatile type *a, const volatile type *b, const volatile type *c, \\
              volatile type *d) { \\
        fesetround(modes[mode]); \\
        for (long i = 0; i < n; i++) d[i] = value; \\
        fesetround(FE_TONEAREST); \\
    }
EACH(add_f32, float, a[i] + b[i])
EACH(sub_f32, float, a[i] - b[i])
EACH(mul_f32, float, a[i] * b[i])
EACH(fma_f32, float, fmaf(a[i], b[i], c[i]))
EACH(div_f32, float, a[i] / b[i])
EACH(rcp_f32, float, 1 / a[i])
EACH(sqrt_f32, float, sqrtf(a[i]))
EACH(add_f64, double, a[i] + b[i])
EACH(sub_f64, double, a[i] - b[i])
EACH(mul_f64, double, a[i] * b[i])
EACH(fma_f64, double, fma(a[i], b[i], c[i]))
EACH(div_f64, double, a[i] / b[i])
EACH(rcp_f64, double, 1 / a[i])
EACH(sqrt_f64, double, sqrt(a[i]))
"""
MODES = ("rn", "rz", "rm", "rp")
COUNT = {"f32": 40_000, "f64": 15_000}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    folder: Path = tmp_path_factory.mktemp("compiled")
    (folder / "floats.c").write_text(SOURCE)
    command = [
        "gcc",
        "-O1",
        "-frounding-math",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "floats.c",
        "-o",
        "floats.so",
        "-lm",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "floats.so"))


def close(name: str, count: int, rng: np.random.Generator) -> list[Any]:
    """Triples whose product nearly cancels the addend."""
    word = np.dtype(f"u{KINDS[name].bits // 8}")
    real = np.dtype(f"f{KINDS[name].bits // 8}")
    a, b = (random(name, count, rng).astype(word) for _ in range(2))
    with np.errstate(all="ignore"):
        c = -(a.view(real) * b.view(real)).view(word).view(real)
    return [a, b, c.view(word) + rng.integers(0, 3, count).astype(word)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("opcode", ["add", "sub", "mul", "fma", "div", "rcp", "sqrt"])
def test_as_compiled_c(library: ctypes.CDLL, opcode: str, name: str, mode: str) -> None:
    rows = {row.opcode: row for row in (*floating.ROWS, *rounded.ROWS) if row.slots[-1] == (name,)}
    row = rows[opcode]
    (choice,) = (choice for choice in row.forms() if choice[0] == mode and not any(choice[1:-1]))
    operation = row.build(*choice)
    word = np.dtype(f"u{KINDS[name].bits // 8}")
    rng = np.random.default_rng([7, MODES.index(mode)])
    triples = zip(sources([name] * 3, COUNT[name], 11), close(name, COUNT[name], rng), strict=True)
    columns = [np.ascontiguousarray(np.concatenate([one, two]).astype(word)) for one, two in triples]
    wanted = np.empty_like(columns[0])
    function = getattr(library, f"{opcode}_{name}")
    function(
        MODES.index(mode),
        ctypes.c_long(len(wanted)),
        *(ctypes.c_void_p(x.ctypes.data) for x in (*columns, wanted)),
    )
    (found,) = operation.compute(*columns[: len(operation.sources)])
    infinity, sign = word.type(KINDS[name].infinity), word.type(KINDS[name].sign - 1)
    not_nan = (wanted & sign) <= infinity
    assert np.array_equal((found & sign) <= infinity, not_nan)
    assert np.array_equal(found[not_nan], wanted[not_nan])
