"""Traces: read PTX text with ``//!`` lines that bind data and expectations (running.py executes them).

A trace is PTX that ``ptxas`` accepts once it is wrapped in a kernel: ``.reg`` declarations and statements for
one warp or warpgroup. Comment lines that begin with ``//!`` are actions of the simulator at that point of the
text, inside braces too::

    //! target sm_90a                  the chip (before the first statement; a directive .target may name it)
    //! version 8.5                    the PTX version, if not the newest modelled
    //! warpgroup 65536                four warps with that many bytes of shared memory (227 KiB if left out)
    //! data tile.npz                  arrays, in a file beside the trace
    //! load %a<4> = a                 registers %a0..%a3 from array a (32, 4); (128, 4) for a warpgroup
    //! load %e = 0x44444444           the same word in every lane, or one word for each lane
    //! expect %d<4> = d               compare registers with an array, bit by bit
    //! shared tile+1024 = b           bytes of shared memory, from a variable or an address on, from array b
    //! expect shared 0x400 = c        compare bytes of shared memory

Arrays are unsigned integers, or bools for predicates. A single word may fill several registers. Words in
shared memory are little-endian; wgmma sees the bytes of a ``//! shared`` line without a fence, as those of a
bulk copy. Knows these lines; does not know file formats, or what executing does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import Location, OperandError, TraceError, located
from ...base.files.archives import Arrays, read_arrays, read_text
from ...isa.memory import SHARED_BYTES
from ...isa.numerals import whole_number
from ...isa.warps import WARP, WARPGROUP
from ...machine.bind.register_arrays import split
from ...ptx.decode import parse_version
from ...ptx.parser import parse
from ...ptx.qualifiers import check_target
from ...ptx.statements import Binding, Block, Directive, Program, Statement

_SETTING = re.compile(r"(target|version|data)\s+(.+)|(warpgroup)(?:\s+(.+))?", re.DOTALL)
_SHARED = re.compile(r"(expect\s+)?shared\s+([^\s=]+)\s*=\s*(.+)", re.DOTALL)
_LOAD = re.compile(r"(load|expect)\s+([^\s=]+)\s*=\s*(.+)", re.DOTALL)
_HEXADECIMAL = re.compile(r"0[xX]0*[0-9a-fA-F]{1,16}")
_SHORT = 40  # characters of the text that an error message quotes


@dataclass(frozen=True, kw_only=True)
class Load:
    """Registers to fill from data, or to compare with data (``expected``)."""

    registers: str
    words: npt.NDArray[Any]  # (lanes, registers), (lanes,), or a single word
    expected: bool
    location: Location
    shared: bool = False  # bytes of shared memory; ``registers`` is then the place of the first byte


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A parsed trace: its target, its statements, and for each ``//!`` line at an offset its data.

    ``shared_bytes`` is the size of a warpgroup's shared memory, None for the trace of a warp, which has as
    much as a CTA can have; ``end`` is the last offset in the text.
    """

    path: str
    target: str
    version: tuple[int, int] | None
    statements: tuple[Statement, ...]
    loads: Mapping[int, Load]
    end: Location
    shared_bytes: int | None = None


@in_default_environment
def read_trace(path: str | Path, target: str | None = None) -> Trace:
    """Return the trace in a file, its data read and checked.

    ``target`` is for a trace that has no line ``//! target``; without either it is that of its directive
    ``.target``. Raises TraceError (a ``//!`` line or the data file is wrong), PtxError, or OSError.
    """
    path = Path(path)
    return _Reader(path, parse(read_text(path), str(path)), target).trace()


class _Reader:
    """The interpreter of the ``//!`` lines of one program."""

    def __init__(self, path: Path, program: Program, target: str | None) -> None:
        self.path = path
        self.program = program
        self.target = target
        self.settings: dict[str, tuple[str, Location]] = {}
        self.arrays: Arrays = {}
        self.used: set[str] = set()
        self.loads: dict[int, Load] = {}
        self.shared_bytes: int | None = None

    def trace(self) -> Trace:
        begun = False
        for statement in _flat(self.program.statements):
            if isinstance(statement, Binding):
                self.line(statement, begun)
            else:
                begun = True
        target = self.chip()
        for name in sorted(set(self.arrays) - self.used)[:1]:
            raise TraceError(f"no load or expect uses array {name!r}", self.settings["data"][1])
        version, _ = self.settings.get("version", ("", None))
        text = self.program.source.text
        return Trace(
            path=str(self.path),
            target=target,
            version=parse_version(version) if version else None,
            statements=self.program.statements,
            loads=self.loads,
            end=self.program.source.location(len(text.rstrip())),
            shared_bytes=self.shared_bytes,
        )

    def chip(self) -> str:
        """Return the target that a line names, or the caller, or the first directive that names a target."""
        given = self.settings["target"][0] if "target" in self.settings else self.target
        if given is not None:
            return given
        for statement in _flat(self.program.statements):
            if isinstance(statement, Directive) and statement.name == "target":
                name = statement.text.partition(",")[0].strip()
                with located(statement.location):
                    check_target(name)
                return name
        raise TraceError(
            "the trace names no target: add a line '//! target sm_90a' or '.target sm_90a', "
            "or give target='sm_…' (--target sm_…)",
            Location(str(self.path), 1),
        )

    def line(self, binding: Binding, begun: bool) -> None:
        """Interpret a ``//!`` line; errors point at its wrong part."""
        text = binding.text
        if match := _LOAD.fullmatch(text):
            self.loads[binding.start] = self.load(match, _part(binding, match, 2), _part(binding, match, 3))
        elif match := _SHARED.fullmatch(text):
            self.loads[binding.start] = self.bytes(match, _part(binding, match, 2), _part(binding, match, 3))
        elif match := _SETTING.fullmatch(text):
            name, value = (1, 2) if match[1] else (3, 4)
            place = _part(binding, match, value if match[value] else name)
            self.set(match[name], match[value] or "", place, begun)
        elif text:
            raise TraceError(
                f"'//! {_short(text)}': expected target, version, warpgroup, data, "
                f"'load REGISTERS = DATA', 'shared PLACE = DATA' or 'expect REGISTERS = DATA'",
                binding.location(),
            )

    def load(self, match: re.Match[str], registers: Location, source: Location) -> Load:
        with located(lambda: source):
            words = self.words(match[3])
        with located(lambda: registers), as_trace_error():
            split(match[2], words, self.lanes)
        return Load(registers=match[2], words=words, expected=match[1] == "expect", location=registers)

    def bytes(self, match: re.Match[str], place: Location, source: Location) -> Load:
        """Bind bytes of shared memory; their place is resolved when the trace runs."""
        with located(lambda: source):
            words = self.words(match[3])
        return Load(registers=match[2], words=words, expected=bool(match[1]), location=place, shared=True)

    @property
    def lanes(self) -> int:
        """Return the lanes of the machine that the lines so far ask for."""
        return WARP if self.shared_bytes is None else WARPGROUP

    def set(self, name: str, value: str, location: Location, begun: bool) -> None:
        with located(lambda: location):
            self.check(name, value, begun)
        self.settings[name] = value, location

    def check(self, name: str, value: str, begun: bool) -> None:
        """Check that the setting is legal here; return its data."""
        if name in self.settings:
            given = self.settings[name][0]
            raise TraceError(f"{name} is already given{f' as {_short(given)}' if given else ''}")
        if name != "data" and (begun or (name == "warpgroup" and self.loads)):
            what = "statement" if begun else "load"
            raise TraceError(f"{name} is given after the first {what}: it stands before")
        if name == "target":
            check_target(value)
        elif name == "warpgroup":
            self.shared_bytes = _size(value)
        elif name == "version":
            parse_version(value)
        else:
            if Path(value).name != value:
                raise TraceError(f"data {_short(value)!r}: expected the name of a file beside the trace")
            self.arrays = read_arrays(self.path.parent / value)

    def words(self, source: str) -> npt.NDArray[Any]:
        """Return the words that are written out, or the array of that name."""
        if source[:2].lower() == "0x":
            return _hexadecimal(source, self.lanes)
        if source not in self.arrays:
            known = ", ".join(self.arrays) or "none: there is no '//! data' line before"
            raise TraceError(f"no array {_short(source)!r}; the arrays are {known}")
        self.used.add(source)
        return self.arrays[source]


def _part(binding: Binding, match: re.Match[str], group: int) -> Location:
    """Return the location of a group of a match on the text of a binding."""
    offset = binding.source.text.index(binding.text, binding.start + len("//!"))
    return binding.source.location(offset + match.start(group), offset + match.end(group))


def _flat(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield statements in the order of the text, including those in braces."""
    for statement in statements:
        yield statement
        if isinstance(statement, Block):
            yield from _flat(statement.statements)


def _size(value: str) -> int:
    """Return bytes of shared memory."""
    size = whole_number(value, SHARED_BYTES)
    if value and not size:
        raise TraceError(f"warpgroup {_short(value)}: expected bytes of shared memory, 1 to {SHARED_BYTES}")
    return size or SHARED_BYTES


def _hexadecimal(source: str, lanes: int) -> npt.NDArray[Any]:
    """Return one word for all lanes, or a word for each lane."""
    words = re.split(r"\s*,\s*|\s+", source)
    for word in words:
        if not _HEXADECIMAL.fullmatch(word):
            raise TraceError(f"{_short(word)!r} is not a hexadecimal word of at most 64 bits")
    if len(words) not in (1, lanes):
        raise TraceError(f"{len(words)} words: expected 1 for all lanes, or {lanes}")
    values = [int(word, 16) for word in words]
    array = np.array(values, np.uint64 if max(values) >> 32 else np.uint32)
    return array if len(values) > 1 else array.reshape(())


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."


@contextmanager
def as_trace_error() -> Iterator[None]:
    """Blame the trace for data that does not fit: in the block, OperandError becomes TraceError."""
    try:
        yield
    except OperandError as error:
        raise TraceError(error.message) from None
