"""Files that people bring together: contradictions, D in one column, logs alone, decimal metadata."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from tools.mistakes.case import F16
from tools.mistakes.dumps import log_sources, step_logs
from tools.mistakes.judging import Case, answered
from warpsim.base.errors import OperandError
from warpsim.workbench.diagnosis import diagnose_steps
from warpsim.workbench.diagnosis.contents.dump_contents import Operands
from warpsim.workbench.diagnosis.loops.step_logs import is_one_loop
from warpsim.workbench.diagnosis.units import diagnose_unit
from warpsim.workbench.inputs.register_text import words_from

FORM = warpsim.decode(F16[0], target=F16[1])


@pytest.mark.parametrize("case", log_sources.LIST, ids=lambda each: each.name)
def test_what_is_brought_is_read_or_asked_back(case: Case) -> None:
    found, _, text = answered(case)
    assert found == ("asked" if case.asked else "right" if case.right else "named"), text


def test_tiles_that_are_no_loop_stay_a_batch() -> None:
    """Each tile begins with a C of zero; as a loop only step 0 would be right."""
    made = step_logs.Run(np.random.default_rng(0), 3)
    d = np.stack(
        [
            warpsim.execute(FORM, a=a, b=b, c=np.zeros((32, 4), np.uint32))
            for a, b in zip(made.a, made.b, strict=True)
        ]
    )
    dumps = {"a": np.stack(made.a), "b": np.stack(made.b), "d": d}
    assert not is_one_loop(FORM, dumps)
    assert is_one_loop(FORM, dumps | {"d": np.stack(made.accumulators())})


def test_an_operand_that_nothing_has_is_missing() -> None:
    made = step_logs.Run(np.random.default_rng(0), 2)
    with pytest.raises(OperandError, match="b is missing: give its registers of every step, or its matrix"):
        diagnose_steps(Operands(FORM, {"A": made.A}), {"d": np.stack(made.accumulators())})


def test_logs_and_units_report_progress() -> None:
    made = step_logs.Run(np.random.default_rng(0), 3)
    made.load_b(1, lambda k, n: made.B[k, n])
    seen: list[tuple[int, int]] = []
    operands = Operands(FORM, {"A": made.A, "B": made.B})
    diagnose_steps(operands, {"d": np.stack(made.accumulators())}, watch=lambda *done: seen.append(done))
    assert [done for done, _ in seen[:3]] == [1, 2, 3]
    vectors = warpsim.generate_vectors(FORM, kind="random", count=2, seed=0)
    counts: list[int] = []
    diagnose_unit(vectors, vectors.d ^ 1, watch=lambda done, _: counts.append(done))
    assert counts == sorted(set(counts))
    assert len(counts) > 1


@pytest.mark.parametrize(("text", "word"), [("4294967295", 0xFFFFFFFF), ("-1", 0xFFFFFFFF), ("7", 7)])
def test_words_in_decimal(text: str, word: int) -> None:
    assert (words_from(text, 32, 1) == word).all()


@pytest.mark.parametrize(("text", "word"), [("12345678", 0x12345678), ("00000010", 16)])
def test_words_of_full_width_stay_hexadecimal(text: str, word: int) -> None:
    assert (words_from(text, 32, 1) == word).all()
