"""Compares the decoder with every ptxas at hand: ``python -m tools.legality.releases``.

A sample of mutated mnemonics and operands of every form, the same for all, each read as the newest PTX that
the assembler knows. A false accept is what only warpsim takes, a false reject what only ptxas takes, and
no table of tests/helpers/differences.py explains. Asked are those on the path, of WARPSIM_PTXAS, and of the
extra ``judges``.

    python -m tools.legality.releases                  two of each kind of every form, minutes
    python -m tools.legality.releases --count 20       ten times as many
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from tests.helpers import ptxas
from tests.helpers.agreement import Report, compare, sample_mnemonics, sample_operands

_TARGETS = ("sm_70", "sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_107a", "sm_120a", "sm_121f")
_ROW = "| {:>6} | {:>6} | {:>7} | {:>10} | {:>7} | {:>9} | {:>13} | {:>13} |"
_HEADINGS = ("ptxas", "PTX", "targets", "statements", "legal", "explained", "false accepts", "false rejects")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 where every difference is explained, 1 where not, 4 without any ptxas."""
    options = _parser().parse_args(arguments)
    paths = list(_assemblers())
    if not paths:
        print("cannot check: ptxas is not installed", file=sys.stderr)
        return 4
    print(_ROW.format(*_HEADINGS))
    print(_ROW.format(*("---",) * len(_HEADINGS)), flush=True)
    left = [item for path in paths for item in _judged(path, options.targets, options.count, options.seed)]
    for item in left:
        print(f"\nunexplained: {item}")
    return int(bool(left))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.legality.releases", description="warpsim against several ptxas"
    )
    parser.add_argument("--count", type=int, default=2, help="mutations of each kind of every form")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--targets", nargs="+", default=list(_TARGETS), metavar="TARGET")
    return parser


def _assemblers() -> Iterator[str]:
    """One of every release, the newest first."""
    found = (ptxas.program(), ptxas.bundled("nvidia-cuda-nvcc", "ptxas"), ptxas.oldest())
    known = {ptxas.release(path): path for path in found if path}
    for release in sorted(known.keys() & (ptxas.RELEASES | ptxas.OLDER), reverse=True):
        yield known[release]


def _judged(path: str, targets: Sequence[str], count: int, seed: str) -> Sequence[object]:
    """Return what is not explained; prints the row of one assembler."""
    start, report = time.monotonic(), Report()
    known = [target for target in targets if ptxas.knows(target, path)]
    for target in known:
        report.add(compare(sample_mnemonics(target, count, seed), target, guessed=True, path=path))
        report.add(compare(sample_operands(target, count, seed), target, path=path))
    accepts = sum(item.accepted_by == "warpsim" for item in report.unexplained)
    explained, rejects = len(report.disagreements), len(report.unexplained) - accepts
    cells = (
        ptxas.release(path), "{}.{}".format(*ptxas.last(path)), len(known), f"{report.cases:,}",
        f"{report.legal:,}", explained - len(report.unexplained), accepts, rejects,
    )  # fmt: skip
    print(_ROW.format(*cells), flush=True)
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
    return report.unexplained


if __name__ == "__main__":
    sys.exit(main())
