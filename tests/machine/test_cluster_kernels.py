"""The kernels of clusters with a synchronising statement left out: what a launch says of each."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.helpers import kernel_cases
from tests.helpers.kernel_cases import FOLDER
from tests.helpers.pipeline_changes import Array, deletions, outcome
from warpsim.programs.launch.launching import LaunchReport

SCHEDULES = ("program", 1)

# By statement, in the order of the text: its mnemonic, what becomes of the kernel without it, the message.
DELETED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "cluster_sum": (
        ("bar.sync", "reported", "race: ld.shared.u64 reads byte"),
        ("bar.sync", "reported", "race: ld.shared.u64 reads byte"),
        ("barrier.cluster.arrive", "undefined", "the lane has not arrived"),
        ("barrier.cluster.wait", "reported", "nothing says that this CTA has begun"),
        ("barrier.cluster.arrive", "undefined", "the lane has not arrived"),
        ("barrier.cluster.wait", "reported", "ends while CTA"),
    ),
    "cluster_histogram": (
        ("barrier.cluster.arrive", "undefined", "the lane has not arrived"),
        ("barrier.cluster.wait", "reported", "nothing says that this CTA has begun"),
        ("barrier.cluster.arrive", "undefined", "the lane has not arrived"),
        ("barrier.cluster.wait", "reported", "race: ld.shared.u32 reads byte"),
    ),
    "cluster_argmax": (
        ("mbarrier.init", "undefined", "no mbarrier has been initialised"),
        ("mbarrier.arrive.expect_tx", "deadlock", "no lane can continue"),
        ("fence.mbarrier_init", "reported", "whose initialisation at line"),
        ("barrier.cluster.arrive", "undefined", "the lane has not arrived"),
        ("bar.sync", "reported", "race: "),  # one of the two is atomic
        ("bar.sync", "reported", "race: "),  # the same
        ("barrier.cluster.wait", "reported", "whose initialisation at line"),
        ("bar.sync", "reported", "race: "),  # the same
        ("mbarrier.try_wait", "reported", ""),
    ),
}


@cache
def text() -> str:
    return (FOLDER / "cluster_reduction.ptx").read_text()


@cache
def without(entry: str) -> list[tuple[str, str]]:
    """The deletions in one kernel: mnemonic and text."""
    start = text().index(f".entry {entry}(")
    first, last = (text().count("\n", 0, place) for place in (start, text().find(".entry ", start + 1)))
    last = last if last > first else text().count("\n")
    found = [(*name.split(" without "), changed) for name, changed in deletions(text())]
    return [(mnemonic, changed) for line, mnemonic, changed in found if first < int(line) <= last]


def becomes(entry: str, changed: str, schedules: tuple[str | int, ...] = SCHEDULES) -> tuple[str, str]:
    case = kernel_cases.case(entry)
    ((index, expected),) = case.expected.items()

    def launch(module: Any, schedule: str | int) -> tuple[LaunchReport, Array]:
        given = [value.copy() if isinstance(value, np.ndarray) else value for value in case.arguments]
        options: dict[str, Any] = {"shared_bytes": case.shared_bytes, "cluster": case.cluster}
        report = module[entry](case.grid, case.block, given, schedule=schedule, checks="warn", **options)
        return report, given[index]

    return outcome(changed, launch, expected, schedules)


@pytest.mark.parametrize("entry", DELETED)
def test_intact_ones_give_no_alarm(entry: str) -> None:
    assert becomes(entry, text(), ("program", "earliest", "latest", 0, 1)) == ("missed", "")


@pytest.mark.parametrize("entry", DELETED)
def test_the_table_has_every_statement(entry: str) -> None:
    names = [mnemonic for mnemonic, _ in without(entry)]
    assert len(names) == len(DELETED[entry])
    assert all(name.startswith(row[0]) for name, row in zip(names, DELETED[entry], strict=True))


@pytest.mark.parametrize(
    ("entry", "place"), [(entry, place) for entry, rows in DELETED.items() for place in range(len(rows))]
)
def test_a_statement_is_missing(entry: str, place: int) -> None:
    _, word, message = DELETED[entry][place]
    found, said = becomes(entry, without(entry)[place][1])
    assert word in found.split()
    assert re.search(re.escape(message), said)
