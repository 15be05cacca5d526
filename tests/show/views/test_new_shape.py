"""A row in the table of forms is all that a new sparse shape takes: every view derives its layouts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.layout_texts import evaluated, read_cute, with_names
from tests.helpers.new_shape import MNEMONIC


def answered(*arguments: str) -> str:
    """What the command prints where the shape exists."""
    command = [sys.executable, "-m", "tests.helpers.new_shape", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def document() -> Any:
    return json.loads(answered("layout", MNEMONIC, "--json"))["operands"]


def test_the_figures(tmp_path: Path) -> None:
    text = answered("layout", MNEMONIC)
    assert "A of sparse m16n8k64, .f16, stored columns" in text
    assert "metadata: rows 0..15, chunks 0..15 of 4 columns, selector 0 (PTX ISA, section 9.7.14.6)" in text
    assert "  lane       = 4 * (row % 8) + chunk / 4\n" in text
    answered("layout", MNEMONIC, "-o", str(tmp_path / "layout.html"))
    assert "Operand e" in (tmp_path / "layout.html").read_text()


@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_formula_and_cute_text_say_where_elements_lie(document: Any, operand: str) -> None:
    found = document[operand]
    ((cute,), formula) = found["cute"], found["formula"]
    (elements, _) = read_cute(cute)
    names = ("groupID = %laneid >> 2", "threadID_in_group = %laneid % 4")
    slots = 1 if operand == "c" else 2
    for place in found["places"]:
        index = place["register"] * slots + place["low_bit"] // 16
        values = with_names(names, {"laneid": place["lane"], "i": index})
        at = (evaluated(formula["row"], values), evaluated(formula["col"], values))
        assert at == (place["row"], place["column"])
        assert elements[place["lane"], index] == (at[::-1] if operand == "b" else at)


def test_metadata_fields(document: Any) -> None:
    found = document["e"]
    fields, size = read_cute(found["cute"][0])
    assert size == (16, 16)
    assert len(found["places"]) == len(fields) == 256
    for place in found["places"]:
        values = {"row": place["row"], "chunk": place["column"]}
        assert evaluated(found["formula"]["lane"], values) == place["lane"]
        assert evaluated(found["formula"]["lowest bit"], values) == place["low_bit"]
        assert fields[place["lane"], place["low_bit"] // 4] == (place["row"], place["column"])


def test_the_explorer(tmp_path: Path) -> None:
    answered("explore", MNEMONIC, "-o", str(tmp_path / "page.html"))
    assert MNEMONIC in (tmp_path / "page.html").read_text()
