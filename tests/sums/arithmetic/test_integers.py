"""Integer products of every pair of types, by octets and in BLAS, against Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.sums.arithmetic import integers
from warpsim.sums.arithmetic.integers import IntegerProblem, integer_product
from warpsim.sums.arithmetic.kernels.octets import has_octets

PAIRS = [
    ("32", "s8", "s8"),
    ("32", "s8", "u8"),
    ("32", "u8", "s8"),
    ("32", "u8", "u8"),
    ("64", "s4", "u4"),
    ("64", "u4", "s4"),
]
SHAPES = [(1, 1, 1), (7, 65, 33), (13, 64, 128), (130, 130, 31)]


def exact(a: Any, b: Any, c: Any) -> Any:
    """C plus the product of integers without limits, modulo 2**32."""
    total = a.astype(object) @ b.astype(object) + c.astype(object)
    return (total % (1 << 32)).astype(np.uint32)


@pytest.mark.parametrize("way", ["octets", "BLAS"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pair", PAIRS)
def test_products_of_every_pair_of_types(
    pair: tuple[str, str, str], shape: tuple[int, int, int], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "octets" and not has_octets():
        pytest.skip("this CPU has no such instruction")
    monkeypatch.setattr(integers, "has_octets", lambda: way == "octets")
    k, x, y = pair
    form = warpsim.decode(f"mma.sync.aligned.m16n8k{k}.row.col.s32.{x}.{y}.s32", target="sm_80")
    rng = np.random.default_rng(sum(shape))
    a, b = _values(x, (shape[0], shape[2]), rng), _values(y, (shape[2], shape[1]), rng)
    c = rng.integers(-(2**31), 2**31, shape[:2]).astype(np.int32)
    problem = IntegerProblem(product=form.product, a=_codes(a, x), b=_codes(b, y), c=c.view(np.uint32))
    for threads in (1, 3):
        assert np.array_equal(integer_product(problem, threads), exact(a, b, c))


@pytest.mark.parametrize("way", ["octets", "BLAS"])
@pytest.mark.parametrize("pair", PAIRS[:4])
def test_long_sums_are_exact(pair: tuple[str, str, str], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest odd products, so many of them that float32 does not hold their sum."""
    if way == "octets" and not has_octets():
        pytest.skip("this CPU has no such instruction")
    monkeypatch.setattr(integers, "has_octets", lambda: way == "octets")
    k, x, y = pair
    form = warpsim.decode(f"mma.sync.aligned.m16n8k{k}.row.col.s32.{x}.{y}.s32", target="sm_80")
    a, b = np.full((2, 5009), 127 if x == "s8" else 255), np.full((5009, 3), 127 if y == "s8" else 255)
    c = np.ones((2, 3), np.int32)
    problem = IntegerProblem(product=form.product, a=_codes(a, x), b=_codes(b, y), c=c.view(np.uint32))
    assert np.array_equal(integer_product(problem), exact(a, b, c))


def _values(name: str, shape: tuple[int, int], rng: np.random.Generator) -> Any:
    """Values of a type, the extreme ones among them."""
    bits = int(name[1:])
    low, high = (-(1 << bits - 1), 1 << bits - 1) if name[0] == "s" else (0, 1 << bits)
    extreme = rng.choice([low, high - 1], shape)
    return np.where(rng.random(shape) < 0.5, extreme, rng.integers(low, high, shape))


def _codes(values: Any, name: str) -> Any:
    return (values & ((1 << int(name[1:])) - 1)).astype(np.uint8)


@pytest.mark.parametrize("operation", ["and", "xor"])
@pytest.mark.parametrize("compiled", [True, False])
def test_products_of_bits(operation: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(integers, "interpreted", lambda: True)
    form = warpsim.decode(
        f"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{operation}.popc", target="sm_80"
    )
    rng = np.random.default_rng(1)
    for m, n, k in [(1, 1, 1), (5, 9, 63), (17, 70, 513)]:
        a, b = rng.integers(0, 2, (m, k)).astype(np.uint8), rng.integers(0, 2, (k, n)).astype(np.uint8)
        c = rng.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
        pairs = a[:, :, None].astype(int), b[None].astype(int)
        ones = (pairs[0] & pairs[1] if operation == "and" else pairs[0] ^ pairs[1]).sum(axis=1)
        found = integer_product(IntegerProblem(product=form.product, a=a, b=b, c=c.view(np.uint32)))
        assert np.array_equal(found, ((c.astype(np.int64) + ones) % (1 << 32)).astype(np.uint32))
