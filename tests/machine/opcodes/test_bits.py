"""Logic, shifts, fields and permutations against the manual's pseudocode in Python, and against C's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.c_programs import CASES as C_CASES
from tests.helpers.c_programs import compiled
from tests.helpers.opcode_values import Reference, check_operation, lanes_of, number, operations
from warpsim.machine.bind.value_types import bits_of
from warpsim.machine.opcodes.integer import bits
from warpsim.machine.opcodes.integer import prmt as permutations

ROWS = (*bits.ROWS, *permutations.ROWS)
FORMS = {
    f"{opcode}.{'.'.join(words)}": (opcode, words, operation) for opcode, words, operation in operations(ROWS)
}
ONES = 0xFFFFFFFF

# --- references: strings of binary digits and loops over bits, as in the manual -------------------------


def _digits(value: int, width: int) -> str:
    """The bits of a value, bit 0 first."""
    return "".join(str(value >> place & 1) for place in range(width))


def _value(digits: str) -> int:
    return int(digits[::-1], 2)


def _logic(words: tuple[str, ...], table: dict[tuple[str, ...], str]) -> Reference:
    width = bits_of(words[-1])
    return lambda *sources: (
        _value("".join(table[bits] for bits in zip(*(_digits(s, width) for s in sources), strict=True))),
    )


_AND = {("0", "0"): "0", ("0", "1"): "0", ("1", "0"): "0", ("1", "1"): "1"}
_OR = {("0", "0"): "0", ("0", "1"): "1", ("1", "0"): "1", ("1", "1"): "1"}
_XOR = {("0", "0"): "0", ("0", "1"): "1", ("1", "0"): "1", ("1", "1"): "0"}
_NOT = {("0",): "1", ("1",): "0"}


def _lop3(words: tuple[str, ...]) -> Reference:
    def reference(a: int, b: int, c: int, table: int, *q: int) -> tuple[int, ...]:
        rows = zip(_digits(a, 32), _digits(b, 32), _digits(c, 32), strict=True)
        result = _value("".join(_digits(table, 8)[int("".join(row), 2)] for row in rows))
        if not q:
            return (result,)
        return result, (result != 0 or q[0]) if words[0] == "or" else (result != 0 and q[0])

    return reference


def _shift_left(words: tuple[str, ...]) -> Reference:
    width = bits_of(words[-1])
    return lambda a, b: (_value(("0" * min(b, width) + _digits(a, width))[:width]),)


def _shift_right(words: tuple[str, ...]) -> Reference:
    width = bits_of(words[-1])

    def reference(a: int, b: int) -> tuple[int]:
        digits = _digits(a, width)
        fill = digits[-1] if words[-1].startswith("s") else "0"
        return (_value((digits[b:] + fill * width)[:width]),)

    return reference


def _funnel(words: tuple[str, ...]) -> Reference:
    def reference(a: int, b: int, c: int) -> tuple[int]:
        n = min(c, 32) if words[1] == "clamp" else c % 32
        if words[0] == "l":
            return (((b << n) | (a >> (32 - n))) % 2**32,)
        return (((b << (32 - n)) | (a >> n)) % 2**32,)

    return reference


def _insert(words: tuple[str, ...]) -> Reference:
    top = bits_of(words[0]) - 1

    def reference(a: int, b: int, c: int, d: int) -> tuple[int]:
        digits = list(_digits(b, top + 1))
        for i in range(d % 256):
            if c % 256 + i <= top:
                digits[c % 256 + i] = _digits(a, top + 1)[i]
        return (_value("".join(digits)),)

    return reference


def _extract(words: tuple[str, ...]) -> Reference:
    top = bits_of(words[0]) - 1

    def reference(a: int, b: int, c: int) -> tuple[int]:
        digits, position, length = _digits(a, top + 1), b % 256, c % 256
        fill = "0" if words[0][0] == "u" or length == 0 else digits[min(position + length - 1, top)]
        found = [digits[position + i] if i < length and position + i <= top else fill for i in range(top + 1)]
        return (_value("".join(found)),)

    return reference


def _sign_extend(words: tuple[str, ...]) -> Reference:
    def reference(a: int, b: int) -> tuple[int]:
        kept, too_large = b & 0x1F, b >= 32 and words[0] == "clamp"
        mask = 0 if too_large else (ONES << kept) & ONES
        plain = kept == 0 or too_large or words[1] != "s32"
        sign = 0 if plain else (a >> ((kept - 1) & 0x1F)) & 1
        return ((a & ~mask) | (mask if sign else 0),)

    return reference


def _mask(words: tuple[str, ...]) -> Reference:
    def reference(a: int, b: int) -> tuple[int]:
        clamp = words[0] == "clamp"
        position, width = (a, b) if clamp else (a % 32, b % 32)
        return (sum(1 << place for place in range(position, min(position + width, 32))),)

    return reference


def _find(words: tuple[str, ...]) -> Reference:
    type_name, width = words[-1], bits_of(words[-1])

    def reference(a: int) -> tuple[int]:
        signed = number(a, type_name)
        found = (~signed if signed < 0 else signed).bit_length() - 1
        if found < 0:
            return (ONES,)
        return (width - 1 - found if "shiftamt" in words else found,)

    return reference


def _find_set(words: tuple[str, ...]) -> Reference:
    def reference(mask: int, base: int, offset: int) -> tuple[int]:
        count = number(offset, "s32")
        if count == 0:
            return (base if base < 32 and mask >> base & 1 else ONES,)
        step = 1 if count > 0 else -1
        order = range(base, 32) if step > 0 else range(base if base < 32 else -1, -1, -1)
        ones = [place for place in order if mask >> place & 1]
        return (ones[abs(count) - 1] if abs(count) <= len(ones) else ONES,)

    return reference


# The bytes that the modes of prmt choose, the most significant first, from the manual's table.
_PERMUTATIONS = """
f4e  3210 4321 5432 6543
b4e  5670 6701 7012 0123
rc8  0000 1111 2222 3333
ecl  3210 3211 3222 3333
ecr  0000 1110 2210 3210
rc16 1010 3232 1010 3232
"""


def _permute(words: tuple[str, ...]) -> Reference:
    table = {line.split()[0]: line.split()[1:] for line in _PERMUTATIONS.strip().splitlines()}

    def reference(a: int, b: int, c: int) -> tuple[int]:
        pool = a.to_bytes(4, "little") + b.to_bytes(4, "little")
        selectors = f"{c % 65536:04x}" if len(words) == 1 else table[words[1]][c % 4]
        chosen = [int(digit, 16) for digit in reversed(selectors)]
        parts = [(255 if pool[s % 8] >= 128 else 0) if s >= 8 else pool[s] for s in chosen]
        return (int.from_bytes(bytes(parts), "little"),)

    return reference


_REFERENCES: dict[str, Callable[[tuple[str, ...]], Reference]] = {
    "and": lambda words: _logic(words, _AND),
    "or": lambda words: _logic(words, _OR),
    "xor": lambda words: _logic(words, _XOR),
    "not": lambda words: _logic(words, _NOT),
    "cnot": lambda words: lambda a: (1 if a == 0 else 0,),
    "lop3": _lop3,
    "shl": _shift_left,
    "shr": _shift_right,
    "shf": _funnel,
    "bfi": _insert,
    "bfe": _extract,
    "szext": _sign_extend,
    "bmsk": _mask,
    "popc": lambda words: lambda a: (a.bit_count(),),
    "clz": lambda words: lambda a: (bits_of(words[0]) - a.bit_length(),),
    "brev": lambda words: lambda a: (_value(_digits(a, bits_of(words[0]))[::-1]),),
    "bfind": _find,
    "fns": _find_set,
    "prmt": _permute,
}


@pytest.mark.parametrize("name", FORMS)
def test_as_python_computes(name: str) -> None:
    opcode, words, operation = FORMS[name]
    check_operation(operation, _REFERENCES[opcode](words), lanes_of(operation, name))


@pytest.mark.parametrize("name", [name for name in C_CASES if name in FORMS])
def test_as_c_computes(name: str) -> None:
    operation = FORMS[name][2]
    lanes = lanes_of(operation, f"C {name}")
    check_operation(
        operation, compiled(name, operation), [lane for lane in lanes if C_CASES[name].defined(*lane)]
    )


def test_every_table_of_lop3() -> None:
    """All 256 tables, each on words that hold all eight combinations."""
    a, b, c = (np.uint32(word) for word in (0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA))
    (found,) = FORMS["lop3.b32"][2].compute(
        *(np.asarray(word) for word in (a, b, c)), np.arange(256, dtype=np.uint32)
    )
    assert found.tolist() == [0x01010101 * table for table in range(256)]
    one_by_one = [_compute_lop3(a, b, c, table) for table in range(256)]
    assert one_by_one == found.tolist()


def _compute_lop3(a: np.uint32, b: np.uint32, c: np.uint32, table: int) -> int:
    words = [np.full(2, word) for word in (a, b, c)]
    (found,) = FORMS["lop3.b32"][2].compute(*words, np.array(table, np.uint32))
    return int(found[1])


@pytest.mark.parametrize("name", [name for name in FORMS if name.startswith("prmt")])
def test_selectors_of_all_lanes(name: str) -> None:
    """One selector for all lanes is another path than one a lane."""
    _, words, operation = FORMS[name]
    lanes = lanes_of(operation, f"selectors {name}", 200)
    for a, b, selectors in lanes:
        (found,) = operation.compute(
            *(np.full(2, word, np.uint32) for word in (a, b)), np.array(selectors, "u4")
        )
        assert (int(found[1]),) == _permute(words)(a, b, selectors)


@pytest.mark.parametrize("name", ["bfe.u32", "bfe.s32", "bfe.u64", "bfe.s64"])
def test_every_position_and_length(name: str) -> None:
    _, words, operation = FORMS[name]
    width = bits_of(words[0])
    value = int("9c3a5f07e1d2b486"[: width // 4], 16)
    places = [*range(width + 3), 127, 128, 255, 256, 257]
    check_operation(operation, _extract(words), [(value, b, c) for b in places for c in places])


@pytest.mark.parametrize("name", ["bmsk.clamp.b32", "bmsk.wrap.b32", "szext.clamp.s32", "szext.wrap.s32"])
def test_every_position_and_width(name: str) -> None:
    opcode, words, operation = FORMS[name]
    places = [*range(70), 255, 256, 2**31, 2**32 - 1]
    check_operation(operation, _REFERENCES[opcode](words), [(a, b) for a in places for b in places])
