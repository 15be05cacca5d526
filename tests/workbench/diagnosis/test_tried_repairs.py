"""Repairs that are tried say on what they hold: other data, and sums twice as long or this shape alone."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.verdicts.formula_causes import answered
from warpsim.workbench.diagnosis.verdicts.repeated_launch import RepeatedLaunch
from warpsim.workbench.diagnosis.verdicts.tried_repairs import Trial

_TEXT = (Path(__file__).parents[3] / "traces/kernels/dense_tiles.ptx").read_text()
_OF_64 = re.sub(r"ld\.param\.u32\s+(%r\d+), \[dense_f16_param_4\];", r"mov.u32 \1, 64;", _TEXT)


def _trial(text: str, columns: int, *, known: bool = True) -> Trial:
    """Return a trial of a product whose sums have 64 terms."""
    random = np.random.default_rng(1)
    left, right = (random.standard_normal(shape).astype(np.float16) for shape in ((64, 64), (64, columns)))
    args = [left, right, np.zeros((64, columns), np.float32), columns, np.array(64, np.uint32)]
    grid = columns // 32, 2
    kernel = load_text(text)["dense_f16"]
    launch = RepeatedLaunch(
        kernel=kernel, sizes={"grid": grid, "block": 64}, args=args, options={}, before={}
    )
    expected = {2: left.astype(np.float32) @ right.astype(np.float32)}
    found = answered(launch, expected, 1e-3)
    assert found is not None
    return Trial(launch=launch, expected=expected, tolerance=1e-3, formulas=found.formulas if known else None)


@pytest.mark.parametrize("columns", [64, 96])
def test_a_repair_holds_on_longer_sums(columns: int) -> None:
    trial = _trial(_TEXT, columns)
    assert trial.wrong_of(trial.launch) == 0
    assert trial.again("done") == "a trial: done; so it is on other data and with sums twice as long"


def test_a_repair_that_holds_on_one_shape_alone_says_so() -> None:
    assert _OF_64 != _TEXT
    trial = _trial(_OF_64, 96)
    assert trial.wrong_of(trial.launch) == 0
    assert trial.again("done") == "a trial: done; so it is on other data of this shape"


def test_without_a_formula_no_other_data_are_tried() -> None:
    trial = _trial(_TEXT, 64, known=False)
    assert trial.wrong_of(trial.launch) == 0
    assert trial.again("done") == "a trial: done"
