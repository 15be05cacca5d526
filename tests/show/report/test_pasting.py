"""Words pasted into the explorer: every print is read, and what the words hold is what unpack says."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from tests.helpers.explorer import Scripts

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
WORDS = np.random.default_rng(3).integers(0, 1 << 32, (32, 4), np.uint32)


def rows(style: str) -> str:
    lanes = range(32) if style != "backwards" else reversed(range(32))
    write = {
        "dump": lambda lane, words: " ".join(f"{word:08x}" for word in words),
        "decimal": lambda lane, words: ", ".join(str(word) for word in words) + ",",
        "signed": lambda lane, words: " ".join(str(word - (word >> 31 << 32)) for word in words),
        "list": lambda lane, words: "{" + ", ".join(f"0x{word:X}u" for word in words) + "},",
        "printf": lambda lane, words: (
            f"T{lane}: " + " ".join(f"a[{at}]=0x{w:x}" for at, w in enumerate(words))
        ),
        "backwards": lambda lane, words: (
            f"lane {lane}: " + " ".join(f"%a{at}=0x{w:x}" for at, w in enumerate(words))
        ),
    }[style]
    return "\n".join(write(lane, WORDS[lane].tolist()) for lane in lanes)


@pytest.mark.parametrize("style", ["dump", "decimal", "signed", "list", "printf", "backwards"])
def test_every_print_holds_what_unpack_says(scripts: Scripts, style: str) -> None:
    form = warpsim.decode(DENSE, target="sm_80")
    expected = warpsim.unpack(form, "a", WORDS).view(np.uint16)
    found = scripts("pasted", DENSE, "a", rows(style), 0)
    assert (found["error"], found["note"]) == (None, "128 words: 32 lanes of 4 registers")
    assert {(row, column): int(code) for row, column, code, _ in found["cells"]} == {
        place: int(code) for place, code in np.ndenumerate(expected)
    }


@pytest.mark.parametrize(
    ("mnemonic", "text", "operand"),
    [
        (DENSE, "0 " * 128, "a"),
        (DENSE, "3c003c00\n" * 64, "b"),
        (DENSE, "d0 = 0x3c003c00", "d"),
        (DENSE, "T5: %c0=1 %c1=2", "c"),
        (DENSE, "lane 3: b[0]: 1, b[1]: 2", "b"),
        (DENSE, "a0 = 1, b0 = 2", None),  # names two: as undecided as no name
        (DENSE, "1 2 3", None),
        (DENSE, "", None),
        (SPARSE, "0x44444444\n" * 32, "e"),
    ],
)
def test_the_operand_is_found_by_name_or_by_size(
    scripts: Scripts, mnemonic: str, text: str, operand: str | None
) -> None:
    assert scripts("guessed", mnemonic, text) == operand


def test_values_are_shown(scripts: Scripts) -> None:
    cells = scripts("pasted", DENSE, "a", "0xc0003c00", 0)["cells"]
    assert {(row, column): text for row, column, _, text in cells if text} == {(0, 0): "1", (0, 1): "-2"}


def test_metadata_is_shown_with_the_columns_that_it_keeps(scripts: Scripts) -> None:
    words = np.full((32, 1), 0xEEEE_4444, np.uint32)
    form = warpsim.decode(SPARSE, target="sm_80")
    kept = warpsim.unpack_metadata(form, words, selector=1)
    found = scripts("pasted", SPARSE, "e", " ".join(f"0x{word:x}" for word in words[:, 0]), 1)
    assert found["note"] == "32 words: 32 lanes of 1 register"
    for row, chunk, _, text in found["cells"]:
        first, second = (4 * chunk + int(one) for one in kept[row, 2 * chunk : 2 * chunk + 2] % 4)
        assert text.endswith(f" {first},{second}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("no words", "no number is in this text"),
        ("T5:", "no number is in this text"),
        ("0x100000000", "0x100000000 does not fit in 32 bits"),
        ("-2147483649", "-2147483649 does not fit in 32 bits"),
    ],
)
def test_what_is_no_word_is_refused(scripts: Scripts, text: str, error: str) -> None:
    assert scripts("pasted", DENSE, "a", text, 0)["error"] == error


def test_too_many_and_too_few_words_are_said(scripts: Scripts) -> None:
    many = scripts("pasted", DENSE, "b", "1 " * 65, 0)["note"]
    assert many == "65 words, but the operand has 64 (32 lanes of 2 registers): the first 64 are shown"
    few = scripts("pasted", DENSE, "b", "lane 31: 0x3c00 0", 0)
    assert few["note"] == "2 of 64 words (32 lanes of 2 registers): cells of the others are empty"
    assert [cell[:2] for cell in few["cells"] if cell[3]] == [[6, 7], [7, 7], [14, 7], [15, 7]]
