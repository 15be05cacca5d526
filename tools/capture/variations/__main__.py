"""How experiments judge devices that compute as no candidate does: ``python -m tools.capture.variations``.

Variations are drawn by a seed of the form's; a verdict is right where it is "none of the candidates", or
names a candidate that gives the same bits for all inputs of the form.

    python -m tools.capture.variations                                  a thousand for each, half an hour
    python -m tools.capture.variations --count 50 --experiment imma-saturation --targets sm_80
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from ..experiments import EXPERIMENTS
from .play import EQUAL, NONE, WRONG, Tally, played

TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")
_ROW = "| {:18} | {:>6} | {:>10} | {:>10} | {:>6} | {:>14} | {:>7} | {:>14} |"
_HEADINGS = (
    "experiment", "trials", "candidates", "variations", "none", "equal a listed", "wrong", "through kernel",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 where every verdict is right, 1 where not."""
    options = _parser().parse_args(arguments)
    print(_ROW.format(*_HEADINGS))
    print(_ROW.format(*("---",) * len(_HEADINGS)), flush=True)
    wrong = list[str]()
    for name in options.experiment or EXPERIMENTS:
        start = time.monotonic()
        tally = played(name, options.targets, options.count, options.kernels)
        wrong += tally.wrong
        print(_ROW.format(*_cells(tally)), flush=True)
        print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    for line in wrong:
        print(line)
    return int(bool(wrong))


def _cells(tally: Tally) -> tuple[object, ...]:
    counts = [f"{tally.verdicts[item]:,}" for item in (NONE, EQUAL, WRONG)]
    total = f"{sum(tally.verdicts.values()):,}"
    return tally.experiment, tally.trials, f"{tally.candidates:,}", total, *counts, tally.through_kernels


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.capture.variations")
    parser.add_argument("--count", type=int, default=1000, help="variations for each experiment, at least")
    parser.add_argument("--experiment", action="append", choices=list(EXPERIMENTS))
    parser.add_argument("--targets", nargs="+", default=list(TARGETS))
    parser.add_argument(
        "--kernels", type=int, default=5, metavar="N", help="one in N through a kernel too; 0 none"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
