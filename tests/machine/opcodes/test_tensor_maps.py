"""Maps that kernels change: every field, in shared and global memory, and what nobody can do with them.

A warp changes the map at ``map``, a buffer, and loads a box of 1,024 bytes or less through it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from warpsim.base.errors import Fault, UndefinedBehavior
from warpsim.programs.launch.launching import load_text

Array = npt.NDArray[Any]
A = np.arange(40 * 64, dtype=np.float16).reshape(40, 64)
B = -np.arange(30 * 48, dtype=np.float16).reshape(30, 48)

TEXT = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 map, .param .u64 new, .param .u64 out) {{
.reg .b32 %r<9>, %own; .reg .b64 %map, %new, %out, %from, %word; .reg .pred %first, %p;
.shared .align 1024 .b8 tile[1024];
.shared .align 128 .b8 copy[128];
.shared .align 8 .b64 bar;
mov.u32 %own, %tid.x;
setp.eq.u32 %first, %own, 0;
ld.param.u64 %map, [map];
ld.param.u64 %new, [new];
ld.param.u64 %out, [out];
shl.b32 %r1, %own, 2;
cvt.u64.u32 %word, %r1;
add.u64 %from, %map, %word;
ld.global.b32 %r2, [%from];
mov.u32 %r3, copy;
add.u32 %r4, %r3, %r1;
st.shared.b32 [%r4], %r2;
@%first mbarrier.init.shared.b64 [bar], 1;
bar.sync 0;
{body}
bar.sync 0;
mov.u32 %r5, tile;
mov.u32 %r6, bar;
@%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};
@%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%map, {{8, 5}}], [%r6];
again: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra again;
mov.u32 %r7, 0;
next:
add.u32 %r8, %r1, %r7;
cvt.u64.u32 %word, %r8;
add.u64 %word, %out, %word;
add.u32 %r8, %r5, %r8;
ld.shared.b32 %r2, [%r8];
st.global.b32 [%word], %r2;
add.u32 %r7, %r7, 128;
setp.lt.u32 %p, %r7, {size};
@%p bra next;
}}
"""  # noqa: E501 (one statement)
FENCED = """
fence.proxy.tensormap::generic.release.gpu;
fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
"""
COPIED = """
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%r3], 128;
fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
"""


def _replace(space: str, *changes: str) -> str:
    """``tensormap.replace``, of "field operands" each, by the first lane."""
    where = "%r3" if space == ".shared::cta" else "%map"
    lines = []
    for change in changes:
        name, operands = change.split(" ", 1)
        kind = "b64" if name in ("global_address", "global_stride") else "b32"
        lines.append(f"@%first tensormap.replace.tile.{name}{space}.b1024.{kind} [{where}], {operands};")
    return "\n".join([*lines, "bar.warp.sync 0xffffffff;"])


def _run(body: str, size: int = 1024, content: Array | None = None, **options: str) -> Array:
    """The bytes that the load brings, through the map of A or other bytes."""
    device = warpsim.Device(options.get("target", "sm_90a"))
    made = warpsim.tensor_map(device.array(A), box=(8, 64), swizzle="128B")
    out = device.empty(size)
    where = {"version": "8.8", "target": "sm_90a"} | options
    module = load_text(TEXT.format(body=body, size=size, **where), "kernel.ptx")
    place = device.array(made if content is None else content)
    module["k"](1, 32, [place, device.array(B), out], device=device)
    return out.get()


EVERY = (  # rows 2 apart of B, 16 of its 48 elements in each
    *("global_address %new", "rank 1", "box_dim 0, 16", "box_dim 1, 8", "global_dim 0, 48"),
    *("global_dim 1, 30", "global_stride 0, 96", "element_stride 1, 2", "elemtype 10"),
    *("swizzle_mode 0", "fill_mode 1", "interleave_layout 0"),
)


@pytest.mark.parametrize(("space", "then"), [("", FENCED), (".global", FENCED), (".shared::cta", COPIED)])
def test_every_field(space: str, then: str) -> None:
    found = _run(_replace(space, *EVERY) + then, 128).view(np.float16).reshape(4, 16)
    np.testing.assert_array_equal(found, B[5:13:2, 8:24])


BLANK = (  # what a map of B needs that begins as zeros
    *("global_address %new", "rank 1", "box_dim 0, 16", "box_dim 1, 8", "global_dim 0, 48"),
    *("global_dim 1, 30", "global_stride 0, 96", "element_stride 0, 1", "element_stride 1, 2"),
    *("elemtype 6", "swizzle_mode 1"),
)


def _swizzled_32(rows: Array) -> Array:
    """Rows of 32 bytes as swizzle 32B has them: their halves change places in rows 4 to 7 of each 8."""
    halves = rows.view(np.uint8).reshape(len(rows), 2, 16).copy()
    for row in range(len(rows)):
        if row % 8 >= 4:
            halves[row] = halves[row, ::-1]
    return halves


@pytest.mark.parametrize("space", [".global", ".shared::cta"])
def test_a_map_that_begins_as_zeros(space: str) -> None:
    then = COPIED if space == ".shared::cta" else FENCED
    found = _run(_replace(space, *BLANK) + then, 128, np.zeros(128, np.uint8))
    np.testing.assert_array_equal(
        found.reshape(4, 2, 16), _swizzled_32(np.ascontiguousarray(B[5:13:2, 8:24]))
    )


@pytest.mark.parametrize(
    ("missing", "name"),
    [
        (0, "global_address"), (2, "box_dim 0"), (3, "box_dim 1"), (4, "global_dim 0"), (5, "global_dim 1"),
        (6, "global_stride 0"), (7, "element_stride 0"), (8, "element_stride 1"),
    ],
)  # fmt: skip
def test_a_map_that_begins_as_zeros_and_stays_incomplete(missing: int, name: str) -> None:
    body = _replace(".shared::cta", *BLANK[:missing], *BLANK[missing + 1 :]) + COPIED
    message = rf"the map began as 128 bytes of zeros, and nothing has set its {name} \["
    with pytest.raises(Fault, match=message):
        _run(body, 128, np.zeros(128, np.uint8))


EACH = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 maps, .param .u64 new, .param .u64 out) {
.reg .b32 %r<9>, %own; .reg .b64 %map, %new, %out, %wide; .reg .pred %first, %p;
.shared .align 128 .b8 tile[128];
.shared .align 128 .b8 copy[128];
.shared .align 8 .b64 bar;
mov.u32 %own, %tid.x;
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %first, %own, 0;
ld.param.u64 %map, [maps];
ld.param.u64 %new, [new];
ld.param.u64 %out, [out];
mul.wide.u32 %wide, %r1, 128;
add.u64 %map, %map, %wide;
add.u64 %out, %out, %wide;
mul.wide.u32 %wide, %own, 4;
add.u64 %out, %out, %wide;
shl.b32 %r2, %own, 2;
mov.u32 %r3, copy;
add.u32 %r4, %r3, %r2;
st.shared.b32 [%r4], 0;
mul.lo.u32 %r5, %r1, 4;
@%first mbarrier.init.shared.b64 [bar], 1;
bar.sync 0;
{body}
bar.sync 0;
mov.u32 %r5, tile;
mov.u32 %r6, bar;
@%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
@%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%map, {0, %r1}], [%r6];
again: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra again;
add.u32 %r5, %r5, %r2;
ld.shared.b32 %r7, [%r5];
st.global.b32 [%out], %r7;
}
"""  # noqa: E501 (one statement)


def test_each_cta_has_its_own_map_in_shared_memory() -> None:
    fields = ("global_address %new", "rank 1", "box_dim 0, 16", "box_dim 1, 4", "global_dim 0, 48")
    more = ("global_dim 1, 30", "global_stride 0, 96", "element_stride 0, 1", "element_stride 1, 1")
    body = "add.u32 %r1, %r1, 3;\n" + _replace(".shared::cta", *fields, *more, "elemtype 6") + COPIED
    device = warpsim.Device("sm_90a")
    out = device.empty((3, 4, 16), np.float16)
    module = load_text(EACH.replace("{body}", body), "kernel.ptx")
    module["k"](3, 32, [device.array(np.zeros(3 * 128, np.uint8)), device.array(B), out], device=device)
    for cta, found in enumerate(out.get()):
        np.testing.assert_array_equal(found, B[3 + cta : 7 + cta, :16])


def test_a_register_is_a_value() -> None:
    body = "mov.u32 %r7, 16;\n" + _replace(".global", "box_dim 0, %r7", "swizzle_mode 0") + FENCED
    found = _run(body, 256).view(np.float16).reshape(8, 16)
    np.testing.assert_array_equal(found, A[5:13, 8:24])


def test_atoms_of_a_swizzle() -> None:
    body = _replace(".global", "swizzle_atomicity 3") + FENCED
    found = _run(body, target="sm_100a").reshape(8, 2, 64)
    wanted = A[5:13, 8:].view(np.uint8)
    np.testing.assert_array_equal(found[0].reshape(-1)[:112], wanted[0])
    np.testing.assert_array_equal(found[1, ::-1].reshape(-1)[:112], wanted[1])


MISTAKES = [
    (
        _replace(".global", "box_dim 0, 128") + FENCED,
        r"cp\.async\.bulk\.tensor.*: a box with 128 elements of the innermost dimension of f16 has rows of "
        r"256 bytes: with swizzle 128B it has at most 128",
    ),
    (_replace(".global", "box_dim 0, 300"), r"box_dim 300: expected 1 to 256"),
    (_replace(".global", "global_stride 4, 96"), r"global_stride has the ordinals 0 to 3, not 4"),
    (
        _replace(".global", "global_stride 0, 100") + FENCED,
        r"the stride of 100 bytes of dimension 1 from inside: expected a multiple of 16 bytes",
    ),
    ("st.global.b8 [%map+17], 1;", r"no tensor map any more: its bytes were changed, and not by tensormap"),
    ("add.u64 %map, %map, 32;\n" + _replace(".global", "rank 1"), r"is not a multiple of 64, as those of"),
    (
        "add.u32 %r3, %r3, 64;\n" + _replace(".shared::cta", "rank 1"),
        r"address 0x4bf leaves shared memory of",
    ),
]


@pytest.mark.parametrize(("body", "message"), MISTAKES)
def test_mistakes(body: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        _run(body)


CHANGED = _replace(".global", "fill_mode 0")
BOTH = r"release\.gpu, then fence\.proxy\.tensormap::generic\.acquire"


@pytest.mark.parametrize(
    ("body", "statement", "fix"),
    [
        (CHANGED, "replace.tile.fill_mode", BOTH),
        (f"{CHANGED}\n{FENCED.splitlines()[2]}", "replace.tile.fill_mode", BOTH),
        (f"{CHANGED}\n{FENCED.splitlines()[1]}", "replace.tile.fill_mode", "acquire"),
        (COPIED.splitlines()[1], "cp_fenceproxy", "acquire"),
    ],
)
def test_a_fence_that_is_missing(body: str, statement: str, fix: str) -> None:
    message = (
        rf"reads the tensor map at 0x\w+, which tensormap\.{statement}\.global.* of line \d+ has changed, "
        rf"and nothing says that copies see it; put fence\.proxy\.tensormap::generic\.{fix}\.gpu \[map\], 128"
    )
    with pytest.raises(UndefinedBehavior, match=message):
        _run(body)


def test_bytes_that_nobody_made_a_map_of() -> None:
    for body in ("", _replace(".global", "rank 1")):
        with pytest.raises(Fault, match=r"no tensor map: 01 01 01 01 01 01 01 01 is not how"):
            _run(body, content=np.ones(128, np.uint8))


def test_a_copy_needs_the_whole_warp() -> None:
    with pytest.raises(Fault, match="deadlock"):
        _run("@%first bra there;\nbra past;\nthere:\n" + COPIED + "past:")
