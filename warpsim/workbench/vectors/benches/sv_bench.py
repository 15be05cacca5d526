"""The device under test of a SystemVerilog bench, to be filled in, and the module that compares its D.

Restricted to the SystemVerilog of Icarus Verilog 11. The bench holds the inputs of a case, raises ``start``
for one clock, waits for ``done`` and compares D, all lanes and words (registers, or cells of tensor memory),
with the words of the ``$readmemh`` file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....isa.operand_places.placements import ScaleSelectors
from ....sums.execution.inputs import TENSOR_DEFAULTS, WgmmaSettings
from ..sets import VectorSet, immediates_of
from .sv_layout import width, word_name

_DEFAULTS = {
    "selector": 0,
    **ScaleSelectors._field_defaults,
    **WgmmaSettings._field_defaults,
    **TENSOR_DEFAULTS,
}
_MASKS = {
    "disable_output_lane": "lanes of D that stay as they are",
    "zero_column_mask": "columns of B that are zero",
}


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names in a bench: its file of vectors, the command that runs it, its packages and its modules."""

    vectors_file: str
    command: str
    vectors: str
    layout: str
    dut: str
    bench: str


@dataclass(frozen=True, kw_only=True)
class Port:
    """An input of the device under test: its bits, its meaning, and the SystemVerilog that loads a case."""

    name: str
    bits: int
    what: str
    load: tuple[str, ...]
    signed: bool = False

    @property
    def type(self) -> str:
        """The type, in SystemVerilog."""
        return f"logic {'signed ' if self.signed else ''}[{self.bits - 1}:0]"


def ports(vectors: VectorSet) -> Iterator[Port]:
    """Yield the inputs of the device: words of all lanes, descriptors, shared memory, masks, immediates."""
    form = vectors.instruction
    words = f"{word_name(form)}s of all lanes"
    for name, array in vectors.arrays().items():
        if name in form.registers and name != "d":
            yield Port(name=name, bits=width(form, name), what=words, load=_word_lines(name))
        elif name == "shared":
            yield Port(name=name, bits=8 * array.shape[1], what="byte i at bit 8 * i", load=_word_lines(name))
        elif name.endswith("_desc"):
            yield Port(name=name, bits=64, what="matrix descriptor", load=_word_lines(name))
        elif name in _MASKS:
            bits = 8 * array[0].nbytes
            yield Port(name=name, bits=bits, what=_MASKS[name], load=_word_lines(name))
    yield from (_immediate(vectors, name, legal) for name, legal in _immediates(vectors))


def _immediates(vectors: VectorSet) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the immediates of the form, without an imm-scale or imm-trans that has a single legal value."""
    for name, legal in immediates_of(vectors.instruction).items():
        if len(legal) > 1 or not name.startswith("imm_"):
            yield name, legal


def _immediate(vectors: VectorSet, name: str, legal: Sequence[int]) -> Port:
    """Return a port of 8 bits; an immediate that the set does not have gets the
    default of warpsim.execute.
    """
    source = f"memory[at + {name.upper()}_OFFSET][7:0]"
    if name not in vectors.varying():
        source = str(vectors.constants().get(name, _DEFAULTS[name]))
    return Port(
        name=name,
        bits=8,
        what=f"immediate: {', '.join(map(str, legal))}",
        load=(f"{name} = {source};",),
        signed=True,
    )


def _word_lines(name: str) -> tuple[str, ...]:
    """Return words in order, the first lowest; assembled in a temporary, as every write to a port wakes the
    device.
    """
    capital = name.upper()
    return (
        f"for (int word = 0; word < {capital}_WORDS; word++)",
        f"  next_{name}[32 * word +: 32] = memory[at + {capital}_OFFSET + word];",
        f"{name} = next_{name};",
    )


# --- the device under test -------------------------------------------------------------------------


def dut_lines(names: Names, vectors: VectorSet) -> Iterator[str]:
    """Yield a module with the device's ports, whose D is C, or zero where D has another type."""
    form = vectors.instruction
    yield f"// {form.mnemonic} on {form.target}:"
    yield "// the device under test, to be filled in."
    yield "//"
    yield "// start is 1 for one clock; the inputs stay as they are until done is 1, when d is compared."
    yield f"// Package {names.layout} has the places of all elements."
    yield ""
    yield f"module {names.dut} ("
    yield "    input  logic clock,"
    yield "    input  logic start,"
    for port in ports(vectors):
        yield f"    input  {port.type} {port.name},  // {port.what}"
    yield "    output logic done,"
    yield f"    output logic [{width(form, 'd') - 1}:0] d"
    yield ");"
    yield f"  import {names.layout}::*;"
    yield ""
    yield from _element(vectors)
    yield ""
    yield from _product(vectors)
    yield from _DUT_BODY.splitlines()


def _element(vectors: VectorSet) -> Iterator[str]:
    form = vectors.instruction
    returned = "c[c_place(row, column) +: C_BITS]" if "c" in vectors.registers and form.c == form.d else "'0"
    yield "  // The code of D[row, column], to be replaced."
    yield "  function automatic d_code_t element(input int row, input int column);"
    yield f"    element = {returned};"
    yield "  endfunction"


def _product(vectors: VectorSet) -> Iterator[str]:
    """Yield the function that places all elements; in tensor memory D lies over C, a cell an element."""
    form, word = vectors.instruction, word_name(vectors.instruction)
    yield f"  function automatic d_{word}s_t product();"
    place, value, indent = "d_place(row, column) +: D_BITS", "element(row, column)", 8
    if form.descriptor is not None:
        yield "    product = c;" if "c" in vectors.registers else "    product = '0;"
        place, value = "d_place(row, column) +: CELL_BITS", "32'(element(row, column))"
    yield "    for (int row = 0; row < D_ROWS; row++)"
    yield "      for (int column = 0; column < D_COLUMNS; column++)"
    if "disable_output_lane" in vectors.masks:
        yield "        if (!disable_output_lane[d_lane(row, column)])"
        indent = 10
    yield " " * indent + f"product[{place}] = {value};"
    yield "  endfunction"


_DUT_BODY = """
  always_ff @(posedge clock) begin
    done <= start;
    if (start) d <= product();
  end
endmodule"""


# --- the bench -------------------------------------------------------------------------------------


def bench_lines(names: Names, vectors: VectorSet) -> Iterator[str]:
    """Yield the module that loads the cases, runs the device on each, and compares."""
    form, inputs = vectors.instruction, [*ports(vectors)]
    word = word_name(form)
    yield f"// Holds every case of {names.vectors_file} against a device under test:"
    yield f"//   {names.command}"
    yield from _OPTIONS.replace("@WORD@", word).splitlines()
    yield ""
    yield "`ifndef WARPSIM_DUT"
    yield f"`define WARPSIM_DUT {names.dut}"
    yield "`endif"
    yield ""
    yield f"module {names.bench};"
    yield f"  import {names.vectors}::*;"
    listed = "column %0d" if word == "cell" else "register d%0d"
    yield f"  localparam int WORDS = {form.held('d').words};  // {word}s of D in a lane"
    yield f"  localparam int WORD_BITS = {form.register_bits};"
    yield f"  localparam int COMPARED_BITS = {form.d.bits if word == 'cell' else form.register_bits};"
    yield from _wires(inputs)
    yield from _loading(inputs)
    body = _BENCH_BODY.replace("@FILE@", names.vectors_file)
    yield from body.replace("@LISTED@", listed).replace("@WORD@", word).splitlines()


def _wires(inputs: Sequence[Port]) -> Iterator[str]:
    """Yield the memory of words, the device's inputs and D, and the device."""
    yield "  localparam int LANE_BITS = WORDS * WORD_BITS;"
    yield ""
    yield "  logic [31:0] memory [0:CASES * CASE_WORDS - 1];"
    yield "  logic clock = 0, start = 0, done;"
    for port in inputs:
        aside = f", next_{port.name}" if len(port.load) > 1 else ""
        yield f"  {port.type} {port.name}{aside};"
    yield "  logic [LANES * LANE_BITS - 1:0] d, expected;"
    yield ""
    yield "  `WARPSIM_DUT dut ("
    yield "      .clock(clock), .start(start), .done(done), .d(d),"
    yield "      " + ", ".join(f".{port.name}({port.name})" for port in inputs)
    yield "  );"
    yield ""
    yield "  always #5 clock = !clock;"


def _loading(inputs: Sequence[Port]) -> Iterator[str]:
    """Yield the task that loads a case."""
    yield ""
    yield "  // The inputs and the D of a case, from its words."
    yield "  task load(input int which);"
    yield "    int at;"
    yield "    at = which * CASE_WORDS;"
    for port in inputs:
        yield from (f"    {line}" for line in port.load)
    yield "    for (int word = 0; word < D_WORDS; word++)"
    yield "      expected[32 * word +: 32] = memory[at + D_OFFSET + word];"
    yield "  endtask"


_OPTIONS = """\
// +vectors=FILE   where the vectors are, if not in the folder that this runs in
// +show=N         how many @WORD@s that differ are listed; 20 if not given
// +timeout=N      clocks that a case may take; 1000 if not given
// -DWARPSIM_DUT=M tests module M"""

_BENCH_BODY = """
  int show, timeout, missing, waited, which, wrong, wrong_before, wrong_cases;
  logic stuck;
  logic [LANE_BITS-1:0] lane_expected, lane_got;
  string file;

  // Counts and lists the @WORD@s of D that differ; an unknown bit differs, too. Of a cell that holds fewer
  // bits, the others are undefined and not compared.
  task compare;
    if (d !== expected) begin
      wrong_before = wrong;
      for (int lane = 0; lane < LANES; lane++) begin
        lane_expected = expected[lane * LANE_BITS +: LANE_BITS];
        lane_got = d[lane * LANE_BITS +: LANE_BITS];
        if (lane_got !== lane_expected)
          for (int r = 0; r < WORDS; r++)
            if (lane_got[r * WORD_BITS +: COMPARED_BITS]
                !== lane_expected[r * WORD_BITS +: COMPARED_BITS]) begin
              wrong = wrong + 1;
              if (wrong <= show)
                $display("case %0d, lane %0d, @LISTED@: expected %h, got %h", which, lane, r,
                         lane_expected[r * WORD_BITS +: WORD_BITS],
                         lane_got[r * WORD_BITS +: WORD_BITS]);
            end
      end
      if (wrong != wrong_before) wrong_cases = wrong_cases + 1;
    end
  endtask

  // Runs the cases in order, until the device does not answer.
  task run;
    which = 0;
    while (which < CASES && !stuck) begin
      @(negedge clock);
      load(which);
      start = 1;
      waited = 1;
      @(negedge clock);
      while (done !== 1 && waited < timeout) begin
        start = 0;
        waited = waited + 1;
        @(negedge clock);
      end
      stuck = done !== 1;
      if (!stuck) begin
        compare;
        which = which + 1;
      end
      start = 0;
    end
  endtask

  task report;
    if (wrong > show) $display("and %0d more", wrong - show);
    if (stuck) $display("case %0d: not done within %0d clocks", which, timeout);
    if (wrong == 0 && !stuck) begin
      $display("passed: %0d cases, %0d @WORD@s of D as expected", CASES, CASES * LANES * WORDS);
      $finish(0);
    end else begin
      $display("FAILED: %0d of %0d @WORD@s of D differ, in %0d of %0d cases", wrong,
               which * LANES * WORDS, wrong_cases, which);
      $fatal(1, "D is not as expected");
    end
  endtask

  initial begin
    if (!$value$plusargs("vectors=%s", file)) file = "@FILE@";
    if (!$value$plusargs("show=%d", show)) show = 20;
    if (!$value$plusargs("timeout=%d", timeout)) timeout = 1000;
    missing = 0;
    wrong = 0;
    wrong_cases = 0;
    stuck = 0;
    $readmemh(file, memory);
    for (int word = 0; word < CASES * CASE_WORDS; word++)
      if ((^memory[word]) === 1'bx) missing = missing + 1;
    if (missing != 0) $fatal(1, "%0s: %0d of %0d words are missing", file, missing, CASES * CASE_WORDS);
    else begin
      run;
      report;
    end
  end
endmodule"""
