"""Measure, print a table and write JSON: ``python -m tools.bench [--size 1024] [--only TEXT] [--json FILE]``.

Times are the best of several, thread CPU time of one thread but for threads and commands; ``x matmul`` is the
time of NumPy's float32 matmul of the same size, measured next to it, divided by that time. Goals in brackets.
``--markdown`` prints the table of README.md in this folder.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
os.environ.pop("OPENBLAS_CORETYPE", None)  # BLAS has kernels for this processor, not for another

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from .batches import batch_cases
from .measure import Result
from .peer import peer_cases
from .processor import machine
from .products import product_cases
from .whole import whole_cases


def _line(result: Result) -> str:
    goal = f"[{result.goal:g}]" if result.goal else ""
    return f"{result.name:42} {result.seconds * 1e3:10.3f} ms  {result.figure:10.3f} {result.unit:14} {goal}"


def _row(result: Result) -> str:
    goal = f"{result.goal:g}" if result.goal else ""
    return f"| {result.name} | {_figure(result.figure)} {result.unit} | {goal} |"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> int:
    """Run the cases whose name contains the given text."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="m = n = k of the products")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=7, help="times each case is run")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--json", type=Path, help="where to write the results")
    options = parser.parse_args()
    results = []
    if not options.markdown:
        print(machine())
    if options.markdown:
        print(f"{datetime.now(UTC):%Y-%m-%d}, {machine()}\n\n| case | measured | goal |\n|---|---|---|")
    cases = (*product_cases(options.size), *batch_cases(), *whole_cases(), *peer_cases())
    for case in cases:
        if options.only in case.name:
            results.append(case.run(options.repeat))
            print((_row if options.markdown else _line)(results[-1]), flush=True)
    if options.json:
        record: dict[str, object] = {"machine": machine(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
        record["size"] = options.size
        record["results"] = [result.record() for result in results]
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
