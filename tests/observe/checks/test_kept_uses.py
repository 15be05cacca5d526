"""Uses of registers of wgmma are found once for a module, and few of them are kept."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.kernel_cases import FOLDER as KERNELS
from tests.helpers.kernel_cases import WARPGROUP_BENCHMARK, case
from warpsim.observe.checks.wgmma import register_uses
from warpsim.observe.checks.wgmma.register_uses import RegisterUses, uses_of
from warpsim.programs.launch.launching import load_text


def test_launches_of_a_module_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    known = case(WARPGROUP_BENCHMARK)
    kernel = load_text((KERNELS / known.file).read_text())[known.entry]
    made, whole = list[object](), RegisterUses.__init__

    def counted(uses: RegisterUses, code: list[object]) -> None:
        made.append(code)
        whole(uses, code)

    monkeypatch.setattr(RegisterUses, "__init__", counted)
    found = []
    for _ in range(3):
        given = [item.copy() if isinstance(item, np.ndarray) else item for item in known.arguments]
        options = {"cluster": known.cluster}
        report = kernel(known.grid, known.block, known.passed(given), known.shared_bytes, **options)
        arrays = [item.tobytes() for item in given if isinstance(item, np.ndarray)]
        found.append((list(map(str, report.hazards)), arrays))
    assert len(made) == 1
    assert found[0] == found[1] == found[2]


def test_those_of_few_codes_are_kept() -> None:
    """Another code at the same place is another; the oldest go."""
    codes = [[] for _ in range(9)]
    uses = [uses_of(code) for code in codes]
    assert len(register_uses._KEPT) == register_uses._MOST
    assert uses_of(codes[8]) is uses[8]
    assert uses_of(codes[0]) is not uses[0]
