"""Random legal inputs to what there is twice: both give the same.

    paths      instructions on every path of computation (paths.py)
    programs   structured programs in all lanes at once, and a thread at a time in Python integers
    hazards    programs of wgmma, judged by the checker and by a twin without state
    text       a form printed and read again; its statement as it is said to be
    files      vector sets written in every format and read again
    guards     guarded statements of every row as machine code, and as NumPy executes them

Each is what the tests do a few times, for as long as one likes; a case depends on the seed and its number
alone.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

import warpsim
from tests.helpers.guarded_programs import SHORT, Gate, traced_rows
from tests.helpers.naive_hazards import Naive, facts, random_lines
from tests.helpers.random_programs import VARIABLES, as_ptx, random_program, run_thread
from warpsim.machine.native.objects import available
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.vectors.formats import read_vectors, write_vectors

from .paths import kinds, random_paths

Subject = Callable[[Random], tuple[str, list[str]]]  # what was compared, and what differs
_SUFFIXES = ("npz", "hex", "testfloat", "h", "csv", "jsonl")
_SCHEDULES = ("program", "earliest", "latest", "random:1", "random:2")


def compare(seed: str, seconds: float, most: int | None = None, only: str | None = None) -> int:
    """Compare for a while, of one subject if it is given; 1 if anything differs."""
    stop, number, found, counts = time.monotonic() + seconds, 0, 0, Counter[str]()
    names = [only] if only else [*SUBJECTS]
    while time.monotonic() < stop and number != most:
        random = Random(f"differential {seed} {number}")
        name = random.choices(names, [SUBJECTS[name][1] for name in names])[0]
        what, wrong = _tried(SUBJECTS[name][0], random)
        for item in wrong:
            print(f"seed {seed}, case {number}, {name}: {what}: {item}", flush=True)
        found += bool(wrong)
        counts[name] += 1
        number += 1
    listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"{number} cases ({listed}), {found} finds", file=sys.stderr)
    if counts["guards"]:
        print(f"guards: {_GATE}", file=sys.stderr)
    return int(found > 0)


def _tried(subject: Subject, random: Random) -> tuple[str, list[str]]:
    """Return an error is a difference, too: all that is tried is legal."""
    try:
        return subject(random)
    except Exception:
        return "an error", [traceback.format_exc()[-2000:]]


def programs(random: Random) -> tuple[str, list[str]]:
    """Return a random program on random data, grid, block and schedule."""
    program = random_program(random, depth=random.randint(1, 4))
    block, grid = random.choice([1, 7, 32, 33, 64, 96, 160]), random.choice([1, 2, 5])
    rng = np.random.default_rng(random.randrange(1 << 30))
    values = rng.integers(0, 1 << 32, (grid * block, VARIABLES), np.uint32)
    values[: len(values) // 2] &= random.choice([1, 7, 255])  # small ones, so that threads also agree
    expected = [run_thread(program, row) for row in values.tolist()]
    text, schedule = as_ptx(program), random.choice(_SCHEDULES)
    load_text(text)["run"](grid, block, [values], schedule=schedule)
    wrong = [thread for thread, row in enumerate(expected) if values[thread].tolist() != row]
    return f"grid {grid}, block {block}, {schedule}", [f"threads {wrong[:5]} of\n{text}"] * bool(wrong)


def hazards(random: Random) -> tuple[str, list[str]]:
    """Return a random program of wgmma and what touches its registers and memory."""
    program = random_lines(random)
    found, expected = facts(program), Naive(program).found
    listed = "\n".join(line.text for line in program)
    return listed, [f"{item} is said by one only" for item in sorted(map(str, found ^ expected))]


def text(random: Random) -> tuple[str, list[str]]:
    """Return a form's mnemonic, its modifiers in any order, and as a statement in a module."""
    form = random.choice(random.choice(kinds()))
    wrong = []
    if (read := warpsim.decode(form.mnemonic, target=form.target)) != form:
        wrong.append(f"reads as {read}")
    if (again := warpsim.decode(f"{read.mnemonic} ;", target=form.target)).mnemonic != form.mnemonic:
        wrong.append(f"prints as {again.mnemonic}")
    return f"{form.mnemonic} on {form.target}", wrong


def files(random: Random) -> tuple[str, list[str]]:
    """Return vectors of a form in every format, and back."""
    form = random.choice(random.choice(kinds()))
    seed, kind = random.randrange(1 << 30), random.choice(["random", "corner"])
    try:
        vectors = warpsim.generate_vectors(form, kind=kind, count=random.randint(1, 5), seed=seed)
    except warpsim.NotModelled:
        return f"{form.mnemonic} (not modelled)", []
    wrong = []
    with TemporaryDirectory() as folder:
        for suffix in _SUFFIXES:
            path = Path(folder) / f"s.{suffix}"
            write_vectors(path, vectors)
            read, arrays = read_vectors(path).arrays(), vectors.arrays()
            same = read.keys() == arrays.keys() and all(
                np.array_equal(read[array], arrays[array]) for array in arrays
            )
            wrong += [] if same else [f"{suffix} holds something else"]
    return f"{form.mnemonic} on {form.target}, {kind} {seed}", wrong


def guards(random: Random) -> tuple[str, list[str]]:
    """Return random guarded programs of some rows."""
    if not available():
        return "no machine code here", []
    before = len(_GATE.wrong)
    rows = random.choices(traced_rows(), k=2) + random.choices(traced_rows(SHORT), k=6)
    _GATE.compare(random, rows)
    return f"programs of {', '.join(row.opcode for row in rows)}", _GATE.wrong[before:]


_GATE = Gate()  # counts what is compared
SUBJECTS: dict[str, tuple[Subject, int]] = {  # and how often
    "paths": (random_paths, 12),
    "programs": (programs, 4),
    "hazards": (hazards, 8),
    "text": (text, 4),
    "files": (files, 2),
    "guards": (guards, 4),
}
