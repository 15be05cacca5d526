"""Try one-line changes to warpsim's own code: does any test notice?

    python -m tools.code_mutants [--class KIND] [--only TEXT] [--sample N] [--json FILE] [--page]

Each mutant of ``mutants.jsonl`` is put into a copy of the checkout; its tests run there in a fork of this
process, and where they pass so do all tests of its room (unless ``--narrow``). With ``--json`` verdicts are
added to a file, and mutants that it has are not tried again; ``--page`` writes outcomes.md from it. Exit code
1 if a mutant lives that the list does not explain. A sample of 20 takes about two minutes, all of them half
an hour; tests that fail on the unchanged copy are told first, and nothing is tried.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from .mutant import CLASSES, LIST, Mutant, read_list
from .page import page
from .tree import copy_tree
from .trial import Verdict, failing, try_mutant, warm

_PAGE = Path(__file__).with_name("outcomes.md")


def main() -> int:
    """Try the mutants that are asked for, and tell."""
    given = _arguments()
    mutants = read_list(given.list)
    chosen, known = _chosen(mutants, given), _known(mutants, given.json)
    start, verdicts = time.monotonic(), [known[item.key] for item in chosen if item.key in known]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tree(folder)
        warm()
        left = [item for item in chosen if item.key not in known]
        if not given.trust and (wrong := failing(folder, left)):
            print(*wrong, "these fail on the unchanged copy: nothing was tried", sep="\n")
            return 2
        for mutant in left:
            verdicts.append(try_mutant(mutant, folder, wider=not given.narrow))
            _tell(verdicts[-1], given.json)
    unexplained = [verdict for verdict in verdicts if not verdict.killed and not verdict.mutant.explanation]
    killed = sum(verdict.killed for verdict in verdicts)
    print(f"{killed} of {len(verdicts)} mutants killed in {time.monotonic() - start:.0f} s")
    if given.page:
        _PAGE.write_text(page(mutants, verdicts), encoding="utf-8")
    return 1 if unexplained else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--class", dest="kind", choices=CLASSES)
    parser.add_argument("--only", default="", help="mutants whose file or text contains this")
    parser.add_argument("--sample", type=int, help="no more than so many, drawn by the seed")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--json", type=Path, help="verdicts, one a line; those that are there are kept")
    parser.add_argument("--page", action="store_true", help="write outcomes.md")
    parser.add_argument("--narrow", action="store_true", help="no wider tests for what lives")
    parser.add_argument("--trust", action="store_true", help="do not run the tests on the unchanged copy")
    return parser.parse_args()


def _chosen(mutants: list[Mutant], given: argparse.Namespace) -> list[Mutant]:
    """Return the mutants that are asked for, without those that no test can notice."""
    chosen = [
        mutant
        for mutant in mutants
        if not mutant.equivalent and given.kind in (None, mutant.kind) and given.only in str(mutant)
    ]
    if given.sample is not None and given.sample < len(chosen):
        chosen = Random(given.seed).sample(chosen, given.sample)
    return chosen


def _known(listed: list[Mutant], file: Path | None) -> dict[tuple[str, str, str, int], Verdict]:
    """Return verdicts of earlier runs, of mutants that are in the list."""
    if file is None or not file.exists():
        return {}
    mutants = {item.key: item for item in listed}
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found = ((tuple(row.pop("mutant")), row) for row in rows)
    return {key: Verdict(mutant=mutants[key], **row) for key, row in found if key in mutants}


def _tell(verdict: Verdict, file: Path | None) -> None:
    """Print a verdict, and add it to the file."""
    what = f"killed by {verdict.killer}" if verdict.killed else "LIVES"
    print(f"{verdict.mutant.kind:10} {verdict.mutant}\n{'':10} {what} ({verdict.seconds:.1f} s)", flush=True)
    if file:
        row = {"mutant": verdict.mutant.key, "killer": verdict.killer, "seconds": round(verdict.seconds, 1)}
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row | {"wider": verdict.wider}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
