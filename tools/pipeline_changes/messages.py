"""Messages as users see them: one change a kind of mistake, and the whole of what a launch says.

Knows which change stands for which mistake; does not know how it is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from .changes import changes
from .kernels import PIPELINES
from .trial import became

_MISTAKES = (  # the mistake, the pipeline, a line, what is done there
    ("nobody waits until the stage is full", "cooperative_f16", 303, "left out"),
    ("the wait has the other parity", "cluster_argmax", 366, "other parity"),
    ("too few bytes are expected", "bulk_ring", 152, "16 bytes less"),
    ("too many bytes are expected: a deadlock with phases", "cooperative_f16", 129, "16 bytes more"),
    ("no fence between stores and the copy of them", "cooperative_f16", 675, "left out"),
    ("the stage is overrun: its barrier expects too few readers", "tensor_ring", 65, "count - 1"),
    ("a phase is overrun: readers arrive at another stage", "bulk_ring", 302, "the next stage's mbarrier"),
    ("the initialisation is not fenced", "cluster_argmax", 272, "left out"),
    ("a CTA leaves its cluster too early", "multicast_f16", 2135, "left out"),
    ("what a copy still reads is written again", "tensor_ring", 325, "left out"),
    ("nobody gives registers back", "cooperative_f16", 94, "left out"),
    ("a barrier counts too few threads", "pingpong_f16", 1022, "32 threads less"),
)


def messages() -> Iterator[str]:
    """Yield each mistake and what is said of it."""
    for mistake, entry, line, what in _MISTAKES:
        pipeline = next(one for one in PIPELINES if one.entry == entry)
        change = next(one for one in changes(pipeline) if (one.line, one.what) == (line, what))
        found = became(pipeline, change.text)
        yield f"{mistake}; {entry} with line {line}, {change.statement}: {what} (schedule {found.schedule})"
        yield f"{found.message}\n"
