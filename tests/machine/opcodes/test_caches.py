"""Loads and stores with hints do what they do without; hints alone do nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.kernel_texts import kernel, run
from warpsim.base.errors import IllegalInstruction
from warpsim.programs.launch.launching import load_text

ROW = "ld.param.u64 %base, [p0]; mul.wide.u32 %row, %lane, 32; add.u64 %base, %base, %row;\n"
WORDS = "{%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}"
EXTRA = {"extra": ".reg .b32 %a<8>; .reg .b64 %policy, %to;"}
COPY = "".join(f"mov.b32 %d{place}, %a{place};\n" for place in range(8))


def _copied(load: str) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(2).integers(0, 1 << 32, (64, 8)).astype(np.uint32)
    found = run("sm_100a", 2, 32, {"src": source}, {"d": (8, np.uint32)}, ROW + load + COPY, **EXTRA)
    return found["d"], source


@pytest.mark.parametrize(
    "load",
    [
        f"ld.global.v8.b32 {WORDS}, [%base];",
        f"ld.global.nc.L1::no_allocate.L2::evict_last.v8.f32 {WORDS}, [%base];",
        f"createpolicy.fractional.L2::evict_first.b64 %policy; ld.relaxed.gpu.global.L1::evict_last"
        f".L2::cache_hint.L2::128B.v8.u32 {WORDS}, [%base], %policy;",
        "prefetch.global.L1 [%base]; prefetchu.L1 [%base]; discard.global.L2 [%base], 128;"
        "applypriority.L2::evict_normal [%base], 128; ldu.global.v4.u32 {%a0, %a1, %a2, %a3}, [%base];"
        "ldu.v4.u32 {%a4, %a5, %a6, %a7}, [%base+16];",
    ],
)
def test_loads(load: str) -> None:
    d, source = _copied(load)
    np.testing.assert_array_equal(d, source)


def test_a_wide_store() -> None:
    to = "ld.param.u64 %to, [p1]; add.u64 %to, %to, %row;\n"
    store = f"ld.global.v8.b32 {WORDS}, [%base]; st.global.L1::no_allocate.v8.b32 [%to], {WORDS};\n"
    back = "ld.global.v8.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%to];\n"
    source = np.random.default_rng(2).integers(0, 1 << 32, (64, 8)).astype(np.uint32)
    found = run("sm_100a", 2, 32, {"src": source}, {"d": (8, np.uint32)}, ROW + to + store + back, **EXTRA)
    np.testing.assert_array_equal(found["d"], source)


@pytest.mark.parametrize(
    ("target", "body", "message"),
    [
        ("sm_90a", "ld.global.v8.b32 {%d0, %d1, %d0, %d1, %d0, %d1, %d0, %d1}, [%base];", "needs sm_100 or"),
        ("sm_100a", "ld.global.L2::evict_last.b32 %d0, [%base];", "its modifiers do not go together"),
        ("sm_100a", "ld.global.L2::cache_hint.b32 %d0, [%base];", "takes 3 operands, but 2 are given"),
        ("sm_75", "ld.global.L2::256B.b32 %d0, [%base];", "needs sm_80 or higher"),
        ("sm_80", "discard.global.L2 [%base], 64;", "the size is 128, not '64'"),
    ],
)
def test_mistakes(target: str, body: str, message: str) -> None:
    text = kernel(target, {}, {"d": np.zeros((1, 2), np.uint32)}, body)
    with pytest.raises(IllegalInstruction, match=message):
        load_text(text)["k"]
