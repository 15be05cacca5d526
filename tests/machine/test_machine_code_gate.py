"""Random guarded programs of every row that machine code can take: the bits of NumPy, lane by lane."""

from __future__ import annotations

from random import Random

import pytest

from tests.helpers.families import usual
from tests.helpers.guarded_programs import SHORT, Gate, traced_rows
from warpsim.machine.native.objects import available

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM of version 20 or newer here")

_PARTS = 4  # of the rows, a test each
_PROGRAMS = usual(63, 504)  # of a part
_UNCOMPILED = {"rcp", "sqrt", "div"}  # some of their forms


@pytest.mark.parametrize("part", range(_PARTS))
def test_random_guarded_programs(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole of it: python -m tools.fuzz --differential --only guards."""
    gate, wanted = Gate(), traced_rows()[part::_PARTS]
    gate.run(Random(f"guarded programs {part}"), _PROGRAMS, wanted)
    with capsys.disabled():
        print(f"\nguarded programs, part {part}: {gate}")  # noqa: T201
    assert not gate.wrong
    assert gate.without <= _UNCOMPILED
    assert gate.rows >= {row for row in wanted if row.opcode not in gate.without}
    assert gate.counts["programs"] > 0.95 * _PROGRAMS
    assert gate.counts["guarded"] > gate.counts["programs"]
    assert min(gate.counts["loads"], gate.counts["lanes"] / 1000) > _PROGRAMS / 20


def test_constants_are_computed_when_code_is_made() -> None:
    """Of a constant, what machine code leaves to integers of Python is done once: nothing is left to say."""
    random = Random("differential 2026-11-29 1731")  # rcp.rz of the largest f64, whose result is subnormal
    random.random()  # the choice of a subject
    rows = random.choices(traced_rows(), k=2) + random.choices(traced_rows(SHORT), k=6)
    gate = Gate()
    gate.compare(random, rows)
    assert "rcp" in {row.opcode for row in rows}
    assert not gate.wrong
