"""Traces: PTX text with ``//!`` lines that bind data and expectations; reading and running them.

A trace is PTX that ``ptxas`` accepts once it is wrapped in a kernel: ``.reg`` declarations and
statements for one warp. Comment lines that begin with ``//!`` say what the simulator does in between,
where they stand, inside braces too::

    //! target sm_90a                  the chip (required, before the first statement)
    //! version 8.5                    the PTX version, if not the newest modelled
    //! data tile.npz                  arrays, in a file beside the trace
    //! load %a<4> = a                 registers %a0..%a3 from array a (32, 4)
    //! load %e = 0x44444444           the same word in every lane, or 32 words, one a lane
    //! expect %d<4> = d               compare registers with an array, bit by bit

Arrays are unsigned integers, or bools for predicates. A single word may fill several registers.
Knows these lines; does not know file formats or how comparisons are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .archives import Arrays, read_arrays, read_text
from .checks import Check, compare
from .errors import Location, OperandError, TraceError, located
from .machine import LANES, Event, Warp
from .pipeline import Engine, Undefined
from .ptx.decode import parse_version
from .ptx.parser import parse
from .ptx.qualifiers import check_target
from .ptx.statements import Binding, Block, Program, Statement
from .register_file import split

_SETTING = re.compile(r"(target|version|data)\s+(.+)", re.DOTALL)
_LOAD = re.compile(r"(load|expect)\s+([^\s=]+)\s*=\s*(.+)", re.DOTALL)
_HEXADECIMAL = re.compile(r"0[xX]0*[0-9a-fA-F]{1,16}")
_SHORT = 40  # characters of the text that an error message quotes


@dataclass(frozen=True, kw_only=True)
class Load:
    """Registers to fill from data, or to compare with it (``expected``)."""

    registers: str
    words: npt.NDArray[Any]  # (32, registers), (32,), or a single word
    expected: bool
    location: Location


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A trace that was read: its target, its statements, and for each ``//!`` line at an offset its data."""

    path: str
    target: str
    version: tuple[int, int] | None
    statements: tuple[Statement, ...]
    loads: Mapping[int, Load]


@dataclass(kw_only=True)
class Run:
    """What running a trace did: the matrix instructions that were executed, and the checks."""

    trace: Trace
    warp: Warp
    events: list[Event] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every expectation held."""
        return all(check.passed for check in self.checks)


# --- reading ---------------------------------------------------------------------------------------


def read_trace(path: str | Path) -> Trace:
    """The trace in a file, its data read and checked.

    Raises TraceError (a ``//!`` line or the data file is wrong), PtxError, or OSError.
    """
    path = Path(path)
    return _Reader(path, parse(read_text(path), str(path))).trace()


class _Reader:
    """Interprets the ``//!`` lines of one program."""

    def __init__(self, path: Path, program: Program) -> None:
        self.path = path
        self.program = program
        self.settings: dict[str, tuple[str, Location]] = {}
        self.arrays: Arrays = {}
        self.used: set[str] = set()
        self.loads: dict[int, Load] = {}

    def trace(self) -> Trace:
        begun = False
        for statement in _flat(self.program.statements):
            if isinstance(statement, Binding):
                self.line(statement, begun)
            else:
                begun = True
        if "target" not in self.settings:
            top = Location(str(self.path), 1)
            raise TraceError("the trace names no target: add a line '//! target sm_90a'", top)
        for name in sorted(set(self.arrays) - self.used)[:1]:
            raise TraceError(f"no load or expect uses array {name!r}", self.settings["data"][1])
        version, _ = self.settings.get("version", ("", None))
        return Trace(
            path=str(self.path),
            target=self.settings["target"][0],
            version=parse_version(version) if version else None,
            statements=self.program.statements,
            loads=self.loads,
        )

    def line(self, binding: Binding, begun: bool) -> None:
        """One ``//!`` line; errors point at the part of it that is wrong."""
        text = binding.text
        if match := _LOAD.fullmatch(text):
            self.loads[binding.start] = self.load(match, _part(binding, match, 2), _part(binding, match, 3))
        elif match := _SETTING.fullmatch(text):
            self.set(match[1], match[2], _part(binding, match, 2), begun)
        elif text:
            raise TraceError(
                f"'//! {_short(text)}': expected target, version, data, 'load REGISTERS = DATA' or "
                f"'expect REGISTERS = DATA'",
                binding.location(),
            )

    def load(self, match: re.Match[str], registers: Location, source: Location) -> Load:
        with located(lambda: source):
            words = self.words(match[3])
        with located(lambda: registers), _as_trace_error():
            split(match[2], words, LANES)
        return Load(registers=match[2], words=words, expected=match[1] == "expect", location=registers)

    def set(self, name: str, value: str, location: Location, begun: bool) -> None:
        with located(lambda: location):
            self.check(name, value, begun)
        self.settings[name] = value, location

    def check(self, name: str, value: str, begun: bool) -> None:
        """The setting is legal here; data is read."""
        if name in self.settings:
            raise TraceError(f"{name} is already given as {_short(self.settings[name][0])}")
        if begun and name != "data":
            raise TraceError(f"{name} is given after the first statement: it stands before")
        if name == "target":
            check_target(value)
        elif name == "version":
            parse_version(value)
        else:
            if Path(value).name != value:
                raise TraceError(f"data {_short(value)!r}: expected the name of a file beside the trace")
            self.arrays = read_arrays(self.path.parent / value)

    def words(self, source: str) -> npt.NDArray[Any]:
        """The words that are written out, or the array of that name."""
        if source[:2].lower() == "0x":
            return _hexadecimal(source)
        if source not in self.arrays:
            known = ", ".join(self.arrays) or "none: there is no '//! data' line before"
            raise TraceError(f"no array {_short(source)!r}; the arrays are {known}")
        self.used.add(source)
        return self.arrays[source]


def _part(binding: Binding, match: re.Match[str], group: int) -> Location:
    """Where a group of a match on the text of a binding stands."""
    offset = binding.source.text.index(binding.text, binding.start + len("//!"))
    return binding.source.location(offset + match.start(group), offset + match.end(group))


def _flat(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Statements in the order of the text, those in braces too."""
    for statement in statements:
        yield statement
        if isinstance(statement, Block):
            yield from _flat(statement.statements)


def _hexadecimal(source: str) -> npt.NDArray[Any]:
    """One word for all lanes, or one a lane."""
    words = re.split(r"\s*,\s*|\s+", source)
    for word in words:
        if not _HEXADECIMAL.fullmatch(word):
            raise TraceError(f"{_short(word)!r} is no hexadecimal word of at most 64 bits")
    if len(words) not in (1, LANES):
        raise TraceError(f"{len(words)} words: expected one for all lanes, or {LANES}")
    values = [int(word, 16) for word in words]
    array = np.array(values, np.uint64 if max(values) >> 32 else np.uint32)
    return array if len(values) > 1 else array.reshape(())


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."


# --- running ---------------------------------------------------------------------------------------


def run_trace(
    trace: Trace,
    *,
    target: str | None = None,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
) -> Run:
    """Execute a trace, on another ``target`` if one is given, and compare what it expects.

    Raises what Warp.run raises, and TraceError where data does not fit its registers.
    """
    warp = Warp(target or trace.target, engine=engine, undefined=undefined)
    if trace.version:
        warp.version = trace.version
    run = Run(trace=trace, warp=warp)
    with closing(warp.steps(trace.statements)) as steps:
        for step in steps:
            if isinstance(step, Event):
                run.events.append(step)
            elif step.start in trace.loads:
                _apply(run, trace.loads[step.start])
    return run


def _apply(run: Run, load: Load) -> None:
    with located(lambda: load.location), _as_trace_error():
        if load.expected:
            run.checks.append(compare(run.warp, load.registers, load.words, load.location))
        else:
            run.warp.load(load.registers, load.words)


@contextmanager
def _as_trace_error() -> Iterator[None]:
    """A block in which data that does not fit its registers is the trace's fault."""
    try:
        yield
    except OperandError as error:
        raise TraceError(error.message) from None
