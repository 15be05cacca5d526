"""Try changed inputs for a while: every input ends in a result or a clean error, in 20 s and 1 GiB.

    python -m tools.fuzz [--seconds 900] [--seed TEXT] [--only VERB] [--finds FILE.jsonl]
    python -m tools.fuzz --differential | --messages [--seconds 900] [--seed TEXT] | --places

The seed is the day's unless one is given; a case depends on the seed and its number alone. What is found is
printed and, as a line of ``traces/regressions``, added to FILE. ``--differential`` compares
instead what there is twice: paths of computation, programs and threads, checkers and their twins, texts and
files written and read, machine code and NumPy; ``--only`` takes a subject of differential.py then.
``--places`` gives every verb pipes, links, devices, folders and sparse files in place of its inputs,
``--messages`` changed messages to the debug adapter and the server of host programs. Exit code
1 if anything was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from datetime import date
from pathlib import Path
from random import Random

from .case import Case, line_of
from .differential import SUBJECTS, compare
from .messages import try_messages
from .mutations import mutated
from .places import try_places
from .seeds import seeds
from .trial import Verdict, try_case

_PATIENCE = 300  # seconds for a valid input, whose kernels may have to be compiled


def main() -> int:
    """Try, and tell."""
    given = _arguments()
    if given.differential:
        return compare(given.seed, given.seconds, given.cases, given.only)
    if given.places:
        return try_places(given.cases)
    if given.messages:
        return try_messages(given.seed, given.seconds, given.cases)
    known = [seed for seed in seeds() if not given.only or seed.command[0] == given.only]
    print(f"seed {given.seed}: {len(known)} valid inputs", file=sys.stderr)
    finds = [(seed, try_case(seed, _PATIENCE)) for seed in known]
    finds = [(seed, verdict) for seed, verdict in finds if verdict.problem]
    stop, number, codes = time.monotonic() + given.seconds, 0, Counter[int]()
    for case, verdict in finds:
        _tell(case, verdict, given.finds, "a seed")
    while time.monotonic() < stop and (given.cases is None or number < given.cases):
        rng = Random(f"{given.seed} {number}")
        case = mutated(rng.choice(known), rng.choice(known), rng)
        verdict = try_case(case)
        codes[verdict.code] += 1
        if verdict.problem:
            finds.append((case, verdict))
            _tell(case, verdict, given.finds, f"seed {given.seed}, case {number}")
        number += 1
    counts = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    print(f"{number} cases, {len(finds)} finds; exit codes: {counts}")
    return 1 if finds else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--cases", type=int, help="no more than so many")
    parser.add_argument("--seed", default=date.today().isoformat())
    parser.add_argument("--only", metavar="VERB")
    parser.add_argument("--finds", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--differential", action="store_true", help="compare what there is twice instead")
    parser.add_argument(
        "--places", action="store_true", help="try pipes, links and devices as inputs instead"
    )
    parser.add_argument("--messages", action="store_true", help="try messages to servers instead")
    given = parser.parse_args()
    if given.differential and given.only not in (None, *SUBJECTS):
        parser.error(f"--only {given.only}: a subject is {', '.join(SUBJECTS)}")
    return given


def _tell(case: Case, verdict: Verdict, finds: Path | None, where: str) -> None:
    print(f"--- {where}: {verdict.problem} ({verdict.seconds:.1f} s): {' '.join(case.command)[:200]!r}")
    print(verdict.said[-800:], flush=True)
    if finds:
        with finds.open("a", encoding="utf-8") as file:
            file.write(line_of(case, f"{where}: {verdict.problem}") + "\n")


if __name__ == "__main__":
    sys.exit(main())
