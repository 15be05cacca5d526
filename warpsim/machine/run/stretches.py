"""Stretches: statements one behind the other that compute lane by lane, compiled to one function of Python.

A stretch has twins of statements (machine/bind/twins.py) without guards, and no label but at its first. It is
compiled when its first statement has been executed ``HOT`` times, so that small launches pay nothing; runs of
members (mma_batches.py) begin with the first execution. Its function takes what the registers hold, calls
what the twins compute, and returns what is left in registers.
Nothing in it can fail, wait, or be observed; statements count as if each had been executed by itself. The
interpreter (execute.py) executes it instead where lanes read what they have never written, where another path
stands inside of it, or where an observer has put other records in place of its own: what both give is equal.

``WARPSIM_STATEMENTS=interpreted`` executes every statement by itself. Knows records and registers; does not
know what a statement computes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...ptx.operands import Register
from ..bind.scope import LabelName, LabelTable
from ..bind.twins import NOWHERE, Source, Twin
from ..native.array_layout import arrays_are_as_expected
from ..native.objects import expected
from ..state.lanes import DivergentPath, Values
from ..state.side_tables import SideTable
from .mma_batches import run_from
from .native_stretches import LONGEST, NativeStretch, pays
from .native_stretches import compiles as native_compiles
from .wave import Entry, Record, Wave

HOT = 8  # executions of a statement by a wave, or by all launches of a kernel, from which on it is compiled
STATEMENTS = "WARPSIM_STATEMENTS"  # the variable of the environment that chooses
_WAYS = ("compiled", "numpy", "interpreted")
_SHORTEST = 2  # statements
_LONGEST = 512
_JUMPS = frozenset({"bra", "brx"})

Function = Callable[[list[Any], Wave, DivergentPath], "tuple[Values, ...] | None"]


def statements_are_compiled() -> bool:
    """Return whether stretches are compiled; raises OperandError for a way that does not exist."""
    way = os.environ.get(STATEMENTS, "") or "compiled"
    if way not in _WAYS:
        raise OperandError(f"{STATEMENTS}={way!r}: it is {', '.join(map(repr, _WAYS))}")
    return way != "interpreted"


class Stretch:
    """The statements from ``first`` to before ``past`` of a module's ``code``.

    ``inputs`` are the registers that it reads first, ``outputs`` those that it writes.
    """

    __slots__ = ("code", "first", "function", "inputs", "outputs", "past", "records")

    def __init__(self, code: list[Record], first: int, past: int) -> None:
        self.code, self.first, self.past = code, first, past
        self.records = code[first:past]
        twins = [record.twin for record in self.records if record.twin is not None]
        self.inputs, self.outputs = registers_of(twins)
        self.function: Function | None = None

    def run(self, wave: Wave, path: DivergentPath, stop: int) -> bool:
        """Execute all of it at once, and return True; or nothing where the interpreter has to."""
        code, frame, lanes = wave.code, path.frame, path.lanes
        if self.first < stop < self.past:
            return False
        if code is not self.code and list(code[self.first : self.past]) != self.records:
            return False
        partial = frame.partial
        if partial and not all(lanes.within(partial[name]) for name in self.inputs if name in partial):
            return False
        function = self.function
        if function is None:
            function = self.function = compiled(self)
        found = function(frame.values, wave, path)
        if found is None:
            return False
        if lanes.count == wave.alive and not partial:
            values = frame.values
            for register, value in zip(self.outputs, found, strict=True):
                values[register] = value
        else:
            for register, value in zip(self.outputs, found, strict=True):
                wave.write(path, lanes, register, value)
        wave.scheduler.executed(self.first, self.past)
        path.pc = self.past
        return True


def registers_of(twins: Sequence[Twin]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the registers that statements read before they write them, and those that they write."""
    inputs, outputs = dict[int, None](), dict[int, None]()
    for twin in twins:
        for source in twin.sources:
            if source.register != NOWHERE and source.register not in outputs:
                inputs[source.register] = None
        outputs |= dict.fromkeys(target for target in twin.targets if target != NOWHERE)
    return (*inputs,), (*outputs,)


# --- what is compiled -------------------------------------------------------------------------------------


def warm(entry: Entry, counts: npt.NDArray[np.int64]) -> None:
    """Take in how often a launch has executed each statement; those that are hot by now begin stretches."""
    executed = _EXECUTED.of(entry)
    before = executed < HOT
    known = min(executed.size, counts.size)  # a module has more statements when another entry is loaded
    executed[:known] += counts[:known]
    for pc in np.flatnonzero(before & (executed >= HOT)).tolist():
        begin(entry, pc)


def joined(entry: Entry, pc: int) -> bool:
    """Make the run of members that begins at a statement; return whether that has made a new run.

    Nothing is compiled for it, so it pays from the first execution on. A statement is looked at once.
    """
    seen, record = _JOINED.of(entry), entry.code[pc]
    if pc in seen or record.member is None or record.stretch is not None:
        return False
    seen.add(pc)
    record.stretch = run_from(entry.code, pc, _LABELS.of(entry))
    return record.stretch is not None


def begin(entry: Entry, pc: int) -> None:
    """Make the stretch that begins at a statement, where that is the first of some."""
    record = entry.code[pc]
    joined(entry, pc)
    if record.stretch is None:
        _begin_computing(entry, pc)
    if not isinstance(record.stretch, NativeStretch) and is_native():
        _begin_native(entry, pc)


def is_native() -> bool:
    """Return whether stretches become machine code."""
    way = os.environ.get(STATEMENTS, "") or "compiled"
    return way == "compiled" and expected() and arrays_are_as_expected()


def _begin_native(entry: Entry, pc: int) -> None:
    """Make the stretch of machine code that begins at a statement, where that is the first of some."""
    code, labels = entry.code, _LABELS.of(entry)
    if not native_compiles(code[pc]):
        return
    if pc not in labels and pc > entry.start and native_compiles(code[pc - 1]):
        before = code[pc - LONGEST].stretch if pc >= LONGEST else None
        if not isinstance(before, NativeStretch) or before.past != pc:
            return
    past = _end(code, pc, labels, native_compiles, LONGEST)
    if pays(code[pc:past]):
        code[pc].stretch = NativeStretch(code, pc, past, code[pc].stretch or _computing(entry, pc))


def _begin_computing(entry: Entry, pc: int) -> None:
    """Make the stretch of Python's that begins at a statement, where that is the first of some."""
    code, labels = entry.code, _LABELS.of(entry)
    if pc in labels or pc <= entry.start or not _compiles(code[pc - 1]) or _full(code, pc):
        code[pc].stretch = _computing(entry, pc)


def _computing(entry: Entry, pc: int) -> Stretch | None:
    """Return a stretch of Python's from a statement on, None where there is not more than that."""
    past = _end(entry.code, pc, _LABELS.of(entry), _compiles, _LONGEST)
    return Stretch(entry.code, pc, past) if past - pc >= _SHORTEST else None


def _end(
    code: Sequence[Record], pc: int, labels: frozenset[int], compiles: Callable[[Record], bool], longest: int
) -> int:
    """Return where a stretch ends that begins at a statement, which itself may not compile."""
    past, end = pc, min(pc + longest, len(code))
    while past < end and (past == pc or past not in labels) and compiles(code[past]):
        past += 1
    return past


def _full(code: Sequence[Record], pc: int) -> bool:
    """Return whether a stretch ends before a statement because it is as long as any."""
    before = code[pc - _LONGEST].stretch if pc >= _LONGEST else None
    return before is not None and before.past == pc


def _compiles(record: Record) -> bool:
    return record.guard < 0 and record.twin is not None and record.twin.plain


def _labels(entry: Entry) -> frozenset[int]:
    """Return the places of all labels that a branch of the module names."""
    return frozenset(
        pc for record in entry.code if record.statement.opcode in _JUMPS for pc in _targets(record)
    )


def _targets(record: Record) -> Iterator[int]:
    for operand in record.statement.operands or ():
        if record.scope is None or not isinstance(operand, Register):
            continue
        found = record.scope.find(operand.name)
        names = found.names if isinstance(found, LabelTable) else ()
        for label in (found, *map(record.scope.find, names)):
            if isinstance(label, LabelName):
                yield label.pc


def _never(entry: Entry) -> npt.NDArray[np.int64]:
    return np.zeros(len(entry.code), np.int64)


_LABELS, _EXECUTED, _JOINED = SideTable(_labels), SideTable(_never), SideTable[set[int]](lambda _: set())


# --- the function ------------------------------------------------------------------------------------------


def compiled(stretch: Stretch) -> Function:
    """Return the function of a stretch."""
    names: dict[str, Any] = {"full": np.full}
    first, past = (_line(record) for record in (stretch.records[0], stretch.records[-1]))
    code = _code_of("\n".join(_lines(stretch, names)))
    return FunctionType(code.replace(co_filename=f"<statements of lines {first} to {past}>"), names)


def _line(record: Record) -> int:
    """Return the line that a statement begins in."""
    statement = record.statement
    return statement.source.location(statement.start, statement.start).line


@lru_cache(maxsize=1024)
def _code_of(text: str) -> CodeType:
    """Return the code of the function of a text, which is that of stretches with other registers, too."""
    found = compile(text, "<statements>", "exec").co_consts
    return next(item for item in found if isinstance(item, CodeType))


def _lines(stretch: Stretch, names: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a function; ``names`` gets what they name. Registers have names by their order."""
    local = {number: f"r{place}" for place, number in enumerate((*stretch.inputs, *stretch.outputs))}
    yield "def stretch(values, wave, path):"
    for place, register in enumerate(stretch.inputs):
        names[f"n{place}"] = register
        yield f" {local[register]} = values[n{place}]"
        yield f" if {local[register]} is None: return None"
    for place, record in enumerate(stretch.records):
        assert record.twin is not None
        yield from _statement(place, record.twin, local, names)
    yield f" return ({''.join(f'{local[register]}, ' for register in stretch.outputs)})"


def _statement(place: int, twin: Twin, local: Mapping[int, str], names: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a statement; everything is read before anything is written."""
    sources = [
        _source(f"{place}_{number}", source, local, names) for number, source in enumerate(twin.sources)
    ]
    targets = ["_" if target == NOWHERE else local[target] for target in twin.targets]
    if twin.compute is None:
        yield f" {', '.join(targets)} = {', '.join(sources)}"
    elif twin.single is not None:
        names[f"c{place}"] = twin.single
        yield f" {targets[0]} = c{place}({', '.join(sources)})"
    else:
        names[f"c{place}"] = twin.compute
        left = f"{targets[0]} =" if len(targets) == 1 else f"{', '.join(targets)}, *_ ="
        yield f" {left} c{place}({', '.join(sources)}){'[0]' * (len(targets) == 1)}"
    for target in targets:
        if target != "_":
            yield f" if not {target}.ndim: {target} = full(wave.lanes, {target})"


def _source(name: str, source: Source, local: Mapping[int, str], names: dict[str, Any]) -> str:
    """Return the expression of a source."""
    if source.read is not None:
        names[f"s{name}"] = source.read
        text = f"s{name}(wave, path)"
    else:
        text = local[source.register]
        if source.dtype is not None:
            names[f"t{name}"] = source.dtype
            text = f"{text}.astype(t{name})"
    return f"~{text}" if source.negated else text
