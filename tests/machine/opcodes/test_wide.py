"""Registers of 128 bits: what ptxas 13.0 takes is loaded and nothing else, and what becomes of the bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import ptxas
from tests.helpers.lane_kernels import run
from warpsim.base.errors import Fault, IllegalInstruction, NotModelled, WarpsimError
from warpsim.programs.launch.launching import load_text

REGISTERS = (
    ".reg .b128 %q<9>; .reg .b64 %d<9>; .reg .f64 %g<9>; .reg .b32 %r<9>; .reg .b16 %h<9>; .reg .pred %p<9>; "
    ".reg .u64 %u<9>; .shared .align 16 .b128 sm[4]; .local .align 16 .b8 lo[64];"
)
STATEMENTS = (
    "mov.b128 %q1, %q2;",
    "mov.b128 %q1, {%d1, %d2};",
    "mov.b128 %q1, {%u1, 5};",
    "mov.b128 {%d1, _}, %q1;",
    "mov.b128 {%r1, %r2, %r3, %r4}, %q1;",
    "mov.b128 %q1, {%r1, %r2, %r3, %r4};",
    "mov.b128 %q1, {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8};",
    "mov.b128 %q1, {%q2, %q3};",
    "mov.b128 %q1, {%d1, %d2, %d3};",
    "mov.b128 %q1, 5;",
    "mov.b128 %q1, %d1;",
    "mov.b128 %d1, %q1;",
    "mov.b64 %d1, %q1;",
    "mov.b64 %q1, %d1;",
    "add.u64 %d1, %d2, %q1;",
    "selp.b128 %q1, %q2, %q3, %p1;",
    "ld.b128 %q1, [%d1];",
    "ld.const.b128 %q1, [%d1];",
    "ld.shared.b128 %q1, [sm];",
    "ld.local.b128 %q1, [lo];",
    "ld.global.nc.b128 %q1, [%d1];",
    "ld.volatile.shared.b128 %q1, [sm];",
    "ld.relaxed.gpu.global.b128 %q1, [%d1];",
    "ld.mmio.relaxed.sys.global.b128 %q1, [%d1];",
    "ld.global.v2.b128 {%q1, %q2}, [%d1];",
    "ld.b128 %d1, [%d1];",
    "ldu.global.b128 %q1, [%d1];",
    "ldu.global.v2.b128 {%q1, %q2}, [%d1];",
    "st.b128 [%d1], %q1;",
    "st.b128 [%d1], 5;",
    "st.b64 [%d1], %q1;",
    "st.b128 [%d1], %d2;",
    "st.relaxed.sys.global.b128 [%d1], %q1;",
    "st.global.v2.b128 [%d1], {%q1, %q2};",
    "atom.exch.b128 %q1, [%d1], %q2;",
    "atom.exch.b128 _, [%d1], %q2;",
    "atom.exch.b128 %q1, [%d1], 7;",
    "atom.exch.b128 %q1, [%d1], %d2;",
    "atom.relaxed.gpu.global.cas.b128 %q1, [%d1], %q2, %q3;",
    "atom.relaxed.sys.global.cas.b128 %q1, [%d1], %q2, %q3;",
    "atom.shared::cta.cas.b128 %q1, [sm], %q2, %q3;",
    "atom.global.add.b128 %q1, [%d1], %q2;",
)


def verdict(statement: str, target: str, version: str) -> WarpsimError | None:
    text = (
        f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ {REGISTERS}\n{statement}\n}}"
    )
    problems = load_text(text).problems
    assert not any(isinstance(one, NotModelled) for one in problems)
    return problems[0] if problems else None


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
@pytest.mark.parametrize(
    ("target", "version"), [("sm_90", "9.0"), ("sm_90", "8.3"), ("sm_80", "8.8"), ("sm_90", "8.2")]
)
def test_legality(target: str, version: str) -> None:
    said = ptxas.verdicts(STATEMENTS, target=target, declarations=REGISTERS, version=version)
    mine = [verdict(one, target, version) for one in STATEMENTS]
    differ = [
        (one, str(his), str(my))
        for one, his, my in zip(STATEMENTS, said, mine, strict=True)
        if (his is None) != (my is None)
    ]
    assert differ == []


def problem(statement: str, version: str = "9.0") -> str:
    head = f".version {version}\n.target sm_90\n.address_size 64\n.entry k() {{"
    (found,) = load_text(f"{head} .reg .b128 %q<9>; .reg .b64 %d<9>;\n{statement}\n}}").problems
    return f"{type(found).__name__}: {found.message}"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("mov.b128 %q1, %d1;", "IllegalInstruction: mov.b128 takes .b128 here, but %d1 is .b64"),
        ("mov.b64 %d1, %q1;", "IllegalInstruction: mov.b64 takes .b64 here, but %q1 is .b128"),
        (".shared .b64 s; mov.b128 %q1, s;", "NotModelled: the address of s as .b128 is not modelled"),
        ("mov.b128 %q1, -1;", "NotModelled: the constant -1 as .b128 is not modelled"),
        ("ld.b64 %q1, [%d1];", "NotModelled: a .b64 that is extended to .b128 is not modelled"),
    ],
)
def test_messages(statement: str, message: str) -> None:
    assert problem(statement) == message


def test_declarations_need_a_version() -> None:
    assert problem("ret;", "8.2") == "IllegalInstruction: registers of type .b128 need PTX 8.3"


# --- bits ----------------------------------------------------------------------------------------------

LOAD = "mad.wide.u32 %y0, %n, 16, %buffer0; mad.wide.u32 %y1, %n, 16, %buffer1; .reg .b128 %q<9>;"


def rows(count: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, (count, 4), np.uint32)


@pytest.mark.parametrize(
    ("body", "order"),
    [
        ("mov.b128 %q2, %q1;", (0, 1, 2, 3)),
        ("mov.b128 {%y2, %y3}, %q1; mov.b128 %q2, {%y3, %y2};", (2, 3, 0, 1)),
        ("mov.b128 {%t1, %t2, %t3, %t4}, %q1; mov.b128 %q2, {%t4, %t3, %t2, %t1};", (3, 2, 1, 0)),
        ("mov.b128 {_, %y3}, %q1; mov.b128 %q2, {%y3, %y3};", (2, 3, 2, 3)),
        ("st.shared.b128 [sm], %q1; ld.shared.b128 %q2, [sm];", (0, 1, 2, 3)),
    ],
)
def test_copies_and_packing(body: str, order: tuple[int, ...]) -> None:
    threads = 1 if "shared" in body else 70
    given, found = rows(threads), np.zeros((threads, 4), np.uint32)
    text = f"{LOAD} ld.global.b128 %q1, [%y0]; {body} st.global.b128 [%y1], %q2;"
    run(text, {}, {}, threads=threads, buffers=[given, found])
    np.testing.assert_array_equal(found, given[:, order])


def test_only_lanes_that_execute_write() -> None:
    given, found = rows(40), np.zeros((40, 4), np.uint32)
    body = f"""{LOAD} ld.global.b128 %q1, [%y0]; setp.lt.u32 %p1, %lane, 7; mov.b128 %q2, 9;
    @%p1 mov.b128 %q2, %q1; st.global.b128 [%y1], %q2;"""
    run(body, {}, {}, threads=40, buffers=[given, found])
    few = (np.arange(40) % 32 < 7)[:, None]
    np.testing.assert_array_equal(found, np.where(few, given, np.array([9, 0, 0, 0], np.uint32)))


def test_a_place_is_a_multiple_of_16() -> None:
    body = f"{LOAD} ld.global.b128 %q1, [%y0+8];"
    with pytest.raises(Fault, match=r"ld\.global\.b128: address 0x[0-9a-f]+ is not a multiple of 16"):
        run(body, {}, {}, threads=1, buffers=[rows(2), rows(2)])


def test_exchanged_one_lane_after_the_other() -> None:
    given, found, place = rows(50), np.zeros((50, 4), np.uint32), rows(1, 6)
    first = place.copy()
    body = f"""{LOAD} ld.global.b128 %q1, [%y0]; atom.global.exch.b128 %q2, [%buffer2], %q1;
    st.global.b128 [%y1], %q2;"""
    run(body, {}, {}, threads=50, buffers=[given, found, place])
    np.testing.assert_array_equal(found, np.concatenate([first, given[:-1]]))
    np.testing.assert_array_equal(place[0], given[-1])


@pytest.mark.parametrize("differs", [0, 1, 2, 3, None])
def test_swapped_only_where_all_bits_agree(differs: int | None) -> None:
    given, found, place = rows(1), np.zeros((1, 4), np.uint32), rows(1, 6)
    compare = place.copy()
    if differs is not None:
        compare[0, differs] ^= 1
    first = place.copy()
    body = f"""{LOAD} ld.global.b128 %q1, [%y0]; ld.global.b128 %q3, [%buffer3];
    atom.global.cas.b128 %q2, [%buffer2], %q3, %q1; st.global.b128 [%y1], %q2;"""
    run(body, {}, {}, threads=1, buffers=[given, found, place, compare])
    np.testing.assert_array_equal(found, first)
    np.testing.assert_array_equal(place, given if differs is None else first)


def test_illegal_is_an_error_when_the_kernel_is_asked_for() -> None:
    text = ".version 9.0\n.target sm_90\n.entry k() { .reg .b128 %q<2>; .reg .b64 %d; mov.b128 %q1, %d; }"
    with pytest.raises(IllegalInstruction, match=r"takes \.b128 here"):
        load_text(text)["k"]
