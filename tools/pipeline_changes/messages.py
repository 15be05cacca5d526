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
    ("D is read and its commit not waited for", "tensor_in_turn", 1277, "left out"),
    ("D is read and multiplied into at once", "tensor_stored", 233, "left out"),
    ("loads of D are not waited for before the next product", "tensor_in_turn", 1299, "left out"),
    ("stores of A are not waited for", "tensor_attention", 876, "left out"),
    ("no fence between stores and the product of them", "tensor_stored", 210, "left out"),
    ("a stage is filled again too early", "tensor_in_turn", 1073, "left out"),
    ("the mbarrier counts a thread too few", "tensor_stored", 44, "count - 1"),
    ("a commit leaves out the other CTA of the pair", "tensor_pair", 1611, "only to itself"),
    ("columns are freed while they are read", "tensor_stored", 403, "left out"),
    ("columns are not freed", "tensor_stored", 408, "left out"),
    ("too few columns are allocated", "tensor_stored", 85, "half the columns"),
    ("a warp loads lanes of another", "tensor_stored", 250, "the next warp's lanes"),
    ("the descriptor is that of a sparse product", "tensor_stored", 323, "the sparse bit"),
)


def messages(target: str) -> Iterator[str]:
    """Yield each mistake in pipelines for a target, and what is said of it."""
    for mistake, entry, line, what in _MISTAKES:
        pipeline = next(one for one in PIPELINES if one.entry == entry)
        if pipeline.target != target:
            continue
        change = next(one for one in changes(pipeline) if (one.line, one.what) == (line, what))
        found = became(pipeline, change.text)
        yield f"{mistake}; {entry} with line {line}, {change.statement}: {what} (schedule {found.schedule})"
        yield f"{found.message}\n"
