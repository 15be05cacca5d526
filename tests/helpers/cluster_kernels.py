"""Small kernels of clusters around a few PTX statements: every thread has one word in and some words out.

Knows how to load, store and launch. Knows nothing about what the statements do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.programs.launch.launching import LaunchReport, load_text

Words = npt.NDArray[np.uint32]

HEAD = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {tuning} {{
.reg .b32 %a, %n, %own, %rank, %ranks, %peer, %t<9>, %d<{count}>; .reg .b64 %x<9>; .reg .pred %p<9>;
.reg .f32 %f<5>; .reg .b16 %h<5>;
.shared .align 128 .b8 sm[{shared}];
.shared .align 8 .b64 bar; .shared .align 8 .b64 bars[4];
mov.u32 %own, %tid.x; mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mad.lo.u32 %n, %t0, %t1, %own;
mov.u32 %rank, %cluster_ctarank; mov.u32 %ranks, %cluster_nctarank; add.u32 %peer, %rank, 1;
rem.u32 %peer, %peer, %ranks; setp.eq.u32 %p8, %own, 0;
ld.param.u64 %x8, [in]; mad.wide.u32 %x8, %n, 4, %x8; ld.global.u32 %a, [%x8];
"""
MEET = "barrier.cluster.arrive; barrier.cluster.wait;\n"


def text_of(
    body: str, outputs: int = 1, *, shared: int = 1024, target: str = "sm_90a", tuning: str = ""
) -> str:
    """A module with the kernel k, in which the body stands from line 14 on.

    The body finds %a (its word), %n and %own (numbers of the thread in grid and CTA), %rank, %ranks, %peer
    (the next rank), %p8 (the first thread of its CTA), sm, bar and bars in shared memory; it leaves %d0, ….
    """
    begin = [f"mov.b32 %d{place}, 0;" for place in range(outputs)]
    ends = [f"st.global.b32 [%x8+{4 * place}], %d{place};" for place in range(outputs)]
    head = HEAD.format(version="9.0", target=target, tuning=tuning, count=outputs + 1, shared=shared)
    address = f"ld.param.u64 %x8, [out]; mad.wide.u32 %x8, %n, {4 * outputs}, %x8;"
    return f"{head}{' '.join(begin)}\n{body}\n{address} {' '.join(ends)}\nret;\n}}\n"


def launched(
    body: str,
    ctas: int,
    threads: int,
    cluster: int | Sequence[int] | None = 2,
    *,
    values: Words | None = None,
    outputs: int = 1,
    shared: int = 1024,
    tuning: str = "",
    **options: Any,
) -> tuple[Words, LaunchReport]:
    """``(ctas, threads, outputs)`` words, and the report."""
    text = text_of(body, outputs, shared=shared, tuning=tuning)
    given = np.arange(1, ctas * threads + 1, dtype=np.uint32) if values is None else values
    found = np.zeros((ctas, threads, outputs), np.uint32)
    report = load_text(text)["k"](ctas, threads, [given, found], cluster=cluster, **options)
    return found, report


def run(body: str, ctas: int, threads: int, cluster: int | Sequence[int] | None = 2, **options: Any) -> Words:
    """``(ctas, threads, outputs)`` words."""
    return launched(body, ctas, threads, cluster, **options)[0]
