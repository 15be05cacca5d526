"""The verdict on a planted mistake, judged by its answer, and by kinds and lines of its causes."""

from __future__ import annotations

import difflib
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import warpsim
from tests.workbench.unseen_kernels import references
from tests.workbench.unseen_kernels.launches import FOLDER, LAUNCHES, Drawn
from tools.mistakes.judging import Answer

from .unseen_kernels import CONSUMED, KINDS, Planted

NEAR = 2  # lines from a guilty line to where a cause is a hint
PRODUCTS = ("multiply", "wgmma_")  # in calls of matrix instructions


def answer_to(planted: Planted) -> Answer:
    """Compile a planted mistake, ask why, and return the outcome, the seconds and the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{planted.kernel}.cu"
        source.write_text(edited(planted))
        ptx = compiled(source, LAUNCHES[planted.kernel].chip)
        start = time.perf_counter()
        try:
            verdict = asked(planted.kernel, ptx)
        except warpsim.WarpsimError as error:
            return "nothing", time.perf_counter() - start, f"error: {error}"
        except Exception as error:
            return "crash", time.perf_counter() - start, f"{type(error).__name__}: {error}"
        return judged(planted, verdict), time.perf_counter() - start, str(verdict)


def edited(planted: Planted) -> str:
    """Return the source with the mistake. Raises ValueError where ``old`` is not there once."""
    text = (FOLDER / f"{planted.kernel}.cu").read_text()
    if text.count(planted.old) != 1:
        raise ValueError(f"{planted.kernel}: {planted.old!r} occurs {text.count(planted.old)} times")
    return text.replace(planted.old, planted.new)


def compiled(source: Path, chip: str) -> Path:
    """Compile a source with lines of its text; return the PTX. Raises ValueError with nvcc's messages."""
    result = source.with_suffix(".ptx")
    command = ["nvcc", "-ptx", "-O3", "-lineinfo", f"-arch={chip}", f"-I{FOLDER}"]
    done = subprocess.run(
        [*command, str(source), "-o", str(result)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(f"{source.name}: {done.stderr or done.stdout}")
    return result


def asked(kernel: str, ptx: Path, seed: int = 1) -> Any:
    """Return the verdict on a launch of a kernel's PTX, with its reference."""
    launch = LAUNCHES[kernel]
    arguments = launch.arguments(Drawn(seed))
    module = warpsim.load(ptx)
    return warpsim.why(
        module[kernel], launch.grid, launch.block, arguments, reference=getattr(references, kernel)
    )


def guilty_lines(planted: Planted) -> set[int]:
    """Return numbers of changed lines of the edited source, of neighbours of a deletion, and of ``at``."""
    before, after = (FOLDER / f"{planted.kernel}.cu").read_text().splitlines(), edited(planted).splitlines()
    lines = {number for number, text in enumerate(after, 1) if any(part in text for part in planted.at)}
    for tag, _, _, start, stop in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "delete":
            lines |= {start, start + 1}
        elif tag != "equal":
            lines |= set(range(start + 1, stop + 1))
    return lines


def judged(planted: Planted, verdict: Any) -> str:
    """Return the outcome of a verdict."""
    answer = verdict.equivalence.answer if verdict.equivalence is not None else "undecided"
    if planted.outcome == "equal":
        claims = [cause for cause in verdict.causes if certain(cause, verdict)]
        return (
            "false other"
            if answer == "other"
            else "wrong"
            if claims
            else "right"
            if answer == "equal"
            else "nothing"
        )
    if planted.outcome == "values":
        return "named" if answer == "equal" else "false other" if answer == "other" else "nothing"
    if planted.outcome == "other" and answer == "equal" and not verdict.causes:
        return "false equal"
    return of_causes(planted, verdict)


def of_causes(planted: Planted, verdict: Any) -> str:
    """Return named, hint, nothing or wrong, by the kinds and lines of causes."""
    if not verdict.causes:
        return "nothing"
    first, guilty = verdict.causes[0], guilty_lines(planted)
    sure = certain(first, verdict)
    kinds = KINDS.get(planted.category, ())
    if sure and (lines_of(first) & guilty or first.kind in kinds):
        return "named"
    near = {line + step for line in guilty for step in range(-NEAR, NEAR + 1)}
    if planted.category in CONSUMED:
        near |= {
            number
            for number, text in enumerate(edited(planted).splitlines(), 1)
            if any(name in text for name in PRODUCTS)
        }
    if sure and not lines_of(first):
        return "hint"
    if any(lines_of(cause) & near or cause.kind in kinds for cause in verdict.causes):
        return "hint"
    return "wrong" if sure else "nothing"


def certain(cause: Any, verdict: Any) -> bool:
    """Return whether a cause is stated as fact: a finding, a repair, or a proof."""
    located = verdict.located
    if located is None or located.certainty == "proven":
        return True
    return (located.loaded or located.location) != cause.location


def lines_of(cause: Any) -> set[int]:
    """Return lines of the kernel's source where statements of a cause stand, or are inlined."""
    places = [cause.location, *(place for _, place in cause.also)]
    lines = set()
    for place in places:
        line = place.source if place is not None else None
        while line is not None:
            lines |= {line.line} if line.file.endswith(".cu") else set()
            line = line.inlined_at
    return lines
