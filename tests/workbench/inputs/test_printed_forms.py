"""Prints of arrays as programs make them: read as the numbers that they are, or asked back."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import warpsim
from tools.mistakes.dumps import prints
from tools.mistakes.engineers import log_keeper
from tools.mistakes.judging import Case, answered
from warpsim.show.cli import cli
from warpsim.workbench.inputs.foreign_numbers import in_plain_notation
from warpsim.workbench.inputs.lane_logs import lane_log
from warpsim.workbench.inputs.printed_forms import Wanted, plain_text
from warpsim.workbench.inputs.register_text import numbers_from, words_from

MATRIX = Wanted(name="D", rows=16, columns=8, lanes=32, values=4)
REGISTERS = Wanted(name="d", rows=16, columns=8, lanes=32, values=4)
D = np.arange(128).reshape(16, 8) / 4


@pytest.mark.parametrize("mistake", prints.LIST, ids=lambda each: each.name)
def test_prints_of_other_people_are_read_or_asked_back(mistake: Case) -> None:
    found, _, text = answered(mistake)
    assert found == ("asked" if mistake.asked else "named"), text


@pytest.mark.parametrize("case", log_keeper.LIST.cases, ids=lambda case: case.name)
def test_logs_are_read_or_asked_back(case: Case) -> None:
    found, _, text = answered(case)
    assert found in ("named", "asked" if case.asked else "named"), text


def matrix(text: str) -> Any:
    return numbers_from(plain_text(text, MATRIX), 8)[0]


def words(text: str) -> Any:
    return words_from(plain_text(text, REGISTERS), 32, 4)


def test_repeats_of_a_debugger_are_expanded() -> None:
    text = "$1 = {{1, 2, 3 <repeats 6 times>}, " + ", ".join("{4 <repeats 8 times>}" for _ in range(15)) + "}"
    assert matrix(text).tolist() == [[1, 2] + [3] * 6] + [[4] * 8] * 15


def test_a_common_factor_moves_the_point_and_adds_no_digits() -> None:
    rows = "\n".join("  ".join(f"{value / 1000:.9f}" for value in row) for row in D.tolist())
    text = plain_text(f"D =\n\n   1.0e+03 *\n\n{rows}", MATRIX)
    assert numbers_from(text, 8)[0].tolist() == D.tolist()
    assert numbers_from(text, 8)[1].decimals == 6  # type: ignore[union-attr]


@pytest.mark.parametrize("first", [0, 1])
def test_indices_begin_with_zero_or_one(first: int) -> None:
    cells = [f"D({r + first},{c + first}) = {D[r, c]}" for c in range(8) for r in range(16)]
    assert (matrix("\n".join(cells)) == D).all()


def test_a_missing_element_is_named() -> None:
    cells = [f"D[{r}][{c}] = {D[r, c]}" for c in range(8) for r in range(16) if (r, c) != (3, 5)]
    with pytest.raises(warpsim.WarpsimError, match=r"element \(3, 5\) is missing"):
        matrix("\n".join(cells))


def test_a_table_of_lanes_is_no_matrix() -> None:
    text = "lane,reg,value\n" + "\n".join(f"{i},{r},1.5" for i in range(32) for r in range(4))
    with pytest.raises(warpsim.WarpsimError, match="has a lane and register: give it as d=FILE"):
        matrix(text)


def test_an_object_with_several_arrays_is_asked_back() -> None:
    text = json.dumps({"X": D.tolist(), "Y": D.tolist()})
    with pytest.raises(warpsim.WarpsimError, match="several arrays, X, Y: none of them is called D"):
        matrix(text)


def test_several_warps_are_asked_back() -> None:
    text = "\n".join(f"warp {w} lane {i}: d0={i}" for w in range(2) for i in range(32))
    with pytest.raises(warpsim.WarpsimError, match="threads of warps 0, 1: give the lines of one warp"):
        lane_log(text, 32)


def test_a_log_keeps_every_name_and_step() -> None:
    text = "\n".join(
        f"[INFO] step={s} tid={i} a0=0x{s:08x} b0=0x{i:08x} took 3 us"
        for s in range(2)
        for i in reversed(range(32))
    )
    log = lane_log(text, 32)
    assert log is not None
    assert words_from(log, 32, 1, operand="a")[:, :, 0].tolist() == [[0] * 32, [1] * 32]
    assert words_from(log, 32, 1, operand="b")[1, :, 0].tolist() == list(range(32))


@pytest.mark.parametrize(
    "text", ["", "[", "{", "[[1, 2]", "D = [", '{"D": ', "lane", "$1 = {", "|||\n||\n|", "tensor("]
)
def test_broken_texts_are_left_to_the_reader(text: str) -> None:
    assert plain_text(text, MATRIX) == text


def test_plain_rows_and_lanes_stay_as_they_are() -> None:
    rows = "\n".join(" ".join(map(str, row)) for row in D.tolist())
    assert plain_text(rows, MATRIX) == rows
    lanes = "\n".join(f"lane {i}: 0x1 0x2 0x3 0x4  # comment" for i in range(32))
    assert plain_text(lanes, REGISTERS) == lanes


def test_hexadecimal_words_of_16_lines_are_registers() -> None:
    """Rows of words are not decimals of a matrix: lanes follow each other."""
    text = "\n".join(" ".join(f"0x{8 * r + c:08x}" for c in range(8)) for r in range(16))
    assert words(text).reshape(-1).tolist() == list(range(128))


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1",
        " ",
        "[",
        "{",
        "(",
        "lane ",
        "row ",
        "1,",
        "|",
        "lane 1 ",
        "step ",
        "=",
        "a=",
        "$1 = {",
        '{"D":',
        "\t",
        "D[",
        "\\begin{array}{",
        "\\\\[1",
        "1,5;",
    ],
)
@pytest.mark.parametrize("start", ["", "lane", "D[1][1] = ", "lane 3: a", "row"])
def test_long_texts_take_little_time(start: str, piece: str) -> None:
    """Nothing is quadratic: 200,000 characters of any piece end at once, read or refused."""
    begin = time.process_time()
    with contextlib.suppress(warpsim.WarpsimError):
        plain_text(start + piece * (200_000 // len(piece)), REGISTERS)
    assert time.process_time() - begin < 5


def test_a_line_for_each_register_has_its_name() -> None:
    """Registers with names are transposed; without names there are two readings."""
    named = "\n".join(f"R{24 + r}: " + " ".join(f"{4 * i + r}.5" for i in range(32)) for r in range(4))
    text = plain_text(named, REGISTERS)
    assert text.splitlines()[5] == "lane 1: reg[1] = 5.5"
    with pytest.raises(warpsim.WarpsimError, match="4 lines of 32 numbers: there are two readings"):
        plain_text("\n".join(line.partition(": ")[2] for line in named.splitlines()), REGISTERS)


@pytest.mark.parametrize("number", ["{}:", "[{}]", "{} :"])
def test_rows_may_be_numbered(number: str) -> None:
    rows = (f"{number.format(r)} {' '.join(map(str, row))}" for r, row in enumerate(D.tolist()))
    assert (matrix("\n".join(rows)) == D).all()


def test_the_matrix_of_the_name_is_taken() -> None:
    assert (matrix(f"C = {(D * 2).tolist()}\nD = {D.tolist()}") == D).all()


def test_vectors_of_c_are_registers() -> None:
    text = "\n".join(f"(tid={i}) d.x={i} d.y=1.5 d.z=2.5 d.w=3.5" for i in range(32))
    assert "lane 7: d[2] = 2.5" in plain_text(text, REGISTERS).splitlines()


# --- numbers of other programs ---------------------------------------------------------------------------


def _ordered(text: str, order: str) -> Any:
    return numbers_from(plain_text(text, replace(MATRIX, order=order)), 8)[0]


def test_numbers_without_rows_are_read_in_the_order_that_is_given() -> None:
    across, down = ("\n".join(map(str, each.reshape(-1).tolist())) for each in (D, D.T))
    assert (_ordered(across, "row-major") == D).all()
    assert (_ordered(down, "column-major") == D).all()
    with pytest.raises(warpsim.WarpsimError, match=r"two readings.*row-major.*column-major"):
        matrix(across)
    turned = "\n".join(" ".join(map(str, row)) for row in D.T.tolist())
    assert (_ordered(turned, "column-major") == D).all()
    with pytest.raises(warpsim.WarpsimError, match=r"8 lines of 16 numbers.*transposed"):
        matrix(turned)


def test_a_flat_index_has_to_be_complete() -> None:
    cells = [f"D[{at}] = {value}" for at, value in enumerate(D.reshape(-1).tolist())]
    assert (matrix("\n".join(cells)) == D).all()
    with pytest.raises(warpsim.WarpsimError, match="element 17 is missing"):
        matrix("\n".join(cells[:17] + cells[18:]))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1.5D+00 -2.5d-3", "1.5e+00 -2.5e-3"),
        ("{1.5, 2*^-3}", "{1.5, 2e-3}"),
        ("\u22121.5", "-1.5"),
        ("1,5;2\n3;4,25", "1.5 2\n3 4.25"),
        ("1,5;2;3", "1,5;2;3"),  # three cells, where two are expected
        ("1,2;3.5,4", "1,2;3.5,4"),
        (r"$\begin{pmatrix} 1 & 2 \times 10^{-3} \\[2pt] \hline 3 & 4 \end{pmatrix}$", "1 2e-3\n3 4"),
        ("0x1d+00 1.5", "0x1d+00 1.5"),
        ("bc00d12 3d+0 1.5", "bc00d12 3d+0 1.5"),  # hexadecimal words
    ],
)
def test_notations_of_other_programs(text: str, wanted: str) -> None:
    assert in_plain_notation(text, 2) == wanted


def test_a_text_of_decimals_is_compared_to_its_digits(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    np.save(tmp_path / "D.npy", values)
    (tmp_path / "D.txt").write_text("\n".join(" ".join(f"{x:f}" for x in row) for row in values))
    same = CliRunner().invoke(cli, ["diff", str(tmp_path / "D.npy"), str(tmp_path / "D.txt")])
    assert same.output == "equal to the digits printed, 6 decimals\n"
    (tmp_path / "D.txt").write_text("\n".join(" ".join(f"{x + 1e-5:f}" for x in row) for row in values))
    other = CliRunner().invoke(cli, ["diff", str(tmp_path / "D.txt"), str(tmp_path / "D.npy")])
    assert other.output.startswith("different: 128 of 128 elements (by more than 1 ulp)\n"), other.output
