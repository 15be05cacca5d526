"""Compares launched kernels' opcodes with ptxas: ``python -m tools.legality.opcodes``.

Of every opcode forms, names that differ in a word, and forms that differ in an operand or in a part of one,
drawn by a seed; each difference that no table explains is printed. A false accept is what only the machine
takes, a false reject what only ptxas takes. Needs ptxas 13.0 or 13.5, as ``python -m tools.legality`` does.

    python -m tools.legality.opcodes                          a thousand of each kind, minutes a target
    python -m tools.legality.opcodes --count 100000 cvt mul   all there are, of two opcodes
    python -m tools.legality.opcodes --targets sm_80:7.0 sm_90a   other targets; the newest PTX if not said
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from tests.helpers import ptxas
from tests.helpers.opcode_agreement import Difference, differing
from tests.helpers.opcode_space import Space, opcodes

_TARGETS = ("sm_100a", "sm_120a", "sm_90a", "sm_80", "sm_90:8.0", "sm_80:7.0", "sm_75:6.3")
_TABLE = (
    *("target   ", "version", "opcode        ", "statements", "explained", "false accepts", "false rejects"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 where every difference is explained, 1 where not, 4 without ptxas."""
    options = _parser().parse_args(arguments)
    if reason := ptxas.missing():
        print(f"cannot check: {reason}", file=sys.stderr)
        return 4
    print(f"ptxas {ptxas.release()}")
    _print_row(_TABLE)
    left: list[Difference] = []
    total = Counter[str]()
    for place in options.targets:
        target, _, version = place.partition(":")
        for opcode in options.opcodes or opcodes():
            left += _judged(opcode, target, version or ptxas.newest(target), options, total)
    statements, explained, accepts, rejects = _counted(total, left)
    print(f"{statements} statements: {explained} explained, {accepts} false accepts, {rejects} false rejects")
    for item in left:
        print(f"\nunexplained: {item}")
    return int(bool(left))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.legality.opcodes", description="opcodes of launched kernels against ptxas"
    )
    parser.add_argument("opcodes", nargs="*", metavar="OPCODE")
    parser.add_argument("--count", type=int, default=1000, help="statements of each kind, of each opcode")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="+", default=list(_TARGETS), metavar="TARGET[:VERSION]")
    return parser


def _judged(
    opcode: str, target: str, version: str, options: argparse.Namespace, total: Counter[str]
) -> list[Difference]:
    """Return what is not explained of one opcode; prints a row of the table, and adds to the sums."""
    texts = Space(opcode).sample(options.count, options.seed)
    found = differing(texts, target, version)
    left = [item for item in found if not item.explained]
    own = Counter(statements=len(texts), explained=len(found) - len(left))
    total.update(own)
    _print_row((target, version, opcode, *_counted(own, left)))
    return left


def _counted(counts: Counter[str], left: Sequence[Difference]) -> tuple[object, ...]:
    """Return statements, what is explained of them, false accepts and false rejects."""
    rejects = sum(item.by_ptxas for item in left)
    return f"{counts['statements']:,}", counts["explained"], len(left) - rejects, rejects


def _print_row(cells: Sequence[object]) -> None:
    print("  ".join(f"{cell:>{len(name)}}" for cell, name in zip(cells, _TABLE, strict=True)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
