"""Device printf's text against the C library's own printf, conversion by conversion."""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsim.machine.opcodes.control.c_format import Words, formatted


def library() -> ctypes.CDLL:
    name = ctypes.util.find_library("c")
    if name is None or "libc.so.6" not in name:
        pytest.skip("the texts are those of glibc")
    return ctypes.CDLL(name)


def printed(text: bytes, *arguments: object) -> bytes:
    """What snprintf of the C library writes."""
    buffer = ctypes.create_string_buffer(20_000)
    count = library().snprintf(buffer, ctypes.c_size_t(len(buffer)), text, *arguments)
    return buffer.raw[:count]


def reader(packed: bytes) -> Callable[[int, int], int | None]:
    def read(offset: int, size: int) -> int | None:
        part = packed[offset : offset + size]
        return int.from_bytes(part, "little") if len(part) == size else None

    return read


def text_of(text: bytes, packed: bytes, strings: dict[int, bytes] | None = None) -> bytes:
    return formatted(text, Words(reader(packed)), (strings or {}).get)


FLAGS = st.lists(st.sampled_from("-+ #0"), max_size=3, unique=True).map("".join)
WIDTH = st.one_of(st.just(""), st.integers(1, 40).map(str))
PRECISION = st.one_of(st.just(""), st.just("."), st.integers(0, 30).map(lambda one: f".{one}"))


@given(
    FLAGS,
    WIDTH,
    PRECISION,
    st.sampled_from(["", "hh", "h", "l", "ll", "z"]),
    st.sampled_from("diouxX"),
    st.integers(0, 2**64 - 1),
)
def test_integers(flags: str, width: str, precision: str, length: str, kind: str, word: int) -> None:
    text = f"%{flags}{width}{precision}{length}{kind}".encode()
    size = 8 if length in ("l", "ll", "z") else 4
    word &= (1 << 8 * size) - 1
    argument = (ctypes.c_uint64 if size == 8 else ctypes.c_uint32)(word)
    assert text_of(text, word.to_bytes(size, "little")) == printed(text, argument)


@given(
    FLAGS,
    WIDTH,
    PRECISION,
    st.sampled_from("eEfFgGaA"),
    st.one_of(st.floats(), st.floats(-1e6, 1e6), st.floats(width=32)),
)
def test_floating_point(flags: str, width: str, precision: str, kind: str, value: float) -> None:
    text = f"%{flags}{width}{precision}{kind}".encode()
    assert text_of(text, struct.pack("<d", value)) == printed(text, ctypes.c_double(value))


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 5e-324, 2.2250738585072009e-308, 1.5, 0.1, 255.9999999999999, -1e300]
)
@pytest.mark.parametrize("text", [b"%a", b"%.0a", b"%.1a", b"%#.0a", b"%.13a", b"%.20a", b"%A", b"%020a"])
def test_hexadecimal(text: bytes, value: float) -> None:
    assert text_of(text, struct.pack("<d", value)) == printed(text, ctypes.c_double(value))


@given(FLAGS, WIDTH, PRECISION)
def test_strings_and_characters(flags: str, width: str, precision: str) -> None:
    flags = "".join(one for one in flags if one == "-")  # others are undefined beside %s and %c
    text = f"%{flags}{width}{precision}s|%{flags}{width}c".encode()
    packed = struct.pack("<QI", 16, ord("z"))
    assert text_of(text, packed, {16: b"warpsim"}) == printed(
        text, ctypes.c_char_p(b"warpsim"), ctypes.c_int(ord("z"))
    )


def test_vectors_of_words() -> None:
    words = [0, 0xDEADBEEF, 1, 2**32 - 1]
    assert (
        text_of(b"%08x %08x %08x %08x\n", struct.pack("<4I", *words))
        == b"00000000 deadbeef 00000001 ffffffff\n"
    )


def test_arguments_lie_at_multiples_of_their_size() -> None:
    packed = struct.pack("<i4xdi4xQ", -1, 0.5, 7, 2**40)
    assert text_of(b"%d %g %d %llu", packed) == b"-1 0.5 7 1099511627776"


def test_widths_and_precisions_among_the_arguments() -> None:
    packed = struct.pack("<iiI", -6, 3, 10)
    assert text_of(b"[%*.*x]", packed) == printed(
        b"[%*.*x]", ctypes.c_int(-6), ctypes.c_int(3), ctypes.c_uint(10)
    )
    assert text_of(b"[%.*d]", struct.pack("<ii", -1, 5)) == b"[5]"


def test_what_is_no_conversion_is_text() -> None:
    assert text_of(b"100%% %y %", b"") == b"100% %y %"


def test_missing_arguments_are_counted_and_print_zero() -> None:
    words = Words(reader(struct.pack("<i", 3)))
    assert formatted(b"%d %d %f", words, {}.get) == b"3 0 0.000000"
    assert (words.taken, words.missing) == (3, 2)


def test_strings_that_are_not_there() -> None:
    assert text_of(b"%s %s", struct.pack("<QQ", 0, 64)) == b"(null) <no string at 0x40>"


def test_pointers() -> None:
    assert text_of(b"%p|%20p", struct.pack("<QQ", 0x7F00, 0)) == printed(
        b"%p|%20p", ctypes.c_void_p(0x7F00), None
    )


def test_a_huge_width_is_bounded() -> None:
    assert len(text_of(b"%999999999d", struct.pack("<i", 1))) == 4096
