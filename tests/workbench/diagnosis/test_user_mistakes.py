"""Mistakes of users, written down before diff was widened: a sample of tools/mistakes/users is still named.

All of them, with the seconds that they take: ``python -m tools.mistakes --only users``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.families import sample
from tools.mistakes.judging import Case, answered
from tools.mistakes.users import instruction, known, loops, printouts, scaled, warpgroups
from warpsim.workbench.diagnosis.search.remarks import ResultComparison, remarks

SAMPLE = (
    *instruction.LIST[:40:5],
    *loops.LIST[2:20:5],
    loops.LIST[22],
    *printouts.LIST[:17],
    *known.LIST[1:24:6],
    *warpgroups.LIST[18:30:3],
    *scaled.LIST[2:12:3],
)
AMBIGUOUS = (  # other causes come near, or give the same sums
    "every step reads B of the next",
    "b0 and b1 exchanged in every step",
    "imm-scale-b is -1",
    "both warpgroups read the first A",
    "B of the stage before",
    "the byte id of B runs backwards",
    "scales of A of the other tile of 32 rows",
    "scales of A of lanes 16-31 are zero",
    "e: fields of eight bits, not four",
)
ALL = [*instruction.LIST, *known.LIST, *loops.LIST, *warpgroups.LIST, *scaled.LIST, *printouts.LIST]


@pytest.mark.parametrize(
    "mistake", [*sample(SAMPLE, 2), *(one for one in ALL if one.name in AMBIGUOUS)], ids=lambda one: one.name
)
def test_a_sample_is_named(mistake: Case) -> None:
    found, _, text = answered(mistake)
    assert found == "named", text


def test_there_are_two_hundred() -> None:
    assert len(ALL) >= 200


# --- what D itself tells -------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
A, B = RNG.integers(-8, 8, (16, 16)), RNG.integers(-8, 8, (16, 8))
C = RNG.integers(-64, 64, (16, 8))
D = A @ B + C


def seen(actual: Any, **more: Any) -> tuple[str, ...]:
    sums = {"column_sums": B.sum(axis=0), "row_sums": A.sum(axis=1)}
    given = {"expected": D, "actual": actual, "c": C, **sums} | more
    values = {name: np.asarray(x, np.float64) for name, x in given.items()}
    return tuple(map(str, remarks(ResultComparison(**values))))


@pytest.mark.parametrize(
    ("actual", "text"),
    [
        (D * 4, "D is 4 times what was expected"),
        (D / 8, "D is 0.125 times what was expected"),
        (np.maximum(D, 0), "D is the expected result with negative values set to zero (ReLU)"),
        (A @ B, "C was not added"),
        (A @ B + 3 * C, "D - A·B is C times 3 (beta)"),
        (A @ B + 7, "D - A·B is 7 everywhere: not what was passed, as if C were 7"),
        (D + 5, "D is 5 more than expected everywhere: a bias"),
        (D + np.arange(8), "D differs from the expected by the same in each column: a bias per column"),
        (D + np.arange(16)[:, None], "D differs from the expected by the same in each row: a bias per row"),
        ((A + 3) @ B + C, "A: zero point: every element of A is 3 more than was passed"),
        (A @ (B - 2) + C, "B: zero point: every element of B is -2 more than was passed"),
        (
            D[:, ::-1],
            "D's columns are permuted: column j holds what belongs in column (7, 6, 5, 4",
        ),
    ],
)
def test_remarks(actual: Any, text: str) -> None:
    assert any(one.startswith(text) for one in seen(actual)), seen(actual)


def test_nothing_is_said_of_noise() -> None:
    noise = RNG.standard_normal((16, 8)) * 1e3
    assert [one for one in seen(noise) if "nothing to do with C" not in one] == []
    assert seen(D) == ()
    assert seen(np.where(D > 0, np.nan, D)) == ()
