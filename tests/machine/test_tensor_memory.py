"""Tensor memory in launched kernels: allocations, every shape of ld, st and cp against formulas."""

# ruff: noqa: E501 - messages stand as they are shown

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.helpers.families import sample
from tests.helpers.tensor_core import BASE, COLUMNS, LANES, Run, Tile, copied_lanes, transfer_cell
from warpsim.base.errors import Fault, IllegalInstruction, NotModelled, UndefinedBehavior, WarpsimError
from warpsim.isa.layouts.tensor_memory import COPIES, TRANSFERS
from warpsim.programs.launch.launching import LoadedModule, load_text

HEAD = """.version 8.8
.target sm_103a
.address_size 64
.visible .entry k(.param .u64 given, .param .u64 results) {
.reg .b32 r<20>, v<129>, tid, where, base, zero;
.reg .b64 q<20>;
.reg .pred p, over;
.shared .b32 address;
.shared .align 8 .b64 barrier;
mov.u32 tid, %tid.x;
mov.u32 zero, 0;
ld.param.u64 q0, [given];
ld.param.u64 q1, [results];
mad.wide.u32 q0, tid, 2048, q0;
mad.wide.u32 q1, tid, 2048, q1;
setp.lt.u32 p, tid, 32;
@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 512;
bar.sync 0;
ld.shared.b32 base, [address];
and.b32 where, tid, 96;
shl.b32 where, where, 16;
add.u32 where, where, base;
"""
END = "bar.sync 0;\n@p tcgen05.dealloc.cta_group::1.sync.aligned.b32 base, 512;\nret;\n}\n"


def listed(count: int) -> str:
    return ", ".join(f"v{number}" for number in range(count))


def whole(move: str) -> str:
    """All 512 columns from or to the rows of an array, 128 at a time."""
    text = ""
    for first in range(0, COLUMNS, 128):
        fours = [(four, ", ".join(f"v{four + each}" for each in range(4))) for four in range(0, 128, 4)]
        if move == "st":
            text += "".join(
                f"ld.global.v4.b32 {{{names}}}, [q0+{4 * (first + at)}];\n" for at, names in fours
            )
            text += f"tcgen05.st.sync.aligned.32x32b.x128.b32 [where+{first}], {{{listed(128)}}};\n"
        else:
            text += f"tcgen05.ld.sync.aligned.32x32b.x128.b32 {{{listed(128)}}}, [where+{first}];\n"
            text += "".join(
                f"st.global.v4.b32 [q1+{4 * (first + at)}], {{{names}}};\n" for at, names in fours
            )
    return text + ("tcgen05.wait::st.sync.aligned;\n" if move == "st" else "")


@cache
def module(body: str) -> LoadedModule:
    return load_text(HEAD + body + END)


def run(body: str, given: Any, threads: int = LANES, **options: Any) -> Any:
    results = np.zeros_like(given)
    module(body)["k"](1, threads, [given, results], **options)
    return results


def cells(seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 1 << 32, (LANES, COLUMNS), np.uint64).astype(np.uint32)


FORMS = [
    (shape, count, half, packed)
    for shape, transfer in TRANSFERS.items()
    for count in transfer.counts
    for half in ((0,) if shape == "32x32b" else (0, 16))
    for packed in (False, True)
    if not (packed and shape == "16x32bx2") and (count in (1, 2, 8) or (half, packed) == (0, False))
]


def registers_of(shape: str, count: int) -> int:
    return count * {"16x128b": 2, "16x256b": 4}.get(shape, 1)


@pytest.mark.parametrize(("shape", "count", "half", "packed"), FORMS)
def test_every_shape_loads_the_cells_of_the_manual(shape: str, count: int, half: int, packed: bool) -> None:
    number, column = registers_of(shape, count), 0 if count > 8 else 8
    offset, pack = (", 5" if shape == "16x32bx2" else ""), ".pack::16b" * packed
    body = whole("st") + (
        f"tcgen05.ld.sync.aligned.{shape}.x{count}{pack}.b32 {{{listed(number)}}}, "
        f"[where+{(half << 16) + column}]{offset};\ntcgen05.wait::ld.sync.aligned;\n"
    )
    body += "".join(f"st.global.b32 [q1+{4 * each}], v{each};\n" for each in range(number))
    given = cells()
    found = run(body, given)
    for thread in range(LANES):
        for each in range(number):
            lane, across = transfer_cell(shape, thread % 32, each, 5)
            lane, across = 32 * (thread // 32) + lane + half, column + across * (1 + packed)
            want = int(given[lane, across])
            if packed:
                want = want & 0xFFFF | (int(given[lane, across + 1]) & 0xFFFF) << 16
            assert found[thread, each] == want


@pytest.mark.parametrize(
    ("shape", "count", "half", "packed"), sample((form for form in FORMS if form[1] <= 8), 3)
)
def test_every_shape_stores_the_cells_of_the_manual(shape: str, count: int, half: int, packed: bool) -> None:
    number, column = registers_of(shape, count), 8
    offset, pack = (" 5," if shape == "16x32bx2" else ""), ".unpack::16b" * packed
    body = whole("st")
    body += "".join(f"ld.global.b32 v{each}, [q0+{4 * each + 1024}];\n" for each in range(number))
    body += (
        f"tcgen05.st.sync.aligned.{shape}.x{count}{pack}.b32 [where+{(half << 16) + column}],{offset} "
        f"{{{listed(number)}}};\ntcgen05.wait::st.sync.aligned;\n"
    )
    given = cells()
    expected = given.copy()
    for thread in range(LANES):
        for each in range(number):
            lane, across = transfer_cell(shape, thread % 32, each, 5)
            lane, across = 32 * (thread // 32) + lane + half, column + across * (1 + packed)
            word = int(given[thread, 256 + each])
            expected[lane, across] = word & 0xFFFF if packed else word
            if packed:
                expected[lane, across + 1] = word >> 16
    for schedule in ("program", "latest", 3):
        np.testing.assert_array_equal(run(body + whole("ld"), given, schedule=schedule), expected)


def test_examples_by_hand() -> None:
    assert transfer_cell("16x64b", 7, 0) == (9, 1)
    assert transfer_cell("16x64b", 7, 1) == (9, 3)
    assert transfer_cell("16x64b", 6, 1) == (1, 3)
    assert [transfer_cell("16x256b", 13, each) for each in range(4)] == [(3, 2), (3, 3), (11, 2), (11, 3)]


@pytest.mark.parametrize("kind", ["f32", "u32", "s32"])
@pytest.mark.parametrize("name", ["min", "max", "max.abs", "min.NaN"])
def test_a_load_reduces_each_lane(name: str, kind: str) -> None:
    if kind != "f32" and "." in name:
        return
    body = whole("st") + (
        f"tcgen05.ld.red.sync.aligned.32x32b.x8.{name}.{kind} {{{listed(8)}}}, v9, [where];\n"
        "st.global.b32 [q1], v9;\nst.global.b32 [q1+4], v3;\n"
    )
    given = cells()
    if kind == "f32":
        values = np.random.default_rng(1).standard_normal((LANES, 8)).astype(np.float32)
        values[3, 2], values[5] = np.nan, np.nan
        values[7, :] = (0, -0.0, 0, 0, -0.0, 0, 0, 0)
        given[:, :8] = values.view(np.uint32)
    found = run(body, given)
    for lane in range(LANES):
        own = given[lane, :8]
        if kind != "f32":
            folded = own.view({"u32": np.uint32, "s32": np.int32}[kind])
            want = int((folded.max() if name == "max" else folded.min()).view(np.uint32))
        else:
            numbers = own.view(np.float32)
            numbers = np.abs(numbers) if "abs" in name else numbers
            kept = numbers[~np.isnan(numbers)]
            if not kept.size or (kept.size < 8 and "NaN" in name):
                want = 0x7FFFFFFF
            else:
                chosen = (max if name.startswith("max") else min)(kept, key=ordered)
                want = int(np.float32(chosen).view(np.uint32))
        assert found[lane, 0] == want
        assert found[lane, 1] == given[lane, 3]


def ordered(number: Any) -> Any:
    """-0 before +0."""
    return number, not np.signbit(number)


# --- copies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 2, 6])
@pytest.mark.parametrize(("shape", "multicast"), COPIES)
def test_every_copy_lands_in_the_lanes_of_the_manual(shape: str, multicast: str, code: int) -> None:
    rows, columns = int(shape.split("x")[0]), int(shape.split("x")[1][:-1]) // 32
    data = np.random.default_rng(2).integers(1, 256, (rows, 4 * columns), np.uint8)
    word = ".".join(filter(None, (shape, multicast)))
    made = Run(f"tcgen05.cp.cta_group::1.{word} [r0], q4;", words={"r0": 100})
    sbo = {0: 128, 2: 1024, 6: 256}[code]
    tile = Tile(data, 1, BASE, 4096, sbo, code)
    tile.put(made.image[0])
    made.a = tile.word
    made.cells[:] = cells()
    expected = made.cells[0].copy()
    for row in range(rows):
        for lane in copied_lanes(shape, multicast, row):
            expected[lane, 100 : 100 + columns] = data[row].view(np.uint32)
    for schedule in ("program", "latest"):
        np.testing.assert_array_equal(made.results(schedule=schedule)[0], expected)


@pytest.mark.parametrize(("source", "bits"), [("b6x16_p32", 6), ("b4x16_p64", 4)])
def test_a_copy_gives_every_narrow_element_a_byte(source: str, bits: int) -> None:
    codes = np.random.default_rng(3).integers(0, 1 << bits, (128, 2, 16), np.uint8)
    data = np.zeros((128, 2, 16), np.uint8)
    for row, chunk in np.ndindex(128, 2):
        number = sum(int(code) << bits * place for place, code in enumerate(codes[row, chunk]))
        data[row, chunk] = list(number.to_bytes(16, "little"))
    made = Run(f"tcgen05.cp.cta_group::1.128x256b.b8x16.{source} [r0], q4;")
    tile = Tile(data.reshape(128, 32), 1, BASE, 4096, 128, 0)
    tile.put(made.image[0])
    made.a = tile.word
    made.cells[:] = cells()
    expected = (codes << (2 if bits == 4 else 0)).astype(np.uint8).reshape(128, 32).view(np.uint32)
    np.testing.assert_array_equal(made.results()[0, :, :8], expected)


# --- allocation --------------------------------------------------------------------------------------


def test_an_allocation_may_begin_at_any_multiple_of_its_size() -> None:
    body = "bar.sync 0;\n"
    lone = HEAD.replace(", 512;", ", 64;") + body + "st.global.b32 [q1], base;\n" + END.replace("512", "64")
    bases = set()
    for schedule in ("program", "latest", *range(8)):
        results = np.zeros((LANES, COLUMNS), np.uint32)
        load_text(lone)["k"](1, LANES, [cells(), results], schedule=schedule)
        bases.add(int(results[0, 0]))
    assert {0, 448} <= bases
    assert len(bases) > 3
    assert not any(base % 64 for base in bases)


def error_of(body: str, *, columns: int = 512, kind: type[WarpsimError] = Fault) -> str:
    text = HEAD.replace(", 512;", f", {columns};") + body + END.replace("512", str(columns))
    with pytest.raises(kind) as found:
        load_text(text)["k"](1, LANES, [cells(), cells()])
    return found.value.message


LD = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {v0, v1}, [where"


@pytest.mark.parametrize(
    ("body", "columns", "phrase"),
    [
        (LD + "+511];", 512, "takes columns 511..512: tensor memory has 512"),
        (LD + "+31];", 32, "takes columns 31..32, of which column 32 is not allocated (allocated: columns 0..31 at line 17)"),
        (f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{v0}}, [base+{32 << 16}];", 512,
         "has lane 32, but warp 0 of the CTA reaches lanes 0..31"),
        (LD + f"+{16 << 16}];", 512, "begins at lane 16; legal here: 0"),
        (f"tcgen05.ld.sync.aligned.16x64b.x1.b32 {{v0}}, [where+{8 << 16}];", 512, "legal here: 0, 16"),
        ("mov.u32 r0, 48; @p tcgen05.alloc.cta_group::1.sync.aligned.b32 [address], r0;", 32,
         "an allocation of 48 columns: expected 32, 64, 128, 256, 512"),
        ("@p tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
         "@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 32;", 32,
         "a thread of the CTA has relinquished the right to allocate at line 23: put"),
        ("@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 64;", 32,
         "an allocation of 64 columns after that of 32 at line 17: sizes do not grow; allocate the largest first"),
        ("add.u32 r0, base, 32; @p tcgen05.dealloc.cta_group::1.sync.aligned.b32 r0, 32;", 32,
         "column 32 is not an address that an allocation returned (allocated: columns 0..31 at line 17)"),
        ("@p tcgen05.dealloc.cta_group::1.sync.aligned.b32 base, 64;", 32,
         "the allocation at column 0 has 32 columns, not 64 (allocated: columns 0..31 at line 17)"),
        ("mov.u32 r0, tid; tcgen05.st.sync.aligned.32x32b.x1.b32 [r0], {v0};", 512,
         "the address differs between the lanes of a warp"),
    ],
)  # fmt: skip
def test_what_no_machine_allows(body: str, columns: int, phrase: str) -> None:
    generic = body.replace(".aligned.b32 [address]", ".aligned.shared::cta.b32 [address]")
    assert phrase in error_of(generic, columns=columns)


def test_a_warp_waits_for_columns_that_another_frees() -> None:
    body = """setp.lt.u32 over, tid, 64;
@!over bra later;
@p bra later;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [second], 512;
ld.shared.b32 r1, [second];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 r1, 512;
later:
@p tcgen05.dealloc.cta_group::1.sync.aligned.b32 base, 512;
ret;
}
"""
    for schedule in ("program", "latest", 2):
        text = HEAD.replace(".shared .b32 address;", ".shared .b32 address, second;")
        load_text(text + body)["k"](1, LANES, [cells(), cells()], schedule=schedule)


_PAIR = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 results) .reqntid 32 {
.reg .b32 rank, base, n, count;
.reg .b64 q;
.reg .pred p;
.shared .b32 address;
mov.u32 rank, %cluster_ctarank;
setp.ne.u32 p, rank, 0;
mov.u32 count, 0;
BODY
ret;
}
"""
_TAKEN = """tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [address], 64;
ld.shared.b32 base, [address];
ld.param.u64 q, [results];
mad.wide.u32 q, rank, 4, q;
st.global.b32 [q], base;
"""
_FREED = "tcgen05.dealloc.cta_group::2.sync.aligned.b32 base, 64;\n"


@pytest.mark.parametrize("schedule", ["program", "latest", 1, 2])
def test_a_pair_allocates_and_frees_together(schedule: str | int) -> None:
    """The odd CTA comes late, and both have the same columns, once and again."""
    late = "@!p bra on;\nspin:\nadd.u32 count, count, 1;\nsetp.lt.u32 p, count, 50;\n@p bra spin;\non:\n"
    results = np.full(2, 7, np.uint32)
    text = _PAIR.replace("BODY", late + 2 * (_TAKEN + _FREED))
    load_text(text)["k"](2, 32, [results], cluster=2, schedule=schedule)
    assert results[0] == results[1] != 7


@pytest.mark.parametrize(
    ("body", "phrase"),
    [
        (
            "@p bra out;\n" + _TAKEN + _FREED + "out:",
            "tcgen05.alloc.cta_group::2 of the other CTA of the pair",
        ),
        (
            _TAKEN + "@p bra out;\n" + _FREED + "out:",
            "tcgen05.dealloc.cta_group::2 of the other CTA of the pair",
        ),
    ],
)
def test_a_cta_of_a_pair_waits_for_the_other(body: str, phrase: str) -> None:
    with pytest.raises(WarpsimError) as found:
        load_text(_PAIR.replace("BODY", body))["k"](2, 32, [np.zeros(2, np.uint32)], cluster=2, checks="off")
    assert phrase in found.value.message


def test_a_pair_needs_a_cluster() -> None:
    with pytest.raises(Fault, match="cta_group::2 needs a cluster with pairs of CTAs, but it has 1"):
        load_text(_PAIR.replace("BODY", _TAKEN + _FREED))["k"](2, 32, [np.zeros(2, np.uint32)])


def test_columns_that_nobody_frees_are_waited_for_in_vain() -> None:
    body = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 512;\n"
    assert "free columns of tensor memory" in error_of(body)


def test_loaded_cells_that_were_never_written_count_as_never_written() -> None:
    body = (
        "tcgen05.st.sync.aligned.16x32bx2.x1.b32 [where], 1, {tid};\ntcgen05.wait::st.sync.aligned;\n"
        "tcgen05.ld.sync.aligned.32x32b.x2.b32 {v0, v1}, [where];\nst.global.b32 [q1], v0;\n"
    )
    results = np.zeros((LANES, COLUMNS), np.uint32)
    report = load_text(HEAD + body + END)["k"](1, LANES, [cells(), results], checks="warn")
    assert [hazard.kind for hazard in report.hazards].count("register") == 1
    assert results[3, 0] == 3


def test_a_store_without_a_wait_is_not_seen_where_it_is_late() -> None:
    body = (
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [where], {zero};\ntcgen05.wait::st.sync.aligned;\n"
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [where], {tid};\n"
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [where];\nst.global.b32 [q1], v0;\n"
    )
    assert run(body, cells(), checks="warn")[5, 0] == 5
    assert run(body, cells(), checks="warn", schedule="latest")[5, 0] == 0
    message = (
        r"reads column 0, lanes 0\.\.31 of tensor memory, which tcgen05\.st\.\S+ of line 25 may still write"
    )
    with pytest.raises(UndefinedBehavior, match=message):
        run(body, cells())


# --- statements --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16.ashift [r0], q0, q1, r2, p;", IllegalInstruction,
         "tcgen05.mma.ashift shifts A in tensor memory, not behind a descriptor"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 48;", IllegalInstruction,
         "an allocation of 48 columns: expected 32, 64, 128, 256, 512"),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {v0}, [r0];", IllegalInstruction,
         "expected 2 registers in braces, but 1 are given"),
        ("tcgen05.mma.cta_group::1.kind::f16 [r0], q0, q1, r2, p, 16;", IllegalInstruction,
         "scale-input-d is 0 to 15, not 16"),
        ("tcgen05.mma.cta_group::1.kind::f8f6f4 [r0], q0, q1, r2, p, 1;", IllegalInstruction,
         "scale-input-d belongs to kind::f16 and kind::tf32, not to f8f6f4"),
        ("tcgen05.mma.cta_group::1.kind::i8 [r0], q0, q1, r2, p;", IllegalInstruction,
         ".kind::i8 is not on sm_103a: it needs sm_100a or sm_110a"),
        ("tcgen05.mma.cta_group::1.kind::f16 [r0], q0, q1, r2, {r0, r1}, p;", IllegalInstruction,
         "expected 4 elements, not '{r0, r1}'"),
    ],
)  # fmt: skip
def test_statements_that_are_not_executed(statement: str, kind: type[WarpsimError], message: str) -> None:
    (problem,) = load_text(HEAD + statement + "\n" + END).problems
    assert isinstance(problem, kind)
    assert problem.message == message


@pytest.mark.parametrize("schedule", ["program", "latest"])
@pytest.mark.parametrize("ctas", [1, 2])
def test_a_shift_moves_the_rows_of_a_warp(schedule: str, ctas: int) -> None:
    run = Run(f"tcgen05.shift.cta_group::{ctas}.down [r0+5];", ctas=ctas, words={"r0": 32 << 16 | 100})
    run.cells[:] = np.random.default_rng(3).integers(0, 1 << 32, run.cells.shape, np.uint64)
    expected = run.cells.copy()
    for lane in range(32, 63):
        expected[:ctas, lane, 105:113] = run.cells[:ctas, lane + 1, 105:113]
    report = run.report(schedule=schedule)
    np.testing.assert_array_equal(run.after[:ctas], expected[:ctas])
    assert ["inferred: row i takes row i + 1" in kind.note for kind in report.fidelity["inferred"]] == [True]


@pytest.mark.parametrize(
    ("place", "phrase"),
    [
        (8 << 16, "the address begins at lane 8; legal here: 0, 32, 64, 96"),
        (505, "the shift takes columns 505..512: tensor memory has 512"),
    ],
)
def test_shifts_that_no_machine_allows(place: int, phrase: str) -> None:
    with pytest.raises(Fault) as found:
        Run("tcgen05.shift.cta_group::1.down [r0];", words={"r0": place}).results()
    assert phrase in found.value.message


def test_a_zero_column_mask_is_refused_where_it_shifts() -> None:
    body = """mov.b64 q2, 0x0100000000000000;
setp.eq.u32 over, tid, 0;
mov.b32 r2, 0x08100010;
@over tcgen05.mma.ws.cta_group::1.kind::f16 [base], q0, q1, r2, p, q2;
"""
    assert "a column shift of 1 (bits 61:56)" in error_of(body, kind=NotModelled)


def test_an_accumulator_that_was_never_written_is_undefined() -> None:
    body = """mov.b64 q2, 0x0000400000010000;
mov.u32 r2, 0x08100010;
setp.eq.u32 over, tid, 0;
@over tcgen05.mma.cta_group::1.kind::f16 [base], q2, q2, r2, p;
"""
    text = HEAD.replace(
        ".shared .b32 address;", ".shared .b32 address;\n.shared .align 1024 .b8 tiles[8192];"
    )
    with pytest.raises(UndefinedBehavior, match="lane 0, column 0 of tensor memory was never written"):
        load_text(text + body + END)["k"](1, LANES, [cells(), cells()], checks="off")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {v0, v0}, [r0];", "a load names a register twice"),
        (
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [f];",
            "f is .f32: registers of integers and bits go here",
        ),
        (
            "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {v0, v1}, q1, [r0];",
            "q1 is .b64: registers of 32 bits",
        ),
        ("tcgen05.cp.cta_group::1.128x128b [r0], 0d3FF0000000000000;", "expected an integer constant"),
        ("tcgen05.cp.cta_group::1.128x128b [r0], address+4;", "expected an integer register or constant"),
        ("tcgen05.mma.cta_group::1.kind::f16 [f], q0, q1, r2, p;", "f is .f32"),
        ("tcgen05.mma.cta_group::1.kind::f16 [r0], q0, q1, f, p;", "f is .f32"),
        ("tcgen05.mma.cta_group::1.kind::f16 [r0], q0, 1.5, r2, p;", "expected an integer constant"),
    ],
)
def test_operands_of_another_kind(statement: str, message: str) -> None:
    (problem,) = load_text(
        HEAD.replace(".reg .pred", ".reg .f32 f; .reg .pred") + statement + "\n" + END
    ).problems
    assert isinstance(problem, IllegalInstruction)
    assert message in problem.message
