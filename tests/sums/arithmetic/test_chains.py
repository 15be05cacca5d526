"""Column vectors of chains against the scalar kernels, bit for bit, on random and on nasty operands.

Both are compiled apart and share no arithmetic: hardware's fused multiply-add and float64 on one side,
integers on the other. That the scalar kernels are right is test_numerics' and test_kernels' business.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import nasty
from tests.helpers.families import sample, usual
from warpsim.base.environment import default_environment, is_default
from warpsim.isa.formats import FORMATS, Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.isa.rules import FusedMultiplyAdd, ScaledGroups, SoftwareQuad
from warpsim.sums.arithmetic import chains, numerics, reference
from warpsim.sums.arithmetic.kernels import hardware
from warpsim.sums.arithmetic.kernels._jit import interpreted
from warpsim.sums.arithmetic.kernels.scalar import compiled as kernels
from warpsim.sums.arithmetic.kernels.scalar.binary64 import DOWN, NEAREST, TOWARD_ZERO, UP
from warpsim.sums.execution.pipeline import rule_for

ROOT = Path(__file__).resolve().parents[3]
KINDS = (FusedMultiplyAdd, SoftwareQuad, ScaledGroups)
FORMS = [form for form in nasty.arithmetics() if isinstance(rule_for(form), KINDS)]
compiled = pytest.mark.skipif(interpreted(), reason="no JIT: there is only the scalar way")


def both(form: Instruction, operands: Operands) -> tuple[Any, Any]:
    """Codes of D by vectors and by the scalar kernel."""
    rule = rule_for(form)
    with default_environment():
        vectors = chains.compute(operands, rule)
        scalars = numerics.RULES[type(rule)](operands, rule, kernels)
    return vectors.astype(form.d.code_dtype), scalars.astype(form.d.code_dtype)


def near(element: Format, shape: tuple[int, ...], rng: nasty.Rng) -> Any:
    """Codes with random fractions whose exponents are near each other, now at 1, now at the lowest."""
    codes = nasty.random_codes(element, shape, rng)
    if element.bits < 32:
        return codes
    fraction = element.code_dtype.type(element.sign_bit | ((1 << element.fraction_bits) - 1))
    first = rng.choice([1, element.bias - 20])
    fields = rng.integers(first, first + 40, shape).astype(element.code_dtype)
    return codes & fraction | fields << element.code_dtype.type(element.fraction_bits)


def random_operands(form: Instruction, make: Any, rng: nasty.Rng) -> Operands:
    """Two cases of codes by ``make``; scales anywhere, or around 1."""
    codes: dict[str, Any] = {x: make(form.format(x), (2, *form.matrix_shape(x)), rng) for x in "abc"}
    if form.sparse:
        units = nasty.indices(form, (2, form.shape.m), rng, ordered=form.ordered)
        codes["columns"] = nasty.columns(form, units)
    if form.scale is not None:
        wide = make is nasty.random_codes
        low, high = (0, 1 << form.scale.bits) if wide else (form.scale.bias - 5, form.scale.bias + 6)
        codes["scale_a"] = rng.integers(low, high, (2, form.shape.m, form.scale_chunks)).astype(np.uint8)
        codes["scale_b"] = rng.integers(low, high, (2, form.scale_chunks, form.shape.n)).astype(np.uint8)
    return Operands(product=form.product, **codes)


@compiled
@pytest.mark.parametrize("form", FORMS, ids=nasty.name)
@pytest.mark.parametrize("make", [nasty.random_codes, near])
def test_vectors_and_scalars_give_the_same_codes(form: Instruction, make: Any) -> None:
    rng = np.random.default_rng(64)
    for _ in range(usual(3, 6)):
        vectors, scalars = both(form, random_operands(form, make, rng))
        assert np.array_equal(vectors, scalars)


@compiled
@pytest.mark.parametrize("form", FORMS, ids=nasty.name)
def test_nasty_dots_have_the_same_codes(form: Instruction) -> None:
    for make in nasty.makers(form):
        rng = np.random.default_rng(65)
        vectors, scalars = both(form, nasty.operands(form, make(form, 40, rng), rng))
        assert np.array_equal(vectors, scalars)


@compiled
@pytest.mark.parametrize("form", [form for form in FORMS if form.c == form.d], ids=nasty.name)
def test_several_instructions_are_one_after_the_other(form: Instruction) -> None:
    rng = np.random.default_rng(66)
    first, second = (random_operands(form, near, rng) for _ in range(2))
    rule = rule_for(form)
    with default_environment():
        halfway = chains.compute(first, rule).astype(form.c.code_dtype)
        expected = chains.compute(replace(second, c=halfway), rule)
        joined = {
            name: None
            if getattr(first, name) is None
            else np.concatenate([getattr(x, name) for x in (first, second)], axis)
            for name, axis in (("a", 2), ("b", 1), ("scale_a", 2), ("scale_b", 1))
        }
        if first.columns is not None and second.columns is not None:
            joined["columns"] = np.concatenate([first.columns, second.columns + form.shape.k], 2)
        assert np.array_equal(chains.compute(replace(first, **joined), rule), expected)


@compiled
@pytest.mark.parametrize("n", [1, 16, 37])
@pytest.mark.parametrize("make", [nasty.random_codes, near])
def test_any_number_of_columns_gives_the_codes_of_the_reference(n: int, make: Any) -> None:
    rng = np.random.default_rng(67)
    for form in FORMS:
        operands = random_operands(form, make, rng)
        rows = {
            name: None if getattr(operands, name) is None else getattr(operands, name)[:, :2]
            for name in ("a", "scale_a", "columns")
        }
        b, c = make(form.b, (2, form.shape.k, n), rng), make(form.c, (2, 2, n), rng)
        of_b = operands.scale_b
        scale_b = None if of_b is None else rng.choice(of_b.reshape(-1), (2, form.scale_chunks, n))
        operands = replace(operands, **rows, b=b, c=c, scale_b=scale_b)
        rule = rule_for(form)
        codes = numerics.compute(operands, rule)
        assert np.array_equal(codes, reference.compute(operands, rule))


def test_what_does_not_fit_is_left_to_the_scalar_kernel() -> None:
    form = next(form for form in FORMS if isinstance(rule_for(form), ScaledGroups))
    rule = rule_for(form)
    assert chains.applies(form.product, rule) is not interpreted()
    for numbers in ({"fraction_bits": 45}, {"group": 128}, {"group": 24}, {"exponent_floor": -1000}):
        assert not chains.applies(form.product, rule.realigned(**numbers))


@compiled
def test_other_roundings_are_put_back() -> None:
    third = np.float64(1), np.float64(3)
    quotients = []
    for mode in (NEAREST, DOWN, UP, TOWARD_ZERO):
        with hardware.rounding(mode):
            quotients.append(np.divide(*third).view(np.int64))
        assert is_default()
    assert quotients[2] - quotients[1] == 1
    assert quotients[3] == quotients[1]
    with pytest.raises(ZeroDivisionError), hardware.rounding(UP):
        raise ZeroDivisionError
    assert is_default()


GENERIC = """
from tests.sums.arithmetic.test_chains import digest
print(*digest())
"""


def digest() -> list[int]:
    """Whether the CPU fuses, and codes of a float64 product and one of 4-bit elements."""
    found = [int(hardware.has_fused())]
    for kind in KINDS:
        form = next(form for form in FORMS if isinstance(rule_for(form), kind))
        operands = random_operands(form, near, np.random.default_rng(67))
        found += numerics.compute(operands, rule_for(form)).reshape(-1).tolist()
    return found


@pytest.mark.parametrize("setting", sample([{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_DISABLE_JIT": "1"}], 2, 1))
def test_a_cpu_that_does_not_fuse_has_the_same_codes(setting: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", GENERIC],
        env={**os.environ, **setting, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fused, *codes = map(int, done.stdout.split())
    assert not fused
    assert codes == digest()[1:]


def test_half_rounds_as_numpy_does() -> None:
    """Through the f16 form of m8n8k4: zeros times anything leave C, whose sum with them is rounded."""
    form = next(x for x in FORMS if isinstance(rule_for(x), SoftwareQuad) and x.d is FORMATS["f16"])
    assert form.c is FORMATS["f16"]
    every = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        finite = every[np.isfinite(every.view(np.float16))]
    c = np.resize(finite, (-(-len(finite) // 64), 8, 8))
    ones, zeros = np.full((len(c), 8, 4), 0x3C00, np.uint16), np.zeros((len(c), 4, 8), np.uint16)
    vectors, scalars = both(form, Operands(product=form.product, a=ones, b=zeros, c=c))
    assert np.array_equal(vectors, scalars)


def test_without_a_compiler_there_are_no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted, the scalar kernels are all there is: hardware's instructions are the compiler's."""
    monkeypatch.setattr(chains, "interpreted", lambda: True)
    assert not any(chains.applies(form.product, rule_for(form)) for form in FORMS)
