"""Launches compared with a reference by algebra: ``python -m tools.bench.formulas [--repeat 3]``.

Prints the seconds of a launch with checks, of the same beside which keys are computed and compared, what that
is times the launch (goal 4), and by how much the process grew: a 256 x 256 x 256 product with bias and gelu
(goals 2 s and 400 MB), and small launches. Time of the processor, the best of several.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import warpsim
from tests.helpers import kernel_cases
from tests.helpers.formulas import repeatable
from tests.helpers.kernel_references import REFERENCES
from warpsim.programs.launch.reference_runs import equivalence_of
from warpsim.workbench.diagnosis.verdicts.repeated_launch import RepeatedLaunch

from .measure import best

_SMALL = ("dense_f16 normal", "sparse_product normal", "warpgroup_f16 normal", "tensor_f16", "softmax")


def _epilogue(size: int) -> RepeatedLaunch:
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((size, size)).astype(np.float16) for _ in "ab")
    bias, d = random.standard_normal(size).astype(np.float32), np.zeros((size, size), np.float16)
    kernel = warpsim.load(str(kernel_cases.FOLDER / "epilogue.ptx"))["bias_gelu"]
    sizes = {"grid": (size // 32, size // 32), "block": 64}
    return repeatable(kernel, [a, b, bias, d, size, size], sizes)


def _small(name: str) -> RepeatedLaunch:
    found = kernel_cases.case(name)
    kernel = warpsim.load(str(kernel_cases.FOLDER / found.file))[found.entry]
    sizes = {"grid": found.grid, "block": found.block, "shared_bytes": found.shared_bytes}
    arguments = list(found.passed(found.arguments))
    return repeatable(kernel, arguments, {**sizes, "cluster": found.cluster})


def _line(name: str, launch: RepeatedLaunch, entry: str, repeat: int) -> str:
    """Return the figures of a launch, which must be equal to its reference."""
    alone = best(lambda: launch.attempt(checks="warn"), repeat, time.process_time)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = equivalence_of(launch, REFERENCES[entry]).equivalence
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    keyed = best(lambda: equivalence_of(launch, REFERENCES[entry]), repeat, time.process_time)
    assert found.answer == "equal", str(found)
    return f"{name:32} {alone:8.3f} s {keyed:8.3f} s {keyed / alone:6.1f} {grown:6.0f} MB"


def main() -> int:
    """Print a line a launch."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.formulas", description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(f"{'launch':32} {'checks':>10} {'algebra':>10} {'times':>6} {'grown':>9}")
    print(_line("bias_gelu 256 x 256 x 256", _epilogue(256), "bias_gelu", options.repeat), flush=True)
    for name in _SMALL:
        print(_line(name, _small(name), kernel_cases.case(name).entry, options.repeat), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
