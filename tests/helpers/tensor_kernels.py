"""PTX kernels around one tensor copy: shared memory is filled, the copy made, shared memory written out.

Knows the text around a statement; does not know what copies do. Parameters: a map by value, 32 coordinates
(int32, of which ``%c0`` to ``%c4`` are the first five), the bytes of shared memory before and after.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.programs.launch.launching import LaunchReport, load_text

Array = npt.NDArray[Any]
THREADS = 32

_TEXT = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 at, .param .u64 before, .param .u64 after) {{
.reg .b16 %h<5>; .reg .b32 %c<5>, %r<9>, %tile, %bar, %own; .reg .b64 %map, %at, %from, %to, %word, %step;
.reg .pred %first, %p;
.shared .align 1024 .b8 tile[{size}];
.shared .align 8 .b64 bar;
mov.u32 %own, %tid.x;
mov.u32 %tile, tile;
mov.u32 %bar, bar;
setp.eq.u32 %first, %own, 0;
ld.param.u64 %at, [at];
{coordinates}
mov.b64 %map, map;
cvta.param.u64 %map, %map;
ld.param.u64 %from, [before];
ld.param.u64 %to, [after];
mul.wide.u32 %step, %own, 16;
add.u64 %from, %from, %step;
add.u64 %to, %to, %step;
shl.b32 %r1, %own, 4;
add.u32 %r1, %r1, %tile;
mov.u32 %r2, %r1;
mov.u32 %r0, {rounds};
fill:
ld.global.v2.b64 {{%word, %step}}, [%from];
st.shared.v2.b64 [%r1], {{%word, %step}};
add.u64 %from, %from, 512;
add.u32 %r1, %r1, 512;
add.u32 %r0, %r0, -1;
setp.ne.u32 %p, %r0, 0;
@%p bra fill;
@%first mbarrier.init.shared.b64 [bar], 1;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%first bra copied;
{body}
copied:
bar.sync 0;
mov.u32 %r0, {rounds};
out:
ld.shared.v2.b64 {{%word, %step}}, [%r2];
st.global.v2.b64 [%to], {{%word, %step}};
add.u64 %to, %to, 512;
add.u32 %r2, %r2, 512;
add.u32 %r0, %r0, -1;
setp.ne.u32 %p, %r0, 0;
@%p bra out;
ret;
}}
"""
_WAIT = """
mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};
{copy}
again: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra again;
"""
_GROUP = """
{copy}
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
"""


def text(body: str, size: int, target: str = "sm_90a", version: str = "8.6") -> str:
    """The module; ``size`` bytes of shared memory, a multiple of 512."""
    coordinates = "\n".join(f"ld.global.b32 %c{place}, [%at+{4 * place}];" for place in range(5))
    coordinates += "\n" + "\n".join(f"ld.global.b16 %h{place}, [%at+{20 + 4 * place}];" for place in range(5))
    return _TEXT.format(
        body=body, size=size, rounds=size // 512, coordinates=coordinates, target=target, version=version
    )


def load(mode: str, rank: int, count: int, start: int = 0, offsets: int = 0, space: str = "cluster") -> str:
    """A load of a box of so many bytes to ``tile + start``, waited for."""
    words = f"cp.async.bulk.tensor.{rank}d.shared::{space}.global.{mode}.mbarrier::complete_tx::bytes"
    vector = ", ".join(f"%c{place}" for place in range(5 if "gather4" in mode else rank))
    more = ", {" + ", ".join(f"%h{place}" for place in range(offsets)) + "}" if offsets else ""
    copy = f"add.u32 %r3, %tile, {start};\n{words} [%r3], [%map, {{{vector}}}], [%bar]{more};"
    return _WAIT.format(bytes=count, copy=copy)


def store(mode: str, rank: int, start: int = 0, reduction: str = "") -> str:
    """A store of the box at ``tile + start``, waited for."""
    name = f"cp.reduce.async.bulk.tensor.{rank}d" if reduction else f"cp.async.bulk.tensor.{rank}d"
    words = ".".join(filter(None, (name, "global.shared::cta", reduction, mode, "bulk_group")))
    vector = ", ".join(f"%c{place}" for place in range(5 if "scatter4" in mode else rank))
    return _GROUP.format(copy=f"add.u32 %r3, %tile, {start};\n{words} [%map, {{{vector}}}], [%r3];")


def launch(
    body: str,
    map_: object,
    coordinates: Array,
    before: Array,
    *,
    target: str = "sm_90a",
    version: str = "8.6",
    **options: Any,
) -> tuple[Array, LaunchReport]:
    """The bytes of shared memory afterwards, and the report. ``coordinates`` (int32), then offsets."""
    given = np.zeros(32, np.int32)
    given[: coordinates.size] = coordinates
    after = np.zeros_like(before)
    module = load_text(text(body, before.size, target, version), "kernel.ptx")
    report = module["k"](1, THREADS, [map_, given, before, after], **options)
    return after, report
