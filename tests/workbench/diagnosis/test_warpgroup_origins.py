"""Origins of what wgmma reads: fragments of 128 lanes, metadata words, tiles behind descriptors."""

from __future__ import annotations

import pytest

from tests.helpers import kernel_cases
from tests.helpers.kernel_cases import FOLDER
from warpsim.programs.launch.launching import load_text
from warpsim.show.views.origins import fragment_lines, origin_lines
from warpsim.workbench.diagnosis.origins.element_origins import Origins, find_origins

TEXT = (FOLDER / "warpgroup_tiles.ptx").read_text()
NAMED = {
    "warpgroup_f16": {"A": 0, "B": 1},
    "warpgroup_sparse_f16": {"A": 0, "E": 1, "B": 2},
    "warpgroup_e4m3": {"A": 0, "B": 1},
}


def origins(entry: str, *changes: tuple[str, str]) -> Origins:
    """Those of a kernel some of whose text is replaced."""
    text = TEXT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after, 1)
    case = kernel_cases.case(f"{entry} normal")
    kernel = load_text(text, "k.ptx")[entry]
    return find_origins(kernel, case.grid, case.block, case.arguments, NAMED[entry], case.shared_bytes)


FORMULAS = {
    "warpgroup_f16": {
        "a": "row = 64 * ctaid.y + r, column = 64 * step + k",
        "b": "row = 64 * ctaid.x + n, column = 64 * step + k",
    },
    "warpgroup_sparse_f16": {
        "a": "row = 64 * ctaid.y + r, column = 32 * step + k",
        "b": "row = 64 * ctaid.x + n, column = 64 * step + k",
    },
    "warpgroup_e4m3": {
        "a": "row = 128 * ctaid.y + 64 * (warp / 4 % 2) + r, column = 128 * step + k",
        "b": "row = 64 * ctaid.x + n, column = 128 * step + k",
    },
}


@pytest.mark.parametrize("entry", NAMED)
def test_every_element_of_both_arrays_arrives(entry: str) -> None:
    found = origins(entry)
    assert found.findings == ()
    assert found.dependences == ()
    assert [found.used(one) for one in found.buffers] == [1.0] * len(NAMED[entry])
    first = {one.role: one.formulas for one in reversed(found.operands)}
    for role, formula in FORMULAS[entry].items():
        assert first[role] == (f"{formula} (100.0% of the elements that are moved)",)


SECOND = "%rd142, %rd146, "  # the descriptor of B of the second step


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            (("%rd139, %rd140, %r371", "%rd139, %rd140, %r372"), ("%rd142, %r372", "%rd142, %r371")),
            [
                "metadata of k step 1 is used in k step 0: 1 step ahead",
                "metadata of k step 0 is used in k step 1: 1 step behind",
            ],
        ),
        (
            (("%r371, [%rd165];", "%r371, [%rd165]; shfl.sync.bfly.b32 %r371, %r371, 1, 31, -1;"),),
            ["lane l holds the word of metadata of lane l xor 1"],
        ),
        (
            (("add.s32 \t%r379, %r60, 64;", "add.s32 \t%r379, %r60, 0;"),),
            ["A is of columns 16..31 where B of columns 0..31: they are not of the same k"],
        ),
    ],
)
def test_mistakes_are_named(changes: tuple[tuple[str, str], ...], expected: list[str]) -> None:
    found = origins("warpgroup_sparse_f16", *changes)
    messages = list(dict.fromkeys(one.message for one in found.findings))
    assert messages[: len(expected)] == expected, messages


def test_a_tile_that_is_not_where_its_descriptor_looks() -> None:
    """B is read as rows of 64 bytes, but was written as rows of 128."""
    wrong = str((2 << 62 | 64 << 32 | 1 << 16) - (1 << 64))
    found = origins("warpgroup_f16", ("%rd144, 4611686293305360384", f"%rd144, {wrong}"))
    (finding,) = found.findings
    assert finding.operand == "b"
    assert finding.message.startswith("896 of 1024 elements of B are not of the tile (in shared memory)")


def test_what_a_user_sees() -> None:
    found = origins("warpgroup_f16")
    lines = list(origin_lines(found))
    assert "no inconsistency found" in lines[0]
    assert any(line.endswith("m64n64k16.f32.f16.f16, 18 executions of a warpgroup") for line in lines)
    tile = next(one for one in found.operands if one.role == "b")
    shown = list(fragment_lines(tile, 0))
    assert shown[1].split() == ["n", "k", "from"]
    assert shown[2].split() == ["0", "0", "B[0,", "0]"]
