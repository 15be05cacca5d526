"""Every spelling of tcgen05 that a table makes: the machine takes what ptxas 13.5 takes, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from tests.helpers import ptxas
from tests.helpers.families import sample
from warpsim.base.errors import NotModelled
from warpsim.programs.launch.launching import load_text

NEWEST = ptxas.bundled("nvidia-cuda-nvcc", "ptxas")
DECLARATIONS = (
    ".reg .b32 r<9>, v<130>; .reg .b64 q<9>; .reg .pred p; .reg .b16 h; .shared .align 16 .b8 sm[1024];"
)
KINDS = ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
VECTORS = ("", ".scale_vec::1X", ".scale_vec::2X", ".scale_vec::4X", ".block16", ".block32")
MORE = (
    *("", ".ashift", ".collector::a::fill", ".collector::a::use", ".collector::a::lastuse"),
    *(".collector::b0::fill", ".ashift.collector::a::lastuse", ".ashift.collector::a::use"),
    ".ashift.collector::a::discard",
)
TAILS = (
    *("p, 0", "p, 15", "p, 16", "p, r5", "!p", "1", "{r5,r6,r7,r8}, p", "{r5,r6,r7,r8}, p, 3", "p, q3", ""),
    "{r5,r6,r7,r8,r5,r6,r7,r8}, p",
)


def multiplications(group: str) -> Iterator[str]:
    for kind, ws, sp, block in product(KINDS, ("", ".ws"), ("", ".sp"), ("", ".block_scale")):
        for vector, more, a in product(VECTORS if block else ("",), MORE, ("q0", "[r5]")):
            metadata, scales = "[r1], " * bool(sp), "[r3], [r4], " * bool(block)
            name = f"tcgen05.mma{ws}{sp}.{group}.kind::{kind}{block}{vector}{more}"
            yield f"{name} [r0], {a}, q1, {metadata}r2, {scales}p;"
    for kind, ws, tail in product(KINDS, ("", ".ws"), TAILS):
        yield f"tcgen05.mma{ws}.{group}.kind::{kind} [r0], q0, q1, r2{', ' * bool(tail)}{tail};"
    name = f"tcgen05.mma.{group}.kind::f16"
    for operands in (
        *("[r0+4], q0, q1, 5, p", "[5], q0, q1, r2, p", "r0, q0, q1, r2, p", "[r0], 5, q1, r2, p"),
        *("[r0], q0, q1, q2, p", "[q0], q0, q1, r2, p", "[r0], q0, q1, r2, r3"),
    ):
        yield f"{name} {operands};"
    yield f"tcgen05.mma.kind::f16.{group} [r0], q0, q1, r2, p;"
    yield f"tcgen05.mma.{group}.kind::f16.sp [r0], q0, q1, [r1], r2, p;"
    yield f"tcgen05.mma.{group}.ws.kind::f16 [r0], q0, q1, r2, p;"


def transfers() -> Iterator[str]:
    shapes = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2", "8x32b")
    for shape, count, offset in product(shapes, (1, 2, 3, 4, 64, 128, 32, 256), ("", ", 4")):
        registers = count * {"16x128b": 2, "16x256b": 4}.get(shape, 1)
        if registers > 130:
            continue
        cells = "{" + ", ".join(f"v{number}" for number in range(registers)) + "}"
        name = f"sync.aligned.{shape}.x{count}"
        yield f"tcgen05.ld.{name}.b32 {cells}, [r0]{offset};"
        yield f"tcgen05.ld.{name}.pack::16b.b32 {cells}, [r0+4]{offset};"
        yield f"tcgen05.st.{name}.b32 [r0]{offset}, {cells};"
        yield f"tcgen05.st.{name}.unpack::16b.b32 [r0]{offset}, {cells};"
        more = product(("min", "max"), ("", ".abs", ".NaN", ".abs.NaN"), ("f32", "u32", "s32", "b32"))
        for operation, words, kind in more if count in (1, 2, 4) else ():
            reduced = f"sync.aligned.{shape}.x{count}.{operation}{words}.{kind}"
            yield f"tcgen05.ld.red.{reduced} {cells}, v129, [r0]{offset};"
    yield from (
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 v0, [r0];",
        "tcgen05.ld.sync.aligned.32x32b.x2.b32 {v0, 1}, [r0];",
        "tcgen05.st.sync.aligned.32x32b.x2.b32 [r0], {v0, 1};",
        "tcgen05.ld.aligned.sync.32x32b.x1.b32 {v0}, [r0];",
        "tcgen05.ld.sync.32x32b.x1.b32 {v0}, [r0];",
        *("tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::st.sync.aligned;", "tcgen05.wait::ld.sync;"),
        *("tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;", "tcgen05.fence;"),
    )


def others(group: str) -> Iterator[str]:
    shapes = ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b", "64x256b")
    multicasts = ("", ".warpx2::02_13", ".warpx2::01_23", ".warpx4")
    formats = ("", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64", ".b8x16", ".b6x16_p32")
    for shape, multicast, source in product(shapes, multicasts, formats):
        yield f"tcgen05.cp.{group}.{shape}{multicast}{source} [r0], q0;"
    for count in ("0", "16", "32", "48", "64", "128", "256", "512", "1024", "r1"):
        yield f"tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [sm], {count};"
        yield f"tcgen05.alloc.{group}.sync.aligned.b32 [q0], {count};"
        yield f"tcgen05.dealloc.{group}.sync.aligned.b32 r0, {count};"
    commit = f"tcgen05.commit.{group}.mbarrier::arrive::one"
    yield from (
        f"tcgen05.relinquish_alloc_permit.{group}.sync.aligned;",
        f"tcgen05.shift.{group}.down [r0];",
        *(f"{commit}.b64 [{place}];" for place in ("q0", "r0", "r0+8", "sm", "h", "16")),
        f"{commit}.multicast::cluster.b64 [r0], h;",
        f"tcgen05.alloc.{group}.sync.aligned.b32 [r0], 32;",
        f"{commit}.shared::cluster.b64 [sm];",
        f"{commit}.shared::cluster.multicast::cluster.b64 [sm], h;",
        f"{commit}.shared::cluster.multicast::cluster.b64 [sm], 3;",
        f"{commit}.multicast::cluster.b64 [q0], h;",
        f"tcgen05.commit.{group}.b64 [q0];",
    )


def spellings(group: str) -> list[str]:
    return list(dict.fromkeys((*multiplications(group), *transfers(), *others(group))))


def by_machine(texts: list[str], target: str, version: str) -> list[str | None]:
    """The error about each statement, None for none; what is not modelled is legal."""
    head = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ {DECLARATIONS}\n"
    found: list[str | None] = [None] * len(texts)
    for problem in load_text(head + "\n".join(texts) + "\nret; }\n").problems:
        assert problem.location is not None
        if not isinstance(problem, NotModelled):
            found[problem.location.line - 1 - head.count("\n")] = problem.message
    return found


@pytest.mark.skipif(NEWEST is None, reason="the wheel nvidia-cuda-nvcc is not installed")
@pytest.mark.parametrize(
    ("target", "version", "part"),
    [
        *(("sm_100a", "9.5", 1), ("sm_100a", "8.6", 8), ("sm_100a", "8.7", 8), ("sm_100f", "8.8", 8)),
        *(("sm_103f", "9.5", 8), ("sm_110a", "9.5", 8), ("sm_107a", "9.5", 8), ("sm_120a", "9.5", 32)),
    ],
)
def test_the_machine_takes_what_ptxas_takes(target: str, version: str, part: int) -> None:
    """Of some targets and versions each so many-th spelling."""
    for group in ("cta_group::1", "cta_group::2"):
        texts = sample(spellings(group)[::part], 4)
        theirs = ptxas.verdicts(texts, target=target, declarations=DECLARATIONS, version=version, path=NEWEST)
        ours = by_machine(texts, target, version)
        pairs = zip(texts, ours, theirs, strict=True)
        assert [(text, mine, his) for text, mine, his in pairs if (mine is None) != (his is None)] == []


def test_there_are_many_spellings() -> None:
    assert len({*spellings("cta_group::1"), *spellings("cta_group::2")}) > 5000


def test_a_function_uses_single_ctas_or_pairs() -> None:
    head = f".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k() {{ {DECLARATIONS}\n"
    statements = [f"tcgen05.dealloc.cta_group::{number}.sync.aligned.b32 r0, 64;" for number in (1, 2)]
    (problem,) = load_text(head + "\n".join(statements) + "\nret; }\n").problems
    assert problem.message == (
        "tcgen05.dealloc.cta_group::2.sync.aligned.b32: the function uses .cta_group::1, "
        "and all of its tcgen05 must"
    )
    assert problem.location is not None
    assert problem.location.line == 6
