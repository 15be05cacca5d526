"""Runs to report on, and the page's scripts in an engine of their own, for the tests of show/report."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from py_mini_racer import MiniRacer

import warpsim
from tests.helpers.nasty import catalogue, finite_catalogue, is_special, random_codes
from warpsim.base.errors import Location
from warpsim.isa.codes import matrix_of
from warpsim.isa.instruction import Instruction
from warpsim.programs.interactive.machines import Machine
from warpsim.show.report.document import ReportData, gather
from warpsim.show.report.page import bundle
from warpsim.workbench.traces.reading import Trace, read_trace
from warpsim.workbench.traces.running import Run, run_trace

TRACES = Path(__file__).parents[2] / "traces"
PATHS = sorted(TRACES.glob("*.ptx"))

_GLUE = """
function load(document, bytes) {
  const buffer = new Uint8Array(JSON.parse(bytes)).buffer;
  globalThis.shown = modules["model.js"].readReport(JSON.parse(document), buffer);
  return shown.length;
}
function unequal(index) {
  const instruction = shown[index], { m, n } = instruction.layout.shape, found = [];
  for (let part = 0; part < instruction.layout.products; part += 1)
    for (let row = 0; row < m; row += 1)
      for (let column = 0; column < n; column += 1)
        if (modules["explain.js"].computedCode(instruction, row, column, part)
            !== instruction.code("d", row, column, part)) found.push([part, row, column]);
  return JSON.stringify(found);
}
function words(index, operand) {
  return JSON.stringify(Array.from(shown[index].words[operand], String));
}
function expected(index) {
  const { expected, expectedWords } = shown[index];
  return JSON.stringify(expected && Array.from(expectedWords.d, String));
}
function explained(index, row, column, part) {
  return JSON.stringify(modules["explain.js"].explain(shown[index], row, column, part));
}
function lit(index, part, key) {
  const { lightsOf, subjectOf } = modules["links.js"];
  const lights = lightsOf(shown[index], part, subjectOf(key));
  return JSON.stringify([[...lights.elements], [...lights.words]]);
}
function described(index, part, key) {
  const pieces = modules["describe.js"].describe(shown[index], part, modules["links.js"].subjectOf(key));
  return JSON.stringify(pieces.map((piece) => piece.text).join(" "));
}
"""


class Scripts:
    """The modules of the page that need no browser, in V8."""

    def __init__(self) -> None:
        self._engine = MiniRacer()
        self._engine.eval(bundle("explain.js", "model.js", "links.js", "describe.js") + _GLUE)

    def close(self) -> None:
        """End the engine's threads, which would outlive the tests."""
        getattr(self._engine, "close", lambda: None)()  # mini-racer has it since 0.13

    def load(self, report: ReportData) -> None:
        """Read the data of a report, as the page does after unpacking it."""
        self._engine.call("load", json.dumps(report.document), json.dumps(list(report.pool.content)))

    def __call__(self, function: str, *arguments: Any) -> Any:
        """What one of the functions above returns."""
        return json.loads(self._engine.call(function, *arguments))


@cache
def example(name: str) -> Run:
    """The run of an example trace."""
    return run_trace(read_trace(TRACES / f"{name}.ptx"))


@cache
def data(name: str) -> ReportData:
    """The data of its report."""
    return gather(example(name))


def run_of(machine: Machine, text: str) -> Run:
    """The run of a PTX text on a machine whose registers are set."""
    trace = Trace(
        path="made.ptx", target=machine.target, version=None, statements=(), loads={}, end=Location("made", 1)
    )
    return Run(trace=trace, machine=machine, events=machine.run(text))


def statement(form: Instruction, selector: int = 0) -> str:
    """A statement of a warp-level form on registers called like its operands."""

    def vector(operand: str) -> str:
        count = form.registers[operand]
        return "{" + ", ".join(f"%{operand}{index}" for index in range(count)) + "}"

    metadata = f", %e0, {selector}" if form.sparse else ""
    scales = ", %scale_a0, {0, 0}, %scale_b0, {0, 0}" if form.scale else ""
    return f"{form.mnemonic} {', '.join(map(vector, 'dabc'))}{metadata}{scales};"


def nasty_run(form: Instruction, seed: int = 0) -> Run:
    """One warp-level form on codes from the catalogue: zeros, subnormals, ends, Inf and NaN in places."""
    random = np.random.default_rng(seed)
    warp = warpsim.Warp(form.target)
    for operand, count in form.registers.items():
        if operand == "d":
            words = np.zeros((32, count), f"u{form.register_bits // 8}")
        elif operand in "abc":
            words = warpsim.pack(form, operand, _nasty_codes(form, operand, random))
        else:  # metadata that every pattern takes; scales of any bits
            words = 0x44444444 if operand == "e" else random.integers(0, 1 << 32, (32, count), np.uint32)
        warp[f"%{operand}<{count}>"] = words
    return run_of(warp, statement(form))


def _nasty_codes(form: Instruction, operand: str, random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Any codes in rows 0 and 1 of A and columns 0 and 1 of B, tiny ones in 2 and 3, otherwise finite ones.

    Of C any in every third row, tiny ones and zeros in rows 2 and 3, which leave tiny sums.
    """
    element = form.format(operand)
    rows, columns = form.matrix_shape(operand)
    shape = (form.products, rows, columns) if form.products > 1 else (rows, columns)
    ordinary = random_codes(element, shape, random)
    finite = ~is_special(ordinary, element) & (random.random(shape) < 0.6)
    codes = np.where(finite, ordinary, random.choice(finite_catalogue(element), shape))
    anything = random.choice(catalogue(element), shape)
    tiny = random.integers(0, 4, shape).astype(codes.dtype) << codes.dtype.type(
        max(element.fraction_bits - 1, 0) + element.ignored_bits
    )
    along = np.arange(columns) if operand == "b" else np.arange(rows)[:, None]
    codes = np.where(along % 3 == 0 if operand == "c" else along < 2, anything, codes)
    return matrix_of(np.where((along == 2) | (along == 3), tiny, codes), element)
