"""Registers and matrices as text: what a printf prints is read, and what cannot be meant is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from warpsim.base.errors import TraceError
from warpsim.isa.formats import FORMATS
from warpsim.workbench.inputs.decimals import printed_of
from warpsim.workbench.inputs.register_text import (
    code_lines,
    dump_from,
    elements_from,
    matrix_from,
    names_in,
    reading_from,
    spelled_out,
    word_lines,
    words_from,
)

WORDS = np.random.default_rng(0).integers(0, 1 << 32, (32, 2), np.uint32)


def lines(pattern: str, order=range(32)) -> str:
    return "\n".join(pattern.format(lane=lane, x=WORDS[lane, 0], y=WORDS[lane, 1]) for lane in order)


@pytest.mark.parametrize(
    "pattern",
    [
        "0x{x:08x} 0x{y:08x}",
        "{x:08x},{y:08X}",
        "lane {lane}: 0x{x:x} 0x{y:x}",
        "T{lane} a0=0x{x:08x}, a1=0x{y:08x}",
        "T{lane}: a[0] = {x:08x}; a[1] = {y:08x};",
        "thread {lane} : {{0x{x:08x}, 0x{y:08x}}}  # note",
        "tid={lane} %a0: 0x{x:08x} %a1: 0x{y:08x}",
        "[lane {lane}] 0x{x:08x} 0x{y:08x}",
        "  lane[{lane}] a0 = 0x{x:08x} a1 = 0x{y:08x}  // note",
        "lane {lane} b0 = 0x1 a0 = 0x{x:08x} a1 = 0x{y:08x} e = 0x2",
    ],
)
def test_what_a_printf_prints(pattern):
    assert np.array_equal(words_from(lines(pattern), 32, 2, operand="a"), WORDS)
    assert words_from(lines(pattern), 32, 2, operand="a").dtype == np.uint32


def test_labelled_lanes_come_in_any_order_and_registers_on_lines_of_their_own():
    text = lines("lane {lane} a0 = 0x{x:08x}", range(31, -1, -1)) + "\n" + lines("lane {lane} a1 = 0x{y:08x}")
    assert np.array_equal(words_from(text, 32, 2), WORDS)


def test_several_tiles():
    tiles = np.stack([WORDS, WORDS + np.uint32(1)])
    for text in ("\n".join(word_lines(a=tiles)), "\n".join(f"{w:#x}" for w in tiles.ravel().tolist())):
        assert np.array_equal(words_from(text, 32, 2), tiles)


def test_one_word_is_every_word():
    assert (words_from("0x44444444", 32, 2) == 0x44444444).all()
    assert words_from("0x44444444", 32, 2).shape == (32, 2)


def test_doubles():
    words = np.arange(64, dtype=np.uint64).reshape(32, 2) << np.uint64(40)
    assert np.array_equal(words_from("\n".join(word_lines(a=words)), 32, 2, 64), words)


def test_several_operands_in_one_dump():
    e = WORDS[:, :1]
    text = "\n".join(word_lines(a=WORDS, e=e))
    assert (
        text.splitlines()[0] == f"lane  0: a = 0x{WORDS[0, 0]:08x} 0x{WORDS[0, 1]:08x}  e = 0x{e[0, 0]:08x}"
    )
    assert names_in(text) == ("a", "e")
    assert np.array_equal(words_from(text, 32, 2, operand="a"), WORDS)
    assert np.array_equal(words_from(text, 32, 1, operand="e"), e)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0x1 0x2", "2 words, but 2 in each of 32 lanes are 64"),
        ("", "0 words, but 2 in each of 32 lanes are 64"),
        (
            "0x1\n0x123456789",
            "line 2: '0x123456789' is not a hexadecimal word of 32 bits: print registers with 0x%08x",
        ),
        ("4294967296", "line 1: 4294967296 is not an integer of 32 bits"),
        ("-2147483649", "line 1: -2147483649 is not an integer of 32 bits"),
        ("lane 0: 0x1 0x2", "lane 1 is missing, but the lanes are 0 to 31"),
        ("lane 40: 0x1 0x2", "lane 40 is there, but the lanes are 0 to 31"),
        ("lane 0: 0x1\n0x2", "some lines begin with the number of a lane and others do not"),
        ("\n".join(f"lane {i}: 0x1" for i in range(32)), "lane 0 has 1 words, but each lane has 2"),
    ],
)
def test_words_that_are_refused(text, message):
    with pytest.raises(TraceError) as caught:
        words_from(text, 32, 2)
    assert caught.value.message == message


def test_dumps_of_unknown_shape():
    assert np.array_equal(dump_from(lines("{x:08x} {y:08x}")), WORDS)
    assert np.array_equal(dump_from(lines("T{lane}: {x:08x} {y:08x}", range(31, -1, -1))), WORDS)
    with pytest.raises(TraceError, match="the lines have different numbers of words"):
        dump_from("0x1 0x2\n0x3")
    with pytest.raises(TraceError, match="there are no words"):
        dump_from("# nothing")


# --- matrices ----------------------------------------------------------------------------------------


def test_codes_and_values():
    codes = matrix_from("0x3c00 0x0001\n0xffff, 0x10", 2)
    assert codes.dtype == np.uint64
    assert codes.tolist() == [[0x3C00, 1], [0xFFFF, 0x10]]
    assert matrix_from("1 2\n-3 4", 2).dtype == np.int64
    assert matrix_from("1 2.5\n-inf nan", 2)[0].tolist() == [1, 2.5]
    assert list(code_lines(codes.astype(np.uint16), 16)) == ["0x3c00 0x0001", "0xffff 0x0010"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3", "line 1: 3 elements, but a row has 2"),
        ("", "there are no elements"),
        ("1 x", "'x' is neither a value nor a code with 0x"),
        ("1 0x2", "'0x2' is neither a value nor a code with 0x"),
    ],
)
def test_matrices_that_are_refused(text, message):
    with pytest.raises(TraceError) as caught:
        matrix_from(text, 2)
    assert caught.value.message == message


def test_values_are_converted_where_that_rounds_nothing():
    made = elements_from(np.array([[1.5, -2.0, np.inf, np.nan]]), FORMATS["bf16"], "A")
    assert made.dtype == ml_dtypes.bfloat16
    assert made[0, :3].tolist() == [1.5, -2.0, np.inf]
    assert elements_from(np.array([[3]]), FORMATS["e4m3"], "A").astype(float).tolist() == [[3.0]]
    codes = np.array([[1]], np.uint8)
    assert elements_from(codes, FORMATS["e4m3"], "A") is codes
    with pytest.raises(TraceError, match=r"A\[0, 1\] is 0.1, which bf16 does not have: round it first"):
        elements_from(np.array([[1.0, 0.1]]), FORMATS["bf16"], "A")
    with pytest.raises(TraceError, match="A has dtype complex128, but f16 elements come as numbers or codes"):
        elements_from(np.array([[1j]]), FORMATS["f16"], "A")


# --- as people print -----------------------------------------------------------------------------------

FLOATS = np.random.default_rng(3).standard_normal((32, 2)).astype(np.float32)
F32 = FORMATS["f32"]


@pytest.mark.parametrize("spelled", ["{:.9g}", "{:.17e}", "{!r}"])
def test_decimals_of_registers_are_the_same_bits(spelled):
    text = "\n".join(f"T{i}: " + " ".join(spelled.format(float(v)) for v in FLOATS[i]) for i in range(32))
    assert np.array_equal(reading_from(text, 32, 2, element=F32).words, FLOATS.view(np.uint32))


def test_fewer_digits_are_an_interval():
    text = "\n".join(f"lane {i}: " + " ".join(f"{v:.3f}" for v in FLOATS[i]) for i in range(32))
    words, printed = reading_from(text, 32, 2, element=F32)
    assert (printed.decimals, str(printed)) == (3, "3 decimals")
    exact = FLOATS.view(np.uint32)
    assert not np.array_equal(words, exact)
    assert np.array_equal(printed.settled(exact, words, F32), words)
    off = (FLOATS + np.float32(0.002)).view(np.uint32)
    assert not (printed.settled(off, words, F32) == words).any()


def test_significant_digits():
    values = np.float32([1234.5678, 0.00012345678, -7.5, 0, np.inf, np.nan])
    printed = printed_of([f"{v:.4g}" for v in values])
    wanted = np.float32([float(f"{v:.4g}") for v in values]).view(np.uint32)
    assert np.array_equal(printed.settled(values.view(np.uint32), wanted, F32)[:5], wanted[:5])


def test_integers_are_words_or_elements():
    s32 = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, (32, 2)).astype(np.int32)
    text = "\n".join(f"T{i}: {x} {y}" for i, (x, y) in enumerate(s32.tolist()))
    assert np.array_equal(reading_from(text, 32, 2, element=FORMATS["s32"]).words, s32.view(np.uint32))
    text = "\n".join(f"T{i}: {x} {y}" for i, (x, y) in enumerate(WORDS.tolist()))
    assert np.array_equal(reading_from(text, 32, 2, element=FORMATS["f16"]).words, WORDS)
    values = np.arange(128, dtype=np.int8).reshape(32, 4) - np.int8(64)
    text = "\n".join(f"T{i}: " + " ".join(map(str, row.tolist())) for i, row in enumerate(values))
    assert np.array_equal(reading_from(text, 32, 1, element=FORMATS["s8"]).words, values.view(np.uint32))


def test_numbers_of_registers_order_them():
    order = [(lane, register) for register in (1, 0) for lane in range(31, -1, -1)]
    text = "\n".join(f"lane {lane} reg {register} = 0x{WORDS[lane, register]:x}" for lane, register in order)
    assert np.array_equal(words_from(text, 32, 2), WORDS)
    again = f"mma 0:\n{text}\nmma 1:\n{text}"
    assert np.array_equal(words_from(again, 32, 2), np.stack([WORDS, WORDS]))


def test_a_format_of_ones_own():
    text = "\n".join(f"<{i:>2}> a r{r} {WORDS[i, r]:x};" for i in range(32) for r in range(2))
    found = spelled_out(text, "<{lane}> {name} r{reg} {hex};")
    assert np.array_equal(words_from(found, 32, 2, operand="a"), WORDS)
    with pytest.raises(TraceError, match="nothing in the text has the form"):
        spelled_out(text, "lane {lane}: {hex}")
    with pytest.raises(TraceError, match=r"it has \{hex\} or \{value\}"):
        spelled_out(text, "lane {lane}: {word}")


@pytest.mark.parametrize(
    "text",
    [
        "n0,n1\n1.5,2\n-3,0.25",
        "row 0: 1.5 2\nrow 1: -3 0.25",
        "[[ 1.5\n 2. ]\n [-3. 0.25]]",
        "[[1.5, 2.0], [-3.0, 0.25]]",
        "0x1.8p+0 0x1p1\n-0x1.8p1 0x1p-2",
        "1.5f 2f\n-3.f 0.25f",
    ],
)
def test_matrices_as_people_print_them(text):
    assert matrix_from(text, 2).tolist() == [[1.5, 2], [-3, 0.25]]


def test_one_number_in_scientific_notation_leaves_no_decimals() -> None:
    fixed, mixed = printed_of(["0.50", "12.25"]), printed_of(["0.50", "1e-05"])
    assert fixed is not None
    assert mixed is not None
    assert (fixed.decimals, fixed.digits, str(fixed)) == (2, 4, "2 decimals")
    assert (mixed.decimals, mixed.digits, str(mixed)) == (None, 2, "2 significant digits")
