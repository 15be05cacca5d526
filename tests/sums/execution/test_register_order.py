"""Registers that lie lane by lane and those that lie register by register give the same bits of D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.isa.operand_places.placements import Inputs
from warpsim.sums.execution import fused_registers
from warpsim.sums.execution.fused_registers import fused_call, run

FORMS = (
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_80"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_80"),
)
CASES = 6


def _registers(form: Any) -> dict[str, Any]:
    random = np.random.default_rng(3)
    halves = {role: form.held(role).shape for role in "abc"}
    found = {
        role: random.standard_normal((CASES, lanes, 2 * count)).astype(np.float16).view(np.uint32)
        for role, (lanes, count) in halves.items()
    }
    if form.sparse:
        found["e"] = random.choice(np.array([0x4E4E9C9C, 0x44444444], np.uint32), (CASES, 32, 1))
    return found


def _by_register(words: Any) -> Any:
    return np.ascontiguousarray(words.transpose(2, 0, 1)).transpose(1, 2, 0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("name", "target"), FORMS)
def test_order_of_registers(name: str, target: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All operands, or all but one of them, of which then copies are made; in threads too."""
    monkeypatch.setattr(fused_registers, "_SHARE", 256)
    form = warpsim.decode(name, target=target)
    registers = _registers(form)
    expected = [
        warpsim.execute(form, engine="reference", **{r: w[i] for r, w in registers.items()})
        for i in range(CASES)
    ]
    turned = {role: _by_register(words) for role, words in registers.items()}
    for given, by_register in ((registers, False), (turned, True), (turned | {"a": registers["a"]}, False)):
        call = fused_call(form, Inputs.plain(given, 0, False))
        assert call is not None
        d = run(call, threads)
        assert d is not None
        assert np.array_equal(d, expected)
        assert d.transpose(2, 0, 1).flags.c_contiguous == by_register
