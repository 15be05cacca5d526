"""An RTL engineer with the log of a simulation: results of a unit beside the vector set that drove it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import warpsim
from tools.mistakes.case import F16
from tools.mistakes.judging import Brought
from warpsim.isa.fragments import registers_of
from warpsim.sums.arithmetic.numerics import compute
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.diagnosis.units.unit_sample import slices
from warpsim.workbench.generation.generate import generate_vectors

from .listing import Listing

LIST = Listing()
F16_F16 = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_80"
CASES = 32
Cell = Callable[[int, int, int, int], str]  # case, lane, register, word


@cache
def vectors_of(form: tuple[str, str]) -> Any:
    """Return the set that the bench was driven with."""
    return generate_vectors(warpsim.decode(form[0], target=form[1]), count=CASES)


def log(d: Any, cell: Cell, order: Any = None) -> str:
    """Return a line for each register, in the order of the cases that is given."""
    cases = range(len(d)) if order is None else order
    return "\n".join(
        cell(c, i, r, int(d[c, i, r])) for c in cases for i in range(32) for r in range(d.shape[2])
    )


def unit(form: tuple[str, str], **numbers: Any) -> Any:
    """Return D of a unit whose alignment has other numbers."""
    vectors = vectors_of(form)
    d = vectors.d.copy()
    rule = rule_for(vectors.instruction).realigned(**numbers)
    for part in slices(vectors, vectors.d, np.zeros_like(vectors.d)):
        d[part.cases] = registers_of(compute(part.operands, rule), vectors.instruction, "d")
    return d


def brought(text: str, form: tuple[str, str] = F16, name: str = "unit.log") -> Brought:
    """Return the set and the log."""
    return Brought(form=form, vectors=vectors_of(form), texts={name: text}, words=(f"d={name}",))


@LIST.mistake("$display with time, cases shuffled: subnormal results become zero", r"subnormal.*zero|flush")
def _(rng: Any) -> Brought:
    d = vectors_of(F16).d.copy()
    d = np.where((d & 0x7F800000) == 0, d & np.uint32(0x80000000), d)
    cell: Cell = lambda c, i, r, w: f"{100 * c + 5} ns: vec {c} lane {i} reg {r} = {w:08x}"  # noqa: E731
    return brought(log(d, cell, rng.permutation(CASES)))


@LIST.right("$writememh with addresses and comments, all right", r"as expected")
def _(rng: Any) -> Brought:
    d = vectors_of(F16).d
    text = [
        "// memory data file (do not edit the following line - required for mem load use)",
        "// format=hex",
    ]
    for at, word in enumerate(d.reshape(-1).tolist()):
        if at % 64 == 0:
            text.append(f"@{at:08x}")
        text.append(f"{word:08x}")
    return brought("\n".join(text), name="unit.mem")


@LIST.mistake(
    "CSV, a row for a thread: testcase,thread,d0..d3; one fraction bit fewer", r"2[34] fraction bits"
)
def _(rng: Any) -> Brought:
    rule = rule_for(vectors_of(F16).instruction)
    assert rule.aligned is not None
    d = unit(F16, fraction_bits=rule.aligned.fraction_bits - 1)
    rows = ["testcase,thread,d0,d1,d2,d3"]
    rows += [
        f"{c},{i}," + ",".join(f"{w:08x}" for w in d[c, i].tolist()) for c in range(CASES) for i in range(32)
    ]
    return brought("\n".join(rows), name="unit.csv")


@LIST.mistake("the log counts cases from 1, the unit is right", r"from 1|one-based|1 to 32", asked=True)
def _(rng: Any) -> Brought:
    cell: Cell = lambda c, i, r, w: f"case {c + 1}, lane {i}, register d{r}: got {w:08x}"  # noqa: E731
    return brought(log(vectors_of(F16).d, cell))


@LIST.mistake("binary words 32'b0101 of f16: three fraction bits fewer", r"2\d fraction bits")
def _(rng: Any) -> Brought:
    rule = rule_for(vectors_of(F16_F16).instruction)
    assert rule.aligned is not None
    d = unit(F16_F16, fraction_bits=rule.aligned.fraction_bits - 3)
    cell: Cell = lambda c, i, r, w: f"# case={c} lane={i} d{r}=32'b{w:032b}"  # noqa: E731
    return brought(log(d, cell), F16_F16)


@LIST.mistake("lanes 16 to 31 of d2 and d3 are x", r"lanes? 16|unknown|not driven|\bx", asked=True)
def _(rng: Any) -> Brought:
    def cell(c: int, i: int, r: int, w: int) -> str:
        return f"case {c} lane {i} d{r} = " + ("xxxxxxxx" if i >= 16 and r >= 2 else f"{w:08x}")

    return brought(log(vectors_of(F16).d, cell))


@LIST.mistake("two lines of one register with other values", r":\d+:1: error: .*line \d+", asked=True)
def _(rng: Any) -> Brought:
    cell: Cell = lambda c, i, r, w: f"case {c} lane {i} d{r} = {w:08x}"  # noqa: E731
    return brought(log(vectors_of(F16).d, cell) + "\ncase 3 lane 7 d1 = 0badf00d")


@LIST.right("the simulation ended within case 20, and was right so far", r"(19|20) of 32")
def _(rng: Any) -> Brought:
    cell: Cell = lambda c, i, r, w: f"case {c} lane {i} d{r} = {w:08x}"  # noqa: E731
    return brought("\n".join(log(vectors_of(F16).d, cell).splitlines()[: 20 * 128 + 50]))


@LIST.mistake("NaN has its sign set: lines of failures only", r"NaN is written as 0xffffffff|NaN.*ffffffff")
def _(rng: Any) -> Brought:
    d = vectors_of(F16).d
    nan = (d & 0x7FFFFFFF) > 0x7F800000
    text = [
        f"ERROR case {c} lane {i} reg d{r}: expected {int(d[c, i, r]):08x} got ffffffff"
        for c, i, r in np.argwhere(nan).tolist()
    ]
    return brought("\n".join([*text, f"{len(text)} errors"]))


@LIST.mistake(
    "results come a case late: case n has D of case n - 1", r"(case|result).*(late|before|previous|n - 1)"
)
def _(rng: Any) -> Brought:
    d = np.roll(vectors_of(F16).d, 1, axis=0)
    d[0] = 0
    cell: Cell = lambda c, i, r, w: f"case {c} lane {i} d{r} = {w:08x}"  # noqa: E731
    return brought(log(d, cell))
