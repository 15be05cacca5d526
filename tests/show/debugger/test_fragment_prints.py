"""Fragments, tiles and origins at matrix instructions: what is printed is what is multiplied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import warpsim
from warpsim import OperandError
from warpsim.show.debugger import Session
from warpsim.show.debugger.commands.fragment_commands import fragment_at

FOLDER = Path(__file__).parents[3] / "traces" / "mistakes"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
TEXT = f"""\
.version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words)
{{
    .reg .b32 %r<20>; .reg .b64 %rd<4>; .reg .f32 %f<9>;
    ld.param.u64 %rd1, [words]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 64; add.u64 %rd3, %rd1, %rd2;
    ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%rd3];
    ld.global.v4.u32 {{%r6, %r7, %r8, %r9}}, [%rd3+16];
    ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd3+32];
    ld.global.u32 %r10, [%rd3+48];
    {SPARSE}
      {{%f5, %f6, %f7, %f8}}, {{%r2, %r3, %r4, %r5}}, {{%r6, %r7, %r8, %r9}}, {{%f1, %f2, %f3, %f4}}, %r10, 0;
    ret;
}}
"""


@pytest.fixture(scope="module")
def sparse() -> Iterator[tuple[Session, dict[str, np.ndarray]]]:
    """A session before an mma.sp, and its matrices."""
    form = warpsim.decode(SPARSE, target="sm_80")
    random = np.random.default_rng(4)
    A = warpsim.prune(random.integers(-9, 9, (16, 32)).astype(np.float16), form)
    values, indices = warpsim.compress(A, form)
    B = random.integers(-9, 9, (32, 8)).astype(np.float16)
    C = random.integers(-9, 9, (16, 8)).astype(np.float32)
    words = np.zeros((32, 16), np.uint32)
    words[:, 0:4], words[:, 4:8] = warpsim.pack(form, "a", values), warpsim.pack(form, "b", B)
    words[:, 8:12] = warpsim.pack(form, "c", C)
    words[:, 12:13] = warpsim.pack_metadata(form, indices)
    with Session(warpsim.load(TEXT)["k"], 1, 32, [words]) as found:
        found.do("break mnemonic mma.sp")
        found.do("run")
        yield found, {"a": values, "b": B, "c": C, "e": indices}


@pytest.fixture(scope="module")
def hopper() -> Iterator[tuple[Session, np.ndarray, np.ndarray]]:
    """A session before a wgmma that reads B with another swizzle than it was written with."""
    A, B = np.random.default_rng(1).integers(-8, 9, (2, 64, 64)).astype(np.float16)
    kernel = warpsim.load(FOLDER / "wrong_swizzle.ptx")["product"]
    with Session(kernel, 1, 128, [A, B, np.zeros((64, 64), np.float32)]) as found:
        found.do("break mnemonic wgmma.mma_async")
        found.do("run")
        yield found, A, B


@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_fragments_of_registers_are_the_matrix(sparse, operand: str) -> None:
    session, matrices = sparse
    found = fragment_at(session.standing(), session.at(), operand)
    assert found.shape == matrices[operand].shape
    assert all(float(text) == matrices[operand][key] for key, text in found.values.items())
    assert len(found.values) == matrices[operand].size


def test_metadata_is_shown_as_indices(sparse) -> None:
    session, matrices = sparse
    found = fragment_at(session.standing(), session.at(), "e")
    pairs = matrices["e"].reshape(16, -1, 2)
    assert all(text == f"({pairs[key][0]}, {pairs[key][1]})" for key, text in found.values.items())
    assert "selector 0, indices" in session.do("print fragment metadata")


def test_an_element_has_lane_and_register(sparse) -> None:
    session, matrices = sparse
    assert session.do("fragment a[1,3]") == f"a[1,3] = {matrices['a'][1, 3]:g}: lane 5, %r2, bits 31..16"
    rows = session.do("fragment c lane 5").splitlines()
    assert [row.split()[0] for row in rows[1:]] == ["[1,2]", "[1,3]", "[9,2]", "[9,3]"]
    assert session.do("fragment b[0:2,0:3]").splitlines()[1].split() == ["0", "1", "2"]
    assert "not d" not in session.do("fragment d")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fragment q", "has fragments a, b, c, d, metadata here, not q"),
        ("fragment", "not without a name"),
        ("fragment a[16,0]", "outside of 16 x 16"),
        ("fragment a[x]", "expected an element"),
        ("fragment a lane 32", "lane 32 holds nothing of this operand: lanes 0 to 31 hold its elements"),
        ("origins q", "operands are"),
        ("origins a[16,0]", "outside of the operand"),
        ("origins a[0:2,0]", "expected an element"),
    ],
)
def test_what_is_no_fragment_is_said(sparse, command: str, message: str) -> None:
    with pytest.raises(OperandError, match=message):
        sparse[0].do(command)


def test_origins_name_the_element_of_the_array(sparse) -> None:
    session, _ = sparse
    assert session.do("origins a[1,3]") == "a[1,3] is arg0[5, 1]"  # in halves of words
    assert "execution 0" in session.do("origins b")


def test_the_tile_of_a_wgmma_is_what_its_descriptor_reads(hopper) -> None:
    session, A, B = hopper
    found = fragment_at(session.standing(), session.at(), "a")
    assert all(float(text) == A[key] for key, text in found.values.items())
    read = fragment_at(session.standing(), session.at(), "b")
    wrong = {column for (row, column), text in read.values.items() if float(text) != B[column, row]}
    assert wrong == {column for column in range(64) if column % 8 >= 4}
    assert session.do("fragment b[0,4]") == f"b[0,4] = {B[4, 32]:g}: u16 shared+0x2240"


def test_origins_of_a_wgmma_follow_the_swizzle(hopper) -> None:
    session, _, _ = hopper
    assert session.do("origins b[0,4]") == "b[0,4] is arg1[4, 32]"
    assert session.do("why b[0,4]") == "b[0,4] is arg1[4, 32]"
    assert session.do("origins a[3,5]") == "a[3,5] is arg0[3, 5]"
    assert "is read with another swizzle than it was written with" in session.do("origins")


def test_tiles_are_read_through_their_swizzle(hopper) -> None:
    session, A, _ = hopper
    rows = session.do("print tile left as f16 swizzle 128B 64x64 [0:64,0:8]").splitlines()
    assert [[float(cell) for cell in row.split()[1:]] for row in rows[1:65]] == A[:, :8].tolist()
    assert session.do("tile left as f16 swizzle 128B 64x64 [1,0]").endswith(": shared+0x90")
    panels = session.do("tile left as f16 swizzle 64B 32x64 [0,32]")
    assert panels.endswith(": shared+0x800")
    plain = session.do("tile global arg0 as f16 4x4 stride 128").splitlines()
    assert [float(cell) for cell in plain[2].split()[1:]] == A[1, :4].tolist()
    nibbles = session.do("tile shared as u4 2x4 [0:2,0:4]").splitlines()
    assert len(nibbles) == 3


def test_the_byte_that_is_wrong_was_written_by_the_lane_that_swizzled_it(hopper) -> None:
    session, _, B = hopper
    session.do("watch f16 shared+0x2240")
    text = session.do("reverse-continue")
    assert f"after:  {B[4, 32]:g}" in text
    assert "warp 1, lane 4 at wrong_swizzle.cu:18" in text
    session.do("delete")
    session.do("break mnemonic wgmma.mma_async")
    session.do("continue")
