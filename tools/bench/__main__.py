"""Measure, print a table and write JSON: ``python -m tools.bench [--size 1024] [--only TEXT] [--json FILE]``.

Every figure is thread CPU time, best of several, of one thread; ``ratio`` is the time of NumPy's float32
matmul of the same size, measured next to it, divided by that time. Goals in brackets.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import json
import platform
import sys
from pathlib import Path

from .batches import batch_cases
from .measure import Result
from .products import product_cases


def _line(result: Result) -> str:
    goal = f"[{result.goal:g}]" if result.goal else ""
    return f"{result.name:42} {result.seconds * 1e3:10.3f} ms  {result.figure:10.3f} {result.unit:14} {goal}"


def main() -> int:
    """Run the cases whose name contains the given text."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("--size", type=int, default=1024, help="m = n = k of the products")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=7, help="times each case is run")
    parser.add_argument("--json", type=Path, help="where to write the results")
    options = parser.parse_args()
    results = []
    for case in (*product_cases(options.size), *batch_cases()):
        if options.only in case.name:
            results.append(case.run(options.repeat))
            print(_line(results[-1]), flush=True)
    if options.json:
        record = {"machine": platform.processor() or platform.machine(), "size": options.size}
        record["results"] = [result.record() for result in results]
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
