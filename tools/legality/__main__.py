"""Prints the table of legality: forms implemented and accepted per target, every difference explained.

Tried are the forms of all targets and what is one choice away from a form of the target.

    python -m tools.legality                            the table, some ten minutes
    python -m tools.legality --deep 100 --seed 7        also that many random mutations of every form
    python -m tools.legality --targets sm_80 sm_120a    some targets only

Needs ptxas 12.9, 13.0 or 13.5: that on the path, the one that WARPSIM_PTXAS names, or that of the extra
``judges``. Forms and targets are those that it knows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.helpers import ptxas
from tests.helpers.agreement import Report, compare, forms_of, sample_mnemonics, sample_operands
from tests.helpers.differences import LENIENCES, STRICTNESSES
from tests.helpers.mutations import DECLARATIONS, legal_operands, spelled
from tools.legality.candidates import statements
from warpsim.isa.architectures import ARCHITECTURES

_TABLE = ("target ", "since", " tried", "implemented", "assembled", "accepted", "explained", "unexplained")
_SAMPLES = ("mutations", "target ", " cases", "legal", "explained", "unexplained")
_SAMPLED = {"mnemonics": sample_mnemonics, "operands": sample_operands}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 where every difference is explained, 1 where not, 4 without ptxas."""
    options = _parser().parse_args(arguments)
    if reason := ptxas.missing_for_matrices():
        print(f"cannot check: {reason}", file=sys.stderr)
        return 4
    targets = [target for target in options.targets if ptxas.knows(target)]
    print(f"ptxas {ptxas.release()}, PTX {ptxas.newest(targets[-1])}; {len(targets)} targets\n", flush=True)
    total = _print_table(targets)
    if options.deep:
        total.add(_print_samples(targets, options.deep, options.seed))
    _print_explanations(total)
    return int(bool(total.unexplained))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.legality", description="warpsim against ptxas")
    parser.add_argument("--targets", nargs="+", default=list(ARCHITECTURES), choices=list(ARCHITECTURES))
    parser.add_argument("--deep", type=int, default=0, metavar="N", help="random mutations of every form")
    parser.add_argument("--seed", default="0")
    return parser


def _print_row(headings: Sequence[str], cells: Sequence[object]) -> None:
    print("  ".join(f"{cell:>{len(name)}}" for cell, name in zip(cells, headings, strict=True)), flush=True)


def _print_table(targets: Sequence[str]) -> Report:
    """Return the table, row by row as it is found; all disagreements."""
    _print_row(_TABLE, _TABLE)
    total = Report()
    for target in targets:
        texts = [spelled(form.mnemonic, legal_operands(form)) for form in forms_of(target)]
        assembled = ptxas.verdicts(texts, target=target, declarations=DECLARATIONS).count(None)
        report = compare(statements(target), target, guessed=True)
        since = ".".join(map(str, ARCHITECTURES[target].since))
        forms = (len(texts), assembled, report.legal)
        _print_row(_TABLE, (target, since, report.cases, *forms, *_differences(report)))
        total.add(report)
    return total


def _differences(report: Report) -> tuple[int, int]:
    """Return how many are explained, and how many not."""
    return len(report.disagreements) - len(report.unexplained), len(report.unexplained)


def _print_samples(targets: Sequence[str], count: int, seed: str) -> Report:
    """Return counts of random mutations of mnemonics and of operands; all disagreements."""
    print()
    _print_row(_SAMPLES, _SAMPLES)
    total = Report()
    for target in targets:
        for what, sample in _SAMPLED.items():
            report = compare(sample(target, count, seed), target, guessed=what == "mnemonics")
            _print_row(_SAMPLES, (what, target, report.cases, report.legal, *_differences(report)))
            total.add(report)
    _print_row(_SAMPLES, ("together", "", total.cases, total.legal, *_differences(total)))
    return total


def _print_explanations(total: Report) -> None:
    counts = total.explanations
    for heading, table in (("Only ptxas accepts", LENIENCES), ("Only warpsim accepts", STRICTNESSES)):
        print(f"\n{heading}:")
        for item in table:
            print(f"  {counts[item.name] or '-':>6}  {item.name}: {item.reason}")
    for disagreement in total.unexplained:
        print(f"\nunexplained: {disagreement}")


if __name__ == "__main__":
    sys.exit(main())
