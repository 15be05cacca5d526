"""Proves the SystemVerilog unit against warpsim in a logic simulator; prints what was covered.

    python -m tools.rtl                                 five units: f16, bf16, e4m3, dense and 2:4
    python -m tools.rtl --faults                        also faulty units beside each, and what caught them
    python -m tools.rtl MNEMONIC --target sm_90a        the unit of one instruction
    python -m tools.rtl MNEMONIC --target sm_90a --fraction-bits 20 --nearest 1    other parameters
    python -m tools.rtl --vectors FILE.npz              every dot product of a vector set

Needs cocotb 2 (pip install 'warpsim[rtl]') and Icarus Verilog 11, or Verilator 5.036 and later.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import warpsim

from .configuration import CHANGES, Configuration, configure, standard
from .faults import FAULTS
from .report import Result, coverage_table, fault_table, summary
from .simulation import PROGRAMS, SimulationFailed, missing, simulate
from .stimulus import from_vectors


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all as expected, 1 wrong sums, missed bins or faults, 3 unreadable or no such unit, 4 no
    simulator."""
    options = _parser().parse_args(arguments)
    if reason := missing(options.simulator):
        print(f"cannot check: {reason}", file=sys.stderr)
        return 4
    try:
        results = [_result(configuration, options) for configuration in _configurations(options)]
    except (warpsim.WarpsimError, SimulationFailed, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    _print(results, options)
    return int(any(True for result in results for _ in result.complaints()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.rtl", description="the RTL unit against warpsim")
    parser.add_argument("mnemonic", nargs="?", help="the instruction whose sums the unit makes")
    parser.add_argument("--target", help="the chip whose rule it follows")
    for name in CHANGES:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="instead of the rule's")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="a vector set in place of made-up cases")
    parser.add_argument(
        "-n", type=int, default=None, help="random cases (500); of a vector set, at most (all)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", action="store_true", help="build faulty units too")
    parser.add_argument("--simulator", choices=list(PROGRAMS), default="icarus")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep sources, logs and results there")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    return parser


def _configurations(options: argparse.Namespace) -> Sequence[Configuration]:
    changes: dict[str, Any] = {
        name: getattr(options, name) for name in CHANGES if getattr(options, name) is not None
    }
    if options.vectors:
        instruction, _ = from_vectors(options.vectors, limit=1)
        return [configure(instruction.mnemonic, instruction.target, **changes)]
    return [configure(options.mnemonic, options.target, **changes)] if options.mnemonic else standard()


def _result(configuration: Configuration, options: argparse.Namespace) -> Result:
    """One simulation; its summary is printed at once."""
    faults = [fault for fault in FAULTS if options.faults and not fault.unseen(configuration)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep / configuration.name.replace(" ", "_") if options.keep else Path(scratch)
        coverage = simulate(
            configuration,
            folder.resolve(),
            faults=faults,
            cases=options.n if options.n is not None else 0 if options.vectors else 500,
            seed=options.seed,
            vectors=options.vectors,
            simulator=options.simulator,
        )
    result = Result(configuration=configuration, coverage=coverage, whole=not options.vectors)
    if not options.json:
        print("\n".join(summary(result)), flush=True)
    return result


def _print(results: Sequence[Result], options: argparse.Namespace) -> None:
    if options.json:
        data = [
            {"unit": str(result.configuration), "parameters": dict(result.configuration.parameters)}
            | result.coverage.as_json()
            | {"complaints": list(result.complaints())}
            for result in results
        ]
        print(json.dumps(data, indent=2))
        return
    print("\n" + "\n".join(coverage_table(results)))
    if options.faults:
        print("\n" + "\n".join(fault_table(results)))


if __name__ == "__main__":
    sys.exit(main())
