"""Run the unit and its faulty versions under Verilator with the scoreboard that ``warpsim model`` writes.

    python -m tools.rtl.scoreboard [--unit N] [--cases N] [--keep FOLDER]

The written folder checks whole instructions: the unit is its dot product, and shows products, the largest
exponent, aligned terms, sums and results of each clock. For each fault: wrong elements of D, the first
intermediate that differs, and the rewritten step that gives every output, if there is such a step. Needs
Verilator 5 (Debian's), and no cocotb. Exit code: 0, or 1 where a fault is not caught or the unit is wrong.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from warpsim.workbench.models.c_model import CModel
from warpsim.workbench.models.model_files import cases_of, files_of, write_model

from .configuration import Configuration, standard
from .faults import FAULTS, Fault
from .simulation import faulty_text, sources

_PLACES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))  # of the stored elements of a chunk, in turn


class Verdict(NamedTuple):
    """What the scoreboard says of a unit."""

    wrong: int
    intermediate: str
    named: str


def dot_unit(configuration: Configuration, suffixes: Sequence[str]) -> str:
    """Return golden_dot_unit: one of several units, that of +fault=N."""
    return "\n".join(_lines(configuration, suffixes)) + "\n"


def _lines(configuration: Configuration, suffixes: Sequence[str]) -> Iterator[str]:
    form, length, widths = configuration.instruction, configuration.length, configuration.widths
    parameters = ", ".join(f".{name}({value})" for name, value in configuration.parameters.items())
    yield "module golden_dot_unit"
    yield "  import golden_pkg::*;"
    yield "(\n  input bit clock, input bit start, input a_codes_t a, input b_codes_t b, input c_codes_t c,"
    yield "  output bit done, output code_t d, output trace_t seen, output trace_t shown\n);"
    yield "  int fault, clocks = 0;"
    yield "  bit busy = 0;"
    yield '  initial if (!$value$plusargs("fault=%d", fault)) fault = 0;'
    for name, bits in widths.items():
        yield f"  bit [{bits - 1}:0] {name}_port;"
    yield f"  wire [{widths['c'] - 1}:0] results [0:{len(suffixes) - 1}];"
    yield f"  trace_t shows [0:{len(suffixes) - 1}], traces [0:{len(suffixes) - 1}];"
    for place, suffix in enumerate(suffixes):
        ports = ", ".join(f".{name}(fault == {place} ? {name}_port : '0)" for name in widths)
        yield f"  tensor_dot{suffix} #({parameters}) unit{place} ("
        yield f"      .clock(clock), .first(clocks == 0), {ports}, .d(results[{place}]));"
        yield from (f"  {line}" for line in _intermediates(configuration, place))
    yield "  always_comb begin"
    yield "    a_port = '0; b_port = '0; metadata_port = '0;"
    yield f"    c_port = c[{widths['c'] - 1}:0];"
    yield f"    for (int i = 0; i < {length}; i++) begin"
    yield f"      a_port[i*{form.a.bits}+:{form.a.bits}] = a[32*(clocks*{length}+i)+:{form.a.bits}];"
    if not form.sparse:
        yield f"      b_port[i*{form.b.bits}+:{form.b.bits}] = b[32*(clocks*{length}+i)+:{form.b.bits}];"
    yield "    end"
    for stored in range(length if form.sparse else 0):
        chunk = stored // 2
        place = 4 * chunk + _PLACES[chunk % len(_PLACES)][stored % 2]
        source = f"b[32*(clocks*{length}+{stored})+:{form.b.bits}]"
        yield f"    b_port[{place * form.b.bits}+:{form.b.bits}] = {source};"
        yield f"    metadata_port[{2 * stored}+:2] = {place % 4};"
    yield "  end"
    yield "  always @(posedge clock) begin"
    yield "    done <= 0;"
    yield "    if (start) begin busy <= 1; clocks <= 0; seen <= '0; shown <= '0; end"
    yield "    if (busy) begin"
    yield "      seen <= seen | traces[fault];"
    yield "      shown <= shown | shows[fault];"
    yield "      clocks <= clocks + 1;"
    yield f"      if (clocks == {configuration.clocks - 1}) begin busy <= 0; done <= 1; end"
    yield "    end"
    yield "  end"
    yield "  assign d = code_t'(results[fault]);"
    yield "endmodule"


def _intermediates(configuration: Configuration, place: int) -> Iterator[str]:
    """Yield what a clock shows of a unit: nothing where Inf or NaN takes part, of which no sum means much."""
    length, sum_of = configuration.length, f"unit{place}.fused_dot"
    yield "always_comb begin"
    yield f"  traces[{place}] = '0; shows[{place}] = '0;"
    yield f"  if (!(|{sum_of}.nan) && !(|{sum_of}.infinite)) case (clocks)"
    for clock in range(configuration.clocks):
        yield f"    {clock}: begin"
        values = {
            f"top{clock}": f"64'(signed'({sum_of}.maximum))",
            f"total{clock}": f"64'(signed'({sum_of}.sum))",
            f"d{clock}": f"64'({sum_of}.d)",
        }
        for i in range(length + 1):
            kept = f"64'({sum_of}.aligned[{i}])"
            values[f"kept{clock}[{i}]"] = f"{sum_of}.negative[{i}] ? -{kept} : {kept}"
        for i in range(length):
            product = f"64'({sum_of}.g_product[{i}].product)"
            at = clock * length + i
            values[f"P_value[{at}]"] = f"{sum_of}.negative[{i}] ? -{product} : {product}"
            values[f"P_exponent[{at}]"] = f"64'(signed'({sum_of}.exponent[{i}]))"
        for name, value in values.items():
            yield f"      traces[{place}].{name} = {value}; shows[{place}].{name} = '1;"
        yield "    end"
    yield "    default: ;"
    yield "  endcase"
    yield "end"


def build(configuration: Configuration, faults: Sequence[Fault], folder: Path) -> None:
    """Write the folder of the model with the unit and faulty ones in it, and build the bench."""
    model = CModel("golden", configuration.instruction, configuration.rule)
    files = files_of(model, cases_of(model))
    suffixes = ["", *(f"_fault{number}" for number in range(1, len(faults) + 1))]
    texts = ["\n".join(sources().values())]
    texts += [faulty_text(fault, suffix) for fault, suffix in zip(faults, suffixes[1:], strict=True)]
    rest = files["golden_unit.sv"].partition("endmodule")[2]
    files["golden_unit.sv"] = "\n".join([*texts, dot_unit(configuration, suffixes), rest])
    write_model(folder, files, force=False)
    command = ["make", "-s", "obj_dir/golden_tb"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(ended.stderr[-3000:])


def verdict(folder: Path, fault: int, cases: int) -> Verdict:
    """Run the bench on a unit: 0 the sound one."""
    command = ["./obj_dir/golden_tb", f"+cases={cases}", f"+fault={fault}"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    wrong = re.search(r"(\d+) of \d+ elements of D wrong", said)
    if wrong is None:
        raise RuntimeError(said[-2000:])
    first = re.search(r"^dot .*; (\S+) is ", said, re.MULTILINE)
    named = re.search(r"^every output is that of the rule with one step rewritten: (.*)$", said, re.MULTILINE)
    return Verdict(int(wrong[1]), first[1] if first else "", named[1] if named else "")


@click.command(help=__doc__)
@click.option("--unit", "number", default=1, show_default=True, help="Of the units of python -m tools.rtl.")
@click.option("--cases", default=100, show_default=True, help="Instructions that each unit executes.")
@click.option("--keep", type=click.Path(path_type=Path), help="Leave the folder there.")
def main(number: int, cases: int, keep: Path | None) -> None:
    """Run the command."""
    configuration = standard()[number]
    faults = [fault for fault in FAULTS if not fault.unseen(configuration)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        build(configuration, faults, folder)
        verdicts = [verdict(folder, place, cases) for place in range(len(faults) + 1)]
    print(f"{configuration}: {verdicts[0].wrong} elements wrong")
    for fault, each in zip(faults, verdicts[1:], strict=True):
        print(f"  {fault.name:44} {each.wrong:>6}  {each.intermediate:14} {each.named}")
    found = verdicts[1:]
    wrong, shown, named = (sum(bool(each[at]) for each in found) for at in range(3))
    caught = sum(bool(each.wrong or each.intermediate) for each in found)
    print(f"{caught} of {len(found)} caught, {wrong} by D, {shown} by an intermediate;", end=" ")
    print(f"{named} named by a rewritten step")
    sys.exit(bool(verdicts[0].wrong) or caught < len(found))


if __name__ == "__main__":
    main()
