"""``python -m tools.mistakes [--only TEXT] [--show]``: what ``warpsim.why`` says of planted mistakes.

It compiles each with nvcc. Outcomes: named (the first cause is certain, and its line or kind is right), hint
(a cause near a guilty line, or at the matrix instruction that takes the wrong operand), nothing, wrong (a
certain cause elsewhere), false equal, false other, crash; right, of what is no mistake.
"""

from __future__ import annotations

import shutil
import sys
from functools import partial

from tools.judging import listed

from . import unseen_kernels
from .judged import answer_to

if __name__ == "__main__":
    if shutil.which("nvcc") is None:
        print("nvcc is not installed", file=sys.stderr)
        sys.exit(4)
    cases: dict[str, list[tuple[str, partial[tuple[str, float, str]]]]] = {}
    for planted in unseen_kernels.LIST:
        title = f"{planted.category}: {planted.wrong}"
        cases.setdefault(planted.kernel, []).append((title, partial(answer_to, planted)))
    listed("What warpsim.why says of mistakes planted in kernels.", cases)
