"""Launches leave nothing behind that only the garbage collector of Python frees: waves hold megabytes."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.helpers import kernel_cases
from tests.helpers.families import sample
from warpsim.base.errors import WarpsimError
from warpsim.programs.launch.launching import load_text

KERNELS = (
    *("called", "interpret", "chained_scan of 3 CTAs", "softmax", "locked_sum", "cluster_sum"),
    *("sparse_product normal", "warpgroup_f16 normal", "cooperative_f16", "multicast_f16"),
    *("tensor_ring of parts of tiles", "tensor_persistent", "tensor_sparse_f16"),
)
MODES: dict[str, dict[str, Any]] = {
    "without checks": {"checks": "off"},
    "with checks": {},
    "recorded at random": {"schedule": 3, "record": True, "timeline": True},
    "in two schedules": {"schedules": 2},
    "stopped": {"most_statements": 40},
}


def left_behind(kernel: str, **options: Any) -> Counter[str]:
    """The types of the package of which a launch, and then the end of its report, leave cycles."""
    case = kernel_cases.case(kernel)
    entry = load_text((kernel_cases.FOLDER / case.file).read_text())[case.entry]

    def launch() -> None:
        given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
        with suppress(WarpsimError):
            entry(
                case.grid, case.block, case.passed(given), case.shared_bytes, cluster=case.cluster, **options
            )

    launch()  # the first one also compiles
    gc.disable()
    gc.freeze()  # what is there is not looked at: the objects of all modules take half a second
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        launch()
        gc.collect()
        found = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()
    return Counter({name: count for name, count in found.items() if name.startswith("warpsim")})


@pytest.mark.parametrize(("kernel", "mode"), sample(product(KERNELS, MODES), 5))
def test_nothing_waits_for_the_garbage_collector(kernel: str, mode: str) -> None:
    assert not left_behind(kernel, **MODES[mode])
