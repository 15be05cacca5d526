"""Write what a bench prints of a unit that keeps two bits too few: ``tools/example_unit.py SET.npz LOG``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from warpsim.isa.fragments import registers_of
from warpsim.sums.arithmetic.numerics import compute
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.diagnosis.units.unit_sample import slices
from warpsim.workbench.vectors.formats import read_vectors


def main(source: str, log: str) -> None:
    """Compute D with a narrower alignment, and list the registers that differ as the generated bench does."""
    vectors = read_vectors(source)
    rule = rule_for(vectors.instruction)
    assert rule.aligned is not None
    narrow = rule.realigned(fraction_bits=rule.aligned.fraction_bits - 2)
    d = vectors.d.copy()
    for part in slices(vectors, vectors.d, np.zeros_like(vectors.d)):
        d[part.cases] = registers_of(compute(part.operands, narrow), vectors.instruction, "d")
    wrong = np.argwhere(d != vectors.d)
    lines = [
        f"case {case}, lane {lane}, register d{register}: expected {vectors.d[case, lane, register]:08x}, "
        f"got {d[case, lane, register]:08x}\n"
        for case, lane, register in wrong
    ]
    cases = len({case for case, _, _ in wrong.tolist()})
    lines.append(
        f"FAILED: {len(wrong)} of {d.size} registers of D differ, in {cases} of {len(vectors)} cases\n"
    )
    Path(log).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
