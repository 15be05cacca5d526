"""Origins of the kernels with matrix instructions in traces/kernels: all end, and nothing is found."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import kernel_cases
from tests.helpers.families import sample
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.origins.element_origins import Origins, find_origins

_SLOW = ("tensor_mxf8", "tensor_e4m3")  # alike those beside them


def _names() -> list[str]:
    """Return the first launch of each kernel; those without matrix instructions are in other files.

    A launch has the name of its kernel, and more behind a space: nothing is computed to collect the tests.
    """
    cases = {name.partition(" ")[0]: name for name in reversed(kernel_cases.NAMES)}
    kept = ("cooperative", "multicast", "pingpong", "stream_k", "rounded", "tensor")
    return [name for entry, name in cases.items() if entry.startswith(kept) and entry not in _SLOW]


def _origins(name: str) -> Origins:
    case = kernel_cases.case(name)
    assert case.entry == name.partition(" ")[0]
    kernel = load_text((kernel_cases.FOLDER / case.file).read_text(), case.file)[case.entry]
    inputs = {
        f"input {index}": index
        for index, value in enumerate(case.arguments)
        if isinstance(value, np.ndarray) and index not in case.expected
    }
    arguments = case.passed(list(case.arguments))
    return find_origins(kernel, case.grid, case.block, arguments, inputs, case.shared_bytes, case.cluster)


@pytest.mark.parametrize("name", sample(_names(), 2))
def test_nothing_is_found_in_a_right_kernel(name: str) -> None:
    """Tensor maps are traced as arrays are, and so is what goes through tensor memory."""
    origins = _origins(name)
    assert origins.findings == ()
    assert origins.operands
    assert not origins.dependences
