"""Traces: PTX text with ``//!`` lines that bind data and expectations; reading, running, comparing.

A trace is PTX that ``ptxas`` accepts once it is wrapped in a kernel: ``.reg`` declarations and
statements for one warp. Comment lines that begin with ``//!`` say what the simulator does in between,
where they stand::

    //! target sm_90a                  the chip (required, before the first statement)
    //! version 8.5                    the PTX version, if not the newest modelled
    //! data tile.npz                  arrays, in a file beside the trace
    //! load %a<4> = a                 registers %a0..%a3 from array a (32, 4)
    //! load %e = 0x44444444           the same word in every lane, or 32 words, one a lane
    //! expect %d<4> = d               compare registers with an array, bit by bit

Knows these files and what a comparison found; does not print.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .encoding import matrix_of
from .errors import Location, OperandError, TraceError, WarpsimError
from .pipeline import Engine, Undefined
from .fragments import codes_from, fragment
from .instruction import Instruction
from .machine import LANES, Event, Warp
from .ptx.parser import parse
from .ptx.statements import Binding, Program, Statement

_LARGEST = 1 << 30  # bytes of one array file, unpacked
_BIND = re.compile(r"(load|expect)\s+(\S+)\s*=\s*(\S.*)")
_WORDS = re.compile(r"0[xX][0-9a-fA-F]+(?:[\s,]+0[xX][0-9a-fA-F]+)*")
_SETTINGS = frozenset({"target", "version", "data"})


@dataclass(frozen=True, kw_only=True)
class Load:
    """Registers to fill from data, or to compare with it (``expected``)."""

    registers: str
    words: npt.NDArray[Any]
    expected: bool
    location: Location


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A trace that was read: its settings and its steps in order, statements and data."""

    path: str
    target: str
    version: str | None
    steps: tuple[Statement | Load, ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One register of one lane that is not as expected, and the matrix element behind it, if known."""

    lane: int
    register: str
    expected: int
    actual: int
    bits: int
    row: int | None = None
    column: int | None = None
    expected_value: str = ""
    actual_value: str = ""

    def __str__(self) -> str:
        digits = self.bits // 4
        words = f"expected {self.expected:#0{digits + 2}x}, got {self.actual:#0{digits + 2}x}"
        if self.row is None:
            return f"lane {self.lane}, register {self.register}: {words}"
        values = f"expected {self.expected_value}, got {self.actual_value}"
        element = f"D[{self.row},{self.column}]"
        return f"lane {self.lane}, register {self.register}: {words}; {element}: {values}"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One expectation: how many words were compared, how many differ, and the first that does."""

    registers: str
    location: Location
    compared: int
    different: int
    first: Difference | None = None

    @property
    def passed(self) -> bool:
        """Whether every bit was as expected."""
        return self.different == 0


@dataclass(kw_only=True)
class Run:
    """What running a trace did: matrix instructions with their D registers, and the checks."""

    trace: Trace
    warp: Warp
    executed: list[tuple[Event, npt.NDArray[Any]]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every expectation held."""
        return all(check.passed for check in self.checks)


# --- reading ---------------------------------------------------------------------------------------


def read_trace(path: str | Path) -> Trace:
    """The trace in a file, its data read and checked.

    Raises TraceError (a binding or the data file is wrong), PtxError, or OSError.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not a text file: {error.reason} at byte {error.start}") from None
    return _Reader(path, parse(text, str(path))).trace()


class _Reader:
    """Interprets the bindings of one program."""

    def __init__(self, path: Path, program: Program) -> None:
        self.path = path
        self.program = program
        self.settings: dict[str, str] = {}
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self.used: set[str] = set()

    def trace(self) -> Trace:
        steps = tuple(step for statement in self.program.statements for step in self._step(statement))
        if "target" not in self.settings:
            raise TraceError("the trace names no target: add a line '//! target sm_90a'", self._top())
        unused = sorted(set(self.arrays) - self.used)
        if unused:
            raise TraceError(
                f"{self.settings['data']}: no load or expect uses array {unused[0]!r}", self._top()
            )
        return Trace(
            path=str(self.path),
            target=self.settings["target"],
            version=self.settings.get("version"),
            steps=steps,
        )

    def _top(self) -> Location:
        return Location(str(self.path), 1)

    def _step(self, statement: Statement) -> Iterator[Statement | Load]:
        if not isinstance(statement, Binding):
            yield statement
            return
        try:
            yield from self._binding(statement)
        except TraceError as error:
            if error.location is None:
                error.at(statement.location())
            raise

    def _binding(self, statement: Binding) -> Iterator[Load]:
        text = statement.text.strip()
        word, _, rest = text.partition(" ")
        if word in _SETTINGS and rest.strip():
            self._set(word, rest.strip())
        elif match := _BIND.fullmatch(text):
            yield Load(
                registers=match[2],
                words=self._words(match[3].strip()),
                expected=match[1] == "expect",
                location=statement.location(),
            )
        elif text:
            raise TraceError(
                f"'//! {text}': expected target, version, data, 'load REGISTERS = DATA' or "
                f"'expect REGISTERS = DATA'"
            )

    def _set(self, name: str, value: str) -> None:
        if name in self.settings:
            raise TraceError(f"{name} is already given as {self.settings[name]}")
        self.settings[name] = value
        if name == "data":
            if Path(value).name != value:
                raise TraceError(f"data {value!r}: expected the name of a file beside the trace")
            self.arrays = read_arrays(self.path.parent / value)

    def _words(self, source: str) -> npt.NDArray[Any]:
        if _WORDS.fullmatch(source):
            words = [int(word, 16) for word in re.split(r"[\s,]+", source)]
            if len(words) not in (1, LANES):
                raise TraceError(f"{len(words)} words: expected one for all lanes, or {LANES}")
            wide = np.uint64 if max(words) >> 32 else np.uint32
            if max(words) >> 64:
                raise TraceError(f"{max(words):#x} does not fit in 64 bits")
            return np.array(words, wide) if len(words) > 1 else np.full(LANES, words[0], wide)
        if source not in self.arrays:
            known = ", ".join(self.arrays) or "none: there is no '//! data' line before"
            raise TraceError(f"no array {source!r}; the arrays are {known}")
        self.used.add(source)
        return self.arrays[source]


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an ``.npz`` file: unsigned integers or bools, never pickles, at most 1 GiB unpacked.

    Raises TraceError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > _LARGEST:
            raise TraceError(f"{path}: {size:,} bytes unpacked, more than {_LARGEST:,}")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise TraceError(f"{path}: cannot be read as an .npz file: {error}") from None
    for name, array in arrays.items():
        if array.dtype.kind not in "ub":
            raise TraceError(f"{path}: array {name!r} has dtype {array.dtype}, not unsigned integers or bool")
    return arrays


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
        warp.run(f".version {trace.version}", trace.path)
    run = Run(trace=trace, warp=warp)
    for step in trace.steps:
        if isinstance(step, Load):
            _apply(run, step)
            continue
        for event in warp.run_statements([step]):
            run.executed.append((event, _d_registers(event, warp)))
    return run


def _d_registers(event: Event, warp: Warp) -> npt.NDArray[Any]:
    word = np.dtype(f"u{event.instruction.register_bits // 8}")
    columns = [np.zeros(LANES, word) if name is None else warp[name] for name in event.bound.d]
    return np.stack(columns, axis=-1)


def _apply(run: Run, load: Load) -> None:
    try:
        if load.expected:
            run.checks.append(_compared(run, load))
        else:
            run.warp[load.registers] = load.words
    except OperandError as error:
        raise TraceError(error.message, load.location) from None
    except WarpsimError as error:
        if error.location is None:
            error.at(load.location)
        raise


def _compared(run: Run, load: Load) -> Check:
    actual = run.warp[load.registers]
    if actual.shape != load.words.shape:
        raise OperandError(f"{load.registers} is {actual.shape}, but the expected data is {load.words.shape}")
    different = actual != load.words
    first = None
    if different.any():
        first = _difference(run, load, actual, tuple(int(i) for i in np.argwhere(different)[0]))
    return Check(
        registers=load.registers,
        location=load.location,
        compared=actual.size,
        different=int(different.sum()),
        first=first,
    )


def _difference(
    run: Run, load: Load, actual: npt.NDArray[Any], place: tuple[int, ...]
) -> Difference:
    register = load.registers
    if len(place) == 2:
        register = f"{load.registers[: load.registers.index('<')]}{place[1]}"
    found = Difference(
        lane=place[0],
        register=register,
        expected=int(load.words[place]),
        actual=int(actual[place]),
        bits=8 * actual.dtype.itemsize,
    )
    for event, _ in reversed(run.executed):
        if register in event.bound.d:
            return _explained(found, event.instruction, event.bound.d.index(register))
    return found


def _explained(found: Difference, instruction: Instruction, index: int) -> Difference:
    """The difference with the row, column and values of the first element of the word that differs."""
    words = np.zeros((2, LANES, instruction.registers["d"]), f"u{instruction.register_bits // 8}")
    words[:, found.lane, index] = found.expected, found.actual
    values = matrix_of(codes_from(words, instruction, "d"), instruction.d)
    element = instruction.storage("d").bits
    slot = ((found.expected ^ found.actual) & -(found.expected ^ found.actual)).bit_length() - 1
    row, column = (int(i) for i in fragment(instruction, "d")[found.lane, index, slot // element])
    matrices = values.reshape(2, -1, *values.shape[-2:])
    product = found.lane % 16 // 4 if instruction.products > 1 else 0
    expected, actual = (str(matrix[row, column]) for matrix in matrices[:, product])
    return replace(found, row=row, column=column, expected_value=expected, actual_value=actual)


def write_arrays(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write an ``.npz`` file whole or not at all: under a temporary name, then renamed."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

