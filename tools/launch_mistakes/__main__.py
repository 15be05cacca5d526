"""``python -m tools.launch_mistakes [--only TEXT] [--show]``: what ``warpsim.why`` says, and how fast."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial

import warpsim
from tools.judging import Answer, listed, outcome_of
from warpsim.host.launching import load_text

from .kernels import KERNELS, compiled
from .listed import LIST, LaunchMistake


def answered(mistake: LaunchMistake) -> Answer:
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
    text = str(verdict)
    first = re.split(r"\nalso: ", text)[0]
    return outcome_of(mistake, text, first, bool(verdict.causes)), seconds, text


def main() -> None:
    """Print a line for each mistake, and the sums."""
    groups: dict[str, list[tuple[str, Callable[[], Answer]]]] = {}
    for mistake in LIST:
        title = f"{mistake.number}: {mistake.name}"
        groups.setdefault(mistake.kernel, []).append((title, partial(answered, mistake)))
    listed("What --why says of mistakes planted in kernels; needs nvcc.", groups)


if __name__ == "__main__":
    main()
