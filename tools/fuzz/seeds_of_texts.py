"""What people paste and what libraries write: printouts, decimals, logs, archives; and questions about them.

Also the verbs that read nothing, so that their options are changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

import warpsim

from .case import Case
from .inputs import DENSE, SPARSE, WARPGROUP, file, npy, npz, safetensors

_RANDOM = np.random.default_rng(1)


def texts() -> Iterator[Case]:
    """Yield every seed."""
    for make in (_printouts, _loops, _logs, _archives, _products, _descriptors, _questions, _clusters):
        yield from make()


def _printed(array: object) -> bytes:
    return str(array).encode()


def _printouts() -> Iterator[Case]:
    """Yield matrices as NumPy and PyTorch print them, registers as printfs do, in forms of one's own, too."""
    np.set_printoptions(threshold=10_000, linewidth=200)
    matrix = _RANDOM.standard_normal((16, 16)).astype(np.float16)
    tensor = "tensor(" + np.array2string(matrix, separator=", ") + ")\n"
    np.set_printoptions(threshold=1000, linewidth=75)
    yield Case(command=("pack", DENSE, "a", "m.txt"), files={"m.txt": tensor.encode()})
    yield Case(command=("pack", DENSE, "a", "-", "-o", "a.npy"), stdin=_printed(matrix))
    rows = b"".join(b"row %d: 0.5 1.5 -2e-3 inf nan 0x1.8p3 3.0f 4\n" % row for row in range(16))
    yield Case(command=("pack", DENSE, "c", "m.txt", "--json"), files={"m.txt": rows})
    own = b"".join(b"t%02d.a%d <= 3c00%04x\n" % (lane, reg, reg) for lane in range(32) for reg in range(4))
    own += own.replace(b".a", b".d") + own.replace(b".a", b".c") + own[: len(own) // 2].replace(b".a", b".b")
    words = ("--format", "t{lane}.{name}{reg} <= {hex}")
    yield Case(command=("diff", DENSE, "--target", "sm_80", *words, "u.log"), files={"u.log": own})
    decimals = "".join(f"lane {lane}: d = {lane}.5000 1.2500 -3.0000 1e-5\n" for lane in range(32)).encode()
    operands = {name: npy(np.full((32, 2 if name == "b" else 4), 0x3C003C00, np.uint32)) for name in "abc"}
    given = tuple(f"{name}={name}.npy" for name in "abc")
    yield Case(
        command=("diff", DENSE, "--target", "sm_80", *given, "d=d.txt"),
        files={f"{name}.npy": content for name, content in operands.items()} | {"d.txt": decimals},
    )
    words = file("dumps/rows_8_15.txt").splitlines()[:16]
    files = {"x.txt": b"\n".join(words), "y.txt": b"\n".join(words[::-1])}
    yield Case(command=("diff", "--type", "f16", "x.txt", "y.txt"), files=files)
    dump = {"rows.txt": file("dumps/rows_8_15.txt")}
    yield Case(command=("unpack", SPARSE, "e", "rows.txt", "--selector", "0"), files=dump)
    yield Case(command=("lint", SPARSE, "--target", "sm_80", "rows.txt", "selector=0"), files=dump)


def _loops() -> Iterator[Case]:
    """Yield loops along k that are wrong, as matrices: the search of diff, and explain."""
    a, b = (_RANDOM.standard_normal(shape).astype(np.float16) for shape in ((16, 32), (32, 8)))
    wrong = warpsim.gemm(DENSE, a, np.concatenate([b[:16], b[:16]]), target="sm_80")
    files = {"a.npy": npy(a), "b.npy": npy(b), "d.npy": npy(wrong)}
    given = ("A=a.npy", "B=b.npy", "D=d.npy", "--target", "sm_80")
    yield Case(command=("diff", DENSE, *given), files=files)
    yield Case(command=("diff", DENSE, *given, "--singles", "--json"), files=files)
    text = "\n".join(" ".join(f"{value:.4f}" for value in row) for row in wrong.tolist()).encode()
    yield Case(command=("diff", DENSE, *given[:2], "D=d.txt", *given[3:]), files=files | {"d.txt": text})
    yield Case(command=("explain", DENSE, *given, "--element", "1,1"), files=files)
    targets = ("--target", "sm_80,sm_90a", "--element", "1,1", "--html", "e.html")
    yield Case(command=("explain", DENSE, *given[:2], *targets), files=files)


def _logs() -> Iterator[Case]:
    """Yield a log of CUTracer, before and after."""
    sass = {"sass": "HMMA.16816.F32 R4, R8, R12, R4 ;", "regs": [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}
    record = {
        "type": "reg_trace", "ctx": "0x1", "cta": [0, 0, 0], "warp": 0, "opcode_id": 0, "grid_launch_id": 0,
        "regs": [[0x3C003C00] * 32] * 10,
    }  # fmt: skip
    head = {"type": "kernel_metadata", "instructions": {"0": sass}}
    log = "\n".join(json.dumps(item) for item in (head, record, record)).encode()
    files = {"b.ndjson": log, "a.ndjson": log}
    words = ("replay", "--target", "sm_80", "b.ndjson")
    yield Case(command=(*words, "--after", "a.ndjson", "--out", "sets", "--chip", "H100"), files=files)
    yield Case(command=(*words, "--json"), files={"b.ndjson": log})


def _archives() -> Iterator[Case]:
    """Yield archives with names, of other libraries, and dtypes that NumPy has not."""
    a = _RANDOM.standard_normal((16, 16)).astype(np.float16)
    yield Case(command=("pack", DENSE, "a", "m.npz:left"), files={"m.npz": npz(left=a, right=a)})
    tensors = {"m.safetensors": safetensors(a=a, c=np.zeros((16, 8), np.float32))}
    yield Case(command=("pack", DENSE, "a", "m.safetensors:a", "-o", "r.npz"), files=tensors)
    yield Case(command=("pack", DENSE, "a", "m.pt"), files={"m.pt": npz(a=a)})
    codes = {"m.npy": npy(np.round(_RANDOM.standard_normal((16, 32))).astype(np.float32))}
    yield Case(command=("compress", SPARSE, "m.npy", "--prune", "--stored", "--json"), files=codes)
    rows = _RANDOM.standard_normal((16, 32)).astype(np.float16)
    yield Case(
        command=("compress", SPARSE, "-", "--prune", "--selector", "1", "-o", "s.npz"), stdin=_printed(rows)
    )


def _products() -> Iterator[Case]:
    """gemm with what it takes besides A and B."""
    a, b = np.ones((20, 48), np.float16), np.ones((48, 9), np.float16)
    files = {"a.npy": npy(a), "b.npy": npy(b), "c.npy": npy(np.ones((20, 9), np.float32))}
    words = ("gemm", DENSE, "a.npy", "b.npy", "-o", "d.npy", "--target", "sm_80")
    yield Case(command=(*words, "--c", "c.npy", "--split-k", "2", "--promote-every", "1"), files=files)
    indices = np.tile(np.array([0, 1], np.uint8), (32, 16))
    sparse = {"a.npy": npy(np.ones((32, 32), np.float16)), "b.npy": npy(np.ones((64, 8), np.float16))}
    words = ("gemm", SPARSE, "a.npy", "b.npy", "-o", "d.npy", "--target", "sm_80")
    yield Case(command=(*words, "--indices", "i.npy"), files=sparse | {"i.npy": npy(indices)})
    orders = {"e.npy": npy(np.full((32, 4), 0x4444, np.uint16))}
    more = ("--metadata", "e.npy", "--arrangement", "words", "--threads", "1", "--json")
    yield Case(command=(*words, *more), files=sparse | orders)
    for order in ("fields", "cutlass", "torch", "lanes m16n8k32 selector 0"):
        size = ("--rows", "32", "--k", "64", "--from", "words", "--to", order, "-o", "o.npy")
        yield Case(command=("metadata", SPARSE, "e.npy", *size), files=orders)


def _descriptors() -> Iterator[Case]:
    shared = {
        "s.npy": npy(np.arange(8192, dtype=np.uint64).astype(np.uint8)),
        "t.npy": npy(np.ones((64, 16), np.float16)),
    }
    fields = ("desc", "--start", "0", "--lbo", "128", "--sbo", "256", "--swizzle", "32B", "--major", "K")
    yield Case(command=(*fields, "--touches", "64", "16", "16"))
    yield Case(command=(*fields, "--shared", "s.npy", "--tile", "t.npy", "--json"), files=shared)
    given = ("a_desc=0x4000004000010000", "b_desc=0x4000004000010000", "shared=s.npy", "d=d.npy")
    registers = {"d.npy": npy(np.zeros((128, 4), np.uint32))}
    words = ("diff", WARPGROUP, "--target", "sm_90a", *given, "c=d.npy", "scale_d=1", "imm_trans_a=0")
    yield Case(command=words, files=shared | registers)


def _questions() -> Iterator[Case]:
    yield Case(command=("info", "--promises"))
    yield Case(command=("info", "--promises", "--json"))
    yield Case(command=("info", SPARSE, "--evidence", "--target", "sm_90a", "--ptx-version", "8.5"))
    yield Case(command=("explore", SPARSE, "-o", "e.html"))
    yield Case(command=("layout", SPARSE, "--operand", "e", "--selector", "1", "-o", "l.svg"))
    yield Case(
        command=("layout", WARPGROUP, "--operand", "b", "--swizzle", "64B", "--major", "MN", "-o", "l.html")
    )
    yield Case(
        command=("layout", DENSE, "--notation", "cute", "--lane", "3", "--operand", "a", "--register", "1")
    )
    words = ("vectors", SPARSE, "--target", "sm_80", "-n", "2", "--seed", "5")
    yield Case(command=(*words, "-o", "v.hex", "--bench", "sv"))
    yield Case(command=(*words, "--kind", "random", "--coverage", "--json", "-o", "v.tv", "--format", "csv"))
    models = ("--between", "sm_80", "sm_80:length=16", "-o", "v.npz")
    yield Case(command=("vectors", DENSE, "--kind", "separate", "-n", "2", "--target", "sm_80", *models))
    files = {"t.ptx": file("mma_m16n8k16_f16.ptx"), "mma_m16n8k16_f16.npz": file("mma_m16n8k16_f16.npz")}
    yield Case(
        command=("verify", "t.ptx", "--junit", "j.xml", "--engine", "reference", "--jobs", "2"), files=files
    )
    yield Case(
        command=("run", "t.ptx", "--out", "o.npz", "--target", "sm_90a", "--hazards", "warn"), files=files
    )


def _clusters() -> Iterator[Case]:
    """Somebody at the address of a scheduler, who says something else (see trial.py)."""
    files = {"a.npy": npy(np.ones((16, 16), np.float16)), "b.npy": npy(np.ones((16, 8), np.float16))}
    words = ("gemm", DENSE, "a.npy", "b.npy", "-o", "d.npy", "--target", "sm_80", "--scheduler")
    for scheme, said in (
        ("tcp", b"\x18\0\0\0\0\0\0\0\x82\xabcompression\xc0"),
        ("ws", b"HTTP/1.1 200 OK\r\n\r\n"),
    ):
        yield Case(command=(*words, f"{scheme}://127.0.0.1:PEER"), files=files | {"peer": said})
