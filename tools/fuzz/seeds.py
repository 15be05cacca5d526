"""Valid command lines with their files: what is changed begins as something that works.

Traces, kernels and dumps come from ``traces/``; archives, logs and sets of other formats are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import warpsim
from warpsim.workbench.vectors.formats import format_of

from .case import Case
from .inputs import DENSE, SCALED, SPARSE, file, npy, npz
from .seeds_of_launches import launches
from .seeds_of_texts import texts

LOG = "".join(
    "CTX 0x0 - CTA 0,0,0 - warp 0 - HMMA.16816.F32 R4, R8, R12, R4 ;:\n"
    + "".join(
        f"  * Reg{r}_T" + f"  Reg{r}_T".join(f"{t}: 0x3c003c00" for t in range(32)) + "\n" for r in range(14)
    )
    for _ in range(2)
)
SMALL = (
    ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n"
    ".maxntid 128, 1, 1\n{\n.reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .b64 %d<4>;\n"
    ".shared .align 4 .b8 s[128];\n"
    "ld.param.u64 %d1, [p];\ncvta.to.global.u64 %d1, %d1;\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\n"
    "setp.ge.u32 %p1, %r2, %r1;\n@%p1 bra DONE;\nmul.wide.u32 %d2, %r2, 4;\nadd.s64 %d3, %d1, %d2;\n"
    "ld.global.u32 %r3, [%d3+0];\nadd.s32 %r4, %r3, 0x7;\nst.global.u32 [%d3], %r4;\n"
    "DONE:\nbar.sync 0;\nret;\n}\n"
)


def seeds() -> Iterator[Case]:
    """Yield every seed."""
    for make in (_traces, _modules, _dumps, _arrays, _sets, _questions, launches, texts):
        yield from make()


def _traces() -> Iterator[Case]:
    names = ("mma_m16n8k16_f16", "mma_sp_m16n8k32_f16", "wgmma_m64n8k8_tf32", "mma_m16n8k64_mxf4nvf4")
    for name in names:
        files = {f"{name}.{suffix}": file(f"{name}.{suffix}") for suffix in ("ptx", "npz")}
        for verb in (("run", "--json"), ("verify",), ("lint",), ("view", "-o", "r.html")):
            yield Case(command=(*verb, f"{name}.ptx"), files=files)
        yield Case(command=("explain", f"{name}.ptx", "--element", "0,0"), files=files)
        yield Case(command=("diff", f"{name}.ptx"), files=files)


def _modules() -> Iterator[Case]:
    module = {"k.ptx": SMALL.encode()}
    launch = ("launch", "k.ptx", "--entry", "k", "--block", "64", "--arg", "zeros:u32:64", "--arg", "i32:64")
    yield Case(command=("check", "k.ptx"), files=module)
    yield Case(command=launch, files=module)
    yield Case(command=(*launch, "--save", "0=out.npy", "--checks", "warn"), files=module)
    yield Case(command=(*launch, "--trace-mma", "all", "--json"), files=module)
    yield Case(command=(*launch, "--origins", "0"), files=module)
    array = {"a.npy": npy(np.arange(64, dtype=np.uint32))}
    again = tuple("a.npy" if word == "zeros:u32:64" else word for word in launch)
    yield Case(command=(*again, "--expect", "0=a.npy", "--schedule", "random:3"), files=module | array)
    for name in ("reduction", "dense_tiles", "functions"):
        yield Case(command=("check", "m.ptx", "--json"), files={"m.ptx": file(f"kernels/{name}.ptx")})


def _dumps() -> Iterator[Case]:
    words = "".join(f"lane {lane}: a0 = 0x3c003c00 0x0 0x1 0x2\n" for lane in range(32)).encode()
    yield Case(command=("unpack", DENSE, "a", "d.txt"), files={"d.txt": words})
    yield Case(command=("unpack", DENSE, "a", "-", "--codes"), stdin=words)
    yield Case(command=("pack", DENSE, "c", "m.txt"), files={"m.txt": b"1 2 -3.5 4 5 6 7 8\n" * 16})
    yield Case(
        command=("compress", SPARSE, "m.txt", "--prune"), files={"m.txt": (b"1 2 3 4 " * 8 + b"\n") * 16}
    )
    yield Case(command=("diff", "x.txt", "y.txt"), files={"x.txt": words, "y.txt": words})
    yield Case(command=("replay", "--target", "sm_80", "log.txt"), files={"log.txt": LOG.encode()})


def _arrays() -> Iterator[Case]:
    a, b = npy(np.ones((16, 32), np.float16)), npy(np.ones((32, 8), np.float16))
    yield Case(
        command=("gemm", DENSE, "a.npy", "b.npy", "-o", "d.npy", "--target", "sm_80"),
        files={"a.npy": a, "b.npy": b},
    )
    yield Case(
        command=("pack", DENSE, "a", "a.npy", "--json"), files={"a.npy": npy(np.ones((16, 16), np.float16))}
    )
    words = npz(
        a=np.zeros((32, 4), np.uint32), b=np.zeros((32, 2), np.uint32), c=np.zeros((32, 4), np.uint32)
    )
    yield Case(
        command=("explain", DENSE, "o.npz", "--element", "1,2", "--target", "sm_80"), files={"o.npz": words}
    )
    blob = {"m.npy": npy(np.full((16, 4), 0x4444, np.uint16)), "a.npy": npy(np.zeros((16, 64), np.float16))}
    size = ("--rows", "16", "--k", "64")
    yield Case(command=("metadata", "f16", "m.npy", *size, "--detect", "--matrix", "a.npy"), files=blob)
    yield Case(command=("metadata", "f16", "m.npy", *size, "--from", "words", "--to", "indices"), files=blob)


def _sets() -> Iterator[Case]:
    vectors = warpsim.generate_vectors(SPARSE, target="sm_80", kind="random", count=2)
    with TemporaryDirectory() as folder:
        for suffix in ("npz", "hex", "testfloat", "h", "csv", "jsonl"):
            path = Path(folder) / f"s.{suffix}"
            format_of(path).write(path, vectors)
            files = {path.name: path.read_bytes()}
            yield Case(command=("verify", path.name), files=files)
            yield Case(
                command=("convert", path.name, "t.jsonl" if suffix != "jsonl" else "t.hex"), files=files
            )
            yield Case(command=("lint", path.name), files=files)


def _questions() -> Iterator[Case]:
    for form in (DENSE, SPARSE, SCALED):
        yield Case(command=("info", form))
        yield Case(command=("layout", form, "--operand", "a", "--element", "3,1"))
        yield Case(command=("layout", form, "--lane", "5", "--json"))
    yield Case(command=("desc", "0x4000004000010000"))
    yield Case(command=("metadata", "f16"))
    yield Case(command=("vectors", DENSE, "--target", "sm_80", "--kind", "random", "-n", "2", "-o", "v.npz"))
