"""Kernels in the manner of CUTLASS, Marlin and others compute their references, by algebra."""

from __future__ import annotations

import pytest

from tests.workbench.unseen_kernels.launches import FOLDER, LAUNCHES
from tools.mistakes.judged import asked, edited, guilty_lines
from tools.mistakes.unseen_kernels import LIST


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kernel", LAUNCHES)
def test_intact_kernel_computes_its_reference(kernel: str, seed: int) -> None:
    verdict = asked(kernel, FOLDER / "ptx" / f"{kernel}.ptx", seed)
    assert verdict.equivalence.answer == "equal", str(verdict)
    assert verdict.as_expected, str(verdict)


def test_planted_mistakes_apply() -> None:
    """Every edit changes its source once, at lines that it has."""
    for planted in LIST:
        count = len(edited(planted).splitlines())
        lines = guilty_lines(planted)
        assert lines, planted
        assert max(lines) <= count, planted
        assert all(text in edited(planted) for text in planted.at), planted
