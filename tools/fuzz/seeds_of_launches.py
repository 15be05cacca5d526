"""Launches, and what is done with the recordings that they leave.

Kernels of a few lines that touch what launched text can: matrix instructions, copies of every kind, barriers,
clusters, atomics, calls, local memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case
from .inputs import DENSE, SPARSE, WARPGROUP, left_by, npy

_LIMIT = ("--limit", "30000")


def _kernel(body: str, more: str = "", parameters: str = ".param .u64 p", target: str = "sm_90a") -> bytes:
    return (
        f".version 8.6\n.target {target}\n.address_size 64\n{more}\n.visible .entry k({parameters})\n{{\n"
        ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<20>;\n.reg .f32 %f<9>;\n.reg .b64 %d<12>;\n"
        ".local .b8 l[16];\n.shared .align 1024 .b8 s[8192];\n.shared .align 8 .b64 bar;\n"
        f"ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %d2, %r1, 16, %d1;\n{body}\nret;\n}}\n"
    ).encode()


_WORDS = "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d2];\n"
_F32 = "{%f1, %f2, %f3, %f4}"
_STORED = f"st.global.v4.f32 [%d2], {_F32};"
_PRODUCTS = (
    f"{_WORDS}and.b32 %r2, %r2, 0x3fff3fff;\nmov.b32 %f1, 0f3F800000;\nmov.u32 %r6, 0x44444444;\nLOOP:\n"
    f"{DENSE} {_F32}, {{%r2, %r2, %r2, %r2}}, {{%r2, %r2}}, {{%f1, %f1, %f1, %f1}};\n"
    f"{SPARSE} {_F32}, {{%r2, %r2, %r2, %r2}}, {{%r2, %r2, %r2, %r2}}, {_F32}, %r6, 0x0;\n"
    f"add.u32 %r7, %r7, 1;\nsetp.lt.u32 %p1, %r7, 2;\n@%p1 bra LOOP;\n{_STORED}"
)
_TILES = (
    f"{_WORDS}mov.u32 %r9, s;\nshl.b32 %r10, %r1, 4;\nadd.u32 %r9, %r9, %r10;\n"
    "cp.async.cg.shared.global [%r9], [%d2], 16;\ncp.async.commit_group;\n"
    "cp.async.wait_group 0;\nbar.sync 0;\n"
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r9];\n"
    "movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r2;\n"
    "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r9], {%r6, %r5};\nbar.sync 0;\n"
    "st.global.v4.u32 [%d2], {%r2, %r3, %r4, %r6};"
)
_WAIT = "again:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra again;\n"
_BULK = (
    "setp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n"
    "bar.sync 0;\nmov.u32 %r9, s;\n@!%p1 bra again;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%d1], 512, [bar];\n"
    f"{_WAIT}bar.sync 0;\n@!%p1 bra done;\ncp.async.bulk.global.shared::cta.bulk_group [%d1], [%r9], 512;\n"
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\ndone:"
)
_TENSOR = (
    "setp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n"
    "bar.sync 0;\nmov.b64 %d3, map;\ncvta.param.u64 %d3, %d3;\nmov.u32 %r9, s;\n@!%p1 bra again;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[%r9], [%d3, {0, 0}], [bar];\n"
    f"{_WAIT}shl.b32 %r10, %r1, 4;\nadd.u32 %r9, %r9, %r10;\n"
    "ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r9];\n"
    "st.global.v4.u32 [%d2], {%r2, %r3, %r4, %r5};"
)
_CLUSTER = (
    "mov.u32 %r2, %cluster_ctarank;\nxor.b32 %r3, %r2, 1;\nmov.u32 %r9, s;\nst.shared.u32 [%r9], %r2;\n"
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
    "mapa.shared::cluster.u32 %r4, %r9, %r3;\nld.shared::cluster.u32 %r5, [%r4];\n"
    "barrier.cluster.arrive;\nbarrier.cluster.wait;\nred.global.add.u32 [%d1], %r5;"
)
_FUNCTIONS = (
    "add.u32 %r2, %r1, 3;\n{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a+0], %r2;\n"
    "call.uni (b), f, (a);\nld.param.b32 %r3, [b+0];\n}\n"
    "vote.sync.ballot.b32 %r4, %p1, -1;\nshfl.sync.bfly.b32 %r5, %r3, 1, 31, -1;\n"
    "redux.sync.add.s32 %r6, %r5, -1;\nmatch.any.sync.b32 %r7, %r6, -1;\nactivemask.b32 %r8;\n"
    "atom.global.add.u32 %r9, [%d1], %r5;\ncvt.rn.f16x2.f32 %r10, %f1, %f2;\n"
    "lop3.b32 %r11, %r9, %r10, %r8, 0x96;\nprmt.b32 %r12, %r11, %r9, 0x5410;\n"
    "ts: .branchtargets one, two;\nand.b32 %r13, %r1, 1;\nbrx.idx %r13, ts;\none:\nex2.approx.f32 %f3, %f1;\n"
    "two:\nst.local.u32 [l+4], %r12;\nld.local.u32 %r14, [l+4];\nst.global.v2.u32 [%d2], {%r12, %r14};"
)
_FUNCTION = (
    ".const .align 4 .u32 c[2] = {5, 7};\n.global .align 4 .u32 g[4] = {1, 2};\n"
    ".func (.param .b32 b) f(.param .b32 a)\n{\n.reg .b32 %r<4>;\nld.param.b32 %r1, [a+0];\n"
    "ld.const.u32 %r2, [c+4];\nadd.u32 %r3, %r1, %r2;\nst.param.b32 [b+0], %r3;\nret;\n}\n"
)
_WGMMA = (
    "mov.b64 %d3, 0x4000004000010000;\nwgmma.fence.sync.aligned;\n"
    f"{WARPGROUP} {_F32}, %d3, %d3, 1, 1, 1, 0, 0;\n"
    f"wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n{_STORED}"
)
_WMMA = (
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%d1], 16;\n"
    "wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%d1], 16;\n"
    "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%d1], {%r2, %r3, %r4, %r5}, 16;"
)
_KERNELS = {  # name -> text, and more words
    "products": (_kernel(_PRODUCTS), ("--schedule", "random:1")),
    "tiles": (_kernel(_TILES, target="sm_90"), ("--schedule", "latest", "--watch", "%r6")),
    "bulk": (_kernel(_BULK), ("--schedule", "latest", "--timeline", "t.svg")),
    "cluster": (_kernel(_CLUSTER), ("--grid", "2", "--cluster", "2")),
    "functions": (_kernel(_FUNCTIONS, _FUNCTION), ("--break", "40", "--lane", "3")),
    "wmma": (_kernel(_WMMA, target="sm_80"), ("--checks", "off", "--json")),
}  # fmt: skip


def launches() -> Iterator[Case]:
    """Yield every seed."""
    for name, (text, more) in _KERNELS.items():
        words = (
            "launch",
            "k.ptx",
            "--entry",
            "k",
            "--block",
            "32",
            "--arg",
            "random:u32:4096:7",
            *_LIMIT,
            *more,
        )
        yield Case(command=words, files={"k.ptx": text})
        if name in ("functions", "bulk"):
            yield Case(command=("check", "k.ptx"), files={"k.ptx": text})
    yield from _with_maps()
    yield from _warpgroups()
    yield from _recordings()


def _with_maps() -> Iterator[Case]:
    text = _kernel(_TENSOR, parameters=".param .align 64 .b8 map[128], .param .u64 p")
    launch = ("launch", "k.ptx", "--entry", "k", "--block", "32")
    for spelled in ("random:f16:64x64:1:box=8x32:swizzle=64B", "1:box=16x16:element=u32:shape=64x32"):
        words = (*launch, "--arg", f"tensor_map:{spelled}", "--arg", "random:u32:4096:7", *_LIMIT)
        yield Case(command=(*words, "--save", "1=o.npy"), files={"k.ptx": text})
    yield Case(command=("desc", "--map", "f16:4096x4096:box=64x64:swizzle=128B"))
    columns = "s8:8x30x30x64:lower=-1x-1:upper=-1x-1:channels=64:pixels=128"
    yield Case(command=("desc", "--map", columns, "--json", "--start", "1024"))
    yield Case(command=("desc", "--map", "m.bin"), files={"m.bin": bytes(range(128))})


def _warpgroups() -> Iterator[Case]:
    launch = ("launch", "k.ptx", "--entry", "k", "--block", "128", "--arg", "zeros:u32:4096", *_LIMIT)
    files = {"k.ptx": _kernel(_WGMMA)}
    yield Case(command=(*launch, "--checks", "off"), files=files)
    recorded = left_by(
        Case(command=(*launch, "--checks", "off", "--trace-mma", "r.npz"), files=files), "r.npz"
    )
    yield Case(command=("view", "r.npz", "-o", "r.html"), files={"r.npz": recorded})
    yield Case(command=("explain", "r.npz", "--element", "0,0"), files={"r.npz": recorded})


def _recordings() -> Iterator[Case]:
    """Yield recordings of a loop, as they come and with origins, and what reads them."""
    files = {"k.ptx": _KERNELS["products"][0]}
    launch = ("launch", "k.ptx", "--entry", "k", "--block", "64", "--arg", "random:u32:64x4:7", *_LIMIT)
    kept = (*launch, "--trace-mma", "r.npz", "--timeline", "t.svg")
    yield Case(command=(*kept, "--select", "warp=1 step=1"), files=files)
    yield Case(command=(*launch, "--origins", "A=0", "--fragment", "23:a:1"), files=files)
    recorded = left_by(Case(command=(*kept, "--origins", "p"), files=files), "r.npz")
    second = tuple(word.replace(":7", ":8") for word in kept)
    other = left_by(Case(command=second, files=files), "r.npz")
    read = {"r.npz": recorded}
    for words in (
        ("run", "--show", "all"),
        ("verify", "--show", "1"),
        ("lint", "--json"),
        ("diff", "--select", "warp=1"),
    ):
        yield Case(command=(*words, "r.npz"), files=read)
    yield Case(command=("view", "r.npz", "-o", "r.html", "--select", "cta=0,0 warp=0 step=1"), files=read)
    yield Case(
        command=("explain", "r.npz", "--element", "1,2", "--event", "1", "--html", "e.html"), files=read
    )
    yield Case(command=("diff", "r.npz", "s.npz"), files={**read, "s.npz": other})
    d = {"d.npy": npy(np.zeros((4, 16, 8), np.float32))}
    yield Case(command=("diff", "r.npz", "D=d.npy", "--select", "line=22"), files=read | d)
