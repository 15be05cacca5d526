"""Building the unit, and faulty ones beside it, and running the testbench on them in a logic simulator.

Knows cocotb's runner and the simulators' options. The simulator is another process: it reads a job file and
leaves a results file.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .configuration import Configuration, configure
from .coverage import Coverage, from_json
from .faults import Fault, Sources

HDL = Path(__file__).parent / "hdl"
FILES = ("float_decode.sv", "select_2of4.sv", "round_pack.sv", "fused_dot.sv", "tensor_dot.sv")
PROGRAMS = {"icarus": "iverilog", "verilator": "verilator"}
VERILATOR = (5, 36)
# Faulty units would not pass the linter, and their simulation is as fast as it has to be without -O3.
BUILD_ARGUMENTS = {
    "icarus": [],
    "verilator": ["-Wno-fatal", "-Wno-lint", "-O1", "--x-assign", "fast"],
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """What the testbench does: which sums, on which units, and where the results go.

    ``vectors`` is the file of a vector set, or ""; ``cases`` are the random ones beside the directed ones
    (those ``repeats`` times over), or how many dot products of the set are taken at most (0: all). A faulty
    unit is left alone after it was wrong ``enough`` times.
    """

    mnemonic: str
    target: str
    changes: Mapping[str, Any]
    units: Sequence[str]
    cases: int
    repeats: int
    seed: int
    vectors: str
    enough: int
    results: str

    def configuration(self) -> Configuration:
        """Return the unit's configuration."""
        return configure(self.mnemonic, self.target, **self.changes)


def missing(simulator: str) -> str:
    """Return why the testbench cannot run here; "" where it can."""
    if find_spec("cocotb_tools") is None:
        return "cocotb 2 is not installed: pip install 'warpsim[rtl]'"
    program = PROGRAMS[simulator]
    if not shutil.which(program):
        return f"{program} is not on the path: apt-get install {program}"
    return _too_old() if simulator == "verilator" else ""


def _too_old() -> str:
    """cocotb 2 does not compile with an older Verilator; one that does not tell its version may try."""
    finished = subprocess.run(["verilator", "--version"], capture_output=True, text=True, check=False)
    version = re.match(r"Verilator (\d+)\.(\d+)", finished.stdout)
    if version and (int(version[1]), int(version[2])) < VERILATOR:
        return f"cocotb 2 needs Verilator 5.036 or later, here is {version[0]}; --simulator icarus will do"
    return ""


# --- sources ---------------------------------------------------------------------------------------


def sources() -> Sources:
    """Return the text of the unit's files."""
    return {name: (HDL / name).read_text(encoding="utf-8") for name in FILES}


def faulty_text(fault: Fault, suffix: str) -> str:
    """Return the whole unit with a fault in it, every module renamed so that it stands beside the sound
    one.
    """
    text = "\n".join(fault.applied(sources()).values())
    modules = [name.removesuffix(".sv") for name in FILES]
    return re.sub(
        rf"(\bmodule\s+|^\s+)({'|'.join(modules)})(?=\s+#)", rf"\1\2{suffix}", text, flags=re.MULTILINE
    )


def bench_text(configuration: Configuration, suffixes: Sequence[str]) -> str:
    """Return a module that feeds the same operands to several units and puts their results side by side.

    A unit that is not active holds still, which costs an event-driven simulator nothing.
    """
    widths = configuration.widths
    ports = "".join(f"    input  logic [{bits - 1}:0] {name},\n" for name, bits in widths.items())
    parameters = ", ".join(f".{name}({value})" for name, value in configuration.parameters.items())
    held = ", ".join(f".{name}(active[{{place}}] ? {name} : '0)" for name in widths)
    units = "".join(
        f"  tensor_dot{suffix} #({parameters}) unit{place} (.clock(clock), .first(first), "
        f"{held.format(place=place)}, .d(d[{place * widths['c']}+:{widths['c']}]));\n"
        for place, suffix in enumerate(suffixes)
    )
    return (
        f"module bench (\n    input  logic clock,\n    input  logic first,\n{ports}"
        f"    input  logic [{len(suffixes) - 1}:0] active,\n"
        f"    output logic [{len(suffixes) * widths['c'] - 1}:0] d\n);\n{units}endmodule\n"
    )


def write_sources(configuration: Configuration, faults: Sequence[Fault], folder: Path) -> list[Path]:
    """Return the unit's files, one file a faulty unit, and the bench, all of them in the order of
    compilation.
    """
    suffixes = ["", *(f"_fault{number}" for number in range(1, len(faults) + 1))]
    paths = [HDL / name for name in FILES]
    for fault, suffix in zip(faults, suffixes[1:], strict=True):
        paths.append(folder / f"unit{suffix}.sv")
        paths[-1].write_text(f"// fault: {fault.name}\n{faulty_text(fault, suffix)}", encoding="utf-8")
    paths.append(folder / "bench.sv")
    paths[-1].write_text(bench_text(configuration, suffixes), encoding="utf-8")
    return paths


# --- running ---------------------------------------------------------------------------------------


class SimulationFailed(Exception):
    """The simulator could not build or run the testbench; the message is its log."""


def simulate(
    configuration: Configuration,
    folder: Path,
    *,
    faults: Sequence[Fault] = (),
    cases: int = 500,
    repeats: int = 2,
    seed: int = 0,
    vectors: Path | None = None,
    enough: int = 12,
    simulator: str = "icarus",
) -> Coverage:
    """Return results of the sound unit and of every faulty one, on directed and random cases or a vector
    set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    job = Job(
        mnemonic=configuration.instruction.mnemonic,
        target=str(configuration.instruction.target),
        changes=dict(configuration.changes),
        units=["sound", *(fault.name for fault in faults)],
        cases=cases,
        repeats=repeats,
        seed=seed,
        enough=enough,
        vectors=str(vectors.resolve()) if vectors else "",
        results=str(folder / "results.json"),
    )
    (folder / "job.json").write_text(json.dumps(asdict(job)), encoding="utf-8")
    Path(job.results).unlink(missing_ok=True)
    # A test that fails, or a simulator that does not start, raises; the results file tells them apart.
    with suppress(subprocess.CalledProcessError, RuntimeError, SystemExit):
        _run(write_sources(configuration, faults, folder), folder, simulator)
    if not Path(job.results).exists():
        log = folder / "simulator.log"
        raise SimulationFailed(log.read_text(encoding="utf-8") if log.exists() else f"no {simulator} log")
    return from_json(json.loads(Path(job.results).read_text(encoding="utf-8")))


def _run(paths: Sequence[Path], folder: Path, simulator: str) -> None:
    from cocotb_tools.runner import get_runner

    runner = get_runner(simulator)
    runner.build(
        sources=paths,
        hdl_toplevel="bench",
        build_dir=folder / "build",
        build_args=BUILD_ARGUMENTS[simulator],
        timescale=("1ns", "1ns"),
        always=True,
        log_file=folder / "simulator.log",
    )
    runner.test(
        hdl_toplevel="bench",
        test_module="tools.rtl.testbench",
        build_dir=folder / "build",
        test_dir=folder,
        extra_env={"WARPSIM_RTL_JOB": str(folder / "job.json")},
        results_xml=str(folder / "results.xml"),
        log_file=folder / "simulator.log",
    )
