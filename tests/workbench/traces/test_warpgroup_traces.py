"""Traces of a warpgroup: their ``//!`` lines, and proof that the checker sees every missing statement.

The proof: correct traces, from which one synchronising statement at a time is deleted, or moved before the
statement that it has to follow, or behind the one that it has to precede. What stands behind ``// -`` is
what PTX then leaves undefined: the rule that must be reported; ``none`` where the statement was redundant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from tests.helpers import ptxas
from tests.helpers.families import sample
from warpsim.base.errors import OperandError, TraceError
from warpsim.base.files.archives import write_arrays
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.observe.checks.wgmma.hazard import Hazard, HazardError
from warpsim.programs.interactive.machines import Warpgroup
from warpsim.show.cli import main
from warpsim.workbench.traces.checks import ByteDifference, Difference
from warpsim.workbench.traces.reading import Trace, read_trace
from warpsim.workbench.traces.running import Run, run_trace

Words = npt.NDArray[Any]

FOLDER = Path(__file__).parents[3] / "traces"
SHIPPED = [path.stem for path in sorted(FOLDER.glob("wgmma*.ptx"))]


def trace(folder: Path, text: str, **arrays: npt.ArrayLike) -> Path:
    """A trace of sm_90a in a file, with its arrays."""
    head = "//! target sm_90a\n"
    if arrays:
        write_arrays(folder / "t.npz", {name: np.asarray(array) for name, array in arrays.items()})
        head += "//! data t.npz\n"
    path = folder / "t.ptx"
    path.write_text(head + text)
    return path


def run(folder: Path, text: str, **arrays: npt.ArrayLike) -> Run:
    return run_trace(read_trace(trace(folder, text, **arrays)))


# --- lines -----------------------------------------------------------------------------------------


def test_shared_memory_is_written_and_compared(tmp_path: Path) -> None:
    text = """//! warpgroup 4096
    .shared .align 16 .b8 a[16], b[1024];
    //! shared b+16 = tile
    //! load %at = at
    ld.shared.b32 %r, [%at];
    //! expect %r = r
    //! expect shared 0x20 = tile
    bar.sync 0;
    st.shared.b32 [%at], 7;
    //! expect shared b+16 = sevens
    """
    done = run(
        tmp_path,
        text,
        tile=np.arange(128, dtype=np.uint32).reshape(2, 64),
        at=32 + 4 * np.arange(128, dtype=np.uint32),
        r=np.arange(128, dtype=np.uint32),
        sevens=np.full(128, 7, np.uint32),
    )
    assert done.passed
    assert [check.compared for check in done.checks] == [128, 512, 512]
    assert isinstance(done.machine, Warpgroup)
    assert len(done.machine.shared) == 4096


def test_the_first_byte_that_differs(tmp_path: Path) -> None:
    text = "//! warpgroup\n.shared .b32 a[2];\n//! shared a = x\n//! expect shared a = y\n"
    done = run(tmp_path, text, x=np.uint32([1, 2]), y=np.uint32([1, 0x30002]))
    (check,) = done.checks
    assert (check.registers, check.compared, check.different) == ("shared a", 8, 1)
    assert check.first == ByteDifference(address=6, expected=3, actual=0)
    assert str(check.first) == "byte at 0x6 of shared memory: expected 0x03, got 0x00"


def test_words_for_128_lanes_and_blocks(tmp_path: Path) -> None:
    words = " ".join(f"{lane:#x}" for lane in range(128))
    done = run(tmp_path, f"//! warpgroup\n//! load %r = {words}\n{{\n//! expect %r = {words}\n}}\n")
    assert done.passed
    assert done.checks[0].compared == 128


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("//! shared a = 0x1\n", "t.ptx:2:12: error: no variable a in shared memory; there are: none"),
        ("//! warpgroup 0\n", "t.ptx:2:15: error: warpgroup 0: expected bytes of shared memory, 1 to 232448"),
        ("//! warpgroup 1e3\n", "t.ptx:2:15: error: warpgroup 1e3: expected bytes of shared memory, 1 to"),
        ("//! warpgroup\n//! warpgroup 4\n", "t.ptx:3:15: error: warpgroup is already given\n"),
        ("//! warpgroup 8\n//! warpgroup 4\n", "t.ptx:3:15: error: warpgroup is already given as 8\n"),
        (".reg .b32 %r;\n//! warpgroup\n", "t.ptx:3:5: error: warpgroup is given after the first statement"),
        ("//! load %r = 0x1\n//! warpgroup\n", "t.ptx:3:5: error: warpgroup is given after the first load"),
        ("//! warpgroup\n//! load %r = 0x1 0x2\n",
         "t.ptx:3:15: error: 2 words: expected 1 for all lanes, or 128"),
        ("//! warpgroup\n//! shared a = 0x1\n",
         "t.ptx:3:12: error: no variable a in shared memory; there are: none"),
        ("//! warpgroup\n.shared .b32 b, c;\n//! expect shared a+4 = 0x1\n",
         "t.ptx:4:19: error: no variable a in shared memory; there are: b, c"),
        ("//! warpgroup 8\n//! shared 5 = 0x1\n",
         "t.ptx:3:12: error: 4 bytes from 0x5 leave shared memory of 8 bytes"),
        ("//! warpgroup\n//! shared a-4 = 0x1\n",
         "t.ptx:3:12: error: 'a-4': expected an address, or a variable"),
    ],
)  # fmt: skip
def test_lines_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        run(tmp_path, text)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message), str(caught.value)


def test_a_register_that_differs_in_some_warp(tmp_path: Path) -> None:
    """An mma of a warpgroup: the element is that of the lane's own warp."""
    form = warpsim.decode("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", target="sm_90a")
    text = "//! warpgroup\n//! load %a = 0x01010101\n"
    text += f"{form.mnemonic} {{%d0, %d1}}, {{%a}}, {{%a}}, {{%a, %a}};\n"
    d = np.full((128, 2), 0x01010101 + 16, np.uint32)
    d[70, 1] += 1
    (check,) = run(tmp_path, f"{text}//! expect %d<2> = d\n", d=d).checks
    assert isinstance(check.first, Difference)
    assert str(check.first) == (
        "lane 70, register %d1: expected 0x01010112, got 0x01010111; "
        "D[1,5] of warp 2: expected 16843026, got 16843025"
    )


# --- command line ----------------------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    return int(caught.value.code or 0), output.out, output.err


UNFENCED = """//! warpgroup
//! load %d<4> = 0x0
//! load %a<4> = 0x3c003c00
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, 0, 1, 1, 1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
//! expect %d<4> = 0x0
"""


def test_the_command_line_stops_at_hazards_or_lists_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = trace(tmp_path, UNFENCED)
    code, out, err = command(capsys, "run", path)
    assert (code, out) == (3, "")
    assert "t.ptx:5:1: error: no wgmma.fence comes before the first wgmma of the warpgroup\n" in err
    assert "t.ptx:5:1: fix: insert 'wgmma.fence.sync.aligned;' before " in err
    code, out, err = command(capsys, "run", path, "--hazards", "warn", "--show", "none")
    assert (code, err) == (0, "")
    assert "t.ptx:5:1: error: no wgmma.fence comes before" in out
    assert "passed: 1 check, 512 words compared bit by bit" in out
    code, out, err = command(capsys, "run", path, "--hazards", "off", "--show", "none")
    assert (code, "wgmma.fence" in out) == (0, False)
    code, out, err = command(capsys, "run", path, "--hazards", "warn", "--json")
    assert '"rule": "first-fence"' in out


# --- proof of the checker --------------------------------------------------------------------------
#
# Tiles of a dense (k16) and a sparse (k32) f16 product with n = 8. A RS trace has its A in %a, a SS trace
# at address 0 of a stage; B is at 4096. The stages of the pipeline are 8192 bytes apart.

DENSE = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%d0, %d1, %d2, %d3}"
A = "{%a0, %a1, %a2, %a3}"
B_DENSE, B_SPARSE, A_TILE = (
    canonical_descriptor(start, TileShape(mn=mn, k=k, element_bits=16, major="K"), swizzle="none")
    for start, mn, k in ((4096, 8, 16), (4096, 8, 32), (0, 64, 16))
)
STAGE = 8192 >> 4

HEAD = """//! warpgroup 16384
.reg .b32 %x<4>, %a<4>, %at, %e; .reg .f32 %d<4>, %f;
//! load %x<4> = x
//! load %at = at
//! load %d<4> = c
"""

PROGRAMS = {
    "dense RS": f"""
        //! load %a<4> = a
        st.shared.v2.b32 [%at+4096], {{%x0, %x1}};
        fence.proxy.async;                      // - proxy-fence
        bar.sync 0;                             // - barrier
        wgmma.fence.sync.aligned;               // - first-fence
        {DENSE}, {A}, {B_DENSE.encode()}, 1, 1, 1, 0;
        {DENSE}, {A}, {B_DENSE.encode()}, 1, 1, -1, 0;
        wgmma.commit_group.sync.aligned;        // - fragment-in-flight
        wgmma.wait_group.sync.aligned 0;        // - fragment-in-flight
        mov.b32 %a0, %x2;
        wgmma.fence.sync.aligned;               // - fence
        {DENSE}, {A}, {B_DENSE.encode()}, 1, 1, 1, 0;
        wgmma.commit_group.sync.aligned;        // - accumulator-in-flight
        wgmma.wait_group.sync.aligned 0;        // - accumulator-in-flight
        mov.f32 %f, %d0;
    """,
    "dense SS": f"""
        st.shared.v4.b32 [%at], {{%x0, %x1, %x2, %x3}};
        st.shared.v2.b32 [%at+4096], {{%x0, %x1}};
        fence.proxy.async.shared::cta;          // - proxy-fence
        barrier.sync 0;                         // - barrier
        wgmma.fence.sync.aligned;               // - first-fence
        {DENSE}, {A_TILE.encode()}, {B_DENSE.encode()}, 0, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;        // - none
        {DENSE}, {A_TILE.encode()}, {B_DENSE.encode()}, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;        // - shared-in-flight
        wgmma.wait_group.sync.aligned 0;        // - shared-in-flight
        bar.sync 0;                             // - barrier
        st.shared.b32 [%at], %x3;
    """,
    "sparse RS": f"""
        //! load %a<4> = a
        //! shared 4096 = x
        mov.b32 %e, 0xeeeeeeee;
        wgmma.fence.sync.aligned;               // - first-fence
        {SPARSE}, {A}, {B_SPARSE.encode()}, %e, 0, 1, 1, 1, 0;
        {SPARSE}, {A}, {B_SPARSE.encode()}, %e, 1, 1, 1, 1, 0;
        wgmma.commit_group.sync.aligned;        // - accumulator-in-flight
        wgmma.wait_group.sync.aligned 0;        // - metadata-in-flight
        mov.b32 %e, 0x44444444;
        st.shared.b32 [%at+8192], %d1;
        bar.sync 0;                             // - none
        wgmma.fence.sync.aligned;               // - fence
        {SPARSE}, {A}, {B_SPARSE.encode()}, %e, 1, 1, 1, 1, 0;
        wgmma.commit_group.sync.aligned;        // - uncommitted
        wgmma.wait_group.sync.aligned 0;        // - unwaited
    """,
    "sparse SS": f"""
        mov.b32 %e, 0xeeeeeeee;
        st.shared.v4.b32 [%at], {{%x0, %x1, %x2, %x3}};
        st.shared.v4.b32 [%at+4096], {{%x0, %x1, %x2, %x3}};
        bar.sync 0;                             // - barrier
        fence.proxy.async;                      // - proxy-fence
        wgmma.fence.sync.aligned;               // - first-fence
        {SPARSE}, {A_TILE.encode()}, {B_SPARSE.encode()}, %e, 0, 1, 1, 1, 0, 0;
        {SPARSE}, {A_TILE.encode()}, {B_SPARSE.encode()}, %e, 1, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;        // - accumulator-in-flight
        wgmma.wait_group.sync.aligned 0;        // - accumulator-in-flight
        mov.f32 %d2, %d0;
        wgmma.fence.sync.aligned;               // - fence
        {SPARSE}, {A_TILE.encode()}, {B_SPARSE.encode()}, %e, 1, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;        // - accumulator-in-flight
        wgmma.wait_group.sync.aligned 0;        // - accumulator-in-flight
        mov.f32 %f, %d3;
    """,
    "pipeline of two stages": f"""
        st.shared.v4.b32 [%at], {{%x0, %x1, %x2, %x3}};
        st.shared.v2.b32 [%at+4096], {{%x0, %x1}};
        fence.proxy.async;                      // - proxy-fence
        bar.sync 0;                             // - barrier
        wgmma.fence.sync.aligned;               // - first-fence
        {DENSE}, {A_TILE.encode()}, {B_DENSE.encode()}, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;        // - shared-in-flight
        st.shared.v4.b32 [%at+8192], {{%x1, %x1, %x2, %x3}};
        st.shared.v2.b32 [%at+12288], {{%x2, %x1}};
        fence.proxy.async;                      // - proxy-fence
        bar.sync 0;                             // - barrier
        {DENSE}, {A_TILE.encode() + STAGE}, {B_DENSE.encode() + STAGE}, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;        // - shared-in-flight
        wgmma.wait_group.sync.aligned 1;        // - shared-in-flight
        bar.sync 0;                             // - barrier
        st.shared.v4.b32 [%at], {{%x2, %x1, %x2, %x3}};
        st.shared.v2.b32 [%at+4096], {{%x3, %x1}};
        fence.proxy.async;                      // - proxy-fence
        bar.sync 0;                             // - barrier
        {DENSE}, {A_TILE.encode()}, {B_DENSE.encode()}, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;        // - shared-in-flight
        wgmma.wait_group.sync.aligned 1;        // - shared-in-flight
        bar.sync 0;                             // - barrier
        st.shared.v4.b32 [%at+8192], {{%x3, %x1, %x2, %x3}};
        st.shared.v2.b32 [%at+12288], {{%x0, %x1}};
        fence.proxy.async;                      // - proxy-fence
        bar.sync 0;                             // - barrier
        {DENSE}, {A_TILE.encode() + STAGE}, {B_DENSE.encode() + STAGE}, 1, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned;        // - accumulator-in-flight
        wgmma.wait_group.sync.aligned 0;        // - accumulator-in-flight
        mov.f32 %f, %d3;
    """,
    "epilogue through shared memory": f"""
        //! load %a<4> = a
        //! shared 4096 = x
        wgmma.fence.sync.aligned;               // - first-fence
        {DENSE}, {A}, {B_DENSE.encode()}, 1, 1, 1, 0;
        wgmma.commit_group.sync.aligned;        // - accumulator-in-flight
        wgmma.wait_group.sync.aligned 0;        // - accumulator-in-flight
        stmatrix.sync.aligned.m8n8.x2.shared.b16 [%at+8192], {{%d0, %d1}};
        bar.sync 0;                             // - barrier
        ld.shared.b32 %f, [%at+8208];
        bar.sync 0;                             // - barrier
        st.shared.b32 [%at+8192], %f;
    """,
}


@dataclass(frozen=True)
class Statement:
    """A synchronising statement of a program: its line, and the rule that is broken without it."""

    program: str
    index: int
    rule: str

    def __str__(self) -> str:
        return f"{self.program}, line {self.index}"


def lines_of(name: str) -> list[str]:
    return [line.strip() for line in PROGRAMS[name].strip().splitlines()]


SYNCHRONISING = re.compile(r"wgmma\.(fence|commit_group|wait_group)|fence\.|bar\.|barrier\.")
STATEMENTS = [
    Statement(name, index, line.partition("// - ")[2])
    for name in PROGRAMS
    for index, line in enumerate(lines_of(name))
    if SYNCHRONISING.match(line)
]
UNDEFINED = [one for one in STATEMENTS if one.rule != "none"]


@pytest.fixture
def arrays() -> dict[str, Words]:
    random = np.random.default_rng(0)
    halves = random.standard_normal((3, 128, 8)).astype(np.float16)
    return {
        "x": halves[0].view(np.uint32),
        "a": halves[1].view(np.uint32),
        "c": random.standard_normal((128, 4)).astype(np.float32).view(np.uint32),
        "at": 16 * np.arange(128, dtype=np.uint32),
    }


def hazards(folder: Path, lines: Sequence[str], arrays: dict[str, Words]) -> tuple[Hazard, ...]:
    """What the trace reports, errors collected."""
    return run_trace(written(folder, lines, arrays), hazards="warn").hazards


def written(folder: Path, lines: Sequence[str], arrays: dict[str, Words]) -> Trace:
    """The trace of a program, with the arrays it uses."""
    text = "\n".join([HEAD, *lines, ""])
    used = {name: array for name, array in arrays.items() if f"= {name}\n" in text}
    return read_trace(trace(folder, text, **used))


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_intact_trace_is_not_reported(tmp_path: Path, name: str, arrays: dict[str, Words]) -> None:
    assert hazards(tmp_path, lines_of(name), arrays) == ()


@pytest.mark.parametrize("one", STATEMENTS, ids=str)
def test_every_deletion_that_ptx_makes_undefined_is_reported(
    tmp_path: Path, one: Statement, arrays: dict[str, Words]
) -> None:
    lines = lines_of(one.program)
    del lines[one.index]
    found = hazards(tmp_path, lines, arrays)
    assert found == () if one.rule == "none" else one.rule in [hazard.rule for hazard in found]


@pytest.mark.parametrize("one", UNDEFINED, ids=str)
def test_an_error_stops_the_trace(tmp_path: Path, one: Statement, arrays: dict[str, Words]) -> None:
    lines = lines_of(one.program)
    del lines[one.index]
    found = hazards(tmp_path, lines, arrays)
    errors = [hazard for hazard in found if hazard.severity == "error"]
    if not errors:
        assert {hazard.rule for hazard in found} <= {"metadata-in-flight", "barrier"}
        return
    with pytest.raises(HazardError) as caught:
        run_trace(written(tmp_path, lines, arrays))
    assert caught.value.hazard == errors[0]


@pytest.mark.parametrize("one", UNDEFINED, ids=str)
@pytest.mark.parametrize("where", ["before", "behind"])
def test_every_statement_that_is_moved_too_far_is_reported(
    tmp_path: Path, one: Statement, where: str, arrays: dict[str, Words]
) -> None:
    """Before the earlier, or behind the later of the two statements that it has to stand between."""
    lines = lines_of(one.program)
    taken = lines.pop(one.index)
    found = next(hazard for hazard in hazards(tmp_path, lines, arrays) if hazard.rule == one.rule)
    first_line = 2 + HEAD.count("\n") + 2  # of the program, in the file
    place = found.second if where == "behind" else found.first
    if place is None or (where == "behind" and one.rule == "unwaited"):
        pytest.skip("nothing stands there: before the first fence, or behind the end")
    index = min(place.line - first_line, len(lines) - 1)
    lines.insert(index + (where == "behind"), taken)
    assert hazards(tmp_path, lines, arrays), (lines, found)


def test_every_kind_of_statement_is_deleted_in_every_kind_of_trace() -> None:
    assert all(one.rule for one in STATEMENTS)
    for name in PROGRAMS:
        deleted = " ".join(lines_of(name)[one.index] for one in STATEMENTS if one.program == name)
        for kind in ("wgmma.fence", "wgmma.commit_group", "wgmma.wait_group"):
            assert kind in deleted


# --- the traces of the package ---------------------------------------------------------------------


@pytest.mark.parametrize("name", sample(SHIPPED, 2))
def test_every_statement_of_the_example_traces_is_needed(tmp_path: Path, name: str) -> None:
    """Every fence, commit, wait and barrier: without it something is reported, and nothing with it."""
    assert run_trace(read_trace(FOLDER / f"{name}.ptx")).hazards == ()
    (tmp_path / f"{name}.npz").write_bytes((FOLDER / f"{name}.npz").read_bytes())
    lines = (FOLDER / f"{name}.ptx").read_text().splitlines()
    indices = [index for index, line in enumerate(lines) if SYNCHRONISING.match(line)]
    assert len(indices) >= 6
    for index in indices:
        (tmp_path / f"{name}.ptx").write_text("\n".join([*lines[:index], *lines[index + 1 :], ""]))
        assert run_trace(read_trace(tmp_path / f"{name}.ptx"), hazards="warn").hazards, lines[index]


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "")
@pytest.mark.parametrize("name", PROGRAMS)
def test_ptxas_takes_the_programs(name: str) -> None:
    body = " ".join(re.sub(r"//.*", "", line) for line in HEAD.splitlines() + lines_of(name))
    (verdict,) = ptxas.verdicts([body], target="sm_90a", declarations="")
    assert verdict is None


def test_the_stages_hold_what_descriptors_say(arrays: dict[str, Words]) -> None:
    """The descriptors of the programs read the tiles that the stores fill."""
    memory = np.zeros(1 << 14, np.uint8)
    store_tile(memory, B_DENSE, np.ones((8, 16), np.uint16), major="K")
    assert set(np.flatnonzero(memory)) <= set(range(4096, 4096 + 2048))
    with pytest.raises(OperandError):
        store_tile(memory[:4096], B_DENSE, np.ones((8, 16), np.uint16), major="K")
