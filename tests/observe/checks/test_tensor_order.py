"""Order of accesses to tensor memory: what is found, and what is not an error.

More is in test_pipeline_changes.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.helpers.kernel_cases import FOLDER, case
from warpsim.programs.launch.launching import LaunchReport, load_text

TEXT = (FOLDER / "tensor_pipelines.ptx").read_text()


def launched(text: str, name: str, **options: Any) -> tuple[LaunchReport, bool]:
    """The report of a kernel's launch, and whether it leaves the expected bits."""
    one = case(name)
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in one.arguments]
    options |= {"shared_bytes": one.shared_bytes, "checks": "warn"}
    report = load_text(text)[name](one.grid, one.block, one.passed(given), cluster=one.cluster, **options)
    return report, all(given[place].tobytes() == d.tobytes() for place, d in one.expected.items())


@pytest.mark.parametrize("name", ["tensor_attention", "tensor_in_turn", "tensor_pair"])
def test_a_missing_fence_is_no_error(name: str) -> None:
    text, count = re.subn(r"tcgen05\.fence::\w+;", "", TEXT)
    assert count > 10
    report, same = launched(text, name, schedule=7)
    assert report.hazards == ()
    assert same


def test_a_copy_behind_the_product_that_reads_its_cells_is_a_note() -> None:
    text = (FOLDER / "tensor_core.ptx").read_text()
    report, same = launched(text, "tensor_mxf8")
    assert {(one.kind, one.severity) for one in report.hazards} == {("issue order", "note")}
    assert "the manual does not list this order of issue" in report.hazards[0].message
    assert same


def test_two_stores_of_a_warp_need_a_wait_between() -> None:
    statement = re.search(r"\ttcgen05\.st\.[^;]*;", TEXT)
    assert statement is not None
    text = TEXT.replace(statement[0], f"{statement[0]} {statement[0].strip()}", 1)
    report, _ = launched(text, "tensor_attention")
    found = next(one for one in report.hazards if one.severity == "error")
    assert found.kind == "overwritten early"
    assert "may still write: warp 0 has not waited for it" in found.message
    assert found.fix.startswith("put tcgen05.wait::st.sync.aligned behind line")


def test_a_tile_that_was_never_written_is_a_warning() -> None:
    start = TEXT.index("tensor_stored(")
    statement = re.compile(r"\tst\.shared\.v4\.u32[^;]*;").search(TEXT, start)
    assert statement is not None
    text = TEXT[: statement.start()] + TEXT[statement.end() :]
    report, _ = launched(text, "tensor_stored")
    found = report.hazards[0]
    assert (found.kind, found.severity) == ("uninitialised", "warning")
    assert found.message.startswith("tcgen05.mma.cta_group::1.kind::f16 reads")
