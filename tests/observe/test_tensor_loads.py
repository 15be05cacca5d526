"""tcgen05.ld.red on keys: the least or greatest of the cells that a lane loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.formulas import repeatable
from warpsim.observe.algebra.provenance import Provenance
from warpsim.programs.launch.launching import load_text
from warpsim.programs.launch.reference_runs import Run, equivalence_of

_REGISTERS = ", ".join(f"v{each}" for each in range(4))
_TEXT = f"""
.version 8.8
.target sm_103a
.address_size 64
.visible .entry k(.param .u64 given, .param .u64 results) {{
 .reg .b32 v<5>, tid, where, base; .reg .b64 x, y; .reg .pred p; .shared .b32 address;
 mov.u32 tid, %tid.x; setp.lt.u32 p, tid, 32;
 ld.param.u64 x, [given]; mad.wide.u32 x, tid, 16, x; ld.param.u64 y, [results]; mad.wide.u32 y, tid, 4, y;
 @p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 32;
 bar.sync 0;
 ld.shared.b32 base, [address]; and.b32 where, tid, 96; shl.b32 where, where, 16; add.u32 where, where, base;
 ld.global.v4.b32 {{{_REGISTERS}}}, [x];
 tcgen05.st.sync.aligned.32x32b.x4.b32 [where], {{{_REGISTERS}}};
 tcgen05.wait::st.sync.aligned;
 tcgen05.ld.red.sync.aligned.32x32b.x4.NAME {{{_REGISTERS}}}, v4, [where];
 tcgen05.wait::ld.sync.aligned;
 st.global.b32 [y], v4;
 bar.sync 0;
 @p tcgen05.dealloc.cta_group::1.sync.aligned.b32 base, 32;
 ret;
}}
"""
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "min.f32": lambda x: np.min(x, axis=1),
    "max.f32": lambda x: np.max(x, axis=1),
    "max.abs.f32": lambda x: np.max(np.abs(x), axis=1),
    "min.s32": lambda x: np.min(x, axis=1),
    "max.s32": lambda x: np.max(x, axis=1),
}


def _run(name: str, function: Callable[[Any], Any], provenance: Provenance | None = None) -> Run:
    random = np.random.default_rng(1)
    given = random.integers(-1000, 1000, (128, 4)).astype(np.int32 if "s32" in name else np.float32)
    arrays = [given, np.zeros(128, given.dtype)]
    launch = repeatable(load_text(_TEXT.replace("NAME", name))["k"], arrays, {"grid": 1, "block": 128})
    return equivalence_of(launch, lambda x, y: function(x), provenance=provenance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_load_reduces_formulas(name: str) -> None:
    found = _run(name, FUNCTIONS[name]).equivalence
    assert (found.answer, dict(found.uninterpreted)) == ("equal", {}), str(found)


def test_another_reduction_is_another_formula() -> None:
    assert _run("min.f32", FUNCTIONS["max.f32"]).equivalence.answer == "other"
    assert _run("max.f32", FUNCTIONS["max.abs.f32"]).equivalence.answer == "other"


def test_the_reduction_is_a_step() -> None:
    provenance = Provenance()
    _run("max.f32", FUNCTIONS["max.f32"], provenance)
    assert {(each.name, len(each.operands), len(each.made)) for each in provenance.steps} == {("max", 4, 128)}
