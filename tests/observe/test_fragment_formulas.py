"""Matrix instructions on integers of fewer than 8 bits, and those of single bits, on keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.formulas import repeatable
from warpsim.programs.launch.launching import load_text
from warpsim.programs.launch.reference_runs import equivalence_of

_TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pd)
{{
 .reg .u64 %a, %b, %d; .reg .b32 %x, %y; .reg .s32 %s<2>, %c;
 ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb]; ld.param.u64 %d, [pd]; mov.u32 %c, 0;
 wmma.load.a.sync.aligned.row.{shape}.global.{kind} {{%x}}, [%a], {k};
 wmma.load.b.sync.aligned.col.{shape}.global.{kind} {{%y}}, [%b{more}], {k};
 wmma.mma{operation}.sync.aligned.row.col.{shape}.s32.{kind}.{kind}.s32
  {{%s0, %s1}}, {{%x}}, {{%y}}, {{%c, %c}};
 wmma.store.d.sync.aligned.row.{shape}.global.s32 [%d], {{%s0, %s1}}, 8;
 ret;
}}
"""


def _parts(x: Any, bits: int, *, signed: bool = False) -> Any:
    """The integers of so many bits in bytes, the lowest first."""
    parts = np.stack([x >> low & (1 << bits) - 1 for low in range(0, 8, bits)], -1)
    found = np.reshape(parts, (*x.shape[:-1], -1))
    return found - 2 * (found & 1 << bits - 1) if signed else found


def _product(bits: int, *, signed: bool = False) -> Callable[..., Any]:
    return lambda a, b, d: _parts(a, bits, signed=signed) @ _parts(b, bits, signed=signed).T


def _exclusive(a: Any, b: Any, d: Any) -> Any:
    x, y = _parts(a, 1), _parts(b, 1).T
    return np.sum(x, 1, keepdims=True) + np.sum(y, 0, keepdims=True) - 2 * (x @ y)


FORMS: list[tuple[str, str, Callable[..., Any]]] = [
    ("u4", "", _product(4)),
    ("s4", "", _product(4, signed=True)),
    ("b1", ".and.popc", _product(1)),
    ("b1", ".xor.popc", _exclusive),
]


@pytest.mark.parametrize(("kind", "operation", "reference"), FORMS, ids=lambda each: str(each)[:9])
def test_fragments_of_few_bits(kind: str, operation: str, reference: Callable[..., Any]) -> None:
    random, k = np.random.default_rng(3), 128 if kind == "b1" else 32
    a, b = (random.integers(1, 256, (9, 16)).astype(np.uint8) for _ in "ab")
    arrays = [a[:8].copy(), b, np.zeros((8, 8), np.int32)]

    def answer(more: str, function: Callable[..., Any]) -> str:
        text = _TEXT.format(kind=kind, operation=operation, shape=f"m8n8k{k}", k=k, more=more)
        launch = repeatable(load_text(text)["k"], arrays, {"grid": 1, "block": 32})
        found = equivalence_of(launch, lambda a, b, d: {2: function(a, b[:8], d)}).equivalence
        assert not found.uninterpreted
        return found.answer

    assert answer("", reference) == "equal"
    assert answer("+16", reference) == "other"
    assert answer("", lambda a, b, d: reference(a, b, d) + (a[0, 0] & 1)) == "other"


_MMA = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pd)
{
 .reg .u64 %a, %b, %d, %o; .reg .u32 %n; .reg .b32 %x, %y; .reg .s32 %s<2>, %c;
 mov.u32 %n, %tid.x; mul.wide.u32 %o, %n, 4; mov.u32 %c, 0;
 ld.param.u64 %a, [pa]; add.u64 %a, %a, %o; ld.global.b32 %x, [%a];
 ld.param.u64 %b, [pb]; add.u64 %b, %b, %o; ld.global.b32 %y, [%b];
 mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.OPERATION.popc {%s0, %s1}, {%x}, {%y}, {%c, %c};
 ld.param.u64 %d, [pd]; mul.wide.u32 %o, %n, 8; add.u64 %d, %d, %o; st.global.v2.u32 [%d], {%s0, %s1};
 ret;
}
"""


@pytest.mark.parametrize(("operation", "reference"), [("and", _product(1)), ("xor", _exclusive)])
def test_products_of_bits(operation: str, reference: Callable[..., Any]) -> None:
    random = np.random.default_rng(3)
    a, b = (random.integers(1, 256, (8, 16)).astype(np.uint8) for _ in "ab")
    kernel = load_text(_MMA.replace("OPERATION", operation))["k"]
    launch = repeatable(kernel, [a, b, np.zeros((8, 8), np.int32)], {"grid": 1, "block": 32})
    assert equivalence_of(launch, reference).equivalence.answer == "equal"
    other = {"and": _exclusive, "xor": _product(1)}[operation]
    assert equivalence_of(launch, other).equivalence.answer == "other"
