"""Logs of a loop along k: the first wrong step and what it did, from dumps of operands and accumulators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tools.mistakes.case import F16
from tools.mistakes.dumps import step_logs
from tools.mistakes.judging import Case, answered
from warpsim.show.views.held_operands import step_document, step_lines
from warpsim.workbench.diagnosis import diagnose_steps
from warpsim.workbench.diagnosis.contents.dump_contents import Operands
from warpsim.workbench.inputs.decimals import printed_of

FORM = warpsim.decode(F16[0], target=F16[1])


@pytest.mark.parametrize("mistake", step_logs.LIST, ids=lambda each: each.name)
def test_logs_of_other_people_are_named(mistake: Case) -> None:
    found, _, text = answered(mistake)
    assert found == ("asked" if mistake.asked else "named"), text


def run(seed: int = 0) -> Any:
    return step_logs.Run(np.random.default_rng(seed), 6)


def found(made: Any, dumps: dict[str, Any], **more: Any) -> Any:
    return diagnose_steps(Operands(FORM, {"A": made.A, "B": made.B} | more), dumps)


def test_accumulators_before_each_step_are_told_by_their_beginning() -> None:
    made = run()
    d = made.accumulators()
    log = found(made, {"c": np.stack([np.zeros_like(d[0]), *d[:-1]])})
    assert log.as_expected
    assert "before each step" in log.note


def test_a_log_that_begins_with_a_matrix_c() -> None:
    made = run()
    C = np.arange(128).reshape(16, 8).astype(np.float32)
    c = step_logs.acc_of(C).view(np.float32)
    d = np.stack([(each.view(np.float32) + c).view(np.uint32) for each in made.accumulators()])
    assert found(made, {"d": d}, C=C).as_expected
    assert found(made, {"d": d}).wrong == (0,)


def test_two_steps_are_wrong_by_themselves() -> None:
    made = run()
    made.load_a(1, lambda r, c: made.A[r, c])
    made.load_b(4, lambda k, n: made.B[16 + k, n])
    log = found(made, {"d": np.stack(made.accumulators())})
    assert log.wrong == (1, 4)
    assert [cause.name for cause in log.causes] == ["it read A of step 0"]
    assert "steps 1, 4 are wrong by themselves" in "\n".join(step_lines(log))


@pytest.mark.parametrize(
    ("spoiled", "name"),
    [
        (lambda d: [*d[:3], d[2], *(x for x in d[4:])], "it changed nothing: D is its C"),
        (lambda d: d, ""),
    ],
)
def test_a_step_that_was_not_executed(spoiled: Any, name: str) -> None:
    made = run()
    log = found(made, {"d": np.stack(spoiled(made.accumulators()))})
    assert [cause.name for cause in log.causes] == [name][: bool(name)]


def test_operands_of_the_log_are_what_was_read() -> None:
    """A is wrong in step 2; D is right for it."""
    made = run()
    made.load_a(2, lambda r, c: made.A[r, c])
    log = found(made, {"a": np.stack(made.a), "d": np.stack(made.accumulators())})
    assert log.as_expected
    assert "all 6 steps for the a that were loaded" in "\n".join(step_lines(log))


def test_a_mistake_within_a_step_is_one_of_the_library() -> None:
    made = run()
    made.load_a(3, lambda r, c: made.A[r % 8 + c // 8 * 8, 48 + c % 8 + r // 8 * 8])
    log = found(made, {"d": np.stack(made.accumulators())})
    assert "registers 1 and 2 exchanged" in "\n".join(step_lines(log))
    assert step_document(log)["diagnosis"]["matches"]


def test_accumulators_with_three_decimals() -> None:
    """The exact chain is compared as printed: rounding in the log makes no step wrong."""
    made = run()
    made.load_b(4, lambda k, n: made.B[16 + k, n])
    values = np.round(np.stack(made.accumulators()).view(np.float32), 3)
    printed = printed_of([f"{value:.3f}" for value in values.reshape(-1).tolist()])
    operands = Operands(FORM, {"A": made.A, "B": made.B})
    log = diagnose_steps(operands, {"d": values.view(np.uint32)}, printed)
    assert log.wrong == (4,)
    assert [cause.name for cause in log.causes] == ["it read B of step 1"]


def test_another_number_of_steps_is_refused() -> None:
    made = run()
    with pytest.raises(warpsim.WarpsimError, match="the log has D of 5 steps, but B has 6 along k"):
        found(made, {"d": np.stack(made.accumulators()[:5])})
