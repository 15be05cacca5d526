"""``python -m tools.user_mistakes [--only TEXT] [--show]``: what ``warpsim diff`` says, and how fast."""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from warpsim.cli import cli

from . import instruction, known, loops, printouts, scaled, warpgroups
from .case import Brought, UserMistake

GROUPS = {
    "instruction": instruction.LIST,
    "known": known.LIST,
    "loops": loops.LIST,
    "warpgroups": warpgroups.LIST,
    "scaled": scaled.LIST,
    "printouts": printouts.LIST,
}


def command_line(brought: Brought, folder: Path) -> list[str]:
    """Write the files, and return the words after ``warpsim``."""
    words = ["diff", brought.form[0], "--target", brought.form[1]]
    for name, array in brought.arrays.items():
        np.save(folder / f"{name}.npy", array)
        words.append(f"{name}={folder / name}.npy")
    for name, text in brought.texts.items():
        file = folder / (name if "." in name else f"{name}.txt")
        file.write_text(text)
        operand = name.partition(".")[0]
        if len(operand) == 1:
            words.append(f"{operand}={file}")
    return [*words, *(str(folder / word) if word.endswith(".txt") else word for word in brought.words)]


def answered(mistake: UserMistake, seed: int = 1) -> tuple[str, float, str]:
    """Run diff on a mistake; return the outcome, the seconds of processor time, and what was printed."""
    brought = mistake.make(np.random.default_rng(seed))
    with tempfile.TemporaryDirectory() as folder:
        words = command_line(brought, Path(folder))
        start = time.process_time()
        result = CliRunner().invoke(cli, words, standalone_mode=False)
        seconds = time.process_time() - start
    text = result.output + (f"\n{result.exception!r}" if result.exception else "")
    return outcome(mistake, result, text), seconds, text


def outcome(mistake: UserMistake, result: Any, text: str) -> str:
    """Return ``named`` for the first explanation or a remark that stands alone, ``hint`` for text elsewhere.

    Return ``asked``, ``refused``, ``crashed``, ``wrong`` or ``none`` for other outputs.
    """
    if mistake.asked and (hasattr(result.exception, "exit_code") or result.return_value in (2, 3)):
        return "asked" if re.search(mistake.names, text) else "refused"
    if result.exception is not None:
        return "crashed" if not hasattr(result.exception, "exit_code") else "refused"
    if result.return_value not in (0, 1):
        return "refused"
    if re.search(mistake.names, first_part(text)):
        return "named"
    if re.search(f"{mistake.hints}|{mistake.names}", text):
        return "hint"
    return "wrong" if "matches" in text else "none"


def first_part(text: str) -> str:
    """Return the output up to the second explanation."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if re.search(r"^\s*(matches|[\d.]+% of D)", line)]
    return "\n".join(lines[: starts[1]] if len(starts) > 1 else lines)


def measured(groups: Mapping[str, Sequence[UserMistake]], description: str) -> None:
    """Print a line for each mistake, and the sums."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", default="", help="mistakes with this in their name or group")
    parser.add_argument("--show", action="store_true", help="print what diff prints")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    times = []
    for group, listed in groups.items():
        for mistake in listed:
            if options.only not in f"{group}: {mistake.name}":
                continue
            found, seconds, text = answered(mistake)
            counts[found] += 1
            times.append(seconds)
            print(f"{found:<8} {seconds:5.1f}  {group}: {mistake.name}", flush=True)
            if options.show:
                print(text)
    print(
        f"{sum(counts.values())} mistakes: {dict(counts)}; median {np.median(times):.2f} s of processor time"
    )


if __name__ == "__main__":
    measured(GROUPS, "What warpsim diff says of mistakes that users make.")
