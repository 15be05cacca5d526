"""``python -m tools.launch_mistakes [--only TEXT] [--show]``: what ``warpsim.why`` says, and how fast."""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter

import warpsim
from warpsim.host.launching import load_text

from .kernels import KERNELS, compiled
from .listed import LIST, LaunchMistake


def answered(mistake: LaunchMistake) -> tuple[str, float, str]:
    """Return the outcome of a mistake, the seconds, and the verdict."""
    text = compiled(mistake.kernel, mistake.number, mistake.defines)
    prepared = KERNELS[mistake.kernel]()
    kernel = load_text(text, f"{mistake.kernel}.ptx")[mistake.kernel]
    start = time.perf_counter()
    try:
        verdict = warpsim.why(
            kernel, prepared.grid, prepared.block, prepared.arguments, prepared.expected, prepared.tolerance
        )
    except Exception as error:
        return "crashed", time.perf_counter() - start, repr(error)
    seconds = time.perf_counter() - start
    return outcome(mistake, verdict), seconds, str(verdict)


def outcome(mistake: LaunchMistake, verdict: warpsim.Verdict) -> str:
    """Return ``named`` for the first cause, or a note where there is none; ``hint``, ``wrong``, ``none``."""
    text = str(verdict)
    first = re.split(r"\nalso: ", text)[0]
    if re.search(mistake.names, first):
        return "named"
    if re.search(mistake.hints, text) or re.search(mistake.names, text):
        return "hint"
    return "wrong" if verdict.causes else "none"


def main() -> None:
    """Print a line for each mistake, and the sums."""
    parser = argparse.ArgumentParser(
        description="What --why says of mistakes planted in kernels; needs nvcc."
    )
    parser.add_argument("--only", default="", help="mistakes with this in their kernel, number or name")
    parser.add_argument("--show", action="store_true", help="print the verdicts")
    options = parser.parse_args()
    counts, times = Counter[str](), list[float]()
    for mistake in LIST:
        title = f"{mistake.kernel} {mistake.number}: {mistake.name}"
        if options.only not in title:
            continue
        found, seconds, text = answered(mistake)
        counts[found] += 1
        times.append(seconds)
        print(f"{found:<8} {seconds:5.1f}  {title}", flush=True)
        if options.show:
            print(text)
    print(
        f"{sum(counts.values())} kernels: {dict(counts)}; {sum(times):.0f} s, the longest {max(times):.1f} s"
    )


if __name__ == "__main__":
    main()
