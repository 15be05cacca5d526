"""Integer arithmetic against Python's integers, and against C's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.c_programs import CASES as C_CASES
from tests.helpers.c_programs import compiled
from tests.helpers.opcode_values import Reference, check_operation, lanes_of, number, operations
from warpsim.machine.bind.value_types import bits_of
from warpsim.machine.opcodes.integer import carries
from warpsim.machine.opcodes.integer import integers as integer
from warpsim.machine.opcodes.operation import Operation

ROWS = (*integer.ROWS, *carries.ROWS)
FORMS = {
    f"{opcode}.{'.'.join(words)}": (opcode, words, operation) for opcode, words, operation in operations(ROWS)
}


# --- references ------------------------------------------------------------------------------------


def _clamp(total: int) -> int:
    return max(-(2**31), min(2**31 - 1, total))


def _truncated(a: int, b: int) -> tuple[int, int]:
    """Quotient rounded toward zero, and remainder."""
    sign = -1 if (a < 0) != (b < 0) else 1
    quotient = sign * (abs(a) // abs(b))
    return quotient, a - quotient * b


_FUNCTIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "sad": lambda a, b, c: abs(a - b) + c,
    "div": lambda a, b: _truncated(a, b)[0] if b else -1,
    "rem": lambda a, b: _truncated(a, b)[1] if b else -1,
    "abs": abs,
    "neg": lambda a: -a,
    "min": min,
    "max": max,
}


def _plain(opcode: str, words: tuple[str, ...]) -> Reference:
    type_name = words[-1]
    bits = bits_of(type_name)

    def reference(*sources: int) -> tuple[int]:
        result = _FUNCTIONS[opcode](*(number(source, type_name) for source in sources))
        if "sat" in words:
            result = _clamp(result)
        if "relu" in words:
            result = max(result, 0)
        return (result % (1 << bits),)

    return reference


def _pairs(opcode: str, words: tuple[str, ...]) -> Reference:
    one = _plain(opcode, (*words[:-1], words[-1].removesuffix("x2")))

    def reference(*sources: int) -> tuple[int]:
        (low,) = one(*(source % 65536 for source in sources))
        (high,) = one(*(source // 65536 for source in sources))
        return (low + high * 65536,)

    return reference


def _part(product: int, half: str, bits: int) -> int:
    """Of the product of two factors of that width; where .lo or .hi take the bits themselves."""
    return {"lo": product % 2**bits, "hi": (product >> bits) % 2**bits, "wide": product}[half]


def _product(opcode: str, words: tuple[str, ...]) -> Reference:
    half, type_name = words[0], words[-1]
    bits = bits_of(type_name)
    result_bits = bits * (2 if half == "wide" else 1)

    def reference(a: int, b: int, c: int = 0) -> tuple[int]:
        part = _part(number(a, type_name) * number(b, type_name), half, bits)
        if "sat" in words:
            return (_clamp(number(part, "s32") + number(c, "s32")) % 2**32,)
        return ((part + c) % 2**result_bits,)

    return reference


def _product24(opcode: str, words: tuple[str, ...]) -> Reference:
    half, type_name = words[0], words[-1]

    def factor(value: int) -> int:
        value %= 2**24
        return value - 2**24 if type_name == "s32" and value >= 2**23 else value

    def reference(a: int, b: int, c: int = 0) -> tuple[int]:
        part = (factor(a) * factor(b) >> (16 if half == "hi" else 0)) % 2**32
        if "sat" in words:
            return (_clamp(number(part, "s32") + number(c, "s32")) % 2**32,)
        return ((part + c) % 2**32,)

    return reference


def _dot(opcode: str, words: tuple[str, ...]) -> Reference:
    a_type, b_type = words[-2:]
    a_bytes = 1 if opcode == "dp4a" else 2
    first = 2 if "hi" in words else 0

    def reference(a: int, b: int, c: int) -> tuple[int]:
        of_a, of_b = a.to_bytes(4, "little"), b.to_bytes(4, "little")
        for i in range(4 // a_bytes):
            one = int.from_bytes(of_a[i * a_bytes : (i + 1) * a_bytes], "little", signed=a_type == "s32")
            c += one * int.from_bytes(of_b[first + i : first + i + 1], "little", signed=b_type == "s32")
        return (c % 2**32,)

    return reference


def _differences(opcode: str, words: tuple[str, ...]) -> Reference:
    """Distances of four bytes, side by side or added to c."""
    signed, adds = words[1] == "s32", "add" in words

    def reference(a: int, b: int, c: int) -> tuple[int]:
        pairs = zip(a.to_bytes(4, "little"), b.to_bytes(4, "little"), strict=True)
        bend = (lambda byte: byte - 256 * (byte > 127)) if signed else int
        distances = [abs(bend(one) - bend(other)) for one, other in pairs]
        return ((sum(distances) + c) % 2**32 if adds else int.from_bytes(bytes(distances), "little"),)

    return reference


def _carrying(opcode: str, words: tuple[str, ...]) -> Reference:
    """add, sub and mad with the carry that comes in and goes out."""
    type_name = words[-1]
    bits = bits_of(type_name)
    reads, subtracts = opcode.endswith("c"), opcode.startswith("sub")

    def reference(*sources: int) -> tuple[int, ...]:
        values = list(sources)
        carry = values.pop() if reads else int(subtracts)
        if opcode.startswith("mad"):
            values[:2] = [_part(number(values[0], type_name) * number(values[1], type_name), words[0], bits)]
        if subtracts:
            values[1] = 2**bits - 1 - values[1]
        total = sum(values) + carry
        return (total % 2**bits, total >> bits)[: 2 if "cc" in words else 1]

    return reference


_GROUPS = {
    "mul": _product,
    "mad": _product,
    "mul24": _product24,
    "mad24": _product24,
    "dp4a": _dot,
    "dp2a": _dot,
    "vabsdiff4": _differences,
}


def reference(opcode: str, words: tuple[str, ...]) -> Reference:
    if "cc" in words or opcode in ("addc", "subc", "madc"):
        return _carrying(opcode, words)
    if words[-1].endswith("x2"):
        return _pairs(opcode, words)
    return _GROUPS.get(opcode, _plain)(opcode, words)


@pytest.mark.parametrize("name", FORMS)
def test_as_python_computes(name: str) -> None:
    opcode, words, operation = FORMS[name]
    check_operation(operation, reference(opcode, words), lanes_of(operation, name))


@pytest.mark.parametrize("name", [name for name in C_CASES if name in FORMS])
def test_as_c_computes(name: str) -> None:
    operation: Operation = FORMS[name][2]
    lanes = lanes_of(operation, f"C {name}")
    check_operation(
        operation, compiled(name, operation), [lane for lane in lanes if C_CASES[name].defined(*lane)]
    )


def test_long_sums() -> None:
    """Chains as compilers write them: 96-bit sums and differences, and the carry that comes out last."""
    words = {
        name: FORMS[name][2].compute for name in ("add.cc.u32", "addc.cc.u32", "sub.cc.u32", "subc.cc.u32")
    }
    operation = FORMS["addc.cc.u32"][2]
    lanes = [a + b + c for a, b, c in zip(*(lanes_of(operation, f"long {i}") for i in range(3)), strict=True)]
    for lane in lanes:
        values = [np.array([part], np.uint32) for part in lane]
        left, right = [int(values[i][0]) for i in (0, 3, 6)], [int(values[i][0]) for i in (1, 4, 7)]
        a, b = (sum(part << 32 * place for place, part in enumerate(number)) for number in (left, right))
        for first, following, total in (("add.cc", "addc.cc", a + b), ("sub.cc", "subc.cc", a - b)):
            low, carry = words[f"{first}.u32"](values[0], values[1])
            middle, carry = words[f"{following}.u32"](values[3], values[4], carry)
            high, carry = words[f"{following}.u32"](values[6], values[7], carry)
            found = sum(int(part[0]) << 32 * place for place, part in enumerate((low, middle, high)))
            assert found == total % 2**96
            assert bool(carry[0]) == (total >= 2**96 if first == "add.cc" else total >= 0)
