"""Run the unit on written vectors in plain SystemVerilog: no cocotb, no VPI, no DPI-C.

    python -m tools.rtl.plain [--unit N] [--faults] [--simulator icarus|verilator] [--keep FOLDER]

The directed cases of a unit become lines of a file that ``$readmemh`` reads: the ports of each clock, and
what the register holds after it. The bench compares every clock of the unit, and of faulty versions beside
it. Icarus Verilog 11 or Verilator 5. Exit code: 0, or 1 where the unit is wrong or a fault is not caught.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from .configuration import Configuration, standard
from .directed import cases
from .faults import FAULTS, Fault
from .model import steps_of
from .simulation import write_sources
from .stimulus import DotProduct, beats

COMMANDS = {
    "icarus": (["iverilog", "-g2012", "-s", "plain", "-o", "plain"], ["vvp", "-n", "plain"]),
    "verilator": (
        [
            "verilator",
            "--binary",
            "--timing",
            "-Wno-fatal",
            "-Wno-lint",
            "--top-module",
            "plain",
            "-o",
            "plain",
        ],
        ["obj_dir/plain"],
    ),
}


def vector_lines(configuration: Configuration, dots: Sequence[DotProduct]) -> Iterator[str]:
    """Yield a line for each clock: expected d, c, metadata, b, a, first, from the highest bit down."""
    widths = configuration.widths
    digits = -(-(1 + sum(widths.values()) + widths["c"]) // 4)
    for dot in dots:
        for beat, step in zip(beats(configuration, dot), steps_of(configuration, dot), strict=True):
            word, at = beat.first, 1
            for name, bits in widths.items():
                word |= getattr(beat, name) << at
                at += bits
            yield f"{word | step.code << at:0{digits}x}"


def bench(configuration: Configuration, clocks: int, units: int) -> str:
    """Return the module ``plain``, which prints the wrong clocks of each unit."""
    widths, d = configuration.widths, configuration.widths["c"]
    width, at = 1 + sum(widths.values()) + d, 1
    lines = [
        "`timescale 1ns / 1ns",
        "module plain;",
        f"  logic [{width - 1}:0] vectors [0:{clocks - 1}];",
        f"  logic [{width - 1}:0] now = '0;",
        "  logic clock = 0;",
        f"  logic [{units * d - 1}:0] results;",
        f"  integer wrong [0:{units - 1}];",
        "  integer at, unit;",
        f"  bench units (.clock(clock), .first(now[0]), .active({{{units}{{1'b1}}}}), .d(results),",
    ]
    ports = list[str]()
    for name, bits in widths.items():
        ports.append(f".{name}(now[{at + bits - 1}:{at}])")
        at += bits
    return "\n".join(
        [
            *lines,
            f"      {', '.join(ports)});",
            "  initial begin",
            '    $readmemh("vectors.hex", vectors);',
            f"    for (unit = 0; unit < {units}; unit = unit + 1) wrong[unit] = 0;",
            f"    for (at = 0; at < {clocks}; at = at + 1) begin",
            "      now = vectors[at];",
            "      #1 clock = 1;",
            "      #1 clock = 0;",
            f"      for (unit = 0; unit < {units}; unit = unit + 1)",
            f"        if (results[unit*{d}+:{d}] !== now[{width - 1}:{at}]) wrong[unit] = wrong[unit] + 1;",
            "    end",
            f"    for (unit = 0; unit < {units}; unit = unit + 1)",
            '      $display("unit %0d: %0d wrong", unit, wrong[unit]);',
            "    $finish;",
            "  end",
            "endmodule",
            "",
        ]
    )


def wrong_clocks(
    configuration: Configuration, faults: Sequence[Fault], folder: Path, simulator: str
) -> tuple[int, list[int]]:
    """Return how many clocks there are, and how many of them are wrong: of the unit, of each faulty unit."""
    vectors = [*vector_lines(configuration, cases(configuration, seed=0, random_cases=0, repeats=1))]
    (folder / "vectors.hex").write_text("\n".join(vectors) + "\n", encoding="utf-8")
    paths = [*write_sources(configuration, faults, folder), folder / "plain.sv"]
    paths[-1].write_text(bench(configuration, len(vectors), len(faults) + 1), encoding="utf-8")
    build, run = COMMANDS[simulator]
    for command in ([*build, *map(str, paths)], run):
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(ended.stderr[-3000:])
    return len(vectors), [int(count) for count in re.findall(r"^unit \d+: (\d+) wrong$", ended.stdout, re.M)]


@click.command(help=__doc__)
@click.option("--unit", "number", type=int, help="One of the units of python -m tools.rtl alone.")
@click.option("--faults", "faulty", is_flag=True, help="Build faulty units too.")
@click.option("--simulator", type=click.Choice(list(COMMANDS)), default="icarus", show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Leave sources and vectors there.")
def main(number: int | None, faulty: bool, simulator: str, keep: Path | None) -> None:
    """Run the command."""
    failed = False
    for configuration in standard() if number is None else standard()[number : number + 1]:
        faults = [fault for fault in FAULTS if faulty and not fault.unseen(configuration)]
        with tempfile.TemporaryDirectory() as scratch:
            folder = keep / configuration.name.replace(" ", "_") if keep else Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            clocks, (sound, *found) = wrong_clocks(configuration, faults, folder, simulator)
        missed = [fault.name for fault, wrong in zip(faults, found, strict=True) if not wrong]
        print(f"{configuration}: {clocks:,} clocks, {sound} wrong", end="")
        print(f"; {len(faults) - len(missed)} of {len(faults)} faults caught" if faulty else "")
        print(*(f"  not caught: {name}" for name in missed), sep="\n", end="\n" if missed else "")
        failed |= bool(sound or missed)
    sys.exit(failed)


if __name__ == "__main__":
    main()
