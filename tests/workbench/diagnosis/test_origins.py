"""Origins of fragment elements: right for every element of every kernel, and mistakes in packing by name."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import kernel_cases, kernel_texts, packing_kernels, ptxas
from tests.helpers.command_runner import CliRunner
from tests.helpers.families import sample
from tests.helpers.packing_kernels import Packing
from warpsim.base.errors import Fault, OperandError, UndefinedBehavior
from warpsim.isa.fragments import gather
from warpsim.machine.grid import Launch, run
from warpsim.observe.recording.recorder import LaunchEvent
from warpsim.programs.launch.launching import LaunchableKernel, load_text
from warpsim.show.cli import cli
from warpsim.show.views.origins import origin_lines
from warpsim.workbench.diagnosis.origins import traced_launch
from warpsim.workbench.diagnosis.origins.element_origins import OperandOrigins, Origins, find_origins
from warpsim.workbench.vectors.formats.recording import read_recording

NAMES = {"A": "a", "E": "e", "B": "b"}
SWITCHES = tuple(one.name for one in fields(Packing))
KERNELS = [name for name in kernel_cases.NAMES if name.endswith("integers")]
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def packing_kernel(*switches: str) -> LaunchableKernel:
    packing = replace(Packing(), **dict.fromkeys(switches, True))
    return load_text(packing_kernels.text(packing), "packing.ptx")["packing"]


@cache
def found(*switches: str) -> Origins:
    return find_origins(packing_kernel(*switches), (2, 2), 128, packing_kernels.arguments(), NAMES)


def launched(*switches: str) -> Any:
    """D of the packing kernel."""
    arguments = packing_kernels.arguments()
    packing_kernel(*switches)((2, 2), 128, arguments, checks="off")
    return arguments[3]


# --- every element of every kernel -----------------------------------------------------------------


def check_elements(kernel: LaunchableKernel, origins: Origins, arguments: Any, launch: dict[str, Any]) -> int:
    """Registers of a launch on the data hold, element by element, what is said; how many were compared."""
    sources = {one.name: np.ascontiguousarray(arguments[one.parameter]) for one in origins.buffers}
    report = kernel(args=[*arguments], checks="off", record=True, **launch)
    executed = {
        (
            event.line,
            event.statement.location().column,
            *event.cta,
            event.warp,
            event.index,
        ): _read(event)
        for event in report.events
    }
    compared = 0
    for one in origins.operands:
        if one.buffer is not None:
            compared += _compare_elements(one, sources[one.buffer.name], executed)
    return compared


def _read(event: LaunchEvent) -> dict[str, Any]:
    """Registers by operand, and tiles of a wgmma ``(rows along m or n, k)`` as Operands have them."""
    form, inputs = event.instruction, event.inputs
    if inputs.b_descriptor is None:
        return inputs.registers
    operands = gather(form, inputs)
    tiles = {"a": operands.a, "b": operands.b.T}
    return {name: np.ascontiguousarray(tile) for name, tile in tiles.items()} | inputs.registers


def _compare_elements(one: OperandOrigins, source: Any, executed: Any) -> int:
    location, compared = one.operand.given.location, 0
    bits = np.unpackbits(source.reshape(-1).view(np.uint8), bitorder="little")
    width = one.operand.width
    for number, place in enumerate(one.operand.places.tolist()):
        words = executed[(location.line, location.column, *place)][one.role]
        held = np.unpackbits(
            np.ascontiguousarray(words).reshape(len(words), -1).view(np.uint8), axis=1, bitorder="little"
        )
        held = held.reshape(len(words), -1, width)
        index = one.index[number]
        wanted = bits.reshape(-1, width)[index]
        np.testing.assert_array_equal(held[index >= 0], wanted[index >= 0])
        compared += int((index >= 0).sum())
    return compared


@pytest.mark.parametrize("name", sample(KERNELS, 2))
def test_every_element_of_a_kernel_is_where_it_is_said_to_be(name: str) -> None:
    case = kernel_cases.case(name)
    text = (kernel_cases.FOLDER / case.file).read_text()
    kernel = load_text(text, case.file)[case.entry]
    arguments = [one.copy() if isinstance(one, np.ndarray) else one for one in case.arguments]
    names = [i for i, one in enumerate(arguments) if isinstance(one, np.ndarray) and i not in case.expected]
    launch = {"grid": case.grid, "block": case.block, "shared_bytes": case.shared_bytes}
    origins = find_origins(kernel, args=arguments, origins=names, **launch)
    for before, after in zip(case.arguments, arguments, strict=True):
        np.testing.assert_array_equal(before, after)
    assert [str(one) for one in origins.findings] == []
    assert origins.dependences == ()
    assert check_elements(kernel, origins, arguments, launch) > 0


@pytest.mark.parametrize("switches", [(), *((name,) for name in SWITCHES)], ids="-".join)
def test_wrong_packing_is_traced_rightly(switches: tuple[str, ...]) -> None:
    origins, arguments = found(*switches), packing_kernels.arguments()
    kernel = packing_kernel(*switches)
    assert check_elements(kernel, origins, arguments, {"grid": (2, 2), "block": 128}) > 60_000


# --- launches ----------------------------------------------------------------------------------------


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """Every launch that looking for origins executes."""
    executed = list[Launch]()

    def noted(launch: Launch) -> None:
        executed.append(launch)
        run(launch)

    monkeypatch.setattr(traced_launch, "run", noted)
    return executed


def test_origins_take_one_launch(launches: list[Launch]) -> None:
    """Findings take none, and a wrong kernel takes no more."""
    case = kernel_cases.case(kernel_cases.BENCHMARK)
    kernel = load_text((kernel_cases.FOLDER / case.file).read_text(), case.file)[case.entry]
    sizes = {"shared_bytes": case.shared_bytes, "cluster": case.cluster}
    origins = find_origins(kernel, case.grid, case.block, case.arguments, {"A": 0, "E": 1, "B": 2}, **sizes)
    assert origins.findings == ()
    assert len(launches) == 1
    kept = {id(one.operand.kept): one for one in origins.operands}
    assert (len(origins.operands), len(kept)) == (
        128,
        26,
    )  # the others were given the same, and share results
    assert len({one.operand.given.location.line for one in origins.operands}) == 32
    wrong = packing_kernel("metadata_rows", "stride")
    origins = find_origins(wrong, (2, 2), 128, packing_kernels.arguments(), NAMES)
    assert len({finding.kind for finding in origins.findings}) == 2
    assert len(launches) == 2


@pytest.mark.parametrize(
    ("body", "sources"),
    [
        ("prmt.b32 %a0, %a0, 0, 0x1032;", ["A[0, 1]", "A[0, 0]"]),
        ("prmt.b32 %a0, %a0, 0, 0x2301;", ["computed", "computed"]),  # bytes of each half are exchanged
        ("shf.l.wrap.b32 %a0, %a0, %a0, 16;", ["A[0, 1]", "A[0, 0]"]),
        ("and.b32 %a0, %a0, 0xffff;", ["A[0, 0]", "constant"]),
        ("shl.b32 %a0, %a0, 16;", ["constant", "A[0, 0]"]),
        (
            "{ .reg .b32 %h; shl.b32 %h, %a0, 16; shr.u32 %a0, %a0, 16; add.u32 %a0, %h, %a0; }",
            ["A[0, 1]", "A[0, 0]"],
        ),
        ("{ .reg .b32 %h; shr.u32 %h, %a0, 16; mad.lo.u32 %a0, %a0, 65536, %h; }", ["A[0, 1]", "A[0, 0]"]),
        (
            "{ .reg .b32 %h; shr.u32 %h, %a0, 8; add.u32 %a0, %a0, %h; }",
            ["computed: A[0, 0] + (bits 31..8 of A[0, 0])"] * 2,
        ),
        ("xor.b32 %a0, %a0, 0x80808080;", ["computed: xor(A[0, 0], 0x80808080)"] * 2),
        (
            "{ .reg .b64 %w; mov.b64 %w, {%a0, %a1}; shr.u64 %w, %w, 16; cvt.u32.u64 %a0, %w; }",
            ["A[0, 1]", "A[0, 2]"],
        ),
        ("{ .reg .b16 %h<2>; mov.b32 {%h0, %h1}, %a0; mov.b32 %a0, {%h1, %h0}; }", ["A[0, 1]", "A[0, 0]"]),
    ],
)  # fmt: skip
def test_bytes_and_bits_that_move(launches: list[Launch], body: str, sources: list[str]) -> None:
    found = fragments(body + "\n" + MMA)
    assert [one.source for one in found.operands[0].table()[:2]] == sources
    assert len(launches) == 1


@pytest.mark.parametrize(
    ("body", "formula"),
    [
        ("{ .reg .b32 %z; mov.b32 %z, 0; max.f16x2 %a0, %a0, %z; }", "relu(A[0, 0..1])"),
        ("mul.rn.f16x2 %a0, %a0, %b0; neg.f16x2 %a0, %a0;", "-(A[0, 0..1] * B[0, 0..1])"),
        ("fma.rn.f16x2 %a0, %a0, %b0, %b1;", "A[0, 0..1] * B[0, 0..1] + B[0, 2..3]"),
        (
            "{ .reg .b16 %h<2>; .reg .f32 %x; mov.b32 {%h0, %h1}, %a0; cvt.f32.f16 %x, %h1;"
            "ex2.approx.f32 %x, %x; add.f32 %x, %x, 0f3F000000; cvt.rn.f16.f32 %h1, %x;"
            "mov.b32 %a0, {%h1, %h0}; }",
            "ex2(A[0, 1]) + 0.5",
        ),
        (
            "{ .reg .b32 %q; .reg .f32 %x; .reg .b16 %h; bfe.u32 %q, %a0, 20, 4; cvt.rn.f32.u32 %x, %q;"
            "mul.f32 %x, %x, %c0; cvt.rn.f16.f32 %h, %x; mov.b32 %a0, {%h, %h}; }",
            "(bits 23..20 of A[0, 0]) * C[0, 0]",
        ),
    ],
)
def test_what_is_computed_has_a_formula(body: str, formula: str) -> None:
    origins = fragments(body + "\n" + MMA)
    (first, *_) = origins.operands[0].table()
    assert first.source == f"computed: {formula}"
    (line,) = (line for line in origin_lines(origins) if line.startswith("  a: "))
    assert line.endswith(f" elements computed (such as {formula})")


def test_metadata_without_a_meaning_is_traced() -> None:
    """Nothing is refused: what is wrong is what is asked for."""
    arguments = packing_kernels.arguments()
    arguments[1] = np.zeros_like(arguments[1])  # both indices of a pair are equal
    with pytest.raises(UndefinedBehavior):
        packing_kernel()((2, 2), 128, arguments, checks="off")
    origins = find_origins(packing_kernel(), (2, 2), 128, arguments, NAMES)
    assert origins.findings == ()
    assert origins.used(origins.buffers[1]) == 1


# --- mistakes by name ------------------------------------------------------------------------------

SAID = {
    "row_slip": (
        "ldmatrix row",
        "ldmatrix row 5 of matrix 0 (lanes 20..23, a0) is row 6 of the tile of A, not row 5: "
        "the address that lane 5 gives",
    ),
    "stale_warp": (
        "stage",
        "warp 2 reads A of the stage before: columns 0..15 where the others read 32..47; "
        "in step 0 nothing of any array",
    ),
    "stale": (
        "stage",
        "warps 0, 1, 2, 3 read A of the stage before: columns 0..15 where B is of columns 64..95; "
        "in step 0 nothing of any array",
    ),
    "twice": (
        "repeated",
        "A of columns 0..15 and B of columns 0..31 are multiplied again, the first time in step 0",
    ),
    "metadata_lane": ("metadata lane", "the word of metadata in lane 5 belongs to lane 4"),
    "swizzle": (
        "swizzle",
        "A is read with another swizzle than it was written with: in row r, 16-byte chunk c holds "
        "chunk c xor (0, 1, 3, 2, 2, 3, 1, 0)[r mod 8]",
    ),
    "stride": ("stride", "B's row stride is 64 elements as it is read, the data was written with 72"),
    "metadata_step": ("metadata step", "metadata of k step 1 is used in k step 0: 1 step ahead"),
    "rotated": (
        "order",
        "rows of A are permuted within the tile: rotated by 2, place r holds r + 2 (mod 16)",
    ),
    "halves": (
        "order",
        "k halves of A are exchanged: k 0..7 of the tile holds 8..15, and the other way round",
    ),
    "registers": ("registers", "registers a1 and a3 hold each other's elements of A"),
    "metadata_rows": (
        "metadata bytes",
        "metadata of row g and g+8 are exchanged: the halves of each word (in lane 0, rows 0 and 8) "
        "(lanes 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29)",
    ),
}


def test_every_mistake_has_its_sentence() -> None:
    assert set(SAID) == set(SWITCHES)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_mistake_is_found_and_named(name: str) -> None:
    findings = found(name).findings
    kind, message = SAID[name]
    assert findings[0].message == message
    assert {one.kind for one in findings} == {kind}  # of both statements, and nothing else
    assert len(findings) == (1 if name == "twice" else 2)
    assert len({one.location.line for one in findings}) == len(findings)
    warps = {2} if name == "stale_warp" else {0, 1, 2, 3}
    assert set(findings[0].places[:, 3].tolist()) == warps


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("row_slip", "metadata_lane"),
        ("swizzle", "stride"),
        ("halves", "stale_warp"),
        ("rotated", "metadata_step"),
        ("registers", "metadata_rows"),
    ],
)
def test_two_mistakes_at_once_are_both_named(first: str, second: str) -> None:
    messages = {one.message for one in found(first, second).findings}
    assert {SAID[first][1], SAID[second][1]} <= messages
    assert len({one.kind for one in found(first, second).findings}) == 2


@pytest.mark.parametrize("name", SWITCHES)
def test_a_mistake_is_one(name: str) -> None:
    assert not np.array_equal(launched(name).view(np.uint32), launched().view(np.uint32))


def test_a_product_that_begins_another_sum_is_no_repetition() -> None:
    """A kernel may compute a tile again for another purpose, as a softmax in two passes does."""
    text = packing_kernels.text(replace(Packing(), twice=True))
    before, again, after = text.split("{%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}", 2)
    after = after.replace("{%d0, %d1, %d2, %d3}, %e, 0x0;", "{%z, %z, %z, %z}, %e, 0x0;", 1)
    text = f"{before}{{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}{again}"
    text += f"{{%y0, %y1, %y2, %y3}}, {{%a0, %a1, %a2, %a3}}{after}"
    text = text.replace(".reg .f32 %d<4>;", ".reg .f32 %d<4>, %y<4>, %z;")
    text = text.replace("mov.u32 %step, 0;", "mov.u32 %step, 0; mov.f32 %z, 0f00000000;")
    kernel = load_text(text, "packing.ptx")["packing"]
    assert find_origins(kernel, (2, 2), 128, packing_kernels.arguments(), NAMES).findings == ()


def test_right_packing_is_right() -> None:
    a, e, b, _, steps = packing_kernels.arguments()
    form = warpsim.decode(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_80"
    )
    expected = np.zeros((128, 16))
    for tile, step in np.ndindex(8, 2 * int(steps)):
        indices = warpsim.unpack_metadata(form, e[tile, step][:, None], selector=0)
        rows = slice(16 * tile, 16 * tile + 16)
        part = warpsim.decompress(a[rows, 16 * step : 16 * step + 16], indices, form)
        expected[rows] += part.astype(float) @ b[:, 32 * step : 32 * step + 32].T.astype(float)
    np.testing.assert_array_equal(launched(), expected.astype(np.float32))
    assert found().findings == ()
    assert found().dependences == ()


def test_formulas() -> None:
    texts = {one.role: one.formulas for one in found().operands[:4]}
    share = "(100.0% of the elements that are moved)"
    assert texts["a"] == (f"row = 64 * ctaid.y + 16 * warp + r, column = 32 * step + k {share}",)
    assert texts["b"] == (f"row = 8 * ctaid.x + n, column = 64 * step + k {share}",)
    assert texts["c"] == texts["e"] == ()


@pytest.mark.parametrize("name", ["", *SWITCHES])
def test_ptxas_takes_the_kernels(name: str, tmp_path: Path) -> None:
    if reason := ptxas.missing():
        pytest.skip(reason)
    text = packing_kernels.text(replace(Packing(), **({name: True} if name else {})))
    ptxas_run(text, tmp_path)


def ptxas_run(text: str, folder: Path) -> None:
    import subprocess

    path = folder / "packing.ptx"
    path.write_text(text)
    command = [str(ptxas.program()), "-arch=sm_80", str(path), "-o", str(folder / "packing.cubin")]
    subprocess.run(command, check=True)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("A", "x4.shared.b16", "x4.trans.shared.b16"),
        ("B", "x4.trans.shared.b16", "x4.shared.b16"),
    ],
)
def test_a_transposed_operand_is_one_finding(name: str, before: str, after: str) -> None:
    """.trans where it should not be, or missing: no k step is blamed."""
    case = kernel_cases.case("dense_f16 normal")
    text = (kernel_cases.FOLDER / case.file).read_text().replace(before, after)
    kernel = load_text(text, case.file)[case.entry]
    findings = find_origins(kernel, case.grid, case.block, case.arguments, {"A": 0, "B": 1}).findings
    assert {finding.message for finding in findings} == {
        f"every 8x8 matrix of the tile of {name} is transposed: the .trans of ldmatrix is wrong"
    }
    assert {finding.kind for finding in findings} == {"transposed"}


# --- fragments in an order of their own ------------------------------------------------------------


def fragments(body: str, extra: str = "", **more: Any) -> Origins:
    """Origins of an mma whose registers come from arrays (32, registers)."""
    inputs = {
        "a": np.zeros((32, 4), np.uint32),
        "b": np.zeros((32, 2), np.uint32),
        "c": np.zeros((32, 4), "f4"),
    }
    outputs = {"d": np.zeros((32, 4), np.float32)}
    text = kernel_texts.kernel("sm_80", inputs, outputs, body, extra=extra)
    kernel = load_text(text, "k.ptx")["k"]
    arguments = [*inputs.values(), *outputs.values()]
    return find_origins(kernel, 1, 32, arguments, {"A": 0, "B": 1, "C": 2}, **more)


MMA = f"{DENSE} {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{%c0, %c1, %c2, %c3}};"


def test_any_order_of_fragments_is_right() -> None:
    origins = fragments(MMA)
    assert origins.findings == ()
    a = origins.operands[0]
    assert a.index[0].tolist() == np.arange(256).reshape(32, 8).tolist()
    assert a.table()[9].source == "A[1, 1]"
    assert (a.table()[9].lane, a.table()[9].register, a.table()[9].bits) == (1, 0, (31, 16))


def test_a_lane_that_breaks_the_order_is_named() -> None:
    swap = "{ .reg .pred %p; setp.eq.u32 %p, %lane, 5; @%p mov.b32 %a2, %a3; }\n"
    (finding,) = fragments(swap + MMA).findings
    assert finding.message == (
        "elements of A that are out of order (lane 5, a2): lane 5 holds A[5, 6] in a2, not A[5, 4]; "
        "lane 5 holds A[5, 7] in a2, not A[5, 5]"
    )


def test_what_is_computed_is_not_traced() -> None:
    body = """neg.f16x2 %a0, %a0; add.u32 %a1, %a1, %a2; mov.b32 %a2, 7; prmt.b32 %a3, %a3, %b0, 0x5410;
    """
    origins = fragments(body + MMA)
    a, b, c = origins.operands[:3]
    sources = [one.source for one in a.table()[:8]]
    computed = ["computed: -A[0, 0..1]"] * 2 + ["computed: A[0, 1] + A[0, 2]"] * 2
    assert sources == [*computed, *["constant"] * 2, "A[0, 6]", "another buffer"]
    assert a.counts == {"moved": 64, "constant": 64, "computed": 128, "a result": 0}
    assert b.counts["moved"] == 128
    assert [one.source for one in c.table()[:4]] == ["C[0, 0]", "C[0, 1]", "C[0, 2]", "C[0, 3]"]


def test_results_are_told_from_constants() -> None:
    again = MMA.replace("{%c0, %c1, %c2, %c3}", "{%d0, %d1, %d2, %d3}")
    second = fragments(MMA + "\n" + again).operands[-1]
    assert second.counts == {"moved": 0, "constant": 0, "computed": 0, "a result": 128}


# --- what depends on the data ----------------------------------------------------------------------


def test_a_branch_on_the_data_is_named() -> None:
    body = """{ .reg .pred %p; setp.gt.u32 %p, %a0, 77;
    @%p bra around;
    add.u32 %b0, %b0, 1;
    around: }
    """
    (dependence,) = fragments(body + MMA).dependences
    assert "@%p bra around" in dependence.location.text
    assert dependence.message.endswith("depends on values in A, B, C")


def test_a_guard_that_no_lane_passes_is_named() -> None:
    body = "{ .reg .pred %p; setp.ne.u32 %p, %a0, 0; @%p mov.b32 %a1, %a2;"
    body += "setp.eq.u32 %p, %lane, 3; @%p mov.b32 %a2, 0; }\n"
    (dependence,) = fragments(body + MMA).dependences
    assert "@%p mov.b32 %a1, %a2" in dependence.location.text


def test_selections_by_the_data_are_no_control() -> None:
    body = "{ .reg .pred %p; setp.gt.u32 %p, %a0, 77; selp.b32 %a1, %a1, %a2, %p; }\n"
    origins = fragments(body + MMA)
    assert origins.dependences == ()
    assert origins.operands[0].table()[2].source == "computed: selp(A[0, 1], A[0, 2], ...)"


def test_an_address_from_the_data_is_named() -> None:
    body = """{ .reg .b64 %w; .reg .b32 %i; ld.param.u64 %w, [p1]; and.b32 %i, %a0, 12;
    mul.wide.u32 %w, %i, 1; .reg .b64 %v; ld.param.u64 %v, [p1]; add.u64 %w, %w, %v;
    ld.global.b32 %b0, [%w]; }
    """
    origins = fragments(body + MMA)
    (dependence,) = origins.dependences
    assert "ld.global.b32 %b0, [%w]" in dependence.location.text
    assert dependence.message == "its addresses depend on values in A, B, C"
    sources = {one.source for one in origins.operands[1].table() if not one.register}
    assert sources == {"B[0, 0]", "B[0, 1]"}  # where these data lead


def test_pointers_in_the_data_are_followed() -> None:
    body = "{ .reg .b64 %w; mov.b64 %w, {%a0, %a1}; ld.global.b32 %b0, [%w+16]; }\n"
    inputs = {
        "a": np.zeros((32, 4), np.uint32),
        "b": np.zeros((32, 2), np.uint32),
        "c": np.zeros((32, 4), "f4"),
    }
    outputs = {"d": np.zeros((32, 4), np.float32)}
    kernel = load_text(kernel_texts.kernel("sm_80", inputs, outputs, body + MMA), "k.ptx")["k"]
    device = warpsim.Device("sm_80")
    b = device.array(inputs["b"])
    pointers = np.zeros((32, 4), np.uint32)
    pointers[:, :2] = np.array([b.address], np.uint64).view(np.uint32)
    a = device.array(pointers)
    before = device.memory.data.copy()
    origins = find_origins(kernel, 1, 32, [a, b, inputs["c"], outputs["d"]], {"A": 0, "B": 1})
    (dependence,) = origins.dependences
    assert "ld.global.b32 %b0, [%w+16]" in dependence.location.text
    assert origins.operands[1].table()[0].source == "B[2, 0]"
    np.testing.assert_array_equal(device.memory.data[: before.size], before)
    traced = find_origins(kernel, 1, 32, [a, b, inputs["c"], outputs["d"]], {"B": 1})
    assert traced.dependences == ()
    assert traced.operands[1].table()[0].source == "B[2, 0]"


def test_what_is_wrong_is_raised() -> None:
    body = "{ .reg .b64 %w; mov.b64 %w, 16; ld.global.b32 %b0, [%w]; }\n"
    with pytest.raises(Fault, match="is in no allocation"):
        fragments(body + MMA)


@pytest.mark.parametrize(
    ("origins", "message"),
    [
        ((), "origins names the arrays to trace, such as ('a', 'b')"),
        ("a", "origins names the arrays to trace, such as ('a', 'b')"),
        (("x",), "origins: no parameter 'x'; they are 0 a, 1 e, 2 b, 3 d, 4 steps"),
        ((7,), "origins: no parameter 7; they are 0 a, 1 e, 2 b, 3 d, 4 steps"),
        ((0, "a"), "origins names one parameter twice"),
        (("steps",), "origins of steps: parameter 4 is given no array"),
    ],
)
def test_names_that_are_none(origins: Any, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        find_origins(packing_kernel(), (2, 2), 128, packing_kernels.arguments(), origins)
    assert caught.value.message == message


# --- the command line ------------------------------------------------------------------------------


def command(folder: Path, *options: str, switches: tuple[str, ...] = ()) -> tuple[int, str]:
    path = folder / "packing.ptx"
    path.write_text(packing_kernels.text(replace(Packing(), **dict.fromkeys(switches, True))))
    for name, array in zip("aebd", packing_kernels.arguments(), strict=False):
        np.save(folder / f"{name}.npy", array)
    given = [f"--arg={folder / name}.npy" for name in "aebd"]
    launch = ["launch", str(path), "--entry", "packing", "--grid", "2,2", "--block", "128", *given]
    result = CliRunner().invoke(cli, [*launch, "--arg=u32:4", *options], standalone_mode=False)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return int(result.return_value), result.stdout


def test_command_line_text(tmp_path: Path) -> None:
    code, text = command(tmp_path, "--origins", "A=a,E=1,b", switches=("metadata_lane",))
    lines = text.splitlines()
    assert code == 1
    assert lines[0] == "the word of metadata in lane 5 belongs to lane 4 [metadata lane]"
    assert lines[1].endswith("packing.ptx, lines 63, 79: 4 CTAs, warps 0, 1, 2, 3, 64 executions")
    assert lines[2:5] == [
        "A: parameter 0, float16 (128, 128), 100.0% of it in matrix instructions",
        "E: parameter 1, uint32 (8, 8, 32), 96.9% of it in matrix instructions",
        "b: parameter 2, float16 (16, 256), 100.0% of it in matrix instructions",
    ]
    assert "  c: 2048 elements constant, 6144 elements a result" in lines
    assert "  5     e0        7..0    E[0, 0, 4]" in lines
    assert "  5     e0        15..8   E[0, 0, 4] byte 1" in lines


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ("stale_warp", "a: warp 2 reads A of the stage before"),
        ("stride", "b: "),
        ("metadata_lane", "e: the word of metadata in lane 5 belongs to lane 4"),
    ],
)
def test_a_recording_keeps_what_does_not_fit(tmp_path: Path, switch: str, said: str) -> None:
    """lint and diff of the recording say it, for the statements that are concerned."""
    file = str(tmp_path / "r.npz")
    options = ("--origins", "A=a,E=e,B=b", "--trace-mma", file, "--checks", "off")
    code, text = command(tmp_path, *options, switches=(switch,))
    assert code == 1
    assert "128 matrix instructions recorded in" in text
    assert said in text
    kept = read_recording(file).packing
    assert kept is not None
    assert any(str(note).startswith(said) for note in kept)
    for verb in ("lint", "diff"):
        result = CliRunner().invoke(cli, [verb, file], standalone_mode=False)
        assert result.return_value == 1
        assert f"packing.ptx:{kept[0].line}: mma.sp" in result.stdout
        assert said in result.stdout
    document = json.loads(CliRunner().invoke(cli, ["diff", file, "--json"], standalone_mode=False).stdout)
    assert document["subjects"][0]["packing"][0]["message"] == kept[0].message


def test_a_recording_of_what_fits_says_so(tmp_path: Path) -> None:
    file = str(tmp_path / "r.npz")
    code, text = command(tmp_path, "--origins", "a,e,b", "--trace-mma", file)
    assert (code, read_recording(file).packing) == (0, ())
    assert "where operands come from: no findings, kept in the recording" in text
    assert CliRunner().invoke(cli, ["diff", file], standalone_mode=False).return_value == 0


def test_command_line_without_findings(tmp_path: Path) -> None:
    code, text = command(tmp_path, "--origins", "a,b", "--fragment", "63:b:1")
    assert code == 0
    assert text.startswith("no inconsistency found in the operands\n")
    assert "  31    b3        31..16  b[7, 95]\n" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fragment=63:a",), "--fragment goes with --origins"),
        (
            ("--origins=a", "--save=3=d.npy"),
            "--origins computes nothing: --save and --expect do not go with it",
        ),
        (("--origins=a,=b",), "--origins a,=b: expected names, as in A,B,E or A=0,B=2"),
        (("--origins=a,q",), "origins: no parameter 'q'; they are 0 a, 1 e, 2 b, 3 d, 4 steps"),
        (
            ("--origins=a", "--fragment=a"),
            "--fragment a: expected LINE:OPERAND or LINE:OPERAND:N, as in 62:a:0",
        ),
        (("--origins=a", "--fragment=63:a:64"), "--fragment 63:a:64: there are 64 executions, from 0 on"),
    ],
)
def test_command_line_usage(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="UsageError") as caught:
        command(tmp_path, *options)
    assert message in str(caught.value)


def test_command_line_json(tmp_path: Path) -> None:
    code, text = command(tmp_path, "--origins=a,b", "--fragment=63:a", "--json", switches=("halves",))
    document = json.loads(text)
    assert code == 1
    assert {one["kind"] for one in document["findings"]} == {"order"}
    assert [one["operand"] for one in document["operands"]] == [*"abce", *"abce"]
    assert document["fragment"]["elements"][0] == {
        "lane": 0,
        "register": 0,
        "bits": [15, 0],
        "from": "a[0, 8]",
    }
    assert document["dependences"] == document["errors"] == []
