"""What ``warpsim.why`` says of mistakes planted in kernels, and how fast; it needs nvcc."""

from __future__ import annotations

import re
import time

import warpsim
from tools.mistakes.judging import Answer, outcome_of
from warpsim.programs.launch.launching import load_text

from .changed import TENSOR_KERNELS, changed
from .kernels import KERNELS, Prepared, compiled
from .listed import LIST, LaunchMistake
from .tensor_listed import CHANGES, Change


def answered_launch(mistake: LaunchMistake | Change) -> Answer:
    """Return the outcome of a mistake, the seconds, and the verdict."""
    prepared, text = _prepared(mistake)
    kernel = load_text(text, f"{mistake.kernel}.ptx")[mistake.kernel]
    start = time.perf_counter()
    try:
        verdict = warpsim.why(
            kernel,
            prepared.grid,
            prepared.block,
            prepared.arguments,
            prepared.expected,
            prepared.tolerance,
            shared_bytes=prepared.shared_bytes,
            cluster=prepared.cluster,
        )
    except Exception as error:
        return "crashed", time.perf_counter() - start, repr(error)
    seconds = time.perf_counter() - start
    text = str(verdict)
    first = re.split(r"\nalso: ", text)[0]
    return outcome_of(mistake, text, first, bool(verdict.causes)), seconds, text


def _prepared(mistake: LaunchMistake | Change) -> tuple[Prepared, str]:
    """Return a launch and the PTX with the mistake in it."""
    if isinstance(mistake, Change):
        return TENSOR_KERNELS[mistake.kernel](), changed(mistake)
    return KERNELS[mistake.kernel](), compiled(mistake.kernel, mistake.number, mistake.defines)


PLANTED: tuple[tuple[str, LaunchMistake | Change], ...] = (
    *((f"{mistake.number}: {mistake.name}", mistake) for mistake in LIST),
    *((change.name, change) for change in CHANGES),
)
