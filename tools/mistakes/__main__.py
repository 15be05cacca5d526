"""``python -m tools.mistakes [--only TEXT] [--show]``: what ``warpsim diff`` and ``--why`` say, and how fast.

Groups are ``users/...``, ``dumps/...`` and ``engineers/...``; and, where ``--only`` asks for them and nvcc is
on the path, ``launches/...`` and ``unseen/...``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial

from .dumps import log_sources, packings, prints, step_logs, stored_types
from .engineers import (
    attention_author,
    bench_engineer,
    cuda_beginner,
    held_back,
    kernel_author,
    log_keeper,
    numerics_person,
    printf_author,
    quantizer,
    register_reader,
    right_kernels,
    triton_user,
)
from .judging import Answer, answered, listed
from .users import instruction, known, loops, printouts, scaled, warpgroups

SOURCES = {
    "users": (instruction, known, loops, warpgroups, scaled, printouts),
    "dumps": (packings, step_logs, log_sources, stored_types, prints),
    "engineers": (
        *(kernel_author, quantizer, attention_author, register_reader, log_keeper, held_back),
        *(printf_author, bench_engineer, numerics_person, triton_user, cuda_beginner, right_kernels),
    ),
}
Titles = dict[str, list[tuple[str, Callable[[], Answer]]]]


def _of_diff() -> Titles:
    """Return the answers of ``diff`` by group."""
    return {
        f"{source}/{module.__name__.rpartition('.')[2]}": [
            (case.name, partial(answered, case)) for case in module.LIST
        ]
        for source, modules in SOURCES.items()
        for module in modules
    }


def _of_launches() -> Titles:
    """Return the verdicts of ``--why`` by kernel."""
    from .launches.answers import PLANTED, answered_launch
    from .launches.judged import answer_to
    from .launches.unseen_kernels import LIST

    titles: Titles = {}
    for name, mistake in PLANTED:
        titles.setdefault(f"launches/{mistake.kernel}", []).append((name, partial(answered_launch, mistake)))
    for planted in LIST:
        name = f"{planted.category}: {planted.wrong}"
        titles.setdefault(f"unseen/{planted.kernel}", []).append((name, partial(answer_to, planted)))
    return titles


if __name__ == "__main__":
    groups = _of_diff()
    if any(word in argument for argument in sys.argv[1:] for word in ("launches", "unseen")):
        if shutil.which("nvcc") is None:
            print("nvcc is not installed", file=sys.stderr)
            sys.exit(4)
        groups = _of_launches()
    listed("What warpsim says of mistakes.", groups)
