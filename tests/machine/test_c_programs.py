"""CUDA C kernels of many styles leave what the same source leaves on the host, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import c_kernels
from tests.helpers.families import sample

pytestmark = pytest.mark.skipif(
    bool(c_kernels.missing()), reason=c_kernels.missing() or "compilers are there"
)
# optimised and not, an old chip and a new one; without optimisation lanes part and meet inside functions
COMPILED = [("sm_75", "-G"), ("sm_90", "-O3")]
SLOW = {"recursion", "product_tiled", "interpreter"}  # one lane at a time takes seconds


@pytest.mark.parametrize(
    ("run", "target", "option"),
    [
        pytest.param(run, *how, id="-".join((run.name, *how)))
        for number, run in sample(enumerate(c_kernels.runs()), 3)
        for how in sample(COMPILED, 3, number // 3)
    ],
)
def test_a_kernel_leaves_what_it_leaves_on_the_host(run, target, option):
    if run.chip > int(target[3:]):
        pytest.skip(f"it needs sm_{run.chip}")
    expected = c_kernels.on_host(run)
    assert expected.any()
    np.testing.assert_array_equal(c_kernels.on_machine(run, target, option), expected)
    if run.name not in SLOW:
        np.testing.assert_array_equal(c_kernels.on_machine(run, target, option, schedule=1), expected)
