"""Why a change that no launch notices does no harm.

A row holds for changes that were missed, of entries, statements and changes that match; the first one counts.
Each was looked at; what has no row is open.
"""

from __future__ import annotations

import re

from .changes import Change

_RING = "cooperative|multicast|pingpong|stream_k"
_TENSOR = "tensor_(?!ring|split)"  # pipelines with products in tensor memory
_ROWS = (  # entries or entry:line, statements, changes, why
    (
        _TENSOR,
        r"tcgen05\.fence",
        "left out",
        "the mbarriers and barriers next to it acquire and release; compiled kernels of CUTLASS and Triton "
        "have none",
    ),
    (
        _TENSOR,
        r"tcgen05\.relinquish",
        "left out",
        "only another CTA on the same multiprocessor waits for it",
    ),
    (
        r"tensor_(?:stored:(?:57|69|73)|attention:469)$",
        r"mbarrier\.init",
        ".*",
        "this kernel does not use the object",
    ),
    (
        "tensor_(?:f16|mxf8)",
        r"tcgen05\.wait::ld",
        "left out",
        "the last wait of the warp covers all of its loads, and nothing overwrites these columns before",
    ),
    (
        "tensor_f16:608|tensor_mxf8:2536",
        r"tcgen05\.commit",
        "left out|the next stage's mbarrier",
        "the last step: nothing waits for this stage again, and the commit behind it covers the products",
    ),
    (
        _TENSOR,
        r"bar\.warp\.sync",
        "left out",
        "the lanes meet at the barrier behind it",
    ),
    (
        "stream_k_f16:3830",
        r"mbarrier\.try_wait",
        "left out",
        "the loop of the first steps, fewer than there are stages: each is empty, nobody has to wait",
    ),
    (
        ".",
        r"fence\.mbarrier_init",
        "left out",
        "the CTA's barrier, or the .release of the cluster's, makes the initialisation known; the fence is "
        "for other CTAs behind a .relaxed one (cluster_argmax: reported)",
    ),
    (
        r"(?!pingpong_f16:(?:1392|1418)$)",  # whose new numbers are those of the other warpgroup
        r"bar\.sync",
        "the next barrier",
        "all threads that meet there have the new number, and nobody else meets at it in the meantime",
    ),
    (
        _RING,
        r"mbarrier\.try_wait",
        "the next stage's mbarrier",
        "waits for the reads of a later step, which come behind those of the stage that is filled: slower, "
        "and right",
    ),
    (
        ".",
        r"setmaxnreg\.inc",
        "left out",
        "PTX has as many registers as it names; ptxas gives this branch what the kernel was launched with",
    ),
    (
        ".",
        r"wgmma\.fence",
        "left out",
        "since the fence before, only wgmma of one shape have touched the accumulators: PTX orders those",
    ),
    (
        "cooperative_f16",
        r"wgmma\.wait_group",
        "left out|one group more",
        "the last step: the wait for all groups follows, and the stage that it frees is not filled again",
    ),
    (
        _RING,
        r"mbarrier\.arrive\.(?!expect)",
        "left out|the next stage's mbarrier",
        "the last step: nobody waits for this stage again",
    ),
    (
        "multicast_f16",
        r"bar\.warp\.sync",
        "left out",
        "the lanes meet where the branch ends; no memory is shared between them",
    ),
    (
        "bulk_ring|tensor",
        r"bar\.warp\.sync",
        "left out",
        "what it orders is ordered without: bytes may come before they are expected, as the phase also "
        "lacks the arrival; and all lanes have read when the warp's ldmatrix and mma.sync are done",
    ),
    (
        "pingpong_f16",
        r"bar\.sync",
        "left out",
        "the barrier of the next turn comes before the next stores, and the lane that waits for its copy "
        "is there, too",
    ),
)


def harmless(entry: str, change: Change) -> str:
    """Return why a change that was missed does no harm; "" where no reason is stated."""
    for entries, statements, changes, why in _ROWS:
        found = re.match(entries, f"{entry}:{change.line}") and re.match(statements, change.statement)
        if found and re.fullmatch(changes, change.what):
            return why
    return ""
