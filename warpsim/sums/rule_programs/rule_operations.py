"""Rules as data: a program is a list of operations, each of which names its result.

There are no loops and no jumps: steps are written out, and elements are lists. Interpreted, a program gives
every intermediate by name (rule_interpreter.py); printed, it is a golden model in C. Programs that are equal
are the same arithmetic. Does not know instructions nor chips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any


class Value(Enum):
    """The kind of a value: a list of numbers, an exponent, a list of integers in units, one such, a code."""

    NUMBERS = "numbers"
    EXPONENT = "exponent"
    UNITS = "units"
    TOTAL = "total"
    CODE = "code"


# The operations, with what they are given besides values of the program; in brackets: what no chip has.
RESULTS = {
    "read": Value.NUMBERS,  # format[, subnormals: "zero", "leading", "raised"]: the numbers of codes
    "zero": Value.NUMBERS,  # one +0
    "mul": Value.NUMBERS,  # exact products; exponents add[, "leading", "carried"]; Inf * 0 is NaN
    "bits": Value.NUMBERS,  # "and", "xor": of 1-bit numbers
    "convert": Value.NUMBERS,  # format[, rounding]: each rounded to nearest even, and read again
    "sum": Value.NUMBERS,  # count: exact sums of neighbours, whose exponent is 0
    "take": Value.NUMBERS,  # places
    "join": Value.NUMBERS,  # one list of several
    "top": Value.EXPONENT,  # floor[, zeros, places]: the largest exponent where a second list is live
    "int": Value.EXPONENT,  # the exponent
    "add": Value.EXPONENT,  # the addend
    "max": Value.EXPONENT,
    "ge": Value.EXPONENT,  # 1 or 0
    "pick": Value.EXPONENT,  # the second where the first is not 0, else the third; also of totals
    "cut": Value.UNITS,  # mode[, another, of a place]: numbers in units of 2**exponent; "zero" truncates
    "total": Value.TOTAL,  # the exact sum[, True: sums of one unit are zero]
    "round": Value.CODE,  # output[, rounding, flushes]: a total; Inf and NaN among the numbers decide; +0
    "ieee": Value.CODE,  # format, rounding[, flushes]: the exact sum of numbers, once, as IEEE 754 has it
    "wrap": Value.CODE,  # bits, whether it clamps[, bits of the code]: of a total
}


@dataclass(frozen=True)
class Operation:
    """``result = name(*values)``, with what the operation is ``given``: see RESULTS."""

    result: str
    name: str
    values: tuple[str, ...]
    given: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Input:
    """Codes that a program reads: their name, format and count."""

    name: str
    format: str
    count: int


@dataclass(frozen=True)
class Program:
    """The operations of one dot product, in order; the last gives the code of D."""

    inputs: tuple[Input, ...]
    operations: tuple[Operation, ...]

    @cached_property
    def by_result(self) -> dict[str, Operation]:
        """The operations by the names of their results."""
        return {each.result: each for each in self.operations}

    @property
    def result(self) -> str:
        """The name of the code of D."""
        return self.operations[-1].result

    def kind(self, name: str) -> Value:
        """Return the kind of the value of this name."""
        operation = self.by_result.get(name)
        if operation is None:
            return Value.CODE
        if operation.name == "pick" and self.kind(operation.values[1]) is Value.TOTAL:
            return Value.TOTAL
        return RESULTS[operation.name]

    def named(self, *names: str) -> Iterator[Operation]:
        """Yield the operations of these names."""
        return (each for each in self.operations if each.name in names)

    def rewritten(self, change: Callable[[Operation], tuple[Operation, ...]]) -> Program:
        """Return the program with each operation replaced by others, the last of which has its result."""
        return replace(self, operations=tuple(other for each in self.operations for other in change(each)))


class Builder:
    """Collects the operations of a program."""

    def __init__(self) -> None:
        self._inputs: list[Input] = []
        self._operations: list[Operation] = []

    def read(self, name: str, element: str, count: int, result: str) -> str:
        """Add an input, and the numbers of its codes."""
        self._inputs.append(Input(name, element, count))
        return self.add("read", name, given=(element,), result=result)

    def add(self, name: str, *values: str, given: tuple[Any, ...] = (), result: str = "") -> str:
        """Add an operation; return the name of its result, which is its own where none is given."""
        result = result or f"v{len(self._operations)}"
        self._operations.append(Operation(result, name, values, given))
        return result

    def program(self) -> Program:
        """Return the program that ends in the last code, without operations that it does not need."""
        codes = [place for place, each in enumerate(self._operations) if RESULTS[each.name] is Value.CODE]
        needed, kept = {self._operations[codes[-1]].result}, list[Operation]()
        for each in reversed(self._operations[: codes[-1] + 1]):
            if each.result in needed:
                kept.append(each)
                needed.update(each.values)
        return Program(tuple(self._inputs), tuple(reversed(kept)))
