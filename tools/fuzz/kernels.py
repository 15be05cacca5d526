"""A kernel of one matrix instruction: each CTA loads the registers of a case, executes it and stores D.

Knows how operands are spelled and where they lie in memory; does not know what the instruction computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.isa.instruction import Instruction
from warpsim.programs.launch.launching import load_text
from warpsim.ptx.qualifiers import default_version

Words = npt.NDArray[Any]
_SHARED_FENCE = "fence.proxy.async.shared::cta;"


def launched(form: Instruction, arguments: Mapping[str, Any], schedule: str) -> Words:
    """Return D of every case, whose immediates are all alike, as a kernel computes it."""
    arrays = {
        name: arguments[name] for name in ("a", "b", "c", "e", "scale_a", "scale_b") if name in arguments
    }
    d = np.zeros_like(arguments["c"] if form.c == form.d else _empty(form, arrays["c"]))
    given = {**{name: np.ascontiguousarray(array) for name, array in arrays.items()}, "d": d}
    for name in ("a_desc", "b_desc", "shared"):
        if name in arguments:
            given[name] = np.ascontiguousarray(arguments[name])
    text = kernel(
        form, given, {name: argument for name, argument in arguments.items() if np.ndim(argument) == 0}
    )
    load_text(text)["k"](len(d), form.lanes, [*given.values()], schedule=schedule)
    return d


def _empty(form: Instruction, c: Words) -> Words:
    return np.zeros((*c.shape[:-1], form.registers["d"]), np.uint64 if form.d.bits == 64 else np.uint32)


def kernel(form: Instruction, given: Mapping[str, Words], immediates: Mapping[str, Any]) -> str:
    """Return the module. ``given`` are arrays with the cases in front, in the order of the parameters."""
    version = default_version(str(form.target))
    parameters = ", ".join(f".param .u64 p{name}" for name in given)
    lines = [
        f".version {version[0]}.{version[1]}\n.target {form.target}\n.address_size 64",
        f".visible .entry k({parameters}) {{",
        ".reg .pred %p; .reg .b32 %t, %at, %end, %cta, %lane; .reg .b64 %from, %to, %xa_desc, %xb_desc;",
        "mov.u32 %cta, %ctaid.x; mov.u32 %t, %tid.x;",
        f"mad.lo.u32 %lane, %cta, {form.lanes}, %t;",
    ]
    for name, array in given.items():
        lines += _prepared(name, array)
    warpgroup = "b_desc" in given
    before = ["bar.sync 0;", _SHARED_FENCE, "wgmma.fence.sync.aligned;"] if warpgroup else []
    after = ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"] if warpgroup else []
    statement = f"{form.mnemonic} {', '.join(_operands(form, given, immediates))};"
    stored = _stored(given["d"], "c" if warpgroup else "d")
    return "\n".join([*lines, *before, statement, *after, *stored, "ret; }"])


def _prepared(name: str, array: Words) -> Iterator[str]:
    """Yield registers with the part of this lane; a descriptor of this CTA; or shared memory filled."""
    if name == "shared":
        yield from _filled(array.shape[-1])
        return
    if name.endswith("_desc"):
        yield f"ld.param.u64 %from, [p{name}]; mad.wide.u32 %from, %cta, 8, %from;"
        yield f"ld.global.b64 %x{name}, [%from];"
        return
    count, bits = array.shape[-1], 8 * array.dtype.itemsize
    yield f".reg .b{bits} %{name}<{count}>;"
    if name != "d":
        yield f"ld.param.u64 %from, [p{name}]; mad.wide.u32 %from, %lane, {count * bits // 8}, %from;"
        yield from (f"ld.global.b{bits} %{name}{i}, [%from+{i * bits // 8}];" for i in range(count))


def _filled(size: int) -> Iterator[str]:
    """Shared memory of the CTA from its part of an array, a word at a time, by all threads."""
    yield f".shared .align 1024 .b8 s[{size}];"
    yield f"ld.param.u64 %from, [pshared]; mad.wide.u32 %from, %cta, {size}, %from;"
    yield "mul.wide.u32 %to, %t, 4; add.u64 %from, %from, %to; mov.u32 %at, s; mad.lo.u32 %at, %t, 4, %at;"
    yield f"mov.u32 %end, s; add.u32 %end, %end, {size}; .reg .b32 %word;"
    yield "FILL: ld.global.b32 %word, [%from]; st.shared.b32 [%at], %word;"
    yield "add.u64 %from, %from, 512; add.u32 %at, %at, 512; setp.lt.u32 %p, %at, %end; @%p bra FILL;"


def _braced(name: str, count: int) -> str:
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def _operands(form: Instruction, given: Mapping[str, Words], immediates: Mapping[str, Any]) -> Iterator[str]:
    """As PTX has them: of wgmma, D is C, too."""
    counts = {name: array.shape[-1] for name, array in given.items()}
    number = {name: int(value) for name, value in immediates.items()}
    if "b_desc" in given:
        yield _braced("c", counts["c"])
        yield _braced("a", counts["a"]) if "a" in given else "%xa_desc"
        yield "%xb_desc"
        if form.sparse:
            yield from ("%e0", str(number["selector"]))
        yield str(number["scale_d"])
        if form.a.is_float:
            yield from (str(number["imm_scale_a"]), str(number["imm_scale_b"]))
        if form.a.bits == 16:
            yield from (str(number[f"imm_trans_{side}"]) for side in ("b" if "a" in given else "ab"))
        return
    yield from (_braced(name, counts[name]) for name in "dabc")
    if form.sparse:
        yield from ("%e0", str(number["selector"]))
    for side in "ab" if form.scale is not None else "":
        yield f"%scale_{side}0"
        yield f"{{{number[f'byte_id_{side}']}, {number[f'thread_id_{side}']}}}"


def _stored(d: Words, source: str) -> Iterator[str]:
    count, bits = d.shape[-1], 8 * d.dtype.itemsize
    yield f"ld.param.u64 %to, [pd]; mad.wide.u32 %to, %lane, {count * bits // 8}, %to;"
    yield from (f"st.global.b{bits} [%to+{i * bits // 8}], %{source}{i};" for i in range(count))
