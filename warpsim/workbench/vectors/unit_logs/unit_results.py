"""D of a device under test beside the D that a vector set expects, element by element of a log.

Knows registers, lanes, matrix elements and cases; does not know how a log is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from ....base.errors import Location, TraceError
from ....isa.fragments import fragment
from ....isa.instruction import Instruction
from ....isa.registers import Words
from ..sets import VectorSet

_DIGITS = re.compile(r"(?:\d{1,4}'[hH]|0[xX])?([0-9a-fA-FxXzZ_?]+)")
_BITS = re.compile(r"\d{1,4}'[bB]([01xXzZ_?]+)")
_UNKNOWN = dict.fromkeys(map(ord, "xXzZ?"), "0")


class Line(NamedTuple):
    """A line of a log: its file, its number from 1, and its text."""

    path: str
    number: int
    text: str


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitResults:
    """D ``(cases, lanes, registers)`` of a device, and ``known``: a mask of the bits that the log has.

    ``notes`` say what was read how, where there was a choice, and what is missing.
    """

    d: Words
    known: Words
    notes: tuple[str, ...] = ()


def wrong(line: Line, message: str, part: str = "") -> TraceError:
    """Return an error that points at a line of a log, or at a part of it."""
    start = max(line.text.find(part), 0) if part else 0
    return TraceError(message, Location(line.path, line.number, start + 1, max(len(part), 1), line.text))


def digits_of(text: str) -> str | None:
    """Return the hexadecimal digits of ``3f80xxxx``, ``0x3f800000``, ``32'h3f80_0000`` or ``32'b0011…``; None
    where it is no such word. An unknown digit (x, z) stays; four bits are unknown where any is.
    """
    if bits := _BITS.fullmatch(text):
        return _hexadecimal(bits[1].replace("_", ""))
    found = _DIGITS.fullmatch(text)
    return found[1].replace("_", "") if found else None


def _hexadecimal(bits: str) -> str | None:
    """Return the digits of binary digits, four by four; None where these do not fill the last."""
    if len(bits) % 4:
        return None
    each = (bits[at : at + 4] for at in range(0, len(bits), 4))
    return "".join(f"{int(four, 2):x}" if set(four) <= {"0", "1"} else "x" for four in each)


def value_and_mask(digits: str) -> tuple[int, int]:
    """Return the bits of hexadecimal digits, and a mask of those that are known."""
    mask = "".join("0" if digit in "xXzZ?" else "f" for digit in digits)
    return int(digits.translate(_UNKNOWN), 16), int(mask, 16)


@dataclass(kw_only=True, eq=False)
class Collector:
    """Results as they are read: places and words, each checked against the shape of the set."""

    vectors: VectorSet
    d: Words = field(init=False)
    known: Words = field(init=False)
    lines: Words = field(init=False)  # the line in which each register came last
    seen: int = 0

    def __post_init__(self) -> None:
        self.d = np.zeros_like(self.vectors.d)
        self.known = np.zeros_like(self.vectors.d)
        self.lines = np.zeros(self.vectors.d.shape, np.uint32)

    @property
    def form(self) -> Instruction:
        """The instruction of the set."""
        return self.vectors.instruction

    def check_case(self, case: int, line: Line) -> None:
        """Raise TraceError unless the set has this case."""
        if case not in range(len(self.vectors)):
            counted = "; a log that counts from 1 has to be renumbered" * (case == len(self.vectors))
            last = len(self.vectors) - 1
            raise wrong(line, f"case {case}: the set has cases 0 to {last}{counted}", str(case))

    def put(self, case: int, lane: int, register: int, digits: str, line: Line) -> None:
        """Take a whole register."""
        self.check_case(case, line)
        lanes, registers = self.d.shape[1:]
        if lane not in range(lanes):
            raise wrong(line, f"lane {lane}: D has lanes 0 to {lanes - 1}", str(lane))
        if register not in range(registers):
            raise wrong(line, f"register {register}: D has registers 0 to {registers - 1}", str(register))
        if len(digits) != self.d.dtype.itemsize * 2:
            expected = f"a register of D has {self.d.dtype.itemsize * 2} hexadecimal digits"
            raise wrong(line, f"{digits!r} has {len(digits)}: {expected}", digits)
        self._set((case, lane, register), *value_and_mask(digits), line)

    def put_element(self, case: int, row: int, column: int, digits: str, line: Line) -> None:
        """Take an element of the matrix D."""
        self.check_case(case, line)
        if self.form.products > 1:
            several = f"{self.form} computes {self.form.products} products"
            raise wrong(line, f"D[{row}, {column}] of which product? {several}: name lane and register")
        bits, places = self.form.d.bits, element_places(self.form)
        if (row, column) not in places:
            m, n = self.form.shape.m, self.form.shape.n
            raise wrong(line, f"D[{row}, {column}]: D has {m} rows and {n} columns")
        if len(digits) * 4 != bits:
            raise wrong(line, f"{digits!r} has {4 * len(digits)} bits: an element of D has {bits}", digits)
        lane, register, low = places[row, column]
        value, mask = value_and_mask(digits)
        self._set((case, lane, register), value << low, mask << low, line)

    def expect(self, case: int, lane: int, register: int, digits: str, line: Line) -> None:
        """Raise TraceError where a log expects another word than the set."""
        value, mask = value_and_mask(digits)
        own = int(self.vectors.d[case, lane, register])
        if (value ^ own) & mask:
            width = self.d.dtype.itemsize * 2
            raise wrong(
                line,
                f"the log expects {digits} in case {case}, lane {lane}, d{register}, but the set has "
                f"{own:0{width}x}: the log is of another set",
                digits,
            )

    def _set(self, place: tuple[int, int, int], value: int, mask: int, line: Line) -> None:
        word = self.d.dtype.type
        before, certain = int(self.d[place]), int(self.known[place])
        if (before ^ value) & certain & mask:
            case, lane, register = place
            other = f"has another value in line {int(self.lines[place])} of this log"
            raise wrong(line, f"case {case}, lane {lane}, d{register} {other}")
        self.d[place] = word(before | (value & mask))
        self.known[place] = word(certain | mask)
        self.lines[place] = line.number
        self.seen += 1

    def results(self, *notes: str) -> UnitResults:
        """Return what was read."""
        return UnitResults(d=self.d, known=self.known, notes=notes)


@cache
def element_places(form: Instruction) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return lane, register and lowest bit of each element of D by row and column."""
    where = fragment(form, "d")
    lanes, registers, elements, _ = where.shape
    step = form.register_bits // elements
    return {
        (int(where[lane, register, at, 0]), int(where[lane, register, at, 1])): (lane, register, at * step)
        for lane in range(lanes)
        for register in range(registers)
        for at in range(elements)
    }
