"""Propose mutants: slips drawn evenly over classes, modules and kinds of slip, the same for the same seed.

    python -m tools.code_mutants.proposing [--seed 0] [--each 24] [--map FILE] > FILE.jsonl

Prints a list as ``mutants.jsonl`` is one; tests are those of FILE (JSON: file -> line -> tests, the likeliest
first) or the folder of tests of the module's room. No two mutants change one line, and none is chosen for
being easy: what a list has is what was drawn.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from .mutant import CLASSES, ROOT, Mutant, row_of
from .operators import slips
from .rooms import modules
from .trial import wider_tests

Drawn = tuple[int, Mutant]  # the line's number, and what it becomes
Place = tuple[int, str, str, str]  # number, text and new text of a line, and what was changed


def main() -> None:
    """Print the proposed list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=24, help="mutants of each class")
    parser.add_argument("--map", type=Path)
    given = parser.parse_args()
    reached = json.loads(given.map.read_text(encoding="utf-8")) if given.map else {}
    for line, mutant in propose(given.seed, given.each):
        tests = reached.get(mutant.file, {}).get(str(line)) or wider_tests(mutant)
        sys.stdout.write(row_of(replace(mutant, tests=tuple(tests))))


def propose(seed: int, each: int) -> Iterator[Drawn]:
    """So many mutants of each class, by class."""
    taken: set[tuple[str, int]] = set()
    for kind in CLASSES:
        yield from _drawn(kind, each, Random(f"{seed} {kind}"), taken)


def _drawn(kind: str, each: int, random: Random, taken: set[tuple[str, int]]) -> Iterator[Drawn]:
    """Yield mutants from the modules in turn; in each, a kind of slip first and then one of its places."""
    files, count = modules(kind), 0
    random.shuffle(files)
    while count < each:
        before = count
        for file in files:
            found = _one(file, kind, random, taken)
            if found and count < each:
                count += 1
                yield found
        if count == before:
            return


def _one(file: str, kind: str, random: Random, taken: set[tuple[str, int]]) -> Drawn | None:
    by_what: dict[str, list[Place]] = {}
    for place in _places(file):
        if (file, place[0]) not in taken:
            by_what.setdefault(place[3], []).append(place)
    for what in random.sample(sorted(by_what), len(by_what)):
        for line, old, new, _ in random.sample(by_what[what], len(by_what[what])):
            mutant = Mutant(
                file=file, old=old, new=new, kind=kind, what=what, occurrence=_occurrence(file, line)
            )
            if _is_change(mutant):
                taken.add((file, line))
                return line, mutant
    return None


@cache
def _places(file: str) -> tuple[Place, ...]:
    """Return slips of a module that stay on their line."""
    source = (ROOT / file).read_text(encoding="utf-8")
    lines, found = source.splitlines(), list[Place]()
    for node, text, what in slips(ast.parse(source)):
        if isinstance(node, (ast.expr, ast.stmt)) and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1].encode()  # columns count bytes
            new = (line[: node.col_offset] + text.encode() + line[node.end_col_offset :]).decode()
            found.append((node.lineno, line.decode().strip(), new.strip(), what))
    return tuple(found)


def _occurrence(file: str, line: int) -> int:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return sum(item.strip() == lines[line - 1].strip() for item in lines[:line])


def _is_change(mutant: Mutant) -> bool:
    """Return whether the changed file can be parsed and is another program."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    try:
        return ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


if __name__ == "__main__":
    main()
