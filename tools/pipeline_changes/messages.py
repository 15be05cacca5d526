"""Messages as users see them: one change a kind of mistake, and the whole of what a launch says.

Knows which change stands for which mistake; does not know how it is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from .changes import changes
from .kernels import PIPELINES
from .trial import became

_TEN = (  # the mistake, the pipeline, a line, the change, the schedule
    ("the wait for a full stage is missing", "cooperative_f16", 415, "left out"),
)


def messages() -> Iterator[str]:
    """Each mistake and what is said of it."""
    for mistake, entry, line, what in _TEN:
        pipeline = next(one for one in PIPELINES if one.entry == entry)
        change = next(one for one in changes(pipeline) if (one.line, one.what) == (line, what))
        found = became(pipeline, change.text)
        yield f"--- {mistake}: line {line}, {change.statement}, {what} (schedule {found.schedule})"
        yield f"{found.message}\n"
